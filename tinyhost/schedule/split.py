"""Reductions in stages: a long reduction into few results is done in pieces, then the pieces are reduced.

Takes a REDUCE over leading axes; gives the same value, with CONTIGUOUS between the stages. Two reasons to cut:
- sums of floats on host threads, so that no accumulator adds up more than some hundred numbers one after the other: the
  error of a sum grows with that number. The pieces follow from the shape alone.
- work: on a target with a grid a reduction by 32768 or more is cut so that enough workgroups run; on host threads,
  which share no barrier, one with fewer results than threads is cut so that each thread has pieces of its own. Results
  do not depend on the number of threads beyond the choice of the pieces.
"""
from __future__ import annotations

from tinyhost.capabilities import Capabilities
from tinyhost.helpers import ceildiv, prod
from tinyhost.schedule.indexing import is_static
from tinyhost.uop import GroupOp, Ops, UOp

MIN_RATIO = 32768
GRID_PIECES = range(256, 7, -1)
MAX_PARTIALS = 1 << 22
THREAD_PIECES = (64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2)
ROW_PIECE = 4096  # terms of one sum along memory, which many lanes add
COLUMN_PIECE = 256  # terms of one sum across memory, which one lane adds
MAX_WALK = 64  # nodes that are looked at to see whether a sum is one of plain values
_ROOTS = frozenset({Ops.REDUCE, Ops.CONTIGUOUS, Ops.COPY, Ops.PARAM, Ops.BUFFER, Ops.AFTER, Ops.CONST, Ops.STAGE})


def split_reduce(u: UOp, caps: Capabilities) -> UOp:
    """``u``, or a form of it in stages."""
    x, (op, n) = u.src[0], u.arg
    if not is_static(x.shape) or (length := prod(x.shape[:n])) < MIN_RATIO:
        return u
    results = prod(u.shape)
    if op is Ops.ADD and u.dtype.is_float and not caps.grid and _is_plain(x):
        return _sum_in_pieces(u)
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


# *** sums of floats ***
def _sum_in_pieces(u: UOp) -> UOp:
    """A sum in as many stages as keep each one short."""
    while True:
        x, (op, n) = u.src[0], u.arg
        length = int(prod(x.shape[:n]))
        places = _places_in_memory(x)
        piece = ROW_PIECE if len(x.shape) - 1 in places[:n] else COLUMN_PIECE
        if length <= 2 * piece:
            return u
        if all(b == a + 1 for a, b in zip(places[:n], places[1:n])):
            x, n = x._mop(Ops.RESHAPE, (length, *x.shape[n:])), 1
        axis = max(range(n), key=lambda a: x.shape[a])
        each = max(1, piece * x.shape[axis] // length)  # elements of the axis in a piece
        count = _pieces(x.shape[axis], each)
        if count < 2 or count * prod(u.shape) > MAX_PARTIALS or count * prod(u.shape) * 16 > prod(x.shape):
            return u
        u = _two_stages(_padded(x, axis, ceildiv(x.shape[axis], count) * count), op, n, axis, count)


def _pieces(extent: int, each: int) -> int:
    """How many pieces of about ``each`` elements: a number that divides the axis, if one is near."""
    count = ceildiv(extent, each)
    return next((c for c in range(count, 2 * count) if extent % c == 0), count)


def _padded(x: UOp, axis: int, extent: int) -> UOp:
    """``x`` with zeros at the end of an axis."""
    if extent == x.shape[axis]:
        return x
    box = tuple((0, extent if a == axis else d) for a, d in enumerate(x.shape))
    mask = UOp.const(True).expand(x.shape)._mop(Ops.PAD, box)
    return mask.where(x._mop(Ops.PAD, box), 0)


def _is_plain(x: UOp) -> bool:
    """Whether a sum reads each element of its inputs once: no product of matrices, no convolution."""
    seen, stack = {x}, [x]
    while stack:
        u = stack.pop()
        if u.op is Ops.EXPAND and not u.base.is_const or len(seen) > MAX_WALK:
            return False
        if u.op in GroupOp.Elementwise and any(s.shape != u.shape and not s.base.is_const for s in u.src):
            return False
        if u.op not in _ROOTS:
            new = [s for s in (u.src[:1] if u.op in GroupOp.Movement else u.src) if s not in seen]
            seen.update(new)
            stack += new
    return True


def _places_in_memory(x: UOp) -> list[int]:
    """For each axis the axis of what is read, seen through permutations and element-wise ops."""
    order = list(range(len(x.shape)))
    while True:
        if x.op is Ops.PERMUTE:
            order = [x.arg[a] for a in order]
        elif x.op not in GroupOp.Elementwise or x.src[0].shape != x.shape:
            return order
        x = x.src[0]
