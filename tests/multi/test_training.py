"""Models on several devices: data split, weights whole or split, optimizer state like the weights, TinyJit too."""
from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, function, nn

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((12, 1, 6, 6)).astype(np.float32), RNG.integers(0, 5, 12).astype(np.int32)


class Model:
    def __init__(self) -> None:
        self.conv, self.norm = nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm(4)
        self.hidden, self.out = nn.Linear(64, 12), nn.Linear(12, 5)

    def __call__(self, x: Tensor) -> Tensor:
        x = self.norm(self.conv(x)).relu().flatten(1)
        return self.out(self.hidden(x).relu())


def train(devices: tuple[str, ...] | None, place: Callable[[str, Tensor], int | None], make: Any, jit: bool,
          steps: int = 4) -> tuple[list[float], dict[str, Any], Any]:
    """(losses, weights, optimizer) after some steps."""
    Tensor.manual_seed(3)
    model = Model()
    if devices is not None:
        for k, t in nn.state.get_state_dict(model).items():
            t.shard_(devices, place(k, t))
    opt = make(nn.state.get_parameters(model))

    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*opt.schedule_step())
    run, losses = TinyJit(step) if jit else step, []
    with Context(TRAINING=1):
        for _ in range(steps):
            x, y = Tensor(X), Tensor(Y)
            if devices is not None:
                x, y = x.shard(devices, 0).realize(), y.shard(devices, 0).realize()
            losses.append(run(x, y))
    state = nn.state.get_state_dict(model)
    return [t.item() for t in losses], {k: t.numpy() for k, t in state.items()}, opt


def whole(k: str, t: Tensor) -> int | None:
    return None


def split(k: str, t: Tensor) -> int | None:
    """Weights of the linear layers split along their rows, where 3 divides them."""
    return 0 if t.shape and t.shape[0] % 3 == 0 else None


OPTIMIZERS = {"sgd": lambda p: nn.optim.SGD(p, lr=0.1, momentum=0.9), "adam": lambda p: nn.optim.Adam(p, lr=0.01)}


ONE: dict[str, Any] = {}  # by optimizer, filled on first use


@pytest.mark.parametrize("optimizer, place, jit", [("sgd", whole, False), ("sgd", split, True), ("adam", whole, True),
                                                   ("adam", split, False)])
def test_training_agrees_with_one_device(optimizer: str, place: Any, jit: bool):
    if optimizer not in ONE:
        ONE[optimizer] = train(None, whole, OPTIMIZERS[optimizer], True)[:2]
    one, weights = ONE[optimizer]
    many, others, opt = train(names(3), place, OPTIMIZERS[optimizer], jit)
    np.testing.assert_allclose(many, one, rtol=2e-5)
    for k, w in weights.items():
        np.testing.assert_allclose(others[k], w, rtol=2e-3, atol=2e-4, err_msg=k)
    assert all(t.device == names(3) for t in nn.state.get_state_dict(opt).values())


# *** two layers whose steps are exact in doubles: whole numbers, and rates that are powers of two ***
WAYS: dict[str, tuple[int | None, int | None, int | None]] = {  # splits of the batch, the first and the second weight
    "data": (0, None, None), "tensor": (None, 1, 0), "data and tensor": (0, 1, 0), "rows": (0, 0, 1),
    "nothing": (None, None, None), "features": (1, 0, None)}
WHOLE = np.random.default_rng(11)
W1, W2 = (WHOLE.integers(-2, 3, s).astype(np.float64) for s in ((8, 12), (12, 6)))
BATCHES = [(WHOLE.integers(-2, 3, (12, 8)).astype(np.float64), WHOLE.integers(-1, 2, (12, 6)).astype(np.float64))
           for _ in range(4)]


def exact_steps(devices: tuple[str, ...] | None, way: str, jit: bool, state_axis: int | None = None) -> list[Any]:
    """Losses, weights and momenta after four steps."""
    x_axis, *w_axes = WAYS[way]

    def put(t: Tensor, axis: int | None) -> Tensor:
        return (t if devices is None else t.shard(devices, axis)).realize()
    weights = [put(Tensor(w.copy()), axis) for w, axis in zip((W1, W2), w_axes)]
    opt = nn.optim.SGD(weights, lr=0.125, momentum=0.5)
    if state_axis is not None:
        opt.b = [put(b, state_axis) for b in opt.b]

    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = ((x @ weights[0]).relu() @ weights[1] * y).sum().backward()
        return loss.realize(*opt.schedule_step())
    run = TinyJit(step) if jit else step
    with Context(TRAINING=1):
        losses = [run(put(Tensor(x), x_axis), put(Tensor(y), 0 if x_axis == 0 else None)).item() for x, y in BATCHES]
    if devices is not None:
        assert all(t.device == devices and t.uop.axis == a for t, a in zip(weights, w_axes))
        assert all(b.uop.axis == (a if state_axis is None else state_axis) for b, a in zip(opt.b, w_axes))
    return [losses, *(t.numpy() for t in (*weights, *opt.b))]


def check_exact(way: str, count: int, jit: bool, state_axis: int | None = None) -> None:
    if not EXACT:
        EXACT.extend(exact_steps(None, "nothing", False))
    for got, want in zip(exact_steps(names(count), way, jit, state_axis), EXACT, strict=True):
        np.testing.assert_array_equal(got, want)


EXACT: list[Any] = []  # on one device, filled on first use


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("way", ["data", "tensor", "data and tensor"])
def test_captured_steps_are_those_of_one_device(way: str, count: int):
    check_exact(way, count, jit=True, state_axis=0 if way == "data" and count % 2 else None)


@pytest.mark.soak
@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
@pytest.mark.parametrize("way", WAYS)
def test_steps_are_those_of_one_device(way: str, count: int):
    for algorithm in ({"RING": 0}, {"RING": 2}, {"ALL2ALL": 2}):
        with Context(**algorithm):
            for jit in (False, True):
                for state_axis in (None, 0, 1):
                    check_exact(way, count, jit, state_axis)


def test_layers_on_different_devices():
    """A pipeline: each layer has devices of its own, activations and gradients move between them."""
    first, second = names(2), names(5)[3:]
    weights = [Tensor(W1.copy()).shard(first, 1).realize(), Tensor(W2.copy()).shard(second, 0).realize()]
    opt = nn.optim.SGD(weights, lr=0.125, momentum=0.5)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = ((x @ weights[0]).relu().to(second) @ weights[1] * y).sum().backward()
        return loss.realize(*opt.schedule_step())
    with Context(TRAINING=1):
        losses = [step(Tensor(x).shard(first, 0).realize(), Tensor(y).shard(second).realize()).item()
                  for x, y in BATCHES]
    for got, want in zip((losses, *(w.numpy() for w in (*weights, *opt.b))),
                         exact_steps(None, "nothing", False), strict=True):
        np.testing.assert_array_equal(got, want)


def test_new_state_is_split_like_the_weight():
    w = Tensor(np.ones((6, 4), np.float32)).shard(names(3), 0)
    for t in (w.zeros_like(), w.ones_like(), w.full_like(3.0), w.empty_like(), w.rand_like()):
        assert t.realize().uop.axis == 0 and t.shape == (6, 4)
    assert w.full_like(3.0).numpy().tolist() == np.full((6, 4), 3.0).tolist()
    assert w.zeros_like(device=names(1)[0]).device == names(1)[0]


def test_weights_split_along_columns_and_rows():
    """A pair of layers, the first split along its results, the second along what it sums over: one all-reduce."""
    rng = np.random.default_rng(4)
    x, a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in [(5, 8), (8, 12), (12, 6)])
    for count in (2, 3, 4):
        d = names(count)
        ta, tb = Tensor(a).shard(d, 1).realize(), Tensor(b).shard(d, 0).realize()
        hidden = (Tensor(x).shard(d) @ ta).relu()
        assert hidden.uop.axis == 1
        assert ((hidden @ tb).numpy() == np.maximum(x @ a, 0) @ b).all()


@pytest.mark.parametrize("axes", [(0, None), (None, 0), (0, 1), (1, 0), (None, None)])
def test_gradients(axes: tuple[int | None, int | None]):
    rng = np.random.default_rng(6)
    x, w = (rng.integers(-4, 5, s).astype(np.float32) for s in [(8, 4), (4, 6)])
    for sharded_first in (False, True):
        tx, tw = Tensor(x), Tensor(w)
        sx, sw = tx.shard(names(2), axes[0]), tw.shard(names(2), axes[1])
        if sharded_first:
            tx, tw = sx.realize(), sw.realize()
            sx, sw = tx, tw
        gx, gw = ((sx @ sw) ** 2).sum().gradient(tx, tw)
        assert gx.device == tx.device and gw.device == tw.device
        product = 2 * (x @ w)
        assert (gx.numpy() == product @ w.T).all() and (gw.numpy() == x.T @ product).all()


def test_gradients_through_movement_of_the_split_axis():
    x = np.arange(24, dtype=np.float32).reshape(8, 3)
    t = Tensor(x).shard(names(4), 0).realize()
    weights = np.arange(1, 12, dtype=np.float32).reshape(11, 1)
    out = (t.pad(((2, 1), (0, 0))) * Tensor(weights).to(names(4)))[1:9].flip(0)
    (g,) = (out * out).sum().gradient(t)
    padded = np.pad(x, ((2, 1), (0, 0))) * weights
    want = np.zeros((11, 3), np.float32)
    want[1:9] = 2 * padded[1:9] * weights[1:9]
    assert (g.numpy() == want[2:10]).all()


def test_random_numbers_are_those_of_one_device():
    Tensor.manual_seed(5)
    many = [Tensor.rand(6, 4, device=names(2)), Tensor.randn(3, device=names(3)), Tensor.randint(5, device=names(2))]
    many = [t.numpy() for t in many]
    Tensor.manual_seed(5)
    one = [t.numpy() for t in (Tensor.rand(6, 4), Tensor.randn(3), Tensor.randint(5))]
    assert all((a == b).all() for a, b in zip(many, one))


def test_dropout():
    x = Tensor(np.ones((60, 40), np.float32)).shard(names(3), 0).realize()
    with Context(TRAINING=1):
        y = x.dropout(0.25).realize()
    values, counts = np.unique(y.numpy(), return_counts=True)
    assert np.allclose(values, [0, 4 / 3]) and abs(counts[0] / 2400 - 0.25) < 0.05 and y.uop.axis == 0


def test_a_convolution_over_the_batch_keeps_the_split():
    conv = nn.Conv2d(3, 8, 3, padding=1)
    x = np.random.default_rng(2).standard_normal((6, 3, 8, 8)).astype(np.float32)
    want = conv(Tensor(x)).numpy()
    for t in (conv.weight, conv.bias):
        t.shard_(names(3))
    out = conv(Tensor(x).shard(names(3), 0)).realize()
    assert out.uop.axis == 0
    np.testing.assert_allclose(out.numpy(), want, atol=1e-5)


# *** copies, functions, gradients of stored values ***
def test_copies_of_tensors():
    t = Tensor(np.arange(12, dtype=np.float32).reshape(4, 3)).shard(names(2), 0).realize()
    for other in (pickle.loads(pickle.dumps(t)), copy.deepcopy(t), t.clone()):
        assert other.device == names(2) and other.realize().uop.axis == 0 and (other.numpy() == t.numpy()).all()


def test_functions_of_values_on_several_devices():
    @function
    def f(a: Tensor, b: Tensor) -> Tensor:
        return (a * b).sum(0) + a
    x, y = (np.arange(12, dtype=np.float32).reshape(4, 3) + k for k in (0, 5))
    for axes in ((0, 0), (0, None), (None, None)):
        a, b = (Tensor(v).shard(names(2), axis).realize() for v, axis in zip((x, y), axes))
        assert (f(a, b).numpy() == (x * y).sum(0) + x).all()


def test_gradients_through_realized_values():
    for rows, axis in ((4, 0), (5, 0), (5, 1), (3, None)):
        a = Tensor(np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)).shard(names(2), axis).is_param_().realize()
        h = (a * 2).realize()
        (h * h).sum().backward()
        assert a.grad is not None and (a.grad.numpy() == 8 * a.numpy()).all()
