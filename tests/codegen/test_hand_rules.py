"""What the hand rules choose: vectors, tiles, panels, threads and parts, and what is left in the inner loops."""
from dataclasses import replace

import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import renderer
from tinyhost.codegen import linear_program, optimised
from tinyhost.ops import Ops
from tinyhost.uop import OptOps as O


def program(case, level="x86-64-v3", threads=1, **caps):
    r = renderer(level)
    r.caps = replace(r.caps, threads=threads, **caps)
    sink = optimised(case[0], r)
    return sink.arg.applied_opts, linear_program(sink, r)


def names(opts):
    return [o.op for o in opts]


def inner_loops(uops):
    """Bodies of the loops that hold no other loop."""
    body, out = [], []
    for u in uops:
        if u.op is Ops.RANGE:
            body = []
        elif u.op is Ops.END:
            if body is not None:
                out.append(body)
            body = None
        elif body is not None:
            body.append(u)
    return out


def test_threads_split_work_that_pays():
    assert O.THREAD not in names(program(K.add(1 << 12), threads=4)[0])
    for size, parts in ((1 << 17, 2), (1 << 18, 4), (1 << 19, 8), (1 << 20, 16), (1 << 24, 16)):
        opts, uops = program(K.add(size), threads=4)
        assert opts[-1].op is O.THREAD and opts[-1].arg == parts
    assert any(u.op is Ops.PARAM and u.arg.name == "core_id" for u in uops)


def test_elementwise_is_a_few_vectors_per_iteration():
    opts, uops = program(K.add(1 << 16))
    assert names(opts) == [O.LANE, O.UPCAST]
    (body,) = inner_loops(uops)
    assert [u.shape for u in body if u.op is Ops.LOAD] == [(8,)] * 8


def test_a_row_is_summed_in_vectors_with_several_accumulators():
    opts, uops = program(K.row_reduce(16, 4096))
    assert names(opts) == [O.LANE, O.UNROLL]
    assert len([u for u in uops if u.op is Ops.BUFFER]) >= 4


def test_columns_are_summed_by_whole_rows():
    opts, _ = program(K.column_reduce(4096, 1024))
    assert names(opts) == [O.LANE, O.GROUPTOP, O.UNROLL]


def test_every_loop_of_a_softmax_is_vectorised():
    opts, uops = program(K.softmax(64, 1024))
    assert names(opts).count(O.LANE) == 3
    assert not [u for u in uops if u.op is Ops.STACK and any(s.op is Ops.LOAD for s in u.src)]


def test_a_padded_convolution_has_no_gate_in_its_inner_loop():
    opts, uops = program(K.conv(8, 64, 56, 56, 64, 3, 1))
    assert O.STAGE in names(opts)  # the image with its padding
    for body in inner_loops(uops):
        if any(u.op is Ops.MULACC for u in body):
            assert not [u for u in body if u.op is Ops.WHERE or (u.op is Ops.LOAD and len(u.src) > 1)]


def test_the_gate_of_an_input_gradient_is_outside_its_inner_loop():
    _, uops = program(K.conv_input_gradient(2, 32, 20, 32, 3))
    bodies = [b for b in inner_loops(uops) if any(u.op is Ops.MULACC for u in b)]
    assert bodies and not [u for b in bodies for u in b if u.op is Ops.WHERE or (u.op is Ops.LOAD and len(u.src) > 1)]


def test_a_long_contraction_is_cut_into_parts_that_stay_in_the_cache():
    opts, _ = program(K.conv_weight_gradient(64, 16, 24, 16, 5), l2_bytes=1 << 19)
    assert O.GROUPTOP in names(opts)


@pytest.mark.parametrize(
    "case", [K.matmul(64, 64, 64), K.conv(1, 3, 8, 8, 4, 3, 0), K.softmax(4, 64), K.add(64)], ids=len
)
def test_programs_are_small(case):
    assert len(program(case)[1]) < 800
