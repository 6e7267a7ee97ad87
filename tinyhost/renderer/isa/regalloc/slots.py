"""Step 4: numbers and frame offsets for spill slots.

Values that are never live at the same position share a slot: ranges are the hulls from first to last live position, so
two hulls that do not meet cannot hold live values at once. Slots of one size form a pool, served in order of range
starts. Larger slots lie lower in the frame, which keeps every slot aligned without gaps.
"""
from __future__ import annotations

from heapq import heappop, heappush

from tinyhost.renderer.isa.regalloc.state import State
from tinyhost.renderer.isa.regalloc.types import SpillSlot


class Frame:
    """Slot number of each spilled value, and the slots."""

    __slots__ = ("number", "slots", "size", "align")

    def __init__(self) -> None:
        self.number: dict[int, int] = {}
        self.slots: list[SpillSlot] = []
        self.size = 0
        self.align = 1


def assign_slots(state: State) -> Frame:
    """Give every spilled value a slot of its size."""
    frame = Frame()
    sizes: list[int] = []
    pools: dict[int, list[tuple[int, int]]] = {}  # size -> heap of (last position, slot)
    for low, high, v, size in sorted(_ranges(state)):
        pool = pools.setdefault(size, [])
        if pool and pool[0][0] < low:
            slot = heappop(pool)[1]
        else:
            slot = len(sizes)
            sizes.append(size)
        heappush(pool, (high, slot))
        frame.number[v] = slot
    _lay_out(frame, sizes, state.machine.env.max_align)
    return frame


def _ranges(state: State) -> list[tuple[int, int, int, int]]:
    live, vregs, cls_of = state.live, state.function.vregs, state.cls
    ranges = []
    for v in state.spilled:
        if v < len(vregs):
            ranges.append((live.low[v], live.high[v], v, vregs[v].size))
        else:  # the slot that breaks cycles of moves in one class
            widest = max(vreg.size for vreg, cls in zip(vregs, cls_of) if cls == v - len(vregs))
            ranges.append((0, len(state.function.insts), v, widest))
    return ranges


def _lay_out(frame: Frame, sizes: list[int], max_align: int) -> None:
    offsets = [0] * len(sizes)
    for slot in sorted(range(len(sizes)), key=lambda slot: -sizes[slot]):
        align = min(sizes[slot] & -sizes[slot], max_align)
        frame.align = max(frame.align, align)
        frame.size = -(-frame.size // align) * align
        offsets[slot] = frame.size
        frame.size += sizes[slot]
    frame.size = -(-frame.size // frame.align) * frame.align
    frame.slots = [SpillSlot(offset, size) for offset, size in zip(offsets, sizes)]
