"""A kernel under optimisation: its axes as data, and the small graph that results.

Takes a small kernel (one closer per RANGE); Opts only change ``Axis`` records and the tree of splits under each
original RANGE, so trying many costs nothing. ``rewritten`` substitutes all of it in one pass. A split of an axis
whose length the amount does not divide covers the end in one of three ways: ``CLAMP`` lets the last block overlap the
one before (the same values are computed twice), ``TAIL`` gives a reduction an extra masked block, ``RAGGED`` gives
the inner loop a bound that depends on the outer index. Nothing here decides what is good; that is ``cpu_rules.py``
and ``gpu_rules.py``.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Any

from tinyhost.codegen.strides import Access, Linear, accesses_of
from tinyhost.codegen.windows import Window
from tinyhost.dtype import dtypes
from tinyhost.helpers import ceildiv
from tinyhost.ops import AxisType, GroupOp, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import KernelInfo, Opt, UOp

SORT_KEY = {
    AxisType.DEVICE: -2,
    AxisType.WEAK: -1,
    AxisType.LOOP: -1,
    AxisType.GLOBAL: 0,
    AxisType.THREAD: 0,
    AxisType.WARP: 1,
    AxisType.LOCAL: 2,
    AxisType.GROUP_REDUCE: 2,
    AxisType.UPCAST: 3,
    AxisType.REDUCE: 4,
    AxisType.UNROLL: 5,
    AxisType.LANE: 6,
}


ARENA = "scratch"  # name of the PARAM that is the worker's arena
_CONVERTING = GroupOp.Comparison | {Ops.CAST}


class Cover(Enum):
    """How a split covers an axis that its amount does not divide."""

    EXACT = auto()
    CLAMP = auto()
    TAIL = auto()
    RAGGED = auto()


@dataclass(eq=False)
class Axis:
    """One axis: the ids of its RANGE, its length, what runs it, and how far a step moves along the original RANGE."""

    ids: tuple[int, ...]
    size: Any
    kind: AxisType
    root: UOp
    stride: int = 1
    reduce: bool = False
    split: "Split | None" = None  # set once the axis is split; it is no axis any more then

    @property
    def range(self) -> UOp:
        """The RANGE node of the axis."""
        return UOp(Ops.RANGE, (UOp.const(self.size),), (*self.ids, self.kind))

    @property
    def length(self) -> int | None:
        """Length, None where it is symbolic."""
        return self.size if isinstance(self.size, int) else None

    def __repr__(self) -> str:
        return f"{self.kind.name}{self.ids}x{self.size}"


@dataclass(eq=False)
class Split:
    """An axis cut into ``outer * amount + inner``."""

    outer: Axis
    inner: Axis
    amount: int
    total: int
    cover: Cover = Cover.EXACT


@dataclass(eq=False)
class Merge:
    """Two output axes run as one, ``outer * pitch + inner``; steps between the rows compute what nobody reads."""

    outer: UOp
    inner: UOp
    pitch: int
    axis: Axis


def leaves(axis: Axis) -> list[Axis]:
    """The parts of an axis, outermost first."""
    out, stack = [], [axis]
    while stack:
        a = stack.pop()
        if a.split is None:
            out.append(a)
        else:
            stack += [a.split.inner, a.split.outer]
    return out


def has_tail(axis: Axis) -> bool:
    """Whether a split below ``axis`` leaves a tail."""
    stack = [axis]
    while stack:
        a = stack.pop()
        if a.split is not None:
            if a.split.cover is Cover.TAIL:
                return True
            stack += [a.split.inner, a.split.outer]
    return False


def product_of(u: UOp) -> UOp | None:
    """The product that a REDUCE sums, perhaps under a condition (WHERE(cond, a * b, 0)); None if it is no sum of
    products.
    """
    x = u.src[0]
    if x.op is Ops.WHERE and x.src[2].is_const and x.src[2].const_value == 0:
        x = x.src[1]
    return x if u.arg[0] is Ops.ADD and x.op is Ops.MUL else None


def _sums(k: Kernel) -> list[UOp]:
    """The sum of products with the most ranges, and the sums around it that only add it up, perhaps under conditions;
    with the WHEREs between, innermost first.
    """
    found = [u for u in k.reduces if product_of(u) is not None]
    if not found:
        return []
    out = [max(found, key=lambda u: len(u.src[0].ranges))]
    while True:
        users = [u for u in k.nodes if out[-1] in u.src]
        if len(users) != 1:
            return out
        u = users[0]
        guard = u.op is Ops.WHERE and u.src[1] is out[-1] and u.src[2].is_const and u.src[2].const_value == 0
        if not guard and (u.op is not Ops.REDUCE or u.arg[0] is not Ops.ADD or u.src[0] is not out[-1]):
            return out
        out.append(u)


def results_of(k: Kernel) -> UOp:
    """What a contraction gives: the outermost sum of its products. There must be one."""
    return next(u for u in reversed(_sums(k)) if u.op is Ops.REDUCE)


def conditions_of(k: Kernel, results: UOp) -> list[UOp]:
    """Conditions on the products of ``results`` and on sums of them."""
    sums = _sums(k)
    guarded = [sums[0].src[0], *sums[:sums.index(results)]]
    return [u.src[0] for u in guarded if u.op is Ops.WHERE]


@dataclass(eq=False)
class Kernel:
    """State of the optimiser for one kernel."""

    sink: UOp
    renderer: Renderer
    axes: list[Axis] = field(default_factory=list)
    applied: list[Opt] = field(default_factory=list)
    dont_use_locals: bool = False
    order: tuple[Axis, ...] | None = None  # loops from the outermost, set by REORDER
    staged: list[tuple[UOp, tuple[Axis, ...]]] = field(default_factory=list)  # operand, axes of its panel
    windows: list[Window] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    staged_results: bool = False
    partial: Axis | None = None  # part of a reduction whose sums so far are in the output

    def __post_init__(self) -> None:
        self.look()
        reduced = {r for u in self.reduces for r in u.src[1:]}
        for r in self.roots:
            size = r.src[0].const_value if r.src[0].is_const else r.src[0]
            self.axes.append(Axis(r.arg[:-1], size, r.arg[-1], r, 1, r in reduced))
        self.root_axis = {a.root: a for a in self.axes}

    def look(self) -> None:
        """Find accesses, reductions and ends of the graph."""
        self.memo: dict[UOp, Linear] = {}
        self.accesses = accesses_of(self.sink, self.memo)
        self.nodes = list(self.sink.toposort())
        self.reduces = [u for u in self.nodes if u.op is Ops.REDUCE]
        self.ends = [u for u in self.nodes if u.op is Ops.END]
        self.roots = [u for u in self.nodes if u.op is Ops.RANGE and u.src[0].op is not Ops.NOOP]

    # *** views of the axes ***
    @property
    def caps(self) -> Any:
        """Capabilities of the target."""
        return self.renderer.caps

    @property
    def sorted_axes(self) -> list[Axis]:
        """The axes that have numbers, in the order of the numbers."""
        live = [a for a in self.axes if a.size != 1 and a.kind is not AxisType.DEVICE]
        return sorted(live, key=lambda a: (SORT_KEY[a.kind], a.ids))

    @property
    def reduce_axes(self) -> list[Axis]:
        """The axes UNROLL and GROUP count."""
        return [a for a in self.sorted_axes if a.kind in (AxisType.REDUCE, AxisType.GROUP_REDUCE)]

    @property
    def output_axes(self) -> list[Axis]:
        """Loop or launch axes of the stores."""
        return [
            a for a in self.sorted_axes if not a.reduce and a.kind in (AxisType.WEAK, AxisType.LOOP, AxisType.GLOBAL)
        ]

    def of_kind(self, *kinds: AxisType) -> list[Axis]:
        """Axes of some kinds, in order."""
        return [a for a in self.sorted_axes if a.kind in kinds]

    def number(self, axis: Axis) -> int:
        """The number of an axis."""
        return self.sorted_axes.index(axis)

    def stride(self, access: Access, axis: Axis) -> int | None:
        """Elements an access moves per step of ``axis``; None where no stride describes it."""
        s = access.stride(axis.root)
        return None if s is None else s * axis.stride

    def moved_by(self, root: UOp) -> UOp:
        """The RANGE of the graph that moves as ``root`` does: of a merged axis the inner one."""
        for m in reversed(self.merges):
            root = m.inner if root is m.axis.root else root
        return root

    @property
    def in_place(self) -> bool:
        """Whether the kernel reads storage that it writes, so that no element may be computed twice; values that it
        keeps in the arena may be.
        """
        if self.partial is not None:
            return True
        written = {a.storage for a in self.accesses if a.written and a.storage.arg.name != ARENA}
        return any(a.storage in written for a in self.accesses if not a.written)

    def widest(self, root: UOp) -> int:
        """Bytes of the widest element among the vectors that a LANE along ``root`` makes; 0 where there are none."""
        out = 0
        root = self.moved_by(root)
        for u in self.nodes:
            if u.op is Ops.RANGE or root not in u.ranges:
                continue
            if u.op in _CONVERTING:  # the index itself as a value: int32 lanes
                out = max([out, *[4 for s in u.src if s.dtype is dtypes.weakint and root in s.ranges]])
            if not u.dtype.is_weak:
                out = max(out, u.dtype.itemsize)
        return out

    # *** splitting ***
    def split(self, axis: Axis, amount: int, kind: AxisType, top: bool = False, cover: Cover = Cover.CLAMP) -> Axis:
        """Cut ``amount`` steps off ``axis`` as an axis of ``kind`` (the outer part if ``top``); the new axis."""
        total = axis.length
        assert total is not None
        if amount == total:
            axis.kind = kind
            return axis
        if not top and (made := self._widen(axis, amount, kind, cover)) is not None:
            return made
        exact = total % amount == 0
        cover = Cover.EXACT if exact else cover
        rest = total // amount if exact or cover is Cover.TAIL else ceildiv(total, amount)
        outer_size, inner_size = (amount, rest) if top else (rest, amount)
        outer = Axis(
            (*axis.ids, 0), outer_size, kind if top else axis.kind, axis.root, axis.stride * inner_size, axis.reduce
        )
        inner = Axis((*axis.ids, 1), inner_size, axis.kind if top else kind, axis.root, axis.stride, axis.reduce)
        axis.split = Split(outer, inner, inner_size, total, cover)
        if cover is Cover.RAGGED:
            o = outer.range
            left = UOp.const(total) - o * inner_size
            inner.size = UOp(Ops.WHERE, (left < inner_size, left, UOp.const(inner_size)))
        self.axes.remove(axis)
        self.axes += [outer, inner]
        return outer if top else inner

    def _widen(self, axis: Axis, amount: int, kind: AxisType, cover: Cover) -> Axis | None:
        """Where ``axis`` counts the blocks of an uneven split, make the blocks wider instead of cutting it again."""
        above = next((s for s in self.splits() if s.outer is axis), None)
        if above is None or any(axis is p for _, panel in self.staged for a in panel for p in leaves(a)):
            return None
        if above.cover is Cover.RAGGED or (axis.length or 0) % amount == 0 and above.cover is Cover.EXACT:
            return None
        block, total = above.amount * amount, above.total
        if block > total:
            return None
        exact = total % block == 0
        cover = cover if above.cover is Cover.EXACT else above.cover
        count = total // block if exact or cover is Cover.TAIL else ceildiv(total, block)
        outer = Axis((*axis.ids, 0), count, axis.kind, axis.root, axis.stride * amount, axis.reduce)
        part = Axis((*axis.ids, 1), amount, kind, axis.root, axis.stride, axis.reduce)
        middle = Axis((*axis.ids, 2), block, kind, axis.root, above.inner.stride, axis.reduce,
                      Split(part, above.inner, above.amount, block))
        above.outer, above.inner, above.amount = outer, middle, block
        above.cover = Cover.EXACT if exact else cover
        self.axes.remove(axis)
        self.axes += [outer, part]
        return part

    def splits(self) -> list[Split]:
        """All splits of all axes."""
        out: list[Split] = []
        stack = list(self.root_axis.values())
        while stack:
            a = stack.pop()
            if a.split is not None:
                out.append(a.split)
                stack += [a.split.outer, a.split.inner]
        return out

    # *** the result ***
    def rewritten(self) -> UOp:
        """The small kernel with all splits done; its SINK says which Opts were applied."""
        from tinyhost.codegen.apply import rewrite
        return rewrite(self)

    def info(self) -> KernelInfo:
        """The KernelInfo of the result."""
        old: KernelInfo = self.sink.arg if isinstance(self.sink.arg, KernelInfo) else KernelInfo()
        order = old.loop_order if self.order is None else tuple(p.ids for a in self.order for p in leaves(a))
        return KernelInfo(
            old.name,
            tuple(a.kind for a in self.sorted_axes),
            self.dont_use_locals,
            tuple(self.applied),
            None,
            old.estimates,
            old.beam,
            order,
        )
