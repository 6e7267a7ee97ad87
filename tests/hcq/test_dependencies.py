"""The tracker of byte ranges against a model that keeps the history of every byte."""
from __future__ import annotations

import random

import pytest

from tinyhost.hcq.dependencies import DepsTracker, newest


class Bytes:
    """Per byte: who wrote it last, and who read that since."""

    def __init__(self) -> None:
        self.writer: dict[tuple[str, int], int] = {}
        self.readers: dict[tuple[str, int], set[int]] = {}

    def access(self, key: str, start: int, end: int, write: bool, token: int) -> set[int]:
        waits: set[int] = set()
        for i in range(start, end):
            at = key, i
            waits |= {self.writer[at]} if at in self.writer else set()
            if write:
                waits |= self.readers.pop(at, set())
                self.writer[at] = token
            else:
                self.readers.setdefault(at, set()).add(token)
        return waits - {token}


def check(seed: int, steps: int = 200) -> None:
    rng = random.Random(seed)
    size = rng.choice([4, 40, 400])
    tracker, model = DepsTracker[int](), Bytes()
    for token in range(steps):
        for _ in range(rng.randrange(1, 4)):  # the arguments of one command
            key, start = rng.choice("ab"), rng.randrange(size)
            end, write = rng.randrange(start, size + 1), rng.random() < 0.4
            got, want = tracker.access(key, start, end, write, token), model.access(key, start, end, write, token)
            assert len(got) == len(set(got))
            # a command that reads what it wrote need not be named as reader: who waits for the one waits for the other
            assert set(got) == want, (seed, token)
        if rng.random() < 0.02:
            tracker.forget("a")
            for kept in (model.writer, model.readers):
                for at in [at for at in kept if at[0] == "a"]:
                    kept.pop(at)  # type: ignore[attr-defined]
        assert tracker.spans("a") <= size


@pytest.mark.parametrize("seed", range(30))
def test_against_every_byte(seed: int):
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(10))
def test_many_against_every_byte(part: int):
    for seed in range(part * 300, part * 300 + 300):
        check(seed, 400)


def test_the_three_hazards():
    t = DepsTracker[str]()
    assert t.access("m", 0, 8, False, "reads nothing") == []
    assert t.access("m", 0, 8, True, "write") == ["reads nothing"]
    assert t.access("m", 0, 8, False, "read") == ["write"]
    assert t.access("m", 0, 8, False, "read too") == ["write"]
    assert t.access("m", 4, 8, True, "rewrite") == ["write", "read", "read too"]
    assert t.access("m", 0, 8, False, "last") == ["write", "rewrite"]
    assert t.access("other", 0, 8, True, "x") == []


def test_a_write_joins_what_it_covers():
    t = DepsTracker[int]()
    for i in range(100):
        t.access("m", i, i + 1, True, i)
    assert t.spans("m") == 100
    t.access("m", 0, 100, True, 100)
    assert t.spans("m") == 1


def test_no_bytes_no_waits():
    t = DepsTracker[int]()
    t.access("m", 0, 8, True, 0)
    assert t.access("m", 4, 4, True, 1) == [] and t.access("m", 0, 8, False, 2) == [0]


def test_reduced_to_the_newest_of_each_queue():
    tokens = [("COMPUTE", 3), ("COPY", 1), ("COMPUTE", 7), ("COPY", 0)]
    assert newest(tokens) == {"COMPUTE": 7, "COPY": 1}
    assert newest(tokens, own="COPY") == {"COMPUTE": 7}
    assert newest(tokens, own="COPY", fifo=False) == {"COMPUTE": 7, "COPY": 1}
    assert newest([]) == {}
