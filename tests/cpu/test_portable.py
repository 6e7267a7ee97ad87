"""Calls of kernels on Python threads: what hosts without generated workers use, run here beside them."""
from __future__ import annotations

import threading

import pytest

from tests.cpu.native import Cell, add, add_part, count_down, function
from tinyhost_cpu.native.layout import NONE, argument_words
from tinyhost_cpu.portable import PortablePool


@pytest.fixture
def pool() -> PortablePool:
    return PortablePool()


def test_every_chunk_gets_its_number(pool: PortablePool) -> None:
    cell = Cell()
    pool.call("add", function(add).address, cell.words(5))
    pool.run("add", function(add_part).address, [cell.address, -1], 6, chunk_at=1)
    pool.run("add", function(add).address, [cell.address, 10**6], 1)
    assert cell.value == 5 + 1111111


def test_many_callers(pool: PortablePool) -> None:
    cell, code = Cell(), function(count_down)
    threads = [threading.Thread(target=lambda: [pool.run("n", code.address, [cell.address, 50], 3) for _ in range(100)])
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert cell.value == 4 * 100 * 3


def test_a_failure_of_a_part_reaches_the_caller(pool: PortablePool, monkeypatch) -> None:
    cell = Cell()

    def scratch(size: int) -> int:
        if threading.current_thread() is not threading.main_thread():
            raise MemoryError(f"{size} bytes")
        return cell.address
    monkeypatch.setattr(pool, "scratch", scratch)
    with pytest.raises(MemoryError, match="64 bytes"):
        pool.run("bad", function(add).address, [0, 1], 3, NONE, 0, 64)
    assert cell.value == 1
    pool.run("add", function(add).address, [cell.address, 1], 2)  # the threads go on
    assert cell.value == 3


def test_arenas_belong_to_a_thread_and_grow(pool: PortablePool) -> None:
    first = pool.scratch(100)
    assert pool.scratch(50) == first
    larger = pool.scratch(1 << 20)
    assert larger != first and pool.scratch(1 << 20) == larger
    mine, theirs = pool.scratch(64), []
    other = threading.Thread(target=lambda: theirs.append(pool.scratch(64)))
    other.start()
    other.join()
    assert theirs != [mine]


def test_words_wrap_and_fill_the_registers() -> None:
    assert list(argument_words([-1, 2])) == [2**64 - 1, 2, 0, 0, 0, 0] and len(argument_words([0] * 9)) == 9
