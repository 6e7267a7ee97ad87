"""Step 3c: the register file at block borders.

The first edge that reaches a block forwards decides the block's entry state; every other edge is made to agree with
it. Edits of an edge stand before the jump or branch that takes it, or, for the edge that falls through, before the
label it falls into, so no edge ever needs a block of its own: what a branch moves for its target stays correct for the
path that falls through.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.flow import Entry
from tinyhost.renderer.isa.regalloc.header import enter_loop
from tinyhost.renderer.isa.regalloc.moves import parallel_moves
from tinyhost.renderer.isa.regalloc.state import State
from tinyhost.renderer.isa.regalloc.types import Kind

NOTHING: frozenset[int] = frozenset()


class Borders:
    """Entry states by block, and the loops by head block."""

    __slots__ = ("entries", "heads")

    def __init__(self, state: State) -> None:
        self.entries: list[Entry | None] = [None] * len(state.flow.start)
        self.heads = {loop.head: loop for loop in state.flow.loops}


def enter_block(state: State, borders: Borders, block: int) -> None:
    """Bring ``state`` to the entry state of ``block``, deciding it if no edge has."""
    flow, live_in = state.flow, state.live.live_in[block]
    start = flow.start[block]
    entry, loop = borders.entries[block], borders.heads.get(block)
    if block and flow.falls[block - 1]:
        state.retain(live_in)
        if entry is not None:
            conform(state, entry, live_in, start, NOTHING)
    elif entry is None:  # reached only from behind, or never: guess
        state.retain(live_in)
        entry = state.snapshot(live_in)
    if entry is not None:
        state.load(entry, start)
    state.loop = loop.parent if loop is not None else flow.loop_of[block]
    if loop is None:
        if block in flow.targeted_from_behind:  # nested too deep to be a loop, but its back edges must agree
            borders.entries[block] = entry or state.snapshot(live_in)
        return
    if entry is None:
        entry = enter_loop(state, loop)
    entry.clean = {v for v in entry.clean if state.remat[v] or not state.defined_in(v, loop)}
    for v in entry.regs:
        state.clean[v] = v in entry.clean
    borders.entries[block] = loop.entry = entry
    state.loop = loop


def leave_block(state: State, borders: Borders, block: int) -> None:
    """Serve the edge to the jump target of ``block``, if any."""
    flow = state.flow
    target = flow.target[block]
    if target < 0:
        return
    last = flow.end[block] - 1
    live_in = state.live.live_in[target]
    entry = borders.entries[target]
    if entry is None:
        borders.entries[target] = state.snapshot(live_in)
        return
    if target > block:
        _weaken(state, entry)
    falls = state.function.insts[last].kind is Kind.BRANCH and flow.falls[block]
    conform(state, entry, live_in, last, state.live.live_in[block + 1] if falls else NOTHING)


def _weaken(state: State, entry: Entry) -> None:
    """Give up promises of valid slots that this edge would need stores for; the block has not been walked yet."""
    for v in list(entry.clean):
        if state.reg[v] >= 0 and not state.clean[v]:
            entry.clean.discard(v)


def conform(state: State, entry: Entry, live_in: set[int], position: int, keep: set[int] | frozenset[int]) -> None:
    """Edits before ``position`` that turn the present state into ``entry``.

    ``live_in``: what the target needs. ``keep``: what the path that falls through needs; it survives, in a register
    or in its slot.
    """
    regs, moves = entry.regs, []
    wanted = set(regs.values())
    for v in state.holders():
        r = state.reg[v]
        if v in regs:
            if v in entry.clean:
                state.save(v, position)
            if regs[v] != r:
                moves.append((v, regs[v], r))
        elif v in live_in:
            state.save(v, position)
            if r in wanted or v not in keep:
                state.release(v)
        elif v not in keep:
            state.release(v)
        elif r in wanted:
            state.evict(v, position)
    _shuffle(state, moves, position)
    for v, r in regs.items():
        if state.reg[v] < 0:
            state.fill(v, r, position)


def _shuffle(state: State, moves: list[tuple[int, int, int]], position: int) -> None:
    if not moves:
        return
    unused = state.free
    for _, dst, _ in moves:
        unused &= ~(1 << dst)
    parallel_moves(state, moves, position, unused)
    for v, _, _ in moves:
        state.release(v)
    for v, dst, _ in moves:
        state.take(v, dst)
