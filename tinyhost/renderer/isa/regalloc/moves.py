"""Parallel moves: registers that must all change at once, put in a sequence.

Takes (value, destination, source) triples with distinct destinations; emits MOVE edits so that no source is
overwritten before it is read. A cycle is broken by a free register, the class's scratch register, SWAP edits, or a
spill slot of its own, in this order.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.state import FILL, MOVE, SPILL, SWAP, State
from tinyhost.renderer.isa.regalloc.types import Edit


def parallel_moves(state: State, moves: list[tuple[int, int, int]], position: int, free: int) -> None:
    """Emit ``moves`` before ``position``; ``free`` masks registers that may be overwritten meanwhile."""
    source_of = {dst: src for _, dst, src in moves}
    value_of = {dst: v for v, dst, _ in moves}
    readers: dict[int, int] = {}
    for src in source_of.values():
        readers[src] = readers.get(src, 0) + 1
    ready = [dst for dst in source_of if dst not in readers]
    while ready:
        dst = ready.pop()
        src = source_of.pop(dst)
        state.emit(position, Edit(MOVE, value_of[dst], dst, src))
        readers[src] -= 1
        if not readers[src] and src in source_of:
            ready.append(src)
    while source_of:  # only cycles are left: every register in it is read once
        _break_cycle(state, source_of, value_of, position, free)


def _break_cycle(state: State, source_of: dict[int, int], value_of: dict[int, int], position: int, free: int) -> None:
    first = next(iter(source_of))
    cycle = [first]
    while source_of[cycle[-1]] != first:
        cycle.append(source_of[cycle[-1]])
    for dst in cycle:
        del source_of[dst]
    v = value_of[cycle[-1]]  # the value that starts in ``first``
    cls = state.cls[v]
    spare = free & state.machine.class_masks[cls]
    reg_class = state.machine.env.classes[cls]
    chain = [(value_of[dst], dst, src) for dst, src in zip(cycle, cycle[1:])]
    if not spare and reg_class.scratch is None and reg_class.swap:
        sizes = state.function.vregs
        for value, dst, src in chain:  # v travels along, so the wider of the two sets the width
            wider = value if sizes[value].size >= sizes[v].size else v
            state.emit(position, Edit(SWAP, wider, dst, src))
        return
    if spare:
        temporary = (spare & -spare).bit_length() - 1
        state.used_mask |= 1 << temporary
        before, after = Edit(MOVE, v, temporary, first), Edit(MOVE, v, cycle[-1], temporary)
    elif reg_class.scratch is not None:
        outside = state.machine.scratch[cls]
        state.used_mask |= 1 << outside
        before, after = Edit(MOVE, v, outside, first), Edit(MOVE, v, cycle[-1], outside)
    else:
        slot = state.cycle_slot(cls)
        before, after = Edit(SPILL, v, slot, first), Edit(FILL, v, cycle[-1], slot)
    state.emit(position, before)
    for value, dst, src in chain:
        state.emit(position, Edit(MOVE, value, dst, src))
    state.emit(position, after)
