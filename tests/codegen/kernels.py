"""Kernel ASTs built by hand, as the scheduler hands them over."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import KernelInfo, Opt, UOp
from tinyhost.uop.semantics import carrier_np

Case = tuple[UOp, list[np.ndarray]]


def buf(slot: int, size: int, dtype: DType = dtypes.float32) -> UOp:
    """Storage of the kernel."""
    return UOp.param(slot, dtype, size)


def out(i: int, n: int) -> UOp:
    """An output range."""
    return UOp.range(n, i)


def red(i: int, n: int) -> UOp:
    """A reduce range."""
    return UOp.range(n, i, AxisType.REDUCE)


def kernel(*ends: UOp, opts: tuple[Opt, ...] | None = None, **more: Any) -> UOp:
    """The SINK."""
    return UOp.sink(*ends, arg=KernelInfo(opts_to_apply=opts, **more))


def data(size: int, dtype: DType = dtypes.float32, seed: int = 0) -> np.ndarray:
    """Random contents."""
    rng = np.random.default_rng(seed)
    if dtype.is_float:
        return rng.standard_normal(size).astype(carrier_np(dtype))
    if dtype is dtypes.bool:
        return rng.integers(0, 2, size).astype(np.bool_)
    info = np.iinfo(carrier_np(dtype))
    return rng.integers(info.min, info.max, size, dtype=carrier_np(dtype), endpoint=True)


def zeros(size: int, dtype: DType = dtypes.float32) -> np.ndarray:
    """An output's first contents."""
    return np.zeros(size, carrier_np(dtype))


def add(n: int, dtype: DType = dtypes.float32, opts: tuple[Opt, ...] | None = None) -> Case:
    """c = a + b."""
    c, a, b, i = buf(0, n, dtype), buf(1, n, dtype), buf(2, n, dtype), out(0, n)
    return kernel(c.index(i).store(a.index(i) + b.index(i)).end(i), opts=opts), [
        zeros(n, dtype),
        data(n, dtype, 1),
        data(n, dtype, 2),
    ]


def matmul(
    m: int, n: int, k: int, opts: tuple[Opt, ...] | None = None, transposed: bool = False, dtype: DType = dtypes.float32
) -> Case:
    """c = a @ b, or a @ b.T."""
    c, a, b = buf(0, m * n, dtype), buf(1, m * k, dtype), buf(2, k * n, dtype)
    i, j, kk = out(0, m), out(1, n), red(2, k)
    at = j * k + kk if transposed else kk * n + j
    v = (a.index(i * k + kk) * b.index(at)).reduce(kk, arg=Ops.ADD)
    bufs = [zeros(m * n, dtype), data(m * k, dtype, 1), data(k * n, dtype, 2)]
    return kernel(c.index(i * n + j).store(v).end(i, j), opts=opts), bufs


def row_reduce(
    m: int, n: int, op: Ops = Ops.ADD, dtype: DType = dtypes.float32, opts: tuple[Opt, ...] | None = None
) -> Case:
    """One value per row."""
    o, x, i, k = buf(0, m, dtype), buf(1, m * n, dtype), out(0, m), red(1, n)
    return kernel(o.index(i).store(x.index(i * n + k).reduce(k, arg=op)).end(i), opts=opts), [
        zeros(m, dtype),
        data(m * n, dtype),
    ]


def column_reduce(m: int, n: int, op: Ops = Ops.ADD) -> Case:
    """One value per column."""
    o, x, j, k = buf(0, n), buf(1, m * n), out(0, n), red(1, m)
    return kernel(o.index(j).store(x.index(k * n + j).reduce(k, arg=op)).end(j)), [zeros(n), data(m * n)]


def softmax(m: int, n: int, same_range: bool = False) -> Case:
    """Maximum, sum of exponentials and quotient of each row in one kernel."""
    o, x, i, j = buf(0, m * n), buf(1, m * n), out(0, m), out(1, n)
    k1 = red(2, n)
    k2 = k1 if same_range else red(3, n)
    top = x.index(i * n + k1).reduce(k1, arg=Ops.MAX)

    def e(k: UOp) -> UOp:
        return UOp(Ops.EXP2, ((x.index(i * n + k) - top) * UOp.const(1.4426950408889634),))
    total = e(k2).reduce(k2, arg=Ops.ADD)
    v = e(j) * UOp(Ops.RECIPROCAL, (total,))
    return kernel(o.index(i * n + j).store(v).end(i, j)), [zeros(m * n), data(m * n)]


def conv(n: int, ci: int, h: int, w: int, co: int, f: int, pad: int, opts: tuple[Opt, ...] | None = None) -> Case:
    """2-d convolution with padding by gates."""
    oh, ow = h + 2 * pad - f + 1, w + 2 * pad - f + 1
    o, x, wt = buf(0, n * co * oh * ow), buf(1, n * ci * h * w), buf(2, co * ci * f * f)
    b, c, y, z = out(0, n), out(1, co), out(2, oh), out(3, ow)
    k, fy, fx = red(4, ci), red(5, f), red(6, f)
    yy, zz = y + fy, z + fx
    idx = ((b * ci + k) * h + (yy - pad)) * w + (zz - pad)
    ld = x.index(idx)
    if pad:
        ok = (yy >= pad) & (yy < h + pad) & (zz >= pad) & (zz < w + pad)
        ld = ok.where(x.index(idx.valid(ok)), UOp.const(0.0, dtypes.float32))
    v = (ld * wt.index(((c * ci + k) * f + fy) * f + fx)).reduce(k, fy, fx, arg=Ops.ADD)
    sink = kernel(o.index(((b * co + c) * oh + y) * ow + z).store(v).end(b, c, y, z), opts=opts)
    return sink, [zeros(n * co * oh * ow), data(n * ci * h * w, seed=1), data(co * ci * f * f, seed=2)]


def conv_input_gradient(n: int, ci: int, h: int, co: int, f: int) -> Case:
    """dx of an unpadded convolution: the gate stands around the product."""
    oh = h - f + 1
    o, wt, g = buf(0, n * ci * h * h), buf(1, co * ci * f * f), buf(2, n * co * oh * oh)
    b, c, y, x = out(0, n), out(1, ci), out(2, h), out(3, h)
    fy, fx, k = red(4, f), red(5, f), red(6, co)
    yy, xx = y - fy, x - fx
    ok = (yy >= 0) & (yy < oh) & (xx >= 0) & (xx < oh)
    product = wt.index(((k * ci + c) * f + fy) * f + fx) * g.index((((b * co + k) * oh + yy) * oh + xx).valid(ok))
    v = ok.where(product, UOp.const(0.0, dtypes.float32)).reduce(fy, fx, k, arg=Ops.ADD)
    sink = kernel(o.index(((b * ci + c) * h + y) * h + x).store(v).end(b, c, y, x))
    weights = data(co * ci * f * f, seed=1)
    return sink, [zeros(n * ci * h * h), weights, data(n * co * oh * oh, seed=2)]


def conv_weight_gradient(n: int, ci: int, h: int, co: int, f: int) -> Case:
    """dw of an unpadded convolution: both operands are contiguous along the innermost reduction."""
    oh = h - f + 1
    o, x, g = buf(0, co * ci * f * f), buf(1, n * ci * h * h), buf(2, n * co * oh * oh)
    c, k, fy, fx = out(0, co), out(1, ci), out(2, f), out(3, f)
    b, y, z = red(4, n), red(5, oh), red(6, oh)
    v = (x.index(((b * ci + k) * h + y + fy) * h + z + fx) * g.index(((b * co + c) * oh + y) * oh + z)).reduce(
        b, y, z, arg=Ops.ADD
    )
    sink = kernel(o.index(((c * ci + k) * f + fy) * f + fx).store(v).end(c, k, fy, fx))
    return sink, [zeros(co * ci * f * f), data(n * ci * h * h, seed=1), data(n * co * oh * oh, seed=2)]
