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
calls: flat arguments of the largest shape, padded where symbolic, a device's own part where split
    expectations/test_calls.py::test_an_argument_of_several_axes_is_flat_in_the_body
    expectations/test_calls.py::test_a_symbolic_argument_is_padded_to_its_largest_shape
    expectations/test_calls.py::test_of_a_split_argument_a_body_sees_what_a_device_holds
    expectations/test_calls.py::test_parameters_of_a_traced_body_are_flat
    expectations/test_calls.py::test_inlining_leaves_no_call_and_no_parameter
calls: texts of shape, scalar, dtype, order and number; no check of the axis
    expectations/test_calls.py::test_what_does_not_fit
    expectations/test_calls.py::test_a_scalar_parameter_refuses_a_vector
    expectations/test_calls.py::test_no_check_of_the_axis
calls: gradients on flat storage, seen as each argument with its split
    expectations/test_calls.py::test_gradients_of_split_arguments
    expectations/test_calls.py::test_gradients_of_a_symbolic_argument
    tensor/test_function.py::test_options_change_no_value
calls: as_param is param_like
    expectations/test_calls.py::test_as_param_is_param_like
schedules: no views over storage in the kernel graph, parameters of the size of their buffers
    expectations/test_schedules.py::test_arguments_of_calls_are_storage
    expectations/test_schedules.py::test_storage_in_a_kernel_has_the_size_of_the_buffer
schedules: temporaries and copies of symbolic values have storage of the largest shape
    expectations/test_schedules.py::test_temporaries_of_symbolic_values_have_the_largest_size
    expectations/test_schedules.py::test_a_copy_of_a_symbolic_value_takes_storage_of_the_largest_shape
schedules: equal graphs over other buffers share one
    engine/test_caches.py::test_equal_graphs_over_other_buffers_share_a_schedule
schedules: hazards, states, and the error of a cycle
    schedule/test_schedule_effects.py::test_assign_that_would_overwrite_its_input
    schedule/test_schedule_effects.py::test_readers_of_the_old_state_run_first
    schedule/test_schedule_effects.py::test_swap_is_a_cycle
schedules: long reductions in two stages, buffers of a kernel limited, one value of a variable
    schedule/test_schedule_basics.py::test_long_reduction_in_two_stages
    schedule/test_schedule_limits.py::test_buffer_limit_of_a_long_sum
    schedule/test_schedule_effects.py::test_one_variable_has_one_value
several devices: a parameter is UNSHARD over storage of a shard
    expectations/test_schedules.py::test_the_axes_of_a_parameter_are_in_the_graph
    uop/test_builders.py::test_unshard_puts_shards_side_by_side
    uop/test_builders.py::test_param_like_of_a_sharded_value
several devices: all-to-all under TinyJit, five runs of random values
    expectations/test_schedules.py::test_allreduce_all_to_all_jit
    multi/test_allreduce.py::test_every_algorithm_under_jit
several devices: naive, ring and all-to-all, what they move and when each is taken
    multi/test_allreduce.py::test_what_each_algorithm_moves
    multi/test_allreduce.py::test_large_values_go_around_a_ring
    multi/test_allreduce.py::test_chunks_cover_the_value
    multi/test_allreduce.py::test_narrow_sums
several devices: a reshape that moves items between shards
    uop/test_builders.py::test_a_reshape_keeps_items_on_their_device
    multi/test_programs.py::test_split_along_rows
several devices: kernels by hand see the shape of a shard
    multi/test_custom_kernels.py::test_shards
several devices: state sharded, weights whole
    multi/test_scatter.py::test_sharded_state_of_whole_weights
    multi/test_optimizers.py::test_state_lies_where_the_parameter_does
captures: inputs are flat storage, other buffers in each call
    expectations/test_captures.py::test_inputs_are_flat
    expectations/test_captures.py::test_replays_take_other_buffers
captures: texts of mismatches, of inputs and results that are none, of nested captures
    jit/test_refused.py::test_mismatch
    jit/test_refused.py::test_inputs_must_be_buffers
    jit/test_refused.py::test_duplicate_inputs
    jit/test_refused.py::test_results_must_be_tensors
    jit/test_refused.py::test_nothing_to_capture
    jit/test_refused.py::test_jit_inside_of_jit
captures: memory of intermediates is freed with them
    expectations/test_captures.py::test_memory_of_a_dropped_capture_is_freed
    jit/test_resources.py::test_a_dropped_jit_frees_its_memory
captures: pickled and replayed elsewhere
    jit/test_pickle.py::test_in_a_new_process
    multi/test_captured.py::test_a_pickled_step_in_another_process
queues: HCQ2 is a context variable, 0 by default
    expectations/test_captures.py::test_the_way_of_submission_is_a_context_variable
    hcq/test_stream.py::test_both_patchers_write_what_words_mean
    hcq/test_stream.py::test_no_host_device
queues: submitters are compiled without emulation of dtypes
    expectations/test_captures.py::test_words_are_the_same_whoever_writes_them
queues: a copy without a copy queue
    hcq/test_toy.py::test_copy_without_copy_queue
queues: staging memory of 1 MB in 4 slots under a copy of 5 MB and 123 bytes
    hcq/test_toy.py::test_slots_of_staging_memory_are_used_again
queues: overlapping tuples of devices
    hcq/test_toy.py::test_tensors_on_overlapping_sets_of_devices
    multi/test_allreduce.py::test_device_tuples_that_overlap_in_one_program
queues: dependencies by byte ranges of base buffers
    hcq/test_dependencies.py::test_against_every_byte
    hcq/test_dependencies.py::test_the_three_hazards
queues: addresses are uint64 of storage, of a device's own choice
    uop/test_builders.py::test_addresses
    expectations/test_grammar.py::test_legality
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
