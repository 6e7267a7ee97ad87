"""Step 5: the answer in the caller's terms: physical registers and slot numbers instead of dense ones."""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.slots import Frame
from tinyhost.renderer.isa.regalloc.state import State
from tinyhost.renderer.isa.regalloc.types import Allocation, Edit


def finish(state: State, frame: Frame) -> Allocation:
    """Translate locations and edits, and sum up."""
    pregs = state.machine.pregs
    locations = [tuple([pregs[r] for r in regs]) for regs in state.locations]
    for i, k, v in state.slot_reads:
        operands = list(locations[i])
        operands[k] = ~frame.number[v]
        locations[i] = tuple(operands)
    edits = {i: [_translate(edit, pregs, frame.number) for edit in state.edits[i]] for i in sorted(state.edits)}
    saved = state.used_mask & state.machine.callee_saved
    used = tuple(preg for r, preg in enumerate(pregs) if saved >> r & 1)
    return Allocation(locations, edits, frame.slots, frame.size, frame.align, used)


def _translate(edit: Edit, pregs: list[int], number: dict[int, int]) -> Edit:
    dst, src = edit.dst, edit.src
    return Edit(edit.kind, edit.vreg, pregs[dst] if dst >= 0 else ~number[~dst],
                pregs[src] if src >= 0 else ~number[~src])
