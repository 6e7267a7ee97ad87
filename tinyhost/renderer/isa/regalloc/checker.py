"""An independent proof that an allocation is right.

Takes the function and the finished allocation and follows, by symbolic execution to a fix-point over the control flow,
which virtual registers' current values every register and slot must hold. Shares nothing with the allocator but the
types: it has its own blocks and never asks what is live. An allocation passes only if every read finds its value, every
constraint holds, nothing is lost to clobbers, slots do not overlap, and every written callee-saved register is listed.
"""
from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from tinyhost.renderer.isa.regalloc.types import (
    Allocation,
    Constraint,
    Edit,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    Timing,
)


class CheckError(RuntimeError):
    """The allocation would compute something else than the function."""


def check(function: Function, env: MachineEnv, allocation: Allocation) -> None:
    """Prove ``allocation`` right for ``function`` on ``env``.

    Raises:
        CheckError: names the instruction, the operand, the virtual register expected and what its location holds.
    """
    checker = _Checker(function, env, allocation)
    checker.check_slots()
    checker.check_edits()
    for i, inst in enumerate(function.insts):
        checker.check_operands(i, inst)
    checker.check_callee_saved()
    checker.execute()


class _Contents:
    """Which virtual registers' current values each location certainly holds."""

    __slots__ = ("at", "where")

    def __init__(self) -> None:
        self.at: dict[int, set[int]] = {}
        self.where: dict[int, set[int]] = {}

    def copy(self) -> "_Contents":
        fresh = _Contents()
        fresh.at = {location: set(values) for location, values in self.at.items()}
        fresh.where = {v: set(locations) for v, locations in self.where.items()}
        return fresh

    def holds(self, location: int) -> set[int]:
        return self.at.get(location, set())

    def put(self, location: int, values: set[int]) -> None:
        """``location`` now holds ``values`` and nothing else."""
        for v in self.at.pop(location, ()):
            self.where[v].discard(location)
        if values:
            self.at[location] = set(values)
            for v in values:
                self.where.setdefault(v, set()).add(location)

    def forget(self, v: int) -> None:
        """v gets a new value: whatever holds the old one no longer holds v."""
        for location in self.where.pop(v, ()):
            values = self.at[location]
            values.discard(v)
            if not values:
                del self.at[location]

    def meet(self, other: "_Contents") -> bool:
        """Keep only what ``other`` holds too; whether anything was lost."""
        lost = False
        for location in list(self.at):
            common = self.at[location] & other.holds(location)
            if len(common) < len(self.at[location]):
                self.put(location, common)
                lost = True
        return lost


class _Checker:
    def __init__(self, function: Function, env: MachineEnv, allocation: Allocation) -> None:
        self.insts, self.vregs = function.insts, function.vregs
        self.env, self.allocation = env, allocation
        self.class_of = {preg: number for number, cls in enumerate(env.classes) for preg in cls.order}
        self.scratch_class = {cls.scratch: number for number, cls in enumerate(env.classes) if cls.scratch is not None}
        if len(allocation.locations) != len(self.insts):
            raise CheckError(f"the allocation has locations for {len(allocation.locations)} instructions, the function "
                             f"has {len(self.insts)}")

    # messages

    def place(self, location: int) -> str:
        return self.env.name(location) if location >= 0 else f"slot {~location}"

    def fail(self, i: int, text: str) -> CheckError:
        return CheckError(f"instruction {i} ({self.insts[i]!r}): {text}")

    # structure

    def check_slots(self) -> None:
        """Slots lie apart, inside the frame, aligned."""
        end, previous = 0, -1
        slots = self.allocation.slots
        for number in sorted(range(len(slots)), key=lambda number: slots[number].offset):
            slot = slots[number]
            align = min(slot.size & -slot.size, self.env.max_align)
            if slot.offset < end:
                raise CheckError(f"slots {previous} and {number} overlap: bytes up to {end} and from {slot.offset}")
            if slot.offset % align or self.allocation.frame_align % align:
                raise CheckError(f"slot {number} at {slot.offset} (frame alignment {self.allocation.frame_align}) is "
                                 f"not aligned to {align}")
            end, previous = slot.offset + slot.size, number
        if end > self.allocation.frame_size:
            raise CheckError(f"slot {previous} ends at {end}, behind the frame of {self.allocation.frame_size} bytes")

    def check_edits(self) -> None:
        """Edits stand at instructions, move within a class, and fit their slots."""
        for i, edits in self.allocation.edits.items():
            if not 0 <= i < len(self.insts):
                raise CheckError(f"edits stand before instruction {i} of {len(self.insts)}")
            for edit in edits:
                self._check_edit(i, edit)

    def _check_edit(self, i: int, edit: Edit) -> None:
        kind, v = edit.kind, edit.vreg
        if not 0 <= v < len(self.vregs):
            raise self.fail(i, f"{kind.value} before it moves v{v}, which the function does not have")
        slot_dst, slot_src = kind is EditKind.SPILL, kind is EditKind.FILL
        for location, is_slot in ((edit.dst, slot_dst), (edit.src, slot_src)):
            if (location < 0) != is_slot:
                raise self.fail(i, f"{kind.value} of v{v} before it has {self.place(location)} on the wrong side")
            if is_slot:
                self._check_slot(i, v, location)
            elif self._class(location) != self.vregs[v].cls:
                raise self.fail(i, f"{kind.value} of v{v} before it uses {self.place(location)}, not of class "
                                   f"{self.env.classes[self.vregs[v].cls].name}")
        if kind is EditKind.REMAT and not self.vregs[v].remat:
            raise self.fail(i, f"v{v} is rematerialised before it but has no flag for it")
        if kind is EditKind.SWAP and not self.env.classes[self.vregs[v].cls].swap:
            raise self.fail(i, f"v{v} is swapped before it; class {self.env.classes[self.vregs[v].cls].name} cannot")

    def _class(self, preg: int) -> int:
        return self.class_of.get(preg, self.scratch_class.get(preg, -1))

    def _check_slot(self, i: int, v: int, location: int) -> None:
        slots = self.allocation.slots
        if ~location >= len(slots):
            raise self.fail(i, f"v{v} is to be in slot {~location}; there are {len(slots)}")
        if slots[~location].size < self.vregs[v].size:
            raise self.fail(i, f"v{v} has {self.vregs[v].size} bytes, slot {~location} {slots[~location].size}")

    def check_operands(self, i: int, inst: Inst) -> None:
        """Every operand is where its constraint allows it, and operands that exclude each other are apart."""
        specs, where = inst.signature.operands, self.allocation.locations[i]
        if len(where) != len(specs):
            raise self.fail(i, f"has {len(specs)} operands but {len(where)} locations")
        in_memory = 0
        for k, (v, spec, location) in enumerate(zip(inst.vregs, specs, where)):
            if location < 0:
                in_memory += 1
                if not spec.memory or in_memory > 1:
                    raise self.fail(i, f"operand {k} (v{v}) may not be in {self.place(location)}")
                self._check_slot(i, v, location)
            elif self.class_of.get(location, -1) != self.vregs[v].cls:
                raise self.fail(i, f"operand {k} (v{v}) is in {self.place(location)}, not of class "
                                   f"{self.env.classes[self.vregs[v].cls].name}")
            allowed = self._allowed(spec.constraint, spec.arg, where)
            if location >= 0 and allowed is not None and location not in allowed:
                names = ", ".join(self.place(other) for other in allowed)
                raise self.fail(i, f"operand {k} (v{v}) must be in {names}, but is in {self.place(location)}")
        self._check_apart(i, inst, where)

    @staticmethod
    def _allowed(constraint: Constraint, arg: Any, where: tuple[int, ...]) -> tuple[int, ...] | None:
        if constraint is Constraint.FIXED:
            return (arg,)
        if constraint is Constraint.SET:
            return tuple(arg)
        if constraint is Constraint.REUSE:
            return (where[arg],)
        return None

    def _check_apart(self, i: int, inst: Inst, where: tuple[int, ...]) -> None:
        specs = inst.signature.operands
        tied = {(k, spec.arg) for k, spec in enumerate(specs) if spec.constraint is Constraint.REUSE}
        clobbers = self._clobbers(inst, where)
        for k, spec in enumerate(specs):
            if (spec.is_def or spec.timing is Timing.LATE) and where[k] in clobbers:
                raise self.fail(i, f"operand {k} (v{inst.vregs[k]}) is in {self.place(where[k])}, which is clobbered")
            if not spec.is_def:
                continue
            for j, other in enumerate(specs):
                if j == k or where[j] != where[k] or ((k, j) in tied and other.timing is Timing.EARLY):
                    continue
                if other.is_def or spec.timing is Timing.EARLY or other.timing is Timing.LATE:
                    raise self.fail(i, f"operands {k} (v{inst.vregs[k]}) and {j} (v{inst.vregs[j]}) must be apart but "
                                       f"share {self.place(where[k])}")

    @staticmethod
    def _clobbers(inst: Inst, where: tuple[int, ...]) -> set[int]:
        """Clobbers less the registers that FIXED definitions, or definitions tied to FIXED reads, write."""
        specs = inst.signature.operands
        written = set()
        for spec in specs:
            source = specs[spec.arg] if spec.constraint is Constraint.REUSE else spec
            if spec.is_def and source.constraint is Constraint.FIXED:
                written.add(source.arg)
        return set(inst.signature.clobbers) - written

    def check_callee_saved(self) -> None:
        """Every callee-saved register that anything writes is listed, so that the prologue saves it."""
        listed = set(self.allocation.used_callee_saved)
        for i, inst in enumerate(self.insts):
            where = self.allocation.locations[i]
            written = {where[k] for k, spec in enumerate(inst.signature.operands) if spec.is_def}
            written |= set(inst.signature.clobbers)
            for edit in self.allocation.edits.get(i, ()):
                written |= {edit.dst, edit.src} if edit.kind is EditKind.SWAP else {edit.dst}
            missing = (written & self.env.callee_saved) - listed
            if missing:
                names = ", ".join(self.place(preg) for preg in sorted(missing))
                raise self.fail(i, f"writes the callee-saved {names}, which used_callee_saved does not list")

    # values

    def execute(self) -> None:
        """Run all paths to a fix-point."""
        insts = self.insts
        if not insts:
            return
        leaders = self._leaders()
        labels: dict[Hashable, int] = {inst.target: i for i, inst in enumerate(insts) if inst.kind is Kind.LABEL}
        entry = _Contents()
        self._apply_edits(0, entry)
        states: dict[int, _Contents] = {0: entry}
        worklist = [0]
        while worklist:
            first = worklist.pop()
            contents = states[first].copy()
            for successor, after in self._run_block(first, leaders, labels, contents):
                known = states.get(successor)
                if known is None:
                    states[successor] = after.copy()
                elif not known.meet(after):
                    continue
                worklist.append(successor)

    def _leaders(self) -> set[int]:
        leaders = {0}
        for i, inst in enumerate(self.insts):
            if inst.kind is Kind.LABEL:
                leaders.add(i)
            if inst.kind in (Kind.JUMP, Kind.BRANCH, Kind.RET):
                leaders.add(i + 1)
        return leaders

    def _run_block(self, first: int, leaders: set[int], labels: dict[Hashable, int],
                   contents: _Contents) -> list[tuple[int, _Contents]]:
        """Execute one block on ``contents``; the states its edges carry. Edits before ``first`` are in already."""
        i = first
        while True:
            inst = self.insts[i]
            self._apply_inst(i, inst, contents)
            if inst.kind is Kind.RET:
                return []
            if inst.kind is Kind.JUMP:
                return [(labels[inst.target], contents)]
            edges = [(labels[inst.target], contents.copy())] if inst.kind is Kind.BRANCH else []
            i += 1
            if i == len(self.insts):
                return edges
            self._apply_edits(i, contents)
            if i in leaders:
                return [*edges, (i, contents)]

    def _apply_edits(self, i: int, contents: _Contents) -> None:
        for edit in self.allocation.edits.get(i, ()):
            width = self.vregs[edit.vreg].size
            if edit.kind is EditKind.REMAT:
                contents.put(edit.dst, {edit.vreg})
                continue
            moved = {v for v in contents.holds(edit.src) if self.vregs[v].size <= width}
            if edit.kind is EditKind.SWAP:
                back = {v for v in contents.holds(edit.dst) if self.vregs[v].size <= width}
                contents.put(edit.src, back)
            contents.put(edit.dst, moved)

    def _apply_inst(self, i: int, inst: Inst, contents: _Contents) -> None:
        specs, where = inst.signature.operands, self.allocation.locations[i]
        for k, (v, spec) in enumerate(zip(inst.vregs, specs)):
            if not spec.is_def and v not in contents.holds(where[k]):
                held = ", ".join(f"v{other}" for other in sorted(contents.holds(where[k]))) or "nothing known"
                raise self.fail(i, f"operand {k} reads v{v} from {self.place(where[k])}, which holds {held}")
        copied: set[int] = set()
        if inst.kind is Kind.COPY:
            source = next(k for k, spec in enumerate(specs) if not spec.is_def)
            copied = set(contents.holds(where[source]))
        for preg in self._clobbers(inst, where):
            contents.put(preg, set())
        for k, spec in enumerate(specs):
            if spec.is_def:
                v = inst.vregs[k]
                contents.forget(v)
                contents.put(where[k], (copied - {v}) | {v})
