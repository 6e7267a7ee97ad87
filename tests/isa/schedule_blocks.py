"""Random blocks for the scheduler, and two independent oracles.

``random_function(seed)`` gives a loop around one long block of abstract instructions over few registers: flags, memory
in several storages, two-address forms, fixed registers, redefined registers. ``broken`` compares each pair of
instructions of a block before and after; ``execute`` runs a function and gives all that can be observed.
"""
from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import NamedTuple

from tinyhost.renderer.isa.regalloc import (
    Constraint,
    Function,
    Inst,
    Kind,
    MachineEnv,
    OperandSpec,
    RegClass,
    Signature,
    VReg,
    define,
    use,
)
from tinyhost.renderer.isa.schedule import Access, Effects, Facts, Place

ENV = MachineEnv((RegClass("g", tuple(range(5)), swap=True), RegClass("v", tuple(range(10, 15)))))
SPAN = 64  # bytes of each storage; addresses wrap
STORAGES = ("a", "b", "frame")


class Op(NamedTuple):
    """An abstract opcode; the number makes its result its own."""

    number: int
    effects: Effects = Effects()
    storage: str | None = None
    registers: tuple[int, ...] = ()
    form: str | None = None
    first: int = 0
    size: int = 0
    where: str = ""  # the storage that is touched, also where the scheduler is not told


class OpFacts(Facts):
    """What the opcodes say."""

    def effects(self, inst: Inst) -> Effects:
        return inst.opcode.effects

    def place(self, inst: Inst) -> Place:
        op = inst.opcode
        return Place(op.storage, op.registers, op.form, op.first, op.size)


class _Writer:
    def __init__(self, seed: int) -> None:
        self.rnd = random.Random(seed)
        self.insts: list[Inst] = []
        self.vregs: list[VReg] = []
        self.known: list[list[int]] = [[], []]
        self.number = 0
        rnd = self.rnd
        self.with_flags = rnd.choice((0.0, 0.1, 0.4))
        self.with_memory = rnd.choice((0.0, 0.2, 0.5))
        self.reuse = rnd.choice((0.0, 0.2, 0.5))
        self.depth = rnd.choice((2, 6, 30))

    def fresh(self, cls: int) -> int:
        self.vregs.append(VReg(cls, 8))
        return len(self.vregs) - 1

    def read(self, cls: int) -> int:
        return self.rnd.choice(self.known[cls][-self.depth:])

    def target(self, cls: int) -> int:
        known = self.known[cls]
        v = self.rnd.choice(known) if known and self.rnd.random() < self.reuse else self.fresh(cls)
        if v in known:
            known.remove(v)
        known.append(v)
        return v

    def put(self, specs: Sequence[OperandSpec], vregs: Sequence[int], effects: Effects = Effects(), **memory) -> None:
        self.number += 1
        op = Op(self.number, effects, **memory)
        self.insts.append(Inst(op, tuple(vregs), Signature(tuple(specs))))

    def step(self) -> None:
        rnd = self.rnd
        cls = rnd.randrange(2)
        if rnd.random() < self.with_memory:
            return self.memory(cls)
        if rnd.random() < 0.06:
            return self.fixed()
        flags = Effects(rnd.random() < self.with_flags / 2, rnd.random() < self.with_flags)
        count = rnd.choice((0, 1, 1, 2, 2, 3))
        reads = [self.read(cls if rnd.random() < 0.9 else 1 - cls) for _ in range(count)]
        tied = [k for k, v in enumerate(reads) if self.vregs[v].cls == cls]
        if tied and rnd.random() < 0.4:  # two-address: the result stands in the register of an operand
            k = rnd.choice(tied)
            target = reads[k] if rnd.random() < 0.3 else self.target(cls)
            self.put([define(reuse=k + 1), *[use()] * count], [target, *reads], flags)
        elif rnd.random() < 0.1:
            self.put([use()] * count, reads, Effects(flags.reads_flags, True))  # a comparison
        else:
            self.put([define(), *[use()] * count], [self.target(cls), *reads], flags)

    def fixed(self) -> None:
        """A division: two results and two operands in certain registers."""
        a, b, c = self.read(0), self.read(0), self.read(0)
        specs = [define(fixed=0), define(fixed=1), use(fixed=0), use()]
        self.put(specs, [self.target(0), self.fresh(0), a, b if b != a else c], Effects(False, True))
        self.known[0].append(self.insts[-1].vregs[1])

    def memory(self, cls: int) -> None:
        rnd = self.rnd
        if rnd.random() < 0.02:
            return self.put([], [], Effects(False, False, Access.FENCE))
        where = rnd.choice(STORAGES)
        storage = where if rnd.random() < 0.95 else None
        base = [self.read(0)] if rnd.random() < 0.3 else []
        form = rnd.choice(("plain", "plain", "plain", "scaled", None))
        first, size = 4 * rnd.randrange(12), rnd.choice((4, 4, 8))
        flags = (rnd.random() < self.with_flags / 3, False)
        memory = {"storage": storage, "form": form, "first": first, "size": size, "where": where}
        if rnd.random() < 0.5:
            self.put([define(), *[use()] * len(base)], [self.target(cls), *base], Effects(*flags, Access.READ),
                     registers=tuple(range(1, 1 + len(base))), **memory)
        else:
            self.put([*[use()] * len(base), use()], [*base, self.read(cls)], Effects(*flags, Access.WRITE),
                     registers=tuple(range(len(base))), **memory)


def random_function(seed: int, length: int = 60) -> Function:
    """A loop around one block of ``length`` instructions, then a block that reads some of its values."""
    w = _Writer(seed)
    w.put([define(fixed=0), define(fixed=1)], [w.target(0), w.fresh(0)])
    for cls in (0, 1):
        for _ in range(3):
            w.put([define()], [w.target(cls)])
    entered = list(w.known[0]), list(w.known[1])
    w.insts.append(Inst(Op(0), kind=Kind.LABEL, target="head"))
    for _ in range(length):
        w.step()
    if w.rnd.random() < 0.8:
        w.put([use()], [w.read(0)], Effects(False, True))
    w.insts.append(Inst(Op(0), kind=Kind.BRANCH, target="head"))
    known = [v for values in (*entered, *w.known) for v in values]
    for _ in range(w.rnd.randrange(4)):
        w.put([use()], [w.rnd.choice(known)], Effects(w.rnd.random() < 0.3, False, Access.NONE))
    w.insts.append(Inst(Op(0), tuple(w.rnd.sample(known, 2)), Signature((use(), use())), Kind.RET))
    return Function(w.insts, w.vregs)


# *** each pair of instructions ***
def _operands(inst: Inst) -> tuple[set[int], set[int]]:
    reads, writes = set(), set()
    for v, spec in zip(inst.vregs, inst.signature.operands):
        (writes if spec.is_def else reads).add(v)
    return reads, writes


def _fixed(inst: Inst) -> bool:
    return any(spec.constraint is Constraint.FIXED for spec in inst.signature.operands)


def _same_bytes(insts: Sequence[Inst], i: int, j: int) -> bool:
    """Whether accesses i < j of a block may touch the same bytes."""
    a, b = insts[i].opcode, insts[j].opcode
    if Access.FENCE in (a.effects.access, b.effects.access):
        return True
    if a.storage is not None and b.storage is not None and a.storage != b.storage:
        return False
    at_a = [insts[i].vregs[k] for k in a.registers]
    at_b = [insts[j].vregs[k] for k in b.registers]
    changed = {v for k in range(i, j) for v in _operands(insts[k])[1]}
    if a.form is None or a.form != b.form or at_a != at_b or changed & set(at_a):
        return True
    return a.first < b.first + b.size and b.first < a.first + a.size


def _must_follow(insts: Sequence[Inst], i: int, j: int) -> str | None:
    """Why instruction j of a block has to come after instruction i, which stands before it."""
    (reads, writes), (reads_j, writes_j) = _operands(insts[i]), _operands(insts[j])
    if writes & (reads_j | writes_j) or reads & writes_j:
        return "registers"
    if _fixed(insts[i]) and _fixed(insts[j]):
        return "fixed registers"
    accesses = {insts[i].opcode.effects.access, insts[j].opcode.effects.access}
    if Access.NONE not in accesses and accesses != {Access.READ} and _same_bytes(insts, i, j):
        return "memory"
    return None


def _flag_sources(insts: Sequence[Inst]) -> list[tuple[Inst | None, Inst | None]]:
    """(reader, writer of what it reads) in a block; the reader behind the block is None."""
    sources: list[tuple[Inst | None, Inst | None]] = []
    writer = None
    for inst in insts:
        if inst.opcode.effects.reads_flags:
            sources.append((inst, writer))
        if inst.opcode.effects.writes_flags:
            writer = inst
    return [*sources, (None, writer)]


def blocks(insts: Sequence[Inst]) -> list[tuple[int, int]]:
    """First instruction and end of each block."""
    cuts = {0, len(insts)}
    for i, inst in enumerate(insts):
        if inst.kind is Kind.LABEL:
            cuts.add(i)
        elif inst.kind >= Kind.JUMP:
            cuts.add(i + 1)
    ordered = sorted(cuts)
    return list(zip(ordered, ordered[1:]))


def broken(before: Sequence[Inst], after: Sequence[Inst]) -> list[str]:
    """What is wrong with ``after`` as an order of ``before``."""
    if len(before) != len(after):
        return [f"{len(after)} instructions instead of {len(before)}"]
    found = []
    for start, end in blocks(before):
        old, new = before[start:end], after[start:end]
        if sorted(map(id, old)) != sorted(map(id, new)):
            return ["an instruction left its block"]
        place = {id(inst): k for k, inst in enumerate(new)}
        for j in range(len(old)):
            for i in range(j):
                if place[id(old[i])] > place[id(old[j])] and (why := _must_follow(old, i, j)):
                    found.append(why)
        if {(id(r), id(w)) for r, w in _flag_sources(old)} != {(id(r), id(w)) for r, w in _flag_sources(new)}:
            found.append("flags")
        found += ["a label or a jump moved" for a, b in zip(old, new) if a is not b and a.kind is not Kind.OP]
    if before[0] is not after[0]:
        found.append("the arguments came late")
    return found


# *** pressure ***
def live_out(insts: Sequence[Inst]) -> list[set[int]]:
    """The registers read behind each instruction, by repeated passes over all of them."""
    labels = {inst.target: i for i, inst in enumerate(insts) if inst.kind is Kind.LABEL}
    live: list[set[int]] = [set() for _ in range(len(insts) + 1)]  # before each instruction
    while True:
        old = [set(s) for s in live]
        behind = []
        for i in range(len(insts) - 1, -1, -1):
            inst = insts[i]
            out = set() if inst.kind in (Kind.JUMP, Kind.RET) else set(live[i + 1])
            if inst.kind in (Kind.JUMP, Kind.BRANCH):
                out |= live[labels[inst.target]]
            reads, writes = _operands(inst)
            live[i] = (out - writes) | reads
            behind.append(out)
        if live == old:
            return behind[::-1]


def most_alive(function: Function, insts: Sequence[Inst], start: int, end: int) -> list[int]:
    """The most values of each class alive at once in a block, those that only pass through it left out."""
    touched = {v for inst in insts[start:end] for v in inst.vregs}
    most = [0] * len(ENV.classes)
    for inst, live in zip(insts[start:end], live_out(insts)[start:end]):
        for cls in range(len(most)):
            alive = (live | _operands(inst)[1]) & touched
            most[cls] = max(most[cls], sum(function.vregs[v].cls == cls for v in alive))
    return most


# *** execution ***
def _mixed(*parts: object) -> int:
    """A number that depends on all parts, the same in every process."""
    return zlib.crc32(repr(parts).encode())


class _Machine:
    def __init__(self) -> None:
        self.values: dict[int, int] = {}
        self.memory = {name: [_mixed(name, i) & 0xFF for i in range(SPAN)] for name in STORAGES}
        self.flags = 1
        self.trace: list[object] = []
        self.seen: dict[int, list[object]] = {}  # by opcode: what instructions without a result saw, in any order

    def step(self, inst: Inst) -> None:
        op, specs = inst.opcode, inst.signature.operands
        reads = [self.values[v] for v, spec in zip(inst.vregs, specs) if not spec.is_def]
        seen: tuple[object, ...] = (op.number, *reads)
        if op.effects.reads_flags:
            seen += (self.flags,)
        access = op.effects.access
        if access in (Access.READ, Access.WRITE):
            cells = self.memory[op.where]
            at = sum(self.values[inst.vregs[k]] for k in op.registers) * (4 if op.form == "scaled" else 1)
            at += op.first + {"plain": 0, "scaled": 4, None: 8}[op.form]
            bytes_ = [(at + k) % SPAN for k in range(op.size)]
            if access is Access.READ:
                seen += tuple(cells[k] for k in bytes_)
            else:
                for k in bytes_:
                    cells[k] = _mixed(seen, k) & 0xFF
        if access is Access.FENCE:
            self.seen.setdefault(op.number, []).append(repr(self.memory))
        for n, v in enumerate(v for v, spec in zip(inst.vregs, specs) if spec.is_def):
            self.values[v] = _mixed(seen, n) & 0xFFFF
        if op.effects.writes_flags:
            self.flags = _mixed(seen, "flags") & 0xFF
        if not any(spec.is_def for spec in specs):
            self.seen.setdefault(op.number, []).append(seen)


def execute(insts: Sequence[Inst], rounds: int = 3) -> list[object]:
    """What the function shows: values that instructions without a result read, memory, results, flags at jumps."""
    machine, labels = _Machine(), {inst.target: i for i, inst in enumerate(insts) if inst.kind is Kind.LABEL}
    pc = 0
    while pc < len(insts):
        inst = insts[pc]
        pc += 1
        if inst.kind is Kind.BRANCH:
            machine.trace.append(machine.flags)
            rounds -= 1
            if rounds and machine.flags % 3:
                pc = labels[inst.target]
        elif inst.kind is Kind.RET:
            machine.trace.append([machine.values[v] for v in inst.vregs])
            break
        elif inst.kind is not Kind.LABEL:
            machine.step(inst)
    return [*machine.trace, machine.seen, machine.memory]
