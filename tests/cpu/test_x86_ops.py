"""Every op and conversion of the X86 renderer against the definition, for each dtype and lane count it claims."""

from __future__ import annotations

import numpy as np
import pytest
from x86_machine import LEVELS, NUMPY, RENDERERS, const, lane, load, loop, param, renderer, run, store, widest

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp
from tinyhost.uop.semantics import carrier_np, cast_np, evaluate_np, from_storage_np, to_storage_np
from tinyhost_cpu.x86.caps import DTYPES

N = 64
LANES = (1, 2, 4, 8, 16, 32, 64)
pytestmark = pytest.mark.usefixtures("level")
ALL = sorted(DTYPES)
INTS = [d for d in ALL if d.is_int]
SPECIAL = (
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -2.5,
    3.75,
    np.inf,
    -np.inf,
    np.nan,
    1e-40,
    -1e-310,
    65504.0,
    65520.0,
    3.4e38,
    1e300,
    2.0**31,
    2.0**32,
    2.0**63,
    2.0**64,
    -(2.0**31),
    -(2.0**63),
    2147483520.0,
    255.5,
    256.0,
    -129.0,
    32767.9,
    65535.9,
    4294967040.0,
)


def values(dtype: DType, seed: int) -> np.ndarray:
    """N values of ``dtype`` in its carrier, extremes first."""
    rng = np.random.default_rng(seed)
    if dtype is dtypes.bool:
        return rng.integers(0, 2, N).astype(np.bool_)
    if dtype.is_float:
        raw = np.concatenate(
            [
                rng.permutation(SPECIAL),
                rng.standard_normal(N - len(SPECIAL)) * 10.0 ** rng.integers(-3, 4, N - len(SPECIAL)),
            ]
        )
        return cast_np(raw.astype(np.float64), dtypes.float64, dtype)
    info = np.iinfo(NUMPY[dtype])
    edge = np.array([info.min, info.max, 0, 1, info.max - 1, info.min + 1, info.max // 2, 7], dtype=NUMPY[dtype])
    wild = rng.integers(info.min, info.max, N - 24, dtype=NUMPY[dtype], endpoint=True)
    small = rng.integers(0, 100, 16).astype(NUMPY[dtype])
    return rng.permutation(np.concatenate([edge, wild, small]))


def execute(build, dtypes_in: list[DType], dtype_out: DType, lanes: int, inputs: list[np.ndarray]) -> np.ndarray:
    """out[i] = build(in0[i], in1[i] ...) over N elements, ``lanes`` at a time."""
    params = [param(i + 1, d, N) for i, d in enumerate(dtypes_in)]
    out = param(0, dtype_out, N)
    r = loop(N // lanes, 0)
    index = UOp(Ops.MUL, (r, const(lanes, dtypes.int32))) if lanes > 1 else r
    value = build(*[load(p, index, lanes) for p in params])
    effect = UOp(Ops.END, (store(out, index, value, lanes), r))
    stored = [np.ascontiguousarray(to_storage_np(x, d)) for x, d in zip(inputs, dtypes_in)]
    result = np.zeros(N, NUMPY[dtype_out])
    run([effect], [result, *stored])
    return from_storage_np(result, dtype_out)


def check(got: np.ndarray, want: np.ndarray, inputs: list[np.ndarray]) -> None:
    want = np.asarray(want)
    assert got.dtype == want.dtype
    same = (got == want) & (np.signbit(got) == np.signbit(want)) if got.dtype.kind == "f" else got == want
    same |= (got != got) & (want != want)
    bad = np.flatnonzero(~same)
    assert not len(bad), [(i, [x[i] for x in inputs], got[i], want[i]) for i in bad[:5]]


def claimed(op: Ops, dtype: DType) -> list[int]:
    return [n for n in LANES if n * dtype.itemsize <= widest() and renderer().supports(op, dtype, n)]


UNARY = [Ops.SQRT, Ops.TRUNC, Ops.RECIPROCAL, Ops.NEG]
BINARY = [Ops.ADD, Ops.SUB, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.AND, Ops.OR, Ops.XOR, Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ]
CASES = [
    (level, op, d, n)
    for level in LEVELS
    for op in UNARY + BINARY
    for d in ALL
    for n in LANES
    if RENDERERS[level].supports(op, d, n)
]


@pytest.mark.parametrize("level,op,dtype,lanes", CASES, ids=lambda x: str(x), indirect=["level"])
def test_op(op: Ops, dtype: DType, lanes: int) -> None:
    arity = 1 if op in UNARY else 2
    inputs = [values(dtype, seed) for seed in range(arity)]
    dtype_out = dtypes.bool if op in GroupOp.Comparison else dtype
    got = execute(lambda *xs: UOp(op, xs), [dtype] * arity, dtype_out, lanes, inputs)
    check(got, evaluate_np(op, dtype, *inputs), inputs)


@pytest.mark.parametrize(
    "level,op,dtype,lanes",
    [c for c in CASES if c[1] in BINARY and c[2] is not dtypes.bool and c[3] in (1, 8, 16)],
    ids=lambda x: str(x),
    indirect=["level"],
)
def test_op_with_a_literal(op: Ops, dtype: DType, lanes: int) -> None:
    x = values(dtype, 3)
    dtype_out = dtypes.bool if op in GroupOp.Comparison else dtype
    for number in (0, 1, 7, 100):
        c = np.full(N, number).astype(carrier_np(dtype))
        check(
            execute(lambda a: UOp(op, (a, const(number, dtype))), [dtype], dtype_out, lanes, [x]),
            evaluate_np(op, dtype, x, c),
            [x],
        )
        check(
            execute(lambda a: UOp(op, (const(number, dtype), a)), [dtype], dtype_out, lanes, [x]),
            evaluate_np(op, dtype, c, x),
            [x],
        )


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_where(dtype: DType) -> None:
    a, b = values(dtype, 1), values(dtype, 2)
    for lanes in claimed(Ops.WHERE, dtype):
        cond = values(dtypes.bool, 3)
        got = execute(
            lambda c, x, y: UOp(Ops.WHERE, (c, x, y)), [dtypes.bool, dtype, dtype], dtype, lanes, [cond, a, b]
        )
        check(got, np.where(cond, a, b), [cond, a, b])


@pytest.mark.parametrize(
    "compared",
    [dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint16, dtypes.int32, dtypes.int64, dtypes.float16],
    ids=str,
)
@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_where_of_a_comparison(dtype: DType, compared: DType) -> None:
    """The mask has the width of what was compared, the arms have another."""
    a, b, x, y = values(dtype, 1), values(dtype, 2), values(compared, 3), values(compared, 4)
    y[::3] = x[::3]
    for op in GroupOp.Comparison:
        want = np.where(evaluate_np(op, compared, x, y), a, b)
        for lanes in claimed(Ops.WHERE, dtype):
            if lanes * compared.itemsize <= widest() and renderer().supports(op, compared, lanes):
                got = execute(
                    lambda c, d, p, q: UOp(Ops.WHERE, (UOp(op, (c, d)), p, q)),
                    [compared, compared, dtype, dtype],
                    dtype,
                    lanes,
                    [x, y, a, b],
                )
                check(got, want, [x, y, a, b])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_shifts(dtype: DType) -> None:
    x = values(dtype, 5)
    bits = dtype.itemsize * 8
    counts = (np.arange(N) % (bits + 8)).astype(NUMPY[dtype])
    counts[-1] = np.array(-1).astype(NUMPY[dtype])
    for op in (Ops.SHL, Ops.SHR):
        for lanes in claimed(op, dtype):
            got = execute(lambda a, b: UOp(op, (a, b)), [dtype, dtype], dtype, lanes, [x, counts])
            check(got, evaluate_np(op, dtype, x, counts), [x, counts])
        for lanes in [n for n in LANES if n * dtype.itemsize <= widest()]:
            for count in (0, 1, 3, bits - 1, bits, bits + 3):
                c = np.full(N, count).astype(NUMPY[dtype])
                got = execute(lambda a: UOp(op, (a, const(count, dtype))), [dtype], dtype, lanes, [x])
                check(got, evaluate_np(op, dtype, x, c), [x])


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64, dtypes.uint64, dtypes.int16], ids=str)
def test_shift_counts_of_another_width(dtype: DType) -> None:
    x = values(dtype, 5)
    counts = (np.arange(N) % (dtype.itemsize * 8 + 4)).astype(np.uint32)
    for op in (Ops.SHL, Ops.SHR):
        for lanes in [n for n in claimed(op, dtype) if n <= 8]:
            got = execute(lambda a, b: UOp(op, (a, b)), [dtype, dtypes.uint32], dtype, lanes, [x, counts])
            check(got, evaluate_np(op, dtype, x, counts.astype(NUMPY[dtype])), [x, counts])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_pairs_of_bitwise_operations(dtype: DType) -> None:
    """outer(inner(a, b), c), the inner one on either side; with a literal and a scalar among the operands."""
    a, b, c = (values(dtype, s) for s in range(3))
    lanes = 16 // dtype.itemsize
    literal, memory = const(90, dtype), load(param(4, dtype, N), 5)
    for outer in (Ops.AND, Ops.OR, Ops.XOR):
        for inner in (Ops.AND, Ops.OR, Ops.XOR):
            for swap in (False, True):

                def pair(x: UOp, y: UOp, z: UOp) -> UOp:
                    first = UOp(inner, (x, y))
                    return UOp(outer, (z, first) if swap else (first, z))

                inside = evaluate_np(inner, dtype, a, b)
                got = execute(pair, [dtype] * 3, dtype, lanes, [a, b, c])
                check(got, evaluate_np(outer, dtype, inside, c), [a, b, c])
                got = execute(lambda x, y, z: pair(x, y, literal), [dtype] * 3, dtype, lanes, [a, b, c])
                check(got, evaluate_np(outer, dtype, inside, np.full(N, 90).astype(a.dtype)), [a, b, c])
                got = execute(lambda x, y, z, w: pair(x, y, memory), [dtype] * 4, dtype, lanes, [a, b, c, c])
                check(got, evaluate_np(outer, dtype, inside, np.full(N, c[5])), [a, b, c])


@pytest.mark.parametrize("dtype", INTS, ids=str)
def test_division(dtype: DType) -> None:
    a, b = values(dtype, 6), values(dtype, 7)
    b[b == 0] = 3
    b[(b == -1) & (a == np.iinfo(NUMPY[dtype]).min)] = 5
    for op in (Ops.CDIV, Ops.CMOD):
        check(
            execute(lambda x, y: UOp(op, (x, y)), [dtype, dtype], dtype, 1, [a, b]),
            evaluate_np(op, dtype, a, b),
            [a, b],
        )
    both = execute(
        lambda x, y: UOp(Ops.ADD, (UOp(Ops.CDIV, (x, y)), UOp(Ops.CMOD, (x, y)))), [dtype, dtype], dtype, 1, [a, b]
    )
    check(
        both,
        evaluate_np(Ops.ADD, dtype, evaluate_np(Ops.CDIV, dtype, a, b), evaluate_np(Ops.CMOD, dtype, a, b)),
        [a, b],
    )


@pytest.mark.parametrize("dtype", [d for d in ALL if d.is_float and d.itemsize >= 4], ids=str)
def test_mulacc(dtype: DType) -> None:
    a, b, c = (values(dtype, s) for s in range(3))
    for lanes in claimed(Ops.MULACC, dtype):
        got = execute(lambda x, y, z: UOp(Ops.MULACC, (x, y, z)), [dtype] * 3, dtype, lanes, [a, b, c])
        check(got, evaluate_np(Ops.MULACC, dtype, a, b, c), [a, b, c])


@pytest.mark.parametrize("src", ALL, ids=str)
@pytest.mark.parametrize("dst", ALL, ids=str)
def test_cast(src: DType, dst: DType) -> None:
    x = values(src, 8)
    want = cast_np(x, src, dst)
    for lanes in [
        n for n in LANES if n * max(src.itemsize, dst.itemsize) <= widest() and renderer().supports_cast(src, dst, n)
    ]:
        check(execute(lambda a: UOp(Ops.CAST, (a,), dst), [src], dst, lanes, [x]), want, [x])


@pytest.mark.parametrize(
    "src,dst", [(a, b) for a in ALL for b in ALL if a.itemsize == b.itemsize and a is not b], ids=str
)
def test_bitcast(src: DType, dst: DType) -> None:
    x = values(src, 9)
    raw = np.ascontiguousarray(to_storage_np(x, src))
    want = from_storage_np(raw.view(NUMPY[dst]) if dst is not dtypes.bool else raw.view(np.uint8) != 0, dst)
    for lanes in (1, 4) if dst is not dtypes.bool else (1,):
        check(execute(lambda a: UOp(Ops.BITCAST, (a,), dst), [src], dst, lanes, [x]), want, [x])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_broadcast_of_scalars(dtype: DType) -> None:
    """A scalar beside a vector fills all lanes: from memory, from a register, from a literal."""
    x = values(dtype, 1)
    op = Ops.XOR if dtype is dtypes.bool else Ops.MAX
    for lanes in [n for n in claimed(op, dtype) if n > 1]:
        source = param(2, dtype, N)
        for other in (load(source, 3), const(1, dtype)):
            got = (
                execute(lambda a: UOp(op, (a, other)), [dtype], dtype, lanes, [x])
                if other.is_const
                else execute(lambda a, b: UOp(op, (a, load(source, 3))), [dtype, dtype], dtype, lanes, [x, x])
            )
            y = np.full(N, x[3] if not other.is_const else 1).astype(x.dtype)
            check(got, evaluate_np(op, dtype, x, y), [x, y])


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_stack_and_lanes(dtype: DType) -> None:
    """Lanes go into scalars and back, in reverse order."""
    x = values(dtype, 2)
    for lanes in [n for n in LANES[1:] if n * dtype.itemsize <= widest()]:

        def build(v: UOp, n: int = lanes) -> UOp:
            order = UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), n - 1 - i) for i in range(n)))
            return UOp(Ops.INDEX, (v, order))

        want = x.reshape(-1, lanes)[:, ::-1].reshape(-1)
        check(execute(build, [dtype], dtype, lanes, [x]), want, [x])

        def scalars(v: UOp, n: int = lanes) -> UOp:
            parts = [lane(v, n - 1 - i) for i in range(n)]
            return UOp(
                Ops.STACK, tuple(UOp(Ops.MAX, (p, const(0, dtype))) if i % 2 else p for i, p in enumerate(parts))
            )

        want = want.copy()
        want[1::2] = evaluate_np(Ops.MAX, dtype, want[1::2], np.zeros_like(want[1::2]))
        check(execute(scalars, [dtype], dtype, lanes, [x]), want, [x])
