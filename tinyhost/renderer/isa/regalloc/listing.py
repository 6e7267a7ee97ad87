"""An allocation as text, for people and golden files: instructions with registers, edits indented between them."""
from __future__ import annotations

from tinyhost.renderer.isa.regalloc.types import Allocation, Edit, EditKind, Function, Kind, MachineEnv


def listing(function: Function, env: MachineEnv, allocation: Allocation) -> str:
    """One line per instruction and edit; a COPY within one register is marked as left out."""
    lines = []
    for i, inst in enumerate(function.insts):
        lines += [f"        {_edit(edit, env, allocation)}" for edit in allocation.edits.get(i, ())]
        where = allocation.locations[i]
        operands = ", ".join(f"{'def' if spec.is_def else 'use'} v{v}={_place(location, env, allocation)}"
                             for v, spec, location in zip(inst.vregs, inst.signature.operands, where))
        target = f" {inst.target}" if inst.target is not None else ""
        omitted = "  (left out)" if inst.kind is Kind.COPY and where[0] == where[1] else ""
        lines.append(f"{i:5} {inst.kind.name.lower()}{target} {inst.opcode} {operands}{omitted}".rstrip())
    return "\n".join(lines)


def _place(location: int, env: MachineEnv, allocation: Allocation) -> str:
    return env.name(location) if location >= 0 else f"[{allocation.slots[~location].offset}]"


def _edit(edit: Edit, env: MachineEnv, allocation: Allocation) -> str:
    dst, src = _place(edit.dst, env, allocation), _place(edit.src, env, allocation)
    arrow = {EditKind.SWAP: f"{dst} <-> {src}", EditKind.REMAT: dst}.get(edit.kind, f"{dst} <- {src}")
    return f"{edit.kind.value} v{edit.vreg}: {arrow}"
