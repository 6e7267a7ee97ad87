"""Two interpreters that say what a function does: the oracle of the fuzzer and of the seeded faults.

``observe`` runs it on virtual registers, ``observe_allocated`` on an allocation; equal traces mean equal behaviour. The
second is pessimistic: registers start as garbage, clobbers and early definitions destroy their registers as soon as
they may, moves narrower than the value they carry destroy it.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc import (
    Allocation,
    Edit,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    Timing,
)


def evaluate(opcode: tuple, reads: list[int], results: int) -> list[int]:
    """Results of one instruction."""
    if opcode[0] == "const":
        return [opcode[1]]
    if opcode[0] == "decrement":
        return [max(0, reads[0] - 1)]
    return [hash((opcode[1], k, *reads)) & 0xFFFFFFFF for k in range(results)]


class _Outcome:
    """Control and observations, common to both interpreters."""

    def __init__(self, insts: list[Inst], limit: int) -> None:
        self.insts, self.limit = insts, limit
        self.labels = {inst.target: i for i, inst in enumerate(insts) if inst.kind is Kind.LABEL}
        self.trace: list[tuple] = []
        self.flag = False

    def goes_on(self, pc: int) -> bool:
        """Whether to execute instruction ``pc``; a program stopped by the limit says so in its trace."""
        if pc >= len(self.insts):
            return False
        if self.limit == 0:
            self.trace.append(("limit", pc))
        self.limit -= 1
        return self.limit >= 0

    def effect(self, inst: Inst, reads: list[int], results: int) -> list[int]:
        name = inst.opcode[0]
        if name in ("observe", "ret"):
            self.trace.append((name, *reads))
            return []
        if name == "test":
            self.flag = reads[0] % inst.opcode[1] != 0
            return []
        if name == "copy":
            return [reads[0]]
        return evaluate(inst.opcode, reads, results)


def observe(function: Function, limit: int = 1500) -> list[tuple]:
    """The trace of the function on virtual registers."""
    out = _Outcome(function.insts, limit)
    values: dict[int, int] = {}
    pc = 0
    while out.goes_on(pc):
        inst = function.insts[pc]
        pc += 1
        if inst.kind is Kind.JUMP or (inst.kind is Kind.BRANCH and out.flag):
            pc = out.labels[inst.target]
        if inst.kind in (Kind.JUMP, Kind.BRANCH, Kind.LABEL):
            continue
        specs = inst.signature.operands
        defs = [v for v, spec in zip(inst.vregs, specs) if spec.is_def]
        results = out.effect(inst, [values[v] for v, spec in zip(inst.vregs, specs) if not spec.is_def], len(defs))
        values.update(zip(defs, results))
        if inst.kind is Kind.RET:
            break
    return out.trace


class Cells:
    """Registers and frame bytes. Every cell holds (value, bytes); garbage is a value of its own each time."""

    def __init__(self, allocation: Allocation) -> None:
        self.allocation = allocation
        self.registers: dict[int, tuple[int, int]] = {}
        self.frame: dict[int, tuple[int, int]] = {}
        self.extent: dict[int, int] = {}  # bytes written at a frame offset
        self.garbage = 1 << 40

    def poison(self) -> tuple[int, int]:
        self.garbage += 1
        return self.garbage, 1 << 20

    def get(self, location: int) -> tuple[int, int]:
        if location >= 0:
            return self.registers.setdefault(location, self.poison())
        return self.frame.get(self.allocation.slots[~location].offset) or self.poison()

    def set(self, location: int, cell: tuple[int, int], width: int = 0) -> None:
        """Write a cell; a slot loses what else lies in the ``width`` bytes written."""
        if location >= 0:
            self.registers[location] = cell
            return
        start = self.allocation.slots[~location].offset
        for offset in list(self.frame):
            if offset < start + width and start < offset + self.extent[offset]:
                del self.frame[offset]
        self.frame[start], self.extent[start] = cell, width

    def carry(self, src: int, width: int) -> tuple[int, int]:
        """What a move of ``width`` bytes reads: garbage, if the value is wider."""
        cell = self.get(src)
        return cell if cell[1] <= width else self.poison()


def observe_allocated(function: Function, env: MachineEnv, allocation: Allocation, limit: int = 1500) -> list[tuple]:
    """The trace of the allocated function, and whether a callee-saved register came back changed."""
    out = _Outcome(function.insts, limit)
    cells = Cells(allocation)
    unsaved = env.callee_saved - set(allocation.used_callee_saved)
    before = {preg: cells.get(preg) for preg in sorted(unsaved)}
    pc, fell = 0, True
    while out.goes_on(pc):
        if fell:
            for edit in allocation.edits.get(pc, ()):
                _edit(function, cells, edit)
        inst = function.insts[pc]
        jumps = inst.kind is Kind.JUMP or (inst.kind is Kind.BRANCH and out.flag)
        where = pc
        pc, fell = (out.labels[inst.target], False) if jumps else (pc + 1, True)
        if inst.kind not in (Kind.JUMP, Kind.BRANCH, Kind.LABEL):
            _execute(function, cells, out, inst, allocation.locations[where])
        if inst.kind is Kind.RET:
            break
    out.trace.append(("callee-saved intact", all(cells.get(preg) == before[preg] for preg in before)))
    return out.trace


def _edit(function: Function, cells: Cells, edit: Edit) -> None:
    width = function.vregs[edit.vreg].size
    if edit.kind is EditKind.REMAT:
        cells.set(edit.dst, (evaluate(definition_of(function, edit.vreg).opcode, [], 1)[0], width))
    elif edit.kind is EditKind.SWAP:
        one, other = cells.carry(edit.src, width), cells.carry(edit.dst, width)
        cells.set(edit.dst, one)
        cells.set(edit.src, other)
    else:
        cells.set(edit.dst, cells.carry(edit.src, width), width)


def definition_of(function: Function, v: int) -> Inst:
    """The instruction that defines v."""
    for inst in function.insts:
        if any(spec.is_def and u == v for u, spec in zip(inst.vregs, inst.signature.operands)):
            return inst
    raise AssertionError(v)


def _execute(function: Function, cells: Cells, out: _Outcome, inst: Inst, where: tuple[int, ...]) -> None:
    specs = inst.signature.operands
    defs = [k for k, spec in enumerate(specs) if spec.is_def]
    written = {where[k] for k in defs}
    for k in defs:
        if specs[k].timing is Timing.EARLY:
            cells.set(where[k], cells.poison())
    reads = {k: cells.get(where[k])[0] for k, spec in enumerate(specs) if not spec.is_def
             and spec.timing is Timing.EARLY}
    for preg in set(inst.signature.clobbers):
        cells.set(preg, cells.poison())
    for location in written:
        cells.set(location, cells.poison())
    for k, spec in enumerate(specs):
        if not spec.is_def and spec.timing is Timing.LATE:
            reads[k] = cells.get(where[k])[0]
    results = out.effect(inst, [reads[k] for k in sorted(reads)], len(defs))
    for k, result in zip(defs, results):
        cells.set(where[k], (result, function.vregs[inst.vregs[k]].size))
