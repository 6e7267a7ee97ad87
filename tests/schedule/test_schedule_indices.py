"""Index arithmetic: linear forms divide exactly, reshapes agree with numpy, sums over windows lose no term."""
from __future__ import annotations

import itertools
import random

import numpy as np
import pytest
from schedule.helpers import check, kernels, output, param
from schedule.interp import alu

from tinyhost.dtype import dtypes
from tinyhost.schedule.indexing import Indexing
from tinyhost.schedule.linear_form import LinearForms
from tinyhost.uop import Ops, UOp
from tinyhost.uop.gradient import compute_gradient


def value(u: UOp, env: dict[UOp, np.ndarray]) -> np.ndarray:
    """An index expression on arrays of range values."""
    done = dict(env)
    for n in u.toposort(gate=lambda n: n not in done):
        done[n] = np.asarray(n.arg) if n.op is Ops.CONST else alu(n, [done[s] for s in n.src])
    return done[u]


def grids(sizes: tuple[int, ...]) -> tuple[list[UOp], dict[UOp, np.ndarray]]:
    ranges = [UOp.range(n, i) for i, n in enumerate(sizes)]
    return ranges, dict(zip(ranges, np.meshgrid(*(np.arange(n) for n in sizes), indexing="ij")))


@pytest.mark.parametrize("seed", range(60))
def test_divmod_is_exact(seed: int) -> None:
    rng = random.Random(seed)
    math = LinearForms()
    ranges, env = grids(tuple(rng.randint(2, 7) for _ in range(3)))
    u = math.build((rng.randint(-9, 9), {r: rng.choice((-12, -6, -4, -1, 1, 2, 3, 4, 6, 8, 12)) for r in ranges}))
    expected = value(u, env)
    for _ in range(4):
        d = rng.choice((1, 2, 3, 4, 6, 8, 12, 24))
        q, r = (math.build(f) for f in math.divmod(math.parse(u), d))
        np.testing.assert_array_equal(np.broadcast_to(value(q, env), expected.shape), expected // d)
        np.testing.assert_array_equal(np.broadcast_to(value(r, env), expected.shape), expected % d)
        back = math.build(math.dot((q, r), (d, 1)))
        np.testing.assert_array_equal(np.broadcast_to(value(back, env), expected.shape), expected)
        u, expected = rng.choice(((q, expected // d), (r, expected % d), (u, expected)))
        if rng.random() < 0.5:
            u, expected = math.shift(u, 5), expected + 5


def test_equal_expressions_are_one_node() -> None:
    math = LinearForms()
    a, b = UOp.range(4, 0), UOp.range(5, 1)
    left = math.build(math.dot((b, a), (3, 7)))
    assert left is math.build(math.dot((a, b), (7, 3))) is math.build(math.parse(a * 7 + b * 3))
    assert math.build((3, {})) is UOp.const(3)


def test_quotient_and_remainder_recombine() -> None:
    math = LinearForms()
    r = UOp.range(35, 0)
    q, m = (math.build(f) for f in math.divmod(math.parse(r), 5))
    assert (q.op, m.op) == (Ops.FLOORDIV, Ops.FLOORMOD)
    assert math.build(math.dot((q, m), (5, 1))) is r
    q2, m2 = (math.build(f) for f in math.divmod(math.parse(q), 3))
    assert q2 is UOp(Ops.FLOORDIV, (r, UOp.const(15)))
    assert math.build(math.dot((q2, m2, m), (15, 5, 1))) is r


@pytest.mark.parametrize("seed", range(40))
def test_reshape_agrees_with_numpy(seed: int) -> None:
    rng = random.Random(seed)
    n = rng.choice((12, 24, 36, 60))

    def shape() -> tuple[int, ...]:
        out, rest = [], n
        while rest > 1:
            d = rng.choice([k for k in range(2, rest + 1) if rest % k == 0])
            out.append(d)
            rest //= d
        return tuple(d for d in out for d in ((1, d) if rng.random() < 0.2 else (d,)))

    shapes = [shape() for _ in range(4)]
    indexing = Indexing()
    ranges, env = grids(shapes[0])
    indices = tuple(ranges)
    for a, b in itertools.pairwise(shapes):
        indices = indexing.reshape(a, b, indices)
    flat = value(indexing.flat(shapes[-1], indices), env)
    np.testing.assert_array_equal(flat, np.arange(n).reshape(shapes[0]))


@pytest.mark.parametrize("a,b", [((4, 6), (24,)), ((24,), (4, 6)), ((2, 3, 4), (6, 4)), ((6, 4), (2, 3, 4))])
def test_there_and_back_is_nothing(a: tuple[int, ...], b: tuple[int, ...]) -> None:
    indexing = Indexing()
    ranges, _ = grids(a)
    assert indexing.reshape(b, a, indexing.reshape(a, b, tuple(ranges))) == tuple(ranges)


# *** sums over windows ***
def window_gradient(seed: int) -> tuple[UOp, bool, bool] | None:
    """The gradient of a windowed view of a parameter; whether windows are dense, and whether they overlap."""
    rng = random.Random(seed)
    axes = rng.choice((1, 2, 2))
    size = tuple(rng.randint(2, 9) for _ in range(axes))
    k = tuple(rng.randint(1, min(4, s)) for s in size)
    stride, dilation = (tuple(rng.randint(1, m) for _ in size) for m in (3, 2))
    if any((kk - 1) * d + 1 > s for kk, d, s in zip(k, dilation, size)):
        return None
    x = param(0, (2, *size))
    y = x
    if rng.random() < 0.4:
        pads = ((0, 0), *((rng.randint(0, 1), rng.randint(0, 1)) for _ in size))
        y = UOp.const(True).expand(x.shape)._pad_box(pads).where(x._pad_box(pads), 0.0)
    windows = y._pool(k, stride, dilation)
    if windows is y:
        return None
    g = param(2, (3, *windows.shape)).sum(0) if rng.random() < 0.6 else param(1, windows.shape)
    overlap = any(kk > 1 and (kk - 1) * d + 1 > s for kk, d, s in zip(k, dilation, stride))
    return compute_gradient(windows, g, {x})[x], max(stride) == 1, overlap


@pytest.mark.parametrize("block", range(6))
def test_sums_over_windows(block: int) -> None:
    for seed in range(block * 25, block * 25 + 25):
        case = window_gradient(seed)
        if case is None:
            continue
        dx, dense, _ = case
        linear = check(output(9, dx), seed=seed)
        if dense:
            assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for ast in kernels(linear) for u in ast.toposort())


def test_gradient_of_a_convolution_is_one_kernel() -> None:
    x, w, g = param(0, (2, 3, 8, 8)), param(1, (4, 3, 3, 3)), param(2, (2, 4, 6, 6))
    windows = x._pool((3, 3))
    y = (windows.reshape((2, 1, 3, 6, 6, 3, 3)) * w.reshape((1, 4, 3, 1, 1, 3, 3))).sum((2, 5, 6))
    grads = compute_gradient(y, g, {x, w})
    linear = check(output(3, grads[x]), output(4, grads[w]))
    dx, dw = kernels(linear)
    for ast in (dx, dw):
        assert sum(u.op is Ops.REDUCE for u in ast.toposort()) == 1
        assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for u in ast.toposort())


def test_sum_over_windows_looks_through_casts() -> None:
    g = param(0, (5, 3), dtypes.float16)
    windows = param(1, (7,), dtypes.float16)._pool((3,))
    grads = compute_gradient(windows, g, {param(1, (7,), dtypes.float16)})
    linear = check(output(2, grads[param(1, (7,), dtypes.float16)]))
    assert not any(u.op in (Ops.FLOORDIV, Ops.FLOORMOD) for ast in kernels(linear) for u in ast.toposort())
