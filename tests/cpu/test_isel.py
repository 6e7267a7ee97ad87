"""What instruction selection chooses for small programs."""

from __future__ import annotations

import pytest
from x86_machine import at, at_level, const, i32, lane, load, loop, param, renderer, scalar, store

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import X86Ops


def isel(*effects: UOp) -> list[UOp]:
    return renderer().isel(linearize(UOp(Ops.SINK, effects)))


def select_value(value: UOp) -> UOp:
    """The instruction of a value without a program around it."""
    return renderer().isel(list(value.toposort()))[-1]


def ops_of(nodes: list[UOp]) -> list[str]:
    return [n.arg[0].name for n in nodes]


A, B = scalar("a", -100, 100, 0), scalar("b", -100, 100, 1)
F = param(0, dtypes.float32, 64)
G = param(1, dtypes.float32, 64)


def test_two_conditional_moves_share_one_comparison() -> None:
    n = select_value((A < B).where(A, B) + A.ne(B).where(A, B))
    assert n.arg[0] is X86Ops.ADD
    less, different = n.src
    assert less.arg[0] is X86Ops.CMOVL and different.arg[0] is X86Ops.CMOVNE
    assert less.src[2] is different.src[2] and less.src[2].arg[0] is X86Ops.CMP


@pytest.mark.parametrize("lanes", [4])
def test_stack_of_floats_is_inserted(lanes: int) -> None:
    scalars = [load(F, i) * load(G, i) for i in range(lanes)]
    assert select_value(UOp(Ops.STACK, tuple(scalars))).arg[0] is X86Ops.VINSERTPS


def test_displacement_is_eight_bits() -> None:
    p = param(0, dtypes.int32, 64)
    nodes = renderer().isel(list(load(p, UOp(Ops.ADD, (A, i32(1)))).toposort()))
    n = nodes[-1]
    assert n.arg[0] is X86Ops.MOV
    assert n.src[2].arg is dtypes.int8 and n.src[2].src[0].arg == 4


def test_single_use_load_is_a_memory_operand() -> None:
    names = ops_of(isel(store(F, 0, load(F, 1) + load(G, 2))))
    assert names.count("VMOVSS") == 2  # one load, one store
    add = next(n for n in isel(store(F, 0, load(F, 1) + load(G, 2))) if n.arg[0] is X86Ops.VADDSS)
    assert len(add.src) == 5


def test_load_used_twice_is_loaded_once() -> None:
    x = load(F, 1)
    nodes = isel(store(G, 0, x + load(G, 1)), store(G, 5, x))
    assert ops_of(nodes).count("VMOVSS") == 3


def test_no_load_moves_over_a_store() -> None:
    x = load(F, 1)
    first = store(F, 1, const(3.0, dtypes.float32))
    after = UOp(Ops.AFTER, (F, first))
    later = store(after, 2, x + load(G, 0))
    names = ops_of(isel(first, later))
    nodes = isel(first, later)
    assert names.index("MOV", 1) >= 0
    load_at = next(i for i, n in enumerate(nodes) if n.arg[0] is X86Ops.VMOVSS and n.arg[1] is dtypes.float32)
    literal_store = next(i for i, n in enumerate(nodes) if n.arg[0] is X86Ops.MOV and n.arg[1] is dtypes.void)
    order = [u for u in linearize(UOp(Ops.SINK, (first, later))) if u.op in (Ops.LOAD, Ops.STORE)]
    assert (load_at < literal_store) == (order.index(x) < order.index(first))


def test_float_comparison_is_a_mask_never_flags(level: str) -> None:
    x, y = load(F, 0), load(G, 0)
    names = ops_of(isel(store(F, 1, (x < y).where(x, const(2.0, dtypes.float32)))))
    assert "VCMPSS" in names and "CMP" not in names and "TEST" not in names
    assert ("VBLENDMPS" if level == "x86-64-v4" else "VBLENDVPS") in names


def test_float_gate_is_tested_as_an_integer(level: str) -> None:
    x, y = load(F, 0), load(G, 0)
    names = ops_of(isel(store(param(2, dtypes.int32, 8), 1, (x < y).where(A, B))))
    if level == "x86-64-v4":
        assert names.index("VCMPSS") < names.index("KORTESTW") < names.index("CMOVNE")
    else:
        assert names.index("VCMPSS") < names.index("VMOVD") < names.index("TEST") < names.index("CMOVNE")


@pytest.mark.parametrize("lanes", [1, 8])
@pytest.mark.parametrize("larger", [False, True])
def test_minimum_and_maximum_are_one_instruction(lanes: int, larger: bool, level: str) -> None:
    x, y = load(F, 0, lanes), load(G, 0, lanes)
    less = UOp(Ops.CMPLT, (x, y))
    names = ops_of(isel(store(F, 32, UOp(Ops.WHERE, (less, y, x) if larger else (less, x, y)), lanes)))
    assert f"V{'MAX' if larger else 'MIN'}{'P' if lanes > 1 else 'S'}S" in names
    assert not any(name.startswith("VCMP") for name in names)


def test_a_comparison_with_other_readers_stays_beside_the_minimum(level: str) -> None:
    x, y = load(F, 0, 8), load(G, 0, 8)
    less = UOp(Ops.CMPLT, (x, y))
    smaller = UOp(Ops.WHERE, (less, x, y))
    names = ops_of(isel(store(F, 32, smaller, 8), store(G, 32, UOp(Ops.WHERE, (less, y + y, x)), 8)))
    assert names.count("VMINPS") == names.count("VCMPPS") == 1


# *** opmask registers ***
def test_masks_of_v4_are_opmasks() -> None:
    with at_level("x86-64-v4"):
        a, b = load(F, 0, 16), load(G, 0, 16)
        either = UOp(Ops.OR, (UOp(Ops.CMPLT, (a, b)), UOp(Ops.CMPNE, (a, const(0.0, dtypes.float32)))))
        nodes = isel(store(F, 16, UOp(Ops.WHERE, (either, b, a)), 16))
    logic = next(n for n in nodes if n.arg[0] is X86Ops.KORW)
    assert [s.arg for s in logic.src] == [(X86Ops.VCMPPS, dtypes.bool, 16)] * 2
    assert ops_of(nodes).count("VBLENDMPS") == 1


def test_a_comparison_is_made_under_the_other_condition() -> None:
    with at_level("x86-64-v4"):
        a, b = load(F, 0, 16), load(G, 0, 16)
        both = UOp(Ops.AND, (UOp(Ops.CMPLT, (a, b)), UOp(Ops.CMPLT, (a, const(0.0, dtypes.float32)))))
        nodes = isel(store(F, 16, UOp(Ops.WHERE, (both, b, a)), 16))
    first, second = (n for n in nodes if n.arg[0] is X86Ops.VCMPPS)
    assert second.src[0] is first and "KANDW" not in ops_of(nodes)


@pytest.mark.parametrize("src,dst,op", [
    (dtypes.float16, dtypes.float32, "VCVTPH2PS"), (dtypes.uint8, dtypes.int32, "VPMOVZXBD"),
    (dtypes.int32, dtypes.float32, "VCVTDQ2PS"), (dtypes.float32, dtypes.float64, "VCVTPS2PD"),
], ids=str)
def test_a_conversion_reads_memory(src, dst, op: str, level: str) -> None:
    lanes = 32 // dst.itemsize
    value = UOp(Ops.CAST, (load(param(2, src, 64), 0, lanes),), dst)
    names = ops_of(isel(store(param(3, dst, 64), 0, value, lanes)))
    assert names[-2] == op and names.count("VMOVUPS") + names.count("VMOVDQU") == 1
    narrow = UOp(Ops.CAST, (load(param(2, src, 64), 0, 2),), dst)  # would read behind two elements
    if dst.itemsize == 4:
        assert len(isel(store(param(3, dst, 64), 0, narrow, 2))) > len(names)


def test_zero_where_a_mask_is_off_costs_no_register() -> None:
    with at_level("x86-64-v4"):
        a, b = load(F, 0, 16), load(G, 0, 16)
        names = ops_of(isel(store(F, 16, UOp(Ops.WHERE, (UOp(Ops.CMPLT, (a, b)), a, const(0.0, dtypes.float32))), 16)))
    assert names[-3:] == ["VCMPPS", "VMOVUPS", "VMOVUPS"] and "ZERO" not in names


@pytest.mark.parametrize("uses", [1, 2])
def test_a_broadcast_scalar_is_memory_for_one_reader(uses: int) -> None:
    """Two readers share one load: the load ports would be the limit."""
    with at_level("x86-64-v4"):
        scalar_load, vector = load(G, 3), load(F, 0, 16) + load(F, 16, 16)
        total = vector
        for _ in range(uses):
            total = UOp(Ops.MULACC, (scalar_load, vector, total))
        nodes = isel(store(G, 16, total, 16))
    names = ops_of(nodes)
    assert names.count("VBROADCASTSS") == uses - 1
    sizes = [s for n in nodes if n.arg[0].name.startswith("VFMADD") for s in n.src if s.tag == "broadcast"]
    assert len(sizes) == 2 - uses


def test_arithmetic_merges_where_a_mask_says() -> None:
    """A sum over what is selected, and a selected sum, are one masked instruction each."""
    with at_level("x86-64-v4"):
        a, b, c = load(F, 0, 16), load(G, 0, 16), load(F, 16, 16)
        less = UOp(Ops.CMPLT, (a, b))
        total = UOp(Ops.WHERE, (less, UOp(Ops.MULACC, (a, b, c)), c))
        product = UOp(Ops.WHERE, (less, const(0.0, dtypes.float32), a * b))
        nodes = isel(store(F, 32, total, 16), store(G, 32, product, 16))
    fma = next(n for n in nodes if n.arg[0] is X86Ops.VFMADD231PS)
    assert fma.src[1].arg == (X86Ops.VCMPPS, dtypes.bool, 16)
    times = next(n for n in nodes if n.arg[0] is X86Ops.VMULPS)
    assert times.src[0].arg[0] is X86Ops.ZEROING and "KNOTW" in ops_of(nodes)
    assert not any("BLEND" in name for name in ops_of(nodes))


def test_a_shuffle_merges_where_a_mask_says() -> None:
    order = UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i ^ 4) for i in range(16)))
    mask = UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), bool(i & 4)) for i in range(16)))
    with at_level("x86-64-v4"):
        a, b = load(F, 0, 16), load(G, 0, 16)
        names = ops_of(isel(store(F, 32, UOp(Ops.WHERE, (mask, UOp(Ops.INDEX, (b, order)), a)), 16)))
    assert names[-2:] == ["VSHUFF32X4", "VMOVUPS"] and names.count("VMOVUPS") == 3


def test_multiply_accumulate_takes_memory() -> None:
    value = UOp(Ops.MULACC, (load(F, 0, 8), load(G, 0, 8), load(F, 8, 8)))
    nodes = isel(store(F, 16, value, 8))
    fma = next(n for n in nodes if n.arg[0].name.startswith("VFMADD"))
    assert len(fma.src) == 6


def test_scalar_beside_vector_is_broadcast_from_memory() -> None:
    nodes = isel(store(F, 16, load(F, 0, 8) * load(G, 3), 8))
    broadcast = next(n for n in nodes if n.arg[0] is X86Ops.VBROADCASTSS)
    assert len(broadcast.src) == 4 and broadcast.arg == (X86Ops.VBROADCASTSS, dtypes.float32, 8)
    assert broadcast.shape == (8,)


def test_low_lane_costs_nothing() -> None:
    v = load(F, 0, 8) + load(G, 0, 8)
    assert set(ops_of(isel(store(F, 16, lane(v, 0))))) == {"ARG", "VMOVUPS", "VADDPS", "VMOVSS"}


def test_inner_loop_holds_no_index_arithmetic() -> None:
    """a[row * 64 + k]: the row is added to the pointer outside of the loop over k."""
    a, row, k = param(0, dtypes.float32, 4096), loop(64, 0), loop(64, 1, AxisType.REDUCE)
    row_base = UOp(Ops.MUL, (row, i32(64)))
    body = store(
        a,
        UOp(Ops.ADD, (row_base, k)),
        load(a, UOp(Ops.ADD, (UOp(Ops.ADD, (row_base, k)), i32(1)))) + const(1.0, dtypes.float32),
    )
    nodes = isel(UOp(Ops.END, (UOp(Ops.END, (body, k)), row)))
    names = ops_of(nodes)
    inner = names[max(i for i, n in enumerate(names) if n == "LABEL") :]
    inner = inner[: inner.index("JL") + 1]
    assert inner == ["LABEL", "VADDSS", "VMOVSS", "ADD", "CMP", "JL"]


def test_loop_with_known_bound_has_no_guard() -> None:
    r = loop(8, 0)
    names = ops_of(isel(UOp(Ops.END, (store(F, r, const(0.0, dtypes.float32)), r))))
    assert names.count("CMP") == 1 and "JGE" not in names
    r = loop(scalar("n", 0, 8, 2), 0)
    names = ops_of(isel(UOp(Ops.END, (store(F, r, const(0.0, dtypes.float32)), r))))
    assert names.count("CMP") == 1 and names.index("TEST") + 1 == names.index("JLE")


def test_unselectable_op_is_an_error() -> None:
    with pytest.raises(CompileError, match="no instructions for Ops.SIN"):
        isel(store(F, 0, UOp(Ops.SIN, (load(G, 0),))))


def test_place_at_is_an_index() -> None:
    assert at(F, 3).op is Ops.INDEX and at(F, 3, 4).shape == (4,)
