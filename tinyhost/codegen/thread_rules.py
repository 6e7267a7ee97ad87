"""How a kernel is cut into parts for the threads of a CPU.

Takes a ``Kernel`` with its lanes and tiles chosen; applies THREAD. Parts are more than threads where there is enough
work, since a thread that was held up then takes fewer.
"""
from __future__ import annotations

from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.product_costs import Order, Plan, Shape
from tinyhost.codegen.tiles import live_outer, try_opt
from tinyhost.codegen.work import Work
from tinyhost.helpers import prod
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps, UOp

THREAD_WORK = 65536  # innermost steps per part that pay for waking a thread
PARTS = 4  # parts of a kernel for each thread
PRODUCT_STEP = 8  # multiply-adds of a product that count as one such step
PART_WORK = 1 << 20  # steps of a part of a product where threads have several: half a millisecond
PACKED = 4  # what a line costs that is packed, beside one that is read
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


def split_product(k: Kernel, both: list[UOp], lane: UOp, row: UOp, s: Shape, plan: Plan) -> None:
    """Cut a product into parts, before panels are chosen: along an axis of both operands, else along that of the
    operand whose lines cost more, since each part reads, and perhaps packs, all of the other.
    """
    threads = k.caps.threads
    work = s.batches * s.rows * s.columns * s.steps // PRODUCT_STEP
    if threads < 2 or work < threads * THREAD_WORK:
        return
    most = max(1, min(PARTS, work // (threads * PART_WORK)))
    if any(_cut(k, root, most, exact) for exact in (True, False) for root in both):
        return
    moving = s.columns * s.steps * s.moving.size * (PACKED if plan.pack_moving else 1)
    still = s.rows * s.steps * s.still.size * (PACKED if plan.pack_still else 1)
    along, other = ((lane, plan.pack_still), (row, plan.pack_moving))[:: 1 if moving > still else -1]
    for (root, again), exact in ((along, True), (along, False), (other, True), (other, False)):
        single = again or plan.order is Order.ROWS and root is lane
        whole = plan.order is Order.ROWS and plan.pack_moving if root is lane else plan.pack_still
        if (exact or not whole) and _cut(k, root, 1 if single else most, exact):
            return


def _cut(k: Kernel, root: UOp, most: int, exact: bool) -> bool:
    """Cut the loop of an axis into up to ``most`` parts a thread, even ones if ``exact``."""
    threads = k.caps.threads
    axis = live_outer(k, root)
    size = 0 if axis is None else axis.length or 0
    for n in range(most * threads, 0, -threads):
        if axis is not None and (size % n == 0 if exact else size >= (8 * n if n > threads else 3 * n)):
            return try_opt(k, Opt(OptOps.THREAD, k.number(axis), n)) is not None
    return False


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
