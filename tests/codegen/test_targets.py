"""The same kernels on every kind of target: scalar grid, workgroups with shared memory, vectors with and without
masks.
"""
import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer
from tinyhost.codegen import linear_program, optimised, to_program
from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, Ops
from tinyhost.uop import Opt, PatternMatcher, UOp, UPat
from tinyhost.uop import OptOps as O

TARGETS = ["PYTHON:", "PYTHON:gpu", "PYTHON:x86-64-v2", "PYTHON:x86-64-v3", "PYTHON:x86-64-v4"]


def in_place():
    x, i = K.buf(0, 37), K.out(0, 37)
    return K.kernel(x.index(i).store(x.index(i) * 2 + 1).end(i)), [K.data(37)]


def five_axes():
    dims = (2, 3, 4, 5, 6)
    o, x = K.buf(0, 720), K.buf(1, 720)
    rs = [K.out(i, n) for i, n in enumerate(dims)]
    at, back = UOp.const(0), UOp.const(0)
    for r, n in zip(rs, dims):
        at = at * n + r
    for r, n in zip(rs[::-1], dims[::-1]):
        back = back * n + r
    return K.kernel(o.index(at).store(x.index(back)).end(*rs)), [K.zeros(720), K.data(720)]


def padded_row():
    n, pad = 30, 3
    o, x, i = K.buf(0, n + 2 * pad), K.buf(1, n), K.out(0, n + 2 * pad)
    ok = (i >= pad) & (i < n + pad)
    return K.kernel(o.index(i).store(ok.where(x.index((i - pad).valid(ok)), UOp.const(2.0, dtypes.float32))).end(i)), \
        [K.zeros(n + 2 * pad), K.data(n)]


CASES = {
    "add": K.add(1003),
    "int8": K.add(130, dtypes.int8),
    "double": K.add(67, dtypes.float64),
    "matmul": K.matmul(13, 37, 11),
    "transposed": K.matmul(5, 6, 67, transposed=True),
    "row": K.row_reduce(5, 67),
    "row max": K.row_reduce(3, 70, Ops.MAX),
    "rows of bytes": K.row_reduce(3, 70, Ops.MAX, dtypes.int8),
    "any": K.row_reduce(3, 70, Ops.ADD, dtypes.bool),
    "long row": K.row_reduce(2, 4096),
    "column": K.column_reduce(33, 20),
    "softmax": K.softmax(3, 37),
    "conv": K.conv(1, 3, 7, 9, 5, 3, 1),
    "conv input gradient": K.conv_input_gradient(1, 3, 8, 4, 3),
    "conv weight gradient": K.conv_weight_gradient(2, 3, 8, 4, 3),
    "in place": in_place(),
    "five axes": five_axes(),
    "padded row": padded_row(),
}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("case", CASES)
def test_kernel(case, target):
    check(*CASES[case], level=target)


def test_a_long_row_is_reduced_by_a_workgroup():
    p = check(*CASES["long row"], level="PYTHON:gpu")
    assert any(u.op is Ops.BUFFER and u.arg.addrspace is AddrSpace.LOCAL for u in p.src[1].src)
    assert any(u.op is Ops.BARRIER for u in p.src[1].src)
    assert p.arg.local_size[0] > 1


@pytest.mark.parametrize(
    "opts",
    [
        (Opt(O.LOCAL, 0, 4),),
        (Opt(O.LOCAL, 0, 4), Opt(O.LOCAL, 1, 8)),
        (Opt(O.UPCAST, 0, 4), Opt(O.LOCAL, 1, 8)),
        (Opt(O.GROUP, 0, 4),),
        (Opt(O.GROUPTOP, 0, 4),),
        (Opt(O.LOCAL, 0, 2), Opt(O.GROUP, 0, 8)),
        (Opt(O.GROUP, 0, 8), Opt(O.UPCAST, 0, 2)),
        (Opt(O.GROUP, 0, 4), Opt(O.UNROLL, 0, 2)),
        (
            Opt(
                O.NOLOCALS,
            ),
        ),
        (Opt(O.SWAP, 0, 1),),
        (Opt(O.UNROLL, 0, 0),),
    ],
    ids=str,
)
def test_opts_of_a_grid(opts):
    check(*K.matmul(8, 16, 32, opts=opts), level="PYTHON:gpu")


def test_a_gate_along_the_lane_is_the_gate_of_one_access():
    p = check(*padded_row(), level="PYTHON:x86-64-v4")
    gated = [u for u in p.src[1].src if u.op is Ops.LOAD and len(u.src) == 3]
    assert gated and all(u.shape and u.src[2].shape for u in gated)


@pytest.mark.parametrize("opts", [(Opt(O.LANE, 0, 32),), (Opt(O.LANE, 0, 16), Opt(O.UPCAST, 0, 2))], ids=str)
def test_lanes_beyond_a_register_are_several_registers(opts):
    p = check(*K.add(128, opts=opts), level="PYTHON:x86-64-v3")
    assert max(u.shape[0] for u in p.src[1].src if u.op is Ops.LOAD) == 8


def test_symbolic_length():
    n = UOp.variable("n", 1, 50, param=True)
    o, x, i = K.buf(0, 50), K.buf(1, 50), UOp.range(n, 0)
    from tests.codegen.reference import renderer
    r = renderer()
    uops = linear_program(optimised(K.kernel(o.index(i).store(x.index(i) + 1).end(i)), r), r)
    assert [u.arg.name for u in uops if u.op is Ops.PARAM and u.arg.name] == ["n"]
    (loop,) = [u for u in uops if u.op is Ops.RANGE]
    assert loop.src[0].op is Ops.PARAM and loop.dtype is dtypes.int32


def test_index_beyond_32_bits_is_64_bits_wide():
    size = 1 << 33
    o, x, i = K.buf(0, 16), K.buf(1, size), K.out(0, 16)
    from tests.codegen.reference import renderer
    r = renderer()
    uops = linear_program(optimised(K.kernel(o.index(i).store(x.index(i * (1 << 29))).end(i), opts=()), r), r)
    place = next(u for u in uops if u.op is Ops.INDEX and u.src[0].arg.slot == 1)
    assert place.src[1].dtype is dtypes.int64
    assert np.iinfo(np.int32).max < size


def test_rules_from_outside_run_after_their_stage():
    seen = []

    def rewrites(stage):
        seen.append(stage)
        return [PatternMatcher([(UPat(Ops.LOAD, name="u"), lambda u: seen.append(u.op))])]

    to_program(K.add(64)[0], renderer(), rewrites)
    assert [s for s in seen if isinstance(s, str)] == ["simplify", "optimise", "expand"]
    assert Ops.LOAD in seen[seen.index("expand"):] and Ops.LOAD not in seen[:seen.index("expand")]
