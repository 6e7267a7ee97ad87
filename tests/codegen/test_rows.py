"""Values of a row that several loops need are computed once and kept in the arena, copies of rows apart."""
from __future__ import annotations

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer
from tinyhost.capabilities import Capabilities
from tinyhost.codegen.nests import one_closer_each
from tinyhost.codegen.program import optimised
from tinyhost.codegen.rows import keep_row_values
from tinyhost.dtype import DType, dtypes
from tinyhost.ops import Ops
from tinyhost.uop import Opt, UOp
from tinyhost.uop import OptOps as O

LEVELS = ("x86-64-v3", "x86-64-v4", "PYTHON:x86-64-v4")


def softmax(m: int, n: int, turned: bool = False, opts: tuple[Opt, ...] | None = None,
            dtype: DType = dtypes.float32) -> K.Case:
    """exp2 of the rows, minus their largest, divided by the sum: three loops over a row; ``turned`` in memory."""
    out, x = K.buf(0, m * n, dtype), K.buf(1, m * n, dtype)
    r, j, a, b = K.out(0, m), K.out(1, n), K.red(2, n), K.red(3, n)

    def at(i: UOp) -> UOp:
        return i * m + r if turned else r * n + i
    top = x.index(at(a)).reduce(a, arg=Ops.MAX)
    e = lambda i: (x.index(at(i)) - top).exp2()
    value = e(j) * e(b).reduce(b, arg=Ops.ADD).reciprocal()
    sink = K.kernel(out.index(at(j)).store(value).end(r, j), opts=opts)
    return sink, [K.zeros(m * n, dtype), K.data(m * n, dtype, 1)]


def exponentials(sink: UOp) -> int:
    return sum(u.op is Ops.EXP2 for u in sink.toposort())


def arena(program: UOp) -> int:
    return int(program.arg.scratch)


def test_a_dear_value_is_computed_once() -> None:
    sink, _ = softmax(8, 40)
    apart = one_closer_each(sink)
    assert exponentials(apart) == 2
    kept = keep_row_values(apart, Capabilities())
    assert exponentials(kept) == 1
    stored = [u for u in kept.toposort() if u.op is Ops.STORE and u.src[0].src[0].arg.name == "scratch"]
    assert len(stored) == 1 and stored[0].src[1].op is Ops.EXP2


def test_what_is_left_alone() -> None:
    sink, _ = softmax(8, 40)
    apart = one_closer_each(sink)
    assert keep_row_values(apart, Capabilities(grid=True)) is apart
    assert keep_row_values(apart, Capabilities(l2_bytes=1 << 10)) is apart  # the row is too long
    out, x, w = K.buf(0, 320), K.buf(1, 320), K.buf(2, 40)
    r, j, a = K.out(0, 8), K.out(1, 40), K.red(2, 40)
    v = lambda i: x.index(r * 40 + i) * w.index(i)
    cheap = K.kernel(out.index(r * 40 + j).store(v(j) - v(a).reduce(a, arg=Ops.ADD)).end(r, j))
    assert keep_row_values(cheap, Capabilities()) is cheap


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", [(5, 64), (7, 33), (3, 5), (16, 130), (2, 1000)], ids=str)
def test_values(level: str, shape: tuple[int, int]) -> None:
    program = check(*softmax(*shape), level)
    assert arena(program) >= 4 * shape[1]
    check(*softmax(*shape, turned=True), level)
    check(*softmax(*shape, dtype=dtypes.float64), level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("opts, rows", [
    ((), 1), ((Opt(O.UPCAST, 0, 4),), 4), ((Opt(O.UPCAST, 0, 2), Opt(O.LANE, 1, 8)), 2), ((Opt(O.UNROLL, 1, 4),), 1),
    ((Opt(O.UPCAST, 0, 3), Opt(O.UNROLL, 0, 2), Opt(O.UNROLL, 1, 5)), 3), ((Opt(O.LANE, 3, 8),), 1)], ids=str)
def test_copies_of_rows_have_places_of_their_own(opts: tuple[Opt, ...], rows: int, level: str) -> None:
    for shape in ((12, 40), (13, 37)):
        program = check(*softmax(*shape, opts=opts), level)
        assert arena(program) >= 4 * shape[1] * rows


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("opts", [(Opt(O.LANE, 0, 8),), (Opt(O.LANE, 0, 8), Opt(O.UPCAST, 0, 2))], ids=str)
def test_rows_as_lanes(opts: tuple[Opt, ...], level: str) -> None:
    for shape in ((32, 20), (37, 9)):
        program = check(*softmax(*shape, turned=True, opts=opts), level)
        assert arena(program) >= 4 * shape[1] * 8


def test_hand_rules_give_each_loop_its_lanes() -> None:
    sink, _ = softmax(64, 256)
    applied = optimised(sink, renderer("x86-64-v4")).arg.applied_opts
    assert sum(o.op is O.LANE for o in applied) == 3


def test_two_stores_of_one_row() -> None:
    """The sum is stored for the row, the values inside of it."""
    m, n = 9, 70
    out, total, x = K.buf(0, m * n), K.buf(1, m), K.buf(2, m * n)
    r, j, a = K.out(0, m), K.out(1, n), K.red(2, n)
    e = lambda i: x.index(r * n + i).exp2()
    s = e(a).reduce(a, arg=Ops.ADD)
    sink = K.kernel(total.index(r).store(s).end(r), out.index(r * n + j).store(e(j) * s).end(r, j))
    for level in LEVELS:
        program = check(sink, [K.zeros(m * n), K.zeros(m), K.data(m * n, seed=3)], level)
        assert arena(program) >= 4 * n


def test_special_values_stay_in_their_row() -> None:
    sink, (out, x) = softmax(6, 50)
    x[53], x[104], x[150:200] = np.nan, np.inf, -np.inf
    for level in LEVELS:
        check(sink, [out, x], level)
