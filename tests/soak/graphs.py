"""Random programs over tensors: drawn from a seed, as data, so that they can be run in any setting and cut down.

A program takes inputs, keeps states over its calls, and gives results; some of them are the next call's input. All that
is known of a value before any data is seen is its `Fact`: as long as every float is a multiple of 2**-frac of at most
``bound``, and bound * 2**frac fits in the mantissa, sums are exact in every order. A value for which that does not hold
is ``loose`` (comparable only between runs of the same kernels), and so is all that follows from it.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from tests.soak.steps import EFFECTS, TABLE, UNKNOWN, Array, Step

ALL = -1  # the place of a value that is on all devices; 0, 1, ... are single ones, modulo their number
MANTISSA = {"float16": 11, "float32": 24, "float64": 53}
SIGNED = ("int8", "int16", "int32", "int64")
INTEGERS = (*SIGNED, "uint8", "uint16", "uint32", "uint64")
DTYPES = (*INTEGERS, "int32", "float32", "float32", "float32", "float16", "bool")
STATEFUL = ("int32", "int16", "int64", "float32", "float16")
LONGEST = 10  # the largest extent of a symbolic axis
SMALL, LARGE = 400, 60_000  # most elements of a value
FLAGS = (
    "hold",  # read results after the last call
    "watch",  # build a reader of each state before each call, read it afterwards
    "touch",  # add to the states between calls, too
    "two",  # two captures of the program take turns
)


@dataclass(frozen=True)
class Fact:
    """What is known of a value whatever the inputs are."""

    bound: float
    frac: int = 0
    place: int = ALL
    loose: bool = False
    unknown: bool = False
    symbolic: bool = False


@dataclass(frozen=True)
class Source:
    """An input or a state: small integers times 2**-frac; split along ``axis`` where it is on all devices."""

    shape: tuple[int, ...]
    dtype: str
    fact: Fact
    axis: int | None = None

    def data(self, rng: np.random.Generator) -> Array:
        """Elements, other ones for each state of ``rng``."""
        if self.dtype == "bool":
            return rng.integers(0, 2, self.shape).astype(bool)
        low = 0 if self.dtype.startswith("u") else -7
        return (rng.integers(low, 8, self.shape) / 2 ** self.fact.frac).astype(self.dtype)


@dataclass
class Program:
    """Inputs, states and steps; values are numbered in this order. ``feedback`` is (input, value that it gets)."""

    seed: int
    inputs: list[Source] = field(default_factory=list)
    states: list[Source] = field(default_factory=list)
    steps: list[Step] = field(default_factory=list)
    facts: dict[int, Fact] = field(default_factory=dict)
    results: list[int] = field(default_factory=list)
    feedback: tuple[int, int] | None = None
    flags: tuple[str, ...] = ()  # some of FLAGS
    written: tuple[int, ...] = ()  # inputs that the steps change in place

    @property
    def first_state(self) -> int:
        """The number of the first state."""
        return len(self.inputs)

    @property
    def places(self) -> list[int]:
        """The numbers of all that steps may change in place."""
        return [*self.written, *range(self.first_state, self.first_state + len(self.states))]

    def data(self, call: int, number: int) -> Array:
        """The elements of an input in a call; states have those of call 0."""
        source = (*self.inputs, *self.states)[number]
        array = source.data(np.random.default_rng([self.seed, call, number]))
        return array[:self.extent(call)] if source.fact.symbolic else array

    def extent(self, call: int) -> int:
        """The length of symbolic axes in a call."""
        return 1 + (self.seed + call * 7) % LONGEST

    def smaller(self) -> Iterator[Program]:
        """The program less something, last steps first."""
        for flag in self.flags:
            yield replace(self, flags=tuple(f for f in self.flags if f != flag))
        if len(self.results) > 1:
            yield from (replace(self, results=[r], feedback=None) for r in self.results)
        if self.feedback is not None:
            yield replace(self, feedback=None)
        for i in reversed(range(len(self.steps))):
            yield self.without(i)
            yield from self.past(i)

    def past(self, index: int) -> Iterator[Program]:
        """The program with a step's value replaced by the operand where that is as good to see."""
        step = self.steps[index]
        if step.kind in ("move", "realize", "contiguous", "clone", "detach") and step.out not in self.results:
            kept = [s._replace(args=tuple(step.args[0] if a == step.out else a for a in s.args))
                    for s in self.steps if s is not step]
            yield replace(self, steps=kept)

    def without(self, index: int) -> Program:
        """The program less a step and all that need its value."""
        gone: set[int] = set()
        kept: list[Step] = []
        for i, s in enumerate(self.steps):
            if i == index or gone & set(s.args):
                gone |= set() if s.kind in EFFECTS else {s.out}
            else:
                kept.append(s)
        feedback = None if self.feedback is None or self.feedback[1] in gone else self.feedback
        results = [r for r in self.results if r not in gone]
        return replace(self, steps=kept, results=results, feedback=feedback)

    def __str__(self) -> str:
        lines = [f"seed {self.seed}: {' '.join(self.flags)} feedback={self.feedback}"]
        for i, s in enumerate((*self.inputs, *self.states)):
            kind = "input" if i < self.first_state else "state"
            lines.append(f"v{i} = {kind} {s.dtype}{list(s.shape)} place={s.fact.place} axis={s.axis}"
                         f"{' symbolic' if s.fact.symbolic else ''}")
        return "\n".join([*lines, *map(str, self.steps), "results " + ", ".join(f"v{r}" for r in self.results)])


class Grower:
    """Draws a program: every step is evaluated on sample data, which gives shapes and checks the facts."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.program = Program(seed, flags=tuple(f for f in FLAGS if self.chance(0.3)))
        self.limit = LARGE if self.chance(0.08) else SMALL
        self.arrays: dict[int, Array] = {}
        self.live: list[int] = []  # values that steps may take
        self.stored: dict[int, int] = {}  # how often a state was added to
        self.draw_inputs()
        self.draw_states()

    # *** drawing ***
    def chance(self, p: float) -> bool:
        return bool(self.rng.random() < p)

    def choice(self, items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def number(self, low: int, high: int) -> int:
        """From low to high, both included."""
        return int(self.rng.integers(low, high + 1))

    def shape(self) -> tuple[int, ...]:
        """Mostly one that the program has already, so that operands fit."""
        known = [s.shape for s in (*self.program.inputs, *self.program.states) if not s.fact.symbolic]
        if known and self.chance(0.6):
            return known[0]
        extents = (33, 64, 128, 200) if self.limit > SMALL else (1, 2, 3, 4, 5, 6, 7)
        dims = self.choice((1, 2, 2, 2, 3))
        return tuple(self.choice(extents) for _ in range(dims))[:2 if self.limit > SMALL else 3]

    def source(self, shape: tuple[int, ...], dtype: str, **more: Any) -> Source:
        frac = self.number(0, 2) if dtype.startswith("float") else 0
        place = ALL if self.chance(0.75) else self.number(0, 5)
        axis = self.choice((None, *range(len(shape)))) if place == ALL else None
        return Source(shape, dtype, Fact(1 if dtype == "bool" else 7, frac, place, **more), axis)

    def draw_inputs(self) -> None:
        symbolic = self.chance(0.15)
        for i in range(self.number(1, 3)):
            if i and self.chance(0.25):
                self.program.written = (*self.program.written, i)
                s = self.stateful(self.source(self.shape(), self.choice(STATEFUL)))
            elif symbolic and i == 0:
                s = self.source((LONGEST, 2 * self.number(1, 3)), self.choice(("float32", "int32")), symbolic=True)
                s = replace(s, axis=None, fact=replace(s.fact, place=ALL))
            else:
                s = self.source(self.shape(), self.choice(DTYPES))
            self.program.inputs.append(s)
        for i, s in enumerate(self.program.inputs):
            self.know(i, self.program.data(0, i), s.fact)
        self.live += [i for i in range(len(self.program.inputs)) if i not in self.program.written]

    def stateful(self, s: Source) -> Source:
        """A source as something that is written again and again."""
        bound = 256 if s.dtype in MANTISSA else 2.0 ** (8 * np.dtype(s.dtype).itemsize - 1)
        return replace(s, fact=replace(s.fact, bound=bound, frac=0, unknown=self.chance(0.2)))

    def draw_states(self) -> None:
        for _ in range(self.choice((0, 1, 1, 2))):
            s = self.stateful(self.source(self.shape(), self.choice(STATEFUL)))
            self.program.states += [s] * self.number(1, 2)
        if self.chance(0.15):
            s = self.source(self.shape(), "float32")
            self.program.states.append(replace(s, fact=replace(s.fact, bound=1e3, loose=True, unknown=True)))
        for i, s in enumerate(self.program.states, self.program.first_state):
            self.know(i, self.program.data(0, i), s.fact)

    def know(self, number: int, array: Array, fact: Fact) -> None:
        self.arrays[number] = array
        self.program.facts[number] = fact
        if not fact.loose and not fact.unknown and array.size and array.dtype != bool:
            scaled = array.astype(np.float64) * 2.0 ** fact.frac
            assert (scaled == np.floor(scaled)).all() and np.abs(array.astype(np.float64)).max() <= fact.bound, number

    # *** steps ***
    def emit(self, kind: str, args: tuple[int, ...], p: Any = None, bound: float = 1, frac: int = 0, *,
             flat: bool = False) -> int | None:
        """Add a step of one new value, ``flat`` without a symbolic axis; None where it would be too large."""
        facts = [self.program.facts[a] for a in args]
        with np.errstate(all="ignore"):
            array = np.asarray(TABLE[kind].array(p, *[self.arrays[a] for a in args]))
        fact = self.fact(kind, array.dtype.name, facts, bound, frac)
        if fact is not None and flat:
            fact = replace(fact, symbolic=False)
        if fact is None or array.size > self.limit or array.size == 0:
            return None
        return self.add(kind, args, p, array, fact)

    def add(self, kind: str, args: tuple[int, ...], p: Any, array: Array, fact: Fact) -> int:
        number = len(self.arrays)
        self.know(number, array, fact)
        self.program.steps.append(Step(kind, number, args, p))
        self.live.append(number)
        return number

    def fact(self, kind: str, dtype: str, facts: list[Fact], bound: float, frac: int) -> Fact | None:
        loose = any(f.loose for f in facts) or bound == np.inf or kind == "backward"
        unknown = any(f.unknown for f in facts) or kind in UNKNOWN
        if dtype in MANTISSA:
            exact = bound * 2.0 ** frac <= 2.0 ** MANTISSA[dtype] and frac <= 20
            if not exact and not loose and self.chance(0.8):
                return None
            loose = loose or not exact
            bound = min(bound, 1e3) if kind in ("exp", "softmax", "backward") else bound
            if loose and bound > (5e2 if dtype == "float16" else 1e4):
                return None
        else:
            frac, largest = 0, 1 if dtype == "bool" else np.iinfo(dtype).max
            bound = bound if bound <= largest else largest + 1.0
        return Fact(bound, frac, facts[0].place, loose, unknown, any(f.symbolic for f in facts))

    def move(self, value: int, place: int, axis: int | None) -> int:
        """The value at another place."""
        fact = replace(self.program.facts[value], place=place)
        return self.add("move", (value,), (place, axis), self.arrays[value], fact)

    def beside(self, value: int, other: int) -> int:
        """``value`` where ``other`` is."""
        place = self.program.facts[other].place
        if self.program.facts[value].place == place:
            return value
        return self.move(value, place, self.choice((None, *range(self.arrays[value].ndim))))

    # *** values that fit ***
    def pick(self, *, exact: bool = False, dtypes: tuple[str, ...] = (), symbolic: bool = False) -> int | None:
        """A value, a recent one rather than an old one."""
        fitting = [v for v in self.live if self.program.facts[v].symbolic == symbolic
                   and (not dtypes or self.arrays[v].dtype.name in dtypes)
                   and not (exact and (self.program.facts[v].loose or self.program.facts[v].unknown))]
        return fitting[-1 - min(int(self.rng.exponential(4)), len(fitting) - 1)] if fitting else None

    def shaped(self, value: int, shape: tuple[int, ...]) -> int | None:
        """The value's elements, repeated as often as needed, in another shape."""
        a, f = self.arrays[value], self.program.facts[value]
        need = int(np.prod(shape))
        if a.shape == shape:
            return value
        if a.size < need:
            flat = self.emit("reshape", (value,), (a.size,), f.bound, f.frac)
            more = None if flat is None else self.emit("repeat", (flat,), (-(-need // a.size),), f.bound, f.frac)
            if more is None:
                return None
            value = more
        return self.emit("cut", (value,), shape, f.bound, f.frac)

    def typed(self, value: int, dtype: str) -> int | None:
        """The value in another dtype; by its low bits where a cast would not be defined or not exact."""
        f, have = self.program.facts[value], self.arrays[value].dtype.name
        if have == dtype:
            return value
        if dtype in MANTISSA:
            plain = have == "bool" or f.bound * 2.0 ** f.frac <= 2.0 ** MANTISSA[dtype]
        else:
            plain = have not in MANTISSA or (dtype in SIGNED and f.bound < np.iinfo(dtype).max)
        if plain or dtype == "bool":
            frac = f.frac if dtype in MANTISSA else 0
            return self.emit("cast", (value,), dtype, self.cast_bound(f, have, dtype), frac)
        return self.emit("low_bits", (value,), dtype, 7)

    def cast_bound(self, f: Fact, have: str, dtype: str) -> float:
        narrow = dtype not in MANTISSA and dtype != "bool" and f.bound > np.iinfo(dtype).max
        return np.iinfo(dtype).max + 1.0 if narrow or (dtype.startswith("u") and not have.startswith("u")) else f.bound

    def fit(self, value: int | None, like: int, shape: tuple[int, ...] | None = None) -> int | None:
        """The value in the shape, dtype and place of another."""
        for change in (lambda v: self.typed(v, self.arrays[like].dtype.name),
                       lambda v: self.shaped(v, self.arrays[like].shape if shape is None else shape),
                       lambda v: self.beside(v, like)):
            value = None if value is None else change(value)
        return value

    def small(self, value: int | None, like: int, shape: tuple[int, ...]) -> int | None:
        """`fit`, and of at most 7 where floats are concerned, to be stored in a state."""
        value = self.fit(value, like, shape)
        dtype = self.arrays[like].dtype.name
        if value is None or dtype not in MANTISSA:
            return value
        return self.emit("low_bits", (value,), dtype, 7)
