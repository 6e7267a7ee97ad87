"""Gradients and optimizers outside of a captured function stay what they are without one."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import Context, Tensor, TinyJit, nn


def model() -> tuple[list[Tensor], Callable[[Tensor], Tensor]]:
    rng = np.random.default_rng(0)
    w = [Tensor(rng.standard_normal(s).astype(np.float32)).is_param_().realize() for s in ((3, 4), (4, 1))]
    return w, lambda x: ((x @ w[0]).relu() @ w[1]).square().mean()


def batches(n: int = 9) -> list[Any]:
    rng = np.random.default_rng(1)
    return [rng.standard_normal((5, 3)).astype(np.float32) for _ in range(n)]


PROGRAMS: dict[str, Callable[[bool, int], list[Any]]] = {}


def program(fxn: Callable[..., None]) -> Callable[..., None]:
    """A training loop that is run with and without TinyJit."""
    def both(jit: bool, captures: int) -> list[Any]:
        w, loss = model()
        opt = nn.optim.SGD(w, lr=0.125, momentum=0.5)
        out: list[Any] = []
        fxn(lambda f: TinyJit(f, captures=captures) if jit else f, w, loss, opt, out)
        return [*out, *(t.tolist() for t in w)]
    PROGRAMS[fxn.__name__] = both
    return fxn


def show(w: list[Tensor]) -> list[Any]:
    return [None if t.grad is None else t.grad.tolist() for t in w]


@program
def zeroed_inside(jit, w, loss, opt, out):
    @jit
    def back(x):
        opt.zero_grad()
        return loss(x).backward()
    for x in batches():
        out += [back(Tensor(x)).item(), show(w)]
        opt.step()


@program
def zeroed_outside(jit, w, loss, opt, out):
    back = jit(lambda x: loss(x).backward())
    for x in batches():
        opt.zero_grad()
        out += [back(Tensor(x)).item(), show(w)]
        opt.step()


@program
def zeroed_after(jit, w, loss, opt, out):
    back = jit(lambda x: loss(x).backward())
    for x in batches():
        out += [back(Tensor(x)).item(), show(w)]
        opt.step()
        opt.zero_grad()


@program
def accumulated_for_ever(jit, w, loss, opt, out):
    back = jit(lambda x: loss(x).backward())
    for x in batches():
        out += [back(Tensor(x)).item(), show(w)]


@program
def accumulated_over_three_calls(jit, w, loss, opt, out):
    back = jit(lambda x: (loss(x) / 3).backward())
    for i, x in enumerate(batches()):
        out += [back(Tensor(x)).item(), show(w)]
        if i % 3 == 2:
            opt.step()
            opt.zero_grad()


@program
def accumulated_and_stepped_by_a_second_capture(jit, w, loss, opt, out):
    back = jit(lambda x: (loss(x) / 3).backward())

    @jit
    def step(x):
        for t in w:
            t.assign(t - t.grad * x)
            t.grad.assign(t.grad * 0)
    for i, x in enumerate(batches(12)):
        out += [back(Tensor(x)).item(), show(w)]
        if i % 3 == 2:
            step(arr(0.125))


@program
def clipped_inside(jit, w, loss, opt, out):
    @jit
    def back(x):
        opt.zero_grad()
        value = loss(x).backward()
        for t in w:
            t.grad = t.grad.clip(-0.25, 0.25)
        return value
    for x in batches():
        out += [back(Tensor(x)).item(), show(w)]
        opt.step()


@program
def halved_by_a_capture(jit, w, loss, opt, out):
    @jit
    def halve(x):
        for t in w:
            t.grad = t.grad * x
        return x + 1
    for i, x in enumerate(batches()):
        if i % 3 == 0:
            opt.zero_grad()
            loss(Tensor(x)).backward()
        halve(arr(0.5))
        out.append(show(w))


@program
def cleared_inside(jit, w, loss, opt, out):
    @jit
    def step(x):
        value = loss(x).backward()
        value.realize(*opt.schedule_step())
        opt.zero_grad()
        return value
    for x in batches():
        out += [step(Tensor(x)).item(), show(w)]


@program
def rate_changed_outside(jit, w, loss, opt, out):
    @jit
    def step(x):
        opt.zero_grad()
        return loss(x).backward().realize(*opt.schedule_step())
    for i, x in enumerate(batches()):
        opt.lr.assign(opt.lr * 0 + 0.25 / (i + 1))
        out += [step(Tensor(x)).item(), show(w)]


@program
def state_loaded_between_calls(jit, w, loss, opt, out):
    @jit
    def step(x):
        opt.zero_grad()
        return loss(x).backward().realize(*opt.schedule_step())
    saved: dict[str, Any] = {}
    for i, x in enumerate(batches()):
        if i == 2:
            saved = {k: t.numpy().copy() for k, t in nn.state.get_state_dict([w, opt]).items()}
        if i in (5, 7):
            for k, t in nn.state.get_state_dict([w, opt]).items():
                t.assign(Tensor(saved[k])) if i == 5 else t.replace(Tensor(saved[k]))
        out += [step(Tensor(x)).item(), show(w)]


@program
def gradients_kept_by_the_program(jit, w, loss, opt, out):
    @jit
    def back(x):
        opt.zero_grad()
        value = loss(x).backward()
        return value, [t.grad for t in w]
    kept = [back(Tensor(x)) for x in batches()]
    for value, grads in kept:
        out += [value.item(), [g.tolist() for g in grads]]


@pytest.mark.parametrize("captures", [1, 2])
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_training_loop(name: str, captures: int):
    run = PROGRAMS[name]
    with Context(TRAINING=1):
        ours, want = run(True, captures), run(False, 1)
    assert len(ours) == len(want)
    for i, (a, b) in enumerate(zip(ours, want)):
        assert flat(a) == pytest.approx(flat(b), rel=1e-5, abs=1e-6), i


def flat(x: Any) -> list[float]:
    if x is None:
        return [-12345.0]
    return [v for item in x for v in flat(item)] if isinstance(x, list) else [x]


def test_captures_for_gradients_that_are_there_and_not():
    w, loss = model()
    calls: list[int] = []

    @TinyJit(captures=2)
    def back(x: Tensor) -> Tensor:
        calls.append(1)
        return loss(x).backward()
    for i, x in enumerate(batches(12)):
        if i % 3 == 0:
            for t in w:
                t.grad = None
        back(Tensor(x))
    assert len(calls) <= 4
