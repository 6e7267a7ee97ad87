"""Compiled kernels against the reference evaluation: shapes, dtypes, gates, gathers, several loops."""
import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.uop import UOp

NATIVE = [dtypes.bool, *dtypes.ints, dtypes.float16, dtypes.float32, dtypes.float64]


@pytest.mark.parametrize("n", [1, 3, 16, 31, 1000, 4096])
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_add(n, level):
    check(*K.add(n), level=level)


@pytest.mark.parametrize("dtype", NATIVE, ids=str)
def test_add_of_each_dtype(dtype):
    check(*K.add(101, dtype))


@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (2, 3, 4), (8, 32, 16), (13, 37, 11), (64, 64, 64), (1, 100, 50), (100, 1, 50)], ids=str
)
def test_matmul(shape):
    check(*K.matmul(*shape))


@pytest.mark.parametrize("shape", [(4, 5, 64), (13, 7, 67)], ids=str)
def test_matmul_of_transposed(shape):
    check(*K.matmul(*shape, transposed=True))


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX], ids=str)
@pytest.mark.parametrize("shape", [(1, 1000), (7, 64), (5, 67), (100, 3), (3, 1003)], ids=str)
def test_row_reduce(op, shape):
    check(*K.row_reduce(*shape, op))


@pytest.mark.parametrize(
    "dtype", [dtypes.int32, dtypes.uint8, dtypes.int64, dtypes.float64, dtypes.bool, dtypes.float16], ids=str
)
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX, Ops.MUL], ids=str)
def test_row_reduce_of_each_dtype(op, dtype):
    check(*K.row_reduce(3, 37, op, dtype), tol=5e-3 if dtype is dtypes.float16 else 2e-5)


@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX], ids=str)
@pytest.mark.parametrize("shape", [(10, 64), (33, 67), (5, 1)], ids=str)
def test_column_reduce(op, shape):
    check(*K.column_reduce(*shape, op))


@pytest.mark.parametrize("same_range", [False, True])
@pytest.mark.parametrize("shape", [(4, 64), (3, 37)], ids=str)
def test_softmax_in_one_kernel(shape, same_range):
    check(*K.softmax(*shape, same_range))


@pytest.mark.parametrize(
    "args", [(1, 3, 8, 8, 4, 3, 0), (2, 3, 7, 9, 5, 3, 1), (1, 1, 16, 16, 8, 5, 2), (1, 4, 28, 28, 8, 3, 1)], ids=str
)
def test_conv(args):
    check(*K.conv(*args))


def test_reverse_and_strides():
    n = 50
    o, x, i = K.buf(0, n), K.buf(1, 2 * n), K.out(0, n)
    check(K.kernel(o.index(i).store(x.index((n - 1 - i) * 2) + x.index(i * 2 + 1)).end(i)), [K.zeros(n), K.data(2 * n)])


def test_transpose():
    o, x, i, j = K.buf(0, 600), K.buf(1, 600), K.out(0, 20), K.out(1, 30)
    check(K.kernel(o.index(i * 30 + j).store(x.index(j * 20 + i)).end(i, j)), [K.zeros(600), K.data(600)])


def test_gather_by_loaded_index():
    o, x, ix, i = K.buf(0, 40), K.buf(1, 100), K.buf(2, 40, dtypes.int32), K.out(0, 40)
    at = ix.index(i)
    ok = (at >= 0) & (at < 100)
    value = ok.where(x.index(at.cast(dtypes.weakint).valid(ok)), UOp.const(0.0, dtypes.float32))
    index = np.random.default_rng(0).integers(-20, 120, 40).astype(np.int32)
    check(K.kernel(o.index(i).store(value).end(i)), [K.zeros(40), K.data(100), index])


@pytest.mark.parametrize("n", [33, 64])
def test_range_as_value(n):
    o, i = K.buf(0, n), K.out(0, n)
    check(
        K.kernel(o.index(i).store(((i * 3 + 7) // 5 % 4).cast(dtypes.float32) + i.cast(dtypes.float32)).end(i)),
        [K.zeros(n)],
    )


def test_compare_of_ranges_in_the_lane():
    o, x, i = K.buf(0, 64), K.buf(1, 64), K.out(0, 64)
    value = (i < 21).where(x.index(i), UOp.const(1.0, dtypes.float32))
    check(K.kernel(o.index(i).store(value).end(i)), [K.zeros(64), K.data(64)])


@pytest.mark.parametrize(
    "src",
    [
        dtypes.bool,
        dtypes.int8,
        dtypes.uint8,
        dtypes.int32,
        dtypes.uint32,
        dtypes.int64,
        dtypes.uint64,
        dtypes.float16,
        dtypes.float32,
        dtypes.float64,
    ],
    ids=str,
)
@pytest.mark.parametrize("dst", NATIVE, ids=str)
def test_cast(src, dst):
    n = 37
    o, x, i = K.buf(0, n, dst), K.buf(1, n, src), K.out(0, n)
    values = K.data(n, src)
    if src.is_float:
        with np.errstate(all="ignore"):
            values[:12] = np.array(
                [np.nan, np.inf, -np.inf, 3e9, -3e9, 255.5, -1.5, 0.5, -0.5, 1e20, 127.9, -129.5]
            ).astype(values.dtype)
    check(K.kernel(o.index(i).store(x.index(i).cast(dst)).end(i)), [K.zeros(n, dst), values], tol=0)


@pytest.mark.parametrize("op", [Ops.CMPLT, Ops.CMPNE, Ops.CMPEQ], ids=str)
@pytest.mark.parametrize(
    "dtype", [dtypes.int8, dtypes.int32, dtypes.float16, dtypes.float32, dtypes.float64, dtypes.uint64], ids=str
)
def test_compare(op, dtype):
    n = 37
    o, a, b, i = K.buf(0, n, dtypes.bool), K.buf(1, n, dtype), K.buf(2, n, dtype), K.out(0, n)
    x, y = K.data(n, dtype, 1), K.data(n, dtype, 2)
    y[:10] = x[:10]
    if dtype.is_float:
        x[5], y[6] = np.nan, np.nan
    check(K.kernel(o.index(i).store(UOp(op, (a.index(i), b.index(i)))).end(i)), [K.zeros(n, dtypes.bool), x, y])


@pytest.mark.parametrize(
    "op", [Ops.SHL, Ops.SHR, Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD, Ops.MAX, Ops.XOR], ids=str
)
@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.uint8, dtypes.int32, dtypes.uint32, dtypes.int64], ids=str)
def test_integer_ops(op, dtype):
    n = 64
    o, a, b, i = K.buf(0, n, dtype), K.buf(1, n, dtype), K.buf(2, n, dtype), K.out(0, n)
    x, y = K.data(n, dtype, 1), K.data(n, dtype, 2)
    y[:20] = np.arange(20) if op in (Ops.SHL, Ops.SHR) else np.array([0, 1, 2, 3, 7] * 4)
    if not dtype.is_unsigned:
        x[:4], y[:4] = np.iinfo(x.dtype).min, np.array([-1, 0, 1, -128])
    check(K.kernel(o.index(i).store(UOp(op, (a.index(i), b.index(i)))).end(i)), [K.zeros(n, dtype), x, y])


@pytest.mark.parametrize("op", [Ops.EXP2, Ops.LOG2, Ops.SIN, Ops.SQRT, Ops.RECIPROCAL, Ops.TRUNC], ids=str)
@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.float64], ids=str)
def test_float_functions(op, dtype):
    n = 64
    o, a, i = K.buf(0, n, dtype), K.buf(1, n, dtype), K.out(0, n)
    x = K.data(n, dtype, 1) * 10
    x[:8] = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e30, -1e-30, 0.5])
    with np.errstate(all="ignore"):
        check(K.kernel(o.index(i).store(UOp(op, (a.index(i),))).end(i)), [K.zeros(n, dtype), x], tol=1e-6)


def test_two_outputs_share_a_loop():
    n = 40
    o1, o2, x, i = K.buf(0, n), K.buf(1, n), K.buf(2, n), K.out(0, n)
    v = x.index(i)
    p = check(
        K.kernel(o1.index(i).store(v + 1).end(i), o2.index(i).store(v * 2).end(i)), [K.zeros(n), K.zeros(n), K.data(n)]
    )
    assert p.arg.outs == (0, 1) and p.arg.ins == (2,)


def test_in_place_is_not_computed_twice():
    n = 37
    x, i = K.buf(0, n), K.out(0, n)
    check(K.kernel(x.index(i).store(x.index(i) * 2 + 1).end(i)), [K.data(n)])


def test_mean_and_variance_in_one_kernel():
    m, n = 5, 48
    o, x, i, k1, k2 = K.buf(0, m), K.buf(1, m * n), K.out(0, m), K.red(1, n), K.red(2, n)
    mean = x.index(i * n + k1).reduce(k1, arg=Ops.ADD) * UOp.const(1 / n)
    d = x.index(i * n + k2) - mean
    check(K.kernel(o.index(i).store((d * d).reduce(k2, arg=Ops.ADD)).end(i)), [K.zeros(m), K.data(m * n)])


def test_two_reductions_of_one_loop():
    m, n = 4, 40
    o1, o2, x, i, k = K.buf(0, m), K.buf(1, m), K.buf(2, m * n), K.out(0, m), K.red(1, n)
    v = x.index(i * n + k)
    s1, s2 = v.reduce(k, arg=Ops.ADD), (v * v).reduce(k, arg=Ops.ADD)
    p = check(
        K.kernel(o1.index(i).store(s1).end(i), o2.index(i).store(s2).end(i)), [K.zeros(m), K.zeros(m), K.data(m * n)]
    )
    assert sum(u.op is Ops.RANGE and u.arg[0] == 1 for u in p.src[1].src) == 1


def test_nested_reductions():
    m, n, p = 3, 4, 40
    o, x, i, k1, k2 = K.buf(0, m), K.buf(1, m * n * p), K.out(0, m), K.red(1, n), K.red(2, p)
    top = x.index((i * n + k1) * p + k2).reduce(k2, arg=Ops.MAX)
    check(K.kernel(o.index(i).store(top.reduce(k1, arg=Ops.ADD)).end(i)), [K.zeros(m), K.data(m * n * p)])


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize("args", [(2, 3, 8, 4, 3), (1, 16, 12, 32, 5)], ids=str)
def test_conv_gradients(args, level):
    sink, bufs = K.conv_input_gradient(*args)
    bufs[1][3] = np.inf  # a weight outside the gate must not turn 0 into NaN
    check(sink, bufs, level)
    check(*K.conv_weight_gradient(*args), level)


def test_a_scalar_output_has_no_loop_of_its_own():
    o, x, k = K.buf(0, 1), K.buf(1, 1003), K.red(0, 1003)
    check(K.kernel(o.index(UOp.const(0)).store(x.index(k).reduce(k, arg=Ops.ADD))), [K.zeros(1), K.data(1003)])
