"""What the allocator promises: constraints, coalescing, spill code outside of loops."""
from __future__ import annotations

import pytest
from isa.regalloc_code import ADD, ADD_MEMORY, ADD_TIED, ENV, RAX, RBX, RCX, RDX, SINK, Code, no_edits

from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    DEF,
    USE,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    define,
    listing,
    run,
    use,
)


def test_empty_function():
    allocation = run(Function([], []), ENV, checked=True)
    assert (allocation.locations, allocation.edits, allocation.frame_size) == ([], {}, 0)


def test_registers_are_taken_in_order_of_preference():
    code = Code()
    a, b = code.make(), code.make()
    code.add(a, b)
    allocation = code.run()
    assert allocation.locations == [(RAX,), (RCX,), (RAX, RAX, RCX)]
    assert allocation.used_callee_saved == ()


def test_callee_saved_registers_come_last_and_are_reported():
    code = Code()
    values = [code.make() for _ in range(4)]
    code.sink(*values)
    assert code.run().used_callee_saved == (RBX,)


def test_clobbered_callee_saved_register_is_reported():
    code = Code()
    code.op("call", Signature((), clobbers=(RBX,)))
    assert code.run().used_callee_saved == (RBX,)


def test_copy_of_a_dying_value_keeps_its_register():
    code = Code()
    b = code.copy(code.make())
    code.sink(b)
    allocation = code.run()
    assert allocation.locations[1] == (RAX, RAX) and no_edits(allocation)


def test_value_is_born_where_the_copy_at_the_loop_end_wants_it():
    code = Code()
    acc = code.make()
    code.label("loop")
    a = code.add(acc, acc)
    code.insts.append(Inst("copy", (acc, a), COPY_SIGNATURE, Kind.COPY))
    code.branch("loop")
    code.sink(acc)
    assert no_edits(code.run())


def test_tied_definition_takes_the_register_of_a_dying_read():
    code = Code()
    a, b = code.make(), code.make()
    c = code.add(a, b, ADD_TIED)
    code.sink(b, c)
    allocation = code.run()
    assert allocation.locations[2] == (RAX, RAX, RCX) and no_edits(allocation)


def test_tied_definition_gets_a_copy_of_a_read_that_lives_on():
    code = Code()
    a, b = code.make(), code.make()
    c = code.add(a, b, ADD_TIED)
    code.sink(a, b, c)
    allocation = code.run()
    assert allocation.locations[2] == (RDX, RDX, RCX)
    assert [(edit.kind, edit.dst, edit.src) for edit in allocation.edits[2]] == [(EditKind.MOVE, RDX, RAX)]


def test_accumulator_updated_in_place_needs_no_edit():
    code = Code()
    acc, step = code.make(), code.make()
    code.label("loop")
    code.op("add", ADD_TIED, acc, acc, step)
    code.branch("loop")
    code.sink(acc)
    assert no_edits(code.run())


DIVIDE = Signature((define(fixed=RAX), define(fixed=RDX), use(fixed=RAX), use(fixed=RDX), USE))
SHIFT = Signature((define(reuse=1), USE, use(fixed=RCX)))


def test_fixed_reads_and_definitions_of_a_division():
    code = Code()
    low, high, divisor = code.make(), code.make(), code.make()
    quotient, rest = code.value(), code.value()
    code.op("div", DIVIDE, quotient, rest, low, high, divisor)
    code.sink(quotient, rest, divisor)
    allocation = code.run()
    assert allocation.locations[3][:4] == (RAX, RDX, RAX, RDX)
    assert allocation.locations[3][4] in (RCX, RBX)
    assert no_edits(allocation)  # hints put every value where the division wants it


def test_value_across_a_division_stays_out_of_its_registers():
    code = Code()
    kept = code.make()
    low, high, divisor = code.make(), code.make(), code.make()
    quotient, rest = code.value(), code.value()
    code.op("div", DIVIDE, quotient, rest, low, high, divisor)
    code.sink(quotient, kept)
    allocation = code.run()
    assert allocation.locations[0][0] in (RCX, RBX) and no_edits(allocation)


def test_shift_count_that_lives_on_moves_to_its_register_once():
    code = Code()
    count, x = code.make(), code.make()
    for _ in range(3):
        code.op("shl", SHIFT, x, x, count)
    code.sink(x, count)
    assert no_edits(code.run())


def test_clobbers_spill_what_finds_no_other_register():
    code = Code()
    values = [code.make() for _ in range(3)]
    code.op("call", Signature((), clobbers=(RAX, RCX, RDX)))
    code.sink(*values)
    allocation = code.run()
    assert allocation.count(EditKind.SPILL) == 2 and allocation.count(EditKind.FILL) == 2  # one is in rbx


def test_read_fixed_to_a_clobbered_register_survives_elsewhere():
    code = Code()
    a = code.make()
    code.op("call", Signature((use(fixed=RCX),), clobbers=(RAX, RCX, RDX)), a)
    code.sink(a)
    allocation = code.run()
    assert allocation.locations[1] == (RCX,) and allocation.locations[2] == (RBX,)


def test_early_definition_shares_no_register_with_reads():
    code = Code()
    a = code.make()
    b = code.value()
    code.op("op", Signature((define(early=True), USE)), b, a)
    code.sink(b)
    where = code.run().locations[1]
    assert where[0] != where[1]


def test_late_read_shares_no_register_with_definitions():
    code = Code()
    a = code.make()
    b = code.value()
    code.op("op", Signature((DEF, use(late=True))), b, a)
    code.sink(b)
    where = code.run().locations[1]
    assert where[0] != where[1]


def test_set_constraint_is_known_before_the_value_is_born():
    code = Code()
    a = code.make()
    code.op("setcc", Signature((use(among=(RDX, RBX)),)), a)
    allocation = code.run()
    assert allocation.locations == [(RDX,), (RDX,)]


def test_one_spilled_operand_is_read_from_its_slot():
    code = Code()
    values = [code.make() for _ in range(5)]
    total = code.add(values[3], values[4])
    for v in (values[2], values[1], values[0]):
        total = code.add(total, v, ADD_MEMORY)
    code.sink(total)
    allocation = code.run()
    assert allocation.count(EditKind.SPILL) == 1 and allocation.count(EditKind.FILL) == 0
    assert sum(place < 0 for where in allocation.locations for place in where) == 1


def test_rematerialised_values_are_never_stored():
    code = Code()
    constants = [code.make(remat=True) for _ in range(7)]
    code.sink(*constants)
    allocation = code.run()
    assert allocation.count(EditKind.REMAT) > 0
    assert allocation.count(EditKind.SPILL) == allocation.count(EditKind.FILL) == allocation.frame_size == 0


def test_registers_of_two_classes_do_not_mix():
    code = Code()
    scalars, vectors = [code.make() for _ in range(4)], [code.make(1, 32) for _ in range(4)]
    code.sink(*scalars, *vectors)
    assert no_edits(code.run())


def test_slots_are_sized_aligned_and_shared():
    code = Code()
    for _ in range(3):
        values = [code.make() for _ in range(5)] + [code.make(1, size) for size in (16, 32, 32, 16, 32, 16)]
        code.sink(*values)
    allocation = code.run()
    sizes = sorted(slot.size for slot in allocation.slots)
    assert sizes.count(8) == 1 and len(sizes) <= 4  # each round reuses the slots of the one before
    assert allocation.frame_align == 16 and allocation.frame_size % 16 == 0
    assert all(slot.offset % min(slot.size, 16) == 0 for slot in allocation.slots)


# loops


def loop_over(code: Code, invariants: list[int], reads: int) -> None:
    acc = code.make()
    code.label("loop")
    for _ in range(reads):
        for v in invariants:
            code.op("add", ADD_TIED, acc, acc, v)
    code.branch("loop")
    code.sink(acc)


def test_loop_that_fits_has_no_edits():
    code = Code()
    loop_over(code, [code.make() for _ in range(3)], 3)
    assert no_edits(code.run())


def test_invariants_that_do_not_fit_are_stored_outside_and_filled_inside():
    code = Code()
    loop_over(code, [code.make() for _ in range(6)], 1)
    counts = code.edits_by_depth(code.run())
    assert counts[0, "spill"] == counts[1, "fill"]
    assert counts[1, "fill"] <= 4  # six invariants, two of them in the registers the accumulator and the fills leave
    assert (1, "spill") not in counts


def test_value_only_carried_through_a_loop_is_spilled_outside():
    code = Code()
    outer = [code.make() for _ in range(3)]
    loop_over(code, [code.make() for _ in range(3)], 1)
    code.sink(*outer)
    counts = code.edits_by_depth(code.run())
    assert set(depth for depth, _ in counts) == {0}
    assert counts[0, "spill"] == 3


def test_inner_loop_keeps_its_values_and_the_outer_loop_pays():
    code = Code()
    outer = [code.make() for _ in range(2)]
    code.label("outer")
    acc, step, other = code.make(), code.make(), code.make()
    code.label("inner")
    code.op("add", ADD_TIED, acc, acc, step)
    code.op("add", ADD_TIED, acc, acc, other)
    code.branch("inner")
    for v in outer:
        code.op("add", ADD_TIED, acc, acc, v)
    code.sink(acc)
    code.branch("outer")
    counts = code.edits_by_depth(code.run())
    assert not any(depth == 2 for depth, _ in counts)
    assert (1, "spill") not in counts  # stored once, before the outer loop


def test_accumulators_keep_registers_before_invariants():
    code = Code()
    invariants = [code.make() for _ in range(4)]
    accumulators = [code.make() for _ in range(2)]
    code.label("loop")
    for v in invariants:
        for acc in accumulators:
            code.op("add", ADD_TIED, acc, acc, v)
    code.branch("loop")
    code.sink(*accumulators)
    counts = code.edits_by_depth(code.run())
    assert (1, "spill") not in counts


def test_value_moves_out_of_a_register_destroyed_in_the_loop_once():
    code = Code()
    kept = code.make()
    code.sink(kept)
    code.label("loop")
    code.op("call", Signature((), clobbers=(RAX, RCX, RDX)))
    code.branch("loop")
    code.sink(kept)
    counts = code.edits_by_depth(code.run())
    assert not any(depth for depth, _ in counts)


def test_values_defined_in_one_arm_of_a_branch_meet_in_one_register():
    code = Code()
    a, b = code.make(), code.make()
    code.branch("other")
    code.op("add", ADD, a, a, b)
    code.jump("end")
    code.label("other")
    code.op("add", ADD, a, b, b)
    code.label("end")
    code.sink(a)
    code.run()


def test_loop_entered_at_its_test():
    code = Code()
    counter, acc = code.make(), code.make()
    code.jump("test")
    code.label("body")
    code.op("add", ADD_TIED, acc, acc, counter)
    code.op("decrement", Signature((define(reuse=1), USE)), counter, counter)
    code.label("test")
    code.op("compare", SINK, counter)
    code.branch("body")
    code.sink(acc)
    assert no_edits(code.run())


def test_two_loops_that_overlap_without_nesting():
    code = Code()
    values = [code.make() for _ in range(5)]
    code.label("a")
    code.sink(values[0], values[1])
    code.label("b")
    code.sink(values[2])
    code.branch("a")
    code.sink(values[3], values[4])
    code.branch("b")
    code.sink(*values)
    code.run()


@pytest.mark.parametrize("options", [{}, {"swap": True}, {"scratch": 9}])
def test_cycle_of_moves_at_a_back_edge(options: dict):
    env = MachineEnv((RegClass("gpr", (RAX, RCX), **options),))
    code = Code(env)
    a, b = code.make(), code.make()
    code.op("pin", Signature((use(fixed=RAX), use(fixed=RCX))), a, b)
    code.label("loop")
    code.op("swap", Signature((define(fixed=RAX), define(fixed=RCX), use(fixed=RAX), use(fixed=RCX))), a, b, b, a)
    code.branch("loop")
    code.sink(a, b)
    allocation = code.run()
    kinds = {edit.kind for edits in allocation.edits.values() for edit in edits}
    assert (EditKind.SWAP in kinds) == ("swap" in options) or "scratch" not in options


@pytest.mark.parametrize("target", [lambda k: k, lambda k: k // 2], ids=["loops in a row", "overlapping loops"])
def test_long_functions_do_not_recurse(target):
    code = Code()
    values = [code.make() for _ in range(6)]
    for k in range(3000):
        code.label(f"L{k}")
        code.op("add", ADD, values[k % 6], values[k % 6], values[(k + 1) % 6])
        code.branch(f"L{target(k)}")
    code.sink(*values)
    allocation = run(Function(code.insts, code.vregs), ENV)
    assert len(allocation.locations) == len(code.insts)


def test_loops_nested_deeper_than_the_allocator_follows():
    code = Code()
    values = [code.make() for _ in range(6)]
    for k in range(40):
        code.label(f"L{k}")
        code.op("add", ADD, values[k % 6], values[k % 6], values[(k + 1) % 6])
    for k in reversed(range(40)):
        code.op("add", ADD, values[k % 6], values[k % 6], values[(k + 2) % 6])
        code.branch(f"L{k}")
    code.sink(*values)
    code.run()


def test_listing_shows_registers_edits_and_omitted_copies():
    code = Code()
    values = [code.make() for _ in range(5)]
    last = code.copy(values[4])
    code.sink(last, *values[:4])
    text = listing(Function(code.insts, code.vregs), ENV, code.run())
    assert "        spill v" in text and "[0] <- r" in text
    assert "(left out)" in text
    assert text.splitlines()[0] == "    0 op make def v0=rax"
