"""Kernels over the same rows become one: which, what they store, and that values stay what they are."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from schedule.helpers import assign, check, count, kernels, output, param, schedule

import tinyhost.schedule.rows as rows
from tinyhost import Context, Tensor, TinyJit, Variable, dtypes, nn
from tinyhost.capabilities import Capabilities
from tinyhost.uop import Ops, UOp

DEVICES = ("CPU", "PYTHON")


def stores(linear: UOp) -> list[int]:
    """Number of stores of each kernel."""
    return [sum(u.op is Ops.STORE for u in k.toposort()) for k in kernels(linear)]


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def softmax(x: UOp, axis: int = 1) -> UOp:
    e = (x - x.max(axis, keepdim=True)).exp2()
    return e * e.sum(axis, keepdim=True).reciprocal()


# *** which kernels ***
def test_numbers_of_rows_are_not_stored() -> None:
    linear = check(output(1, softmax(param(0, (9, 33)))), exact=False)
    assert stores(linear) == [1] and not any(u.op is Ops.BUFFER for u in linear.toposort())


def test_numbers_that_others_need_are_stored_too() -> None:
    a = param(0, (9, 33))
    total = a.sum(1, keepdim=True)
    linear = check(output(1, a * total), output(2, total), output(3, (a * total).permute((1, 0))))
    assert stores(linear) == [2, 1]


def test_results_of_a_row_are_read_by_reductions_of_that_row() -> None:
    """What a kernel stores for each element of a row, the next one sums: one kernel, and the value is stored."""
    a, b = param(0, (9, 33)), param(1, (9, 33))
    x = (a * b + a.max(1, keepdim=True)).exp2()
    linear = check(output(2, x), output(3, x.sum(1)), output(4, x - x.max(1, keepdim=True)), exact=False)
    assert stores(linear) == [3]


def test_columns_and_shifted_rows_stay_apart() -> None:
    a = param(0, (9, 33))
    assert count(check(output(1, softmax(a, 0)), exact=False)) == 2  # both numbers of a column; then the columns
    top = a.max(1, keepdim=True)
    moved = top.shrink(((0, 8), (0, 1)))
    assert count(check(output(1, a.shrink(((1, 9), (0, 33))) - moved), output(2, top))) == 2


def test_contractions_take_no_rows() -> None:
    a, w = param(0, (16, 32)), param(1, (32, 24))
    x = a - a.max(1, keepdim=True)
    product = (x.reshape((16, 32, 1)) * w).sum(1)
    assert count(check(output(2, product))) == 2
    assert count(check(output(2, product - product.max(1, keepdim=True)))) == 3  # the product between two of rows


def test_windows_are_no_rows() -> None:
    x = param(0, (2, 11, 13))._pool((3, 2), 1, 1).sum((3, 4))
    assert count(check(output(1, x), output(2, x * 2))) == 2


def test_others_that_wait_in_between() -> None:
    """What needs a number of a row, and is needed by the row, keeps the two apart."""
    a = param(0, (16, 16))
    top = a.max(1, keepdim=True)
    linear = check(output(1, a - top + (top * a).sum(0).reshape((1, 16))), output(2, top))
    assert count(linear) == 3


def test_two_pairs_that_would_wait_for_each_other() -> None:
    a, b = param(0, (16, 16)), param(1, (16, 16))
    x, y = a.max(1, keepdim=True), b.max(1, keepdim=True)
    check(output(2, a - x + y.permute((1, 0))), output(3, b - y + x.permute((1, 0))), output(4, x), output(5, y))


def test_a_storage_that_is_replaced_is_read_before() -> None:
    a = param(0, (8, 16))
    assert count(check(assign(a, a - a.max(1, keepdim=True)))) == 2
    assert count(check(assign(a, a * 2), output(1, a.sum(1)))) == 2
    new = assign(a, a * 2)
    assert count(check(new, output(1, new.sum(1)))) == 2  # no loop over the row finds what another one wrote
    assert count(check(new, output(1, new + 1), output(2, (new + 1).sum(1)))) == 2


def test_steps_of_an_optimiser_are_one_kernel() -> None:
    p, m, v, g = (param(i, (24, 24)) for i in range(4))
    first, second = assign(m, m * 0.5 + g), assign(v, v * 0.25 + g * g)
    linear = check(first, second, assign(p, p - first * (second + 1)))
    assert stores(linear) == [3]


def test_elementwise_values_with_storage_of_their_own_keep_it() -> None:
    a = param(0, (24, 24))
    x = UOp(Ops.CONTIGUOUS, (a * 2,))
    assert count(check(output(1, x + 1))) == 2


def test_outputs_that_nobody_else_reads_do_not_all_live_at_once() -> None:
    a, first = param(0, (24, 24)), param(1, (24, 24))
    x = assign(first, a * 2)
    assert count(check(x, output(2, x + 1))) == 2  # storage 1 may be free before storage 2 is needed
    y = x
    effects = [x]
    for i in range(2, 6):
        y = output(i, softmax(y))
        effects.append(y)
    linear = check(*effects, exact=False)
    assert [sum(len(e.src) == 3 for e in k.src) for k in kernels(linear)] == [2, 2, 1]


def test_limits() -> None:
    a = param(0, (8, 64))
    effect = output(1, softmax(a))
    assert count(check(effect, exact=False, caps=Capabilities(l2_bytes=1 << 11))) == 1
    assert count(check(effect, exact=False, caps=Capabilities(l2_bytes=1 << 9))) == 3  # a row does not fit
    assert count(check(effect, exact=False, caps=Capabilities(max_kernel_ops=20))) > 1
    many = [output(i + 1, a * a.max(1, keepdim=True) + float(i)) for i in range(9)]
    assert max(stores(check(*many))) <= rows.MAX_OUTPUTS
    assert max(stores(check(*many, caps=Capabilities(max_kernel_buffers=4)))) <= 3


def test_few_long_rows_are_left_to_all_threads() -> None:
    wide = Capabilities(threads=4)
    assert count(schedule(output(1, softmax(param(0, (15, 8192)))), caps=wide)) == 3
    assert count(schedule(output(1, softmax(param(0, (16, 8192)))), caps=wide)) == 1
    assert count(schedule(output(1, softmax(param(0, (1, 512)))), caps=wide)) == 1


# *** values ***
def standard(t: Tensor) -> Tensor:
    return (t - t.mean(-1, keepdim=True)) / (t.std(-1, keepdim=True, correction=0) + 1)


ROWS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Any], Any]]] = {
    "softmax": (lambda t: t.softmax(-1), lambda t: t.softmax(-1)),
    "log_softmax": (lambda t: t.log_softmax(-1), lambda t: t.log_softmax(-1)),
    "logsumexp": (lambda t: t.logsumexp(-1), lambda t: t.logsumexp(-1)),
    "layernorm": (lambda t: t.layernorm(), lambda t: (t - t.mean(-1, keepdim=True)) * (
        t.var(-1, keepdim=True, correction=0) + 1e-5).rsqrt()),
    "rms": (lambda t: t * (t.square().mean(-1, keepdim=True) + 1e-5).rsqrt(),
            lambda t: t * (t.square().mean(-1, keepdim=True) + 1e-5).rsqrt()),
    "normalize": (lambda t: t.normalize(dim=-1), lambda t: t / t.square().sum(-1, keepdim=True).sqrt()),
    "standard": (standard, lambda t: (t - t.mean(-1, keepdim=True)) / (t.std(-1, keepdim=True, correction=0) + 1)),
}


@pytest.mark.parametrize("dev", DEVICES)
@pytest.mark.parametrize("name", ROWS)
def test_rows_and_their_gradients_beside_torch(name: str, dev: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = ROWS[name]
    for shape in ((3, 2), (1, 7), (5, 16), (7, 33), (6, 100), (2, 3, 40), (17, 130)):
        x = normal(*shape)
        xt = torch.from_numpy(x).requires_grad_(True)
        want = theirs(xt)
        g = normal(*want.shape, seed=1)
        (slope,) = torch.autograd.grad(want, xt, torch.from_numpy(g))
        with Context(DEV=dev):
            t = Tensor(x)
            y = ours(t)
            got = y.gradient(t, gradient=Tensor(g))[0]
            Tensor.realize(y, got)
            np.testing.assert_allclose(y.numpy(), want.detach().numpy(), rtol=2e-6, atol=2e-6)
            np.testing.assert_allclose(got.numpy(), slope.numpy(), rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("name, forward, backward", [
    ("softmax", 1, 1), ("log_softmax", 1, 1), ("logsumexp", 1, 1), ("layernorm", 1, 1), ("rms", 1, 1),
    ("normalize", 1, 1), ("standard", 1, 1)])
def test_one_kernel_each(name: str, forward: int, backward: int) -> None:
    ours, _ = ROWS[name]
    with Context(DEV="CPU"):
        t = Tensor(normal(64, 96)).realize()
        y = ours(t)
        assert len(y.schedule_linear().src) == forward
        g = Tensor(normal(*y.shape, seed=1)).realize()
        assert len(y.gradient(t, gradient=g)[0].schedule_linear().src) == backward


@pytest.mark.parametrize("channels, groups, size", [(12, 3, (5, 7)), (8, 8, (4,)), (8, 1, (3, 3)), (6, 2, ())], ids=str)
def test_groups_of_channels_are_rows(channels: int, groups: int, size: tuple[int, ...]) -> None:
    x = normal(4, channels, *size)
    with Context(DEV="CPU"):
        layer = nn.GroupNorm(groups, channels)
        layer.weight.assign(Tensor(normal(channels, seed=1))).realize(layer.bias)
        y = layer(Tensor(x).realize())
        assert len(y.schedule_linear().src) == 1
        parts = x.reshape(4, groups, -1)
        flat = (parts - parts.mean(2, keepdims=True)) / np.sqrt(parts.var(2, keepdims=True) + 1e-5)
        shape = (1, channels, *(1 for _ in size))
        want = flat.reshape(x.shape) * normal(channels, seed=1).reshape(shape)
        np.testing.assert_allclose(y.numpy(), want, rtol=1e-4, atol=1e-5)


def test_kernels_of_a_grid_are_as_they_were() -> None:
    with Context(DEV="PYTHON::gpu"):
        t = Tensor(normal(8, 12)).realize()
        assert len(t.softmax().schedule_linear().src) == 3
        np.testing.assert_allclose(t.softmax().sum(1).numpy(), np.ones(8), rtol=1e-6)


@pytest.mark.parametrize("dev", DEVICES)
def test_half_rows(dev: str) -> None:
    x = normal(12, 70).astype(np.float16)
    want = np.exp(x.astype(np.float64))
    with Context(DEV=dev):
        got = Tensor(x).softmax()
        assert got.dtype is dtypes.float16
        np.testing.assert_allclose(got.numpy(), want / want.sum(1, keepdims=True), rtol=4e-3)


def test_a_symbolic_number_of_rows() -> None:
    with Context(DEV="CPU"):
        x = Tensor(normal(40, 70)).realize()
        f = TinyJit(lambda t: t.softmax().realize())
        for n in (3, 40, 1, 17, 40):
            size = Variable("rows", 1, 40).bind(n)
            got = f(x[:size])
            want = np.exp(normal(40, 70)[:n].astype(np.float64))
            np.testing.assert_allclose(got[:n].numpy() if got.shape[0] == n else got.numpy()[:n],
                                       want / want.sum(1, keepdims=True), rtol=1e-5)


def test_symbolic_rows_of_symbolic_length() -> None:
    with Context(DEV="CPU"):
        x = Tensor(normal(9, 64)).realize()
        for n in (1, 5, 64):
            size = Variable("length", 1, 64).bind(n)
            want = np.exp(normal(9, 64)[:, :n].astype(np.float64))
            np.testing.assert_allclose(x[:, :size].softmax().numpy(), want / want.sum(1, keepdims=True), rtol=1e-5)


def test_infinities_and_nan_stay_in_their_row() -> None:
    x = normal(6, 50)
    x[1, 3], x[2, 4], x[3] = np.nan, np.inf, -np.inf
    torch = pytest.importorskip("torch")
    with Context(DEV="CPU"):
        got = Tensor(x).softmax().numpy()
    np.testing.assert_allclose(got, torch.from_numpy(x).softmax(1).numpy(), rtol=1e-6)


def test_an_optimiser_steps_as_one_kernel_a_parameter() -> None:
    with Context(DEV="CPU"):
        x = Tensor(normal(8, 24)).realize()

        def run(size: int) -> np.ndarray:
            with Context(TRAINING=1), pytest.MonkeyPatch.context() as patch:
                patch.setattr(rows, "MAX_OPS", size)
                w = Tensor(normal(24, 24, seed=4)).realize()
                opt = nn.optim.Adam([w], lr=0.01)
                for _ in range(3):
                    opt.zero_grad()
                    (x @ w).square().mean().backward()
                    opt.step()
                return w.numpy()
        np.testing.assert_array_equal(run(rows.MAX_OPS), run(0))


# *** random programs of rows ***
def program(seed: int) -> list[Tensor]:
    """Tensors over the same rows, made of each other, one of them in place."""
    rng = np.random.default_rng(seed)
    m, n = int(rng.integers(1, 20)), int(rng.integers(1, 70))
    shape = (m, n) if rng.random() < 0.7 else (2, m, n)
    inputs = [Tensor(rng.integers(-3, 4, shape).astype(np.float32)).realize() for _ in range(3)]
    wide, narrow = list(inputs), [Tensor(rng.integers(-3, 4, (*shape[:-1], 1)).astype(np.float32)).realize()]
    pick = lambda xs: xs[int(rng.integers(len(xs)))]
    for _ in range(int(rng.integers(3, 12))):
        kind = int(rng.integers(6))
        if kind == 0:
            narrow.append(pick(wide).max(-1, keepdim=True))
        elif kind == 1:
            narrow.append((pick(wide) * pick(wide)).clip(-4, 4).sum(-1, keepdim=True).clip(-9, 9))
        elif kind == 2:
            narrow.append((pick(narrow) + pick(narrow)).clip(-9, 9))
        elif kind == 3:
            wide.append((pick(wide) - pick(narrow)).clip(-9, 9))
        elif kind == 4:
            wide.append((pick(wide) * 2 + pick(wide).exp2()).clip(-9, 9))
        else:
            x = pick(wide).contiguous()
            wide.append(x if rng.random() < 0.5 else (x + 1).clip(-9, 9))
    made = [t for t in (*wide[3:], *narrow[1:]) if rng.random() < 0.5] or [wide[-1]]
    target = inputs[int(rng.integers(3))]
    if rng.random() < 0.5:
        target.assign((target * 0.5 + pick(wide)).clip(-9, 9))
    return [*made, *inputs]


@pytest.mark.parametrize("block", range(4))
def test_random_programs_of_rows(block: int) -> None:
    """Merged or apart, with values kept or computed again: the same bytes, but for the order of sums."""
    with Context(DEV="CPU"):
        for seed in range(block * 40, block * 40 + 40):
            results = []
            for size in (0, rows.MAX_OPS):
                with pytest.MonkeyPatch.context() as patch, Context(SCACHE=0):
                    patch.setattr(rows, "MAX_OPS", size)
                    tensors = program(seed)
                    Tensor.realize(*tensors)
                    results.append([t.numpy() for t in tensors])
            for a, b in zip(*results):
                np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5, err_msg=f"seed {seed}")
