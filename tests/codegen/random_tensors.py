"""Random small tensor programs whose values are known bit by bit, or within a bound.

``program(seed)`` gives a function from a device to a Tensor, and how results are compared: ``ulps`` is 0 where no float
sum may be reordered to another value, else a bound in units of the dtype's epsilon at the largest term.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tinyhost import Tensor, dtypes
from tinyhost.dtype import DType, _to_np_dtype

SIZES = (1, 2, 3, 4, 5, 7, 8, 9, 16, 17, 31, 33, 64)
FLOATS = (dtypes.float32, dtypes.float32, dtypes.float32, dtypes.float64, dtypes.float16)
INTS = (dtypes.int32, dtypes.int8, dtypes.uint8, dtypes.int64, dtypes.int16, dtypes.uint32)
MOST = 4096  # elements of a tensor
EXACT_BITS = {dtypes.float16: 11, dtypes.float32: 24, dtypes.float64: 53}


def numpy_of(dtype: DType) -> np.dtype:
    """The numpy counterpart."""
    return np.dtype(_to_np_dtype(dtype))


@dataclass
class Value:
    """A tensor under construction: what makes it on a device, its shape and dtype, the largest magnitude it may have.

    ``rounded`` tells that its elements are no small integers; ``terms`` counts the float terms whose sum may be
    reordered.
    """

    make: Callable[[str], Tensor]
    shape: tuple[int, ...]
    dtype: DType
    most: float
    rounded: bool = False
    terms: int = 0

    def then(self, fn: Callable[[Tensor], Tensor], shape: tuple[int, ...], **changes: object) -> "Value":
        """``fn`` of this value."""
        make = self.make
        kept = {"dtype": self.dtype, "most": self.most, "rounded": self.rounded, "terms": self.terms, **changes}
        return Value(lambda device: fn(make(device)), shape, **kept)


@dataclass
class Program:
    """A program and its bound; ``eps`` of the dtype and ``most`` of the values scale it."""

    make: Callable[[str], Tensor]
    exact: bool
    bound: float


class Maker:
    """Draws one program."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.dtype = self.rng.choice(FLOATS + INTS)
        self.numbers = np.random.default_rng(seed)

    def leaf(self, shape: tuple[int, ...]) -> Value:
        """A realized tensor of small integers; half of the float ones are thirds."""
        numpy = numpy_of(self.dtype)
        data = self.numbers.integers(0 if self.dtype in dtypes.uints else -3, 4, shape).astype(numpy)
        rounded = self.dtype.is_float and self.rng.random() < 0.5
        if rounded:
            data = (data / 3).astype(numpy)
        return Value(lambda device: Tensor(data, device=device).realize(), shape, self.dtype, 3.0, rounded)

    def shape(self) -> tuple[int, ...]:
        """Up to four axes."""
        out: list[int] = []
        for _ in range(self.rng.randint(1, 4)):
            n = self.rng.choice(SIZES)
            if int(np.prod(out, dtype=int)) * n <= MOST // 4:
                out.append(n)
        return tuple(out) or (3,)

    # *** one step ***
    def step(self, v: Value) -> Value:
        """One more operation."""
        kind = self.rng.choice(["unary", "binary", "binary", "move", "move", "reduce", "matmul", "where", "pool"])
        found: Value | None = getattr(self, kind)(v)
        return v if found is None else found

    def unary(self, v: Value) -> Value | None:
        """Negation, magnitude, relu, square root, a literal."""
        which = self.rng.choice(["neg", "abs", "relu", "sqrt", "add"])
        if which == "sqrt":
            if not v.dtype.is_float or v.terms:  # near 0 a root makes much of a small difference
                return None
            return v.then(lambda t: t.abs().sqrt(), v.shape, most=v.most + 1, rounded=True)
        if which == "add":
            c = self.rng.randint(0, 3)
            return v.then(lambda t: t + c, v.shape, most=v.most + c)
        return v.then(lambda t: -t if which == "neg" else t.abs() if which == "abs" else t.relu(), v.shape)

    def binary(self, v: Value) -> Value | None:
        """With another leaf that broadcasts, or with the value itself."""
        other = v if self.rng.random() < 0.2 else self.leaf(tuple(n if self.rng.random() < 0.6 else 1 for n in v.shape))
        which = self.rng.choice(["add", "sub", "mul", "maximum", "div"])
        if which == "div":
            if not v.dtype.is_float:
                return None
            return self.join(v, other, lambda a, b: a / (b.abs() + 1), v.most, True)
        most = {"add": v.most + other.most, "sub": v.most + other.most, "mul": v.most * other.most}.get(
            which, max(v.most, other.most))
        functions: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
            "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b,
            "maximum": lambda a, b: a.maximum(b)}
        return self.join(v, other, functions[which], most, False)

    def join(self, v: Value, o: Value, fn: Callable[[Tensor, Tensor], Tensor], most: float, rounds: bool,
             shape: tuple[int, ...] | None = None) -> Value:
        """A function of two values, of their common shape; it rounds where its operands do, or where it says so."""
        a, b = v.make, o.make
        shape = tuple(np.broadcast_shapes(v.shape, o.shape)) if shape is None else shape
        return Value(lambda device: fn(a(device), b(device)), shape, v.dtype, most, v.rounded or o.rounded or rounds,
                     v.terms + o.terms)

    def where(self, v: Value) -> Value | None:
        """A choice by a comparison, which must not fall otherwise for a small difference."""
        if v.terms:
            return None
        c, other = self.rng.randint(-2, 2), self.leaf(v.shape)
        if v.dtype in dtypes.uints:
            c = abs(c)
        return self.join(v, other, lambda a, b: (b < c).where(a, b) if c else (a != b).where(b, a),
                         max(v.most, other.most), False)

    def move(self, v: Value) -> Value | None:
        """A view."""
        which = self.rng.choice(["permute", "flip", "pad", "shrink", "reshape", "expand", "wrap"])
        axis = self.rng.randrange(len(v.shape))
        n = v.shape[axis]
        if which == "permute":
            order = self.rng.sample(range(len(v.shape)), len(v.shape))
            return v.then(lambda t: t.permute(order), tuple(v.shape[i] for i in order))
        if which == "flip":
            return v.then(lambda t: t.flip(axis), v.shape)
        if which == "pad":
            before, after = self.rng.randint(0, 3), self.rng.randint(0, 3)
            pads = tuple((before, after) if i == axis else None for i in range(len(v.shape)))
            return v.then(lambda t: t.pad(pads), (*v.shape[:axis], n + before + after, *v.shape[axis + 1:]))
        if which == "shrink":
            first = self.rng.randrange(n)
            last = self.rng.randint(first + 1, n)
            arg = tuple((first, last) if i == axis else None for i in range(len(v.shape)))
            return v.then(lambda t: t.shrink(arg), (*v.shape[:axis], last - first, *v.shape[axis + 1:]))
        if which == "wrap":  # an axis repeated and cut off where some repetition has not ended
            long = self.rng.randint(n + 1, 3 * n)
            shape = (*v.shape[:axis], long, *v.shape[axis + 1:])
            if int(np.prod(shape)) > MOST:
                return None
            times = tuple(-(-long // n) if i == axis else 1 for i in range(len(shape)))
            cut = tuple((0, size) for size in shape)
            return v.then(lambda t: t.repeat(*times).shrink(cut), shape)
        if which == "reshape":
            merged = (*v.shape[:axis], n * v.shape[axis + 1], *v.shape[axis + 2:]) if axis + 1 < len(v.shape) else \
                (*v.shape, 1)
            return v.then(lambda t: t.reshape(merged), merged)
        times = self.rng.randint(2, 4)
        wide = (times, *v.shape)
        if int(np.prod(wide)) > MOST:
            return None
        return v.then(lambda t: t.unsqueeze(0).expand(wide), wide)

    def reduce(self, v: Value) -> Value | None:
        """A sum or a maximum."""
        axis = self.rng.randrange(len(v.shape))
        keep = self.rng.random() < 0.4
        shape = (*v.shape[:axis], *((1,) if keep else ()), *v.shape[axis + 1:]) or (1,)
        if self.rng.random() < 0.4:
            return v.then(lambda t: t.max(axis, keepdim=keep).reshape(shape), shape)
        dtype = v.dtype
        terms = v.terms + v.shape[axis] if v.dtype.is_float and v.rounded else v.terms
        return v.then(lambda t: t.sum(axis, keepdim=keep, dtype=dtype).reshape(shape), shape,
                      most=v.most * v.shape[axis], terms=terms)

    def matmul(self, v: Value) -> Value | None:
        """A product with a matrix."""
        if len(v.shape) < 2:
            return None
        k, n = v.shape[-1], self.rng.choice(SIZES)
        if int(np.prod(v.shape[:-1])) * n > MOST:
            return None
        other = self.leaf((k, n))
        made = self.join(v, other, lambda a, b: a.matmul(b, dtype=v.dtype), v.most * other.most * k, False,
                         (*v.shape[:-1], n))
        made.terms = v.terms + k if v.dtype.is_float and made.rounded else v.terms
        return made

    def pool(self, v: Value) -> Value | None:
        """A maximum over windows of three."""
        if len(v.shape) < 2 or min(v.shape[-2:]) < 3:
            return None
        stride = self.rng.randint(1, 2)
        size = tuple((n - 3) // stride + 1 for n in v.shape[-2:])
        lead = v.shape[:-2]
        return v.then(lambda t: t.reshape(1, -1, *t.shape[-2:]).max_pool2d((3, 3), stride=stride).reshape(*lead, *size),
                      (*lead, *size))


def program(seed: int) -> Program:
    """The program of a seed."""
    maker = Maker(seed)
    v = maker.leaf(maker.shape())
    for _ in range(maker.rng.randint(2, 9)):
        nxt = maker.step(v)
        limit = 2.0 ** EXACT_BITS.get(v.dtype, 200)
        if nxt.most < limit:  # sums stay exact as long as values are integers below this, and nothing overflows
            v = nxt
    # every rounded sum moves a result by its terms times eps times the largest value there may be
    eps = float(np.finfo(numpy_of(v.dtype)).eps) if v.dtype.is_float else 0.0
    return Program(v.make, v.terms == 0, 2.0 * v.terms * eps * max(v.most, 1.0))
