"""Where each expectation is tested: the behaviour, and under it the tests that hold it. All of them must exist.

a float32 mask selects among doubles: [10,20,70,80]
    expectations/test_values.py::test_a_float32_mask_selects_doubles
    cpu/test_x86_ops.py::test_where_of_a_comparison
int64 0x12345678ABCDEF01 through uint32 is 2882400001
    expectations/test_values.py::test_int64_through_uint32_keeps_the_low_half
    ops/test_casts.py::test_int64_through_uint32
half compared with 0 on either side
    expectations/test_values.py::test_half_on_the_right_of_a_comparison
    expectations/test_machine_code.py::test_half_is_compared_in_float32_on_whichever_side
x86 instructions, byte for byte (20 cases)
    isa/test_x86_encodings.py::test_bytes
a bare Register as tag, `imm`, `def_reg`, hex from `render([u])`
    isa/test_x86_encodings.py::test_bytes
    isa/test_x86_encodings.py::test_tag_may_be_a_tuple
two conditional moves share one CMP
    cpu/test_isel.py::test_two_conditional_moves_share_one_comparison
STACK of four floats is VINSERTPS
    cpu/test_isel.py::test_stack_of_floats_is_inserted
load(param[a+1]) has the int8 displacement 4
    cpu/test_isel.py::test_displacement_is_eight_bits
comparisons with NaN: true only for !=
    expectations/test_values.py::test_where_nan_cond
    ops/test_float_bits.py::test_where_nan_cond
    cpu/test_x86_programs.py::test_where_with_nan_condition
linear interpolation with align_corners to one value
    expectations/test_values.py::test_interpolation_to_one_value_with_aligned_corners
index tensors of uint8
    expectations/test_values.py::test_uint8_indices
    ops/test_indexing.py::test_fancy_indexing_index_dtypes
views before copies: 3 kernels, 40 / 96 / 64 bytes
    expectations/test_values.py::test_views_are_made_before_a_copy
UOp(op, tuple(src), arg) builds any node
    expectations/test_nodes.py::test_no_constructor_takes_a_dtype
a literal in a pattern is its arg
    uop/test_rewrite.py::TestUPat.test_const_in_patterns
indexing part of a reshaped value leaves no view
    expectations/test_nodes.py::test_a_view_is_under_a_place_never_beside_it
repr of a leaf, of a tree, of shared nodes
    uop/test_printing.py::test_repr_of_a_leaf
    uop/test_printing.py::test_repr_nests_two_spaces_per_level
    uop/test_printing.py::test_repr_names_a_shared_node_at_its_first_use
a literal's dtype is its value's
    expectations/test_nodes.py::test_a_literal_has_the_dtype_of_its_value
    uop/test_node.py::TestDtype.test_literals
UOp.const(3, int32) is a CAST over the number
    expectations/test_nodes.py::test_a_strong_literal_is_a_cast_over_the_plain_number
a register placeholder of (4,) has size 4
    expectations/test_nodes.py::test_registers_know_their_size
after lowering, weak dtypes are on literals only
    expectations/test_nodes.py::test_weak_dtypes_survive_lowering_on_literals_only
    rules/test_weak.py::test_a_lowered_program_passes_the_spec
order of a graph: [a, z, alu, y, sink]
    expectations/test_nodes.py::test_order_of_a_graph
a scalar parameter refuses ones(2)
    tensor/test_function.py::test_call_errors
    schedule/test_schedule_effects.py::test_function_arguments_are_checked
texts of call errors: shape, dtype, order, number
    schedule/test_schedule_effects.py::test_function_arguments_are_checked
    tensor/test_function.py::test_call_errors
AND of floats, strong or weak, fails spec_shared
    uop/test_spec.py::test_bits_of_floats_are_rejected
    expectations/test_grammar.py::test_legality
dtype of every op from (op, src, arg)
    expectations/test_nodes.py::test_dtype_rules
    expectations/test_nodes.py::test_effects_are_void
    expectations/test_nodes.py::test_the_dtype_of_the_first_source
    expectations/test_nodes.py::test_dtype_errors
the type of arg is part of a node's identity
    expectations/test_nodes.py::test_the_type_of_the_argument_is_part_of_the_identity
    uop/test_node.py::TestInterning.test_type_of_literal_is_part_of_identity
storage is flat, shape is a view; sizes are ints, dtypes strong
    expectations/test_nodes.py::test_storage_is_flat_and_its_shape_a_view
    expectations/test_nodes.py::test_storage_is_whole_and_strong
    expectations/test_nodes.py::test_an_image_is_an_argument_of_flat_storage
ParamArg prints slot, dtype, size, then what differs
    expectations/test_nodes.py::test_repr_of_param_arg
`param_like`, `ins`, `call(ret_dtype=)`
    expectations/test_nodes.py::test_param_like
    expectations/test_nodes.py::test_instructions_carry_their_dtype_in_the_argument
    expectations/test_nodes.py::test_an_address_call_returns_what_it_says
no axis on a PARAM
    expectations/test_nodes.py::test_no_axis_on_a_param
legal PARAM, BUFFER, Variable, GETADDR, kernel graphs
    expectations/test_grammar.py::test_legality
    uop/test_spec.py::test_kernel_graph_has_no_reshape
    uop/test_spec.py::test_host_stream
float comparisons are masks, never flags
    expectations/test_machine_code.py::test_a_float_comparison_is_a_mask_and_reads_no_flags
    expectations/test_machine_code.py::test_predicates_are_the_ones_that_get_nan_right
    expectations/test_machine_code.py::test_no_instruction_compares_floats_into_the_flags
uses of a mask: blend, widened blend, bool, integer gate
    expectations/test_machine_code.py::test_a_mask_of_another_width_is_widened_before_the_blend
    expectations/test_machine_code.py::test_a_bool_is_the_lowest_bit_of_the_mask
    expectations/test_machine_code.py::test_integer_selection_by_a_float_comparison_tests_the_mask_as_an_integer
integer casts: aliases, sign and zero extension
    expectations/test_machine_code.py::test_integer_casts
    expectations/test_machine_code.py::test_narrow_casts_keep_the_low_bits
gated loads and stores
    expectations/test_machine_code.py::test_a_gated_load_never_reads_where_its_gate_is_false
    cpu/test_x86_programs.py::test_gated_scalar_load_and_store
negative and wide indices
    cpu/test_x86_programs.py::test_negative_and_wide_indices
    cpu/test_x86_programs.py::test_index_from_memory_is_sign_extended
"""
from __future__ import annotations

import ast
import pathlib
from functools import cache

import pytest

TESTS = pathlib.Path(__file__).resolve().parents[1]
LINES = (__doc__ or "").splitlines()[2:]
ROWS = [(LINES[max(j for j in range(i) if not LINES[j].startswith(" "))], test.strip())
        for i, test in enumerate(LINES) if test.startswith(" ")]


@cache
def functions_of(file: str) -> set[str]:
    """Names of the test functions of a file, those of classes as ``Class.name``."""
    found = set()
    for node in ast.parse((TESTS / file).read_text()).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        elif isinstance(node, ast.ClassDef):
            found |= {f"{node.name}.{f.name}" for f in node.body if isinstance(f, ast.FunctionDef)}
    return found


@pytest.mark.parametrize("expectation,test", ROWS)
def test_the_named_test_exists(expectation: str, test: str) -> None:
    file, _, name = test.partition("::")
    assert name in functions_of(file), f"{expectation!r} names {test}, which is not there"
