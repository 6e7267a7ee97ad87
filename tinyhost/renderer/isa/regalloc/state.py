"""The register file while walking the program: who is where, and the edits that got it there.

Invariant: a live value is in exactly one register, or in its spill slot; ``clean[v]`` says that the slot of a value in
a register holds the same bits, so that it can be dropped for nothing. Rematerialisable values are always clean. All
registers here are dense numbers (``machine.py``); edits name slots by virtual register until ``slots.py`` numbers them.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.flow import FAR, Entry, Flow, Loop
from tinyhost.renderer.isa.regalloc.liveness import Liveness
from tinyhost.renderer.isa.regalloc.machine import Machine
from tinyhost.renderer.isa.regalloc.types import Edit, EditKind, Function

MOVE, SPILL, FILL, REMAT, SWAP = EditKind.MOVE, EditKind.SPILL, EditKind.FILL, EditKind.REMAT, EditKind.SWAP
LOOKAHEAD = 8  # constrained instructions looked at when choosing a register


class State:
    """Mutable allocation state; ``locations`` and ``edits`` grow into the answer."""

    __slots__ = ("function", "machine", "flow", "live", "cls", "masks", "remat", "holder", "reg", "free", "clean",
                 "home", "next_read", "loop", "used_mask", "spilled", "edits", "locations", "slot_reads",
                 "reserved_at", "reserved")

    def __init__(self, function: Function, machine: Machine, flow: Flow, live: Liveness) -> None:
        count = len(function.vregs)
        self.function, self.machine, self.flow, self.live = function, machine, flow, live
        self.cls = [vreg.cls for vreg in function.vregs]
        self.masks = [machine.class_masks[cls] for cls in self.cls]  # registers of v's class
        self.remat = [vreg.remat for vreg in function.vregs]
        self.holder = [-1] * machine.all_mask.bit_length()  # register -> value
        self.reg = [-1] * count  # value -> register
        self.free = machine.all_mask
        self.clean = [False] * count
        self.home = [-1] * count  # the register v had first (or at the loop's head) and should have again
        self.next_read = [FAR] * count
        self.loop: Loop | None = None  # innermost loop of the place where edits go
        self.used_mask = 0
        self.spilled: set[int] = set()
        self.edits: dict[int, list[Edit]] = {}
        self.locations: list[list[int]] = [[]] * len(function.insts)
        self.slot_reads: list[tuple[int, int, int]] = []  # (instruction, operand, value) left in memory
        self.reserved = live.reserved
        self.reserved_at = 0  # first entry of ``reserved`` that is not behind us

    # the register file

    def take(self, v: int, r: int) -> None:
        """Put v, which has no register, into the free register r."""
        bit = 1 << r
        self.holder[r] = v
        self.reg[v] = r
        self.free &= ~bit
        self.used_mask |= bit
        if self.home[v] < 0:
            self.home[v] = r

    def release(self, v: int) -> None:
        """Forget v's register, if it has one."""
        r = self.reg[v]
        if r >= 0:
            self.reg[v] = -1
            self.holder[r] = -1
            self.free |= 1 << r

    def holders(self) -> list[int]:
        """The values in registers."""
        return [v for v in self.holder if v >= 0]

    def snapshot(self, live: set[int]) -> Entry:
        """The present state, cut down to ``live``, for a block to start with."""
        regs = {v: r for r, v in enumerate(self.holder) if v in live}
        clean = self.clean
        return Entry(regs, {v for v in regs if clean[v]})

    def load(self, entry: Entry, position: int) -> None:
        """Continue from ``entry``."""
        reg, holder = self.reg, self.holder
        for r, v in enumerate(holder):
            if v >= 0:
                reg[v] = holder[r] = -1
        self.free = self.machine.all_mask
        for v, r in entry.regs.items():
            self.take(v, r)
            self.clean[v] = v in entry.clean
            if self.next_read[v] < position:
                self.next_read[v] = position

    def retain(self, live: set[int]) -> None:
        """Drop every value that is not in ``live``."""
        for v in self.holder:
            if v >= 0 and v not in live:
                self.release(v)

    # edits

    def emit(self, position: int, edit: Edit) -> None:
        """Append ``edit`` before instruction ``position``."""
        edits = self.edits.get(position)
        if edits is None:
            self.edits[position] = [edit]
        else:
            edits.append(edit)

    def move(self, v: int, r: int, position: int) -> None:
        """Move v from its register into the free register r."""
        self.emit(position, Edit(MOVE, v, r, self.reg[v]))
        self.release(v)
        self.take(v, r)

    def fill(self, v: int, r: int, position: int) -> None:
        """Bring v from memory (or by its definition) into the free register r."""
        self.read_memory(v, r, position)
        self.take(v, r)
        self.clean[v] = True

    def read_memory(self, v: int, r: int, position: int) -> None:
        """Write v's value into r without making r its home."""
        if self.remat[v]:
            self.emit(position, Edit(REMAT, v, r, r))
        else:
            self.spilled.add(v)  # in code that no path reaches, nothing may ever have been stored
            self.emit(position, Edit(FILL, v, r, ~v))
        self.used_mask |= 1 << r

    def read_slot(self, i: int, k: int, v: int) -> None:
        """Operand k of instruction i reads v from its slot."""
        self.spilled.add(v)
        self.slot_reads.append((i, k, v))

    def save(self, v: int, position: int) -> None:
        """Make v's slot valid, with the store as far outside of loops as its definitions permit."""
        if self.clean[v]:
            return
        self.clean[v] = True
        self.spilled.add(v)
        place: Loop | None = None
        loop = self.loop
        while loop is not None and loop.single_entry and loop.entry is not None and not self.defined_in(v, loop):
            if v in loop.entry.clean or v not in loop.entry.regs:
                return  # stored before this loop already
            loop.entry.clean.add(v)
            place, loop = loop, loop.parent
        if place is None or place.entry is None:
            self.emit(position, Edit(SPILL, v, ~v, self.reg[v]))
        else:
            self.emit(place.first, Edit(SPILL, v, ~v, place.entry.regs[v]))

    def cycle_slot(self, cls: int) -> int:
        """Name of the slot that breaks cycles of moves in class ``cls``: a value behind all virtual registers."""
        name = len(self.cls) + cls
        self.spilled.add(name)
        return ~name

    def evict(self, v: int, position: int) -> None:
        """Take v's register away; its value stays in memory."""
        self.save(v, position)
        self.release(v)

    def defined_in(self, v: int, loop: Loop) -> bool:
        """Whether v may be written inside ``loop`` (first to last definition overlaps it)."""
        flow = self.flow
        return flow.first_def[v] < loop.end and flow.last_def[v] >= loop.first

    # choosing registers

    def pick(self, v: int, mask: int, position: int) -> int:
        """The best free register of ``mask`` for v, or -1."""
        candidates = self.free & mask
        if not candidates:
            return -1
        live = self.live
        r = self.home[v]
        if r >= 0 and candidates >> r & 1:
            return r
        w = live.partner[v]
        if w >= 0:
            r = self.reg[w]
            if r < 0:
                r = self.home[w]
            if r >= 0 and candidates >> r & 1:
                return r
        r = live.wanted[v]
        if r >= 0 and candidates >> r & 1:
            return r
        if self.reserved:
            candidates = candidates & ~self.reserved_until(v, position) or candidates
        candidates = candidates & live.allowed[v] or candidates
        return (candidates & -candidates).bit_length() - 1

    def pick_outside(self, v: int, mask: int) -> int:
        """The best free register of v's class outside ``mask``, or -1."""
        candidates = self.free & self.masks[v] & ~mask
        return (candidates & -candidates).bit_length() - 1

    def reserved_until(self, v: int, position: int) -> int:
        """Registers that constraints take away while v may be live (the next few constrained instructions)."""
        reserved, last = self.reserved, 2 * self.live.high[v]
        mask = 0
        for k in range(self.reserved_at, min(self.reserved_at + LOOKAHEAD, len(reserved))):
            where, taken = reserved[k]
            if where > last:
                break
            if where > 2 * position:
                mask |= taken
        return mask

    def next_reserved(self, r: int) -> int:
        """Where (2 * position + late) a constraint takes r next, if among the next few; else FAR."""
        for where, taken in self.reserved[self.reserved_at:self.reserved_at + LOOKAHEAD]:
            if taken >> r & 1:
                return where
        return FAR

    def obtain(self, v: int, mask: int, position: int) -> int:
        """A register of ``mask`` for v, emptied by eviction if none is free; -1 if ``mask`` is empty."""
        r = self.pick(v, mask, position)
        if r < 0:
            victim = self.victim(mask, position)
            if victim >= 0:
                r = self.reg[victim]
                self.evict(victim, position)
        return r

    def victim(self, mask: int, position: int) -> int:
        """The value in a register of ``mask`` that is read again last; stores and back edges count."""
        best, best_distance = -1, -1
        loop, clean, next_read = self.loop, self.clean, self.next_read
        mask &= ~self.free
        while mask:
            low = mask & -mask
            mask ^= low
            v = self.holder[low.bit_length() - 1]
            if v < 0:
                continue  # lent to one operand of this instruction
            distance = next_read[v] - position
            if loop is not None and next_read[v] >= loop.end:
                distance = self._distance_around(v, loop, position)
            if not clean[v] and (loop is None or self.defined_in(v, loop)):
                distance >>= 1  # a store and a load instead of a load
            if distance > best_distance:
                best, best_distance = v, distance
        return best

    def _distance_around(self, v: int, loop: Loop, position: int) -> int:
        """Distance to the next read of a value that is not read before the end of ``loop``."""
        if loop.entry is None or v not in loop.entry.regs:
            return FAR + self.next_read[v]  # not needed in a register by the back edge
        if v in loop.used:
            return loop.end - position + loop.used[v] - loop.first
        return FAR >> 1  # only carried around
