"""Reductions over what an index picks: one pass in place, equal to the comparison of every pair."""
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer, run
from tinyhost.codegen import linear_program, optimised
from tinyhost.codegen.scatters import scatter_sums
from tinyhost.dtype import dtypes
from tinyhost.errors import KernelOptError
from tinyhost.ops import Ops
from tinyhost.uop import Opt, UOp
from tinyhost.uop import OptOps as O


def picked(rows, inner, n, op=Ops.ADD, own=False, dtype=dtypes.float32, index=dtypes.int32, opts=None, swap=False):
    """out[i, k] = op over j of (idx[j] == i ? x[j, k] : neutral), combined with own[i, k]."""
    o, idx, x, y = K.buf(0, rows * inner, dtype), K.buf(1, n, index), K.buf(2, n * inner, dtype), \
        K.buf(3, rows * inner, dtype)
    i, k, j = K.out(0, rows), K.out(1, inner), K.red(2, n)
    neutral = UOp.const({Ops.ADD: 0, Ops.MUL: 1, Ops.MAX: dtype.min}[op], dtype)
    other = UOp(Ops.CMPNE, (idx.index(j), i.cast(index)))
    value = other.where(neutral, x.index(j * inner + k))
    if swap:
        value = UOp(Ops.CMPNE, (other, UOp.const(True))).where(x.index(j * inner + k), neutral)
    total = value.reduce(j, arg=op)
    at = i * inner + k
    stored = UOp(op, (total, y.index(at))) if own else total
    numbers = np.random.default_rng(5).integers(-2, rows + 2, n).astype(K.carrier_np(index))
    bufs = [K.zeros(rows * inner, dtype), numbers, K.data(n * inner, dtype, 1), K.data(rows * inner, dtype, 2)]
    return K.kernel(o.index(at).store(stored).end(i, k), opts=opts), bufs


def program(case, **caps):
    r = renderer("x86-64-v4")
    r.caps = replace(r.caps, **{"threads": 1, **caps})
    sink = optimised(case[0], r)
    return sink, linear_program(sink, r)


def reads(uops, slot):
    """Times a program loads from an argument, loops counted."""
    open_loops, total = [], 0
    for u in uops:
        if u.op is Ops.RANGE:
            open_loops.append(int(u.src[0].const_value))
        elif u.op is Ops.END:
            open_loops.pop()
        elif u.op is Ops.LOAD and u.src[0].src[0].op is Ops.PARAM and u.src[0].src[0].arg.slot == slot:
            total += int(np.prod(open_loops or [1]))
    return total


def test_each_index_is_read_once():
    _, uops = program(picked(100, 64, 300))
    assert reads(uops, 1) == 300
    assert not [u for u in uops if u.op is Ops.CMPNE]


def test_rows_are_added_as_vectors():
    sink, uops = program(picked(100, 64, 300))
    assert [o.op for o in sink.arg.applied_opts].count(O.LANE) == 2  # setting and adding
    assert {u.shape for u in uops if u.op is Ops.ADD and u.dtype is dtypes.float32} == {(16,)}


def test_few_outputs_are_compared_with_every_index():
    for rows, inner in ((4, 64), (64, 1)):
        sink, _ = program(picked(rows, inner, 300))
        assert any(u.op is Ops.REDUCE for u in sink.toposort())


def test_more_threads_compare_more_pairs_at_a_time():
    assert not any(u.op is Ops.REDUCE for u in program(picked(32, 16, 300))[0].toposort())
    assert any(u.op is Ops.REDUCE for u in program(picked(32, 16, 300), threads=8)[0].toposort())


def test_a_grid_keeps_the_sum():
    sink = picked(100, 64, 300)[0]
    assert scatter_sums(sink, replace(renderer().caps, grid=True)) is sink


@pytest.mark.parametrize("opt", [Opt(O.UPCAST, 2, 2), Opt(O.LANE, 2, 4), Opt(O.THREAD, 2, 2), Opt(O.PADTO, 2, 7)],
                         ids=lambda o: o.op.name)
def test_no_action_cuts_the_loop_in_order(opt):
    r = renderer("x86-64-v4")
    r.caps = replace(r.caps, threads=4)
    axes = optimised(picked(100, 64, 300, opts=())[0], r).arg.axis_types
    assert len(axes) == 3 or len(axes) == 4  # outputs set (perhaps one merged loop), indices, inner
    case = picked(100, 64, 300, opts=(replace(opt, axis=len(axes) - 2),))
    with pytest.raises(KernelOptError, match="known length|symbolic length"):
        optimised(case[0], r)


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4", "PYTHON:x86-64-v4", "PYTHON:x86-64-v3"])
@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MUL, Ops.MAX], ids=str)
def test_values(op, own, level):
    check(*picked(120, 16, 90, op, own), level=level)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.float64], ids=str)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX], ids=str)
def test_values_of_each_dtype(dtype, op):
    check(*picked(300, 4, 90, op, True, dtype, dtypes.int64), level="PYTHON:x86-64-v4")
    check(*picked(300, 1, 90, op, False, dtype, swap=True))


def test_a_sum_of_nothing_clears_the_sign_of_zero():
    case = picked(200, 16, 8, own=True)
    case[1][3][:] = -0.0
    case[1][1][:] = 5
    for got in (run(case[0], case[1])[0][0], run(*picked(200, 16, 8, own=True, opts=()))[0][0][:0]):
        assert not np.signbit(got.reshape(-1, 16)[np.arange(got.size // 16) != 5]).any()


def test_what_is_summed_may_depend_on_the_output():
    """x[j, i] where idx[j] is i: read at the index."""
    rows, n = 400, 60
    o, idx, x = K.buf(0, rows), K.buf(1, n, dtypes.int32), K.buf(2, n * rows)
    i, j = K.out(0, rows), K.red(1, n)
    value = UOp(Ops.CMPNE, (idx.index(j), i.cast(dtypes.int32))).where(UOp.const(0, dtypes.float32),
                                                                      x.index(j * rows + i))
    numbers = np.random.default_rng(5).integers(-2, rows + 2, n).astype(np.int32)
    case = K.kernel(o.index(i).store(value.reduce(j, arg=Ops.ADD)).end(i)), [K.zeros(rows), numbers, K.data(n * rows)]
    _, uops = program(case)
    assert reads(uops, 2) == n
    for level in ("PYTHON:x86-64-v4", "x86-64-v3"):
        check(*case, level=level)
