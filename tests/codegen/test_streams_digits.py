"""Output loops that are read by quotient and remainder are two loops, and short windows are written out whole."""
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer
from tinyhost.codegen import linear_program, optimised
from tinyhost.codegen.digits import split_digits
from tinyhost.ops import Ops
from tinyhost.uop import OptOps as O
from tinyhost.uop import UOp


def program(case):
    r = renderer("x86-64-v4")
    r.caps = replace(r.caps, threads=1)
    sink = optimised(case[0], r)
    return sink.arg.applied_opts, linear_program(sink, r)


def read_at(n, size, index):
    """o[r] = x[index(r)]."""
    o, x, r = K.buf(0, n), K.buf(1, size), K.out(0, n)
    return K.kernel(o.index(r).store(x.index(index(r))).end(r)), [K.zeros(n), K.data(size, seed=1)]


def div(r, m):
    return UOp(Ops.FLOORDIV, (r, UOp.const(m)))


def mod(r, m):
    return UOp(Ops.FLOORMOD, (r, UOp.const(m)))


CASES = {
    "tile": (read_at(1024, 64, lambda r: mod(r, 64)), lambda x: np.tile(x, 16)),
    "repeat": (read_at(1024, 256, lambda r: div(r, 4)), lambda x: np.repeat(x, 4)),
    "both": (read_at(960, 240, lambda r: div(r, 240) * 60 + mod(div(r, 4), 60)),
             lambda x: np.repeat(x.reshape(4, 60), 4, axis=1).ravel()),
    "odd": (read_at(1000, 200, lambda r: div(r, 5)), lambda x: np.repeat(x, 5)),
    "swapped": (read_at(600, 600, lambda r: mod(r, 20) * 30 + div(r, 20)), lambda x: x.reshape(20, 30).T.ravel()),
}


@pytest.mark.parametrize("name", CASES)
def test_no_division_is_left_and_values_hold(name):
    case, want = CASES[name]
    sink = split_digits(case[0])
    assert not [u for u in sink.toposort() if u.op in (Ops.FLOORDIV, Ops.FLOORMOD)]
    _, uops = program(case)
    assert not [u for u in uops if u.op in (Ops.CDIV, Ops.CMOD, Ops.SHR, Ops.AND) and u.dtype.is_int]
    got = check(*case, level="PYTHON:x86-64-v4")
    assert got is not None
    np.testing.assert_array_equal(_run(case), want(case[1][1]))


def _run(case):
    from tests.codegen.reference import run
    return run(*case)[0][0]


def test_divisors_that_do_not_divide_stay():
    sink = read_at(1000, 400, lambda r: div(r, 3))[0]
    assert split_digits(sink) is sink


def test_sums_keep_their_range():
    o, x, k = K.buf(0, 1), K.buf(1, 64), K.red(0, 256)
    sink = K.kernel(o.index(UOp.const(0)).store(x.index(div(k, 4)).reduce(k, arg=Ops.ADD)).end())
    assert split_digits(sink) is sink


def scan(blocks, block, columns):
    """Running sums inside blocks of rows."""
    rows = blocks * block
    o, x = K.buf(0, rows * columns), K.buf(1, rows * columns)
    r, c, k = K.out(0, rows), K.out(1, columns), K.red(2, block)
    i = mod(r, block)
    inside = UOp.const(block - 2) < i + k
    at = (div(r, block) * block + i + k - (block - 1)) * columns + c
    value = inside.where(x.index(at.valid(inside)), 0.0).reduce(k, arg=Ops.ADD)
    return K.kernel(o.index(r * columns + c).store(value).end(r, c)), [
        K.zeros(rows * columns), K.data(rows * columns, seed=1)]


def test_a_window_is_written_out_whole():
    case = scan(8, 16, 64)
    opts, uops = program(case)
    assert [o.op for o in opts if o.op in (O.LANE, O.UPCAST, O.UNROLL)] == [O.LANE, O.UPCAST, O.UNROLL]
    loads = [u for u in uops if u.op is Ops.LOAD]
    stores = [u for u in uops if u.op is Ops.STORE]
    assert len(loads) == len(stores) == 16 and all(u.shape == (16,) and len(u.src) == 1 for u in loads)
    check(*case, level="PYTHON:x86-64-v4")
    want = case[1][1].reshape(8, 16, 64).cumsum(1, dtype=np.float64).ravel()
    np.testing.assert_allclose(_run(case), want, rtol=1e-5, atol=1e-5)


# *** indices that wrap, and backwards ***
@pytest.mark.parametrize("shift", [1, 5, 63, 100])
@pytest.mark.parametrize("n", [128, 130])
def test_a_roll_is_two_contiguous_loads(n, shift):
    o, x, i, j = K.buf(0, 8 * n), K.buf(1, 8 * n), K.out(0, 8), K.out(1, n)
    sink = K.kernel(o.index(i * n + j).store(x.index(i * n + mod(j + (n - shift % n), n))).end(i, j))
    case = sink, [K.zeros(8 * n), K.data(8 * n, seed=1)]
    loads = [u for u in split_digits(sink).toposort() if u.op is Ops.INDEX and u.src[0] is x]
    assert len(loads) == 2 and not [u for u in split_digits(sink).toposort() if u.op is Ops.FLOORMOD]
    check(*case, level="PYTHON:x86-64-v4")
    np.testing.assert_array_equal(_run(case), np.roll(case[1][1].reshape(8, n), shift, axis=1).ravel())


def test_rows_that_wrap_stay_rows():
    o, x, i, j = K.buf(0, 512), K.buf(1, 512), K.out(0, 8), K.out(1, 64)
    sink = K.kernel(o.index(i * 64 + j).store(x.index(mod(i + 3, 8) * 64 + j)).end(i, j))
    assert split_digits(sink) is sink


@pytest.mark.parametrize("n", [64, 100, 1000])
def test_backwards_is_whole_vectors(n):
    case = read_at(n, n, lambda r: r * -1 + (n - 1))
    _, uops = program(case)
    assert all(u.shape == (16,) for u in uops if u.op is Ops.LOAD)
    check(*case, level="PYTHON:x86-64-v4")
    np.testing.assert_array_equal(_run(case), case[1][1][::-1])


def test_a_window_along_the_lanes_is_written_out_too():
    o, x, b, i, k = K.buf(0, 1024), K.buf(1, 1024), K.out(0, 64), K.out(1, 16), K.red(2, 16)
    inside = UOp.const(14) < i + k
    value = inside.where(x.index((b * 16 + i + k - 15).valid(inside)), 0.0).reduce(k, arg=Ops.ADD)
    case = K.kernel(o.index(b * 16 + i).store(value).end(b, i)), [K.zeros(1024), K.data(1024, seed=1)]
    r = renderer("x86-64-v4")
    r.caps = replace(r.caps, threads=1, masked=True)
    assert [(p.op, p.arg) for p in optimised(case[0], r).arg.applied_opts] == [(O.LANE, 16), (O.UNROLL, 0)]
    check(*case, level="PYTHON:x86-64-v4")
