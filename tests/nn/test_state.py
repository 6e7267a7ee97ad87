"""State dicts: names, giving values to models, what does not fit."""
from __future__ import annotations

from collections import OrderedDict, namedtuple
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from tinyhost import Context, Tensor, TinyJit, nn
from tinyhost.errors import ShapeError
from tinyhost.nn.state import StateDictError, get_parameters, get_state_dict, load_state_dict


class Block:
    def __init__(self) -> None:
        self.lin = nn.Linear(2, 3)
        self.gain = Tensor.ones(3)


class Net:
    def __init__(self) -> None:
        self.blocks = [Block(), Block()]
        self.pair = (Tensor.zeros(1), nn.BatchNorm(2))
        self.table = {"a": Tensor.zeros(2), 7: OrderedDict(b=Tensor.zeros(1))}
        self.point = namedtuple("Point", "x y")(Tensor.zeros(1), 3)
        self.act = lambda x: x.relu()
        self.kind = Tensor
        self.me = self

    @TinyJit
    def run(self, x: Tensor) -> Tensor:
        return self.blocks[0].lin(x)


NAMES = [
    "blocks.0.gain",
    "blocks.0.lin.bias",
    "blocks.0.lin.weight",
    "blocks.1.gain",
    "blocks.1.lin.bias",
    "blocks.1.lin.weight",
    "pair.0",
    "pair.1.bias",
    "pair.1.num_batches_tracked",
    "pair.1.running_mean",
    "pair.1.running_var",
    "pair.1.weight",
    "point.x",
    "table.7.b",
    "table.a",
]


def test_names():
    net = Net()
    assert sorted(get_state_dict(net)) == NAMES
    assert get_state_dict(net)["blocks.1.lin.weight"] is net.blocks[1].lin.weight
    assert sorted(get_state_dict(net, prefix="model")) == [f"model.{n}" for n in NAMES]
    assert len(get_parameters(net)) == len(NAMES)
    assert get_state_dict(Tensor.ones(1)).keys() == {""}
    for _ in range(3):
        net.run(Tensor.ones(1, 2).realize())
    assert sorted(get_state_dict(net)) == NAMES  # a captured method holds no parameters of the model


def test_names_of_a_deep_chain():
    node: Any = Tensor.ones(1)
    for _ in range(5000):
        node = [node]
    assert list(get_state_dict(node)) == [".".join(["0"] * 5000)]


def test_load_state_dict():
    net, other = Net(), Net()
    rng = np.random.default_rng(0)
    values = {k: rng.standard_normal(t.shape) for k, t in get_state_dict(other).items()}
    given = {k: Tensor(v.astype(np.float64)) for k, v in values.items()}
    old_dtypes = {k: t.dtype for k, t in get_state_dict(net).items()}
    loaded = load_state_dict(net, given)
    assert [id(t) for t in loaded] == [id(t) for t in get_state_dict(net).values()]
    for k, t in get_state_dict(net).items():
        assert t.dtype is old_dtypes[k]
        np.testing.assert_allclose(t.numpy(), values[k].astype(t.numpy().dtype), rtol=1e-6)
    assert net.blocks[0].lin.weight.is_param


def test_values_are_cut_as_the_model_is():
    devices = ("CPU:1", "CPU:2")
    lin, rng = nn.Linear(2, 4), np.random.default_rng(0)
    lin.weight.shard_(devices, axis=0)
    assert lin.bias is not None
    lin.bias.shard_(devices)
    weight, bias = rng.standard_normal((4, 2)).astype(np.float32), rng.standard_normal(4).astype(np.float32)
    load_state_dict(lin, {"weight": Tensor(weight), "bias": Tensor(bias)})
    assert lin.weight.device == lin.bias.device == devices and lin.weight.uop.axis == 0 and lin.bias.uop.axis is None
    assert (lin.weight.numpy() == weight).all() and (lin.bias.numpy() == bias).all()


def test_many_values_are_given_in_batches():
    model = {f"{i}": Tensor.zeros(2).contiguous().realize() for i in range(300)}
    load_state_dict(model, {f"{i}": Tensor([i, 1.0]) for i in range(300)})
    assert [t.tolist()[0] for t in model.values()] == list(range(300))
    assert all(t.uop.is_realized for t in model.values())


def test_loading_realizes_or_not():
    lin = nn.Linear(2, 2)
    state = {"weight": Tensor.ones(2, 2) + 1, "bias": Tensor.zeros(2) + 1}
    load_state_dict(lin, dict(state), realize=False)
    assert not lin.weight.uop.is_realized and lin.weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    load_state_dict(lin, consumed := dict(state), consume=True)
    assert lin.weight.uop.is_realized and not consumed


def test_missing_names():
    lin = nn.Linear(2, 2)
    before = lin.bias.numpy()
    with pytest.raises(KeyError, match=r"^the state dict does not fit the model: it has no \['bias'\]; the model has "
                                       r"no \['extra'\]: load with strict=False to keep"):
        load_state_dict(lin, {"weight": Tensor.ones(2, 2), "extra": Tensor.ones(1)})
    assert not (lin.weight.numpy() == 1).all()
    load_state_dict(lin, {"weight": Tensor.ones(2, 2)}, strict=False)
    assert (lin.weight.numpy() == 1).all() and (lin.bias.numpy() == before).all()


def test_missing_unexpected_and_wrong_shapes_are_listed_together():
    block = Block()
    before = {k: t.numpy() for k, t in get_state_dict(block).items()}
    given = {"lin.weight": Tensor.ones(2, 2), "gain": Tensor.ones(4), "x": Tensor.ones(1), "y": Tensor.ones(1)}
    with pytest.raises(StateDictError) as e:
        load_state_dict(block, given)
    assert str(e.value) == (
        "the state dict does not fit the model: it has no ['lin.bias']; the model has no ['x', 'y']; Shape mismatch in "
        "layer `lin.weight`: Expected shape (3, 2), but found (2, 2) in state dict. Shape mismatch in layer `gain`: "
        "Expected shape (3,), but found (4,) in state dict.: load with strict=False to keep the model's own values for "
        "those that are missing")
    assert all((t.numpy() == before[k]).all() for k, t in get_state_dict(block).items())
    with pytest.raises(StateDictError, match=r"no \['lin.bias', 'lin.weight'\]; `gain` is a list, not a tensor."):
        load_state_dict(block, {"gain": [1.0]})
    many = {f"n{i}": Tensor.ones(1) for i in range(30)}
    with pytest.raises(KeyError, match=r"it has no \['gain', 'lin.bias', 'lin.weight'\]; the model has no .*\] and 10 "
                                       "more: load"):
        load_state_dict(block, many)


def test_unexpected_names_alone_are_no_error(capsys: pytest.CaptureFixture[str]):
    lin = nn.Linear(1, 1, bias=False)
    load_state_dict(lin, {"weight": Tensor([[2.0]]), "more": Tensor([1])})
    assert lin.weight.item() == 2 and not capsys.readouterr().out
    with Context(DEBUG=1):
        load_state_dict(lin, {"weight": Tensor([[3.0]]), "more": Tensor([1])}, verbose=False)
    assert "warning: unused weights in state_dict ['more']" in capsys.readouterr().out


@dataclass
class Point:
    x: Tensor
    name: str = "p"


@dataclass(frozen=True, slots=True)
class Slotted:
    w: Tensor
    inner: Point


class Bare:
    __slots__ = ("a", "missing")

    def __init__(self) -> None:
        self.a = [Tensor.ones(1), Point(Tensor.ones(1))]


def test_names_of_dataclasses_and_slots():
    point = Point(Tensor.ones(1))
    point.later = Tensor.ones(1)
    assert list(get_state_dict(point)) == ["x", "later"]
    assert list(get_state_dict({"s": Slotted(Tensor.ones(1), Point(Tensor.ones(2)))})) == ["s.w", "s.inner.x"]
    assert list(get_state_dict(Bare())) == ["a.0", "a.1.x"]
    load_state_dict(slotted := Slotted(Tensor.ones(1), point), {"w": Tensor([5.0]), "inner.x": Tensor([6.0]),
                                                               "inner.later": Tensor([7.0])})
    assert (slotted.w.item(), point.x.item()) == (5, 6)


def test_wrong_shape_changes_nothing():
    lin = nn.Linear(2, 3)
    before = lin.weight.numpy()
    text = r"Shape mismatch in layer `bias`: Expected shape \(3,\), but found \(2,\) in state dict."
    with pytest.raises(ShapeError, match=text):
        load_state_dict(lin, {"weight": Tensor.ones(3, 2), "bias": Tensor.ones(2)})
    assert (lin.weight.numpy() == before).all()


def test_loading_needs_no_jit_and_no_training():
    with Context(TRAINING=1, JIT=0):
        lin = nn.Linear(1, 1)
        load_state_dict(lin, {"weight": Tensor([[3.0]]), "bias": Tensor([4.0])})
        assert lin(Tensor([[2.0]])).tolist() == [[10.0]]
