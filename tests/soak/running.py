"""Running random programs in different settings, and comparing what they give.

`check(seed)` runs a program in some of all combinations of device count, JIT, memory planner, schedule cache and
submission, and raises `Mismatch` with the smallest program that still fails. What must agree:
- the elements that numpy computes, where it can;
- the bytes of every result and state between two runs on as many devices;
- integers and exact floats between any two runs.
"""
from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tests.multi.devices import names
from tests.soak.drawing import grow
from tests.soak.graphs import ALL, Fact, Program
from tests.soak.steps import EFFECTS, TABLE, Array
from tinyhost import Context, Tensor, TinyJit, Variable
from tinyhost.env import VARIABLES
from tinyhost.errors import JitError

CALLS = 5
SWITCHES = tuple(n for n in ("NO_MEMORY_PLANNER", "SCACHE", "HCQ2") if n in VARIABLES)


class Setting(NamedTuple):
    """A number of devices and values of context variables."""

    devices: int
    variables: tuple[tuple[str, int], ...]

    def __str__(self) -> str:
        return f"{self.devices} devices, " + " ".join(f"{k}={v}" for k, v in self.variables)


class Mismatch(AssertionError):
    """Two runs of a program differ, or one fails."""


@dataclass
class Outcome:
    """Arrays by name, such as ``call 2 v17``, with the fact of each."""

    arrays: dict[str, Array]
    facts: dict[str, Fact]


def settings_of(seed: int) -> list[Setting]:
    """Which settings a program runs in: one device and 2 to 6, each with and without a JIT."""
    rng = np.random.default_rng([seed, 77])
    levels = [(1, 0), (1, int(rng.integers(1, 3)))]
    many = 2 + seed % 5
    levels += [(many, 0), (many, 1), *([(many, 2)] if seed % 3 == 0 else [])]
    algorithm = ((), (), (("RING", 2),), (("ALL2ALL", 2),))[seed % 4]
    out = []
    for i, (n, jit) in enumerate(levels):
        switches = {"NO_MEMORY_PLANNER": 0, "SCACHE": 1, "HCQ2": 0} if i == 0 else {
            "NO_MEMORY_PLANNER": int(rng.integers(2)), "SCACHE": int(rng.random() < 0.7), "HCQ2": int(rng.integers(2))}
        out.append(Setting(n, (("JIT", jit), *((k, switches[k]) for k in SWITCHES), *algorithm)))
    return out


# *** one run ***
class Run:
    """A program on tensors in one setting; ``seeded`` where no other thread draws numbers meanwhile."""

    def __init__(self, program: Program, setting: Setting, seeded: bool = True) -> None:
        self.program, self.setting, self.seeded = program, setting, seeded
        self.devices = names(setting.devices)
        self.outcome = Outcome({}, {})

    def placed(self, t: Tensor, place: int, axis: int | None) -> Tensor:
        """The tensor on all devices or a single one."""
        if place != ALL:
            return t.to(self.devices[place % len(self.devices)])
        if len(self.devices) == 1:
            return t.to(self.devices[0])
        return t.to(self.devices[0]).shard(self.devices, axis)

    def source(self, call: int, number: int) -> Tensor:
        """An input or state, realized."""
        p = self.program
        s = (*p.inputs, *p.states)[number]
        if not s.fact.symbolic:
            return self.placed(Tensor(p.data(call, number)), s.fact.place, s.axis).realize()
        n = p.extent(call)
        full = np.concatenate([p.data(call, number), np.zeros((10 - n, s.shape[1]), s.dtype)])
        return self.placed(Tensor(full), ALL, None).realize()[:Variable("n", 1, 10).bind(n)]

    def body(self, states: list[Tensor]) -> Callable[..., Any]:
        """The function that a TinyJit captures."""
        def function(*inputs: Tensor) -> Any:
            values: dict[int, Any] = dict(enumerate([*inputs, *states]))
            for step in self.program.steps:
                args = [values[a] for a in step.args]
                value = self.placed(args[0], *step.p) if step.kind == "move" else TABLE[step.kind].tensor(step.p, *args)
                if step.kind not in EFFECTS:
                    values[step.out] = value
            return nested(self.program.seed, [values[r] for r in self.program.results])
        return function

    def run(self) -> Outcome:
        """All calls; results are read at once, or after the last call where the program says so."""
        p = self.program
        with Context(**dict(self.setting.variables)):
            if self.seeded:
                Tensor.manual_seed(p.seed)
            states = [self.source(0, p.first_state + i) for i in range(len(p.states))]
            captures = [TinyJit(self.body(states)) for _ in range(1 + ("two" in p.flags))]
            held: list[Any] = []
            fed = None
            for call in range(calls_of(p)):
                inputs = [self.source(call, i) for i in range(len(p.inputs))]
                if p.feedback is not None and fed is not None:
                    inputs[p.feedback[0]] = fed
                watched = [s + 3 for s in states] if "watch" in p.flags else []
                results = flat(captures[call % len(captures)](*inputs))
                fed = results[p.results.index(p.feedback[1])] if p.feedback is not None else None
                held.append((call, results, watched, inputs))
                if "hold" not in p.flags:
                    self.read(*held.pop())
                for s in states if "touch" in p.flags else ():
                    s += 1
            for entry in held:
                self.read(*entry)
            for i, s in enumerate(states, p.first_state):
                self.note(f"state v{i}", s, p.facts[i])
        return self.outcome

    def read(self, call: int, results: list[Tensor], watched: list[Tensor], inputs: list[Tensor]) -> None:
        """Note what a call gave and changed."""
        for r, t in zip(self.program.results, results):
            self.note(f"call {call} v{r}", t, self.program.facts[r])
        for i, t in enumerate(watched, self.program.first_state):
            self.note(f"before call {call} v{i} + 3", t, self.program.facts[i])
        for i in self.program.written:
            self.note(f"after call {call} v{i}", inputs[i], self.program.facts[i])

    def note(self, name: str, t: Tensor, fact: Fact) -> None:
        self.outcome.arrays[name], self.outcome.facts[name] = np.array(t.numpy()), fact


def calls_of(p: Program) -> int:
    """How often a program is called: a capture needs two calls and is replayed after them."""
    return CALLS + 2 * ("two" in p.flags)


def nested(seed: int, results: list[Any]) -> Any:
    """Results in one of several containers."""
    if len(results) == 1 and seed % 2:
        return results[0]
    if seed % 3 == 0:
        return {"first": results[0], "rest": (list(results[1:]),)} if results else {}
    return tuple(results) if seed % 3 == 1 else [results[:1], tuple(results[1:])]


def flat(x: Any) -> list[Any]:
    """The tensors of nested containers, in order."""
    if isinstance(x, dict):
        x = list(x.values())
    return [t for item in x for t in flat(item)] if isinstance(x, (list, tuple)) else [x]


def expected(p: Program) -> Outcome:
    """What numpy computes."""
    out = Outcome({}, {})

    def note(name: str, number: int, array: Array) -> None:
        out.arrays[name], out.facts[name] = np.array(array), p.facts[number]
    states = {p.first_state + i: p.data(0, p.first_state + i).copy() for i in range(len(p.states))}
    fed = None
    for call in range(calls_of(p)):
        values: dict[int, Any] = {i: p.data(call, i) for i in range(len(p.inputs))} | states
        if p.feedback is not None and fed is not None:
            values[p.feedback[0]] = fed
        for i, s in states.items() if "watch" in p.flags else ():
            note(f"before call {call} v{i} + 3", i, s + 3)
        with np.errstate(all="ignore"):
            for s in p.steps:
                args = [values[a] for a in s.args]
                value = args[0] if s.kind == "move" else np.asarray(TABLE[s.kind].array(s.p, *args))
                if s.kind not in EFFECTS:
                    values[s.out] = value
        for r in p.results:
            note(f"call {call} v{r}", r, values[r])
        for i in p.written:
            note(f"after call {call} v{i}", i, values[i])
        fed = values[p.feedback[1]].copy() if p.feedback is not None else None
        for s in states.values() if "touch" in p.flags else ():
            s += 1
    for i, s in states.items():
        note(f"state v{i}", i, s)
    return out


# *** comparing ***
def difference(a: Outcome, b: Outcome, same: Callable[[Array, Array, Fact], bool]) -> str | None:
    """The first value that differs, in words."""
    for name, x in a.arrays.items():
        y, fact = b.arrays[name], a.facts[name]
        if x.dtype != y.dtype or x.shape != y.shape:
            return f"{name}: {x.dtype}{list(x.shape)} and {y.dtype}{list(y.shape)}"
        if not same(x, y, fact):
            return f"{name}:\n{x!r}\nand\n{y!r}"
    return None


def same_bytes(x: Array, y: Array, fact: Fact) -> bool:
    """For runs of the same kernels."""
    return x.tobytes() == y.tobytes()


def same_values(x: Array, y: Array, fact: Fact) -> bool:
    """For runs on different devices; zeros have no sign here."""
    return fact.loose or bool((x == y).all())


def as_numpy(x: Array, y: Array, fact: Fact) -> bool:
    """For a run and numpy."""
    return fact.loose or fact.unknown or bool((x == y).all())


def failures(p: Program, settings: list[Setting]) -> Iterator[str]:
    """What is wrong with a program, in words; the first line tells the kind."""
    want, seen = expected(p), {}
    for setting in settings:
        try:
            seen[setting] = Run(p, setting).run()
        except Exception as e:
            if runs_nothing(e):
                return
            yield f"{type(e).__name__} ({setting})\n{e}\n{traceback.format_exc(limit=-6)}"
            continue
        if text := difference(seen[setting], want, as_numpy):
            yield f"numpy ({setting})\n{text}"
        for other in seen:
            exact = other.devices == setting.devices
            text = difference(seen[other], seen[setting], same_bytes if exact else same_values)
            if other is not setting and text:
                yield f"runs ({other}; {setting})\n{text}"


def runs_nothing(e: Exception) -> bool:
    """Whether a program was refused because all of its results are views of its inputs."""
    return isinstance(e, JitError) and "didn't JIT anything" in str(e)


def first_failure(p: Program, settings: list[Setting]) -> str | None:
    """One failure, or None."""
    return next(failures(p, settings), None)


def shrunk(p: Program, settings: list[Setting], text: str, attempts: int = 150) -> tuple[Program, str]:
    """A smaller program with a failure of the same kind."""
    kind, changed = text.split(" ")[0], True
    while changed:
        changed = False
        for smaller in p.smaller():
            attempts -= bool(smaller.results)
            if attempts < 0 or not smaller.results:
                continue
            found = first_failure(smaller, settings)
            if found is not None and found.split(" ")[0] == kind:
                p, text, changed = smaller, found, True
                break
    return p, text


def check(seed: int) -> None:
    """Run the program of a seed in its settings.

    Raises:
        Mismatch: with the seed and a smallest program that fails.
    """
    p, settings = grow(seed), settings_of(seed)
    if not p.results:
        return
    text = first_failure(p, settings)
    if text is not None:
        at = next(i for i, s in enumerate(settings) if f"{s})" in text)
        p, text = shrunk(p, settings[:at + 1], text)
        raise Mismatch(f"{p}\n{text}")
