"""What x86 selection makes of comparisons, masks, casts and gates (exact bytes: tests/isa/test_x86_encodings.py)."""
from __future__ import annotations

import pytest
from cpu.x86_machine import RENDERER, at, const, load, param, store

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import X86Ops

f16, f32, f64, i32 = dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int32
BYTES = param(9, dtypes.bool, 64)
FLAGS = {"CMP", "TEST", "SETB", "SETL", "SETA", "SETG", "SETE", "SETNE"}


def selected(*effects: UOp) -> list[UOp]:
    return RENDERER.isel(linearize(UOp(Ops.SINK, effects)))


def names(*effects: UOp) -> list[str]:
    return [n.arg[0].name for n in selected(*effects)]


def pair(dtype: DType, slot: int = 0, lanes: int = 1) -> tuple[UOp, UOp]:
    return load(param(slot, dtype, 64), 0, lanes), load(param(slot + 1, dtype, 64), 0, lanes)


@pytest.mark.parametrize("dtype", [f32, f64], ids=str)
@pytest.mark.parametrize("lanes", [1, 4])
def test_a_float_comparison_is_a_mask_and_reads_no_flags(dtype: DType, lanes: int) -> None:
    x, y = pair(dtype, lanes=lanes)
    ops = names(store(param(2, dtype, 64), 0, (x < y).where(x, const(2.0, dtype)), lanes))
    suffix = ("P" if lanes > 1 else "S") + ("S" if dtype is f32 else "D")
    assert f"VCMP{suffix}" in ops and f"VBLENDVP{suffix[-1]}" in ops and not FLAGS & set(ops)


@pytest.mark.parametrize("op,predicate", [(Ops.CMPLT, 1), (Ops.CMPNE, 4), (Ops.CMPEQ, 0)])
def test_predicates_are_the_ones_that_get_nan_right(op: Ops, predicate: int) -> None:
    """LT_OS and EQ_OQ are false on NaN, NEQ_UQ is true (Intel SDM vol. 2, table 3-1 of CMPPD)."""
    x, y = pair(f32)
    compare = next(n for n in selected(store(BYTES, 0, UOp(op, (x, y)))) if n.arg[0] is X86Ops.VCMPSS)
    assert compare.src[-1].const_value == predicate


def test_no_instruction_compares_floats_into_the_flags() -> None:
    assert not [n for n in dir(X86Ops) if "COMIS" in n]
    with pytest.raises(AttributeError, match="no x86 instruction 'VUCOMISS' in the table"):
        _ = X86Ops.VUCOMISS


def test_a_mask_of_another_width_is_widened_before_the_blend() -> None:
    x, y = pair(f32)
    a, b = pair(f64, 2)
    ops = names(store(param(4, f64, 64), 0, (x < y).where(a, b)))
    assert ops.index("VCMPSS") < ops.index("VPMOVSXDQ") < ops.index("VBLENDVPD") and not FLAGS & set(ops)


def test_a_bool_is_the_lowest_bit_of_the_mask() -> None:
    x, y = pair(f32)
    ops = names(store(BYTES, 0, x < y))
    assert ops[-4:] == ["VCMPSS", "VMOVD", "AND", "MOV"]


def test_integer_selection_by_a_float_comparison_tests_the_mask_as_an_integer() -> None:
    x, y = pair(f32)
    a, b = pair(i32, 2)
    ops = names(store(param(4, i32, 64), 0, (x < y).where(a, b)))
    assert ops.index("VCMPSS") < ops.index("VMOVD") < ops.index("TEST") < ops.index("CMOVNE") and "CMP" not in ops


def test_integer_selection_by_an_integer_comparison_uses_the_flags() -> None:
    a, b = pair(i32)
    ops = names(store(param(2, i32, 64), 0, (a < b).where(a, b)))
    assert "CMP" in ops and "CMOVL" in ops and not [o for o in ops if o.startswith("VCMP")]


@pytest.mark.parametrize("left", [True, False])
def test_half_is_compared_in_float32_on_whichever_side(left: bool) -> None:
    h, zero = load(param(0, f16, 64), 0), const(0.0, f16)
    ops = names(store(BYTES, 0, h < zero if left else zero < h))
    assert ops.count("VCVTPH2PS") >= 1 and "VCMPSS" in ops and "VCMPPH" not in ops
    both = names(store(BYTES, 0, h < load(param(1, f16, 64), 0)))
    assert both.count("VCVTPH2PS") == 2


@pytest.mark.parametrize("source,target,instruction", [
    (dtypes.uint32, dtypes.int64, None), (dtypes.uint32, dtypes.uint64, None), (dtypes.int32, dtypes.uint32, None),
    (dtypes.int64, dtypes.uint64, None), (dtypes.int32, dtypes.int64, "MOVSXD"), (dtypes.uint8, dtypes.int32, "MOVZX"),
    (dtypes.uint16, dtypes.int64, "MOVZX"), (dtypes.int16, dtypes.int32, "MOVSX"),
    (dtypes.int8, dtypes.int64, "MOVSX")])
def test_integer_casts(source: DType, target: DType, instruction: str | None) -> None:
    """A register that already holds the value is an alias; zero extension of 32 bits is free."""
    x = load(param(0, source, 64), 0)
    value = UOp(Ops.ADD, (x, x))
    plain = names(store(param(1, source, 64), 0, value))
    ops = names(store(param(1, target, 64), 0, value.cast(target)))
    extra = [o for o in ops if o.startswith("MOV") and o != "MOV"]
    before = [o for o in plain if o.startswith("MOV") and o != "MOV"]
    if instruction is None:
        assert len(ops) == len(plain) and extra == before
    else:
        assert extra == [*before, instruction]


def test_narrow_casts_keep_the_low_bits() -> None:
    x = load(param(0, dtypes.int64, 64), 0)
    ops = names(store(param(1, dtypes.uint8, 64), 0, UOp(Ops.ADD, (x, x)).cast(dtypes.uint8)))
    assert not {"AND", "MOVZX", "SHL"} & set(ops)


def test_a_gated_load_never_reads_where_its_gate_is_false() -> None:
    index = load(param(1, i32, 64), 3)
    gate = load(param(1, i32, 64), 4) < load(param(1, i32, 64), 5)
    value = UOp(Ops.LOAD, (at(param(0, f32, 64), index), const(0.0, f32), gate))
    ops = names(store(param(2, f32, 64), 0, value))
    assert "SKIP_LOAD" in ops and "CMP" in ops  # a branch around the load, so an address out of range is never used


def test_an_instruction_without_a_form_says_what_it_was_given() -> None:
    from tinyhost_cpu.x86 import RAX, XMM, def_reg
    node = UOp(Ops.INS, (def_reg(f32, XMM[0]), def_reg(i32, RAX)), (X86Ops.VADDSS, f32), XMM[0])
    with pytest.raises(ValueError, match=r"(?s)VADDSS.*xmm.*r32"):
        RENDERER.render([node])
