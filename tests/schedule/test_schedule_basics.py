"""Scheduling of values: movement, padding, gathers, reductions, sharing; numbers checked against evaluation."""
from __future__ import annotations

import pytest
from schedule.helpers import assign, check, count, kernels, loads, output, param, schedule

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import dtypes
from tinyhost.uop import Ops, UOp

GRID = Capabilities(grid=True)  # kernels over the same rows stay apart


# *** values ***
def test_elementwise_chain_is_one_kernel() -> None:
    a, b = param(0, (4, 5)), param(1, (5,))
    linear = check(output(2, ((a + b) * 2).maximum(a) - b))
    assert count(linear) == 1
    (ast,) = kernels(linear)
    assert ast.src[0].op is Ops.END and ast.src[0].src[0].op is Ops.STORE
    assert [r.arg[0] for r in ast.src[0].src[1:]] == [0, 1]


@pytest.mark.parametrize("view", [
    lambda x: x.permute((1, 0)), lambda x: x.reshape((3, 8)), lambda x: x.reshape((2, 2, 6)), lambda x: x.flip(0),
    lambda x: x.flip((0, 1)), lambda x: x.shrink(((1, 3), (2, 5))), lambda x: x.reshape((4, 1, 6)).expand((4, 3, 6)),
    lambda x: x.permute((1, 0)).reshape((4, 6)), lambda x: x.reshape((24,)).shrink(((3, 21),)).reshape((3, 6)),
    lambda x: x.reshape((1, 24, 1)), lambda x: x.permute((1, 0)).reshape((3, 8)).permute((1, 0)).reshape((24,))])
def test_movement_is_index_arithmetic(view) -> None:
    linear = check(output(1, view(param(0, (4, 6)))))
    assert count(linear) == 1 and loads(kernels(linear)[0]) == 1


def test_scalar_output() -> None:
    linear = check(output(1, param(0, ()) + 1))
    assert kernels(linear)[0].src[0].op is Ops.STORE


def test_pad_gates_the_index() -> None:
    a = param(0, (3, 4))
    inner = a._pad_box(((1, 2), (2, 0)))
    mask = UOp.const(True).reshape((1, 1)).expand((3, 4))._pad_box(((1, 2), (2, 0)))
    linear = check(output(1, mask.where(inner, 5.0)))
    (ast,) = kernels(linear)
    reads = [u for u in ast.toposort() if u.op is Ops.INDEX and u.src[1]._gated]
    assert len(reads) == 1


def test_pad_of_computed_value() -> None:
    a = param(0, (3, 4))
    x = (a + 3).exp2()
    mask = UOp.const(True).reshape((1, 1)).expand((3, 4))._pad_box(((1, 2), (2, 0)))
    check(output(1, mask.where(x._pad_box(((1, 2), (2, 0))), 5.0)))


def test_iota_is_the_index() -> None:
    linear = check(output(1, UOp.arange(10).reshape((2, 5)).permute((1, 0)) + param(0, (5, 2), dtypes.int32)))
    assert count(linear) == 1 and loads(kernels(linear)[0]) == 1


def test_stack() -> None:
    a, b, c = param(0, (3,)), param(1, (3,)), param(2, (3,))
    check(output(3, UOp(Ops.STACK, (a, b + 1, c))))
    check(output(3, UOp(Ops.STACK, (a, b + 1, c)).shrink(((1, 2), (0, 3))).reshape((3,))))


def test_gather() -> None:
    table, i = param(0, (7, 3)), param(1, (4,), dtypes.int32)
    linear = check(output(2, table.index(i)), output(3, (table * 2).index(i)))
    assert count(linear) == 2


def test_gather_of_a_reduction_stores_it() -> None:
    table, i = param(0, (7, 3, 5)).sum(2), param(1, (2, 2), dtypes.uint8)
    assert count(check(output(2, table.index(i)))) == 2


@pytest.mark.parametrize("shape,old,new", [
    ((6,), dtypes.float32, dtypes.int32), ((6,), dtypes.float32, dtypes.uint8), ((2, 8), dtypes.uint8, dtypes.float32),
    ((2, 8), dtypes.int16, dtypes.int64), ((3, 2), dtypes.float64, dtypes.float32)])
def test_bitcast(shape, old, new) -> None:
    x = param(0, shape, old)
    check(output(1, (x + x).bitcast(new)))


# *** reductions ***
def test_reduce_with_prologue_and_epilogue_is_one_kernel() -> None:
    a = param(0, (4, 6))
    linear = check(output(1, (a * 2 + 1).sum(1) * 3 - a.shrink(((0, 4), (0, 1))).reshape((4,))))
    assert count(linear) == 1


def test_max_and_prod() -> None:
    a = param(0, (2, 3, 4))
    check(output(1, a.max((0, 2))), output(2, a.prod(1)), output(3, a.sum()))


def test_matmul_is_one_kernel() -> None:
    a, b = param(0, (3, 4)), param(1, (4, 5))
    linear = check(output(2, (a.reshape((3, 4, 1)) * b.reshape((1, 4, 5))).sum(1)))
    (ast,) = kernels(linear)
    assert loads(ast) == 2 and sum(u.op is Ops.REDUCE for u in ast.toposort()) == 1


def test_conv_is_one_kernel() -> None:
    x, w = param(0, (2, 3, 8, 8)), param(1, (4, 3, 3, 3))
    pads = ((0, 0), (0, 0), (1, 1), (1, 1))
    mask = UOp.const(True).reshape((1,) * 4).expand((2, 3, 8, 8))._pad_box(pads)
    p = mask.where(x._pad_box(pads), 0.0)._pool((3, 3), 1)  # 2 3 8 8 3 3
    y = (p.reshape((2, 1, 3, 8, 8, 3, 3)) * w.reshape((1, 4, 3, 1, 1, 3, 3))).sum((2, 5, 6))
    linear = check(output(2, y))
    (ast,) = kernels(linear)
    assert loads(ast) == 2
    assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for u in ast.toposort())


@pytest.mark.parametrize("stride,dilation", [(1, 1), (2, 1), (1, 2), (2, 2), (3, 1)])
def test_pool_indices_need_no_division(stride: int, dilation: int) -> None:
    x = param(0, (2, 11, 13))
    linear = check(output(1, x._pool((3, 2), stride, dilation).max((3, 4))))
    (ast,) = kernels(linear)
    assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for u in ast.toposort())


def test_softmax_is_one_kernel_on_host_threads() -> None:
    a = param(0, (5, 7))
    e = (a - a.max(1, keepdim=True)).exp2()
    effect = output(1, e * e.sum(1, keepdim=True).reciprocal())
    assert count(check(effect, exact=False)) == 1
    assert count(check(effect, exact=False, caps=GRID)) == 3


def test_sibling_reductions_share_their_ranges() -> None:
    a = param(0, (4, 6))
    linear = check(output(1, a.sum(1) + (a * a).sum(1)))
    (ast,) = kernels(linear)
    assert sum(u.op is Ops.RANGE for u in ast.toposort()) == 2


def test_reduce_of_reduce_is_two_kernels() -> None:
    assert count(check(output(1, param(0, (4, 5, 6)).max(2).sum(1)))) == 2


def test_long_reduction_in_two_stages() -> None:
    a = param(0, (1 << 16,), dtypes.int32)
    assert count(check(output(1, a.sum()), caps=Capabilities(grid=True))) == 2
    assert count(check(output(1, a.sum()), caps=Capabilities(threads=2))) == 2
    assert count(check(output(1, a.sum()), caps=Capabilities(threads=1))) == 1


# *** sharing ***
def test_cheap_value_is_recomputed() -> None:
    a, b = param(0, (4, 4)), param(1, (4, 4))
    x = a + b
    linear = check(output(2, x * 2), output(3, x.permute((1, 0)) * 3))
    assert count(linear) == 2


def test_value_of_many_buffers_is_stored() -> None:
    ps = [param(i, (4, 4)) for i in range(5)]
    x = ps[0] + ps[1] + ps[2] + ps[3] + ps[4]
    assert count(check(output(5, x * 2), output(6, x * 3), caps=GRID)) == 3
    assert count(check(output(5, x * 2), output(6, x * 3))) == 2


def test_reduction_is_never_computed_twice() -> None:
    a = param(0, (4, 5))
    x = a.sum(1)
    assert count(check(output(1, x * 2), output(2, x * 3), caps=GRID)) == 3
    (ast,) = kernels(check(output(1, x * 2), output(2, x * 3)))
    assert sum(u.op is Ops.REDUCE for u in ast.toposort()) == 1


def test_epilogue_stays_with_the_shared_reduction() -> None:
    a = param(0, (4, 5))
    x = a.sum(1) + 1
    linear = check(output(1, x * 2), output(2, x * 3), caps=GRID)
    assert count(linear) == 3
    assert any(u.op is Ops.ADD and u.src[0].op is Ops.REDUCE for u in kernels(linear)[0].toposort())


def test_output_is_read_by_others_instead_of_a_temporary() -> None:
    a = param(0, (4, 5))
    x = a.sum(1) + 1
    linear = check(output(1, x), output(2, x * 3), caps=GRID)
    assert count(linear) == 2 and not any(u.op is Ops.BUFFER for u in linear.toposort())


def test_output_that_is_overwritten_later_is_no_home() -> None:
    a, out = param(0, (4, 3)), param(1, (4,))
    x = a.sum(1) * -3.0
    first = assign(out, x)
    second = assign(first, first + 4.0)
    check(output(2, second * -2.0 + x), second)


def test_relu_is_fused_into_the_next_reduction() -> None:
    x, w, v = param(0, (4, 8)), param(1, (8, 8)), param(2, (8, 3))
    h = (x.reshape((4, 8, 1)) * w).sum(1).maximum(0.0)
    linear = check(output(3, (h.reshape((4, 8, 1)) * v).sum(1)))
    assert count(linear) == 2


def test_dear_operand_of_a_contraction_is_stored() -> None:
    x, w = param(0, (64, 64)), param(1, (64, 64))
    y = (x.exp2().reshape((64, 64, 1)) * w).sum(1)
    assert count(check(output(2, y), exact=False)) == 2


def test_a_kernel_has_one_large_contraction() -> None:
    a, b, c, d = (param(i, (192, 192)) for i in range(4))
    product = lambda x, y: (x.reshape((192, 192, 1)) * y).sum(1)
    linear = schedule(output(4, product(a, b) + product(c, d) + product(b, c)))
    assert [sum(u.op is Ops.REDUCE for u in k.toposort()) for k in kernels(linear)] == [1, 1, 1]
    small = [x.shrink(((0, 8), (0, 8))) for x in (a, b)]
    assert count(schedule(output(4, sum((x.reshape((8, 8, 1)) * y).sum(1) for x in small for y in small)))) == 1


def test_operands_that_vectors_share_are_computed_before() -> None:
    x, w = param(0, (96, 64)), param(1, (64, 128))
    rows = (x.maximum(0.0).reshape((96, 64, 1)) * w).sum(1)
    columns = (x.reshape((96, 64, 1)) * w.maximum(0.0)).sum(1)
    assert count(schedule(output(2, rows))) == 2
    assert count(schedule(output(2, columns))) == 1


def test_a_table_of_comparisons_is_not_stored() -> None:
    index, rows = param(0, (512,), dtypes.int32), param(1, (512, 32))
    number = UOp.arange(256).reshape((256, 1, 1)).cast(dtypes.int32)
    hit = index.reshape((1, 512, 1)).maximum(0).eq(number)
    linear = schedule(output(2, hit.where(rows.reshape((1, 512, 32)), 0.0).sum(1)))
    assert not any(u.op is Ops.BUFFER and u.dtype is dtypes.bool for u in linear.toposort())


def test_equal_kernels_are_one_node() -> None:
    a, b, c = param(0, (4, 4)), param(1, (4, 4)), param(2, (4, 4))
    linear = check(output(3, a + b), output(4, b + c))
    first, second = kernels(linear)
    assert first is second
