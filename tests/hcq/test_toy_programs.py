"""Random captured programs over two peers: kernels, copies, assignments, results read now, later or never."""
from __future__ import annotations

import gc
import random
from typing import Any

import numpy as np
import pytest

from tests.hcq.toy import Toys
from tests.hcq.toy import site as site
from tests.hcq.toy import toys as toys
from tinyhost.env import Context
from tinyhost.hcq.signals import LIMIT
from tinyhost.jit import TinyJit
from tinyhost.tensor import Tensor

DEVICES = ("TOY", "TOY:1")
SHAPE = (4, 6)
Step = tuple[str, int, int, int]  # what, operands, the state that is assigned


class Program:
    """Steps over a list of values, which begins with the state and the input; integers, so that results are exact."""

    def __init__(self, rng: random.Random) -> None:
        self.homes = [rng.choice(DEVICES) for _ in range(4)]
        kinds = ["add", "add", "mix", "sum", "move", "move", "keep", "assign"]
        self.steps: list[Step] = [(rng.choice(kinds), rng.randrange(99), rng.randrange(99), rng.randrange(3))
                                  for _ in range(rng.randrange(4, 12))]
        self.results = [rng.randrange(99) for _ in range(rng.randrange(1, 4))]

    def run(self, state: list[Any], x: Any, on_tensors: bool) -> list[Any]:
        """The results; ``state`` is changed in place."""
        values = [*state, x]
        assigned: list[Any] = []
        for kind, i, k, n in self.steps:
            a, b = values[i % len(values)], values[k % len(values)]
            if on_tensors:
                b = b.to(a.device)
            if kind == "add":
                out = a + b
            elif kind == "mix":
                out = a * 3 - b
            elif kind == "sum":
                out = a + (b.sum(1, keepdim=True) if on_tensors else b.sum(1, keepdims=True, dtype=np.int32))
            elif kind == "move":
                out = a.to(DEVICES[a.device == DEVICES[0]]) if on_tensors else a
            elif kind == "keep":
                out = (a ^ 5).contiguous() if on_tensors else a ^ 5
            elif on_tensors:
                out = state[n].assign((a + 1).to(state[n].device)).realize()
            else:
                out = state[n] = values[n] = a + 1
            if kind == "assign":
                values[n] = out
                assigned.append(out)
            else:
                values.append(out)
        results = [values[r % len(values)] for r in self.results]
        if on_tensors:
            results = [(r * 1).contiguous() for r in results]
            Tensor.realize(*results, *assigned)
        return results


def check(toys: Toys, seed: int) -> None:
    rng = random.Random(seed)
    toys(seed=seed, timeline_start=LIMIT - rng.choice([1000, 40, 25, 12]),
         kinds=rng.choice([("BOTH",), ("COMPUTE", "COPY"), ("BOTH", "COPY")]))
    program = Program(rng)
    model = [np.arange(24, dtype=np.int32).reshape(SHAPE) * (i + 1) for i in range(3)]
    state = [Tensor(m, device=d).realize() for m, d in zip(model, program.homes)]
    f = TinyJit(lambda x: tuple(program.run(state, x, True)))
    late: list[tuple[Tensor, Any]] = []
    with Context(HCQ2=seed % 2):
        for i in range(7):
            x = np.full(SHAPE, i, np.int32)
            got = f(Tensor(x, device=program.homes[3]).realize())
            want = program.run(model, x, False)
            for t, w in zip(got, want):
                when = rng.random()
                if when < 0.3:
                    np.testing.assert_array_equal(t.numpy(), w)
                elif when < 0.5:
                    late.append((t.clone().realize(), w.copy()))
            if rng.random() < 0.2:
                gc.collect()
    for t, w in [*late, *zip(state, model)]:
        np.testing.assert_array_equal(t.numpy(), w)


@pytest.mark.parametrize("seed", range(8))
def test_programs(toys: Toys, seed: int):
    check(toys, seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(30))
def test_many_programs(toys: Toys, part: int):
    for seed in range(100 + part * 12, 112 + part * 12):
        check(toys, seed)
