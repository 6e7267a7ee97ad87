"""Hand rules for targets with a grid of workgroups: copies, workgroup threads and grouped reductions.

Takes a ``Kernel`` without Opts whose output axes are GLOBAL; applies Opts. Few outputs and a long reduction: threads
of a group share it. Loads that stand still along an output axis are reused by copies along it. What is left of the
output axes is cut into workgroups of up to 128 threads, the axis that memory is contiguous along first.
"""
from __future__ import annotations

from tinyhost.codegen.kernel import Axis, Kernel
from tinyhost.codegen.tiles import try_opt
from tinyhost.helpers import prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps

FEW_OUTPUTS = 2048
GROUP = 16
WORKGROUP = 128


def optimise_gpu(k: Kernel) -> None:
    """Choose and apply Opts for a GPU."""
    outputs = _outputs(k)
    if k.reduce_axes and outputs <= FEW_OUTPUTS and not k.in_place:
        _group(k)
    grouped = bool(k.of_kind(AxisType.GROUP_REDUCE))
    if not grouped:
        _reuse(k)
    _unroll(k)
    if not k.of_kind(AxisType.UPCAST) and not k.reduces and _outputs(k) >= 4096:
        _contiguous_copies(k)
    if not grouped:
        _locals(k)


def _outputs(k: Kernel) -> int:
    return int(prod(a.length or 1 for a in k.output_axes))


def _group(k: Kernel) -> None:
    for i, a in enumerate(k.reduce_axes):
        for amount in (256, 64, GROUP):
            if (a.length or 0) % amount == 0 and (a.length or 0) >= amount and \
                    try_opt(k, Opt(OptOps.GROUPTOP, i, amount)) is not None:
                return


def _divisor(size: int, most: tuple[int, ...]) -> int:
    return next((m for m in most if size % m == 0 and size >= m), 1)


def _reuse(k: Kernel) -> None:
    """UPCAST the output axes along which some load stands still, while enough threads are left."""
    copies = 1
    loads = [x for x in k.accesses if not x.written]
    for _ in range(2):
        best: tuple[int, Axis] | None = None
        for a in k.output_axes:
            if a.split is not None or a.length is None or any(b.root is a.root for b in k.of_kind(AxisType.UPCAST)):
                continue
            still = sum(a.root not in x.node.ranges for x in loads)
            moving = len(loads) - still
            if still and moving and _divisor(a.length, (4, 3, 2)) > 1 and (best is None or still > best[0]):
                best = (still, a)
        if best is None or _outputs(k) < 1024 or copies >= 16:
            return
        amount = _divisor(best[1].length or 1, (4, 3, 2))
        if try_opt(k, Opt(OptOps.UPCAST, k.number(best[1]), amount)) is None:
            return
        copies *= amount


def _unroll(k: Kernel) -> None:
    axes = [a for a in k.reduce_axes if a.kind is AxisType.REDUCE]
    if not axes:
        return
    last = axes[-1]
    size = last.length or 0
    copies = int(prod(a.length or 1 for a in k.of_kind(AxisType.UPCAST)))
    if 1 < size <= 8 and copies * size <= 128:
        try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 0))
    elif size and size % 4 == 0 and copies <= 32:
        try_opt(k, Opt(OptOps.UNROLL, k.reduce_axes.index(last), 4))


def _contiguous_copies(k: Kernel) -> None:
    """Four neighbours per thread, so that accesses are wide."""
    for a in reversed(k.output_axes):
        if a.length and a.length % 4 == 0 and all(k.stride(x, a) == 1 for x in k.accesses if x.written):
            try_opt(k, Opt(OptOps.UPCAST, k.number(a), 4))
            return


def _locals(k: Kernel) -> None:
    """Workgroup threads, the axis most accesses are contiguous along first."""
    def rank(a: Axis) -> tuple[int, tuple[int, ...]]:
        return sum(k.stride(x, a) == 1 for x in k.accesses), a.ids
    left = WORKGROUP
    for a in sorted(k.output_axes, key=rank, reverse=True)[:3]:
        amount = _divisor(a.length or 1, tuple(x for x in (128, 64, 32, 16, 8, 4, 3, 2) if x <= left))
        if amount > 1 and try_opt(k, Opt(OptOps.LOCAL, k.number(a), amount)) is not None:
            left //= amount
