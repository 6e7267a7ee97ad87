"""Random sequences of exports, writes on both sides and drops, beside a model of who shares which memory."""
from __future__ import annotations

import gc
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
import torch

from tinyhost import GlobalCounters, Tensor, TinyJit


@dataclass
class Memory:
    """The elements that a tensor and its exports share in the model, and how many exports there are."""

    elements: np.ndarray[Any, Any]
    exports: int = 0


@dataclass
class World:
    """Tensors with their memory, and exports with the memory and part that they were made of."""

    rng: np.random.Generator
    tensors: list[list[Any]] = field(default_factory=list)  # [tensor, view of it or None, memory]
    exports: list[tuple[Any, Memory, slice]] = field(default_factory=list)

    def create(self) -> None:
        values = self.rng.integers(-9, 9, 6).astype(np.float32)
        if self.rng.random() < 0.3:
            source = torch.from_numpy(values.copy())
            memory = Memory(source.numpy())
            self.tensors.append([Tensor.from_dlpack(source, device="CPU"), None, memory])
        else:
            self.tensors.append([Tensor(values, device="CPU").contiguous().realize(), None, Memory(values.copy())])

    def pick(self) -> list[Any]:
        return self.tensors[int(self.rng.integers(len(self.tensors)))]

    def view(self) -> None:
        entry = self.pick()
        entry[1] = entry[0][2:5]

    def export(self) -> None:
        tensor, view, memory = self.pick()
        part, source = (slice(0, 6), tensor) if view is None or self.rng.random() < 0.5 else (slice(2, 5), view)
        make = [torch.from_dlpack, np.from_dlpack, lambda t: t.data(), lambda t: np.asarray(t, copy=False)]
        self.exports.append((make[int(self.rng.integers(4))](source), memory, part))
        memory.exports += 1

    def _writable(self, entry: list[Any]) -> np.ndarray[Any, Any]:
        if entry[2].exports:
            entry[2] = Memory(entry[2].elements.copy())
        return entry[2].elements

    def write(self) -> None:
        entry = self.pick()
        elements = self._writable(entry)
        kind, value = int(self.rng.integers(4)), float(self.rng.integers(-9, 9))
        if kind == 0:
            entry[0] += value
            elements += value
        elif kind == 1:
            entry[0][1:4] = value
            elements[1:4] = value
        elif kind == 2:
            entry[0].assign(Tensor.full((6,), value, device="CPU"))
            elements[:] = value
        else:
            entry[0].assign(entry[0].flip(0))
            elements[:] = elements[::-1].copy()
        entry[0].realize()

    def replay(self) -> None:
        entry = self.pick()
        _double(entry[0])
        self._writable(entry)[:] *= 2

    def write_export(self) -> None:
        writable = [e for e in self.exports if isinstance(e[0], torch.Tensor)]
        if writable:
            export, memory, part = writable[int(self.rng.integers(len(writable)))]
            export[0] = 5
            memory.elements[part.start] = 5

    def drop(self) -> None:
        if self.rng.random() < 0.7 and self.exports:
            _, memory, _ = self.exports.pop(int(self.rng.integers(len(self.exports))))
            memory.exports -= 1
        elif len(self.tensors) > 1:
            self.tensors.pop(int(self.rng.integers(len(self.tensors))))

    def check(self) -> None:
        for tensor, view, memory in self.tensors:
            np.testing.assert_array_equal(tensor.numpy(), memory.elements)
            if view is not None:
                np.testing.assert_array_equal(view.numpy(), memory.elements[2:5])
        for export, memory, part in self.exports:
            np.testing.assert_array_equal(np.asarray(export), memory.elements[part])


@TinyJit
def _double(x: Tensor) -> Tensor:
    x.assign(x * 2)
    return (x + 0).realize()


def _run(seed: int, steps: int) -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    world = World(np.random.default_rng(seed))
    world.create()
    actions = [world.create, world.view, world.export, world.export, world.export, world.write, world.write,
               world.write_export, world.drop, world.drop, world.replay]
    for _ in range(steps):
        actions[int(world.rng.integers(len(actions)))]()
        world.check()
    del world, actions
    gc.collect()
    assert GlobalCounters.mem_used <= before + 24 * 8  # what the replay keeps: its own result and temporaries


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(8))
def test_sequences(seed: int) -> None:
    _run(seed, 40)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_many_sequences(seed: int) -> None:
    _run(seed, 150)
