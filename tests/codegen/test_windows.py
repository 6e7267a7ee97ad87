"""Windows and merged axes: what they compute, what is refused, and what the loops look like."""
from math import gcd

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.loops import multiply_add_bodies
from tests.codegen.reference import check, renderer
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.nests import one_closer_each
from tinyhost.codegen.opt import apply_opt
from tinyhost.codegen.phases import split_phases
from tinyhost.errors import KernelOptError
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt, UOp
from tinyhost.uop import OptOps as O

LEVELS = ["x86-64-v3", "PYTHON:x86-64-v4"]
WINDOW = Opt(O.STAGE, 0, ((4,), (2, 5), (3, 6)))
TILE = (Opt(O.LANE, 2, 8), Opt(O.UPCAST, 2, 2), Opt(O.UPCAST, 1, 4))
# batch, in channels, height, width, out channels, filter, padding
SHAPES = [(2, 3, 8, 9, 6, 3, 1), (3, 2, 7, 7, 5, 3, 1), (2, 2, 10, 10, 4, 5, 2), (2, 2, 7, 9, 4, 3, 0),
          (2, 2, 3, 17, 4, 3, 1), (2, 2, 17, 2, 4, 3, 1)]


def merge(shape):
    """MERGE of the rows of an output image, at the pitch of its window."""
    _, _, _, w, _, f, pad = shape
    return Opt(O.MERGE, 2, (3, w + 2 * pad))


def kernel(case):
    return Kernel(one_closer_each(case[0]), renderer())


def innermost(program):
    """The nodes of the innermost loop bodies that hold a MULACC."""
    return multiply_add_bodies(program.src[1].src)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_window_holds_the_padding(shape, level):
    p = check(*K.conv(*shape, opts=(WINDOW,)), level)
    n, ci, h, w, _, f, pad = shape
    assert p.arg.scratch == 4 * ci * (h + 2 * pad) * (w + 2 * pad)
    fma = [u for body in innermost(p) for u in body]
    assert fma and not any(u.op is Ops.LOAD and len(u.src) > 1 for u in fma), "no gate where products are summed"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_rows_of_an_image_run_as_one_axis(shape, level):
    check(*K.conv(*shape, opts=(WINDOW, merge(shape))), level)
    p = check(*K.conv(*shape, opts=(WINDOW, merge(shape), *TILE)), level)
    for body in innermost(p):
        fma = [u for u in body if u.op is Ops.MULACC]
        loads = [u for u in body if u.op is Ops.LOAD and u.src[0].src[0].without_after.op is Ops.PARAM]
        assert len(fma) == 8 and all(u.shape == (8,) for u in fma)
        assert len([u for u in loads if u.shape == (8,)]) == 2 and len([u for u in loads if u.shape == ()]) == 4


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_a_batch_of_images_runs_as_one_axis(shape, level):
    n, _, h, w, _, f, pad = shape
    rows, pitch = h + 2 * pad, w + 2 * pad
    opts = (Opt(O.STAGE, 0, ((4,), (0,), (2, 5), (3, 6))), merge(shape), Opt(O.MERGE, 0, (2, rows * pitch)),
            Opt(O.LANE, 1, 8), Opt(O.UPCAST, 1, 2), Opt(O.UPCAST, 0, 2))
    check(*K.conv(*shape, opts=opts), level)


@pytest.mark.parametrize("level", LEVELS)
def test_an_image_without_padding_is_read_in_place(level):
    shape = (2, 2, 7, 9, 4, 3, 0)
    p = check(*K.conv(*shape, opts=(merge(shape), *TILE)), level)
    assert p.arg.scratch == 4 * 4 * (4 * 9 + 7), "four rows of results, no window"


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("shape", SHAPES[:4], ids=str)
def test_merged_loops_may_stand_around_the_channels(shape, level):
    opts = (WINDOW, merge(shape), Opt(O.LANE, 2, 8), Opt(O.UPCAST, 1, 2), Opt(O.REORDER, None, (0, 2, 1, 4, 5, 6)))
    check(*K.conv(*shape, opts=opts), level)


@pytest.mark.parametrize("level", LEVELS)
def test_windows_of_parts_of_a_sum(level):
    shape = (2, 4, 8, 9, 6, 3, 1)
    opts = (Opt(O.GROUPTOP, 0, 2), Opt(O.STAGE, 0, ((5,), (2, 6), (3, 7))), Opt(O.MERGE, 2, (3, 11)),
            Opt(O.LANE, 3, 8), Opt(O.UPCAST, 1, 2))
    sink, bufs = K.conv(*shape, opts=opts)
    bufs[0][:] = np.nan  # what the output held before does not matter
    p = check(sink, bufs, level)
    assert p.arg.scratch == 4 * (2 * 10 * 11 + 2 * (7 * 11 + 9)), "half of the channels at a time"


def strided(n, ci, h, w, co, f, step, dilation=1, opts=None):
    """2-d convolution of padded images with steps and dilation."""
    pad = dilation * (f - 1) // 2
    oh, ow = ((s + 2 * pad - dilation * (f - 1) - 1) // step + 1 for s in (h, w))
    o, x, wt = K.buf(0, n * co * oh * ow), K.buf(1, n * ci * h * w), K.buf(2, co * ci * f * f)
    b, c, y, z = K.out(0, n), K.out(1, co), K.out(2, oh), K.out(3, ow)
    k, fy, fx = K.red(4, ci), K.red(5, f), K.red(6, f)
    yy, zz = y * step + fy * dilation, z * step + fx * dilation
    ok = (yy >= pad) & (yy < h + pad) & (zz >= pad) & (zz < w + pad)
    idx = ((b * ci + k) * h + (yy - pad)) * w + (zz - pad)
    ld = ok.where(x.index(idx.valid(ok)), UOp.const(0.0, x.dtype))
    v = (ld * wt.index(((c * ci + k) * f + fy) * f + fx)).reduce(k, fy, fx, arg=Ops.ADD)
    sink = K.kernel(o.index(((b * co + c) * oh + y) * ow + z).store(v).end(b, c, y, z), opts=opts)
    return sink, [K.zeros(n * co * oh * ow), K.data(n * ci * h * w, seed=1), K.data(co * ci * f * f, seed=2)]


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("f, step, dilation", [(3, 2, 1), (5, 2, 1), (3, 3, 1), (3, 1, 2), (3, 2, 2), (2, 3, 1)])
def test_steps_and_dilation(f, step, dilation, level):
    size = (2, 2, 13, 15, 4)
    check(*strided(*size, f, step, dilation, opts=(WINDOW,)), level)
    k = kernel(strided(*size, f, step, dilation))
    apply_opt(k, WINDOW)
    y, z = k.windows[0].sides[1:]
    assert y.phases == z.phases == step // gcd(step, dilation)
    pitch = z.size
    opts = (WINDOW, Opt(O.MERGE, 2, (3, pitch)), Opt(O.LANE, 2, 8), Opt(O.UPCAST, 1, 2))
    check(*strided(*size, f, step, dilation, opts=opts), level)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("size", [(2, 3, 8, 4, 3), (2, 2, 7, 5, 3), (2, 4, 12, 2, 5)], ids=str)
def test_conditions_around_products_become_planes(size, level):
    n, ci, h, co, f = size
    sink, bufs = K.conv_input_gradient(*size)
    pitch = h + f - 1
    window = Opt(O.STAGE, 1, ((6,), (2, 4), (3, 5)))
    opts = (window, Opt(O.MERGE, 2, (3, pitch)), Opt(O.LANE, 2, 8), Opt(O.UPCAST, 1, 2))
    for o in (opts[:1], opts):
        p = check(sink.replace(arg=K.kernel(opts=o).arg), bufs, level)
    held = 2 * ((h - 1) * pitch + h)
    assert p.arg.scratch == 4 * (co * pitch * pitch + pitch * pitch + held), "window, one plane, results of two rows"


@pytest.mark.parametrize("level", LEVELS)
def test_infinite_weights_do_not_reach_over_the_edge(level):
    size = (1, 2, 6, 3, 3)
    sink, bufs = K.conv_input_gradient(*size)
    bufs[1][:] = np.inf
    opts = (Opt(O.STAGE, 1, ((5,), (1, 3), (2, 4))), Opt(O.MERGE, 1, (2, 8)), Opt(O.LANE, 1, 8))
    with np.errstate(invalid="ignore"):
        check(sink.replace(arg=K.kernel(opts=opts).arg), bufs, level)


@pytest.mark.parametrize("opts, text", [
    ((Opt(O.MERGE, 2, 3),), "its argument is the inner axis and the pitch"),
    ((Opt(O.MERGE, 2, (9, 11)),), "there is no axis 9"),
    ((Opt(O.MERGE, 9, (3, 11)),), "there is no axis 9"),
    ((Opt(O.MERGE, 2, (3, 11)),), "STAGE a window first"),
    ((WINDOW, Opt(O.MERGE, 2, (3, 5))), "would overlap"),
    ((WINDOW, Opt(O.MERGE, 2, (2, 11))), "would overlap"),
    ((WINDOW, Opt(O.MERGE, 2, (3, 12))), "a pitch of 12 does not describe"),
    ((WINDOW, Opt(O.MERGE, 1, (3, 11))), "a pitch of 11 does not describe"),
    ((WINDOW, Opt(O.MERGE, 4, (3, 11))), "must be an output axis of known length that is not split"),
    ((WINDOW, Opt(O.LANE, 3, 8), Opt(O.MERGE, 2, (3, 11))), "must be an output axis of known length"),
    ((WINDOW, Opt(O.MERGE, 2, (3, 11)), Opt(O.PADTO, 0, 4)), "PADTO comes before STAGE and MERGE"),
    ((WINDOW, Opt(O.MERGE, 2, (3, 11)), Opt(O.LANE, 2, 8), Opt(O.STAGE, 2, ())), "merged axes are staged already"),
    ((WINDOW, Opt(O.MERGE, 2, (3, 11)), Opt(O.THREAD, 2, 2)), "is not an axis of every store"),
    ((WINDOW, Opt(O.UPCAST, 0, 2)), "which is no axis of its window"),
    ((WINDOW, WINDOW), "one window is staged already"),
    ((Opt(O.STAGE, 0, ((4,), (2, 6), (3, 5))),), "otherwise than through the sums of the groups"),
    ((Opt(O.STAGE, 0, ((4,), (3, 6))),), "inside one filling of the panel"),
    ((Opt(O.STAGE, 0, ((4,), (4,), (2, 5), (3, 6))),), "a group repeats an axis"),
], ids=str)
def test_refusals(opts, text):
    r = renderer()
    r.caps = type(r.caps)(**{**vars(r.caps), "threads": 2})
    k = Kernel(one_closer_each(K.conv(4, 3, 8, 9, 6, 3, 1)[0]), r)
    for o in opts[:-1]:
        apply_opt(k, o)
    axes, applied = list(k.axes), list(k.applied)
    with pytest.raises(KernelOptError) as e:
        apply_opt(k, opts[-1])
    assert text in str(e.value) and str(opts[-1]) in str(e.value)
    assert k.axes == axes and k.applied == applied


def test_a_window_needs_a_range_that_moves_by_one():
    k = kernel(strided(2, 2, 13, 15, 4, 3, 2, 3))
    with pytest.raises(KernelOptError, match="otherwise than through the sums of the groups"):
        apply_opt(k, WINDOW)


def test_merge_wants_results_that_go_to_one_store_and_are_not_read():
    k = kernel(K.add(64))
    with pytest.raises(KernelOptError, match="there is no axis 1"):
        apply_opt(k, Opt(O.MERGE, 0, (1, 8)))
    x, i, j = K.buf(0, 48), K.out(0, 6), K.out(1, 8)
    k = kernel((K.kernel(x.index(i * 8 + j).store(x.index(i * 8 + j) + 1).end(i, j)), [np.zeros(48, np.float32)]))
    with pytest.raises(KernelOptError, match="reads what it writes"):
        apply_opt(k, Opt(O.MERGE, 0, (1, 8)))


def test_remainders_become_loops():
    o, x, y, t = K.buf(0, 12), K.buf(1, 8), K.out(0, 12), K.red(1, 3)
    at = y + t
    ok = (at % 2 < 1)
    load = ok.where(x.index((at // 2).valid(ok)), UOp.const(0.0, x.dtype))
    sink = K.kernel(o.index(y).store(load.reduce(t, arg=Ops.ADD)).end(y))
    parts = split_phases(sink)
    sizes = sorted(u.src[0].const_value for u in parts.toposort() if u.op is Ops.RANGE and u.arg[-1] is AxisType.WEAK)
    assert sizes == [2, 6]
    bufs = [K.zeros(12), K.data(8, seed=1)]
    check(sink, bufs)
    check(parts, bufs)
    assert split_phases(K.matmul(4, 4, 4)[0]) is K.matmul(4, 4, 4)[0], "nothing to do without remainders"


def test_odd_lengths_keep_their_remainders():
    o, x, y, t = K.buf(0, 13), K.buf(1, 8), K.out(0, 13), K.red(1, 3)
    ok = ((y + t) % 2 < 1)
    load = ok.where(x.index(((y + t) // 2).valid(ok)), UOp.const(0.0, x.dtype))
    sink = K.kernel(o.index(y).store(load.reduce(t, arg=Ops.ADD)).end(y))
    assert split_phases(sink) is sink
    check(sink, [K.zeros(13), K.data(8, seed=1)])
