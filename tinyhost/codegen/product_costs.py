"""What a matrix product costs: cycles of a register tile, an order of loops, panels and partial sums.

Takes a ``Shape`` (plain numbers); gives the ``Plan`` that is cheapest by the model. Nothing is run. The model adds up
the cycles of the multiply-adds and those that moving lines between caches costs on top of them. The constants were
measured on a server core with AVX-512 (48 KiB L1, 2 MiB L2, 2.9 GHz under load): one order of loops against another at
sizes where a single term differs. They stand here and nowhere else, so that a search can start from them.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, auto
from math import gcd, inf

from tinyhost.capabilities import Capabilities

# per cycle: two multiply-adds, two loads of a register; eight sums hide the latency of four cycles (optimisation
# manual, 2.1) if none is ever late: ten do
FMAS, LOADS, IN_FLIGHT = 2.0, 2.0, 10
ROWS_MOST, COLS_MOST = 8, 4
TILE_MOST = 16  # sums of a tile: 24 gain 1 % at 1024^3 and take twice as long to compile ...
LARGE, LARGE_TILE_MOST = 1 << 32, 24  # ... which pays from so many multiply-adds on: 4096^3, 8 %
TALL = 12  # rows of a tile of one vector: more of them, at a pitch of pages, share one set of the L1
# cycles a line costs on top of the arithmetic
FROM_L2 = 1.0  # 512^3: 186 GFLOP/s where the rows come from L2 for each panel, 210 where they stay in L1
FROM_L2_STEP = 1.6  # each step of the sum another line: 256^3 with columns for rows, 150 against 178
FROM_L3 = 2.0  # 1024^3: 176 against 187
FROM_L3_FAR = 10.0  # 1024^3 with rows of pages: 79 GFLOP/s
FROM_MEMORY = 5.0  # a stream of one core, 29 GB/s
FAR_LINE = 20.0  # lines of pages apart, which no prefetcher finds
FROM_L2_NEAR = 0.3  # sequential, or at a pitch that the prefetcher of the L1 follows
STRIDE = 2048  # bytes of the largest such pitch (optimisation manual, 2.6.2.4)
FAR = 1024  # bytes between two steps from which a line is far
STORE_NEAR, STORE_FAR = 2.0, 20.0  # results along rows, results of one tile down the rows: 4096x64x4096, 21 and 12 ms
SUMS_AGAIN = 4.0  # a line of sums so far that is read from L2 and stored again: 512^3 in 8 blocks, 161 against 198
TILE_START = 24.0  # cycles to set up a tile's loop and leave it
TURN = 0.4  # an element of a panel that is packed across its rows, in squares
SCATTER = 1.0  # a result that is copied out of a tile by itself
COPY = 0.5  # an element of a panel that is packed in pieces of a tile's rows
ACROSS = 12.0  # cycles to add up the lanes of a result
ARENA_MOST = 32 << 20  # bytes of a panel that holds a whole operand
LONG_BLOCK = 256  # steps of a block of the sum from which packing it pays
BEST_TILES = 6  # tiles that are tried with each order
LINE = 64


class Order(Enum):
    """Loops around the sum, from the outermost."""

    COLUMNS = auto()  # a panel of the vector operand serves all rows
    ROWS = auto()  # a few rows stay in the L1, all panels in the L2
    STREAM = auto()  # some steps of the sum at a time; the results so far are in the output


@dataclass(frozen=True)
class Side:
    """How one operand lies in memory: bytes of an element, bytes from one to the next along its output axis and along
    the sum.
    """

    size: int
    across: int
    along: int


@dataclass(frozen=True)
class Shape:
    """A product with a choice of vector axis: ``columns`` move along ``moving``, ``rows`` along ``still``."""

    rows: int
    columns: int
    steps: int
    batches: int
    lanes: int
    moving: Side
    still: Side
    pitch: int  # bytes from one row of results to the next
    contiguous: bool  # results along the columns
    exact: bool  # no result may be computed twice
    cuts: tuple[int, ...] = ()  # numbers of parts that the sum may be cut into, the output holding the sums so far


@dataclass(frozen=True)
class Plan:
    """How to run a product; ``cycles`` is what the model says."""

    order: Order
    rows: int
    cols: int
    parts: int
    pack_moving: bool
    pack_still: bool
    cycles: float


def best_plan(s: Shape, caps: Capabilities) -> Plan | None:
    """The cheapest plan of all that fit the registers, None where no tile does."""
    return min(_plans(s, caps), key=lambda p: p.cycles, default=None)


def dot_tile(s: Shape, caps: Capabilities) -> tuple[int, int]:
    """Rows and columns of results whose vectors of partial sums stay in registers."""
    tiles = [(r, c) for r in range(1, min(ROWS_MOST, s.rows) + 1) for c in range(1, min(ROWS_MOST, s.columns) + 1)
             if r * c <= caps.max_tile and r * c + min(r, c) + 1 <= caps.vector_registers
             and (not s.exact or s.rows % r == s.columns % c == 0)]
    return min(tiles, key=lambda t: (1 / t[0] + 1 / t[1]) * _waste(s.rows, t[0]) * _waste(s.columns, t[1]))


def dot_cycles(s: Shape, caps: Capabilities) -> float:
    """Cycles where the vectors go along the sum instead; one operand lies contiguous along it, the other does too or is
    a few columns wide.
    """
    if s.still.along != s.still.size or s.moving.along > 8 * s.moving.size or s.steps < caps.vector_bytes:
        return inf
    lanes = caps.vector_bytes // s.still.size
    rows, cols = dot_tile(s, caps)
    vectors = 1 / rows + 1 / cols
    far = 0.0 if 2 * s.steps * (rows + cols) * s.still.size <= caps.l1_bytes else FROM_L2 * vectors
    turned = 0.0 if s.moving.along == s.moving.size else s.steps * s.columns / rows * TURN
    read = (s.rows + s.columns) * s.steps * s.moving.size / LINE * _first(s, caps, False)
    waste = _waste(s.rows, rows) * _waste(s.columns, cols)
    each = s.steps / lanes * (max(1 / FMAS, vectors / LOADS) + far) * waste + ACROSS + turned / s.columns
    return float(s.batches * (s.rows * s.columns * each + read))


def _blocks(size: int, block: int) -> int:
    return -(-size // block)


def _waste(size: int, block: int) -> float:
    return _blocks(size, block) * block / size


def _plans(s: Shape, caps: Capabilities) -> Iterator[Plan]:
    for rows, cols in _tiles(s, caps):
        for order in Order:
            for parts in _parts(s, order):
                for moving in (False,) if order is Order.STREAM else (True,) if parts > 1 else (False, True):
                    for still in (False, True):
                        plan = Plan(order, rows, cols, parts, moving, still, 0.0)
                        if _fits(s, plan, caps):
                            cycles = _cycles(s, plan, caps)
                            yield Plan(order, rows, cols, parts, moving, still, cycles)


def _parts(s: Shape, order: Order) -> tuple[int, ...]:
    """Numbers of blocks of the sum: short ones for streams, long ones for panels."""
    if order is Order.STREAM:
        return tuple(p for p in s.cuts if s.steps // p < LONG_BLOCK)
    return (1, *(p for p in s.cuts if s.steps // p >= LONG_BLOCK)) if order is Order.COLUMNS else (1,)


def _tiles(s: Shape, caps: Capabilities) -> list[tuple[int, int]]:
    """Rows and vectors of tiles whose sums stay in registers, the best by their own cycles."""
    found = []
    most = LARGE_TILE_MOST if s.batches * s.rows * s.columns * s.steps >= LARGE else TILE_MOST
    for cols in range(1, min(COLS_MOST, _blocks(s.columns, s.lanes)) + 1):
        budget = min(caps.vector_registers - cols - 1, caps.max_tile, most) // cols
        for rows in range(1, min(TALL if cols == 1 else ROWS_MOST, s.rows, budget) + 1):
            if not s.exact or _divides(s, rows, cols):
                found.append((_tile_cycles(s, rows, cols, 1), -rows, cols))
    best = [(-rows, cols) for _, rows, cols in sorted(found)]
    even = [t for t in best[BEST_TILES:] if s.cuts and _divides(s, *t)]  # for targets without masks
    return best[:BEST_TILES] + even[:1]


def _divides(s: Shape, rows: int, cols: int) -> bool:
    return s.rows % rows == 0 and s.columns % (cols * s.lanes) == 0


def _tile_cycles(s: Shape, rows: int, cols: int, parts: int) -> float:
    """Cycles of the arithmetic, and of beginning and ending a tile for each part of the sum."""
    step = max(rows * cols / FMAS, (rows + cols) / LOADS, IN_FLIGHT / FMAS)
    tiles = _blocks(s.rows, rows) * _blocks(s.columns, cols * s.lanes)
    return tiles * (s.steps * step + parts * (TILE_START + rows * cols))


def _fits(s: Shape, p: Plan, caps: Capabilities) -> bool:
    """Whether the plan's panels are worth their memory, and what is no panel can be read at all."""
    if s.moving.across != s.moving.size and not p.pack_moving:
        return False
    if p.parts > 1 and not (s.contiguous and (caps.masked and s.moving.size >= 4 or _divides(s, p.rows, p.cols))):
        return False
    block = s.steps // p.parts
    if p.pack_still and (p.order is Order.STREAM or s.still.along <= LINE
                         or s.rows * block * s.still.size > ARENA_MOST):
        return False
    panel = block * p.cols * s.lanes * s.moving.size
    whole = block * s.columns * s.moving.size
    return not p.pack_moving or 2 * (whole if p.order is Order.ROWS else panel) <= caps.l2_bytes


# *** cycles ***
def _cycles(s: Shape, p: Plan, caps: Capabilities) -> float:
    """All cycles of a plan."""
    down, over = _blocks(s.rows, p.rows), _blocks(s.columns, p.cols * s.lanes)
    total = _tile_cycles(s, p.rows, p.cols, p.parts)
    return s.batches * (total + _moving(s, p, caps, down) + _still(s, p, caps, over) + _results(s, p, caps))


def _moving(s: Shape, p: Plan, caps: Capabilities, down: int) -> float:
    """Cycles for the lines of the vector operand."""
    v = s.moving
    lines = s.steps * _blocks(s.columns * v.size, LINE)
    far = v.along >= FAR and p.order is not Order.STREAM
    first = lines * _first(s, caps, far)
    width = p.cols * s.lanes * v.size if p.order is Order.COLUMNS else s.columns * v.size
    if p.order is Order.STREAM:
        return first
    if p.pack_moving:
        turned = 0.0 if v.across == v.size else TURN * s.steps * s.columns
        again = 0.0 if s.steps // p.parts * width <= caps.l1_bytes // 2 else FROM_L2_NEAR * lines
        return first + turned + COPY * lines + down * again
    near = FROM_L2_NEAR if v.along <= STRIDE else FROM_L2
    return first + (down - 1) * lines * _again(caps, s.steps, width, v.along, near)


def _still(s: Shape, p: Plan, caps: Capabilities, over: int) -> float:
    """Cycles for the lines of the operand whose elements are broadcast."""
    a = s.still
    block = s.steps // p.parts
    touched = s.rows * s.steps * min(LINE, max(a.along, a.size) if a.along <= LINE else max(a.across, a.size)) / LINE
    first = touched * _first(s, caps, a.along >= FAR and p.order is not Order.STREAM)
    if p.pack_still:
        lines = s.rows * s.steps * a.size / LINE
        level = _level(caps, s.rows * block * a.size, p, s.rows)
        return first + COPY * s.rows * s.steps + (over - 1) * lines * level
    if a.along <= LINE:
        return first + (over - 1) * touched * _level(caps, s.rows * block * max(a.along, a.size), p, s.rows)
    # each step is another line, which the next rows share if they are neighbours
    lines = s.steps * _blocks(s.rows, p.rows) * (1 if a.across <= a.size else p.rows)
    width = (p.rows if p.order is Order.ROWS else s.rows) * a.across
    if 2 * block * LINE > caps.l1_bytes:
        first *= lines / touched  # gone before the next rows want it
    return first + (over - 1) * lines * _again(caps, block, width, a.along, FROM_L2_STEP)


def _first(s: Shape, caps: Capabilities, far: bool) -> float:
    """Cycles a line when it is used for the first time: what fits the L2 as a whole is probably there."""
    size = s.rows * s.steps * s.still.size + s.columns * (s.steps + s.rows) * s.moving.size
    return FROM_L2 if s.batches * size <= caps.l2_bytes else FAR_LINE if far else FROM_MEMORY


def _level(caps: Capabilities, size: int, p: Plan, rows: int) -> float:
    """Cycles a line when ``size`` bytes of rows are read again, from the cache that holds them."""
    if p.order is Order.ROWS:
        size = size * p.rows // rows
    return 0.0 if 2 * size <= caps.l1_bytes else FROM_L2 if 2 * size <= caps.l2_bytes else FROM_L3


def _again(caps: Capabilities, count: int, width: int, pitch: int, from_l2: float) -> float:
    """Cycles a line when ``count`` pieces of ``width`` bytes, ``pitch`` apart, are read again."""
    for size, ways, cost in ((caps.l1_bytes, 12, 0.0), (caps.l2_bytes, 16, from_l2)):
        way = size // ways
        held = ways * (way // max(gcd(pitch, way), LINE))
        if 2 * count * width <= size and count <= held:
            return cost
    return FROM_L3_FAR if pitch >= FAR else FROM_L3


def _results(s: Shape, p: Plan, caps: Capabilities) -> float:
    """Cycles to store results, and to read sums so far."""
    size = s.moving.size
    if not s.contiguous:
        return SCATTER * s.rows * s.columns
    lines = s.rows * _blocks(s.columns * size, LINE)
    small = 2 * s.rows * s.columns * size <= caps.l2_bytes
    far = p.order is not Order.ROWS and s.pitch >= FAR and not small
    once = lines * (STORE_FAR * 2 / (1 + p.cols) if far else STORE_NEAR)
    width = p.cols * s.lanes if p.order is Order.COLUMNS else s.columns
    held = 4 * s.rows * width * size <= caps.l2_bytes
    return once + (p.parts - 1) * (lines * SUMS_AGAIN if held else 2 * max(once, lines * SUMS_AGAIN))
