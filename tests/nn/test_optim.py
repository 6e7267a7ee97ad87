"""Optimizers over several steps against torch, or against their published update rule in numpy."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from tinyhost import Context, GlobalCounters, Tensor, TinyJit, dtypes, nn
from tinyhost.nn.optim import LAMB, LARS, SGD, Adam, AdamW, Muon, Optimizer, OptimizerGroup

STEPS = 6
RNG = np.random.default_rng(1)
START = [RNG.standard_normal(s).astype(np.float32) for s in ((4, 3), (3,), (2, 2, 3), ())]
INPUT = RNG.standard_normal((STEPS, 4)).astype(np.float32)


def loss_of(params: list[Any], x: Any) -> Any:
    """A scalar that is not linear in any parameter; written for both libraries."""
    w, b, k, s = params
    h = (x.reshape(1, 4) @ w + b).tanh()
    return (h * h).sum() + (k * k * k).sum() * 0.1 + (s * s * 3 - s) + (k * s).sum() * 0.5


def run(make: Callable[[list[Tensor]], Optimizer], start: list[np.ndarray] = START) -> list[list[np.ndarray]]:
    """Parameters after each step of our optimizer."""
    params = [Tensor(p.copy()) for p in start]
    opt, out = make(params), []
    with Context(TRAINING=1):
        for x in INPUT:
            opt.zero_grad()
            loss_of(params, Tensor(x)).backward()
            opt.step()
            out.append([p.numpy() for p in params])
    return out


def run_torch(make: Callable[[list[torch.Tensor]], torch.optim.Optimizer]) -> list[list[np.ndarray]]:
    params = [torch.tensor(p, requires_grad=True) for p in START]
    opt, out = make(params), []
    for x in INPUT:
        opt.zero_grad()
        loss_of(params, torch.tensor(x)).backward()
        opt.step()
        out.append([p.detach().numpy().copy() for p in params])
    return out


def same(ours: list[list[np.ndarray]], theirs: list[list[np.ndarray]], tol: float = 2e-5) -> None:
    for step, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=tol, atol=tol, err_msg=f"after step {step + 1}")


AGAINST_TORCH = {
    "sgd": (lambda p: SGD(p, lr=0.1), lambda p: torch.optim.SGD(p, lr=0.1)),
    "sgd-decay": (lambda p: SGD(p, lr=0.1, weight_decay=0.2), lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.2)),
    "sgd-momentum": (lambda p: SGD(p, lr=0.05, momentum=0.9), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    "sgd-momentum-decay": (lambda p: SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1),
                           lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.8, weight_decay=0.1)),
    "sgd-nesterov": (lambda p: SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1),
                     lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.1)),
    # with a constant rate, scaling before or after the sum is the same
    "sgd-classic": (lambda p: SGD(p, lr=0.05, momentum=0.9, classic=True),
        lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    "adam": (lambda p: Adam(p, lr=0.02), lambda p: torch.optim.Adam(p, lr=0.02)),
    "adam-betas": (lambda p: Adam(p, lr=0.02, b1=0.7, b2=0.95, eps=1e-4),
                   lambda p: torch.optim.Adam(p, lr=0.02, betas=(0.7, 0.95), eps=1e-4)),
    "adamw": (lambda p: AdamW(p, lr=0.02), lambda p: torch.optim.AdamW(p, lr=0.02)),
    "adamw-decay": (lambda p: AdamW(p, lr=0.02, weight_decay=0.4),
        lambda p: torch.optim.AdamW(p, lr=0.02, weight_decay=0.4)),
}


@pytest.mark.parametrize("name", AGAINST_TORCH)
def test_against_torch(name: str):
    ours, theirs = AGAINST_TORCH[name]
    same(run(ours), run_torch(theirs))


@pytest.mark.parametrize("name", AGAINST_TORCH)
def test_fused_against_torch(name: str):
    ours, theirs = AGAINST_TORCH[name]
    with Context(FUSE_OPTIM=1):
        got = run(ours)
    same(got, run_torch(theirs))


def test_fused_state_is_one_vector():
    params = [Tensor(p.copy()) for p in START]
    opt = AdamW(params, lr=0.1, fused=True)
    assert [m.shape for m in opt.m] == [(sum(p.size for p in START),)] and opt.fused
    assert len(AdamW(params, lr=0.1).m) == 4
    mixed = [Tensor.ones(2), Tensor.ones(3, dtype=dtypes.float64), Tensor.ones(4).half()]
    assert [v.shape for v in SGD(mixed, momentum=0.9, fused=True).b] == [(6,), (3,)]


def test_fused_needs_few_kernels():
    counts = []
    for fused in (False, True):
        params = [Tensor(np.ones(3 + i, np.float32)).realize() for i in range(8)]
        opt = Adam(params, lr=0.1, fused=fused)
        with Context(TRAINING=1):
            for _ in range(2):
                for p in params:
                    p.grad = Tensor.ones(*p.shape).contiguous().realize()
                before = GlobalCounters.kernel_count
                opt.step()
                counts.append(GlobalCounters.kernel_count - before)
    assert counts[1] <= 10 and counts[3] <= 12  # one kernel a parameter; one for all moments, then the pieces


@pytest.mark.parametrize("make", [lambda p, **k: LAMB(p, **k), lambda p, **k: LARS(p, **k), lambda p,
                                  **k: Muon(p, **k)])
def test_rules_that_look_at_whole_tensors_are_not_fused(make: Callable[..., Optimizer]):
    with Context(FUSE_OPTIM=1):
        assert not make([Tensor.ones(2, 2)]).fused
    with pytest.raises(ValueError, match=r"(LAMB|LARS|Muon) cannot be fused: it (scales each tensor by its own norm|"
                                         r"orthogonalises each matrix); leave fused out"):
        make([Tensor.ones(2, 2)], fused=True)


EVERY = {
    "sgd": lambda p: SGD(p, lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.1),
    "adamw": lambda p: AdamW(p, lr=0.1),
    "lamb": lambda p: LAMB(p, lr=0.1, weight_decay=0.1),
    "lars": lambda p: LARS(p, lr=0.1),
    "muon": lambda p: Muon(p, lr=0.1),
    "fused": lambda p: Adam(p, lr=0.1, fused=True),
    "group": lambda p: OptimizerGroup(SGD(p[:1], lr=0.1), AdamW(p[1:], lr=0.1)),
}


@pytest.mark.parametrize("name", EVERY)
def test_jitted_steps_are_the_eager_ones(name: str):
    line = np.linspace(-1, 2, 6, dtype=np.float32)
    start = [line.reshape(2, 3), line[::-1].reshape(3, 2)]

    def train(jit: bool) -> list[np.ndarray]:
        params = [Tensor(p.copy()) for p in start]
        opt = EVERY[name](params)

        def step(x: Tensor) -> Tensor:
            opt.zero_grad()
            loss = ((params[0] @ params[1]) * x).sin().sum()
            loss.backward()
            opt.step()
            return loss.realize()
        call = TinyJit(step) if jit else step
        with Context(TRAINING=1):
            losses = [call(Tensor(np.full((2, 2), 0.3 * (i + 1), np.float32)).realize()).item() for i in range(5)]
        return [np.array(losses), *(p.numpy() for p in params)]
    for a, b in zip(train(True), train(False)):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


# *** published rules in numpy ***
def gradients(params: list[np.ndarray], x: np.ndarray) -> list[np.ndarray]:
    ts = [torch.tensor(p, requires_grad=True) for p in params]
    loss_of(ts, torch.tensor(x)).backward()
    return [t.grad.numpy() for t in ts]


def run_numpy(rule: Callable[[int, np.ndarray, np.ndarray, dict[str, Any]], np.ndarray]) -> list[list[np.ndarray]]:
    params, out = [p.copy() for p in START], []
    states: list[dict[str, Any]] = [{} for _ in params]
    for step, x in enumerate(INPUT):
        grads = gradients(params, x)
        params = [rule(step + 1, p, g, s).astype(np.float32) for p, g, s in zip(params, grads, states)]
        out.append(params)
    return out


def norm(x: np.ndarray) -> float:
    return float(np.sqrt((x.astype(np.float64)**2).sum()))


def test_lars():
    lr, momentum, wd, tcoef = 0.5, 0.9, 1e-2, 0.05

    def rule(step: int, p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
        local = tcoef * norm(p) / (norm(g) + wd * norm(p)) if norm(p) > 0 and norm(g) > 0 else 1.0
        s["b"] = momentum * s.get("b", 0) + lr * local * (g + wd * p)
        return p - s["b"]
    same(run(lambda p: LARS(p, lr=lr, momentum=momentum, weight_decay=wd, tcoef=tcoef)), run_numpy(rule))


@pytest.mark.parametrize("wd", [0.0, 0.1])
def test_lamb(wd: float):
    lr, b1, b2, eps = 0.05, 0.9, 0.999, 1e-6

    def rule(step: int, p: np.ndarray, g: np.ndarray, s: dict[str, Any]) -> np.ndarray:
        s["m"] = b1 * s.get("m", 0) + (1 - b1) * g
        s["v"] = b2 * s.get("v", 0) + (1 - b2) * g * g
        up = s["m"] / (1 - b1**step) / (np.sqrt(s["v"] / (1 - b2**step)) + eps) + wd * p
        return p - lr * (norm(p) / norm(up) if norm(p) > 0 and norm(up) > 0 else 1.0) * up
    same(run(lambda p: LAMB(p, lr=lr, weight_decay=wd)), run_numpy(rule), 5e-5)


def newton_schulz(g: np.ndarray, steps: int, c: tuple[float, float, float]) -> np.ndarray:
    x = g / (np.linalg.norm(g) + 1e-7)
    tall = x.shape[0] > x.shape[1]
    x = x.T if tall else x
    for _ in range(steps):
        a = x @ x.T
        x = c[0] * x + (c[1] * a + c[2] * a @ a) @ x
    return x.T if tall else x


def test_muon():
    start = [RNG.standard_normal((4, 3)), RNG.standard_normal((3, 2, 2))]
    params = [Tensor(p.astype(np.float32)) for p in start]
    grads = [[RNG.standard_normal(p.shape).astype(np.float32) for p in start] for _ in range(4)]
    opt = Muon(params, lr=0.02)
    buffers = [np.zeros_like(p) for p in start]
    with Context(TRAINING=1):
        for step in grads:
            for i, (p, g) in enumerate(zip(params, step)):
                p.grad = Tensor(g)
                buffers[i] = 0.95 * buffers[i] + g
                flat = (g + 0.95 * buffers[i]).reshape(len(g), -1)
                update = newton_schulz(flat, 5, (3.4445, -4.775, 2.0315)).reshape(g.shape)
                start[i] = start[i] - 0.02 * (update + 0.1 * start[i])
            opt.step()
    for p, want in zip(params, start):
        np.testing.assert_allclose(p.numpy(), want, rtol=2e-4, atol=2e-4)


def test_zero_weights_have_trust_ratio_one():
    p = Tensor(np.zeros(3, np.float32))
    opt = LAMB([p], lr=0.1)
    with Context(TRAINING=1):
        p.grad = Tensor(np.array([1.0, -1.0, 2.0], np.float32))
        opt.step()
    np.testing.assert_allclose(p.numpy(), [-0.1, 0.1, -0.1], rtol=1e-4)


# *** rates, groups, dtypes, state ***
def test_the_rate_can_change_between_steps():
    p = Tensor(np.ones(2, np.float32))
    opt = SGD([p], lr=1.0)
    with Context(TRAINING=1):
        for lr, want in ((1.0, 0.0), (0.5, -0.5), (0.25, -0.75)):
            opt.lr.assign(Tensor([lr]))
            p.grad = Tensor(np.ones(2, np.float32))
            opt.step()
            assert p.tolist() == [want, want]


def test_group():
    a, b = Tensor(np.ones(2, np.float32)), Tensor(np.ones(3, np.float32))
    group = OptimizerGroup(SGD([a], lr=0.5), SGD([b], lr=0.25))
    with Context(TRAINING=1):
        (a.sum() + b.sum()).backward()
        group.step()
        group.zero_grad()
    assert a.tolist() == [0.5] * 2 and b.tolist() == [0.75] * 3 and a.grad is None and b.grad is None
    assert group.params == [a, b] or [x is y for x, y in zip(group.params, (a, b))] == [True, True]
    assert group[1].params[0] is b


@pytest.mark.parametrize(
    "make", [lambda p: SGD(p, lr=0.1, momentum=0.9), lambda p: Adam(p, lr=0.1), lambda p: LAMB(p, lr=0.1)]
)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float64])
def test_parameters_of_other_dtypes(make: Callable[[list[Tensor]], Optimizer], dtype: Any):
    p = Tensor(np.linspace(-1, 1, 5, dtype=np.float32)).cast(dtype).realize()
    single = Tensor(np.linspace(-1, 1, 5, dtype=np.float32))
    for t in (p, single):
        opt = make([t])
        with Context(TRAINING=1):
            for _ in range(3):
                opt.zero_grad()
                (t * t).sum().backward()
                opt.step()
    assert p.dtype is dtype
    np.testing.assert_allclose(p.float().numpy(), single.numpy(), atol=3e-2)


def test_gradients_are_kept_until_zero_grad():
    p = Tensor(np.array([1.0, 2.0], np.float32)).is_param_()
    with Context(TRAINING=1):
        opt = SGD([p], lr=0.1)
        (p * p).sum().backward()
        opt.step()
        assert p.grad.tolist() == [2.0, 4.0]  # of the value the gradient was taken at
        (p * 3).sum().backward()
        assert p.grad.tolist() == [5.0, 7.0]


def test_shared_parameters_are_updated_once():
    p = Tensor(np.array([1.0], np.float32))
    opt = SGD([p, p], lr=0.1)
    assert len(opt.params) == 1
    with Context(TRAINING=1):
        (p * 2).sum().backward()
        opt.step()
    assert np.allclose(p.numpy(), 0.8)


def test_state_goes_through_a_file(tmp_path: Any):
    def train(p: Tensor, opt: Optimizer, steps: int) -> None:
        with Context(TRAINING=1):
            for _ in range(steps):
                opt.zero_grad()
                (p * p * p).sum().backward()
                opt.step()
    start = np.array([1.0, -0.5, 2.0], np.float32)
    p = Tensor(start)
    opt = AdamW([p], lr=0.1)
    train(p, opt, 2)
    nn.state.safe_save(nn.state.get_state_dict(opt), tmp_path / "opt.safetensors")
    train(p, opt, 2)
    q = Tensor(np.zeros(3, np.float32))
    other = AdamW([q], lr=0.3)
    nn.state.load_state_dict(other, nn.state.safe_load(tmp_path / "opt.safetensors"))
    train(q, other, 2)
    assert q.tolist() == p.tolist()


BAD = {
    "no parameters": (lambda: SGD([]), ValueError, "optimizer must have at least one param"),
    "negative rate": (lambda: Adam([Tensor.ones(2)], lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    "rate that is no number": (
        lambda: Adam([Tensor.ones(2)], lr=float("nan")),
        ValueError,
        "Invalid learning rate: nan",
    ),
    "infinite rate": (lambda: Adam([Tensor.ones(2)], lr=float("inf")), ValueError, "Invalid learning rate: inf"),
    "only integers": (
        lambda: SGD([Tensor([1, 2])]),
        ValueError,
        "optimizer must have at least one param: the tensors it was given are "
        "integers, or marked with is_param_\\(False\\)",
    ),
    "vector for Muon": (
        lambda: Muon([Tensor.ones(2, 2), Tensor.ones(2)]),
        ValueError,
        r"Muon updates matrices, but params \[1\] have less than two axes: give those to AdamW",
    ),
    "Newton-Schulz without factors": (
        lambda: LARS([Tensor.ones(2)], ns_steps=3),
        ValueError,
        "ns_steps=3 needs ns_coefficients",
    ),
    "empty group": (lambda: OptimizerGroup(), ValueError, "an optimizer group needs at least one optimizer"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_arguments(name: str):
    call, kind, text = BAD[name]
    with pytest.raises(kind, match=text):
        call()


def test_step_outside_of_training():
    opt = SGD([Tensor.ones(2)])
    with pytest.raises(RuntimeError, match=r"optimizer.step\(\) needs training mode: wrap the training loop in `with "
                                           "Context"):
        opt.step()


def test_step_without_gradient():
    opt = SGD([Tensor.ones(2), Tensor.ones(3)])
    opt.params[0].grad = Tensor.ones(2)
    with Context(TRAINING=1), pytest.raises(RuntimeError, match=r"params \[1\] of the optimizer have no gradient: "
                                                                r"call backward\(\)"):
        opt.step()


def test_optimizer_without_rule():
    opt = Optimizer([Tensor.ones(1)], lr=0.1)
    opt.params[0].grad = Tensor.ones(1)
    with Context(TRAINING=1), pytest.raises(TypeError, match="Optimizer defines no update rule: override _update"):
        opt.step()
