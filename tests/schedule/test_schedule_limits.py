"""Kernels keep the limits of their device, and scheduling is linear in size and independent of depth."""
from __future__ import annotations

import pytest
from schedule.helpers import check, kernels, output, param, schedule

from tests.counting import calls
from tinyhost.capabilities import Capabilities
from tinyhost.env import Context
from tinyhost.errors import ScheduleError
from tinyhost.uop import Ops, UOp


def chain(n: int) -> UOp:
    x = param(0, (16,))
    for i in range(n):
        x = x + float(i % 5) if i % 2 else x * -1.0
    return output(1, x)


@pytest.mark.parametrize("n,limit", [(10, 5), (11, 5), (100, 7), (2000, 2000), (2001, 2000)])
def test_chain_is_cut_into_as_few_kernels_as_fit(n: int, limit: int) -> None:
    linear = schedule(chain(n), caps=Capabilities(max_kernel_ops=limit))
    assert len(linear.src) == -(-n // limit)


def test_cut_chain_computes_the_same() -> None:
    check(chain(40), caps=Capabilities(max_kernel_ops=6))


def test_cut_is_where_fewest_values_are_live() -> None:
    a, b = param(0, (8,)), param(1, (8,))
    x = a
    for _ in range(3):
        x = (x + 1.0) * (x + b)  # three values live in the middle, one between the steps
    linear = check(output(2, x), caps=Capabilities(max_kernel_ops=5))
    assert len(linear.src) == 3


def test_buffer_limit_of_a_long_sum() -> None:
    xs = [param(i, (8,)) for i in range(40)]
    total = xs[0]
    for x in xs[1:]:
        total = total + x
    linear = check(output(50, total), caps=Capabilities(max_kernel_buffers=8))
    assert all(sum(u.op is Ops.PARAM for u in k.toposort()) <= 8 for k in kernels(linear))
    assert len(linear.src) == 7  # 7 inputs, then 6 and the sum so far


def test_buffer_limit_of_a_tree() -> None:
    xs = [param(i, (8,)) for i in range(32)]
    while len(xs) > 1:
        xs = [a * b + 1 for a, b in zip(xs[::2], xs[1::2])]
    linear = check(output(50, xs[0]), caps=Capabilities(max_kernel_buffers=6))
    assert all(sum(u.op is Ops.PARAM for u in k.toposort()) <= 6 for k in kernels(linear))


def test_too_many_buffers_for_one_operation() -> None:
    total = param(1, (4,)) + param(2, (4,))
    with pytest.raises(ScheduleError, match="reads 2 buffers at once, a kernel on CPU takes 2 with its output"):
        schedule(output(50, total), caps=Capabilities(max_kernel_buffers=2))


def test_limits_from_variables_narrow_the_device() -> None:
    with Context(MAX_KERNEL_OPS=5):
        assert len(schedule(chain(11)).src) == 3
        assert len(schedule(chain(12), caps=Capabilities(max_kernel_ops=4)).src) == 3
    total = param(1, (4,)) + param(2, (4,)) + param(3, (4,)) + param(4, (4,))
    with Context(MAX_KERNEL_BUFFERS=3):
        assert len(schedule(output(50, total)).src) == 3
        assert len(schedule(output(50, total), caps=Capabilities(max_kernel_buffers=8)).src) == 3
    assert len(schedule(output(50, total)).src) == 1


def test_long_reductions_are_split_unless_told_otherwise() -> None:
    caps = Capabilities(threads=4)
    total = output(1, param(0, (1 << 20,)).sum())
    assert len(schedule(total, caps=caps).src) == 2
    with Context(SPLIT_REDUCEOP=0):
        assert len(schedule(total, caps=caps).src) == 1


@pytest.mark.slow
def test_depth_is_no_limit() -> None:
    linear = schedule(chain(100_000))
    assert len(linear.src) == 50


def test_work_is_linear_in_size() -> None:
    """Eight times the nodes take about eight times the function calls, which do not depend on the machine."""
    schedule(chain(100))  # what is done once per process
    short, long = chain(1000), chain(8000)
    assert calls(lambda: schedule(long)) < 9 * calls(lambda: schedule(short))


def test_wide_graph_with_many_outputs() -> None:
    a = param(0, (8, 8))
    effects = [output(i + 1, (a + float(i)).sum(1)) for i in range(200)]
    assert len(check(*effects).src) == 200


def test_many_operands_of_a_stack_are_joined_in_groups() -> None:
    stack = UOp(Ops.STACK, tuple(param(i, (4,)) for i in range(45)))
    linear = check(output(50, stack), caps=Capabilities(max_kernel_buffers=8))
    assert all(sum(u.op is Ops.PARAM for u in k.toposort()) <= 8 for k in kernels(linear))
