"""What the hand rules share: trying an Opt, finding the main reduction, choosing an UPCAST amount."""
from __future__ import annotations

from tinyhost.codegen.kernel import Axis, Kernel
from tinyhost.codegen.opt import apply_opt
from tinyhost.errors import KernelOptError
from tinyhost.helpers import ceildiv, prod
from tinyhost.uop import Opt, OptOps, UOp


def try_opt(k: Kernel, opt: Opt) -> Axis | None:
    """Apply an Opt unless it is refused."""
    try:
        return apply_opt(k, opt)
    except KernelOptError:
        return None


def length(k: Kernel, r: UOp) -> int:
    """Steps of a root RANGE, its largest number where it is symbolic."""
    size = k.root_axis[r].size if r in k.root_axis else 1
    return size if isinstance(size, int) else max(int(size.vmax), 1)


def accumulators(k: Kernel) -> int:
    """Copies of a vector result that stay in registers."""
    return int(max(1, min(k.caps.vector_registers - 4, k.caps.max_tile)))


def main_reduce(k: Kernel) -> UOp | None:
    """The reduction with the most work."""
    def trips(u: UOp) -> int:
        return int(prod(length(k, r) for r in (*u.src[0].ranges, *u.src[1:])))
    return max(k.reduces, key=trips, default=None)


def live_outer(k: Kernel, root: UOp) -> Axis | None:
    """The part of a root's axis that is still a loop over an output."""
    parts = [a for a in k.output_axes if a.root is root and a.length is not None]
    return max(parts, key=lambda a: a.length or 0, default=None)


def upcast(k: Kernel, axis: Axis, want: int) -> int:
    """UPCAST by the amount near ``want`` that wastes least; the number of copies made."""
    size = axis.length or 1
    best, score = 1, 0.0
    for t in range(min(want, size), max(1, want // 3), -1):
        waste = ceildiv(size, t) * t / size
        if waste > 1 and k.in_place:
            continue
        s = t / (t + 2) / waste
        if s > score * 1.001:
            best, score = t, s
    if best < 2 or try_opt(k, Opt(OptOps.UPCAST, k.number(axis), best)) is None:
        return 1
    return best
