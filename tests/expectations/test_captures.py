"""Captured functions: flat inputs, other buffers, memory, one variable for the way of submission."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, GlobalCounters, Tensor, TinyJit, Variable
from tinyhost.env import HCQ2
from tinyhost.ops import Ops

DATA = np.arange(24, dtype=np.float32).reshape(6, 4)
V = Variable("n", 1, 6)
INPUTS: dict[str, tuple[Callable[[], Tensor], int]] = {
    "matrix": (lambda: Tensor(DATA).realize(), 24),
    "rows": (lambda: Tensor(DATA).realize()[2:4], 8),
    "of symbolic size": (lambda: Tensor(DATA).realize()[:V.bind(3)], 24),
    "split": (lambda: Tensor(DATA).shard(names(3), 0).realize(), 8),
    "split unevenly": (lambda: Tensor(DATA).shard(names(4), 0).realize(), 8),
    "whole on each": (lambda: Tensor(DATA).shard(names(2)).realize(), 24),
}


@pytest.mark.parametrize("name", INPUTS)
def test_inputs_are_flat(name: str) -> None:
    """An input is storage of so many elements on its devices; its shape is a view in the program."""
    make, size = INPUTS[name]
    f = TinyJit(lambda x: (x * 2).contiguous())
    for _ in range(3):
        x = make()
        got = f(x)
    assert (got.numpy() == 2 * x.numpy()).all()
    [captured] = f._known
    [place] = captured.inputs
    assert place.op is Ops.BUFFER and place.src == () and place.arg.size == size and place.dtype is x.dtype
    assert place.arg.device == x.device


def test_replays_take_other_buffers() -> None:
    f = TinyJit(lambda x: (x + 1).sum())
    for i in range(4):
        assert f(Tensor(DATA * i).realize()).item() == (DATA * i + 1).sum()


def test_the_way_of_submission_is_a_context_variable() -> None:
    assert HCQ2.value == 0
    with Context(HCQ2=1):
        assert HCQ2.value == 1
    with pytest.raises(ValueError, match="HCQ2"), Context(HCQ2=2):
        pass
    assert HCQ2.value == 0


@pytest.mark.parametrize("emulated", ["", "long"])
@pytest.mark.parametrize("compiled", [0, 1])
def test_words_are_the_same_whoever_writes_them(compiled: int, emulated: str) -> None:
    """Addresses have 64 bits, also where kernels of the user have none of those."""
    with Context(HCQ2=compiled, EMULATED_DTYPES=emulated):
        f, g = TinyJit(lambda x, y: ((x @ y).relu().sum(0), x + 1)), TinyJit(lambda x: x.sum(0) * 2)
        for i in range(4):
            total, more = f(Tensor(DATA + i).realize(), Tensor((DATA + i).T.copy()).realize())
            assert (total.numpy() == ((DATA + i) @ (DATA + i).T).sum(0)).all() and (more.numpy() == DATA + i + 1).all()
            split = Tensor(DATA + i).shard(names(3), 0).realize()
            assert (g(split).numpy() == (DATA + i).sum(0) * 2).all()


def test_memory_of_a_dropped_capture_is_freed() -> None:
    x = Tensor.ones(1 << 16).contiguous().realize()
    before = GlobalCounters.mem_used
    f = TinyJit(lambda x: ((x + 1).contiguous() * 2).contiguous().sum())
    for _ in range(3):
        assert f(x).item() == 4 << 16
    assert GlobalCounters.mem_used > before
    del f
    assert GlobalCounters.mem_used == before
