"""Vector nodes: which results are vectors, how wide, and what replaces an operation the target lacks.

Takes scalar and vector operands; gives nodes of shape (lanes,) where the renderer has the operation for that dtype and
width, else one scalar per lane under a STACK. A scalar beside a vector is left a scalar: it broadcasts by itself. The
shuffles are INDEX(vector, lane) for one lane and INDEX(vector, STACK of lanes) for several.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import UOp

_REBUILT = GroupOp.Comparison | {Ops.AND, Ops.OR, Ops.XOR}
_SHIFTS = frozenset({Ops.SHL, Ops.SHR})
_XMM = 16  # bytes of the narrowest register a reduction tree goes down to


class Vectors:
    """Vector nodes of one expansion."""

    def __init__(self, renderer: Renderer, lower: Callable[[UOp], UOp]) -> None:
        self.renderer, self.lower = renderer, lower
        self.widths: dict[UOp, int] = {}
        self._lanes: dict[tuple[UOp, int], UOp] = {}
        self._native: dict[tuple[Ops, DType, int], bool] = {}

    def mark(self, node: UOp) -> UOp:
        """Note a STACK as a vector."""
        self.widths[node] = len(node.src)
        return node

    def mark_width(self, node: UOp, width: int) -> UOp:
        """Note that ``node`` has ``width`` lanes."""
        self.widths[node] = width
        return node

    def is_vector(self, node: UOp) -> bool:
        """Whether ``node`` has lanes."""
        return node in self.widths

    def width(self, node: UOp) -> int:
        """Lanes of ``node``, 1 for a scalar."""
        return self.widths.get(node, 1)

    # *** building ***
    def stack(self, parts: Sequence[UOp]) -> UOp:
        """A vector from scalars."""
        return self.mark(UOp(Ops.STACK, tuple(parts)))

    def splat(self, node: UOp, width: int) -> UOp:
        """``node`` in every lane, itself if it is a vector."""
        return node if node in self.widths or width == 1 else self.mark(UOp(Ops.STACK, (node,) * width))

    def native(self, op: Ops, dtype: DType, width: int) -> bool:
        """Whether the target has ``op``."""
        key = (op, dtype, width)
        known = self._native.get(key)
        if known is None:
            known = self._native[key] = self.renderer.supports(op, dtype, width)
        return known

    def alu(self, op: Ops, srcs: tuple[UOp, ...], tag: Any = None) -> UOp:
        """``op`` over operands of one dtype, some of them vectors."""
        widths = self.widths
        for s in srcs:
            width = widths.get(s)
            if width is not None:
                break
        else:
            return UOp(op, srcs, None, tag)
        assert width is not None
        if self.native(op, srcs[1].dtype if op is Ops.WHERE else srcs[0].dtype, width) or (
                op in _SHIFTS and srcs[1].is_const and self.renderer.supports_literal_shift(op, srcs[0].dtype, width)):
            node = UOp(op, srcs, None, tag)
            widths[node] = width
            return node
        return self.per_lane(lambda *xs: UOp(op, xs, None, tag), srcs, width)

    def per_lane(self, fn: Callable[..., UOp], srcs: tuple[UOp, ...], width: int) -> UOp:
        """``fn`` on the scalars of each lane."""
        return self.stack([fn(*[self.extract(s, i) for s in srcs]) for i in range(width)])

    def cast(self, node: UOp, dt: DType, tag: Any = None) -> UOp:
        """A conversion."""
        width = self.widths.get(node)
        if width is None:
            return UOp(Ops.CAST, (node,), dt, tag)
        if self.renderer.supports_cast(node.dtype, dt, width):
            return self.mark_width(UOp(Ops.CAST, (node,), dt, tag), width)
        return self.per_lane(lambda x: UOp(Ops.CAST, (x,), dt, tag), (node,), width)

    def rebuild(self, u: UOp, srcs: tuple[UOp, ...]) -> UOp:
        """``u`` over expanded sources, for ops without a rule of their own."""
        width = next((self.widths[s] for s in srcs if s in self.widths), 1)
        if width == 1:
            return UOp(u.op, srcs, u.arg, u.tag)
        if self.native(u.op, srcs[0].dtype, width):
            return self.mark_width(UOp(u.op, srcs, u.arg, u.tag), width)
        return self.per_lane(lambda *xs: UOp(u.op, xs, u.arg, u.tag), srcs, width)

    # *** taking apart ***
    def extract(self, node: UOp, lane: int) -> UOp:
        """One lane; a bool that was computed is computed again on scalars, which costs less than moving a mask."""
        if node not in self.widths:
            return node
        done = self._lanes
        stack = [node]
        while stack:
            u = stack[-1]
            key = (u, lane)
            if key in done:
                stack.pop()
            elif u.op is Ops.STACK:
                done[key] = u.src[lane]
            elif u.dtype is dtypes.bool and u.op in _REBUILT:
                missing = [s for s in u.src if s in self.widths and (s, lane) not in done]
                if missing:
                    stack += missing
                else:
                    done[key] = UOp(u.op, tuple([done[s, lane] if s in self.widths else s for s in u.src]), u.arg)
            else:
                done[key] = UOp(Ops.INDEX, (u, UOp(Ops.CONST, (), lane)))
        return done[node, lane]

    def shuffle(self, node: UOp, lanes: Sequence[int]) -> UOp:
        """The given lanes as a vector."""
        order = UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), i) for i in lanes))
        return self.mark_width(UOp(Ops.INDEX, (node, order)), len(lanes))

    def horizontal(self, op: Ops, node: UOp) -> UOp:
        """All lanes combined with ``op`` into a scalar, by halves."""
        width = self.widths.get(node)
        if width is None:
            return node
        if width & (width - 1) or not self.native(Ops.INDEX, node.dtype, width):
            parts = [self.extract(node, i) for i in range(width)]
            while len(parts) > 1:
                pairs = [UOp(op, (a, b)) for a, b in zip(parts[::2], parts[1::2])]
                parts = pairs + parts[2 * len(pairs):]
            return parts[0]
        size = node.dtype.itemsize
        while width * size > _XMM and width > 1:
            width //= 2
            node = self.alu(op, (self.shuffle(node, range(width)), self.shuffle(node, range(width, 2 * width))))
        half = width // 2
        while half:
            node = self.alu(op, (node, self.shuffle(node, [(i + half) % width for i in range(width)])))
            half //= 2
        return self.extract(node, 0)
