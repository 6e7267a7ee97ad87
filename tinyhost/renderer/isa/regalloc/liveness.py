"""Step 2: which values are live where, and where each is read next.

Live-in sets come from walking backwards from every read that its block does not define (cost: the size of the answer).
One backward pass over the instructions then yields, per operand, the position of the next read of its virtual register
in layout order (``~position`` when the value dies here), the pressure per loop, and hints for choosing registers.
"""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.flow import FAR, Flow, Loop, describe
from tinyhost.renderer.isa.regalloc.machine import Plan
from tinyhost.renderer.isa.regalloc.types import AllocationError, Function, Kind


class Liveness:
    """What the assignment reads; lists are indexed by virtual register, block or instruction.

    ``low``/``high``: first and last position where the register may be live. ``next_reads[i]`` is parallel to the
    operands of instruction i. ``partner[v]``: a register whose place v should take (copies, ties), or -1.
    ``wanted[v]``: the register a FIXED operand will ask for, or -1. ``allowed[v]``: mask of what all SET operands
    admit, 0 if nothing is asked. ``reserved``: (2 * position + late, mask) of registers taken by constraints.
    """

    __slots__ = ("live_in", "low", "high", "next_reads", "partner", "wanted", "allowed", "reserved")

    def __init__(self, function: Function, flow: Flow) -> None:
        count = len(function.vregs)
        self.live_in: list[set[int]] = [set() for _ in flow.start]
        self.low = list(flow.first_def)
        self.high = [-1] * count
        self.next_reads: list[list[int]] = [[]] * len(function.insts)
        self.partner = [-1] * count
        self.wanted = [-1] * count
        self.allowed = [0] * count
        self.reserved: list[tuple[int, int]] = []


def analyse_liveness(function: Function, flow: Flow, class_count: int) -> Liveness:
    """Live-in sets, next reads, pressure (written into ``flow.loops``) and hints.

    Raises:
        AllocationError: a read that no definition reaches on some path from the entry.
    """
    live = Liveness(function, flow)
    _walk_exposed_reads(function, flow, live)
    _scan_backwards(function, flow, live, class_count)
    _sum_up_loops(flow)
    return live


def _walk_exposed_reads(function: Function, flow: Flow, live: Liveness) -> None:
    live_in, low, high = live.live_in, live.low, live.high
    preds, defs_in, start, end = flow.preds, flow.defs_in, flow.start, flow.end
    for v, block in flow.exposed:
        stack = [block]
        while stack:
            block = stack.pop()
            if v in live_in[block]:
                continue
            if block == 0:
                raise AllocationError(_undefined(function, flow, v))
            live_in[block].add(v)
            if start[block] < low[v]:
                low[v] = start[block]
            for pred in preds[block]:
                if end[pred] > high[v]:
                    high[v] = end[pred]
                if v not in defs_in[pred]:
                    stack.append(pred)


def _undefined(function: Function, flow: Flow, v: int) -> str:
    for i, inst in enumerate(function.insts):
        if any(inst.vregs[k] == v for k in flow.plans[i].uses):
            return (f"v{v} is read by {describe(function.insts, i)} before it is defined on some path from the entry; "
                    f"define it on every path (arguments: FIXED definitions of the first instruction)")
    raise AssertionError(f"v{v} is live at the entry and never read")


def _scan_backwards(function: Function, flow: Flow, live: Liveness, class_count: int) -> None:
    cls = [vreg.cls for vreg in function.vregs]
    next_read = [FAR] * len(cls)
    heads = {loop.head: loop for loop in flow.loops}
    for block in range(len(flow.start) - 1, -1, -1):
        current = _live_out(flow, live, block)
        counts = [0] * class_count
        for v in current:
            counts[cls[v]] += 1
        peak = _scan_block(function, flow, live, block, current, counts, cls, next_read)
        loop = flow.loop_of[block]
        if loop is not None:
            loop.own_peak = [max(pair) for pair in zip(loop.own_peak, peak)]
        if block in heads:
            _note_loop_reads(heads[block], live.live_in[block], cls, next_read)
    live.reserved.reverse()


def _live_out(flow: Flow, live: Liveness, block: int) -> set[int]:
    after: set[int] = set()
    if flow.target[block] >= 0:
        after |= live.live_in[flow.target[block]]
    if flow.falls[block]:
        after |= live.live_in[block + 1]
    return after


def _scan_block(function: Function, flow: Flow, live: Liveness, block: int, current: set[int], counts: list[int],
                cls: list[int], next_read: list[int]) -> list[int]:
    """Fill ``live.next_reads`` for one block; ``current`` is its live-out set and becomes its live-in set."""
    insts, plans, next_reads, high = function.insts, flow.plans, live.next_reads, live.high
    copy = Kind.COPY
    peak = list(counts)
    for i in range(flow.end[block] - 1, flow.start[block] - 1, -1):
        vregs = insts[i].vregs
        if not vregs:
            if plans[i].late_mask:
                live.reserved.append((2 * i + 1, plans[i].late_mask))
            continue
        plan = plans[i]
        reads = [0] * len(vregs)
        for k in plan.defs:
            v = vregs[k]
            c = cls[v]
            if v in current:
                current.remove(v)
                counts[c] -= 1
                reads[k] = next_read[v]
            else:
                reads[k] = ~next_read[v]
                if counts[c] >= peak[c]:
                    peak[c] = counts[c] + 1
                if high[v] < i:
                    high[v] = i
        for k in plan.uses_reversed:
            v = vregs[k]
            if v in current:
                reads[k] = next_read[v]
            else:
                current.add(v)
                reads[k] = ~next_read[v]
                c = cls[v]
                count = counts[c] = counts[c] + 1
                if count > peak[c]:
                    peak[c] = count
                if high[v] < i:
                    high[v] = i
            next_read[v] = i
        next_reads[i] = reads
        is_copy = insts[i].kind is copy
        if is_copy or plan.careful:
            _note_hints(live, plan, vregs, i, is_copy)
    return peak


def _note_hints(live: Liveness, plan: Plan, vregs: tuple[int, ...], i: int, is_copy: bool) -> None:
    """Hints travel backwards from constraints through ties and copies to the value's first definition."""
    partner, wanted, allowed = live.partner, live.wanted, live.allowed
    pairs = [(plan.defs[0], plan.uses[0])] if is_copy else plan.tied.items()
    for k, j in pairs:
        target, source = vregs[k], vregs[j]
        if target != source:
            partner[source] = target if partner[target] < 0 or partner[target] == source else partner[target]
            if wanted[target] >= 0:
                wanted[source] = wanted[target]
    if plan.plain:
        return
    for k, r in plan.fixed.items():
        wanted[vregs[k]] = r
    for k, mask in plan.sets.items():
        v = vregs[k]
        allowed[v] = (allowed[v] & mask) or mask
    if plan.late_mask:
        live.reserved.append((2 * i + 1, plan.late_mask))
    if plan.early_mask:
        live.reserved.append((2 * i, plan.early_mask))


def _note_loop_reads(loop: Loop, live_in: set[int], cls: list[int], next_read: list[int]) -> None:
    end, used, through = loop.end, loop.used, loop.through
    for v in live_in:
        if next_read[v] < end:
            used[v] = next_read[v]
        else:
            through[cls[v]] += 1


def _sum_up_loops(flow: Flow) -> None:
    for loop in flow.loops:
        loop.peak = list(loop.own_peak)
    for loop in reversed(flow.loops):
        if loop.parent is not None:
            loop.parent.peak = [max(pair) for pair in zip(loop.parent.peak, loop.peak)]
