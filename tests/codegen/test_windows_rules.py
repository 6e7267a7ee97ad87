"""Hand rules for convolutions: what is chosen for each kind, what the inner loops hold, and the values."""
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.loops import multiply_add_bodies
from tests.codegen.reference import check, renderer
from tests.codegen.test_windows import strided
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.program import linear_program, optimised, prepared
from tinyhost.codegen.window_rules import window_contraction
from tinyhost.ops import Ops
from tinyhost.uop import OptOps as O
from tinyhost.uop import UOp

LEVELS = ["x86-64-v3", "x86-64-v4"]
CHECKED = ["x86-64-v3", "PYTHON:x86-64-v4"]


def target(level):
    r = renderer(level)
    r.caps = replace(r.caps, l2_bytes=2 << 20)
    return r


def chosen(case, level) -> tuple[int, Kernel]:
    """What the rules for windows choose for a kernel: rows that share an operand, and the kernel."""
    k = prepared(case[0], target(level))
    return window_contraction(k), k


def ops(k: Kernel) -> list[O]:
    return [o.op for o in k.applied]




def bodies(case, level):
    """Innermost loops of the multiply-adds, as the renderer gets them."""
    r = target(level)
    return multiply_add_bodies(linear_program(optimised(case[0], r), r))


CONVOLUTIONS = {
    "3x3": lambda: K.conv(8, 64, 56, 56, 64, 3, 1),
    "3x3, small image": lambda: K.conv(8, 64, 7, 7, 64, 3, 1),
    "3x3, one image": lambda: K.conv(1, 64, 28, 28, 64, 3, 1),
    "5x5 without padding": lambda: K.conv(8, 32, 22, 22, 32, 5, 0),
    "3x3, step 2": lambda: strided(8, 64, 28, 28, 64, 3, 2),
    "1x1, step 2": lambda: strided(8, 64, 28, 28, 64, 1, 2),
    "input gradient": lambda: K.conv_input_gradient(8, 32, 10, 64, 3),
}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_rows_are_merged_and_the_inner_loop_is_multiply_adds(name, level):
    case = CONVOLUTIONS[name]()
    rows, k = chosen(case, level)
    lanes = k.caps.vector_bytes // 4
    assert rows and O.MERGE in ops(k) and O.LANE in ops(k)
    assert (O.STAGE in ops(k)) is (name != "5x5 without padding")
    for body in bodies(case, level):
        fmas = [u for u in body if u.op is Ops.MULACC]
        loads = [u for u in body if u.op is Ops.LOAD and u.src[0].src[0].without_after.op is Ops.PARAM]
        assert all(u.shape == (lanes,) for u in fmas)
        assert not any(len(u.src) > 1 for u in loads), "a gate in the inner loop"
        assert not any(u.op is Ops.STACK and len(u.src) == lanes and u.src[0] is not u.src[1] for u in body), "by lane"
        assert len(fmas) >= 1.3 * len(loads)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("case", [lambda: K.matmul(256, 256, 256), lambda: K.matmul(64, 64, 64, transposed=True),
                                  lambda: K.conv_weight_gradient(4, 16, 12, 16, 3), lambda: K.row_reduce(64, 64),
                                  lambda: K.add(1 << 10), lambda: K.conv(2, 4, 40, 3, 4, 3, 1)],
                         ids=["matmul", "matmul, transposed", "weight gradient", "sum", "add", "few channels"])
def test_other_kernels_are_left_alone(case, level):
    rows, k = chosen(case(), level)
    assert rows == 0 and not k.applied and not k.windows and not k.merges


def test_an_image_that_does_not_fit_the_cache_is_copied_in_rows():
    rows, k = chosen(K.conv(1, 64, 224, 224, 64, 3, 1), "x86-64-v4")
    assert rows and O.MERGE not in ops(k)
    (window,) = k.windows
    assert [s.extent for s in window.sides] == [3, 64, 226] or [s.extent for s in window.sides] == [64, 3, 226]
    assert 4 * window.size <= k.caps.l2_bytes // 2


def few_channels(n, ci, h, co, f, step):
    """Weights' gradient of a padded convolution with a step, over few channels."""
    pad = f // 2
    oh = (h + 2 * pad - f) // step + 1
    o, x, g = K.buf(0, co * ci * f * f), K.buf(1, n * ci * h * h), K.buf(2, n * co * oh * oh)
    c, k, fy, fx = K.out(0, co), K.out(1, ci), K.out(2, f), K.out(3, f)
    b, y, z = K.red(4, n), K.red(5, oh), K.red(6, oh)
    yy, zz = y * step + fy, z * step + fx
    ok = (yy >= pad) & (yy < h + pad) & (zz >= pad) & (zz < h + pad)
    at = ((b * ci + k) * h + yy - pad) * h + zz - pad
    ld = ok.where(x.index(at.valid(ok)), UOp.const(0.0, x.dtype))
    v = (ld * g.index(((b * co + c) * oh + y) * oh + z)).reduce(b, y, z, arg=Ops.ADD)
    sink = K.kernel(o.index(((c * ci + k) * f + fy) * f + fx).store(v).end(c, k, fy, fx))
    return sink, [K.zeros(co * ci * f * f), K.data(n * ci * h * h, seed=1), K.data(n * co * oh * oh, seed=2)]


@pytest.mark.parametrize("level", CHECKED)
@pytest.mark.parametrize("args", [(2, 3, 32, 8, 3, 2), (1, 1, 16, 4, 5, 1), (3, 2, 32, 6, 3, 1)], ids=str)
def test_weights_of_few_channels_are_summed_along_rows(args, level):
    case = few_channels(*args)
    rows, k = chosen(case, level.removeprefix("PYTHON:"))
    assert rows == args[3] and O.LANE in ops(k) and k.of_kind(*{a.kind for a in k.axes if a.reduce})
    sink, bufs = case
    bufs[0][:] = np.nan
    check(sink, bufs, level, tol=1e-4)


SMALL = {
    "3x3": lambda: K.conv(2, 5, 9, 11, 12, 3, 1),
    "5x5": lambda: K.conv(3, 2, 12, 12, 9, 5, 2),
    "no padding": lambda: K.conv(2, 3, 13, 13, 10, 3, 0),
    "small images": lambda: K.conv(5, 8, 4, 4, 16, 3, 1),
    "narrow": lambda: K.conv(2, 4, 20, 2, 12, 3, 1),
    "step 2": lambda: strided(2, 3, 15, 17, 10, 3, 2),
    "step 3, 2x2": lambda: strided(2, 3, 16, 16, 10, 2, 3),
    "dilation": lambda: strided(2, 3, 15, 17, 10, 3, 1, 2),
    "1x1, step 2": lambda: strided(2, 8, 15, 15, 10, 1, 2),
    "input gradient": lambda: K.conv_input_gradient(2, 9, 9, 4, 3),
    "weight gradient": lambda: K.conv_weight_gradient(3, 5, 9, 6, 3),
}


@pytest.mark.parametrize("level", CHECKED)
@pytest.mark.parametrize("name", SMALL)
def test_values(name, level):
    check(*SMALL[name](), level)


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("name", SMALL)
def test_values_in_parts(name, threads, monkeypatch):
    """The parts of a kernel for several threads, run one after the other."""
    caps = renderer("x86-64-v3").caps
    many = replace(caps, threads=threads)
    monkeypatch.setattr("tinyhost.codegen.thread_rules.THREAD_WORK", 64)
    sink, bufs = SMALL[name]()
    monkeypatch.setattr("tinyhost_cpu.clang.ClangRenderer.__init__", _with(many))
    check(sink, bufs, "x86-64-v3")


def _with(caps):
    from tinyhost_cpu.clang import ClangRenderer
    plain = ClangRenderer.__init__

    def init(self, *args, **kwargs):
        plain(self, *args, **kwargs)
        self.caps = caps
    return init
