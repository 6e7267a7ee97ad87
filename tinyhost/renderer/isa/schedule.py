"""Reorders instructions inside basic blocks so that fewer values are alive at once.

Takes the allocator's instructions (``Inst`` over virtual registers) and what a target knows of each (``Facts``: flags,
memory); gives the same instructions, each block a permutation of itself. Nothing crosses a label or a jump, and no
instruction set is known here.

Processors run far ahead of what waits, so the order inside a block costs little by itself; a value without a register
costs a store and a load. So only blocks are touched in which more values are read and written than there are registers,
and only where that helps: the order that selection gives (depth first) stays otherwise. Dependences are exact:
registers, which are redefined; flags; memory by storage, and by bytes where two addresses differ in the displacement
only.

The order: what frees registers comes as soon as it can; then what works on values of the block so that another one can
follow at once; the rest (loads, constants, addresses) as late as that allows. Each in the order it had, so the result
is deterministic.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from enum import IntEnum
from heapq import heappop, heappush
from typing import NamedTuple

from tinyhost.renderer.isa.regalloc import Inst, Kind, MachineEnv, VReg
from tinyhost.renderer.isa.regalloc.machine import Machine, Plan, machine_of, plan_of

SHORT_BLOCK = 24  # instructions below which a block is left as it is
MIN_GAIN = 4  # by how much the overflow (values without a register, summed over the block) must fall,
MOST_LEFT = 0.9  # and what part of it may be left


class Access(IntEnum):
    """What an instruction does to memory. A FENCE keeps every other access on its side."""

    NONE = 0
    READ = 1
    WRITE = 2
    FENCE = 3


class Effects(NamedTuple):
    """What an instruction does besides reading and writing registers."""

    reads_flags: bool = False
    writes_flags: bool = False
    access: Access = Access.NONE


class Place(NamedTuple):
    """Where an instruction accesses memory.

    Attributes:
        storage: places of different storages are different memory; None may be any of them.
        registers, form: operand numbers of the registers of the address, and what else it depends on but the
            displacement. ``form`` None: ordered with all accesses of its storage.
        first, size: displacement and bytes.
    """

    storage: Hashable
    registers: tuple[int, ...] = ()
    form: Hashable = None
    first: int = 0
    size: int = 0


class Facts(ABC):
    """What a target says of its instructions."""

    @abstractmethod
    def effects(self, inst: Inst) -> Effects:
        """Flags and memory."""

    @abstractmethod
    def place(self, inst: Inst) -> Place:
        """The memory of an instruction that accesses some."""


def schedule(insts: list[Inst], vregs: Sequence[VReg], env: MachineEnv, facts: Facts) -> list[Inst]:
    """``insts`` with the blocks reordered that need more registers than ``env`` has."""
    blocks = split_blocks(insts)
    machine = machine_of(env)
    limits = [len(registers) for registers in machine.class_regs]
    crowded = [_is_crowded(insts[start:end], vregs, limits) for start, end in blocks]
    if not any(crowded):
        return insts
    plans = [plan_of(inst, machine) for inst in insts]
    after = live_after(insts, plans, blocks)
    out: list[Inst] | None = None
    for (first, last), live, many in zip(blocks, after, crowded):
        if not many:
            continue
        start, end, live = _movable(insts, plans, first, last, live)
        block = Block(insts[start:end], plans[start:end], live, vregs, machine)
        # flags may be read behind the block unless what was kept at its end makes new ones
        kept = facts.effects(insts[end]) if last - end == 2 else Effects()
        order = block.improve(facts, kept.reads_flags or not kept.writes_flags)
        if order is not None:
            if out is None:
                out = list(insts)
            out[start:end] = [insts[start + i] for i in order]
    return insts if out is None else out


def _is_crowded(insts: Sequence[Inst], vregs: Sequence[VReg], limits: list[int]) -> bool:
    """Whether a block is long enough, and names more registers of a class than there are."""
    if len(insts) < SHORT_BLOCK:
        return False
    named = [0] * len(limits)
    for v in set().union(*[inst.vregs for inst in insts]):
        named[vregs[v].cls] += 1
    return any(n > limit for n, limit in zip(named, limits))


# *** blocks and what is live behind them ***
def split_blocks(insts: Sequence[Inst]) -> list[tuple[int, int]]:
    """First instruction and end of each basic block."""
    starts, boundary = [], True
    for i, inst in enumerate(insts):
        kind = inst.kind
        if boundary or kind is Kind.LABEL:
            starts.append(i)
        boundary = kind >= Kind.JUMP
    return list(zip(starts, [*starts[1:], len(insts)]))


def live_after(insts: Sequence[Inst], plans: Sequence[Plan], blocks: list[tuple[int, int]]) -> list[set[int]]:
    """The registers whose values are read after each block."""
    labels = {insts[start].target: b for b, (start, _) in enumerate(blocks) if insts[start].kind is Kind.LABEL}
    exposed: list[set[int]] = []
    killed: list[set[int]] = []
    follow: list[list[int]] = []
    for b, (start, end) in enumerate(blocks):
        reads: set[int] = set()
        writes: set[int] = set()
        for inst, plan in zip(insts[start:end], plans[start:end]):
            vregs = inst.vregs
            for k in plan.uses:
                if vregs[k] not in writes:
                    reads.add(vregs[k])
            for k in plan.defs:
                writes.add(vregs[k])
        exposed.append(reads)
        killed.append(writes)
        last = insts[end - 1]
        next_blocks = [labels[last.target]] if last.kind in (Kind.JUMP, Kind.BRANCH) else []
        if last.kind not in (Kind.JUMP, Kind.RET) and b + 1 < len(blocks):
            next_blocks.append(b + 1)
        follow.append(next_blocks)
    before = [set(reads) for reads in exposed]
    after: list[set[int]] = [set() for _ in blocks]
    changed = True
    while changed:
        changed = False
        for b in range(len(blocks) - 1, -1, -1):
            live = after[b].union(*[before[n] for n in follow[b]])
            if len(live) > len(after[b]):
                after[b] = live
                before[b] = exposed[b] | (live - killed[b])
                changed = True
    return after


def _movable(
    insts: Sequence[Inst], plans: Sequence[Plan], start: int, end: int, live: set[int]
) -> tuple[int, int, set[int]]:
    """The part of a block whose order may change, and what is live behind it.

    Labels and jumps stay, so does the instruction in front of a conditional jump (a comparison and its jump are one
    operation to many decoders), and what takes over registers from the caller.
    """
    if insts[start].kind is Kind.LABEL:
        start += 1
    if start == 0 and plans[0].fixed and not plans[0].uses:
        start = 1
    kept = 1 if insts[end - 1].kind >= Kind.JUMP else 0
    if insts[end - 1].kind is Kind.BRANCH and end - start > 1:
        kept = 2
    for i in range(end - 1, end - 1 - kept, -1):
        vregs, plan = insts[i].vregs, plans[i]
        live = (live - {vregs[k] for k in plan.defs}) | {vregs[k] for k in plan.uses}
    return start, end - kept, live


# *** one block ***
class Block:
    """The values of a block and their readers.

    A value is a virtual register between two definitions. ``values[i]`` are those of the operands of instruction i,
    ``reads[i]`` and ``defs[i]`` the ones it reads and makes, none twice. ``count`` is the number of readers, ``kept``
    whether a value is read behind the block.
    """

    def __init__(
        self, insts: Sequence[Inst], plans: Sequence[Plan], live: set[int], vregs: Sequence[VReg], machine: Machine
    ) -> None:
        self.insts, self.plans = insts, plans
        self.limits = [len(regs) for regs in machine.class_regs]
        self.cls: list[int] = []
        self.registers: list[int] = []
        self.kept: list[bool] = []
        self.values: list[list[int]] = []
        self.reads: list[list[int]] = []
        self.defs: list[list[int]] = []
        self._number(live, vregs)

    def _number(self, live: set[int], vregs: Sequence[VReg]) -> None:
        current: dict[int, int] = {}
        registers = self.registers
        for inst, plan in zip(self.insts, self.plans):
            names = inst.vregs
            operands = [-1] * plan.arity
            read: list[int] = []
            for k in plan.uses:
                v = names[k]
                value = current.get(v)
                if value is None:
                    value = current[v] = len(registers)
                    registers.append(v)
                operands[k] = value
                if value not in read:
                    read.append(value)
            made = []
            for k in plan.defs:
                current[names[k]] = operands[k] = len(registers)
                made.append(len(registers))
                registers.append(names[k])
            self.values.append(operands)
            self.reads.append(read)
            self.defs.append(made)
        self.cls = [vregs[v].cls for v in registers]
        self.kept = [False] * len(registers)
        for v, value in current.items():
            self.kept[value] = v in live
        self.count = [0] * len(registers)
        for read in self.reads:
            for value in read:
                self.count[value] += 1

    def overflow(self, order: Sequence[int]) -> tuple[int, list[int]]:
        """Values without a register, summed over the block in this order; the most values alive, by class."""
        left, kept, cls, limits = list(self.count), self.kept, self.cls, self.limits
        alive = [0] * len(limits)
        made = {value for values in self.defs for value in values}
        for value in range(len(cls)):
            if value not in made:
                alive[cls[value]] += 1
        most, total = list(alive), 0
        for i in order:
            for value in self.reads[i]:
                left[value] -= 1
                if not left[value] and not kept[value]:
                    alive[cls[value]] -= 1
            for value in self.defs[i]:
                c = cls[value]
                alive[c] += 1
                if alive[c] > most[c]:
                    most[c] = alive[c]
            for c, limit in enumerate(limits):
                if alive[c] > limit:
                    total += alive[c] - limit
            for value in self.defs[i]:
                if not left[value] and not kept[value]:
                    alive[cls[value]] -= 1
        return total, most

    def improve(self, facts: Facts, flags_live: bool) -> list[int] | None:
        """An order that needs fewer registers; None where the present one has enough, or none better was found."""
        overflow, most = self.overflow(range(len(self.insts)))
        if overflow < MIN_GAIN or not self._has_room(most):
            return None
        after = Dependences(self, facts, flags_live).after
        best: list[int] | None = None
        accepted = min(overflow - MIN_GAIN, int(overflow * MOST_LEFT))
        for makers_last in (True, False):
            order = self.arrange(after, makers_last)
            left, reached = self.overflow(order)
            if left <= accepted and all(r <= max(m, limit) for r, m, limit in zip(reached, most, self.limits)):
                best, accepted = order, left - MIN_GAIN
            if not left:
                break
        return best

    def _has_room(self, most: list[int]) -> bool:
        """Whether a class that is short of registers holds many values that do not live through the whole block."""
        first, last = [0] * len(most), [0] * len(most)
        made = {value for values in self.defs for value in values}
        for value, c in enumerate(self.cls):
            if value not in made:
                first[c] += 1
            if self.kept[value]:
                last[c] += 1
        return any(m > limit and 3 * (m - max(f, n)) >= limit for m, f, n, limit in zip(most, first, last, self.limits))

    def arrange(self, after: list[list[int]], makers_last: bool) -> list[int]:
        """An order that respects ``after`` (the instructions that wait for each), by need of registers.

        First what frees at least as many registers as it takes; then what lets another instruction follow at once,
        with ``makers_last`` only if it works on values of the block; then the rest.
        """
        return _Arrangement(self, after, makers_last).run()


class _Arrangement:
    """The state of ordering one block: what is ready, by rank, and what each instruction still waits for."""

    def __init__(self, block: Block, after: list[list[int]], makers_last: bool) -> None:
        self.reads, self.defs, self.kept = block.reads, block.defs, block.kept
        self.after = after
        self.left = list(block.count)
        self.readers = [0] * len(self.left)  # sum of the numbers of the readers that are left
        for i, values in enumerate(self.reads):
            for value in values:
                self.readers[value] += i
        self.waiting = [0] * len(after)
        self.before = [0] * len(after)  # sum of the numbers of the instructions that it waits for
        for i, successors in enumerate(after):
            for j in successors:
                self.waiting[j] += 1
                self.before[j] += i
        self.maker = [makers_last] * len(after)
        if makers_last:
            made = {value for values in self.defs for value in values}
            self.maker = [made.isdisjoint(values) for values in self.reads]
        self.ready: tuple[list[int], list[int], list[int]] = ([], [], [])
        self.done = [False] * len(after)

    def run(self) -> list[int]:
        """The order."""
        order: list[int] = []
        for i, n in enumerate(self.waiting):
            if not n:
                self._offer(i)
        for _ in self.waiting:
            i = self._take()
            order.append(i)
            for value in self.reads[i]:
                self._read(value, i)
            for j in self.after[i]:
                self._release(j, i)
        return order

    def _take(self) -> int:
        done = self.done
        for heap in self.ready:
            while heap:
                i = heappop(heap)
                if not done[i]:
                    done[i] = True
                    return i
        raise AssertionError("dependences lead backwards only, so something is ready while something is left")

    def _offer(self, i: int) -> None:
        heappush(self.ready[self._rank(i)], i)

    def _rank(self, i: int) -> int:
        left, kept = self.left, self.kept
        freed = 0
        for value in self.reads[i]:
            if left[value] == 1 and not kept[value]:
                freed += 1
        if freed:
            for value in self.defs[i]:
                if left[value] or kept[value]:
                    freed -= 1
            if freed >= 0:
                return 0
        if not self.maker[i]:
            waiting = self.waiting
            for j in self.after[i]:
                if waiting[j] == 1:
                    return 1
        return 2

    def _read(self, value: int, i: int) -> None:
        """Instruction i has read ``value``: its last reader may free it now."""
        self.left[value] -= 1
        self.readers[value] -= i
        if self.left[value] == 1:
            last = self.readers[value]
            if not self.waiting[last] and not self.done[last]:
                self._offer(last)

    def _release(self, j: int, i: int) -> None:
        """Instruction j no longer waits for i: it is ready, or what it still waits for alone is worth more now."""
        self.waiting[j] -= 1
        self.before[j] -= i
        if not self.waiting[j]:
            self._offer(j)
        elif self.waiting[j] == 1:
            alone = self.before[j]
            if not self.waiting[alone] and not self.done[alone]:
                self._offer(alone)


# *** what must stay in order ***
class Dependences:
    """``after[i]``: the instructions of a block that wait for instruction i, each once."""

    def __init__(self, block: Block, facts: Facts, flags_live: bool) -> None:
        self.block = block
        self.after: list[list[int]] = [[] for _ in block.insts]
        effects = [facts.effects(inst) for inst in block.insts]
        self._registers()
        self._constrained()
        self._flags(effects, flags_live)
        accesses = [i for i, effect in enumerate(effects) if effect.access]
        if any(effects[i].access >= Access.WRITE for i in accesses):
            self._memory(accesses, effects, facts)
        self.after = [list(dict.fromkeys(successors)) for successors in self.after]

    def _registers(self) -> None:
        """A value is read behind its definition; a register is redefined behind its value and the readers of that."""
        after, block = self.after, self.block
        made: dict[int, int] = {}
        readers: dict[int, list[int]] = {}
        for i, inst in enumerate(block.insts):
            plan, names = block.plans[i], inst.vregs
            for k in plan.uses:
                v = names[k]
                if v in made:
                    after[made[v]].append(i)
                readers.setdefault(v, []).append(i)
            for k in plan.defs:
                v = names[k]
                if v in made:
                    after[made[v]].append(i)
                for j in readers.pop(v, ()):
                    if j != i:
                        after[j].append(i)
                made[v] = i

    def _constrained(self) -> None:
        """What needs certain registers keeps its order, so that the same register is not asked for twice at a time."""
        last = -1
        for i, plan in enumerate(self.block.plans):
            if not plan.plain:
                if last >= 0:
                    self.after[last].append(i)
                last = i

    def _flags(self, effects: Sequence[Effects], flags_live: bool) -> None:
        """Between flags and their last reader nothing else writes flags.

        What writes flags that nobody reads stays on its side of those that are read.
        """
        gate: list[int] = []  # readers of the last flags that were read
        idle: list[int] = []  # writers since, whose flags nobody reads
        writer, readers = -1, list[int]()
        for i, effect in enumerate(effects):
            if effect.reads_flags:
                readers.append(i)
            if effect.writes_flags:
                gate, idle = self._close_flags(writer, readers, gate, idle, bool(readers))
                writer, readers = i, []
        self._close_flags(writer, readers, gate, idle, flags_live or bool(readers))

    def _close_flags(
        self, writer: int, readers: list[int], gate: list[int], idle: list[int], read: bool
    ) -> tuple[list[int], list[int]]:
        """Order what is known of one writer's flags; gives the next gate and idle writers."""
        after = self.after
        for j in gate:
            if writer > j:
                after[j].append(writer)
        if not read:
            return gate, [*idle, writer] if writer >= 0 else idle
        if writer >= 0:
            for j in idle:
                after[j].append(writer)
            after[writer] += readers
        return readers, []

    def _memory(self, accesses: list[int], effects: Sequence[Effects], facts: Facts) -> None:
        """What may touch bytes that another instruction writes keeps its order."""
        after, block = self.after, self.block
        fences = [i for i in accesses if effects[i].access is Access.FENCE]
        for fence in fences:
            for i in accesses:
                if i != fence:
                    after[min(i, fence)].append(max(i, fence))
        places = {i: facts.place(block.insts[i]) for i in accesses if effects[i].access is not Access.FENCE}
        unknown = any(place.storage is None for place in places.values())
        storages: dict[Hashable, list[int]] = {}
        for i, place in places.items():
            storages.setdefault(None if unknown else place.storage, []).append(i)
        for members in storages.values():
            writes = {i for i in members if effects[i].access is Access.WRITE}
            if writes:
                self._storage(members, writes, places)

    def _storage(self, members: list[int], writes: set[int], places: dict[int, Place]) -> None:
        """Order the accesses of one storage; where only displacements differ, those that share bytes."""
        values = self.block.values
        keys = {(p.storage, p.form, tuple([values[i][k] for k in p.registers])) for i in members if (p := places[i])}
        apart = len(keys) == 1 and next(iter(keys))[1] is not None
        grain = max(places[i].size for i in members) if apart else 0
        lines: dict[int, tuple[list[int], list[int]]] = {}  # last writes and the reads since, by grain
        for i in members:
            place = places[i]
            if apart:
                touched = range(place.first // grain, (place.first + place.size - 1) // grain + 1)
            else:
                touched = range(1)
            for line in touched:
                written, read = lines.setdefault(line, ([], []))
                for j in written:
                    self.after[j].append(i)
                if i in writes:
                    for j in read:
                        self.after[j].append(i)
                    lines[line] = ([i], [])
                else:
                    read.append(i)
