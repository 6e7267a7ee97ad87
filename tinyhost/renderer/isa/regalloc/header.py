"""Step 3d: what enters a loop in registers.

At the head of a loop, on the path that falls into it, values that are only carried through it leave their registers if
the loop is short of them, values read inside are fetched, and values move out of registers that the loop destroys. So
the cost of a spill is paid outside, where a value can be chosen; inside, the state at the head is restored at each back
edge, which costs nothing if the choice was right.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.flow import Entry, Loop
from tinyhost.renderer.isa.regalloc.state import State

DEPTH_WEIGHT = 8.0  # how often an inner loop runs per iteration of the outer one
DEFINED_WEIGHT = 3.0  # a value written in the loop needs a store and delays the next iteration


def enter_loop(state: State, loop: Loop) -> Entry:
    """Decide the entry state of ``loop`` and emit the edits that reach it before its head."""
    for cls in range(len(state.machine.class_masks)):
        if loop.peak[cls] > len(state.machine.class_regs[cls]):
            _drop_carried(state, loop, cls)
            _drop_reads(state, loop, cls)
    _fetch_reads(state, loop)
    if state.reserved:
        _avoid_destroyed(state, loop)
    entry = state.snapshot(state.live.live_in[loop.head])
    for v, r in entry.regs.items():
        state.home[v] = r
    return entry


def _in_class(state: State, cls: int) -> list[int]:
    return [v for v in state.holders() if state.cls[v] == cls]


def _drop_carried(state: State, loop: Loop, cls: int) -> None:
    """Values not read inside keep only the registers that the loop cannot use."""
    count = len(state.machine.class_regs[cls])
    room = max(0, count - (loop.peak[cls] - loop.through[cls]))
    carried = [v for v in _in_class(state, cls) if v not in loop.used]
    carried.sort(key=lambda v: state.next_read[v])
    for v in carried[room:]:
        state.evict(v, loop.first)


def _drop_reads(state: State, loop: Loop, cls: int) -> None:
    """If the loop itself reads more than fits, the least read values stay in memory and are fetched at their reads."""
    excess = loop.own_peak[cls] - loop.through[cls] - len(state.machine.class_regs[cls])
    if excess <= 0:
        return
    weights = read_weights(state, loop, cls)
    ranked = sorted(weights, key=lambda v: (weights[v], -loop.used[v]))
    for v in ranked[:excess]:
        del loop.used[v]  # not worth a register at the head
        if state.reg[v] >= 0:
            state.evict(v, loop.first)


def read_weights(state: State, loop: Loop, cls: int) -> dict[int, float]:
    """Estimated fetches per iteration that a register saves, for the values of ``cls`` read in ``loop``."""
    flow = state.flow
    weights = {v: 0.0 for v in loop.used if state.cls[v] == cls}
    for block in range(loop.head, loop.last + 1):
        inner = flow.loop_of[block]
        weight = DEPTH_WEIGHT ** ((inner.depth if inner is not None else 0) - loop.depth)
        for i in range(flow.start[block], flow.end[block]):
            vregs, plan = state.function.insts[i].vregs, flow.plans[i]
            for k, v in enumerate(vregs):
                if v in weights:
                    weights[v] += weight * (DEFINED_WEIGHT if k in plan.defs else 0.5 if plan.memory[k] else 1.0)
    return weights


def _fetch_reads(state: State, loop: Loop) -> None:
    """Fill free registers with values read inside, the first read first."""
    missing = [v for v in loop.used if state.reg[v] < 0]
    missing.sort(key=loop.used.__getitem__)
    for v in missing:
        r = state.pick(v, state.masks[v], loop.first)
        if r >= 0:
            state.fill(v, r, loop.first)


def _avoid_destroyed(state: State, loop: Loop) -> None:
    """Move values out of registers that constraints inside the loop take away, and into those where they are wanted."""
    destroyed = _destroyed_inside(state, loop)
    if not destroyed:
        return
    wanted = state.live.wanted
    for v in state.holders():
        r = state.reg[v]
        if destroyed >> r & 1 and (wanted[v] != r or v not in loop.used):
            outside = state.pick_outside(v, destroyed)
            if outside >= 0:
                state.move(v, outside, loop.first)
    for v in loop.used:
        r = wanted[v]
        if r >= 0 and (destroyed & state.free) >> r & 1 and state.reg[v] >= 0 and not state.defined_in(v, loop):
            state.move(v, r, loop.first)


def _destroyed_inside(state: State, loop: Loop) -> int:
    mask, k = 0, state.reserved_at
    while k < len(state.reserved) and state.reserved[k][0] < 2 * loop.end:
        mask |= state.reserved[k][1]
        k += 1
    return mask
