"""The allocator against its two oracles: the checker, and execution of random programs. And the checker against seeded
faults. A fixed-seed sample runs always; ``-m soak`` runs the full counts."""
from __future__ import annotations

import random
from collections import Counter

import pytest
from isa.regalloc_execute import observe, observe_allocated
from isa.regalloc_faults import behaves_differently, mutate
from isa.regalloc_programs import random_program

from tinyhost.renderer.isa.regalloc import CheckError, EditKind, check, run

INTACT = ("callee-saved intact", True)


def _allocate_and_compare(seed: int, length: int) -> Counter[EditKind]:
    function, env = random_program(seed, length)
    allocation = run(function, env, checked=True)
    assert observe_allocated(function, env, allocation) == [*observe(function), INTACT], f"seed {seed}"
    return Counter(edit.kind for edits in allocation.edits.values() for edit in edits)


def _catch_faults(seed: int, wanted: int) -> tuple[int, list[tuple[int, str]]]:
    """How many behaviour-changing faults were tried, and those the checker let pass."""
    tried, missed = 0, []
    while tried < wanted:
        seed += 1
        function, env = random_program(seed)
        allocation = run(function, env)
        expected = observe_allocated(function, env, allocation)
        rnd = random.Random(seed)
        for _ in range(8):
            fault = mutate(rnd, function, env, allocation)
            if fault is None or not behaves_differently(fault[1], env, fault[2], expected):
                continue
            tried += 1
            try:
                check(fault[1], env, fault[2])
                missed.append((seed, fault[0]))
            except CheckError:
                pass
    return tried, missed


@pytest.mark.fuzz
def test_random_programs_behave_as_written():
    edits: Counter[EditKind] = Counter()
    for seed in range(300):
        edits += _allocate_and_compare(seed, 30)
    assert min(edits[kind] for kind in EditKind) > 0  # every kind of edit was needed somewhere


@pytest.mark.fuzz
def test_checker_finds_seeded_faults():
    tried, missed = _catch_faults(0, 100)
    assert len(missed) <= tried // 100, missed


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_soak_random_programs(part: int):
    for seed in range(1000 * part + 1000, 1000 * part + 2000):
        _allocate_and_compare(seed, 20 + seed % 100)


@pytest.mark.soak
def test_soak_seeded_faults():
    tried, missed = _catch_faults(100_000, 1000)
    assert len(missed) <= tried // 100, missed
