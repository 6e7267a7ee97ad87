"""Step 3b: instructions that ask for particular registers, clobber some, or read late or write early.

The early phase makes every read operand sit where it must, moves what outlives the instruction out of the registers it
destroys, and reserves the registers of tied and early definitions; the late phase frees what dies and places the other
definitions. A register is *lent* while it belongs to one operand only: neither free nor any value's home.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.assign import stays_in_slot, too_many, write
from tinyhost.renderer.isa.regalloc.machine import Plan
from tinyhost.renderer.isa.regalloc.state import MOVE, State
from tinyhost.renderer.isa.regalloc.types import Edit, Inst


def assign_constrained(state: State, i: int, inst: Inst, plan: Plan) -> None:
    """Assign an instruction whose signature is not plain."""
    reserved = state.reserved
    while state.reserved_at < len(reserved) and reserved[state.reserved_at][0] <= 2 * i + 1:
        state.reserved_at += 1
    _Assignment(state, i, inst, plan).run()


class _Assignment:
    """The work on one instruction."""

    __slots__ = ("state", "i", "plan", "vregs", "reads", "locations", "operands", "dying", "late", "placed", "lent",
                 "claimed", "folded")

    def __init__(self, state: State, i: int, inst: Inst, plan: Plan) -> None:
        self.state, self.i, self.plan = state, i, plan
        self.vregs, self.reads = inst.vregs, state.live.next_reads[i]
        self.locations = [0] * len(inst.vregs)
        self.operands: set[int] = {inst.vregs[k] for k in plan.uses}
        self.late: set[int] = {inst.vregs[k] for k in plan.late_uses}
        self.dying: set[int] = set()
        self.placed: set[int] = set()  # values whose home some operand reads: they stay
        self.lent = 0
        self.claimed = 0  # lent to a definition or a late read: stays so in the late phase
        self.folded = False

    def run(self) -> None:
        self._note_reads()
        self._evacuate()
        self._place_fixed_uses()
        self._place_other_uses()
        self._place_tied()
        self._place_early_defs()
        self._end_early_phase()
        self._place_late_defs()
        self._finish()

    # early phase

    def _note_reads(self) -> None:
        for k in self.plan.uses:
            v, after = self.vregs[k], self.reads[k]
            if after < 0:
                self.dying.add(v)
            self.state.next_read[v] = after if after >= 0 else ~after

    def _blocked(self, v: int) -> int:
        """Registers where v must not be when the instruction executes."""
        if v not in self.dying or v in self.late:
            return self.plan.late_mask
        return self.plan.early_def_mask

    def _evacuate(self) -> None:
        """Empty the registers of constraints, except where the right value is there already."""
        plan, state = self.plan, self.state
        at_home = {r: self.vregs[k] for k, r in plan.fixed.items() if k in plan.uses}
        mask = (plan.early_mask | plan.late_mask) & ~state.free
        while mask:
            low = mask & -mask
            mask ^= low
            r = low.bit_length() - 1
            v = state.holder[r]
            if at_home.get(r, v) != v or low & self._blocked(v):
                self._move_away(v)

    def _move_away(self, v: int) -> None:
        """Give v another register, or none."""
        state, plan = self.state, self.plan
        for k, r in plan.fixed.items():
            if self.vregs[k] == v and k in plan.uses and (state.free & ~self._blocked(v)) >> r & 1:
                state.move(v, r, self.i)
                return
        mask = state.masks[v] & ~plan.early_mask & ~self._blocked(v)
        r = state.pick(v, mask, self.i)
        if r < 0:
            candidates = mask & ~self._registers(self.operands)
            if v not in self.operands:
                candidates |= 1 << state.reg[v]
            victim = state.victim(candidates, self.i)
            if victim < 0 or victim == v:
                state.evict(v, self.i)
                return
            r = state.reg[victim]
            state.evict(victim, self.i)
        state.move(v, r, self.i)

    def _registers(self, values: set[int]) -> int:
        mask = 0
        for v in values:
            r = self.state.reg[v]
            if r >= 0:
                mask |= 1 << r
        return mask

    def _place_fixed_uses(self) -> None:
        state, plan = self.state, self.plan
        for k in plan.uses:
            r = plan.fixed.get(k, -1)
            if r < 0:
                continue
            v = self.vregs[k]
            self.locations[k] = r
            if state.reg[v] != r:
                if v in self.placed or self._blocked(v) >> r & 1 or self._better_copied(v, r):
                    self._copy(k, r)
                    continue
                self._settle(v, r)
            self.placed.add(v)

    def _better_copied(self, v: int, r: int) -> bool:
        """Whether v should not move to r for good: the loop's head or another value will want it otherwise."""
        state = self.state
        if v in self.dying or state.reg[v] < 0:
            return False
        entry = state.loop.entry if state.loop is not None else None
        if entry is not None and entry.regs.get(v, r) != r:
            return True
        where = state.next_reserved(r)
        if where > 2 * state.live.high[v]:
            return False
        following, plan = state.function.insts[where >> 1], state.flow.plans[where >> 1]
        return not any(plan.fixed[k] == r and following.vregs[k] == v for k in plan.uses if k in plan.fixed)

    def _settle(self, v: int, r: int) -> None:
        """Make the free register r the home of v."""
        if self.state.reg[v] >= 0:
            self.state.move(v, r, self.i)
        else:
            self.state.fill(v, r, self.i)

    def _copy(self, k: int, r: int) -> None:
        """Lend the free register r to operand k and put its value there."""
        v = self.vregs[k]
        if self.state.reg[v] >= 0:
            self.state.emit(self.i, Edit(MOVE, v, r, self.state.reg[v]))
        else:
            self.state.read_memory(v, r, self.i)
        self._lend(r)
        if k in self.plan.late_uses:
            self.claimed |= 1 << r

    def _lend(self, r: int) -> None:
        bit = 1 << r
        self.state.free &= ~bit
        self.state.used_mask |= bit
        self.lent |= bit

    def _place_other_uses(self) -> None:
        plan = self.plan
        others = [k for k in plan.uses if k not in plan.fixed]
        for k in sorted(others, key=lambda k: k not in plan.sets):  # the choosy ones first
            self._place_use(k)

    def _place_use(self, k: int) -> None:
        state, plan, v = self.state, self.plan, self.vregs[k]
        allowed = plan.sets.get(k, state.masks[v])
        if k in plan.late_uses or k in plan.tied_defs:
            allowed &= ~plan.late_mask  # read or rewritten late
        home = allowed & ~self._blocked(v)
        r = state.reg[v]
        if r >= 0 and home >> r & 1:
            self.locations[k] = r
            self.placed.add(v)
            return
        if r < 0 and plan.memory[k] and not self.folded and stays_in_slot(state, v, v in self.dying):
            self._fold(k, v)
            return
        if v not in self.placed:
            r = self._room(v, home)
            if r >= 0:
                self._settle(v, r)
                self.locations[k] = r
                self.placed.add(v)
                return
        r = self._room(v, allowed & ~plan.early_def_mask)
        if r >= 0:
            self._copy(k, r)
            self.locations[k] = r
        elif state.reg[v] < 0 and plan.memory[k] and not self.folded and not state.remat[v]:
            self._fold(k, v)
        else:
            raise too_many(state, self.i, v)

    def _fold(self, k: int, v: int) -> None:
        self.folded = True
        self.locations[k] = -1
        self.state.read_slot(self.i, k, v)

    def _room(self, v: int, mask: int) -> int:
        """A free register of ``mask``, made free by displacing a value that no operand has settled on; or -1."""
        state = self.state
        r = state.pick(v, mask, self.i)
        if r >= 0:
            return r
        for keep in (self.operands, self.placed):
            victim = state.victim(mask & ~self._registers(keep | {v}), self.i)
            if victim >= 0:
                r = state.reg[victim]
                self._displace(victim, mask)
                return r
        return -1

    def _displace(self, v: int, mask: int) -> None:
        """Empty v's register: to a free register outside ``mask`` if there is one, else to memory."""
        state = self.state
        elsewhere = state.masks[v] & ~mask & ~self.plan.early_mask & ~self._blocked(v)
        r = state.pick(v, elsewhere, self.i)
        if r >= 0:
            state.move(v, r, self.i)
        else:
            state.evict(v, self.i)

    def _place_tied(self) -> None:
        state = self.state
        for k, j in self.plan.tied.items():
            source, r = self.vregs[j], self.locations[j]
            bit = 1 << r
            if bit & self.claimed:
                r = self._tie_copy(k, j, r)
            elif not bit & self.lent:  # the read is at its value's home
                if source in self.dying and source not in self.late:
                    state.release(source)
                    self._lend(r)
                else:
                    r = self._tie_copy(k, j, r)
            self.locations[k] = self.locations[j] = r
            self.claimed |= 1 << r

    def _tie_copy(self, k: int, j: int, r: int) -> int:
        state, target, source = self.state, self.vregs[k], self.vregs[j]
        allowed = self.plan.sets.get(j, state.masks[target])
        fresh = self._room(target, allowed & ~self.plan.late_mask & ~self._read_registers())
        if fresh >= 0:
            state.emit(self.i, Edit(MOVE, source, fresh, r))
            self._lend(fresh)
            return fresh
        if source in self.late or state.reg[source] != r:
            raise too_many(state, self.i, target)
        state.evict(source, self.i)
        self._lend(r)
        return r

    def _read_registers(self) -> int:
        mask = 0
        for k in self.plan.uses:
            if self.locations[k] >= 0:
                mask |= 1 << self.locations[k]
        return mask

    def _place_early_defs(self) -> None:
        plan, state = self.plan, self.state
        for k in plan.early_defs:
            r = plan.fixed.get(k, -1)
            if r < 0:
                v = self.vregs[k]
                mask = plan.sets.get(k, state.masks[v]) & ~plan.late_mask & ~self._read_registers()
                r = self._room(v, mask)
                if r < 0:
                    raise too_many(state, self.i, v)
            self.locations[k] = r
            self._lend(r)
            self.claimed |= 1 << r

    def _end_early_phase(self) -> None:
        state = self.state
        for v in self.dying:
            if v not in self.late:
                state.release(v)
        state.free |= self.lent & ~self.claimed
        self.lent = self.claimed

    # late phase

    def _place_late_defs(self) -> None:
        plan, state = self.plan, self.state
        pending = [k for k in plan.defs if k not in plan.tied and k not in plan.early_defs]
        for k in pending:
            if k in plan.fixed:
                self.locations[k] = plan.fixed[k]
                self._lend(plan.fixed[k])
        late = 0
        for k in plan.late_uses:
            if self.locations[k] >= 0:
                late |= 1 << self.locations[k]
        for k in sorted((k for k in pending if k not in plan.fixed), key=lambda k: k not in plan.sets):
            v = self.vregs[k]
            mask = plan.sets.get(k, state.masks[v]) & ~plan.late_mask & ~late
            r = state.obtain(v, mask, self.i)
            if r < 0:
                raise too_many(state, self.i, v)
            self.locations[k] = r
            self._lend(r)

    def _finish(self) -> None:
        state, plan = self.state, self.plan
        for v in self.late & self.dying:
            state.release(v)
        state.free |= self.lent
        state.used_mask |= plan.clobber_mask
        for k in plan.defs:
            write(state, self.vregs[k], self.locations[k], self.reads[k])
        state.locations[self.i] = self.locations
