"""Outputs share a kernel when that saves reading a large input again, and only then."""
from __future__ import annotations

import pytest
from schedule.helpers import assign, check, kernels, output, param

import tinyhost.schedule.share as share
from tinyhost.capabilities import Capabilities
from tinyhost.uop import Ops, UOp


def stores(linear: UOp) -> list[int]:
    """Number of stores of each kernel."""
    return [sum(u.op is Ops.STORE for u in k.toposort()) for k in kernels(linear)]


def test_sums_over_one_large_input_share_a_loop() -> None:
    g, x = param(0, (128, 32, 16)), param(1, (128, 32, 16))
    linear = check(output(2, g.sum((0, 2))), output(3, (g * x).sum((0, 2))))
    assert stores(linear) == [2]
    (ast,) = kernels(linear)
    assert sum(u.op is Ops.RANGE for u in ast.toposort()) == 3
    assert ast.src[0].op is Ops.END and ast.src[0].src[0].op is Ops.GROUP


def test_small_kernels_keep_one_output() -> None:
    g, x = param(0, (8, 32)), param(1, (8, 32))
    assert stores(check(output(2, g.sum(0)), output(3, (g * x).sum(0)))) == [1, 1]


def test_moments_of_an_optimiser_share_a_kernel() -> None:
    m, v, g = (param(i, (128, 128)) for i in range(3))
    linear = check(assign(m, m * 0.5 + g), assign(v, v * 0.5 + g * g))
    assert stores(linear) == [2]


def test_what_one_writes_another_does_not_read() -> None:
    a, b, g = (param(i, (128, 128)) for i in range(3))
    linear = check(assign(a, g + 1), output(3, a + g), assign(b, g + 2))
    slots = [[u.arg.slot for u in c.src[1:3]] for c in linear.src]
    assert 3 in slots[0]  # the reader of the old a runs no later than its writer
    assert not any({0, 3} <= set(s) for s in slots)


def test_kernels_that_wait_for_each_other_stay_apart() -> None:
    a = param(0, (128, 128))
    x = a.sum(0, keepdim=True)
    linear = check(output(1, x), output(2, (a * x).sum(1)), exact=False)
    assert stores(linear) == [1, 1]


def test_contractions_stay_alone() -> None:
    a, b, c = (param(i, (32, 32)) for i in range(3))
    ab, ac = ((a.reshape((32, 32, 1)) * w).sum(1) for w in (b, c))
    assert stores(check(output(3, ab), output(4, ac))) == [1, 1]


def test_limits_hold() -> None:
    a = param(0, (128, 128))
    effects = [output(i + 20, a + param(i + 1, (128, 128))) for i in range(6)]
    assert stores(check(*effects)) == [4, 2]
    assert stores(check(*effects, caps=Capabilities(max_kernel_buffers=5))) == [2, 2, 2]


@pytest.mark.parametrize("block", range(4))
def test_random_graphs_that_share_whatever_they_can(block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from schedule.test_schedule_random import run
    monkeypatch.setattr(share, "MIN_ITERATIONS", 1)
    first = 3000 + block * 40
    assert sum(run(seed, 6 + seed % 14, Capabilities()) for seed in range(first, first + 40)) >= 20
