"""Opts applied literally, their results, and the texts of refusals."""
import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.loops import multiply_add_bodies
from tests.codegen.reference import check, renderer
from tinyhost.capabilities import Capabilities
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.nests import one_closer_each
from tinyhost.codegen.opt import apply_opt
from tinyhost.errors import KernelOptError
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt
from tinyhost.uop import OptOps as O


def ops_of(program, op):
    return [u for u in program.src[1].src if u.op is op]


def innermost(program):
    """The nodes of the innermost loop bodies that hold a MULACC."""
    return multiply_add_bodies(program.src[1].src)


TILE = (Opt(O.LANE, 1, 8), Opt(O.UPCAST, 0, 4), Opt(O.UPCAST, 1, 2))


@pytest.mark.parametrize(
    "opts",
    [
        (),
        (Opt(O.LANE, 1, 8),),
        (Opt(O.UPCAST, 0, 4),),
        (Opt(O.UPCAST, 1, 0),),
        (Opt(O.UNROLL, 0, 4),),
        (Opt(O.UNROLL, 0, 0),),
        TILE,
        (*TILE, Opt(O.UNROLL, 0, 4)),
        (*TILE, Opt(O.REORDER, None, (1, 0, 4))),
        (*TILE, Opt(O.REORDER, None, (1, 0, 4)), Opt(O.STAGE, 1, (4, 3, 5))),
        (*TILE, Opt(O.STAGE, 0, (4, 2))),
        (Opt(O.LANE, 2, 8),),
        (Opt(O.LANE, 2, 8), Opt(O.UPCAST, 0, 2), Opt(O.UPCAST, 1, 3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("shape", [(16, 32, 32), (13, 19, 17)], ids=str)
def test_matmul_with_opts(opts, shape):
    even = all(n % 16 == 0 for n in shape)
    if not even and (any(o.op is O.UNROLL and o.arg for o in opts)):
        opts = tuple(Opt(O.UNROLL, 0, 4) if o.op is O.UNROLL else o for o in opts)
    p = check(*K.matmul(*shape, opts=opts))
    assert p.src[0].arg.applied_opts == opts


def test_the_inner_loop_of_a_tiled_matmul_is_fused_multiply_adds_of_vectors():
    p = check(*K.matmul(16, 32, 32, opts=TILE))
    (body,) = innermost(p)
    fmas = [u for u in body if u.op is Ops.MULACC]
    assert len(fmas) == 8 and all(u.shape == (8,) for u in fmas)
    loads = [u for u in body if u.op is Ops.LOAD and u.src[0].src[0].op is Ops.PARAM]
    assert sorted(u.shape for u in loads) == [()] * 4 + [(8,)] * 2
    assert not [u for u in body if u.op is Ops.STACK], "no scalar left over"


def test_a_packed_operand_is_read_from_the_arena():
    p = check(*K.matmul(32, 32, 16, opts=(*TILE, Opt(O.REORDER, None, (1, 0, 4)), Opt(O.STAGE, 1, (4, 3, 5)))))
    (body,) = innermost(p)
    arena = {u.src[0].src[0].without_after.arg.name for u in body if u.op is Ops.LOAD and u.shape == (8,)
             and u.src[0].src[0].without_after.op is Ops.PARAM}
    assert arena == {"scratch"} and p.arg.scratch == 16 * 2 * 8 * 4 and p.arg.globals == (0, 1, 2)


@pytest.mark.parametrize("n", [64, 1000])
def test_thread(n):
    sink, bufs = K.add(n, opts=(Opt(O.LANE, 0, 8), Opt(O.THREAD, 0, 2)))
    p = check(sink, bufs)
    assert p.arg.global_size[0] == 2 and list(p.arg.runtimevars) == ["core_id"]


def test_sum_has_several_accumulators():
    p = check(*K.row_reduce(1, 512, opts=(Opt(O.LANE, 0, 8), Opt(O.UNROLL, 0, 4))))
    assert len([u for u in ops_of(p, Ops.BUFFER)]) == 4
    assert len(ops_of(p, Ops.RANGE)) == 1


@pytest.mark.parametrize("n", [9, 15, 17, 31, 33, 63, 65, 100])
@pytest.mark.parametrize("op", [Ops.ADD, Ops.MAX], ids=str)
def test_tail_of_a_reduction(n, op):
    check(*K.row_reduce(2, n, op, opts=(Opt(O.LANE, 1, 8),)))


@pytest.mark.parametrize("unroll", [2, 4])
@pytest.mark.parametrize("n", [37, 70, 71])
def test_tail_of_an_unrolled_reduction(n, unroll):
    check(*K.row_reduce(2, n, opts=(Opt(O.LANE, 1, 8), Opt(O.UNROLL, 0, unroll))))


def test_padto():
    check(*K.matmul(5, 7, 9, opts=(Opt(O.PADTO, 0, 4), Opt(O.PADTO, 1, 8), Opt(O.PADTO, 2, 4))))
    check(*K.row_reduce(3, 7, Ops.MAX, opts=(Opt(O.PADTO, 1, 8), Opt(O.UNROLL, 0, 8))))


def test_sizes_that_do_not_divide_stay_vector_code():
    p = check(*K.matmul(10, 1003 // 17, 40), level="x86-64-v3")
    for body in innermost(p):
        assert all(u.shape for u in body if u.op is Ops.MULACC)


def kernel(case, caps=None):
    r = renderer()
    if caps is not None:
        r.caps = caps
    return Kernel(one_closer_each(case[0]), r)


GPU = Capabilities(grid=True, locals=True, shared_bytes=1024, local_prod_max=64)


@pytest.mark.parametrize(
    "case, caps, opt, text",
    [
        (K.add(64), None, Opt(O.UPCAST, 3, 4), "there is no axis 3, the kernel has 1"),
        (K.add(64), None, Opt(O.UPCAST, 0, 128), "the amount 128 is more than the 64 steps"),
        (K.add(64), None, Opt(O.UPCAST, 0, 1), "an amount of 1 changes nothing"),
        (K.add(64), None, Opt(O.UPCAST, 0, 64), "would make 64 copies, the target allows 32"),
        (K.add(64), None, Opt(O.UNROLL, 0, 4), "there is no reduce axis 0"),
        (K.row_reduce(4, 64), None, Opt(O.UPCAST, 1, 4), "is REDUCE, the action is for WEAK, LOOP, GLOBAL, LOCAL axes"),
        (K.row_reduce(4, 64), None, Opt(O.UNROLL, 0, 64), "the amount 64 is more than the target allows (32)"),
        (K.add(64), None, Opt(O.LANE, 0, 64), "the amount 64 is more than the widest vector register allows (32)"),
        (K.add(64), Capabilities(), Opt(O.LANE, 0, 8), "the target has no vector registers"),
        (K.add(64), Capabilities(), Opt(O.THREAD, 0, 2), "the target runs a kernel on one thread"),
        (
            K.row_reduce(4, 64),
            Capabilities(threads=4),
            Opt(O.THREAD, 1, 2),
            "is REDUCE, the action is for WEAK, LOOP, GLOBAL axes",
        ),
        (K.add(64), None, Opt(O.LOCAL, 0, 8), "the target has no workgroups of several threads"),
        (K.add(64), GPU, Opt(O.LOCAL, 0, 7), "7 does not divide the 64 steps"),
        (K.add(128), GPU, Opt(O.LOCAL, 0, 128), "the workgroup would have 128 threads, the target allows 64"),
        (K.row_reduce(4, 64), None, Opt(O.GROUP, 0, 8), "the target has no workgroup memory"),
        (
            K.row_reduce(4, 512),
            GPU,
            Opt(O.GROUP, 0, 512),
            "the partial results need 2048 bytes of workgroup memory, the target has 1024",
        ),
        (K.add(64), None, Opt(O.PADTO, 0, 32), "are a multiple of 32 already"),
        (K.add(2), None, Opt(O.PADTO, 0, 32), "32 steps instead of 2 would be 4 times the work"),
        (K.matmul(4, 4, 4), None, Opt(O.SWAP, 0, 1), "it exchanges two GLOBAL axes"),
        (
            K.matmul(4, 4, 4),
            None,
            Opt(O.REORDER, None, (0, 1)),
            "its argument is the order of the loop axes (0, 1, 2), got (0, 1)",
        ),
        (K.matmul(4, 4, 4), None, Opt(O.REORDER, None, (2, 0, 1)), "is reduced inside"),
        (K.add(4), None, Opt(O.STAGE, 0, (0,)), "the kernel sums no products, so there is no operand to pack"),
        (K.matmul(4, 4, 4), None, Opt(O.STAGE, 3, (2,)), "is 0 or 1, and 2 is the result, got 3"),
        (K.matmul(4, 4, 4), None, Opt(O.STAGE, 2, (2,)), "it stages the tile of a vector axis of the output"),
        (K.matmul(4, 4, 4), None, Opt(O.STAGE, 1, (1,)), "which must be part of it"),
        (K.matmul(4, 4, 4), None, Opt(O.TC, 0, (0, 0, 1)), "reserved"),
    ],
    ids=lambda x: str(x) if isinstance(x, Opt) else "",
)
def test_refusals(case, caps, opt, text):
    k = kernel(case, caps)
    before = list(k.axes)
    with pytest.raises(KernelOptError) as e:
        apply_opt(k, opt)
    assert text in str(e.value) and str(opt) in str(e.value)
    assert k.axes == before and not k.applied


def test_one_lane_axis_per_value():
    k = kernel(K.matmul(16, 16, 16))
    apply_opt(k, Opt(O.LANE, 1, 8))
    with pytest.raises(KernelOptError, match="is the LANE axis of the same values already"):
        apply_opt(k, Opt(O.LANE, 0, 8))


def test_an_in_place_kernel_computes_nothing_twice():
    x, i = K.buf(0, 37), K.out(0, 37)
    k = kernel((K.kernel(x.index(i).store(x.index(i) + 1).end(i)), [np.zeros(37, np.float32)]))
    with pytest.raises(KernelOptError, match="may compute no element twice"):
        apply_opt(k, Opt(O.LANE, 0, 8))


def test_axis_numbers_follow_kind_then_id():
    k = kernel(K.matmul(16, 16, 16))
    apply_opt(k, Opt(O.LANE, 1, 8))
    apply_opt(k, Opt(O.UPCAST, 0, 4))
    assert [a.kind for a in k.sorted_axes] == [
        AxisType.WEAK,
        AxisType.WEAK,
        AxisType.UPCAST,
        AxisType.REDUCE,
        AxisType.LANE,
    ]


def test_results_go_through_a_tile_where_vectors_would_be_scattered():
    opts = (Opt(O.LANE, 0, 8), Opt(O.UPCAST, 1, 4), Opt(O.STAGE, 2, ()))
    p = check(*K.matmul(16, 12, 20, opts=opts))
    stores = [u for u in ops_of(p, Ops.STORE) if u.src[0].src[0].without_after.op is Ops.PARAM]
    assert {u.src[0].shape for u in stores if u.src[0].src[0].arg.name == "scratch"} == {(8,)}
    assert len(stores) <= 4 + 8


@pytest.mark.parametrize("opts", [
    (Opt(O.GROUPTOP, 0, 4),), (Opt(O.LANE, 1, 8), Opt(O.UPCAST, 0, 4), Opt(O.GROUPTOP, 0, 2)),
    (Opt(O.LANE, 0, 8), Opt(O.UPCAST, 1, 4), Opt(O.GROUPTOP, 0, 2), Opt(O.STAGE, 2, ())),
    (Opt(O.GROUPTOP, 0, 2), Opt(O.UNROLL, 0, 4), Opt(O.THREAD, 1, 2))], ids=str)
@pytest.mark.parametrize("level", ["x86-64-v3", "PYTHON:x86-64-v4"])
def test_partial_sums_in_the_output(opts, level):
    if level.startswith("PYTHON"):
        opts = tuple(o for o in opts if o.op is not O.THREAD)
    sink, bufs = K.matmul(16, 16, 32, opts=opts)
    bufs[0][:] = np.nan  # what the output held before does not matter
    check(sink, bufs, level)
