"""Two-stage reductions: a long reduction into few results is done in pieces, then the pieces are reduced.

Takes a REDUCE over leading axes; gives the same value, with CONTIGUOUS between the stages. On a target with a grid a
reduction by 32768 or more is cut so that enough workgroups run; on host threads, which share no barrier, one with fewer
results than threads is cut so that each thread has pieces of its own. Results do not depend on the number of threads
beyond the choice of the pieces.
"""
from __future__ import annotations

from tinyhost.capabilities import Capabilities
from tinyhost.helpers import prod
from tinyhost.schedule.indexing import is_static
from tinyhost.uop import Ops, UOp

MIN_RATIO = 32768
GRID_PIECES = range(256, 7, -1)
MAX_PARTIALS = 1 << 22
THREAD_PIECES = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)


def split_reduce(u: UOp, caps: Capabilities) -> UOp:
    """``u``, or the two-stage form of it."""
    x, (op, n) = u.src[0], u.arg
    if not is_static(x.shape) or (length := prod(x.shape[:n])) < MIN_RATIO:
        return u
    results = prod(u.shape)
    if caps.grid:
        pieces = [d for d in GRID_PIECES if results * d <= MAX_PARTIALS]
    elif results < caps.threads:
        pieces = [d for d in THREAD_PIECES if d >= caps.threads]
    else:
        return u
    for axis, extent in enumerate(x.shape[:n]):
        d = next((d for d in pieces if extent % d == 0 and length > d), None)
        if d is not None:
            return _two_stages(x, op, n, axis, d)
    return u


def _two_stages(x: UOp, op: Ops, n: int, axis: int, d: int) -> UOp:
    """Reduce within each of ``d`` consecutive pieces of ``axis``, store, reduce over the pieces."""
    shape = x.shape
    cut = x._mop(Ops.RESHAPE, (*shape[:axis], d, shape[axis] // d, *shape[axis + 1:]))
    order = (*(a for a in range(n + 1) if a != axis), axis, *range(n + 1, len(shape) + 1))
    partial = UOp(Ops.REDUCE, (cut._mop(Ops.PERMUTE, order),), (op, n))
    return UOp(Ops.REDUCE, (UOp(Ops.CONTIGUOUS, (partial,)),), (op, 1))
