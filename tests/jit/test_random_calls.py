"""Random functions and random events between their calls: a program sees the same with and without TinyJit.

A function reads arguments and state, writes state in place, by parts or by exchange, and returns values, views,
arguments and state. Between calls the program writes, exchanges and reads state and results, and holds lazy readers.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, TinyJit, realization

N = 4
SEEDS, BLOCK = 24, 40


def fresh(rng: random.Random) -> Tensor:
    return Tensor(np.array([rng.randint(-3, 3) for _ in range(N)], np.float32))


def value(rng: random.Random, pool: list[Tensor]) -> Tensor:
    """A random expression of small integers."""
    a, b = rng.choice(pool), rng.choice(pool)
    return rng.choice([
        lambda: a + b, lambda: a - b, lambda: a * 2 - b, lambda: a.maximum(b), lambda: a.flip(0) + 1,
        lambda: (a < b).where(a, b), lambda: a.sum() - b, lambda: a.clip(-9, 9), lambda: (a + b).contiguous() - a,
        lambda: a[:2].cat(b[2:]),
    ])().clip(-64, 64)


def write(rng: random.Random, state: list[Tensor], pool: list[Tensor], exchanged: Tensor | None = None) -> None:
    """Write some of ``state``, in place or by exchange; only by exchange if it is ``exchanged``, and only that one."""
    t = rng.choice(state)
    kind = rng.randrange(5) if exchanged is None else 4 if t is exchanged else rng.randrange(4)
    new = value(rng, pool)
    if kind == 0:
        t.assign(new)
    elif kind == 1:
        at = rng.randrange(N - 1)
        t[at:at + 2].assign(new[:2])
    elif kind == 2:
        t += 1
    elif kind == 3:
        t[rng.randrange(N):] = 3
    else:
        t.replace(new)


def function(seed: int, state: list[Tensor]) -> Callable[..., Any]:
    """The function of a seed: what it does depends on nothing else."""
    def run(x: Tensor, y: Tensor) -> Any:
        rng = random.Random(seed)
        pool, exchanged = [x, y, *state], rng.choice(state)
        out: list[Any] = []
        for _ in range(rng.randint(1, 6)):
            kind = rng.randrange(6)
            if kind < 2:
                pool.append(value(rng, pool))
                if rng.random() < 0.3:
                    pool[-1].realize()
            elif kind < 4:
                write(rng, state, pool, exchanged)
            elif kind == 4:
                x.assign(value(rng, pool))
            else:
                out.append(rng.choice(pool))
        result = value(rng, [x, *pool])
        out.append((result + x).contiguous())
        if rng.random() < 0.5:
            out.append(out[0])
        if rng.random() < 0.5:
            out.append({"part": out[-1][1:3], "turned": result.flip(0)})
        return out
    return run


def tensors(x: Any) -> list[Tensor]:
    if isinstance(x, Tensor):
        return [x]
    return [t for v in (x.values() if isinstance(x, dict) else x) for t in tensors(v)]


def event(rng: random.Random, state: list[Tensor], held: list[Tensor], seen: list[Any]) -> None:
    kind = rng.randrange(9)
    if kind == 0:
        write(rng, state, state)
    elif kind == 1 and held:
        whole = [t for t in held if t.shape == (N,)]
        write(rng, whole or state, state)
    elif kind == 2:
        held.append(value(rng, state))
    elif kind == 3 and held:
        held.append(rng.choice(held) * 1)
    elif kind == 4 and held:
        del held[rng.randrange(len(held))]
    elif kind == 5:
        seen.append(rng.choice(state).tolist())
    elif kind == 6:
        held.append(rng.choice(state)[1:])
    elif kind == 7:
        seen.append(rng.choice(state).numpy())
    elif held:
        seen.append(rng.choice(held).tolist())


def world(seed: int, jit: bool, captures: int) -> list[Any]:
    """Everything that a program of a seed sees."""
    rng = random.Random(seed * 7 + 1)
    state = [fresh(rng).realize() if rng.random() < 0.7 else fresh(rng) for _ in range(3)]
    run = function(seed, state)
    f = TinyJit(run, captures=captures) if jit else run
    held: list[Tensor] = []
    seen: list[Any] = []
    for _ in range(8):
        x, y = (fresh(rng).clone() for _ in range(2))
        Tensor.realize(x, y)
        out = tensors(f(x, y))
        shown = rng.random() < 0.6
        if shown:
            seen.extend(t.tolist() for t in out)
        held.extend(t for t in out if rng.random() < 0.3)
        if rng.random() < 0.3:
            seen.append(x.tolist())
        for _ in range(rng.randint(0, 3)):
            event(rng, state, held, seen)
    return [*(np.array(s).tolist() for s in seen), *(t.tolist() for t in held), *(t.tolist() for t in state)]


def compare(seed: int) -> None:
    want = world(seed, False, 1)
    got = world(seed, True, 1 + seed % 2)
    assert len(got) == len(want)
    for i, (a, b) in enumerate(zip(got, want)):
        assert a == b, f"seed {seed}, observation {i}"


@pytest.mark.fuzz
@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_program_sees_the_same(seed: int):
    compare(seed)


def test_states_whose_readers_need_each_other(monkeypatch: pytest.MonkeyPatch):
    """Fused, old and new states would be read by kernels that need each other: then each reader is stored by itself."""
    asked: list[bool] = []

    def noted(old: Any, apart: bool) -> realization.Effects:
        asked.append(apart)
        return Effects(old, apart)
    Effects = realization.Effects
    monkeypatch.setattr(realization, "Effects", noted)
    compare(1189)
    assert any(asked) and not all(asked)


@pytest.mark.soak
@pytest.mark.parametrize("block", range(50))
def test_many_programs_see_the_same(block: int):
    for seed in range(1000 + block * BLOCK, 1000 + (block + 1) * BLOCK):
        compare(seed)
