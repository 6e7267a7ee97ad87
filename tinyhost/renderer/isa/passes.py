"""Passes over selected instructions that know no instruction set: dead code, and copies that need not be.

``eliminate`` works on INS nodes before lowering, ``propagate_copies`` on the allocator's instructions after it. Both
keep the order of what remains.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from tinyhost.dtype import dtypes
from tinyhost.renderer.isa.regalloc import Inst, Kind
from tinyhost.uop import UOp


def eliminate(nodes: list[UOp], roots: set[int], results: Callable[[UOp], tuple[int, ...]]) -> list[UOp]:
    """Instructions whose result is read, or that have an effect.

    Args:
        roots: registers that are read after the last instruction, and variables.
        results: registers that an instruction defines; empty for one that is kept for its effect.
    """
    needed = set(roots)
    void = dtypes.void
    kept = []
    for node in reversed(nodes):
        defs = results(node) if node.arg[1] is void or node.arg[0].implicit_results else (node.tag,)
        if defs:
            for tag in defs:
                if tag in needed:
                    break
            else:
                continue
        kept.append(node)
        for s in node.src:
            needed.add(s.tag)
    kept.reverse()
    return kept


def propagate_copies(insts: list[Inst]) -> list[Inst]:
    """Remove copies between a variable and a register that is never live together with another value of it.

    ``t = x`` of a variable x goes when t is only read before x changes; ``x = t`` goes when t is made in the same
    block, x is neither read nor written in between, and t is not read later.
    """
    copies = [i for i, inst in enumerate(insts) if inst.kind is Kind.COPY]
    if not copies:
        return insts
    state = _Positions(insts)
    dropped = {i for i in copies if state.try_copy(i)}
    return [inst for i, inst in enumerate(insts) if i not in dropped] if dropped else insts


class _Positions:
    """Where each register is defined and read, and the straight-line block of each instruction."""

    def __init__(self, insts: list[Inst]) -> None:
        self.insts = insts
        self.defs: dict[int, list[int]] = {}
        self.uses: dict[int, list[int]] = {}
        self.block: list[int] = []
        self.ends: list[int] = []
        current = 0
        for i, inst in enumerate(insts):
            if inst.kind is not Kind.OP and inst.kind is not Kind.COPY:
                current += 1
                self.ends.append(i)
            self.block.append(current)
            for v, spec in zip(inst.vregs, inst.signature.operands):
                (self.defs if spec.is_def else self.uses).setdefault(v, []).append(i)
        self.ends.append(len(insts))

    def try_copy(self, at: int) -> bool:
        """Make the copy at ``at`` superfluous, if possible."""
        dst, src = self.insts[at].vregs
        if len(self.defs[dst]) == 1 and len(self.defs.get(src, ())) > 1:
            return self._read_variable(at, dst, src)
        if len(self.defs[dst]) > 1 and len(self.defs.get(src, ())) == 1:
            return self._write_variable(at, dst, src)
        return False

    def _read_variable(self, at: int, dst: int, src: int) -> bool:
        limit = self.ends[self.block[at]] - 1 if self.block[at] < len(self.ends) else len(self.insts)
        defs = self.defs[src]
        k = bisect_right(defs, at)
        if k < len(defs) and defs[k] < limit:
            limit = defs[k]
        reads = self.uses.get(dst, [])
        if reads and (reads[0] <= at or reads[-1] > limit):
            return False
        for i in dict.fromkeys(reads):
            self._rename(i, dst, src, False)
        self.uses[src] = sorted([i for i in self.uses[src] if i != at] + reads)
        self.defs.pop(dst)
        self.uses.pop(dst, None)
        return True

    def _write_variable(self, at: int, dst: int, src: int) -> bool:
        made = self.defs[src][0]
        if made >= at or self.block[made] != self.block[at] or self.uses[src][-1] > at or self.uses[src][0] < made:
            return False
        if self._touched(self.defs[dst], made, at - 1) or self._touched(self.uses.get(dst, []), made + 1, at - 1):
            return False
        inst = self.insts[made]
        if any(spec.is_def and (spec.timing == 0 or spec.constraint == 1) for spec in inst.signature.operands):
            return False
        self._rename(made, src, dst, True)
        for i in dict.fromkeys(self.uses[src]):
            if i != at:
                self._rename(i, src, dst, False)
        self.uses[dst] = sorted(self.uses.get(dst, []) + [i for i in self.uses[src] if i != at])
        self.defs[dst] = sorted([i for i in self.defs[dst] if i != at] + [made])
        self.defs.pop(src)
        self.uses.pop(src)
        return True

    @staticmethod
    def _touched(positions: list[int], first: int, last: int) -> bool:
        k = bisect_left(positions, first)
        return k < len(positions) and positions[k] <= last

    def _rename(self, i: int, old: int, new: int, definition: bool) -> None:
        inst = self.insts[i]
        inst.vregs = tuple(
            [
                new if v == old and spec.is_def is definition else v
                for v, spec in zip(inst.vregs, inst.signature.operands)
            ]
        )
