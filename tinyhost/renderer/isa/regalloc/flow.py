"""Step 1: blocks, edges, loops, and where each virtual register is defined.

Reads the instruction list once, front to back. Blocks are numbered in layout order. A loop is the layout span from the
target of a backward edge to the last block that branches back to it; overlapping spans are widened until they nest.
Broken preconditions of the caller are reported here.
"""
from __future__ import annotations

from collections.abc import Hashable

from tinyhost.renderer.isa.regalloc.machine import Machine, Plan, plan_of
from tinyhost.renderer.isa.regalloc.types import AllocationError, Function, Inst, Kind

FAR = 1 << 60  # a position behind every instruction
MAX_DEPTH = 16  # loops nested deeper are allocated like straight code, so that cost stays linear


class Entry:
    """The state every path into a block agrees on: register of each value in one, and whose spill slot is valid.

    A live value without a register is in its slot (or can be rematerialised).
    """

    __slots__ = ("regs", "clean")

    def __init__(self, regs: dict[int, int], clean: set[int]) -> None:
        self.regs, self.clean = regs, clean


class Loop:
    """Blocks ``head..last``, instructions ``first..end - 1``; loops nest."""

    __slots__ = ("head", "last", "first", "end", "parent", "depth", "single_entry", "peak", "own_peak", "used",
                 "through", "entry")

    def __init__(self, head: int, last: int, classes: int) -> None:
        self.head, self.last = head, last
        self.first = self.end = 0
        self.parent: Loop | None = None
        self.depth = 1
        self.single_entry = True  # every path into the span falls into the head
        self.peak = [0] * classes  # most values live at once
        self.own_peak = [0] * classes  # the same outside of inner loops
        self.used: dict[int, int] = {}  # live into the head and read inside: first position of a read
        self.through = [0] * classes  # live into the head and not read inside: how many
        self.entry: Entry | None = None


class Flow:
    """Blocks and edges. ``preds`` are blocks; ``target[b]`` is the block jumped to, or -1."""

    __slots__ = ("plans", "start", "end", "target", "falls", "preds", "loops", "loop_of", "first_def", "last_def",
                 "defs_in", "exposed", "targeted_from_behind")

    def __init__(self) -> None:
        self.plans: list[Plan] = []
        self.start: list[int] = []
        self.end: list[int] = []
        self.target: list[int] = []
        self.falls: list[bool] = []
        self.preds: list[list[int]] = []
        self.loops: list[Loop] = []
        self.loop_of: list[Loop | None] = []
        self.targeted_from_behind: set[int] = set()  # blocks with a backward edge into them
        self.first_def: list[int] = []
        self.last_def: list[int] = []
        self.defs_in: list[set[int]] = []
        self.exposed: list[tuple[int, int]] = []  # (vreg, block) read before any definition in the block


def analyse_flow(function: Function, machine: Machine) -> Flow:
    """Blocks, edges and loops of ``function``.

    Raises:
        AllocationError: malformed instructions, unknown or doubled labels, unusable rematerialisation.
    """
    flow = Flow()
    _split_blocks(function.insts, flow)
    _connect(function.insts, flow)
    _find_loops(flow, len(machine.class_masks))
    _scan_operands(function, machine, flow)
    _check_remat(function, flow)
    return flow


def describe(insts: list[Inst], index: int) -> str:
    """An instruction in an error message."""
    return f"instruction {index} ({insts[index]!r})"


def _split_blocks(insts: list[Inst], flow: Flow) -> None:
    starts = []
    boundary = True
    for i, inst in enumerate(insts):
        kind = inst.kind
        if boundary or kind is Kind.LABEL:
            starts.append(i)
        boundary = kind >= Kind.JUMP
        if Kind.LABEL <= kind <= Kind.BRANCH and (inst.vregs or inst.signature.clobbers):
            raise AllocationError(f"{describe(insts, i)} has operands; labels, jumps and branches take none: "
                                  f"compare in an instruction before the branch")
    flow.start = starts
    flow.end = [*starts[1:], len(insts)] if starts else []


def _connect(insts: list[Inst], flow: Flow) -> None:
    labels: dict[Hashable, int] = {}
    for block, first in enumerate(flow.start):
        if insts[first].kind is Kind.LABEL:
            if insts[first].target in labels:
                raise AllocationError(f"{describe(insts, first)}: the label stands twice")
            labels[insts[first].target] = block
    blocks = len(flow.start)
    flow.preds = [[] for _ in range(blocks)]
    for block, end in enumerate(flow.end):
        inst = insts[end - 1]
        target, falls = -1, inst.kind not in (Kind.JUMP, Kind.RET) and block + 1 < blocks
        if inst.kind is Kind.JUMP or inst.kind is Kind.BRANCH:
            if inst.target not in labels:
                raise AllocationError(f"{describe(insts, end - 1)}: no label {inst.target!r} in the function")
            target = labels[inst.target]
            flow.preds[target].append(block)
        if falls and target != block + 1:
            flow.preds[block + 1].append(block)
        flow.target.append(target)
        flow.falls.append(falls)


def _find_loops(flow: Flow, classes: int) -> None:
    spans: dict[int, int] = {}
    for block, target in enumerate(flow.target):
        if 0 <= target <= block:
            spans[target] = max(spans.get(target, target), block)
    flow.targeted_from_behind = set(spans)
    stack: list[Loop] = []
    flow.loop_of = [None] * len(flow.start)
    for head in sorted(spans):
        loop = Loop(head, spans[head], classes)
        while stack and stack[-1].last < head:
            stack.pop()
        for outer in stack:  # an overlap: the outer span grows until it holds the inner one
            outer.last = max(outer.last, loop.last)
        if len(stack) == MAX_DEPTH:
            continue
        if stack:
            loop.parent, loop.depth = stack[-1], stack[-1].depth + 1
        stack.append(loop)
        flow.loops.append(loop)
    for loop in flow.loops:
        loop.first, loop.end = flow.start[loop.head], flow.end[loop.last]
        flow.loop_of[loop.head:loop.last + 1] = [loop] * (loop.last + 1 - loop.head)
    _mark_side_entries(flow)


def _mark_side_entries(flow: Flow) -> None:
    for block, preds in enumerate(flow.preds):
        if flow.loop_of[block] is None:
            continue
        for pred in preds:
            loop = flow.loop_of[block]
            while loop is not None and not loop.head <= pred <= loop.last:
                falls_in = block == loop.head and pred == block - 1 and flow.target[pred] != block
                if not falls_in:
                    loop.single_entry = False
                loop = loop.parent


def _scan_operands(function: Function, machine: Machine, flow: Flow) -> None:
    insts, count = function.insts, len(function.vregs)
    cls = [vreg.cls for vreg in function.vregs]
    first_def, last_def, block_of_def, block_of_read = [-1] * count, [-1] * count, [-1] * count, [-1] * count
    plans, exposed, copy = flow.plans, flow.exposed, Kind.COPY
    for block, (start, end) in enumerate(zip(flow.start, flow.end)):
        defined: set[int] = set()
        for i in range(start, end):
            inst = insts[i]
            plan = inst.signature.analysis
            if plan is None or plan.machine is not machine:
                plan = _plan(insts, i, machine)
            plans.append(plan)
            vregs = inst.vregs
            if len(vregs) != plan.arity:
                raise AllocationError(f"{describe(insts, i)} names {len(vregs)} virtual registers, its signature has "
                                      f"{plan.arity} operands")
            try:
                for k in plan.uses:
                    v = vregs[k]
                    if block_of_def[v] != block and block_of_read[v] != block:
                        block_of_read[v] = block
                        exposed.append((v, block))
                for k in plan.defs:
                    v = vregs[k]
                    if first_def[v] < 0:
                        first_def[v] = i
                    last_def[v] = i
                    block_of_def[v] = block
                    defined.add(v)
            except IndexError:
                raise AllocationError(f"{describe(insts, i)} names a virtual register that Function.vregs (length "
                                      f"{count}) does not have") from None
            tie = plan.tie
            if (cls[vregs[tie[0]]] != cls[vregs[tie[1]]] if tie is not None else plan.careful) or inst.kind is copy:
                _check_operands(insts, i, plan, cls)
        flow.defs_in.append(defined)
    flow.first_def, flow.last_def = first_def, last_def


def _plan(insts: list[Inst], i: int, machine: Machine) -> Plan:
    try:
        return plan_of(insts[i], machine)
    except AllocationError as error:
        raise AllocationError(f"{describe(insts, i)}: {error}") from None


def _check_operands(insts: list[Inst], i: int, plan: Plan, cls: list[int]) -> None:
    """Classes of tied, fixed and copied operands, and doubled definitions."""
    inst, machine = insts[i], plan.machine
    vregs, classes = inst.vregs, machine.env.classes
    for k, j in plan.tied.items():
        if cls[vregs[k]] != cls[vregs[j]]:
            raise AllocationError(f"{describe(insts, i)}: operand {k} of class {classes[cls[vregs[k]]].name} reuses "
                                  f"operand {j} of class {classes[cls[vregs[j]]].name}")
    for k, mask in [*((k, 1 << r) for k, r in plan.fixed.items()), *plan.sets.items()]:
        if not mask & machine.class_masks[cls[vregs[k]]]:
            raise AllocationError(f"{describe(insts, i)}: the registers allowed for operand {k} are not of its class "
                                  f"{classes[cls[vregs[k]]].name}")
    if inst.kind is Kind.COPY and (len(plan.uses), len(plan.defs)) != (1, 1):
        raise AllocationError(f"{describe(insts, i)}: a COPY has one definition and one read operand")
    if inst.kind is Kind.COPY and cls[vregs[0]] != cls[vregs[1]]:
        raise AllocationError(f"{describe(insts, i)}: a COPY stays in one class; use an ordinary instruction to cross")
    defined = [vregs[k] for k in plan.defs]
    if len(set(defined)) != len(defined):
        raise AllocationError(f"{describe(insts, i)} defines one virtual register twice")


def _check_remat(function: Function, flow: Flow) -> None:
    for v, vreg in enumerate(function.vregs):
        first = flow.first_def[v]
        if not vreg.remat or first < 0:
            continue
        if first != flow.last_def[v]:
            raise AllocationError(f"v{v} is to be rematerialised but defined at instructions {first} and "
                                  f"{flow.last_def[v]}; it may have one definition")
        if flow.plans[first].arity != 1 or not flow.plans[first].plain or function.insts[first].kind is not Kind.OP:
            raise AllocationError(f"v{v} is to be rematerialised, but {describe(function.insts, first)} has other "
                                  f"operands, constraints or clobbers")
