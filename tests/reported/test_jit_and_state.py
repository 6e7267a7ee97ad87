"""Captured functions: results, inputs, writes, randomness, memory; and values over several devices."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Device, Tensor, TinyJit, Variable, dtypes
from tinyhost.errors import JitError

pytestmark = pytest.mark.usefixtures("device")


def shifted(x: Tensor) -> Tensor:
    return x + 1


@pytest.mark.parametrize("dtype", ["float32", "int32", "float64", "bool"])
def test_results_of_several_calls(dtype: str) -> None:
    f = TinyJit(lambda x: (x.cast("int32") + 1).realize())
    inputs = [Tensor([v], dtype=dtype).realize() for v in (0, 1)]
    results: list[Tensor] = []
    for i in range(6):
        results.append(f(inputs[i % 2]))
        assert results[-1].item() == i % 2 + 1
    try:
        assert (results[-1] == results[-2]).tolist() == [False]
    except JitError as e:
        assert "overwritten" in str(e)


@pytest.mark.parametrize("size", [8, 2**12, 2**16])
def test_a_result_that_is_fed_back(size: int) -> None:
    f = TinyJit(lambda b, n: b[size // 2 :].cat(n))
    b = Tensor.zeros(size, dtype=dtypes.int32).contiguous().realize()
    for i in range(7):
        b = f(b, Tensor(np.full(size // 2, i + 1, np.int32)).realize())
        assert (b[: size // 2].numpy() == i).all() and (b[size // 2 :].numpy() == i + 1).all()


@pytest.mark.parametrize(
    "write",
    [
        lambda w, x: w.assign(w + x),
        lambda w, x: w.__iadd__(x),
        lambda w, x: w.__setitem__(slice(None), w + x),
        lambda w, x: w[0:1].__iadd__(x[0:1]),
    ],
)
def test_writes_to_an_input(write: Callable[[Any, Any], Any]) -> None:
    @TinyJit
    def step(w: Tensor, x: Tensor) -> Tensor:
        write(w, x)
        return (w * 1).realize()

    w = Tensor([0.0]).contiguous().realize()
    for i in range(6):
        assert step(w, Tensor([1.0]).realize()).tolist() == [i + 1]
    assert w.tolist() == [6]


def test_shapes_follow_the_variable() -> None:
    f = TinyJit(lambda t: (t * 2).realize())
    data = np.arange(10, dtype=np.float32)
    source = Tensor(data).realize()
    for i in (3, 1, 7, 10, 2, 5):
        n = Variable("i", 1, 10).bind(i)
        out = f(source[:n])
        extent = out.shape[0]
        assert (extent if isinstance(extent, int) else extent.unbind()[1]) == i
        assert out.sum().item() == 2 * data[:i].sum()


def test_one_captured_function_in_another() -> None:
    inner = TinyJit(lambda t: (t * 3).realize())
    outer = TinyJit(lambda t: (inner(t) + 5).realize())
    try:
        assert [outer(Tensor([float(i)]).realize()).item() for i in range(5)] == [5, 8, 11, 14, 17]
    except JitError as e:
        assert "TinyJit" in str(e)


@pytest.mark.parametrize(
    "draw", [lambda: Tensor.rand(4), lambda: Tensor.randn(3), lambda: Tensor.randint(5, high=10**6)]
)
def test_random_numbers_differ_from_call_to_call(draw: Callable[[], Tensor]) -> None:
    Tensor.manual_seed(1)
    f = TinyJit(lambda: draw().realize())
    assert len({tuple(f().tolist()) for _ in range(6)}) == 6
    Tensor.manual_seed(1)
    g = [draw().tolist() for _ in range(2)]
    assert g[0] != g[1]


@pytest.mark.parametrize("marked", [True, False])
def test_gradients_of_a_captured_step(marked: bool) -> None:
    w = Tensor([[1.0, 2.0], [3.0, 4.0]])
    w = (w.is_param_() if marked else w).realize()

    @TinyJit
    def step(x: Tensor) -> tuple[Tensor, Tensor]:
        w.grad = None
        loss = ((x.permute(1, 0).contiguous() @ w) ** 2).sum()
        loss.backward()
        return loss.realize(), w.grad.realize()

    for i in range(5):
        x = np.array([[1.0, i], [2.0, 1.0]], np.float32)
        loss, grad = step(Tensor(x).realize())
        np.testing.assert_allclose(grad.numpy(), 2 * x @ (x.T @ w.numpy()), rtol=1e-5)
        np.testing.assert_allclose(loss.item(), ((x.T @ w.numpy()) ** 2).sum(), rtol=1e-5)


def test_one_tensor_for_two_inputs() -> None:
    f = TinyJit(lambda a, b: (a + b * 2).realize())
    x, y = Tensor([1.0, 2.0]).realize(), Tensor([5.0, 5.0]).realize()
    try:
        assert [f(x, x).tolist() for _ in range(4)] == [[3.0, 6.0]] * 4
        assert f(x, y).tolist() == [11, 12]
    except JitError as e:
        assert "duplicate" in str(e).lower()


def test_a_value_that_is_read_inside() -> None:
    f = TinyJit(lambda x: (x * 2).realize() if x.sum().item() > 0 else (x * 3).realize())
    with pytest.raises(JitError, match="while TinyJit captures") as caught:
        for v in (1.0, 1.0, 1.0, -1.0):
            f(Tensor([v]).realize())
    assert any(n.startswith(f"called at {__file__}") and "item()" in n for n in caught.value.__notes__)


def test_a_numpy_copy_is_no_view_of_the_result() -> None:
    f = TinyJit(lambda x: (x + 1).realize())
    a, b = Tensor([1.0]).realize(), Tensor([5.0]).realize()
    for _ in range(3):
        f(a)
    kept = [f(a).numpy(), np.array(f(a).data()), np.asarray(f(a))]
    f(b)
    assert [k.tolist() for k in kept] == [[2.0]] * 3


def test_objects_do_not_pile_up() -> None:
    f = TinyJit(lambda x: (x.exp() @ x).sum().realize())
    x = Tensor.rand(4, 4).realize()
    for _ in range(5):
        f(x)
    gc.collect()
    gc.disable()
    try:
        before = len(gc.get_objects())
        for _ in range(60):
            f(x)
        assert len(gc.get_objects()) - before < 60
    finally:
        gc.enable()


def test_earlier_steps_are_not_kept() -> None:
    x = Tensor([1.0]).realize()
    seen = []
    for _ in range(4):
        x = (x + 1).realize()
        seen.append(weakref.ref(x.uop))
    lazy = x.exp()
    ref, node = weakref.ref(lazy), weakref.ref(lazy.uop)
    del lazy
    gc.collect()
    assert ref() is None and node() is None and [r() is None for r in seen] == [True] * 3 + [False]


# *** several devices ***
def four() -> tuple[str, ...]:
    return tuple(f"{Device.DEFAULT}:{i}" for i in range(4))


@pytest.mark.parametrize("shape, axis", [((2,), 0), ((6, 4), 0), ((4, 6), 1), ((3, 3, 3), 2)])
def test_an_axis_that_does_not_divide(shape: tuple[int, ...], axis: int) -> None:
    data = np.arange(int(np.prod(shape)), dtype=np.float32).reshape(shape)
    try:
        x = Tensor(data).shard(four(), axis=axis).realize()
    except ValueError as e:
        assert str(shape[axis]) in str(e) and "4" in str(e)
        return
    for got, want in ((x, data), (x * 2, data * 2), (x.sum(axis), data.sum(axis)), (x.sum(), data.sum())):
        np.testing.assert_array_equal(got.numpy(), want)


@pytest.mark.parametrize("axis", [0, 1, None])
def test_reductions_over_shards(axis: int | None) -> None:
    n = np.arange(64, dtype=np.float32).reshape(8, 8)
    x = Tensor(n).shard(four(), axis=axis).realize()
    for got, want in (
        (x.sum(0), n.sum(0)),
        (x.sum(1), n.sum(1)),
        (x.sum(), n.sum()),
        (x.max(0), n.max(0)),
        (x.T @ x, n.T @ n),
        (x + 1, n + 1),
    ):
        np.testing.assert_array_equal(got.numpy(), want)


def test_a_weight_that_was_left_behind() -> None:
    x, hidden = Tensor.ones(4, 4).shard(four(), axis=0), Tensor.ones(4, 4)
    for use in (lambda: x @ hidden, lambda: x + hidden, lambda: hidden * x, lambda: x.cat(hidden)):
        with pytest.raises(RuntimeError, match=r"operand \d of shape .* is on .* and was not moved with the others on"):
            use()
