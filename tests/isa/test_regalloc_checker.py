"""The checker on allocations wrong in one way each: it names the instruction, the operand and what it found."""
from __future__ import annotations

import pytest

from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    DEF,
    USE,
    Allocation,
    CheckError,
    Edit,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    SpillSlot,
    VReg,
    check,
    define,
    use,
)

A, B, C, X, Y, OUTSIDE = 0, 1, 2, 10, 11, 20
ENV = MachineEnv((RegClass("gpr", (A, B, C), swap=True), RegClass("vec", (X, Y), scratch=12)), frozenset({C}),
                 names={A: "a", B: "b", C: "c", X: "x", Y: "y", OUTSIDE: "outside"})
VREGS = [VReg(0, 8), VReg(0, 8), VReg(1, 32), VReg(1, 16), VReg(0, 8, remat=True)]
MAKE = Signature((DEF,))
SINK = Signature((USE,))
MEMORY = Signature((use(memory=True),))


def make(v: int) -> Inst:
    return Inst("make", (v,), MAKE)


def sink(v: int, signature: Signature = SINK) -> Inst:
    return Inst("sink", (v,), signature)


def label(name: str) -> Inst:
    return Inst("label", kind=Kind.LABEL, target=name)


def branch(name: str) -> Inst:
    return Inst("branch", kind=Kind.BRANCH, target=name)


def allocation(locations: list[tuple[int, ...]], edits: dict[int, list[Edit]] | None = None,
               slots: list[SpillSlot] | None = None, saved: tuple[int, ...] = (), size: int = 64) -> Allocation:
    return Allocation(locations, edits or {}, slots or [], size, 32, saved)


def verdict(insts: list[Inst], answer: Allocation) -> str:
    """The checker's message, empty if it passes."""
    try:
        check(Function(insts, VREGS), ENV, answer)
    except CheckError as error:
        return str(error)
    return ""


def move(v: int, dst: int, src: int) -> Edit:
    return Edit(EditKind.MOVE, v, dst, src)


def test_right_allocations_pass():
    assert verdict([make(0), sink(0)], allocation([(A,), (A,)])) == ""
    assert verdict([make(0), sink(0)], allocation([(A,), (B,)], {1: [move(0, B, A)]})) == ""
    spill, fill = Edit(EditKind.SPILL, 0, ~0, A), Edit(EditKind.FILL, 0, B, ~0)
    assert verdict([make(0), make(1), sink(0)],
                   allocation([(A,), (A,), (B,)], {1: [spill], 2: [fill]}, [SpillSlot(0, 8)])) == ""


def test_read_of_another_value():
    text = verdict([make(0), make(1), sink(0)], allocation([(A,), (B,), (B,)]))
    assert text == ("instruction 2 (op sink use v0): operand 0 reads v0 from b, which holds v1")


def test_read_of_an_overwritten_value():
    text = verdict([make(0), make(1), sink(0)], allocation([(A,), (A,), (A,)]))
    assert "operand 0 reads v0 from a, which holds v1" in text


def test_read_of_an_old_value_after_a_redefinition():
    text = verdict([make(0), make(0), sink(0)], allocation([(A,), (B,), (A,)]))
    assert "operand 0 reads v0 from a, which holds nothing known" in text


def test_copy_makes_both_values_known():
    copy = Inst("copy", (1, 0), COPY_SIGNATURE, Kind.COPY)
    assert verdict([make(0), copy, sink(0), sink(1)], allocation([(A,), (A, A), (A,), (A,)])) == ""
    assert "reads v1 from b" in verdict([make(0), copy, make(0), sink(1)],
                                        allocation([(B,), (A, B), (B,), (B,)]))


def test_copy_of_an_old_value_is_lost_with_it():
    copy = Inst("copy", (0, 1), COPY_SIGNATURE, Kind.COPY)
    text = verdict([make(0), make(1), copy, make(1), sink(0)], allocation([(A,), (B,), (B, B), (B,), (A,)]))
    assert "reads v0 from a, which holds nothing known" in text


def test_clobbered_value():
    call = Inst("call", (), Signature((), clobbers=(A,)))
    assert "reads v0 from a" in verdict([make(0), call, sink(0)], allocation([(A,), (), (A,)]))


def test_paths_that_disagree():
    insts = [make(0), branch("end"), label("end"), sink(0)]
    edits = {2: [move(0, B, A)]}  # only on the path that falls through
    assert "reads v0 from b" in verdict(insts, allocation([(A,), (), (), (B,)], edits))
    assert verdict(insts, allocation([(A,), (), (), (A,)], edits)) == ""


def test_loop_that_loses_a_value_on_its_back_edge():
    insts = [make(0), label("loop"), sink(0), make(1), branch("loop")]
    text = verdict(insts, allocation([(A,), (), (A,), (A,), ()]))
    assert "instruction 2" in text and "reads v0 from a, which holds nothing known" in text


def test_narrow_moves_lose_wide_values():
    insts = [make(2), make(3), sink(2)]
    text = verdict(insts, allocation([(X,), (Y,), (Y,)], {2: [move(3, Y, X)]}))
    assert "reads v2 from y, which holds nothing known" in text


def test_constraints():
    fixed = Signature((use(fixed=B),))
    assert "operand 0 (v0) must be in b, but is in a" in verdict([make(0), sink(0, fixed)], allocation([(A,), (A,)]))
    among = Signature((use(among=(B, C)),))
    assert "must be in b, c, but is in a" in verdict([make(0), sink(0, among)], allocation([(A,), (A,)]))
    tied = Inst("tied", (1, 0), Signature((define(reuse=1), USE)))
    assert "operand 0 (v1) must be in a, but is in b" in verdict([make(0), tied], allocation([(A,), (B, A)]))
    assert "is in x, not of class gpr" in verdict([make(0)], allocation([(X,)]))
    assert "is in outside, not of class gpr" in verdict([make(0)], allocation([(OUTSIDE,)]))


def test_operands_that_must_be_apart():
    both = Inst("both", (0, 1), Signature((DEF, DEF)))
    assert "operands 0 (v0) and 1 (v1) must be apart but share a" in verdict([both], allocation([(A, A)]))
    early = Inst("early", (1, 0), Signature((define(early=True), USE)))
    assert "must be apart" in verdict([make(0), early], allocation([(A,), (A, A)]))
    late = Inst("late", (1, 0), Signature((DEF, use(late=True))))
    assert "must be apart" in verdict([make(0), late], allocation([(A,), (A, A)]))
    clobbered = Inst("op", (1, 0), Signature((DEF, USE), clobbers=(B,)))
    assert "operand 0 (v1) is in b, which is clobbered" in verdict([make(0), clobbered], allocation([(A,), (B, A)]))


def test_memory_operands():
    slots = [SpillSlot(0, 8), SpillSlot(8, 8)]
    spill = Edit(EditKind.SPILL, 0, ~0, A)
    assert verdict([make(0), sink(0, MEMORY)], allocation([(A,), (~0,)], {1: [spill]}, slots)) == ""
    assert "operand 0 (v0) may not be in slot 0" in verdict([make(0), sink(0)],
                                                            allocation([(A,), (~0,)], {1: [spill]}, slots))
    two = Inst("two", (0, 0), Signature((use(memory=True), use(memory=True))))
    assert "operand 1 (v0) may not be in slot 0" in verdict([make(0), two],
                                                            allocation([(A,), (~0, ~0)], {1: [spill]}, slots))
    assert "reads v0 from slot 1" in verdict([make(0), sink(0, MEMORY)],
                                             allocation([(A,), (~1,)], {1: [spill]}, slots))


def test_slots():
    assert "slots 0 and 1 overlap" in verdict([], allocation([], slots=[SpillSlot(0, 16), SpillSlot(8, 8)]))
    assert "slot 0 at 8 (frame alignment 32) is not aligned to 32" in verdict(
        [], allocation([], slots=[SpillSlot(8, 32)]))
    assert "behind the frame of 64 bytes" in verdict([], allocation([], slots=[SpillSlot(64, 8)]))
    narrow = allocation([(X,), ()], {1: [Edit(EditKind.SPILL, 2, ~0, X)]}, [SpillSlot(0, 16)])
    assert "v2 has 32 bytes, slot 0 16" in verdict([make(2), Inst("nop")], narrow)
    missing = allocation([(A,), ()], {1: [Edit(EditKind.SPILL, 0, ~3, A)]})
    assert "v0 is to be in slot 3; there are 0" in verdict([make(0), Inst("nop")], missing)


@pytest.mark.parametrize(("edit", "text"), [
    (move(0, X, A), "move of v0 before it uses x, not of class gpr"),
    (move(0, ~0, A), "move of v0 before it has slot 0 on the wrong side"),
    (Edit(EditKind.SPILL, 0, A, A), "spill of v0 before it has a on the wrong side"),
    (Edit(EditKind.REMAT, 0, A, A), "v0 is rematerialised before it but has no flag for it"),
    (Edit(EditKind.SWAP, 2, X, Y), "v2 is swapped before it; class vec cannot"),
    (move(9, A, B), "moves v9, which the function does not have"),
])
def test_edits_that_cannot_be(edit: Edit, text: str):
    assert text in verdict([Inst("nop")], allocation([()], {0: [edit]}, [SpillSlot(0, 8)]))


def test_edits_at_no_instruction():
    assert "edits stand before instruction 5 of 1" in verdict([Inst("nop")], allocation([()], {5: [move(0, A, B)]}))


def test_wrong_number_of_locations():
    assert "has locations for 0 instructions, the function has 1" in verdict([make(0)], allocation([]))
    assert "has 1 operands but 2 locations" in verdict([make(0)], allocation([(A, B)]))


def test_unlisted_callee_saved_register():
    assert "writes the callee-saved c, which used_callee_saved does not list" in verdict([make(0)], allocation([(C,)]))
    assert verdict([make(0)], allocation([(C,)], saved=(C,))) == ""


def test_rematerialisation_and_swaps_carry_values():
    remat = Edit(EditKind.REMAT, 4, B, B)
    assert verdict([make(4), sink(4)], allocation([(A,), (B,)], {1: [remat]})) == ""
    swap = Edit(EditKind.SWAP, 0, A, B)
    assert verdict([make(0), make(1), sink(0), sink(1)], allocation([(A,), (B,), (B,), (A,)], {2: [swap]})) == ""


def test_code_that_no_path_reaches_is_not_held_to_values():
    insts = [make(0), Inst("jump", kind=Kind.JUMP, target="end"), sink(1), label("end"), sink(0)]
    assert verdict(insts, allocation([(A,), (), (B,), (), (A,)])) == ""
