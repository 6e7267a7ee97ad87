"""Which steps a random program gets: `grow(seed)` draws inputs, states, 3 to 25 steps, results and a feedback."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.soak.graphs import ALL, INTEGERS, LONGEST, MANTISSA, Grower, Program
from tests.soak.steps import TABLE, Step

FLOATS = tuple(MANTISSA)
WIDE = ("int32", "int64", "float32", "float16")


def grow(seed: int) -> Program:
    """The program of a seed."""
    drawer = Drawer(seed)
    for _ in range(drawer.number(3, 25)):
        drawer.step()
    return drawer.finished()


class Drawer(Grower):
    """Adds random steps."""

    def step(self) -> None:
        """One more step, with what it takes to make operands fit."""
        if self.chance(0.3) and (v := self.pick(symbolic=True)) is not None:
            self.symbolic_step(v)
            return
        kinds: list[Callable[[int], Any]] = [
            *[self.unary] * 3, *[self.binary] * 3, self.cast, *[self.reduce] * 2, self.cumulate,
            *[self.move_elements] * 3, self.join, self.product, self.conv, *[self.index] * 2, self.write,
            *[self.effect] * 3, *[self.read] * 2, *[self.break_up] * 2, self.place, self.draw_numbers, self.gradient,
            self.rounding]
        value = self.pick()
        if value is None:
            value = self.emit("sum", (self.live[0],), (0, False), 7.0 * LONGEST, 2, flat=True)
        if value is not None:
            self.choice(kinds)(value)

    # *** element-wise ***
    def unary(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        c = self.number(0, 5)
        if a.dtype.name == "bool":
            return self.emit("not", (v,))
        table: dict[str, tuple[Any, float]] = {
            "+c": (c, f.bound + c), "*c": (c, f.bound * c), ">c": (c, 1), "==c": (c, 1), "relu": (None, f.bound),
            "abs": (None, f.bound), "sign": (None, 1), "clip": ((0, c + 1), c + 1), "where_c": (c, max(f.bound, c)),
            "masked": (c, max(f.bound, c))}
        signed = not a.dtype.name.startswith("u")
        if signed:
            table |= {"neg": (None, f.bound), "c-": (c, f.bound + c)}
        if a.dtype.name in FLOATS:
            table["floor"] = (None, f.bound + 1)
        else:
            most = float(np.iinfo(a.dtype).max)
            table |= {"^c": (c, f.bound + 8), "&c": (c, c), "//c": (c + 1, f.bound), "%c": (c + 1, c),
                      "<<c": (1, f.bound * 2), ">>c": (1, f.bound), "chain": (self.number(4, 40), most * 2)}
        kind = self.choice(sorted(table))
        p, bound = table[kind]
        return self.emit(kind, (v,), p, bound, f.frac)

    def binary(self, v: int) -> Any:
        other = self.pick()
        shape = tuple(1 if self.chance(0.15) else n for n in self.arrays[v].shape)
        w = self.fit(other, v, shape)
        if w is None:
            return None
        f, g, dtype = self.program.facts[v], self.program.facts[w], self.arrays[v].dtype
        if self.chance(0.2):
            return self.select(v, w)
        if dtype.name == "bool":
            return self.emit(self.choice(("and", "or", "xor", "eq")), (v, w))
        both = max(f.bound, g.bound)
        total = f.bound + g.bound
        table = {"add": total, "sub": total, "mul": f.bound * g.bound, "max2": both, "min2": both, "lt": 1, "eq": 1}
        if dtype.name in INTEGERS:
            most = 2.0 ** 64
            table |= {"xor": most, "and": most, "or": most}
        if dtype.name.startswith("u"):
            table["sub"] = 2.0 ** 64
        kind = self.choice(sorted(table))
        frac = f.frac + g.frac if kind == "mul" else max(f.frac, g.frac)
        args = (v, w) if self.chance(0.5) else (w, v)
        return self.emit(kind, args, None, table[kind], frac)

    def select(self, v: int, w: int) -> Any:
        condition = self.pick()
        if condition is None or (c := self.shaped(condition, self.arrays[v].shape)) is None:
            return None
        f, g = self.program.facts[v], self.program.facts[w]
        return self.emit("select", (self.beside(c, v), v, w), None, max(f.bound, g.bound), max(f.frac, g.frac))

    def cast(self, v: int) -> Any:
        return self.typed(v, self.choice((*INTEGERS, *FLOATS, "float16", "bool")))

    def rounding(self, v: int) -> Any:
        """An operation whose result is no short fraction."""
        v = v if self.chance(0.5) else self.typed(v, "float32") or v
        f, a = self.program.facts[v], self.arrays[v]
        if a.dtype.name not in FLOATS or f.bound > 1e3:
            return None
        kinds = {"sin": None, "tanh": None, "sigmoid": None, "root": None, "inverse": None, "tenth": None,
                 "softmax": self.number(0, a.ndim - 1) if a.ndim else 0, "mean": None, "std": None}
        if f.bound <= 7:
            kinds["exp"] = None
        kind = self.choice(sorted(k for k in kinds if a.ndim or k != "softmax"))
        return self.loosely(kind, v, kinds[kind])

    def loosely(self, kind: str, v: int, p: Any) -> int:
        """A step whose value is comparable between runs of the same kernels only."""
        f = self.program.facts[v]
        with np.errstate(all="ignore"):
            array = np.asarray(TABLE[kind].array(p, self.arrays[v]))
        bound = 1.2e3 if kind == "exp" else max(f.bound, 1.0)
        return self.add(kind, (v,), p, array, replace(f, bound=bound, frac=0, loose=True))

    # *** reductions ***
    def axes(self, v: int) -> Any:
        n = self.arrays[v].ndim
        if self.chance(0.15) or n == 0:
            return None
        return tuple(sorted(int(i) for i in self.rng.choice(n, self.number(1, n), replace=False)))

    def reduce(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if self.chance(0.15) and a.ndim:
            return self.emit(self.choice(("argmax", "argmin")), (v,), self.number(0, a.ndim - 1), a.size)
        p = self.axes(v), self.chance(0.4)
        if a.dtype.name == "bool" and self.chance(0.5):
            return self.emit(self.choice(("any", "all")), (v,), p)
        kind = self.choice(("sum", "sum", "max", "min", "prod"))
        if kind == "prod" and a.dtype.name == "bool":
            kind = "sum"
        bound = f.bound * a.size if kind == "sum" else f.bound
        if kind == "prod":
            if f.bound > 7 or a.size > 12:
                return None
            return self.emit(kind, (v,), p, max(f.bound, 1.0) ** a.size, f.frac * a.size)
        return self.emit(kind, (v,), p, bound, f.frac)

    def cumulate(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if not a.ndim:
            return None
        axis = self.number(0, a.ndim - 1)
        if self.chance(0.3):
            return self.emit("cummax", (v,), axis, f.bound, f.frac)
        return self.emit("cumsum", (v,), axis, f.bound * a.shape[axis], f.frac)

    # *** movement ***
    def move_elements(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        moves = [self.reshape, self.permute, self.expand, self.pad, self.slice, self.slice, self.flip, self.roll,
                 self.tile, self.triangle, self.split]
        kind, p, bound = self.choice(moves if a.ndim else moves[:1])(v)
        return self.emit(kind, (v,), p, max(bound, f.bound), f.frac)

    def reshape(self, v: int) -> Any:
        n, out = self.arrays[v].size, []
        while n > 1 and len(out) < 4:
            d = self.choice([k for k in range(2, n + 1) if n % k == 0])
            out.append(d)
            n //= d
        out.insert(self.number(0, len(out)), n)
        return "reshape", tuple(out), 0

    def permute(self, v: int) -> Any:
        return "permute", tuple(int(i) for i in self.rng.permutation(self.arrays[v].ndim)), 0

    def expand(self, v: int) -> Any:
        return "expand", (self.number(0, self.arrays[v].ndim), self.number(1, 3)), 0

    def pad(self, v: int) -> Any:
        value = self.number(0, 3) if self.chance(0.3) and self.arrays[v].dtype.name != "bool" else 0
        return "pad", (tuple((self.number(0, 2), self.number(0, 2)) for _ in self.arrays[v].shape), value), value

    def box(self, v: int) -> tuple[slice, ...]:
        starts = [self.number(0, n - 1) for n in self.arrays[v].shape]
        return tuple(slice(s, self.number(s + 1, n)) for s, n in zip(starts, self.arrays[v].shape))

    def slice(self, v: int) -> Any:
        part: list[Any] = list(self.box(v))
        for i, n in enumerate(self.arrays[v].shape):
            if self.chance(0.3):
                part[i] = self.choice((slice(None, None, 2), slice(None, None, -1), slice(None), self.number(0, n - 1),
                                       slice(n - 1, None, -2)))
        return "slice", tuple(part), 0

    def flip(self, v: int) -> Any:
        return "flip", self.number(0, self.arrays[v].ndim - 1), 0

    def roll(self, v: int) -> Any:
        return "roll", (self.number(-3, 3), self.number(0, self.arrays[v].ndim - 1)), 0

    def tile(self, v: int) -> Any:
        return "repeat", tuple(self.number(1, 2) for _ in self.arrays[v].shape), 0

    def triangle(self, v: int) -> Any:
        if self.arrays[v].ndim < 2:
            return self.flip(v)
        return self.choice(("tril", "triu")), self.number(-1, 1), 0

    def split(self, v: int) -> Any:
        axis = self.number(0, self.arrays[v].ndim - 1)
        n = self.arrays[v].shape[axis]
        size = self.number(1, n)
        return "split", (size, axis, self.number(0, -(-n // size) - 1)), 0

    def join(self, v: int) -> Any:
        parts = [v]
        for _ in range(self.choice((1, 1, 2, 5))):
            w = self.fit(self.pick(), v)
            if w is not None:
                parts.append(w)
        self.rng.shuffle(parts)
        facts = [self.program.facts[w] for w in parts]
        kind = "cat" if self.arrays[v].ndim and self.chance(0.6) else "stack"
        axis = self.number(0, self.arrays[v].ndim - (kind == "cat"))
        return self.emit(kind, tuple(parts), axis, max(f.bound for f in facts), max(f.frac for f in facts))

    # *** products ***
    def product(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if a.ndim != 2 or a.dtype.name not in WIDE:
            return None
        if self.chance(0.25):
            return self.emit("gram", (v,), int(self.chance(0.5)), f.bound ** 2 * max(a.shape), f.frac * 2)
        w = self.fit(self.pick(), v, (a.shape[1], self.number(1, 6)))
        if w is None:
            return None
        g = self.program.facts[w]
        return self.emit("matmul", (v, w), None, f.bound * g.bound * a.shape[1], f.frac + g.frac)

    def conv(self, v: int) -> Any:
        dtype = self.choice(("float32", "int32"))
        x = self.typed(v, dtype)
        channels, h, w = self.number(1, 2), self.number(3, 6), self.number(3, 6)
        shape = self.number(1, 2), channels, h, w
        window = self.number(1, 2), channels, self.number(1, 3), self.number(1, 3)
        x = None if x is None else self.shaped(x, shape)
        if x is None or (k := self.fit(self.pick(), x, window)) is None:
            return None
        f, g = self.program.facts[x], self.program.facts[k]
        return self.emit("conv", (x, k), (shape, window, self.number(1, 2), self.number(0, 1)),
                         f.bound * g.bound * int(np.prod(window[1:])), f.frac + g.frac)

    # *** indexing ***
    def index(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if not a.ndim:
            return None
        axis = self.number(0, a.ndim - 1)
        kind = self.choice(("rows", "columns", "rows_by", "gather", "scatter_sum", "one_hot", "sort", "top"))
        if kind in ("rows", "columns"):
            along = kind == "columns" and a.ndim > 1
            picked = [self.number(0, a.shape[int(along)] - 1) for _ in range(self.number(1, 5))]
            return self.emit("columns" if along else "rows", (v,), picked, f.bound, f.frac)
        if kind in ("sort", "top"):
            if a.dtype.name == "bool" or a.shape[axis] > 16:
                return None
            p = axis if kind == "sort" else (self.number(1, a.shape[axis]), axis)
            return self.emit(kind, (v,), p, f.bound, f.frac)
        i = self.whole_numbers()
        if i is None:
            return None
        if kind == "one_hot":
            return self.emit("one_hot", (i,), self.number(2, 6))
        return self.index_by(kind, v, self.beside(i, v), axis)

    def whole_numbers(self) -> int | None:
        return self.pick(dtypes=("int8", "int16", "int32", "int64", "uint8"))

    def index_by(self, kind: str, v: int, i: int, axis: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if kind == "rows_by":
            return self.emit(kind, (v, i), a.shape[0], f.bound, f.frac)
        j = self.shaped(i, a.shape)
        if j is None or (kind == "scatter_sum" and (a.dtype.name == "bool" or a.size > 100)):
            return None
        bound = f.bound * (1 + a.shape[axis]) if kind == "scatter_sum" else f.bound
        return self.emit(kind, (v, j), (axis, a.shape[axis]), bound, f.frac)

    def write(self, v: int) -> Any:
        a, f = self.arrays[v], self.program.facts[v]
        if not a.ndim:
            return None
        kind = self.choice(("set", "set_c", "set_rows"))
        if kind == "set_rows":
            rows = [int(i) for i in self.rng.choice(a.shape[0], self.number(1, a.shape[0]), replace=False)]
            return self.emit(kind, (v,), rows, f.bound, f.frac)
        box = self.box(v)
        if kind == "set_c":
            return self.emit(kind, (v,), (box, True if a.dtype.name == "bool" else 2), max(f.bound, 2.0), f.frac)
        w = self.fit(self.pick(), v, a[box].shape)
        if w is None:
            return None
        g = self.program.facts[w]
        return self.emit(kind, (v, w), box, max(f.bound, g.bound), max(f.frac, g.frac))

    # *** states ***
    def state(self) -> int | None:
        places = self.program.places
        return self.choice(places) if places else None

    def effect(self, _: int) -> Any:
        s = self.state()
        if s is None:
            return None
        a, f = self.arrays[s], self.program.facts[s]
        if f.loose:
            v = self.pick()
            w = None if v is None else self.shaped(v, a.shape)
            return None if w is None else self.act("train", (s, self.beside(w, s)))
        sources = [*self.program.inputs, *self.program.states]
        twin = [t for t in self.program.places if t != s and sources[t] == sources[s]]
        if twin and self.chance(0.3):
            return self.act("swap", (s, twin[0]))
        kind = self.choice(("assign", "assign_part", "assign_row", "add_to"))
        return self.store(kind, s, self.pick(exact=not f.unknown))

    def store(self, kind: str, s: int, v: int | None) -> Any:
        a = self.arrays[s]
        self.stored[s] = self.stored.get(s, 0) + (kind == "add_to")
        if v is None or self.stored[s] > 5:
            return None
        box = self.box(s)
        row = self.number(0, a.shape[0] - 1)
        part = {"assign": a, "add_to": a, "assign_part": a[box], "assign_row": a[row]}[kind]
        w = self.small(v, s, part.shape)
        if w is None:
            return None
        return self.act(kind, (s, w), {"assign_part": box, "assign_row": row}.get(kind))

    def act(self, kind: str, args: tuple[int, ...], p: Any = None) -> None:
        """Add a step that changes states."""
        with np.errstate(all="ignore"):
            TABLE[kind].array(p, *[self.arrays[a] for a in args])
        self.program.steps.append(Step(kind, args[0], args, p))

    def read(self, _: int) -> Any:
        s = self.state()
        if s is None:
            return None
        f = self.program.facts[s]
        if self.chance(0.5):
            return self.emit("read", (s,), None, f.bound + 1, f.frac)
        return self.emit("read_part", (s,), self.box(s), f.bound * 2, f.frac)

    # *** the rest ***
    def break_up(self, v: int) -> Any:
        f = self.program.facts[v]
        kind = self.choice(("realize", "realize", "contiguous", "clone", "detach"))
        return self.emit(kind, (v,), None, f.bound, f.frac)

    def place(self, v: int) -> Any:
        place = self.choice((ALL, ALL, *range(6)))
        return self.move(v, place, self.choice((None, *range(self.arrays[v].ndim))))

    def draw_numbers(self, v: int) -> Any:
        """Of the first device, which is there in every setting: each device has numbers of its own."""
        if self.program.facts[v].place not in (ALL, 0):
            return None
        return self.emit(self.choice(("rand", "randint")), (v,), self.shape(), 8)

    def gradient(self, v: int) -> Any:
        x = self.typed(v, "float32")
        if x is None or not self.arrays[x].ndim:
            return None
        a, f = self.arrays[x], self.program.facts[x]
        kind = self.choice(("grad_square", "grad_relu", "grad_part", "grad_matmul", "backward"))
        if kind == "grad_matmul":
            if a.ndim != 2 or (w := self.fit(self.pick(), x, (a.shape[1], self.number(1, 4)))) is None:
                return None
            g = self.program.facts[w]
            return self.emit(kind, (x, w), None, g.bound * self.arrays[w].shape[1], g.frac)
        if kind == "backward":
            return self.loosely(kind, x, None) if f.bound < 100 else None
        p, bound = {"grad_square": (None, f.bound * 4), "grad_relu": (None, 3.0),
                    "grad_part": (self.box(x), f.bound * 2)}[kind]
        return self.emit(kind, (x,), p, bound, f.frac)

    # *** symbolic axes ***
    def symbolic_step(self, v: int) -> Any:
        """A step on a value whose first axis has another length in each call."""
        a, f = self.arrays[v], self.program.facts[v]
        kind = self.choice(("unary", "unary", "flat sum", "flat sum", "sum", "max", "self", "row", "pad", "slice",
                            "flip", "split0", "cat", "cat_short", "stack", "gram", "realize", "contiguous", "cumsum",
                            "argmax", "rest"))
        if kind == "unary":
            return self.unary(v)
        if kind == "flat sum":
            return self.emit("sum", (v,), (0, self.chance(0.5)), f.bound * LONGEST, f.frac, flat=True)
        if kind in ("realize", "contiguous"):
            return self.emit(kind, (v,), None, f.bound, f.frac)
        last = a.ndim - 1
        if last < 1:
            return None
        return self.symbolic_rows(kind, v, last)

    def symbolic_rows(self, kind: str, v: int, last: int) -> Any:
        """Steps on the other axes, and on the rows as a whole."""
        a, f = self.arrays[v], self.program.facts[v]
        n = a.shape[last]
        whole = (slice(None),) * last
        if kind == "self":
            return self.emit(self.choice(("add", "max2", "lt")), (v, v), None, f.bound * 2, f.frac)
        if kind == "row":
            total = self.emit("max", (v,), (0, True), f.bound, f.frac, flat=True)
            return None if total is None else self.emit("max2", (v, total), None, f.bound, f.frac)
        if kind == "gram":
            if a.ndim > 2 or a.dtype.name not in WIDE:
                return None
            return self.emit("gram", (v,), 0, f.bound ** 2 * LONGEST, f.frac * 2, flat=True)
        simple: dict[str, tuple[str, tuple[int, ...], Any, float]] = {
            "sum": ("sum", (v,), (last, False), f.bound * n), "max": ("max", (v,), (last, False), f.bound),
            "pad": ("pad", (v,), (((0, 0),) * last + ((1, 2),), 0), f.bound),
            "slice": ("slice", (v,), (*whole, slice(self.number(0, n - 1), None)), f.bound),
            "flip": ("flip", (v,), last, f.bound), "cat": ("cat", (v, v), last, f.bound),
            "stack": ("stack", (v, v), last, f.bound), "cumsum": ("cumsum", (v,), last, f.bound * n),
            "argmax": ("argmax", (v,), last, n), "cat_short": ("cat_short", (v,), None, f.bound),
            "rest": ("slice", (v,), (slice(None), *whole[1:], 0), f.bound)}
        if kind == "split0":
            if a.ndim > 2 or n % 2:
                return None
            return self.emit("split0", (v,), (2, n // 2), f.bound, f.frac)
        name, args, p, bound = simple[kind]
        if a.dtype.name == "bool" and name in ("max", "argmax", "cumsum"):
            return None
        return self.emit(name, args, p, bound, f.frac)

    # *** results ***
    def finished(self) -> Program:
        """The program with results: the last values and some others, and what goes back in."""
        p = self.program
        made = [v for v in self.live if v >= p.first_state + len(p.states)]
        if not made:
            self.unary(self.live[0])
            made = [len(self.arrays) - 1] if len(self.arrays) > p.first_state + len(p.states) else []
        some = [int(v) for v in self.rng.choice(made, min(3, len(made)), replace=False)] if made else []
        p.results = list(dict.fromkeys([*made[-2:], *some]))
        if self.chance(0.35):
            self.feed_back()
        return p

    def feed_back(self) -> None:
        """A value of exact type that an input gets in the next call."""
        p = self.program
        target = self.number(0, len(p.inputs) - 1)
        s = p.inputs[target]
        v = self.pick(exact=True)
        if s.fact.symbolic or v is None or s.dtype == "bool" or target in p.written:
            return
        v = self.shaped(v, s.shape)
        w = None if v is None else self.emit("low_bits", (v,), s.dtype, 7)
        if w is None:
            return
        f = p.facts[w]
        w = self.emit("clone", (self.move(w, s.fact.place, s.axis),), None, f.bound, f.frac)
        if w is not None:
            p.results.append(w)
            p.feedback = target, w
