"""Random words with what they mean: each node is built beside a Python function over the same values."""
from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from tinyhost.dtype import dtypes
from tinyhost.hcq.commands import variable
from tinyhost.uop import UOp

ALL = (1 << 64) - 1
Meaning = Callable[[Mapping[str, int]], int]
Word = tuple[UOp, Meaning]
WIDE = ("arguments", "commands", "input0", "input1", "input2", "signal")
NARROW = {"n": (1, 100), "start": (0, 4096)}


def random_values(rng: random.Random) -> dict[str, int]:
    """A value for each variable."""
    out = {name: rng.choice([0, ALL, 1 << 63, rng.randrange(1 << 48), rng.randrange(1 << 64)]) for name in WIDE}
    return out | {name: rng.randint(*bounds) for name, bounds in NARROW.items()}


def leaf(rng: random.Random) -> Word:
    if rng.random() < 0.2:
        name = rng.choice(list(NARROW))
        return UOp.variable(name, *NARROW[name]).cast(dtypes.uint64), lambda values: values[name]
    name = rng.choice(WIDE)
    return variable(name), lambda values: values[name]


def literal(rng: random.Random) -> int:
    return rng.choice([0, 1, 7, 8, 255, 4096, 0xFFFFFFFF, 0xFFFF0000, rng.randrange(1 << 64), 1 << rng.randrange(64)])


def with_literal(rng: random.Random, x: Word) -> Word:
    """One op of a word and a literal."""
    u, f = x
    c, count, power = literal(rng), rng.randrange(64), 1 << rng.randrange(1, 20)
    return rng.choice([
        lambda: (u + c, lambda v: f(v) + c & ALL), lambda: (u - c, lambda v: f(v) - c & ALL),
        lambda: (u & c, lambda v: f(v) & c), lambda: (u | c, lambda v: f(v) | c), lambda: (u ^ c, lambda v: f(v) ^ c),
        lambda: (u >> count, lambda v: f(v) >> count), lambda: (u << count, lambda v: f(v) << count & ALL),
        lambda: (u * power, lambda v: f(v) * power & ALL), lambda: (u * c, lambda v: f(v) * c & ALL),
        lambda: (u // power, lambda v: f(v) // power), lambda: (u % power, lambda v: f(v) % power)])()


def with_word(rng: random.Random, x: Word, y: Word) -> Word:
    """One op of two words."""
    (u, f), (w, g) = x, y
    return rng.choice([
        lambda: (u + w, lambda v: f(v) + g(v) & ALL), lambda: (u - w, lambda v: f(v) - g(v) & ALL),
        lambda: (u & w, lambda v: f(v) & g(v)), lambda: (u | w, lambda v: f(v) | g(v)),
        lambda: ((u < w).where(u, w), lambda v: min(f(v), g(v)))])()


def packed(rng: random.Random, x: Word) -> Word:
    """A bit field of a word beside the bits of an opcode, as packets have them."""
    u, f = x
    shift, bits = rng.randrange(48), rng.randrange(1, 24)
    mask, opcode = (1 << bits) - 1, rng.randrange(256) << 24
    return (u >> shift) & mask | opcode, lambda v: f(v) >> shift & mask | opcode


def random_word(rng: random.Random) -> Word:
    """A literal, an address, its half, a field of it, or anything else."""
    kind = rng.random()
    x = leaf(rng)
    if kind < 0.2:
        c = rng.randrange(1 << 31)
        return UOp.const(c), lambda v: c
    if kind < 0.4:
        offset = rng.randrange(1 << 40)
        return x[0] + offset, lambda v: x[1](v) + offset & ALL
    if kind < 0.6:
        return packed(rng, with_literal(rng, x))
    for _ in range(rng.randrange(1, 4)):
        x = with_literal(rng, x) if rng.random() < 0.7 else with_word(rng, x, leaf(rng))
    return x
