"""Movement ops as index arithmetic: at which indices of its source an element of a view lies.

Takes a movement node and a place in its result, gives the place in its source. A place is (indices, gate): one
weakint expression for each axis and a bool node, None for true, outside of which the element is "don't care" (PAD).
Where the gate holds every index lies inside its axis; that is what makes the leading quotient of a reshape need no
remainder. Results are remembered, so equal views in different kernels cost one look-up. Symbolic extents go through
general arithmetic.
"""
from __future__ import annotations

from typing import Any, TypeAlias

from tinyhost.schedule.linear_form import LinearForms
from tinyhost.uop import Ops, UOp

Indices: TypeAlias = tuple[UOp, ...]
Gate: TypeAlias = UOp | None
Place: TypeAlias = tuple[Indices, Gate]
Shape: TypeAlias = tuple[Any, ...]


def both(a: Gate, b: Gate) -> Gate:
    """The gate that holds where both hold."""
    if a is None or a is b:
        return b
    return a if b is None else UOp(Ops.AND, (a, b))


def either(a: Gate, b: Gate) -> Gate:
    """The gate that holds where one of both holds."""
    if a is None or b is None:
        return None
    return a if a is b else UOp(Ops.OR, (a, b))


def not_below(index: UOp, bound: Any) -> UOp:
    """``index >= bound``"""
    return UOp.const(bound - 1) < index if isinstance(bound, int) else bound - 1 < index


def row_major(shape: Shape) -> tuple[int, ...]:
    """Strides, in elements, of a row-major array; symbolic extents count at their largest."""
    strides, step = [], 1
    for d in reversed(shape):
        strides.append(step)
        step *= d if isinstance(d, int) else int(d.vmax)
    return tuple(reversed(strides))


def is_static(shape: Shape) -> bool:
    """Whether no extent is symbolic."""
    for d in shape:
        if not isinstance(d, int):
            return False
    return True


class Indexing:
    """Index arithmetic with its memos; one object serves one scheduling call."""

    def __init__(self) -> None:
        self.math = LinearForms()
        self.zero = self.math.const(0)
        self._moved: dict[tuple[UOp, Indices, Gate], Place] = {}
        self._reshaped: dict[tuple[Shape, Shape, Indices], Indices] = {}
        self._flat: dict[tuple[Shape, Indices], UOp] = {}

    def through(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        """The place in ``view.src[0]`` of an element of the movement node ``view``."""
        key = (view, indices, gate)
        place = self._moved.get(key)
        if place is None:
            place = self._moved[key] = _MOVES[view.op](self, view, indices, gate)
        return place

    def flat(self, shape: Shape, indices: Indices) -> UOp:
        """Offset, in elements, of a place in row-major storage of ``shape`` (symbolic extents at their largest)."""
        if len(indices) == 1:
            return indices[0]
        key = (shape, indices)
        out = self._flat.get(key)
        if out is None:
            out = self._flat[key] = self.math.build(self.math.dot(indices, row_major(shape)))
        return out

    def broadcast(self, shape: Shape, indices: Indices, onto: Shape) -> Indices:
        """Indices into an operand of ``shape`` of an element of the right-aligned broadcast ``onto``."""
        if shape == onto:
            return indices
        skip = len(onto) - len(shape)
        return tuple([self.zero if isinstance(d, int) and d == 1 else i for d, i in zip(shape, indices[skip:])])

    # *** the six movement ops ***
    def _reshape(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        return self.reshape(view.shape, view.src[0].shape, indices), gate

    def reshape(self, shape: Shape, source: Shape, indices: Indices) -> Indices:
        """Indices into row-major ``source`` of the element at ``indices`` of row-major ``shape``."""
        key = (shape, source, indices)
        out = self._reshaped.get(key)
        if out is None:
            static = is_static(shape) and is_static(source)
            out = self._reshaped[key] = (self._regroup if static else self._regroup_symbolic)(shape, source, indices)
        return out

    def _regroup(self, shape: Shape, source: Shape, indices: Indices) -> Indices:
        """Split both shapes into the shortest runs of axes with equal products and convert run by run."""
        out: list[UOp] = []
        i, j, n, m = 0, 0, len(shape), len(source)
        while j < m:
            if source[j] == 1:
                out.append(self.zero)
                j += 1
                continue
            while i < n and shape[i] == 1:
                i += 1
            i0, j0, have, want = i, j, shape[i], source[j]
            i, j = i + 1, j + 1
            while have != want:
                if have < want:
                    have, i = have * shape[i], i + 1
                else:
                    want, j = want * source[j], j + 1
            if i - i0 == 1 and j - j0 == 1:
                out.append(indices[i0])
            else:
                out += self._convert(shape[i0:i], source[j0:j], indices[i0:i])
        return tuple(out)

    def _convert(self, shape: Shape, source: Shape, indices: Indices) -> list[UOp]:
        math = self.math
        form = math.dot(indices, row_major(shape))
        out = []
        for d in reversed(source[1:]):
            if d == 1:
                out.append(self.zero)
                continue
            form, rest = math.divmod(form, d)
            out.append(math.build(rest))
        out.append(math.build(form))
        out.reverse()
        return out

    def _regroup_symbolic(self, shape: Shape, source: Shape, indices: Indices) -> Indices:
        """Equal leading and trailing axes keep their index; the rest goes through one flat index."""
        lead = 0
        while lead < min(len(shape), len(source)) and _same(shape[lead], source[lead]):
            lead += 1
        tail = 0
        while tail < min(len(shape), len(source)) - lead and _same(shape[-1 - tail], source[-1 - tail]):
            tail += 1
        inner, wanted = shape[lead:len(shape) - tail], source[lead:len(source) - tail]
        middle = indices[lead:len(indices) - tail]
        flat, step = self.zero, UOp.const(1)
        for d, i in zip(reversed(inner), reversed(middle)):
            flat, step = flat + i * step, step * d
        out: list[UOp] = []
        for k, d in enumerate(reversed(wanted)):
            last = k == len(wanted) - 1
            out.append(self.zero if _same(d, 1) else (flat if last else flat % d).simplify())
            flat = flat if last or _same(d, 1) else flat // d
        return (*indices[:lead], *reversed(out), *indices[len(indices) - tail:])

    def _permute(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        source: list[UOp] = [self.zero] * len(indices)
        for i, axis in enumerate(view.arg):
            source[axis] = indices[i]
        return tuple(source), gate

    def _expand(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        return indices[len(view.marg):], gate

    def _flip(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        return tuple(self._mirrored(i, d) if flag else i for flag, d, i in zip(view.arg, view.shape, indices)), gate

    def _mirrored(self, index: UOp, extent: Any) -> UOp:
        if isinstance(extent, int):
            return self.math.mirror(index, extent - 1)
        return UOp.const(extent - 1 - index).simplify()

    def _shrink(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        return tuple(self._shifted(i, o, 1) for (o, _), i in zip(view.marg, indices)), gate

    def _shifted(self, index: UOp, offset: Any, sign: int) -> UOp:
        if isinstance(offset, int):
            return self.math.shift(index, sign * offset) if offset else index
        return UOp.const(index + offset * sign).simplify()

    def _pad(self, view: UOp, indices: Indices, gate: Gate) -> Place:
        source = tuple(self._shifted(i, o, -1) for (o, _), i in zip(view.marg, indices))
        return source, both(gate, self.box(view, indices))

    def box(self, view: UOp, indices: Indices) -> Gate:
        """Where ``indices`` of a PAD node lie inside its source."""
        gate: Gate = None
        for (offset, size), extent, i in zip(view.marg, view.src[0].shape, indices):
            lo, hi = self.math.extent(self.math.parse(i)) if isinstance(size, int) else i.bounds
            if not isinstance(offset, int) or (offset > 0 and lo < offset):
                gate = both(gate, not_below(i, offset))
            end = offset + extent
            if not isinstance(end, int):
                end = end.simplify()
            if (not isinstance(end, int) or hi >= end) and not _same(end, size):
                gate = both(gate, i < end)
        return gate

    def inside(self, index: UOp, extent: Any) -> Gate:
        """Where ``index`` lies in an axis of ``extent``."""
        lo, hi = index.bounds
        gate = not_below(index, 0) if lo < 0 else None
        return gate if isinstance(extent, int) and hi < extent else both(gate, index < extent)


def _same(a: Any, b: Any) -> bool:
    """Whether two extents are known to be equal; identity for nodes."""
    return a is b or (isinstance(a, int) and isinstance(b, int) and a == b)


_MOVES = {
    Ops.RESHAPE: Indexing._reshape, Ops.PERMUTE: Indexing._permute, Ops.EXPAND: Indexing._expand,
    Ops.FLIP: Indexing._flip, Ops.SHRINK: Indexing._shrink, Ops.PAD: Indexing._pad}
