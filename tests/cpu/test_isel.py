"""What instruction selection chooses for small programs."""

from __future__ import annotations

import pytest
from x86_machine import RENDERER, at, const, i32, lane, load, loop, param, scalar, store

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import dtypes
from tinyhost.errors import CompileError
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import UOp
from tinyhost_cpu.x86 import X86Ops


def isel(*effects: UOp) -> list[UOp]:
    return RENDERER.isel(linearize(UOp(Ops.SINK, effects)))


def select_value(value: UOp) -> UOp:
    """The instruction of a value without a program around it."""
    return RENDERER.isel(list(value.toposort()))[-1]


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
    nodes = RENDERER.isel(list(load(p, UOp(Ops.ADD, (A, i32(1)))).toposort()))
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


def test_float_comparison_is_a_mask_never_flags() -> None:
    x, y = load(F, 0), load(G, 0)
    names = ops_of(isel(store(F, 1, (x < y).where(x, y))))
    assert "VCMPSS" in names and "VBLENDVPS" in names and "CMP" not in names and "TEST" not in names


def test_float_gate_is_tested_as_an_integer() -> None:
    x, y = load(F, 0), load(G, 0)
    names = ops_of(isel(store(param(2, dtypes.int32, 8), 1, (x < y).where(A, B))))
    assert names.index("VCMPSS") < names.index("VMOVD") < names.index("TEST") < names.index("CMOVNE")


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
    assert names.count("CMP") == 2 and "JGE" in names


def test_unselectable_op_is_an_error() -> None:
    with pytest.raises(CompileError, match="no instructions for Ops.SIN"):
        isel(store(F, 0, UOp(Ops.SIN, (load(G, 0),))))


def test_place_at_is_an_index() -> None:
    assert at(F, 3).op is Ops.INDEX and at(F, 3, 4).shape == (4,)
