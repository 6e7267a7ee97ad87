"""Constructors of nodes: integer algebra, lanes, matrix units, shards."""
from __future__ import annotations

import pytest

from tinyhost.dtype import dtypes
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import BufferizeOpts, PatternMatcher, UOp, UPat
from tinyhost.uop.spec import spec_hcq, spec_tensor, type_verify

A, B, C = (UOp.variable(n, 0, 100) for n in "abc")
F32 = dtypes.float32


# *** integers ***
@pytest.mark.parametrize("u,v,want", [
    (A * 6, UOp.const(3), A * 2), (A * 6, A, UOp.const(6)), (A * B * 6, B * 2, A * 3), (A, A, UOp.const(1)),
    (A * 6 + B * 3, UOp.const(3), A * 2 + B), (A * B + A * 4, A, B + 4), (A * B + C, A, None),
    (A * 3, UOp.const(2), None), (A * 3, B, None), (A * A * B, A * B, A),
    (UOp.const(12), UOp.const(4), UOp.const(3)), (A * 3, A * 2, None)])
def test_divide_exact(u: UOp, v: UOp, want: UOp | None) -> None:
    assert u.divide_exact(v) is want


@pytest.mark.parametrize("us,want", [
    ((A * 6, A * 4), A * 2), ((A * B * 6, B * C * 9), B * 3), ((A, B), UOp.const(1)),
    ((A * 6, UOp.const(4)), UOp.const(2)), ((A * 6 + B * 4, UOp.const(8)), UOp.const(2)),
    ((A * B + A * 4, A * 2), A), ((A * 5,), A * 5)])
def test_gcd(us: tuple[UOp, ...], want: UOp) -> None:
    assert UOp.gcd(*us) is want


def test_overflows() -> None:
    assert (A * 3).overflows(dtypes.int8) and not A.overflows(dtypes.int8) and (A - 1).overflows(dtypes.uint8)


def test_value_of_a_bound_variable() -> None:
    assert A.bind(7).val == 7
    with pytest.raises(ValueError, match="it is not a bound variable"):
        _ = A.val


# *** lanes ***
def test_contract_runs_over_all_indices() -> None:
    r, s = UOp.range(2, 0, AxisType.UPCAST), UOp.range(3, 1, AxisType.UPCAST)
    x = UOp.param(0, F32, 6)
    lanes = x.index(r * 3 + s).contract(r, s)
    assert lanes.op is Ops.STACK and lanes.shape == (6,)
    assert [lane.src[1].simplify().arg for lane in lanes.src] == list(range(6))


def test_broadcast() -> None:
    x = UOp.param(0, F32)
    assert x.broadcast(1) is x and x.broadcast(3) is UOp(Ops.STACK, (x, x, x))
    pm = PatternMatcher([(UPat(Ops.PARAM, name="x").broadcast(), lambda x: x)])
    assert pm.rewrite(x.broadcast(3)) is x and pm.rewrite(UOp(Ops.STACK, (x, UOp.param(1, F32)))) is None


def test_matrix_unit_takes_its_input_type_from_the_first_operand() -> None:
    a, acc = UOp.param(0, dtypes.float16, 8), UOp.param(1, F32, 8)
    u = UOp.wmma(a, a, acc, (8, 8, 16), "GPU", 32)
    assert u.arg == ((8, 8, 16), dtypes.float16, "GPU", 32, None) and u.dtype is F32
    type_verify([u], spec_tensor)


def test_custom_function() -> None:
    u = UOp.custom_function("graph", UOp(Ops.LINEAR))
    assert u is UOp(Ops.CUSTOM_FUNCTION, (UOp(Ops.LINEAR),), "graph")
    assert u.call(UOp.param(0, F32, 4)).op is Ops.CALL


# *** shards ***
SHARD = UOp.param(0, F32, (4, 6), ("A:0", "A:1"))
WHOLE = SHARD.unshard(0)


def test_unshard_puts_shards_side_by_side() -> None:
    assert WHOLE.shape == (8, 6) and WHOLE.axis == 0 and WHOLE.arg == (0,)
    assert WHOLE.src[1] is UOp.range(2, -1, AxisType.DEVICE) and not WHOLE.ranges
    assert WHOLE.shard_shape == WHOLE.max_shard_shape == (4, 6) and SHARD.shard_shape == (4, 6)
    assert SHARD.unshard(None) is SHARD and WHOLE.unsharded_base is SHARD.base
    type_verify([WHOLE], spec_tensor)


def test_the_axis_follows_the_value() -> None:
    assert WHOLE.permute((1, 0)).axis == 1 and (WHOLE + 1.0).axis == 0 and WHOLE.sum(1).axis == 0
    assert WHOLE.reshape((8, 2, 3)).axis == 0 and WHOLE.shrink(((0, 4), (0, 6))).axis is None


def test_several_axes_are_sorted() -> None:
    r, s = UOp.range(2, -1, AxisType.DEVICE), UOp.range(3, -2, AxisType.DEVICE)
    u = UOp.param(0, F32, (4, 6), ("A", "B")).unshard((1, 0), (r, s))
    assert u.arg == (0, 1) and u.src[1:] == (s, r) and u.shape == (12, 12)
    with pytest.raises(ValueError, match=r"one range for each axis, got axes \(0, 1\) and 1 ranges"):
        SHARD.unshard((0, 1))


def test_param_like_of_a_sharded_value() -> None:
    p = WHOLE.param_like(3)
    assert p.op is Ops.UNSHARD and p.shape == (8, 6) and p.axis == 0 and p.base.src[0].base.arg.size == 24
    assert UOp.param(3, F32, 24, ("A:0", "A:1")).view_as((4, 6), 0) is p


def test_lanes_of_several_devices() -> None:
    one = SHARD.mselect(1)
    assert one.device == "A:1" and one.shape == (4, 6)
    assert one.mstack(one).device == ("A:1", "A:1")
    total = SHARD.allreduce(Ops.ADD, "A:0")
    assert total.device == "A:0" and total.shape == (4, 6)
    type_verify([one, total], spec_tensor)
    with pytest.raises(RuntimeError, match="allreduce needs a value on several devices, this one is on A:1"):
        one.allreduce(Ops.ADD, "A:0")
    with pytest.raises(RuntimeError, match="unshard needs a value on several devices"):
        one.unshard(0)


def test_addresses() -> None:
    b = UOp.new_buffer("A:0", 4, F32, 0)
    assert b.getaddr().arg == "A:0" and b.getaddr("B").arg == "B" and b.getaddr().dtype is dtypes.uint64
    type_verify([b.getaddr()], spec_hcq)


def test_a_reshape_keeps_items_on_their_device() -> None:
    with pytest.raises(RuntimeError, match=r"reshape \(8, 6\) -> \(3, 16\) moved items between shards of axis 0"):
        _ = WHOLE.reshape((3, 16)).axis


def test_the_axis_of_a_deep_value() -> None:
    u = WHOLE
    for _ in range(20_000):
        u = UOp(Ops.ADD, (u, u))
    assert u.axis == 0


# *** small questions ***
def test_walks_below_a_node() -> None:
    u = (A + B) * 2
    assert list(u.backward_slice_with_self)[0] is u and list(u.backward_slice)[-2] is A + B
    assert u not in u.backward_slice and u.op_in_backward_slice_with_self(Ops.ADD)
    assert not u.op_in_backward_slice_with_self(Ops.SIN)
    depth: dict[UOp, int] = {A: 10}
    assert u.topovisit(lambda x: 1 + max((depth[s] for s in x.src), default=0), depth) == 12 and depth[B] == 1


def test_literals_of_a_shape() -> None:
    v = UOp(Ops.STACK, (UOp.param(0, F32), UOp.param(1, F32)))
    assert v.vconst_like(3) is UOp(Ops.STACK, (UOp.const(3.0, F32),) * 2)
    assert v.const_like(3).shape == (2,) and UOp.param(0, F32).vconst_like(3) is UOp.const(3.0, F32)
    assert (A + 3).pop_const() == (A, 3) and A.pop_const() == (A, 0) and (A * 3).pop_const(Ops.MUL) == (A, 3)
    assert UOp.shape_operand((2, A)).as_shape == (2, A) and UOp.shape_operand((2,)).as_shape == (2,)


def test_ended_ranges() -> None:
    r = UOp.range(4, 0)
    store = UOp.param(0, F32, 4).index(r).store(1.0)
    ended = store.end(r)
    state = UOp.param(0, F32, 4).after(ended)
    assert store.ended_ranges == () and ended.ended_ranges == (r,) and state.ended_ranges == (r,)
    assert UOp.param(1, F32, 4).after(state).ended_ranges == (r,)


def test_bufferize() -> None:
    r = UOp.range(4, 0)
    stage = UOp.param(0, F32, 4).index(r).bufferize(r, arg=BufferizeOpts(device="A"))
    assert stage.op is Ops.STAGE and stage.shape == (4,) and stage.device == "A" and not stage.ranges
