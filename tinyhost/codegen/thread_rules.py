"""How a kernel is cut into parts for the threads of a CPU.

Takes a ``Kernel`` with its lanes and tiles chosen; applies THREAD. Parts are more than threads where there is enough
work, since a thread that was held up then takes fewer.
"""
from __future__ import annotations

from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.tiles import try_opt
from tinyhost.codegen.work import Work
from tinyhost.helpers import prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps, UOp

THREAD_WORK = 65536  # innermost steps per part that pay for waking a thread
PARTS = 4  # parts of a kernel for each thread
PANEL_ROWS = 512  # rows of a part of a contraction, which packs panels of its own, where threads have several


def split_over_threads(k: Kernel, work: list[Work], rows: int) -> None:
    """Cut the outermost axis into parts: several a thread where there is enough work, since threads take one part
    after the other and a thread that was held up takes fewer. ``rows`` of a contraction share its panels, or 0."""
    threads = k.caps.threads
    if threads < 2:
        return
    total = max((w.weight * prod(_length_in_loops(k, r) for r in w.chain) for w in work), default=0.0)
    elements = max((prod(_length_of_root(k, r) for r in w.chain) for w in work), default=0)
    parts = int(max(elements, total) // THREAD_WORK)
    axes = [a for a in k.output_axes if a.length is not None and all(a.root in e.src[1:] for e in k.ends)]
    most = min(PARTS, rows // (PANEL_ROWS * threads)) if rows else PARTS
    for n in [*range(most * threads, threads, -threads), min(threads, parts)]:
        if 2 <= n <= parts and (fitting := [a for a in axes if (a.length or 0) >= n]):
            even = [a for a in fitting if (a.length or 0) % n == 0 or (a.length or 0) >= 8 * n]
            if even or n <= threads:
                axis = min(even or fitting, key=lambda a: a.ids)
                try_opt(k, Opt(OptOps.THREAD, k.number(axis), n))
                return


def _length_of_root(k: Kernel, r: UOp) -> int:
    size = r.src[0]
    return int(size.const_value) if size.is_const else max(int(size.vmax), 1)


def _length_in_loops(k: Kernel, r: UOp) -> int:
    """Iterations that are still loops."""
    return int(
        prod(
            a.length or 1
            for a in k.axes
            if a.root is r and a.kind not in (AxisType.LANE, AxisType.UPCAST, AxisType.UNROLL)
        )
    )
