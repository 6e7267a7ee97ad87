"""Optimizers over parameters on several devices: state is where the parameter is, values are those of one device."""
from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, nn
from tinyhost.errors import PlacementError
from tinyhost.nn.optim import LAMB, LARS, SGD, Adam, AdamW, Muon, Optimizer, OptimizerGroup

ELEMENTWISE: dict[str, Callable[[Sequence[Tensor]], Optimizer]] = {
    "sgd": lambda p: SGD(p, lr=0.5),
    "momentum and decay": lambda p: SGD(p, lr=0.5, momentum=0.5, weight_decay=0.25),
    "nesterov": lambda p: SGD(p, lr=0.5, momentum=0.5, nesterov=True),
    "classic momentum": lambda p: SGD(p, lr=0.5, momentum=0.5, classic=True),
    "adam": lambda p: Adam(p, lr=0.1),
    "adamw": lambda p: AdamW(p, lr=0.1, weight_decay=0.5),
}
OF_NORMS: dict[str, Callable[[Sequence[Tensor]], Optimizer]] = {
    "lars": lambda p: LARS(p, lr=0.1), "lamb": lambda p: LAMB(p, lr=0.1, weight_decay=0.1),
    "muon": lambda p: Muon([t for t in p if t.ndim > 1], lr=0.1),
}
ALL = ELEMENTWISE | OF_NORMS
RNG = np.random.default_rng(0)
SHAPES = {"matrix": (6, 10), "vector": (5,), "stack": (2, 3, 4)}
START = {k: RNG.integers(-4, 5, s).astype(np.float32) for k, s in SHAPES.items()}
GRADS = [{k: RNG.integers(-4, 5, s).astype(np.float32) for k, s in SHAPES.items()} for _ in range(4)]
Place = Callable[[Tensor], Tensor]


def state_of(opt: Optimizer) -> dict[str, list[Tensor]]:
    return {k: [t for t in v if t.shape] for k in ("b", "m", "v") if (v := getattr(opt, k, None))}


def trained(make: Callable[[Sequence[Tensor]], Optimizer], place: Place, jit: bool) -> tuple[
        dict[str, np.ndarray[Any, Any]], dict[str, list[np.ndarray[Any, Any]]], Optimizer]:
    """(parameters, state, optimizer) after a few steps of given gradients."""
    params = {k: place(Tensor(v.copy())).realize() for k, v in START.items()}
    opt = make(list(params.values()))
    Tensor.realize(*params.values(), *[t for ts in state_of(opt).values() for t in ts])

    def step(*grads: Tensor) -> None:
        for p, g in zip(params.values(), grads):
            p.grad = g
        Tensor.realize(*opt.schedule_step())
    run = TinyJit(step) if jit else step
    with Context(TRAINING=1):
        for grads in GRADS:
            run(*[place(Tensor(g)).realize() for g in grads.values()])
    state = {k: [t.numpy() for t in ts] for k, ts in state_of(opt).items()}
    return {k: p.numpy() for k, p in params.items()}, state, opt


ONE: dict[str, Any] = {}  # by optimizer, filled on first use


def on_one_device(name: str) -> Any:
    if name not in ONE:
        ONE[name] = trained(ALL[name], lambda t: t, False)[:2]
    return ONE[name]


def check(name: str, count: int, axis: int | None, jit: bool) -> None:
    devices = names(count)
    got, state, opt = trained(ALL[name], lambda t: t.shard(devices, axis), jit)
    want, wanted_state = on_one_device(name)
    compare = np.testing.assert_array_equal if name in ELEMENTWISE else \
        lambda a, b: np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    for k in SHAPES:
        compare(got[k], want[k])
    for k, values in wanted_state.items():
        for a, b in zip(state[k], values, strict=True):
            compare(a, b)
    for p, *kept in zip(opt.params, *state_of(opt).values()):
        for t in (p, *kept):
            assert t.device == devices and t.uop.axis == axis and t.shape == p.shape


CASES = [(name, 2 + i % 5, (0, 0, None)[i % 3], bool(i % 2)) for i, name in enumerate([*ALL, *ALL])]


@pytest.mark.parametrize("name, count, axis, jit", CASES, ids=str)
def test_state_lies_where_the_parameter_does(name: str, count: int, axis: int | None, jit: bool):
    check(name, count, axis, jit)


@pytest.mark.soak
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("name", ALL)
def test_state_of_every_optimizer(name: str, count: int):
    for axis in (0, None):
        for jit in (False, True):
            check(name, count, axis, jit)


@pytest.mark.parametrize("name", ALL)
def test_parameters_split_in_different_ways(name: str):
    """Each parameter has its own split, one lies on one device, one on other devices than the rest."""
    places = iter([(names(3), 1), (names(1), None), (names(5)[3:], 0)] * 8)

    def place(t: Tensor) -> Tensor:
        devices, axis = next(places)
        return t.to(devices[0]) if axis is None else t.shard(devices, axis)
    got, _, opt = trained(ALL[name], place, False)
    for k, want in on_one_device(name)[0].items():
        np.testing.assert_allclose(got[k], want, rtol=2e-5, atol=2e-6)
    for p, *kept in zip(opt.params, *state_of(opt).values()):
        assert all(t.device == p.device and t.uop.axis == p.uop.axis for t in kept)


@pytest.mark.parametrize("home", [names(3)[2], names(2)], ids=str)
@pytest.mark.parametrize("fused", [False, True])
def test_an_optimizer_with_devices_of_its_own(fused: bool, home: Any):
    """Gradients go to the state, new values come back."""
    for name, make in {"momentum and decay": lambda p: SGD(p, 0.5, 0.5, 0.25, device=home, fused=fused),
                       "adam": lambda p: Adam(p, lr=0.1, device=home, fused=fused)}.items():
        for place in (lambda t: t, lambda t: t.shard(names(2), 0)):
            got, _, opt = trained(make, place, True)
            assert {t.device for t in (*sum(state_of(opt).values(), []), opt.lr)} == {home}
            assert {p.device for p in opt.params} == {place(Tensor([1.0, 2])).device}
            for k, want in on_one_device(name)[0].items():
                np.testing.assert_array_equal(got[k], want)


def test_a_group_over_devices_of_each_own():
    a, b = (Tensor(np.ones((4, 2), np.float32)).shard(d, 0).realize() for d in (names(2), names(4)[1:]))
    opt = OptimizerGroup(SGD([a], lr=1.0), Adam([b], lr=0.5))
    with Context(TRAINING=1):
        (a.sum() * 3).backward()
        (b.sum() * 3).backward()
        opt.step()
    assert a.tolist() == [[-2, -2]] * 4 and np.allclose(b.numpy(), 0.5) and b.device == names(4)[1:]


def test_the_rate_of_a_captured_step_changes_on_all_devices():
    w = Tensor(np.zeros((4, 3), np.float32)).shard(names(4), 0).realize()
    opt = SGD([w], lr=1.0)

    @TinyJit
    def step(g: Tensor) -> None:
        w.grad = g
        Tensor.realize(*opt.schedule_step())
    g = Tensor(np.ones((4, 3), np.float32)).shard(names(4), 0).realize()
    with Context(TRAINING=1):
        for rate in (1.0, 2.0, 4.0, 8.0):
            opt.lr.assign(Tensor([rate]).to(opt.lr.device)).realize()
            step(g)
    assert opt.lr.device == names(4) and w.tolist() == [[-15.0] * 3] * 4


def test_state_is_saved_and_loaded_with_its_split(tmp_path: Any):
    make = ELEMENTWISE["adam"]
    devices = names(3)
    _, _, opt = trained(make, lambda t: t.shard(devices, 0), False)
    saved = {k: t.clone().realize() for k, t in nn.state.get_state_dict(opt).items()}
    nn.state.safe_save(saved, str(tmp_path / "state"))
    _, _, other = trained(make, lambda t: t.shard(devices, 0) * 2, False)
    nn.state.load_state_dict(other, nn.state.safe_load(str(tmp_path / "state")), verbose=False)
    for k, t in nn.state.get_state_dict(other).items():
        assert (t.numpy() == saved[k].numpy()).all() and t.device == devices and t.uop.axis == saved[k].uop.axis
    again = pickle.loads(pickle.dumps(other.m[0]))
    assert again.device == devices and again.uop.axis == 0 and (again.numpy() == saved["m.0"].numpy()).all()


def test_a_parameter_moved_behind_the_optimizers_back():
    w = Tensor(np.ones((4, 2), np.float32)).realize()
    opt = Adam([w])
    w.shard_(names(2), 0)
    w.grad = w * 2
    with Context(TRAINING=1), pytest.raises(PlacementError, match="was not moved with the others on"):
        opt.step()
