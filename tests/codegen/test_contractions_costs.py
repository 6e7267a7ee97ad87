"""The cost model of matrix products: what every plan keeps, and which way it turns where one thing changes."""
from __future__ import annotations

from dataclasses import replace

import hypothesis.strategies as st
from hypothesis import given, settings

from tinyhost.capabilities import Capabilities
from tinyhost.codegen.product_costs import (
    ARENA_MOST,
    Order,
    Shape,
    Side,
    best_plan,
    dot_cycles,
    dot_tile,
)

V3 = Capabilities(vector_bytes=32, vector_registers=16, masked=True, fma=True, l1_bytes=48 << 10, l2_bytes=2 << 20)
V4 = replace(V3, vector_bytes=64, vector_registers=32)


def shape(m, k, n, layout="NN", caps=V4, exact=False, cuts=(), lane_first=False):
    """A float32 product whose columns are the vector axis, or whose rows are."""
    left = Side(4, 4 * k, 4) if layout[0] == "N" else Side(4, 4, 4 * m)
    right = Side(4, 4, 4 * n) if layout[1] == "N" else Side(4, 4 * k, 4)
    rows, columns, still, moving = (n, m, right, left) if lane_first else (m, n, left, right)
    lanes = caps.vector_bytes // 4
    return Shape(rows, columns, k, 1, lanes, moving, still, 4 * (1 if lane_first else n), not lane_first, exact, cuts)


sizes = st.integers(1, 5000)


@settings(max_examples=150, deadline=None)
@given(sizes, sizes, sizes, st.sampled_from(["NN", "NT", "TN", "TT"]), st.sampled_from([V3, V4]), st.booleans())
def test_plans_fit_registers_and_caches(m, k, n, layout, caps, lane_first):
    s = shape(m, k, n, layout, caps, lane_first=lane_first)
    p = best_plan(s, caps)
    assert p is not None or s.moving.across != 4
    if p is None:
        return
    assert p.rows * p.cols + p.cols + 1 <= caps.vector_registers
    assert p.rows <= s.rows and p.cols <= -(-s.columns // s.lanes)
    width = s.columns if p.order is Order.ROWS else p.cols * s.lanes
    assert not p.pack_moving or 2 * k * width * 4 <= caps.l2_bytes
    assert not p.pack_still or s.rows * k * 4 <= ARENA_MOST
    assert p.pack_moving or s.moving.across == 4
    assert p.cycles >= s.rows * s.columns * k / s.lanes / 2  # two multiply-adds of a vector a cycle


@settings(max_examples=100, deadline=None)
@given(sizes, sizes, sizes, st.sampled_from([V3, V4]))
def test_nothing_is_computed_twice_where_that_is_forbidden(m, k, n, caps):
    p = best_plan(shape(m, k, n, caps=caps, exact=True), caps)
    assert p is None or m % p.rows == 0 and n % (p.cols * caps.vector_bytes // 4) == 0


@settings(max_examples=100, deadline=None)
@given(sizes, sizes, sizes)
def test_tiles_of_results_along_the_sum_fit_the_registers(m, k, n):
    for caps in (V3, V4):
        rows, cols = dot_tile(shape(m, k, n, caps=caps), caps)
        assert rows * cols + min(rows, cols) + 1 <= caps.vector_registers and rows <= m and cols <= n


def test_more_work_costs_more():
    base = best_plan(shape(512, 512, 512), V4).cycles
    for more in ((1024, 512, 512), (512, 1024, 512), (512, 512, 1024)):
        assert 1.8 * base < best_plan(shape(*more), V4).cycles < 2.6 * base


def test_a_larger_second_level_cache_holds_all_panels():
    s = shape(1024, 1024, 1024)
    assert best_plan(s, V4).order is Order.COLUMNS
    assert best_plan(s, replace(V4, l2_bytes=16 << 20)).order is Order.ROWS


def test_parts_of_the_sum_pay_where_rows_are_few():
    few, many = shape(16, 4096, 4096, cuts=(64, 128)), shape(1024, 1024, 1024, cuts=(16, 32))
    assert best_plan(few, V4).order is Order.STREAM and best_plan(many, V4).parts == 1


def test_rows_that_are_pages_apart_are_packed():
    assert best_plan(shape(1024, 1024, 1024, "TN"), V4).pack_still
    assert not best_plan(shape(1024, 1024, 1024, "NN"), V4).pack_still


def test_vectors_along_the_sum_pay_for_a_few_columns_only():
    few, many = shape(4096, 4096, 3, "NT"), shape(1024, 1024, 1024, "NT")
    assert dot_cycles(few, V4) < best_plan(few, V4).cycles if best_plan(few, V4) else True
    assert dot_cycles(many, V4) > best_plan(many, V4).cycles
