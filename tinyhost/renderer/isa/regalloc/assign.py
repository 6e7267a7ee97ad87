"""Step 3a: registers for the operands of ordinary instructions and copies.

Ordinary means: reads before the effect from any register, at most one write after it to any register or to the
register of a read (tied), no clobbers. Everything else goes through ``constrained.py``. Edits are emitted in sequence,
so each one sees the register file as the previous one left it.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.flow import describe
from tinyhost.renderer.isa.regalloc.machine import Plan
from tinyhost.renderer.isa.regalloc.state import MOVE, State
from tinyhost.renderer.isa.regalloc.types import AllocationError, Edit, Inst


def assign_plain(state: State, i: int, inst: Inst, plan: Plan) -> None:
    """Assign an ordinary instruction."""
    vregs, reads = inst.vregs, state.live.next_reads[i]
    reg, next_read = state.reg, state.next_read
    state.locations[i] = locations = [0] * len(vregs)
    missing = False
    dying = []
    for k in plan.uses:
        v = vregs[k]
        r = locations[k] = reg[v]
        if r < 0:
            missing = True
        n = reads[k]
        if n < 0:
            n = ~n
            dying.append(v)
        next_read[v] = n
    if missing:
        bring_in(state, i, inst, plan, locations, dying)
    if not plan.defs:
        for v in dying:
            state.release(v)
        return
    k = plan.defs[0]
    target = vregs[k]
    if plan.tie is not None:
        r = _tie(state, i, inst, plan, plan.tie, locations, dying)
        for v in dying:
            state.release(v)
    else:
        for v in dying:
            state.release(v)
        r = state.pick(target, state.masks[target], i)
        if r < 0:
            r = state.obtain(target, state.masks[target], i)
    locations[k] = r
    write(state, target, r, reads[k])


def write(state: State, v: int, r: int, next_read: int) -> None:
    """v is defined in the free register r; ``next_read`` is negative if nobody reads it."""
    state.take(v, r)
    state.clean[v] = state.remat[v]
    if next_read < 0:
        state.next_read[v] = ~next_read
        state.release(v)
    else:
        state.next_read[v] = next_read


def bring_in(state: State, i: int, inst: Inst, plan: Plan, locations: list[int], dying: list[int]) -> None:
    """Fill the operands that are in memory, or leave one there; tied reads are filled by ``_tie``."""
    vregs = inst.vregs
    folded = False
    for k in plan.uses:
        if locations[k] >= 0 or k in plan.tied_defs:
            continue
        v = vregs[k]
        if state.reg[v] >= 0:  # filled for an earlier operand
            locations[k] = state.reg[v]
            continue
        if plan.memory[k] and not folded and stays_in_slot(state, v, v in dying):
            folded = True
            state.read_slot(i, k, v)
            continue
        r = state.obtain(v, state.masks[v] & ~_registers(state, vregs, plan), i)
        if r < 0:
            raise too_many(state, i, v)
        state.fill(v, r, i)
        locations[k] = r
    for j in plan.tied_defs:
        locations[j] = state.reg[vregs[j]]


def stays_in_slot(state: State, v: int, dies: bool) -> bool:
    """Whether reading v from its slot beats filling a register: no later read nearby, or no register free."""
    if state.remat[v]:
        return False
    loop = state.loop
    return dies or not state.free & state.masks[v] or (loop is not None and state.next_read[v] >= loop.end)


def _registers(state: State, vregs: tuple[int, ...], plan: Plan) -> int:
    mask = 0
    for k in plan.uses:
        r = state.reg[vregs[k]]
        if r >= 0:
            mask |= 1 << r
    return mask


def _tie(state: State, i: int, inst: Inst, plan: Plan, tie: tuple[int, int], locations: list[int],
         dying: list[int]) -> int:
    """The register of the tied definition; it holds the read value and nobody else needs it afterwards."""
    k, j = tie
    target, source = inst.vregs[k], inst.vregs[j]
    old = state.reg[source]
    if old >= 0 and source in dying:
        return old
    mask = state.masks[target] & ~_registers(state, inst.vregs, plan)
    r = state.pick(target, mask, i)
    if r < 0:
        if old >= 0:
            mask |= 1 << old  # the source may leave its register to the result
        victim = state.victim(mask, i)
        if victim < 0:
            raise too_many(state, i, target)
        r = state.reg[victim]
        state.evict(victim, i)
    if old < 0:
        state.read_memory(source, r, i)
    elif r != old:
        state.emit(i, Edit(MOVE, source, r, old))
    locations[j] = r
    return r


def assign_copy(state: State, i: int, inst: Inst, plan: Plan) -> None:
    """Assign an unconstrained COPY: a dying source hands its register over, a spilled one is filled into the target."""
    target, source = inst.vregs[plan.defs[0]], inst.vregs[plan.uses[0]]
    reads = state.live.next_reads[i]
    after = reads[plan.uses[0]]
    state.next_read[source] = after if after >= 0 else ~after
    old = r = state.reg[source]
    if old >= 0 and after < 0:
        state.release(source)
    else:
        r = state.obtain(target, state.masks[target], i)  # may well be the source's, saved to memory
        if old < 0:
            state.read_memory(source, r, i)
            old = r
    locations = state.locations[i] = [r, r]
    locations[plan.uses[0]] = old
    write(state, target, r, reads[plan.defs[0]])


def too_many(state: State, i: int, v: int) -> AllocationError:
    """The error for an instruction that cannot be satisfied with every other value in memory."""
    cls = state.machine.env.classes[state.cls[v]]
    return AllocationError(f"{describe(state.function.insts, i)}: its operands, constraints and clobbers leave no "
                           f"register for v{v}; class {cls.name} has {len(cls.order)} allocatable registers. Use fewer "
                           f"operands at once, or let one be read from memory")
