"""Machine code of reordered blocks: the bytes of the results are those of the selected order, with fewer spills."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
import test_x86_fuzz
from x86_machine import call, i32, load, loop, param, renderer, store, widest

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import dtypes
from tinyhost.ops import Ops
from tinyhost.renderer.isa.passes import propagate_copies
from tinyhost.renderer.isa.regalloc import Function, Inst, run
from tinyhost.renderer.isa.schedule import Access, Block, Dependences, schedule
from tinyhost.uop import UOp
from tinyhost_cpu.x86.effects import X86Facts
from tinyhost_cpu.x86.insns import X86Ops

pytestmark = pytest.mark.usefixtures("level")


def _lanes(values: Sequence[int | bool]) -> UOp:
    return UOp(Ops.STACK, tuple(UOp(Ops.CONST, (), value) for value in values))


def _exchange(rows: list[UOp], d: int) -> list[UOp]:
    """Rows i and i ^ d exchange the lanes in which bit d differs from that of the row."""
    n = len(rows)
    mask, order = _lanes([bool(lane & d) for lane in range(n)]), _lanes([lane ^ d for lane in range(n)])
    out = list(rows)
    for i in range(n):
        if not i & d:
            j = i | d
            out[i] = UOp(Ops.WHERE, (mask, UOp(Ops.INDEX, (rows[j], order)), rows[i]))
            out[j] = UOp(Ops.WHERE, (mask, rows[j], UOp(Ops.INDEX, (rows[i], order))))
    return out


def transpose(n: int) -> list[UOp]:
    """Program: twice a matrix of 2n rows of n floats to one of n rows of 2n, in registers."""
    source, out = param(1, dtypes.float32, 4 * n * n), param(0, dtypes.float32, 4 * n * n)
    block = loop(2, 0)
    base = UOp(Ops.MUL, (block, i32(2 * n * n)))

    def place(element: int) -> UOp:
        return UOp(Ops.ADD, (base, i32(element)))

    halves = []
    for half in (0, 1):
        rows = [load(source, place((half * n + i) * n), n) for i in range(n)]
        d = 1
        while d < n:
            rows, d = _exchange(rows, d), 2 * d
        halves.append(rows)
    stores = [store(out, place(i * 2 * n + half * n), halves[half][i], n) for i in range(n) for half in (0, 1)]
    return linearize(UOp(Ops.SINK, (UOp(Ops.END, (UOp(Ops.GROUP, tuple(stores)), block)),)))


def _edits(uops: list[UOp], reorder: bool) -> int:
    """Moves, spills and fills of the allocated program."""
    r = renderer()
    sel, nodes = r.select(uops)
    insts, vregs = r.lower(nodes, sel.serial + 2)
    insts = propagate_copies(insts)
    if reorder:
        insts = schedule(insts, vregs, r.env, X86Facts())
    return sum(map(len, run(Function(insts, vregs), r.env, checked=True).edits.values()))


def test_transpose_in_registers(monkeypatch: pytest.MonkeyPatch) -> None:
    n = widest() // 4
    uops = transpose(n)
    x = np.random.default_rng(0).integers(0, 1 << 32, (2, 2 * n, n), dtype=np.uint32)
    results = []
    for reorder in (True, False):
        if not reorder:
            monkeypatch.setattr(type(renderer()), "facts", lambda self: None)
        out = np.zeros((2, n, 2 * n), np.uint32)
        call(renderer().assemble(uops), [out, x])
        results.append(out)
    want = x.swapaxes(1, 2)
    assert (results[0] == want).all() and (results[1] == want).all()


def test_transpose_spills_less() -> None:
    uops = transpose(widest() // 4)
    before, after = _edits(uops, False), _edits(uops, True)
    # a merging shuffle changes one of its operands, so each of the 2 * 8 * 4 exchanges copies a register
    assert after <= (64 + 10 if widest() > 32 else 4)
    assert after <= before - 16


@pytest.fixture
def any_order(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every block is reordered, needed or not; the list counts the blocks whose order changed."""
    changed: list[int] = []

    def improve(block: Block, facts: X86Facts, flags_live: bool) -> list[int]:
        order = block.arrange(Dependences(block, facts, flags_live).after, len(changed) % 2 == 0)
        if order != sorted(order):
            changed.append(len(order))
        return order

    monkeypatch.setattr(Block, "improve", improve)
    monkeypatch.setattr("tinyhost.renderer.isa.schedule.SHORT_BLOCK", 2)
    monkeypatch.setattr("tinyhost.renderer.isa.schedule._is_crowded", lambda insts, vregs, limits: True)
    return changed


def test_random_programs_in_any_order(any_order: list[int]) -> None:
    with np.errstate(all="ignore"):
        for seed in range(20_000, 20_030):
            test_x86_fuzz.check(seed)
    assert len(any_order) > 30


@pytest.mark.soak
def test_many_random_programs_in_any_order(any_order: list[int]) -> None:
    with np.errstate(all="ignore"):
        for seed in range(30_000, 31_000):
            test_x86_fuzz.check(seed)


def _lowered(uops: list[UOp]) -> list[Inst]:
    r = renderer()
    sel, nodes = r.select(uops)
    return r.lower(nodes, sel.serial + 2)[0]


def test_places_tell_storages_apart() -> None:
    facts = X86Facts()
    places = {Access.READ: set(), Access.WRITE: set()}
    accesses = [inst for inst in _lowered(transpose(8)) if facts.effects(inst).access]
    for inst in accesses:
        place = facts.place(inst)
        assert place.size == 32 and place.form is not None
        places[facts.effects(inst).access].add((place.storage, place.first))
    assert len({storage for storage, _ in places[Access.READ]}) == 1
    assert len({storage for storage, _ in places[Access.WRITE]}) == 1
    assert not {s for s, _ in places[Access.READ]} & {s for s, _ in places[Access.WRITE]}
    assert None not in {s for s, _ in places[Access.READ] | places[Access.WRITE]}
    assert len(places[Access.READ]) == len(places[Access.WRITE]) == 16


def test_streamed_stores_stay_together() -> None:
    from tinyhost.codegen.memory import STREAMED

    source, out = param(1, dtypes.float32, 64), param(0, dtypes.float32, 64)
    stores = [store(out, 8 * i, load(source, 8 * i, 8), 8).replace(tag=STREAMED) for i in range(8)]
    facts = X86Facts()
    forms = [
        facts.place(inst).form
        for inst in _lowered(linearize(UOp(Ops.SINK, tuple(stores))))
        if inst.opcode.template.op is X86Ops.VMOVNTPS
    ]
    assert forms == [None] * 8


def test_every_operation_with_a_condition_reads_flags() -> None:
    """The table says it for instructions; pseudo operations with a form of their own are known by name."""
    from tinyhost_cpu.x86 import effects
    from tinyhost_cpu.x86.insns import _PSEUDO

    known = {op.name for op in effects._CONDITIONAL}
    assert known == {name for name in _PSEUDO if name.startswith("SKIP_")}
    assert set(_PSEUDO) - known == {"DEFINE", "ALIAS", "LABEL", "COPY", "ARG", "ZERO", "ONES", "ZEROING"}
