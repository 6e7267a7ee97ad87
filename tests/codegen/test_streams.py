"""Memory-bound kernels: streamed stores, blocks that are turned in registers, gathers without a condition per lane.

Counts what stands in the inner loop, and compares values with numpy on the reference device and, where llvmlite is
installed, as machine code.
"""
from dataclasses import replace

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer, run
from tinyhost import Tensor
from tinyhost.codegen import linear_program, optimised
from tinyhost.codegen.memory import STREAMED
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import Opt, UOp
from tinyhost.uop import OptOps as O
from tinyhost_cpu import llvm

needs_llvm = pytest.mark.skipif(bool(llvm.missing()), reason=llvm.missing() or "llvmlite is there")
LEVELS = ("x86-64-v3", "x86-64-v4")


def program(case, level="x86-64-v4", **caps):
    r = renderer(level)
    r.caps = replace(r.caps, **{"threads": 1, "stream_bytes": 0, **caps})
    sink = optimised(case[0], r)
    return sink.arg.applied_opts, linear_program(sink, r)


def streamed(uops):
    return [u for u in uops if u.op is Ops.STORE and u.tag == STREAMED]


def accesses(uops):
    """(scalar, vector) loads and stores of kernel arguments."""
    places = [u.src[0] for u in uops if u.op in (Ops.LOAD, Ops.STORE)]
    mine = [p for p in places if p.src[0].op is Ops.PARAM]
    return sum(p.op is Ops.INDEX for p in mine), sum(p.op is Ops.SHRINK for p in mine)


def machine(case, level="x86-64-v4", **caps):
    """The buffers after LLVM's code for a kernel."""
    r = llvm.LLVMRenderer(Target("CPU", "LLVM", level))
    r.caps = replace(r.caps, **{"threads": 1, **caps})
    out, made = run(case[0], case[1], r)
    return out, made.src[2].arg


def permuted(shape, order, dtype=dtypes.float32):
    """o = x.permute(order), and the buffers."""
    n = int(np.prod(shape))
    x, o = K.buf(1, n, dtype), K.buf(0, n, dtype)
    rs = [K.out(i, shape[a]) for i, a in enumerate(order)]
    steps = np.cumprod([1, *shape[:0:-1]])[::-1]
    at, to = UOp.const(0), UOp.const(0)
    for r, a in zip(rs, order):
        at, to = at + r * int(steps[a]), to * shape[a] + r
    return K.kernel(o.index(to).store(x.index(at)).end(*rs)), [K.zeros(n, dtype), K.data(n, dtype, 1)]


# *** streamed stores ***
@pytest.mark.parametrize("level", LEVELS)
def test_large_outputs_are_streamed(level):
    _, uops = program(K.add(4096), level, stream_bytes=16384)
    stores = [u for u in uops if u.op is Ops.STORE]
    assert stores and streamed(uops) == stores and all(u.src[0].op is Ops.SHRINK for u in stores)
    assert not streamed(program(K.add(4096), level, stream_bytes=16388)[1])  # one element short
    assert not streamed(program(K.add(4096), level)[1])


def test_only_whole_lines_at_multiples_of_a_vector_are_streamed():
    assert not streamed(program(K.add(4100), stream_bytes=4096)[1])  # the last block is moved back by 12 elements
    narrow = K.add(4096, opts=(Opt(O.LANE, 0, 4),))  # a quarter of a line an iteration
    assert not streamed(program(narrow, stream_bytes=4096)[1])
    assert streamed(program(K.add(4096, opts=(Opt(O.LANE, 0, 4), Opt(O.UPCAST, 0, 4))), stream_bytes=4096)[1])
    assert not streamed(program(K.add(4096, opts=()), stream_bytes=4096)[1])


def test_what_is_read_again_is_not_streamed():
    x, y, i = K.buf(0, 4096), K.buf(1, 4096), K.out(0, 4096)
    in_place = K.kernel(x.index(i).store(x.index(i) + y.index(i)).end(i))
    assert not streamed(program((in_place, []), stream_bytes=4096)[1])
    opts, uops = program(K.column_reduce(4096, 1024), stream_bytes=4096)
    assert any(o.op is O.GROUPTOP for o in opts) and not streamed(uops)  # the output holds the sums so far


def test_one_of_two_outputs_may_be_streamed():
    a, b, x, i = K.buf(0, 4096), K.buf(1, 4096, dtypes.int8), K.buf(2, 4096), K.out(0, 4096)
    v = x.index(i)
    sink = K.kernel(a.index(i).store(v + v).end(i), b.index(i).store(v.cast(dtypes.int8)).end(i))
    stores = streamed(program((sink, []), stream_bytes=8192)[1])
    assert stores and {u.src[0].src[0].arg.slot for u in stores} == {0}


def test_the_program_with_streamed_stores_is_legal_and_the_same():
    for size in (4096, 5000):
        check(*K.add(size), level="PYTHON:x86-64-v4")


@needs_llvm
@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("offset", [0, 1, 16, 17])
def test_streamed_code_takes_any_alignment(level, offset):
    n = 4096
    backing = np.zeros(n + 64 + 32, np.float32)
    start = (-backing.ctypes.data // 4) % 16 + offset
    a, b = K.data(n, seed=1), K.data(n, seed=2)

    class View(np.ndarray):
        def copy(self, order="C"):
            return self  # the kernel writes where the test says
    case = K.add(n)[0], [backing[start:start + n].view(View), a, b]
    _, text = machine(case, level, stream_bytes=4096)
    assert "!nontemporal" in text and text.count("ret void") == 2
    np.testing.assert_array_equal(backing[start:start + n], a + b)
    assert not backing[:start].any() and not backing[start + n:].any()


@needs_llvm
def test_plain_code_has_one_body():
    _, text = machine(K.add(4096))
    assert "nontemporal" not in text and text.count("ret void") == 1


# *** blocks ***
@pytest.mark.parametrize("level, lanes", [("x86-64-v3", 8), ("x86-64-v4", 16)])
def test_a_transpose_moves_whole_vectors(level, lanes):
    opts, uops = program(permuted((256, 512), (1, 0)), level)
    assert [o.op for o in opts][:2] == [O.LANE, O.UPCAST] and O.REORDER in [o.op for o in opts]
    scalar, vector = accesses(uops)
    assert not scalar and vector % (2 * lanes) == 0
    moved = sum(1 for u in uops if u.op is Ops.STORE) * lanes
    shuffles = [u for u in uops if u.op is Ops.INDEX and u.src[1].op is Ops.STACK]
    assert len(shuffles) == moved * (lanes.bit_length() - 1) // lanes  # one a vector in each round


@pytest.mark.parametrize("dtype, lanes", [(dtypes.uint8, 16), (dtypes.int16, 8), (dtypes.float64, 8)], ids=str)
def test_a_transpose_of_each_width(dtype, lanes):
    _, uops = program(permuted((128, 128), (1, 0), dtype))
    assert not accesses(uops)[0]
    assert {u.shape for u in uops if u.op is Ops.LOAD} == {(lanes,)}


@pytest.mark.parametrize("channels", [2, 3, 4, 8])
@pytest.mark.parametrize("order", [(0, 2, 1), (0, 2, 1)[::1]])
def test_channels_first_and_last(channels, order):
    for shape in ((2, 256, channels), (2, channels, 256)):
        _, uops = program(permuted(shape, order))
        scalar, vector = accesses(uops)
        assert not scalar and vector >= 2 * channels


@pytest.mark.parametrize("inner", [2, 3, 4, 8])
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX], ids=str)
def test_short_rows_are_reduced_in_vectors_of_rows(inner, op):
    _, uops = program(K.row_reduce(4096, inner, op))
    loads = [u for u in uops if u.op is Ops.LOAD]
    assert loads and all(u.shape == (16,) for u in loads)
    rows = sum(u.src[0].shape[0] for u in uops if u.op is Ops.STORE and u.src[0].src[0].op is Ops.PARAM)
    assert len(loads) * 16 == rows * inner  # each element is read once


def strided(n, step, first=0):
    x, o, i = K.buf(1, n * step), K.buf(0, n), K.out(0, n)
    return K.kernel(o.index(i).store(x.index(i * step + first)).end(i)), [K.zeros(n), K.data(n * step, seed=1)]


def test_every_second_element_is_two_vectors():
    assert accesses(program(strided(4096, 2))[1])[0] == 0
    assert accesses(program(strided(4096, 2, 1))[1])[0] > 0  # the last block would end behind the storage


SHAPES = [((64, 48), (1, 0)), ((37, 41), (1, 0)), ((3, 100), (1, 0)), ((100, 3), (1, 0)), ((9, 200), (1, 0)),
          ((2, 40, 3, 9), (0, 2, 3, 1)), ((3, 33, 4), (0, 2, 1)), ((2, 8, 50), (0, 2, 1)), ((4, 5, 64), (2, 1, 0))]


@pytest.mark.parametrize("dtype", [dtypes.float32, dtypes.uint8, dtypes.int16, dtypes.int64, dtypes.float16], ids=str)
@pytest.mark.parametrize("shape, order", SHAPES, ids=str)
def test_permuted_values(shape, order, dtype):
    case = permuted(shape, order, dtype)
    want = case[1][1].reshape(shape).transpose(order).ravel()
    for level in LEVELS:
        check(*case, level=f"PYTHON:{level}")
    if not llvm.missing():
        np.testing.assert_array_equal(machine(case)[0][0], want)


@pytest.mark.parametrize("case", [strided(100, 2), strided(100, 3, 2), strided(1000, 4, 3), strided(64, 8),
                                  K.row_reduce(100, 8), K.row_reduce(77, 3, Ops.MAX), K.row_reduce(64, 4)], ids=len)
def test_strided_values(case):
    for level in LEVELS:
        check(*case, level=f"PYTHON:{level}")


# *** gathers ***
def taken(rows, n, dtype):
    """o[i, j] = x[i, idx[i, j]] where that is in range, else 7."""
    o, x, idx = K.buf(0, rows * n), K.buf(1, rows * n), K.buf(2, rows * n, dtype)
    i, j = K.out(0, rows), K.out(1, n)
    at = idx.index(i * n + j).cast(dtypes.weakint)
    inside = UOp(Ops.AND, (UOp.const(-1) < at, at < n))
    load = x.index((i * n + at).valid(inside))
    numbers = np.random.default_rng(3).integers(-2, n + 2, rows * n).astype(np.int64 if dtype is dtypes.int64
                                                                             else np.int32)
    return K.kernel(o.index(i * n + j).store(inside.where(load, 7.0)).end(i, j)), [
        K.zeros(rows * n), K.data(rows * n, seed=1), numbers]


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.int64], ids=str)
def test_a_gather_compares_its_indices_as_vectors(dtype):
    case = taken(16, 256, dtype)
    _, uops = program(case)
    assert not [u for u in uops if u.op is Ops.LOAD and len(u.src) > 1]  # no condition on a lane
    compares = [u for u in uops if u.op in (Ops.CMPLT, Ops.CMPNE) and u.src[0].op is not Ops.RANGE]
    assert compares and all(u.shape for u in compares)
    check(*case, level="PYTHON:x86-64-v4")
    if not llvm.missing():
        rows = np.arange(16)[:, None] * 256
        at = case[1][2].reshape(16, 256)
        inside = (at >= 0) & (at < 256)
        want = np.where(inside, case[1][1][rows + at.clip(0, 255)], np.float32(7))
        np.testing.assert_array_equal(machine(case)[0][0], want.ravel())


def joined(n, m):
    """Two arrays, one behind the other."""
    o, a, b, i = K.buf(0, n + m), K.buf(1, n), K.buf(2, m), K.out(0, n + m)
    first = i < n
    v = first.where(a.index(i.valid(first)), b.index((i - n).valid(UOp.const(n - 1) < i)))
    return K.kernel(o.index(i).store(v).end(i)), [K.zeros(n + m), K.data(n, seed=1), K.data(m, seed=2)]


@needs_llvm
@pytest.mark.parametrize("n, m", [(64, 64), (100, 30), (3, 200), (200, 3)])
def test_masked_loads_stay_near_their_storage(n, m):
    case = joined(n, m)
    r = llvm.LLVMRenderer(Target("CPU", "LLVM", "x86-64-v4"))
    uops = linear_program(optimised(case[0], r), r)
    masked = [u for u in uops if u.op is Ops.LOAD and len(u.src) > 1 and u.src[2].shape]
    assert masked
    for u in masked:
        place, lanes = u.src[0], u.shape[0]
        loops = list(place.ranges)
        assert len(loops) <= 1
        for step in range(loops[0].vmax + 1 if loops else 1):
            at = place.src[1].substitute({r: UOp.const(step, r.dtype) for r in loops}).simplify()
            assert -lanes < at.const_value < place.src[0].arg.size
    np.testing.assert_array_equal(machine(case)[0][0], np.concatenate(case[1][1:]))
    check(*case, level="PYTHON:x86-64-v4")


# *** LLVM ***
@needs_llvm
@pytest.mark.parametrize("n", [64, 256, 2048])
def test_an_index_that_wraps_at_once(n):
    o, x, i, j = K.buf(0, 4 * n), K.buf(1, 4 * n), K.out(0, 4), K.out(1, n)
    at = UOp(Ops.FLOORMOD, (j + (n - 1), UOp.const(n)))
    case = K.kernel(o.index(i * n + j).store(x.index(i * n + at)).end(i, j), opts=()), [
        K.zeros(4 * n), K.data(4 * n, seed=1)]
    want = np.roll(case[1][1].reshape(4, n), 1, axis=1).ravel()
    np.testing.assert_array_equal(machine(case)[0][0], want)


@needs_llvm
@pytest.mark.parametrize("dst", [dtypes.int8, dtypes.uint8, dtypes.int16, dtypes.uint16, dtypes.int32], ids=str)
@pytest.mark.parametrize("src", [dtypes.float32, dtypes.float64, dtypes.float16], ids=str)
def test_floats_saturate_in_vectors(src, dst):
    edges = [0.0, -0.0, 0.9, -0.9, np.inf, -np.inf, np.nan, 1e20, -1e20]
    edges += [x + d for x in (dst.min, dst.max) for d in (-1.5, -1, -0.5, 0, 0.5, 1, 1.5)]
    with np.errstate(over="ignore"):
        values = np.resize(np.array(edges), 256).astype(K.carrier_np(src))
    o, x, i = K.buf(0, 256, dst), K.buf(1, 256, src), K.out(0, 256)
    got, text = machine((K.kernel(o.index(i).store(x.index(i).cast(dst)).end(i)), [K.zeros(256, dst), values]))
    wide = values.astype(np.float64)
    want = [0 if v != v else int(min(max(v, dst.min), dst.max)) for v in wide.tolist()]
    np.testing.assert_array_equal(got[0], want)
    assert ".sat." not in text


@pytest.mark.parametrize("rows,columns", [(9, 12), (9, 16), (33, 40), (5, 12)])
@pytest.mark.parametrize("device", ["CPU", "PYTHON"])
def test_copies_of_which_one_wraps_are_no_block(rows: int, columns: int, device: str) -> None:
    """A row reversed and repeated: some vectors lie in one repetition, others begin in one and end in the next."""
    data = np.arange(rows, dtype=np.int8)
    x = Tensor(data, device=device).realize()
    y = ((4 - x) ^ 2).maximum(x).flip(0).cast("int16").repeat(-(-columns // rows))[:columns].contiguous()
    want = np.maximum((4 - data) ^ 2, data)[::-1].astype(np.int16)
    assert y.numpy().tolist() == np.resize(want, columns).tolist()
