"""Who sees whose writes: views do, copies and equal graphs do not, whatever was realized before."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost.tensor import Tensor

from .evaluator import evaluate


def value(t: Tensor) -> list[Any]:
    return evaluate(t.uop).tolist()


STARTS: dict[str, Callable[[], Tensor]] = {
    "data": lambda: Tensor([1.0, 2, 3, 4], device="NPY"),
    "computed": lambda: Tensor([0.5, 1, 1.5, 2], device="NPY") * 2,
    "stored": lambda: Tensor([1.0, 2, 3, 4], device="NPY").clone(),
    "realized": lambda: Tensor([1.0, 2, 3, 4], device="PYTHON").realize(),
}
VIEWS: dict[str, Callable[[Any], Any]] = {
    "reshape": lambda x: x.reshape(2, 2), "slice": lambda x: x[1:], "flip": lambda x: x[::-1], "step": lambda x: x[::2],
    "transpose": lambda x: x.reshape(2, 2).T, "new axis": lambda x: x[None], "split": lambda x: x.reshape(2, 2)[0],
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("view", VIEWS)
def test_views_see_writes(start: str, view: str) -> None:
    a = np.array([1.0, 2, 3, 4], np.float32)
    x, b = STARTS[start](), VIEWS[view](a)
    v = VIEWS[view](x)
    a += 10
    x += 10.0
    assert value(v) == b.tolist() and value(x) == a.tolist()
    b += 5
    v += 5.0
    assert value(v) == b.tolist() and value(x) == a.tolist()
    a[1:3] = 0
    x[1:3] = 0.0
    assert value(v) == b.tolist() and value(x) == a.tolist()


MOVED: dict[str, Callable[[Any], Any]] = {
    "diagonal": lambda x: x.diagonal(1), "windows": lambda x: x.unfold(1, 2, 3), "tiles": lambda x: x.unfold(1, 2, 2),
    "strides": lambda x: x.as_strided((2, 3), (7, 2), 1), "select": lambda x: x.select(1, 2),
    "narrow": lambda x: x.narrow(0, 1, 2), "movedim": lambda x: x.movedim(0, 1), "unbind": lambda x: x.unbind(1)[3],
    "split": lambda x: x.split(2)[1], "chunk": lambda x: x.chunk(2, 1)[1], "mT": lambda x: x.mT,
    "squeeze": lambda x: x.unsqueeze(0).squeeze(0), "unflatten": lambda x: x.unflatten(1, (2, 3))[:, 1],
    "swapaxes": lambda x: x.swapaxes(0, 1)[1:], "steps": lambda x: x[1::2, ::3],
}


@pytest.mark.parametrize("start", ["data", "realized", "computed", "stored"])
@pytest.mark.parametrize("view", MOVED)
def test_writes_through_moved_views(view: str, start: str) -> None:
    """Against torch, where all of these are views of one storage; a lazy reader keeps the old values."""
    import torch
    f, a = MOVED[view], np.arange(24, dtype=np.float32).reshape(4, 6)
    x = Tensor(a.copy())
    x = {"data": lambda: x, "realized": lambda: x.realize(), "computed": lambda: x + 0, "stored": x.clone}[start]()
    t = torch.from_numpy(a.copy())
    reader = x * 2
    v, w = f(x), f(t)
    v += 100.0
    w += 100
    np.testing.assert_array_equal(x.numpy(), t.numpy())
    np.testing.assert_array_equal(v.numpy(), w.numpy())
    f(x)[0] = 7.0
    f(t)[0] = 7
    v[v > 5] = 8.0
    w[w > 5] = 8
    np.testing.assert_array_equal(x.numpy(), t.numpy())
    np.testing.assert_array_equal(reader.numpy(), a * 2)


def test_detach_and_bitcast_are_views() -> None:
    x = STARTS["stored"]()
    d = x.detach()
    x += 1.0
    assert value(d) == [2, 3, 4, 5]
    d[0] = 9.0
    assert value(x) == [9, 3, 4, 5]


COPIES: dict[str, Callable[[Tensor], Tensor]] = {
    "sum over one": lambda x: x.reshape(4, 1).sum(1), "pad by nothing": lambda x: x.pad(((0, 0),)),
    "cat of one": lambda x: x.cat(),
    "roll": lambda x: x.roll(1).roll(-1), "repeat": lambda x: x.repeat(1), "power": lambda x: x ** 1,
    "clone": lambda x: x.clone(),
    "arithmetic": lambda x: x * 1,
}


@pytest.mark.parametrize("start", STARTS)
@pytest.mark.parametrize("copy", COPIES)
def test_copies_do_not(start: str, copy: str) -> None:
    x = STARTS[start]()
    c = COPIES[copy](x)
    x += 10.0
    x[0] = 7.0
    assert value(c) == [1, 2, 3, 4]
    c += 1.0
    assert value(x) == [7, 12, 13, 14] and value(c) == [2, 3, 4, 5]


def test_equal_graphs_do_not() -> None:
    x = Tensor([1.0, 2.0], device="PYTHON")
    a, b = x + 1, x + 1
    view = b.reshape(2, 1)
    Tensor.realize(a, b)
    assert a.uop.buf_uop is b.uop.buf_uop
    a += 10.0
    assert a.tolist() == [12, 13] and b.tolist() == [2, 3]
    b += 1.0
    assert view.tolist() == [[3], [4]] and a.tolist() == [12, 13]


def test_assigned_and_replaced_values_are_not_shared() -> None:
    a, b = STARTS["computed"](), STARTS["stored"]()
    a.assign(b)
    b += 1.0
    assert value(a) == [1, 2, 3, 4]
    c = STARTS["stored"]()
    c.replace(b)
    b += 1.0
    assert value(c) == [2, 3, 4, 5]


def test_repeated_elements_are_separated_by_a_write() -> None:
    x = Tensor([1.0], device="NPY").clone()
    wide = x.expand(3)
    wide[1] = 5.0
    assert value(wide) == [1, 5, 1] and value(x) == [1]


def test_contiguous_storage_is_itself() -> None:
    x = Tensor.zeros(3, device="NPY")
    assert x.contiguous() is x
    computed = x + 1
    assert computed.contiguous() is not computed


def test_gradients_are_not_shared() -> None:
    x = Tensor([1.0, 2.0], device="NPY")
    seed = Tensor([1.0, 1.0], device="NPY").clone()
    [g] = x.reshape(2, 1).gradient(x, gradient=seed.reshape(2, 1))
    g += 1.0
    assert value(seed) == [1, 1] and value(g) == [2, 2]


def test_an_assignment_costs_the_same_beside_many_tensors() -> None:
    from tinyhost._tensor import views
    others = [Tensor.empty(2, device="NPY") for _ in range(300)]
    x = Tensor.empty(2, device="NPY")
    x += 1.0
    calls = 0
    survey = views._survey

    def counted() -> None:
        nonlocal calls
        calls += 1
        survey()
    views._survey = counted
    try:
        for t in others[:50]:
            t += 1.0
        x += 1.0
    finally:
        views._survey = survey
    assert calls <= 1
