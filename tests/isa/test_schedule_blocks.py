"""The scheduler against its oracles: a pairwise check of every order, execution, and pressure counted anew. And the
check against faults seeded into the scheduler's dependences. ``-m soak`` runs the full counts."""
from __future__ import annotations

import random

import pytest
from isa.schedule_blocks import ENV, OpFacts, blocks, broken, execute, live_out, most_alive, random_function

from tinyhost.renderer.isa import schedule as scheduler
from tinyhost.renderer.isa.regalloc import (
    DEF,
    NO_OPERANDS,
    EditKind,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    VReg,
    define,
    run,
    use,
)
from tinyhost.renderer.isa.schedule import Access, Block, Dependences, Effects, Facts, Place, live_after, schedule


@pytest.fixture
def eager(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any order that overflows less, or as much, is taken in any block."""
    monkeypatch.setattr(scheduler, "SHORT_BLOCK", 2)
    monkeypatch.setattr(scheduler, "MIN_GAIN", 0)
    monkeypatch.setattr(scheduler, "MOST_LEFT", 1.0)
    monkeypatch.setattr(Block, "_has_room", lambda self, most: True)


def _check(seed: int, length: int) -> bool:
    """Whether the order of a random function changed; it must be right in any case."""
    function = random_function(seed, length)
    insts = list(function.insts)
    new = schedule(function.insts, function.vregs, ENV, OpFacts())
    assert function.insts == insts, "the input is left as it was"
    assert broken(insts, new) == [], f"seed {seed}"
    assert execute(insts) == execute(new), f"seed {seed}"
    limits = [len(cls.order) for cls in ENV.classes]
    for start, end in blocks(insts):
        before, after = most_alive(function, insts, start, end), most_alive(function, new, start, end)
        assert all(a <= max(b, n) for a, b, n in zip(after, before, limits)), f"seed {seed}"
    return new != insts


@pytest.mark.fuzz
def test_random_blocks_keep_their_meaning(eager: None) -> None:
    changed = sum(_check(seed, 20 + seed % 60) for seed in range(200))
    assert changed > 60  # or the test says little


@pytest.mark.fuzz
def test_defaults_keep_the_meaning() -> None:
    assert sum(_check(seed, 60) for seed in range(1000, 1060)) > 3


@pytest.mark.soak
def test_many_random_blocks(eager: None) -> None:
    for seed in range(10_000, 15_000):
        _check(seed, 10 + seed % 90)


def test_the_order_depends_on_nothing_else(eager: None) -> None:
    for seed in range(20):
        function = random_function(seed)
        one = schedule(function.insts, function.vregs, ENV, OpFacts())
        again = random_function(seed)
        two = schedule(again.insts, again.vregs, ENV, OpFacts())
        assert [i.opcode for i in one] == [i.opcode for i in two]


def test_liveness_agrees_with_a_slow_one() -> None:
    machine = scheduler.machine_of(ENV)
    for seed in range(40):
        insts = random_function(seed).insts
        spans = scheduler.split_blocks(insts)
        assert spans == blocks(insts)
        slow = live_out(insts)
        plans = [scheduler.plan_of(inst, machine) for inst in insts]
        assert live_after(insts, plans, spans) == [slow[end - 1] for _, end in spans]


# *** seeded faults ***
def _forget_edges(deps: Dependences, rnd: random.Random) -> None:
    for _ in range(3):
        edges = [(i, j) for i, successors in enumerate(deps.after) for j in successors]
        if edges:
            i, j = rnd.choice(edges)
            deps.after[i].remove(j)


@pytest.mark.fuzz
@pytest.mark.parametrize("fault", ["_flags", "_memory", "_storage", "edge"])
def test_seeded_faults_are_found(eager: None, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    """A dependence that is forgotten, where it changes what a function does, is found by the pairwise check."""
    rnd = random.Random(fault)
    if fault == "edge":
        built = Dependences.__init__

        def forgetful(self: Dependences, *args: object) -> None:
            built(self, *args)
            _forget_edges(self, rnd)

        monkeypatch.setattr(Dependences, "__init__", forgetful)
    else:
        monkeypatch.setattr(Dependences, fault, lambda self, *args: None)
    harmful = 0
    for seed in range(250):
        function = random_function(seed, 20 + seed % 60)
        new = schedule(function.insts, function.vregs, ENV, OpFacts())
        try:
            same = execute(function.insts) == execute(new)
        except KeyError:  # a register is read before it is written
            same = False
        if not same:
            harmful += 1
            assert broken(function.insts, new), f"{fault}, seed {seed}"
    assert harmful > 3


# *** single rules ***
WIDE = MachineEnv((RegClass("g", tuple(range(4)), swap=True), RegClass("v", tuple(range(10, 20)))))
LOAD, TWO = Signature((DEF,)), Signature((define(), use(), use()))
STORE = Signature((use(),))


class _Simple(Facts):
    """Opcodes are (name, effects, place)."""

    def effects(self, inst: Inst) -> Effects:
        return inst.opcode[1]

    def place(self, inst: Inst) -> Place:
        return inst.opcode[2]


def _transpose(count: int, ordered: bool) -> Function:
    """Two networks of exchanges, selected depth first: each result needs all of its network's loads."""
    insts: list[Inst] = []
    vregs: list[VReg] = []
    made: dict[tuple[int, int, int], int] = {}

    def put(name: str, signature: Signature, reads: list[int], access: Access, place: Place | None) -> int:
        vregs.append(VReg(1, 32))
        vreg = len(vregs) - 1
        defs = [vreg] if signature.operands[0].is_def else []
        insts.append(Inst((name, Effects(False, False, access), place), (*defs, *reads), signature))
        return vreg

    def value(net: int, level: int, i: int) -> int:
        key = net, level, i
        if key not in made:
            if level == 0:
                place = Place("in", (), "row", 32 * (net * count + i), 32)
                made[key] = put("load", LOAD, [], Access.READ, place)
            else:
                d = 1 << (level - 1)
                reads = [value(net, level - 1, i), value(net, level - 1, i ^ d)]
                made[key] = put("exchange", TWO, reads, Access.NONE, None)
        return made[key]

    levels = count.bit_length() - 1
    for i in range(count):
        for net in (0, 1):
            form = None if ordered else "row"
            place = Place("out", (), form, 32 * (net * count + i), 32)
            put("store", STORE, [value(net, levels, i)], Access.WRITE, place)
    insts.append(Inst(("ret", Effects(), None), (), NO_OPERANDS, Kind.RET))
    return Function(insts, vregs)


def _memory_edits(function: Function, insts: list[Inst]) -> int:
    allocation = run(Function(insts, function.vregs), WIDE, checked=True)
    return sum(allocation.count(kind) for kind in (EditKind.SPILL, EditKind.FILL))


def test_a_network_of_exchanges_spills_less() -> None:
    function = _transpose(8, ordered=False)
    assert _memory_edits(function, function.insts) > 25
    new = schedule(function.insts, function.vregs, WIDE, _Simple())
    assert _memory_edits(function, new) <= 6
    assert [i.opcode[0] for i in new].count("store") == 16


def test_stores_whose_bytes_are_not_known_keep_their_order() -> None:
    function = _transpose(8, ordered=True)
    new = schedule(function.insts, function.vregs, WIDE, _Simple())
    stores = [i for i in new if i.opcode[0] == "store"]
    assert stores == [i for i in function.insts if i.opcode[0] == "store"]


def test_a_block_with_enough_registers_stays_as_it_is() -> None:
    function = _transpose(4, ordered=False)
    plenty = MachineEnv((WIDE.classes[0], RegClass("v", tuple(range(10, 24)))))
    assert schedule(function.insts, function.vregs, plenty, _Simple()) is function.insts


def test_short_blocks_cost_nothing() -> None:
    class Unasked(Facts):
        def effects(self, inst: Inst) -> Effects:
            raise AssertionError("nothing is asked of a short block")

        def place(self, inst: Inst) -> Place:
            raise AssertionError("nothing is asked of a short block")

    insts = [Inst(("load", None, None), (v,), LOAD) for v in range(scheduler.SHORT_BLOCK - 2)]
    insts.append(Inst(("ret", None, None), (), NO_OPERANDS, Kind.RET))
    vregs = [VReg(1, 32)] * len(insts)
    assert schedule(insts, vregs, WIDE, Unasked()) is insts


def test_the_comparison_stays_at_its_jump(eager: None) -> None:
    for seed in range(60):
        function = random_function(seed)
        new = schedule(function.insts, function.vregs, ENV, OpFacts())
        jump = next(i for i, inst in enumerate(new) if inst.kind is Kind.BRANCH)
        assert new[jump - 1] is function.insts[jump - 1]
