"""Whole programs: loops, accumulators, gates, arguments, spills; run and compared with numpy."""

from __future__ import annotations

import numpy as np
import pytest
from x86_machine import (
    add,
    assemble,
    at,
    call,
    const,
    i32,
    lane,
    listing,
    load,
    loop,
    mul,
    param,
    renderer,
    run,
    scalar,
    store,
    widest,
)

from tinyhost.codegen.memory import STREAMED
from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp

f32 = dtypes.float32
pytestmark = pytest.mark.usefixtures("level")


def register(slot: int, dtype=f32, size: int = 1) -> UOp:
    return UOp(Ops.BUFFER, (), ParamArg(slot, dtype, size, addrspace=AddrSpace.REG))


def after(x: UOp, *deps: UOp) -> UOp:
    return UOp(Ops.AFTER, (x, *deps))


def end(body: UOp, *ranges: UOp) -> UOp:
    for r in ranges:
        body = UOp(Ops.END, (body, r))
    return body


def accumulate(acc: UOp, start: UOp, step, r: UOp, lanes: int = 1) -> UOp:
    """The value of ``acc`` after a loop over ``r`` that sets it to step(acc)."""
    init = store(acc, 0, start, lanes)
    inside = after(acc, init, r)
    update = UOp(Ops.STORE, (at(inside, 0, lanes), step(load(inside, 0, lanes))))
    return load(after(acc, end(update, r)), 0, lanes)


# *** loops ***
@pytest.mark.parametrize("n", [0, 1, 5, 16])
def test_loop_with_a_variable_bound(n: int) -> None:
    out, count = param(0, f32, 32), scalar("n", 0, 16, 1)
    r = loop(count, 0)
    code = assemble(end(store(out, r, UOp(Ops.CAST, (r,), f32)), r))
    x = np.full(32, -1, np.float32)
    call(code, [x], [n])
    assert x.tolist() == list(range(n)) + [-1] * (32 - n)


def test_nested_loops_write_a_table() -> None:
    out, i, j = param(0, dtypes.int32, 12 * 20), loop(12, 0), loop(20, 1)
    x = np.zeros((12, 20), np.int32)
    run([end(store(out, add(mul(i, 20), j), add(mul(i, 100), j)), j, i)], [x])
    assert (x == np.arange(12)[:, None] * 100 + np.arange(20)).all()


def test_do_while() -> None:
    """Count up in memory until the value is 10."""
    p = param(0, dtypes.int32, 1)
    r = UOp(Ops.RANGE, (UOp(Ops.NOOP),), (0, AxisType.WEAK))
    inside = after(p, r)
    step = UOp(Ops.STORE, (at(inside, 0), add(load(inside, 0), i32(1))))
    again = load(after(inside, step), 0) < i32(10)
    x = np.array([3], np.int32)
    run([UOp(Ops.END, (step, r, again))], [x])
    assert x[0] == 10


@pytest.mark.parametrize("lanes", [1, 4, 8])
def test_sum(lanes: int) -> None:
    n, out, src = 256, param(0, f32, lanes), param(1, f32, 256)
    r = loop(n // lanes, 0, AxisType.REDUCE)
    zero = const(0.0, f32) if lanes == 1 else UOp(Ops.STACK, (const(0.0, f32),) * lanes)
    total = accumulate(register(0, f32, lanes), zero, lambda a: a + load(src, mul(r, lanes), lanes), r, lanes)
    x, y = np.random.default_rng(0).standard_normal(n).astype(np.float32), np.zeros(lanes, np.float32)
    run([store(out, 0, total, lanes)], [y, x])
    want = np.zeros(lanes, np.float32)
    for row in x.reshape(-1, lanes):
        want += row
    assert (y == want).all()


def test_matrix_product_in_registers() -> None:
    """A 4x2 tile of eight-lane accumulators."""
    n, k, m = 8, 24, 16
    out, a, b = param(0, f32, n * m), param(1, f32, n * k), param(2, f32, k * m)
    i, r = loop(n // 4, 0), loop(k, 1, AxisType.REDUCE)
    tile = [[register(4 * x + y, f32, 8) for y in range(2)] for x in range(4)]
    zeros = UOp(Ops.STACK, (const(0.0, f32),) * 8)
    inits = {t: store(after(t, i), 0, zeros, 8) for row in tile for t in row}
    inside = {t: after(t, inits[t], r) for row in tile for t in row}
    updates = []
    for x in range(4):
        row = add(mul(i, 4 * k), r, i32(x * k)) if x else add(mul(i, 4 * k), r)
        left = load(a, row)
        for y in range(2):
            t = inside[tile[x][y]]
            col = add(mul(r, m), i32(8 * y)) if y else mul(r, m)
            updates.append(UOp(Ops.STORE, (at(t, 0, 8), UOp(Ops.MULACC, (left, load(b, col, 8), load(t, 0, 8))))))
    done = end(UOp(Ops.GROUP, tuple(updates)), r)
    stores = [
        store(out, add(mul(i, 4 * m), i32(x * m + 8 * y)), load(after(tile[x][y], done), 0, 8), 8)
        for x in range(4)
        for y in range(2)
    ]
    rng = np.random.default_rng(1)
    ma, mb, mc = (
        rng.integers(-9, 9, (n, k)).astype(np.float32),
        rng.integers(-9, 9, (k, m)).astype(np.float32),
        np.zeros((n, m), np.float32),
    )
    run([end(UOp(Ops.GROUP, tuple(stores)), i)], [mc, ma, mb])
    assert (mc == ma @ mb).all()


def test_accumulators_that_swap() -> None:
    """Fibonacci: both registers are read before either changes."""
    out, r = param(0, dtypes.int64, 2), loop(20, 0, AxisType.REDUCE)
    a, b = register(0, dtypes.int64), register(1, dtypes.int64)
    ia, ib = store(a, 0, const(0, dtypes.int64)), store(b, 0, const(1, dtypes.int64))
    x, y = load(after(a, ia, r), 0), load(after(b, ib, r), 0)
    ua = UOp(Ops.STORE, (at(after(a, ia, r, x), 0), y))
    ub = UOp(Ops.STORE, (at(after(b, ib, r, ua), 0), UOp(Ops.ADD, (x, y))))
    done = end(UOp(Ops.GROUP, (ua, ub)), r)
    z = np.zeros(2, np.int64)
    run([store(out, 0, load(after(a, done), 0)), store(out, 1, load(after(b, done), 0))], [z])
    assert z.tolist() == [6765, 10946]


def test_register_buffer_with_a_moving_index_lies_in_the_frame() -> None:
    out, src, buf = param(0, f32, 8), param(1, f32, 8), register(0, f32, 8)
    r, s = loop(8, 0), loop(8, 1)
    fill = end(store(after(buf, r), r, load(src, r) * const(2.0, f32)), r)
    back = end(store(out, s, load(after(buf, fill, s), UOp(Ops.SUB, (i32(7), s)))), s)
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    run([back], [y, x])
    assert y.tolist() == (x[::-1] * 2).tolist()


# *** gates ***
@pytest.mark.parametrize(
    "dtype,numpy_type",
    [
        (f32, np.float32),
        (dtypes.int8, np.int8),
        (dtypes.int64, np.int64),
        (dtypes.float16, np.float16),
        (dtypes.uint16, np.uint16),
        (dtypes.float64, np.float64),
        (dtypes.bool, np.bool_),
    ],
    ids=str,
)
def test_gated_scalar_load_and_store(dtype, numpy_type) -> None:
    """The gate is false where the address would be far outside."""
    n = 16
    out, src, r = param(0, dtype, n), param(1, dtype, n), loop(n, 0)
    inside = r < i32(9)
    far = UOp(Ops.WHERE, (inside, r, i32(1 << 28)))
    value = load(src, far, 1, const(1, dtype), inside)
    effect = end(store(out, far, value, 1, inside), r)
    x = (np.arange(n) % 2 if dtype is dtypes.bool else np.arange(n) + 3).astype(numpy_type)
    y = np.zeros(n, numpy_type)
    run([effect], [y, x])
    assert y.tolist() == x[:9].tolist() + np.zeros(7, numpy_type).tolist()
    everywhere = end(store(out, r, value), r)
    run([everywhere], [y, x])
    assert y.tolist() == x[:9].tolist() + np.ones(7, numpy_type).tolist()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16, 32])
@pytest.mark.parametrize(
    "dtype,numpy_type",
    [
        (f32, np.float32),
        (dtypes.int32, np.int32),
        (dtypes.float64, np.float64),
        (dtypes.int64, np.int64),
        (dtypes.uint8, np.uint8),
        (dtypes.float16, np.float16),
        (dtypes.bool, np.bool_),
    ],
    ids=str,
)
def test_lane_masks(dtype, numpy_type, lanes: int) -> None:
    """A remainder: lanes behind the limit are neither read nor written."""
    if max(dtype.itemsize, 4) * lanes > widest():  # the lane numbers are int32
        return
    n, limit = 32, 13
    out, src, r = param(0, dtype, n), param(1, dtype, n), loop(n // lanes, 0)
    start = mul(r, lanes)
    steps = UOp(Ops.STACK, tuple(i32(i) for i in range(lanes)))
    inside = UOp(Ops.ADD, (start, steps)) < i32(limit)
    other = True if dtype is dtypes.bool else 5
    alt = UOp(Ops.STACK, (const(other, dtype),) * lanes)
    value = load(src, start, lanes, alt, inside)
    x, y = (np.arange(n) % (2 if dtype is dtypes.bool else 99)).astype(numpy_type), np.zeros(n, numpy_type)
    run([end(store(out, start, value, lanes, inside), r)], [y, x])
    assert y.tolist() == x[:limit].tolist() + [0] * (n - limit)
    run([end(store(out, start, value, lanes), r)], [y, x])
    assert y.tolist() == x[:limit].tolist() + [other] * (n - limit)


def test_vector_load_with_a_scalar_gate() -> None:
    out, src, flag = param(0, f32, 8), param(1, f32, 8), scalar("flag", 0, 1, 2)
    code = assemble(store(out, 0, load(src, 0, 8, UOp(Ops.STACK, (const(7.0, f32),) * 8), flag.ne(i32(0))), 8))
    x, y = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    call(code, [y, x], [1])
    assert (y == x).all()
    call(code, [y, x], [0])
    assert (y == 7).all()


def test_gate_of_a_float_comparison() -> None:
    out, src, r = param(0, f32, 8), param(1, f32, 8), loop(8, 0)
    x = load(src, r)
    x_, y = np.array([1, np.nan, -1, 3, np.inf, -np.inf, 0, 2], np.float32), np.full(8, 9, np.float32)
    run([end(store(out, r, x, 1, x < const(1.5, f32)), r)], [y, x_])
    assert y.tolist() == [1, 9, -1, 9, 9, -np.inf, 0, 9]


def test_if_skips_its_body() -> None:
    out, flag = param(0, dtypes.int32, 4), scalar("flag", 0, 10, 1)
    gate = flag < i32(5)
    test = UOp(Ops.IF, (gate, at(out, 0)))
    body = store(out, 0, i32(42))
    code_list = [
        out,
        flag,
        i32(5).src[0],
        i32(5),
        gate,
        i32(0).src[0],
        i32(0),
        at(out, 0),
        test,
        i32(42).src[0],
        i32(42),
        body,
        UOp(Ops.ENDIF, (test,)),
        store(out, 1, flag),
    ]
    code = bytes.fromhex(renderer().render([*code_list, UOp(Ops.SINK, (body,))]))
    for n, want in ((3, [42, 3]), (7, [0, 7])):
        x = np.zeros(4, np.int32)
        call(code, [x], [n])
        assert x[:2].tolist() == want


# *** arguments and frames ***
def test_many_arguments_come_on_the_stack() -> None:
    buffers = [param(i, dtypes.int32, 4) for i in range(9)]
    scalars = [scalar(f"s{i}", -100, 100, 9 + i) for i in range(3)]
    total = add(*[load(b, 0) for b in buffers[1:]], *scalars)
    arrays = [np.full(4, 10**i, np.int32) for i in range(9)]
    run([store(buffers[0], 0, total)], arrays, [-1, 2, -30])
    assert arrays[0][0] == sum(10**i for i in range(1, 9)) - 29


def test_core_id_is_the_last_argument() -> None:
    out, core, n = param(0, dtypes.int32, 4), scalar("core_id", 0, 3, 5), scalar("n", 0, 9, 7)
    x = np.zeros(4, np.int32)
    code = assemble(store(out, core, n))
    call(code, [x], [9, 2])
    assert x.tolist() == [0, 0, 9, 0]


@pytest.mark.parametrize("live", [20, 60])
def test_more_vectors_than_registers(live: int) -> None:
    out, src = param(0, f32, 8 * live), param(1, f32, 8 * live)
    xs = [load(src, 8 * i, 8) for i in range(live)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    x, y = np.random.default_rng(2).integers(-50, 50, 8 * live).astype(np.float32), np.zeros(8 * live, np.float32)
    run([store(out, 8 * i, v * total, 8) for i, v in enumerate(xs)], [y, x])
    assert (y.reshape(live, 8) == x.reshape(live, 8) * x.reshape(live, 8).sum(0)).all()


@pytest.mark.parametrize("live", [5, 20])
def test_more_masks_than_registers(live: int) -> None:
    """Comparisons with ``live`` thresholds, all of them used twice, the first one last."""
    lanes = widest() // 4
    out, src = param(0, f32, live * lanes), param(1, f32, lanes)
    x = load(src, 0, lanes)
    masks = [UOp(Ops.CMPLT, (x, const(float(i), f32))) for i in range(live)]
    parity = masks[0]
    for m in masks[1:]:
        parity = UOp(Ops.XOR, (parity, m))
    stores = []
    for i, m in reversed(list(enumerate(masks))):
        chosen = UOp(Ops.WHERE, (UOp(Ops.AND, (m, parity)), const(float(i + 1), f32), x))
        stores.append(store(out, i * lanes, chosen, lanes))
    code = assemble(UOp(Ops.GROUP, tuple(stores)))
    values = np.random.default_rng(live).uniform(-1, live, lanes).astype(np.float32)
    y = np.zeros((live, lanes), np.float32)
    call(code, [y, values])
    below = values[None] < np.arange(live)[:, None]
    odd = below.sum(0) % 2 == 1
    assert (y == np.where(below & odd, np.arange(1, live + 1)[:, None], values)).all()
    if widest() == 64:
        assert ("kmovq [rsp" in listing(code)) == (live > 7)


def test_more_integers_than_registers() -> None:
    n = 40
    out, src = param(0, dtypes.int64, n), param(1, dtypes.int64, n)
    xs = [UOp(Ops.MUL, (load(src, i), const(i + 1, dtypes.int64))) for i in range(n)]
    total = xs[0]
    for v in xs[1:]:
        total = UOp(Ops.XOR, (total, v))
    x, y = np.arange(n, dtype=np.int64) * 12345, np.zeros(n, np.int64)
    run([store(out, i, UOp(Ops.ADD, (v, total))) for i, v in enumerate(xs)], [y, x])
    want = x * (np.arange(n) + 1)
    assert (y == want + np.bitwise_xor.reduce(want)).all()


def test_constants_of_a_loop_under_pressure() -> None:
    """A polynomial of twenty coefficients over four vectors at a time: constants do not crowd out the values."""
    n, coefficients = 128, [1.0 / (i + 1) for i in range(20)]
    out, src, r = param(0, f32, n), param(1, f32, n), loop(n // 32, 0)
    stores = []
    for u in range(4):
        index = add(mul(r, 32), i32(8 * u)) if u else mul(r, 32)
        x = load(src, index, 8)
        y = UOp(Ops.STACK, (const(0.5, f32),) * 8)
        for c in coefficients:
            y = UOp(Ops.MULACC, (y, x, const(c, f32)))
        stores.append(store(out, index, y, 8))
    x, y = np.random.default_rng(3).standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
    run([end(UOp(Ops.GROUP, tuple(stores)), r)], [y, x])
    want = np.full(n, 0.5)
    for c in coefficients:
        want = (want * x + np.float32(c)).astype(np.float32)
    np.testing.assert_allclose(y, want, rtol=1e-4)


def test_negative_and_wide_indices() -> None:
    out, src, r = param(0, dtypes.int32, 16), param(1, dtypes.int32, 16), loop(8, 0)
    back = add(mul(r, -1), i32(7))  # 7 - r
    shifted = UOp(Ops.CAST, (UOp(Ops.SUB, (r, i32(3))),), dtypes.int64)  # -3 .. 4
    index = UOp(Ops.ADD, (shifted, const(3, dtypes.int64)))
    x, y = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    run([end(store(out, back, load(src, index)), r)], [y, x])
    assert y[:8].tolist() == list(range(7, -1, -1))


def test_index_from_memory_is_sign_extended() -> None:
    out, src, where, r = param(0, f32, 8), param(1, f32, 16), param(2, dtypes.int32, 8), loop(8, 0)
    index = UOp(Ops.ADD, (load(where, r), i32(8)))
    x, w, y = np.arange(16, dtype=np.float32), np.array([-8, -1, 0, 7, 3, -3, 5, -5], np.int32), np.zeros(8, np.float32)
    run([end(store(out, r, load(src, index)), r)], [y, x, w])
    assert y.tolist() == x[w + 8].tolist()


def test_bool_vectors_keep_their_bytes() -> None:
    for lanes in (2, 4, 8, 16, 32):
        out, a, b = (param(i, dtypes.bool, 32) for i in range(3))
        r = loop(32 // lanes, 0)
        i = mul(r, lanes)
        value = UOp(Ops.XOR, (UOp(Ops.AND, (load(a, i, lanes), load(b, i, lanes))), UOp(Ops.CONST, (), True)))
        rng = np.random.default_rng(lanes)
        x, y, z = rng.integers(0, 2, 32).astype(bool), rng.integers(0, 2, 32).astype(bool), np.zeros(32, bool)
        run([end(store(out, i, value, lanes), r)], [z, x, y])
        assert (z == ~(x & y)).all()


def test_where_with_nan_condition() -> None:
    """cond of x<1, x>1, x!=1, x==1 on nan, 1, 2, -1; scalar and vector."""
    x = np.array([np.nan, 1, 2, -1], np.float32)
    one = const(1.0, f32)
    for lanes in (1, 4):
        out, src, r = param(0, f32, 4), param(1, f32, 4), loop(4 // lanes, 0)
        i = mul(r, lanes) if lanes > 1 else r
        v = load(src, i, lanes)
        for op, flip, want in (
            (Ops.CMPLT, False, x < 1),
            (Ops.CMPLT, True, x > 1),
            (Ops.CMPNE, False, x != 1),
            (Ops.CMPEQ, False, x == 1),
        ):
            y = np.zeros(4, np.float32)
            cond = UOp(op, (one, v) if flip else (v, one))
            run([end(store(out, i, UOp(Ops.WHERE, (cond, const(10.0, f32), const(-1.0, f32))), lanes), r)], [y, x])
            assert y.tolist() == np.where(want, 10.0, -1.0).tolist()


@pytest.mark.parametrize("lanes", [2, 4, 8, 16])
@pytest.mark.parametrize(
    "dtype,numpy_type",
    [
        (f32, np.float32),
        (dtypes.int32, np.int32),
        (dtypes.float64, np.float64),
        (dtypes.int64, np.int64),
        (dtypes.int16, np.int16),
        (dtypes.uint8, np.uint8),
    ],
    ids=str,
)
def test_where_of_literals(dtype, numpy_type, lanes: int) -> None:
    if lanes * dtype.itemsize > widest():
        return
    rng = np.random.default_rng(lanes)
    for pattern in (rng.integers(0, 2, lanes).astype(bool), np.arange(lanes) % 2 == 1, np.arange(lanes) % 8 > 3):
        out, a, b = (param(i, dtype, lanes) for i in range(3))
        mask = UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), bool(p)) for p in pattern))
        code = assemble(store(out, 0, UOp(Ops.WHERE, (mask, load(a, 0, lanes), load(b, 0, lanes))), lanes))
        x, y, z = (rng.integers(0, 100, lanes).astype(numpy_type) for _ in range(3))
        call(code, [z, x, y])
        assert (z == np.where(pattern, x, y)).all()
        if dtype.itemsize >= 4 and lanes * dtype.itemsize >= 16:
            assert "blendv" not in listing(code)


def test_shuffles_cross_halves() -> None:
    out, src = param(0, f32, 8), param(1, f32, 8)
    x = np.arange(8, dtype=np.float32)
    for order in ([7, 0, 3, 4, 1, 6, 2, 5], [4, 5, 6, 7], [0, 1], [3, 3, 0, 1], [6, 2]):
        v = UOp(Ops.INDEX, (load(src, 0, 8), UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i) for i in order))))
        y = np.zeros(8, np.float32)
        run([store(out, 0, v, len(order))], [y, x])
        assert y[: len(order)].tolist() == [float(i) for i in order]


def test_horizontal_sum() -> None:
    out, src = param(0, f32, 1), param(1, f32, 8)
    v = load(src, 0, 8)

    def pick(node: UOp, order: list[int]) -> UOp:
        return UOp(Ops.INDEX, (node, UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i) for i in order))))

    v = pick(v, [0, 1, 2, 3]) + pick(v, [4, 5, 6, 7])
    v = v + pick(v, [2, 3, 0, 1])
    v = v + pick(v, [1, 2, 3, 0])
    x, y = np.arange(8, dtype=np.float32), np.zeros(1, np.float32)
    run([store(out, 0, lane(v, 0))], [y, x])
    assert y[0] == 28


# *** gathers ***
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize(
    "dtype,numpy_type",
    [(f32, np.float32), (dtypes.float64, np.float64), (dtypes.int32, np.int32), (dtypes.uint64, np.uint64)],
    ids=str,
)
@pytest.mark.parametrize("step,factor", [(0, 1), (3, 1), (4, 2)])
def test_lanes_of_a_vector_as_indices(dtype, numpy_type, lanes: int, step: int, factor: int, level: str) -> None:
    """out[i] = table[5 + row * 7 + index[i] * factor + i * step], also with a store between loads and use."""
    if lanes * dtype.itemsize > widest():
        return
    rows = 3
    out, table, index = param(0, dtype, rows * lanes), param(1, dtype, 400), param(2, dtypes.int32, rows * lanes)
    row = loop(rows, 0)
    vector = load(index, mul(row, lanes), lanes)
    base = add(mul(row, 7), i32(5))
    parts = []
    for i in range(lanes):
        part = lane(vector, i)
        part = mul(part, factor) if factor > 1 else part
        parts.append(load(table, add(base, part, i32(i * step)) if step else add(base, part)))
    code = assemble(end(store(out, mul(row, lanes), UOp(Ops.STACK, tuple(parts)), lanes), row))
    assert ("gather" in listing(code)) == (level == "x86-64-v4" and factor * dtype.itemsize <= 8)
    rng = np.random.default_rng(lanes)
    x = rng.integers(0, 1000, 400).astype(numpy_type)
    at_ = rng.integers(0, 100, (rows, lanes)).astype(np.int32)
    y = np.zeros((rows, lanes), numpy_type)
    call(code, [y, x, at_])
    want = x[5 + 7 * np.arange(rows)[:, None] + at_ * factor + np.arange(lanes) * step]
    assert (y == want).all()


def test_a_gather_does_not_move_over_a_store(level: str) -> None:
    table, index = param(0, f32, 32), param(1, dtypes.int32, 8)
    vector = load(index, 0, 8)
    parts = [load(table, lane(vector, i)) for i in range(8)]
    clear = UOp(Ops.STORE, (at(after(table, *parts), 0, 8), UOp(Ops.STACK, (const(0.0, f32),) * 8)))
    late = UOp(Ops.STORE, (at(after(table, clear), 16, 8), UOp(Ops.STACK, tuple(parts))))
    x, where = np.arange(1, 33, dtype=np.float32), np.arange(8, dtype=np.int32)[::-1].copy()
    run([late], [x, where])
    assert x[:8].tolist() == [0] * 8 and x[16:24].tolist() == [8, 7, 6, 5, 4, 3, 2, 1]


# *** stores past the caches ***
@pytest.mark.parametrize("dtype,numpy_type", [(f32, np.float32), (dtypes.int32, np.int32)], ids=str)
@pytest.mark.parametrize("offset", [0, 4, 16])
def test_streamed_stores_where_pointers_are_aligned(dtype, numpy_type, offset: int) -> None:
    """Eight outputs, two of them streamed, the last one passed on the stack and ``offset`` bytes off alignment."""
    lanes = widest() // 4
    n = 4 * lanes
    outs, src, r = [param(i, dtype, n) for i in range(8)], param(9, dtype, n), loop(4, 0)
    i = mul(r, lanes)
    stores = [store(o, i, load(src, i, lanes) + const(k, dtype), lanes) for k, o in enumerate(outs)]
    stores = [s.replace(tag=STREAMED) if k in (0, 7) else s for k, s in enumerate(stores)]
    code = assemble(end(UOp(Ops.GROUP, tuple(stores)), r))
    text = listing(code)
    assert text.count("vmovnt") == 2 and text.count("sfence") == 1 and text.count("ret") == 2
    buffers = []
    for k in range(8):
        raw = np.zeros(4 * n + 128, np.uint8)
        start = -raw.ctypes.data % 64 + (offset if k == 7 else 0)
        buffers.append(raw[start : start + 4 * n].view(numpy_type))
    x = np.arange(n).astype(numpy_type)
    call(code, [*buffers, x])
    for k, b in enumerate(buffers):
        assert (b == x + numpy_type(k)).all()


def test_narrow_stores_are_not_streamed() -> None:
    code = assemble(store(param(0, f32, 2), 0, load(param(1, f32, 2), 0, 2), 2).replace(tag=STREAMED))
    assert "vmovnt" not in listing(code) and "sfence" not in listing(code)


# *** the caller's state ***
def test_mxcsr_is_set_and_given_back() -> None:
    """A caller that flushes denormals gets them from the kernel all the same, and keeps its own setting."""
    from tinyhost_cpu.x86.encode import Mem
    from tinyhost_cpu.x86.encode import assemble as bytes_of
    from tinyhost_cpu.x86.insns import X86Ops

    pointer = Mem(7)
    get = bytes_of(X86Ops.STMXCSR.forms[0], (pointer,)) + b"\xc3"
    put = bytes_of(X86Ops.LDMXCSR.forms[0], (pointer,)) + b"\xc3"
    kernel = assemble(store(param(0, f32, 1), 0, load(param(1, f32, 1), 0) * const(0.5, f32)))
    before, flush, after_call = (np.array([0x1F80], np.uint32) for _ in range(3))
    x, y = np.array([2.0**-126], np.float32), np.zeros(1, np.float32)
    call(get, [before])
    flush[0] = before[0] | 0x8040  # flush to zero, denormals are zero
    call(put, [flush])
    call(kernel, [y, x])
    call(get, [after_call])
    call(put, [before])
    assert y[0] == np.float32(2.0**-127) and after_call[0] & 0x8040 == 0x8040


def test_listing_is_what_is_encoded() -> None:
    from tinyhost.codegen.linearize import linearize

    r = loop(8, 0)
    uops = linearize(
        UOp(Ops.SINK, (end(store(param(0, f32, 64), mul(r, 8), load(param(1, f32, 64), mul(r, 8), 8), 8), r),))
    )
    ours = [line.split()[0] for line in renderer().listing(uops).splitlines() if not line.endswith(":")]
    theirs = [line.split()[2] for line in listing(bytes.fromhex(renderer().render(uops))).splitlines()]
    assert ours == theirs


# *** storage seen as another type ***
def test_bitcast_of_places_and_storage() -> None:
    x = np.array([1.5, -2.0, np.nan, 4.0], np.float32)
    out, src = param(0, dtypes.int32, 4), param(1, f32, 4)
    r = loop(4, 0)
    y = np.zeros(4, np.int32)
    run([end(store(out, r, UOp(Ops.LOAD, (UOp(Ops.BITCAST, (at(src, r),), dtypes.int32),))), r)], [y, x])
    assert (y == x.view(np.int32)).all()
    halves = UOp(Ops.BITCAST, (src,), dtypes.uint16)
    low, i = param(0, dtypes.uint16, 8), loop(8, 1)
    z = np.zeros(8, np.uint16)
    run([end(store(low, i, load(halves, i)), i)], [z, x])
    assert (z == x.view(np.uint16)).all()


def test_float_scalar_parameter_is_an_error() -> None:
    bad = UOp(Ops.PARAM, (), ParamArg(1, f32, None, None, None, "x", AddrSpace.ALU))
    with pytest.raises(
        RuntimeError, match="scalar parameters are integers, got dtypes.float for 'x'; pass floats in a buffer"
    ):
        assemble(store(param(0, f32, 1), 0, bad))
