"""Matrix products: which plan each class of shapes and layouts gets, what its innermost loop holds, and that results
are right for odd sizes, all layouts, batches, strides and numbers of threads.
"""
from __future__ import annotations

from dataclasses import replace
from math import prod

import numpy as np
import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import renderer, run, run_python
from tinyhost.codegen import linear_program, optimised
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import KernelInfo, Opt, UOp
from tinyhost.uop import OptOps as O
from tinyhost_cpu.x86.caps import host_features, level_features
from tinyhost_cpu.x86.renderer import X86Renderer

LAYOUTS = ("NN", "NT", "TN", "TT")
CACHES = {"l1_bytes": 48 << 10, "l2_bytes": 2 << 20}


def product(m, k, n, layout="NN", batch=1, dtype=dtypes.float32, step=1, epilogue=None):
    """c[b] = a[b] @ b[b]; ``step`` elements of a along k are left out between two that are read."""
    c, a, b = K.buf(0, batch * m * n, dtype), K.buf(1, batch * m * k * step, dtype), K.buf(2, batch * k * n, dtype)
    outer = [K.out(0, batch)] if batch > 1 else []
    p = outer[0] if outer else UOp.const(0)
    i, j, x = K.out(1, m), K.out(2, n), K.red(3, k)
    left = i * (k * step) + x * step if layout[0] == "N" else x * (m * step) + i * step
    right = x * n + j if layout[1] == "N" else j * k + x
    value = (a.index(p * (m * k * step) + left) * b.index(p * (k * n) + right)).reduce(x, arg=Ops.ADD)
    end = c.index(p * (m * n) + i * n + j).store(value if epilogue is None else epilogue(value)).end(*outer, i, j)
    return K.kernel(end), [K.zeros(batch * m * n, dtype), K.data(batch * m * k * step, dtype, 1),
                           K.data(batch * k * n, dtype, 2)]


def wanted(bufs, m, k, n, layout="NN", batch=1, step=1):
    """The product in float64, and the sums of absolute values that bound its error."""
    a, b = (x.astype(np.float64) for x in bufs[1:3])
    a = a[::step].reshape(batch, *((m, k) if layout[0] == "N" else (k, m)))
    b = b.reshape(batch, *((k, n) if layout[1] == "N" else (n, k)))
    a = a if layout[0] == "N" else a.swapaxes(1, 2)
    b = b if layout[1] == "N" else b.swapaxes(1, 2)
    return (a @ b).reshape(-1), (abs(a) @ abs(b)).reshape(-1)


def planned(case, level="x86-64-v4", threads=1, **caps):
    """The Opts and the linear program that the hand rules lead to."""
    r = renderer(level)
    r.caps = replace(r.caps, threads=threads, **{**CACHES, **caps})
    sink = optimised(case[0], r)
    return sink.arg.applied_opts, linear_program(sink, r)


def names(opts):
    return [o.op for o in opts]


def staged(opts):
    return sorted(o.axis for o in opts if o.op is O.STAGE)


def tile(opts):
    """Rows and vectors of a tile of several rows."""
    rows, *cols = [o.arg for o in opts if o.op is O.UPCAST]
    return rows, prod(cols)


def inner_loop(uops):
    """The body of the loop that multiplies and holds no other loop."""
    body, found = [], []
    for u in uops:
        if u.op is Ops.RANGE:
            body = []
        elif u.op is Ops.END:
            if body and any(x.op is Ops.MULACC for x in body):
                found.append(body)
            body = []
        else:
            body.append(u)
    assert found, "no loop multiplies"
    return found[0]


def counts(body):
    """Multiply-adds, loads of vectors and loads of single elements of a loop body, accumulators left out."""
    loads = [u for u in body if u.op is Ops.LOAD and not _register(u)]
    return (len([u for u in body if u.op is Ops.MULACC]), len([u for u in loads if u.shape]),
            len([u for u in loads if not u.shape]))


def _register(load):
    place = load.src[0]
    while place.op is not Ops.BUFFER and place.op is not Ops.PARAM:
        place = place.src[0]
    return place.op is Ops.BUFFER


# *** what the innermost loop holds ***
@pytest.mark.parametrize("size", [(512, 512, 512), (1024, 1024, 1024), (129, 257, 131), (64, 64, 64)], ids=str)
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("level, registers, lanes", [("x86-64-v3", 16, 8), ("x86-64-v4", 32, 16)])
def test_the_inner_loop_is_full_vectors_of_a_tile_that_fits_the_registers(size, layout, level, registers, lanes):
    opts, uops = planned(product(*size, layout), level)
    body = inner_loop(uops)
    rows, cols = tile(opts)
    copies = next(n for n in (1, 2, 4, 8) if counts(body)[0] == rows * cols * n)  # of an unrolled sum
    assert counts(body) == (rows * cols * copies, cols * copies, rows * copies)
    assert rows * cols >= 8 and rows * cols + cols + 1 <= registers
    assert all(u.shape == (lanes,) for u in body if u.op is Ops.MULACC)
    assert not [u for u in body if u.op in (Ops.STACK, Ops.WHERE)]
    assert not [u for u in body if u.op is Ops.LOAD and len(u.src) > 1]


@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_multiply_adds_keep_up_with_the_loads(level):
    for layout in LAYOUTS:
        fmas, vectors, scalars = counts(inner_loop(planned(product(512, 512, 512, layout), level)[1]))
        assert fmas >= vectors + scalars


def test_nothing_is_gathered_outside_of_the_inner_loop_either():
    """Panels are filled by whole vectors, those across memory by squares that are turned in registers."""
    for layout in ("NN", "NT", "TN"):
        _, uops = planned(product(512, 512, 512, layout))
        assert not [u for u in uops if u.op is Ops.STACK and any(s.op is Ops.LOAD for s in u.src)]


# *** which plan ***
def test_small_products_are_not_packed():
    for n in (16, 32, 64):
        opts, _ = planned(product(n, n, n), threads=4)
        assert staged(opts) == [] and O.GROUPTOP not in names(opts) and O.THREAD not in names(opts)


def test_rows_are_outside_where_all_panels_stay_in_the_second_level_cache():
    for shape in ((512, 512, 512), (4096, 64, 4096)):
        opts, _ = planned(product(*shape))
        (order,) = [o.arg for o in opts if o.op is O.REORDER]
        assert order[0] < order[1]  # rows have the smaller number
    assert staged(opts) == [1]


def test_columns_are_outside_where_one_panel_at_a_time_does():
    opts, _ = planned(product(1024, 1024, 1024))
    (order,) = [o.arg for o in opts if o.op is O.REORDER]
    assert order[0] > order[1] and staged(opts) == [1] and O.GROUPTOP not in names(opts)


def test_both_operands_are_packed_where_each_step_of_the_rows_is_another_page():
    opts, uops = planned(product(1024, 1024, 1024, "TN"))
    assert staged(opts) == [0, 1]
    body = inner_loop(uops)
    read = {u.src[0] for u in body if u.op is Ops.LOAD and not _register(u)}
    assert all(_storage(place).arg.name == "scratch" for place in read)


def _storage(place):
    while place.op is not Ops.PARAM:
        place = place.src[0]
    return place


def test_few_rows_stream_the_other_operand_once():
    for rows in (3, 16, 64):
        opts, _ = planned(product(rows, 4096, 4096))
        assert O.GROUPTOP in names(opts) and staged(opts) == []
        (order,) = [o.arg for o in opts if o.op is O.REORDER]
        assert order[0] == len(order) - 2  # the parts of the sum: behind the loops of the output, before the steps


def test_an_operand_of_a_few_columns_is_read_where_it_lies():
    opts, uops = planned(product(4096, 4096, 16))
    fmas, vectors, scalars = counts(inner_loop(uops))
    assert O.GROUPTOP not in names(opts) and vectors == 1 and 8 <= fmas == scalars <= 12


def test_columns_fewer_than_lanes_are_summed_along_the_vectors():
    opts, uops = planned(product(4096, 4096, 3))
    body = inner_loop(uops)
    assert next(o for o in opts if o.op is O.LANE).axis == 2  # the sum
    assert all(u.shape == (16,) for u in body if u.op is Ops.MULACC)


def test_rows_are_the_vectors_where_the_other_operand_lies_along_the_sum():
    opts, _ = planned(product(16, 4096, 4096, "NT"))
    assert next(o for o in opts if o.op is O.LANE).axis == 0 and staged(opts) == [0, 2]


def test_an_epilogue_keeps_the_tile_and_forbids_partial_sums():
    plain, _ = planned(product(64, 4096, 1024))
    more, uops = planned(product(64, 4096, 1024, epilogue=lambda x: x * 2 + 1))
    assert O.GROUPTOP in names(plain) and O.GROUPTOP not in names(more)
    rows, cols = tile(more)
    assert counts(inner_loop(uops))[0] == rows * cols >= 8


def test_a_product_added_to_its_output_computes_nothing_twice():
    m, k, n = 64, 32, 48
    c, a, b = K.buf(0, m * n), K.buf(1, m * k), K.buf(2, k * n)
    i, j, x = K.out(0, m), K.out(1, n), K.red(2, k)
    value = c.index(i * n + j) + (a.index(i * k + x) * b.index(x * n + j)).reduce(x, arg=Ops.ADD)
    case = K.kernel(c.index(i * n + j).store(value).end(i, j)), [K.data(m * n), K.data(m * k, seed=1),
                                                                 K.data(k * n, seed=2)]
    opts, _ = planned(case)
    assert m % tile(opts)[0] == 0 and n % (16 * tile(opts)[1]) == 0
    got, _ = run(case[0], case[1])
    want = case[1][0].astype(np.float64) + wanted(case[1], m, k, n)[0]
    np.testing.assert_allclose(got[0], want, rtol=1e-5, atol=1e-4)


def test_integers_are_products_too():
    opts, uops = planned(product(96, 96, 96, dtype=dtypes.int32))
    rows, cols = tile(opts)
    assert len([u for u in uops if u.op is Ops.MUL and u.shape == (16,)]) >= rows * cols >= 8


# *** threads ***
def thread(opts):
    return next((o for o in opts if o.op is O.THREAD), None)


def test_threads_split_what_costs_more_to_share():
    wide, _ = planned(product(1024, 1024, 1024), threads=2)
    tall, _ = planned(product(1024, 4096, 64), threads=2)
    assert thread(wide).axis == 1 and thread(wide).arg == 8  # columns: each part packs panels of its own columns
    assert thread(tall).axis == 0  # rows: the other operand is small


def test_threads_split_a_batch_first():
    opts, _ = planned(product(128, 128, 128, batch=16), threads=2)
    assert thread(opts).axis == 0 and thread(opts).arg == 4


def test_an_operand_that_each_part_packs_whole_is_packed_once_a_thread():
    opts, _ = planned(product(1024, 1024, 1024, "TN"), threads=2)
    assert thread(opts).arg == 2 and staged(opts) == [0, 1]


def test_work_below_a_part_stays_on_one_thread():
    assert thread(planned(product(64, 64, 64), threads=2)[0]) is None
    assert thread(planned(product(256, 256, 256), threads=2)[0]).arg == 2


# *** right results ***
def check(case, shape, level="x86-64-v3", threads=1, **more):
    """The compiled kernel against numpy in float64: no error above k rounding errors of each sum of magnitudes."""
    sink, bufs = case
    if level.startswith("PYTHON"):
        got, _ = run_python(sink, bufs, level.partition(":")[2])
    else:
        r = renderer(level)
        r.caps = replace(r.caps, threads=threads)
        got, _ = run(sink, bufs, r)
    right(got, case, shape, **more)


def right(got, case, shape, **more):
    want, magnitude = wanted(case[1], *shape, **more)
    eps = np.finfo(got[0].dtype).eps
    assert (abs(got[0] - want) <= (shape[1] + 1) * eps * magnitude).all()


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("shape", [(1, 1, 1), (5, 7, 9), (17, 30, 33), (31, 65, 47), (64, 64, 64), (130, 70, 97)],
                         ids=str)
def test_all_layouts_and_odd_sizes(shape, layout):
    check(product(*shape, layout), shape, layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_threads_share_the_work(layout, threads):
    shape = (150, 129, 211)
    check(product(*shape, layout), shape, threads=threads, layout=layout)


@pytest.mark.parametrize("shape", [(1, 700, 300), (300, 700, 1), (3, 512, 640), (640, 512, 3), (16, 2048, 512),
                                   (512, 2048, 16), (300, 1, 200), (600, 5, 7)], ids=str)
@pytest.mark.parametrize("layout", ["NN", "NT"])
def test_skinny_products(shape, layout):
    check(product(*shape, layout), shape, threads=2, layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_batches(layout):
    shape = (33, 20, 50)
    check(product(*shape, layout, batch=5), shape, threads=3, layout=layout, batch=5)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("step", [2, 3])
def test_strided_operands(layout, step):
    shape = (40, 36, 72)
    check(product(*shape, layout, step=step), shape, layout=layout, step=step)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_panels_of_both_operands_and_partial_sums(layout):
    shape = (256, 512, 256)
    check(product(*shape, layout), shape, layout=layout)


@pytest.mark.parametrize("shape", [(17, 4096, 300), (3, 2048, 1001), (40, 4096, 1003)], ids=str)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("level", ["x86-64-v3", "x86-64-v4"])
def test_partial_sums_of_sizes_that_no_tile_divides(shape, threads, level):
    """What the last block computes again is stored once: under masks."""
    if not level_features(level) <= host_features():
        pytest.skip(f"this processor has no {level}")
    case = product(*shape)
    r = X86Renderer(Target("CPU", "X86", level))
    r.caps = replace(r.caps, threads=threads, **CACHES)
    assert O.GROUPTOP in names(optimised(case[0], r).arg.applied_opts)
    right(run(*case, r)[0], case, shape)


def test_the_definition_agrees_on_uneven_partial_sums():
    opts = (Opt(O.GROUPTOP, 0, 4), Opt(O.LANE, 1, 16), Opt(O.UPCAST, 0, 3), Opt(O.UPCAST, 1, 2))
    shape = (7, 32, 43)
    sink, bufs = product(*shape)
    check((sink.replace(arg=KernelInfo(opts_to_apply=opts)), bufs), shape, "PYTHON:x86-64-v4")


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("arch", ["x86-64-v3", "x86-64-v4"])
def test_the_definition_agrees(layout, arch):
    shape = (9, 18, 35)
    check(product(*shape, layout), shape, f"PYTHON:{arch}", layout=layout)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_doubles(layout):
    shape = (33, 40, 29)
    check(product(*shape, layout, dtype=dtypes.float64), shape, layout=layout)
