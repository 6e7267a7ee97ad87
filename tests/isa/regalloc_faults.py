"""Seeded faults: single changes to a right allocation, of the kinds an allocator's bugs would make.

``mutate`` draws one change. ``behaves_differently`` says by execution whether it matters; the checker must find those
that do. A change may be to the function (a wider clobber), so both come back.
"""
from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from isa.regalloc_execute import observe_allocated

from tinyhost.renderer.isa.regalloc import Allocation, Edit, EditKind, Function, Inst, Kind, MachineEnv, Signature

Fault = Callable[[random.Random, Function, MachineEnv, Allocation], "tuple[Function, Allocation] | None"]


def _copy(allocation: Allocation) -> Allocation:
    return replace(allocation, locations=list(allocation.locations),
                   edits={i: list(edits) for i, edits in allocation.edits.items()}, slots=list(allocation.slots))


def _pick_edit(rnd: random.Random, allocation: Allocation, *kinds: EditKind) -> tuple[int, int, Edit] | None:
    choices = [(i, n, edit) for i, edits in allocation.edits.items() for n, edit in enumerate(edits)
               if not kinds or edit.kind in kinds]
    return rnd.choice(choices) if choices else None


def _other(rnd: random.Random, env: MachineEnv, preg: int) -> int:
    """Another register of the same class."""
    order = next(cls.order for cls in env.classes if preg in (*cls.order, cls.scratch))
    return rnd.choice([other for other in order if other != preg])


def other_register(rnd, function, env, allocation):
    """An operand is put into another register."""
    choices = [(i, k) for i, where in enumerate(allocation.locations) for k, place in enumerate(where) if place >= 0]
    i, k = rnd.choice(choices)
    where = list(allocation.locations[i])
    place = where[k]
    where[k] = _other(rnd, env, place)
    for j, spec in enumerate(function.insts[i].signature.operands):  # keep ties, so that values alone are at stake
        if spec.arg == k and spec.is_def and where[j] == place and rnd.random() < 0.5:
            where[j] = where[k]
    allocation.locations[i] = tuple(where)
    return function, allocation


def swapped_registers(rnd, function, env, allocation):
    """Two operands of one instruction trade places."""
    choices = [i for i, where in enumerate(allocation.locations) if len(set(where)) > 1]
    i = rnd.choice(choices)
    where = list(allocation.locations[i])
    j, k = rnd.sample(range(len(where)), 2)
    where[j], where[k] = where[k], where[j]
    allocation.locations[i] = tuple(where)
    return function, allocation


def dropped_edit(rnd, function, env, allocation):
    """A move, spill, fill or rematerialisation is missing."""
    found = _pick_edit(rnd, allocation)
    if found is None:
        return None
    i, n, _ = found
    del allocation.edits[i][n]
    return function, allocation


def wrong_place_in_edit(rnd, function, env, allocation):
    """An edit reads or writes another register or slot."""
    found = _pick_edit(rnd, allocation)
    if found is None:
        return None
    i, n, edit = found
    side = rnd.choice(("dst", "src"))
    place = getattr(edit, side)
    if place >= 0:
        place = _other(rnd, env, place)
    elif len(allocation.slots) > 1:
        place = ~rnd.choice([slot for slot in range(len(allocation.slots)) if slot != ~place])
    else:
        return None
    edit = edit._replace(**{side: place})
    if edit.kind is EditKind.REMAT:
        edit = edit._replace(dst=place, src=place)
    allocation.edits[i][n] = edit
    return function, allocation


def reordered_edits(rnd, function, env, allocation):
    """Two neighbouring edits trade places."""
    choices = [(i, n) for i, edits in allocation.edits.items() for n in range(len(edits) - 1)]
    if not choices:
        return None
    i, n = rnd.choice(choices)
    edits = allocation.edits[i]
    edits[n], edits[n + 1] = edits[n + 1], edits[n]
    return function, allocation


def misplaced_edit(rnd, function, env, allocation):
    """An edit stands some instructions too early or too late."""
    found = _pick_edit(rnd, allocation)
    if found is None:
        return None
    i, n, edit = found
    target = i + rnd.choice((-2, -1, 1, 2))
    if not 0 <= target < len(function.insts):
        return None
    del allocation.edits[i][n]
    allocation.edits.setdefault(target, []).append(edit)
    return function, allocation


def narrow_edit(rnd, function, env, allocation):
    """An edit moves the width of another virtual register."""
    found = _pick_edit(rnd, allocation, EditKind.MOVE, EditKind.SPILL, EditKind.FILL, EditKind.SWAP)
    if found is None:
        return None
    i, n, edit = found
    vregs = function.vregs
    narrower = [v for v, vreg in enumerate(vregs) if vreg.cls == vregs[edit.vreg].cls
                and vreg.size < vregs[edit.vreg].size]
    if not narrower:
        return None
    allocation.edits[i][n] = edit._replace(vreg=rnd.choice(narrower))
    return function, allocation


def wrong_slot_operand(rnd, function, env, allocation):
    """A memory operand reads another slot, or a register operand a slot."""
    choices = [(i, k) for i, where in enumerate(allocation.locations) for k, place in enumerate(where)
               if place < 0 or function.insts[i].signature.operands[k].memory]
    if not choices or not allocation.slots:
        return None
    i, k = rnd.choice(choices)
    where = list(allocation.locations[i])
    slots = [slot for slot in range(len(allocation.slots)) if ~slot != where[k]]
    if not slots:
        return None
    where[k] = ~rnd.choice(slots)
    allocation.locations[i] = tuple(where)
    return function, allocation


def overlapping_slots(rnd, function, env, allocation):
    """A slot lies where it covers another one."""
    if len(allocation.slots) < 2:
        return None
    one, other = rnd.sample(range(len(allocation.slots)), 2)
    allocation.slots[one] = allocation.slots[one]._replace(offset=allocation.slots[other].offset)
    return function, allocation


def wider_clobber(rnd, function, env, allocation):
    """An instruction destroys one register more than the allocator was told."""
    choices = [i for i, inst in enumerate(function.insts) if inst.kind is Kind.OP]
    i = rnd.choice(choices)
    inst = function.insts[i]
    preg = rnd.choice([preg for cls in env.classes for preg in cls.order])
    if preg in inst.signature.clobbers or any(spec.is_def and preg == place for spec, place
                                              in zip(inst.signature.operands, allocation.locations[i])):
        return None
    signature = Signature(inst.signature.operands, (*inst.signature.clobbers, preg))
    insts = list(function.insts)
    insts[i] = Inst(inst.opcode, inst.vregs, signature, inst.kind, inst.target)
    return Function(insts, function.vregs), allocation


def unsaved_register(rnd, function, env, allocation):
    """A callee-saved register that is written is not listed."""
    used = list(allocation.used_callee_saved)
    if not used:
        return None
    used.remove(rnd.choice(used))
    return function, replace(allocation, used_callee_saved=tuple(used))


def redirected_result(rnd, function, env, allocation):
    """A definition lands in another register while its readers look where it was."""
    choices = [(i, k) for i, inst in enumerate(function.insts)
               for k, spec in enumerate(inst.signature.operands) if spec.is_def]
    i, k = rnd.choice(choices)
    where = list(allocation.locations[i])
    where[k] = _other(rnd, env, where[k])
    allocation.locations[i] = tuple(where)
    return function, allocation


FAULTS: tuple[Fault, ...] = (
    other_register, swapped_registers, dropped_edit, wrong_place_in_edit, reordered_edits, misplaced_edit, narrow_edit,
    wrong_slot_operand, overlapping_slots, wider_clobber, redirected_result,
)


def mutate(rnd: random.Random, function: Function, env: MachineEnv,
           allocation: Allocation) -> tuple[str, Function, Allocation] | None:
    """One fault in a copy of ``allocation``: its name and the changed pair; None if the drawn kind does not apply."""
    fault = rnd.choice(FAULTS) if rnd.random() < 0.98 else unsaved_register
    changed = fault(rnd, function, env, _copy(allocation))
    return None if changed is None else (fault.__name__, *changed)


def behaves_differently(function: Function, env: MachineEnv, allocation: Allocation, expected: list[tuple]) -> bool:
    """Whether execution shows the fault; a program that breaks or does not end counts."""
    try:
        return observe_allocated(function, env, allocation) != expected
    except Exception:
        return True
