"""Calls of kernels on Python threads: what hosts without generated workers use, run here beside them."""
from __future__ import annotations

import threading

import pytest

from tests.cpu.native import Cell, add, count_down, function
from tinyhost_cpu.native.layout import argument_words
from tinyhost_cpu.portable import PortablePool


@pytest.fixture
def pool() -> PortablePool:
    return PortablePool()


def test_every_thread_gets_its_words(pool: PortablePool) -> None:
    cell, code = Cell(), function(add)
    pool.call("add", code.address, cell.words(5))
    pool.run("add", code.address, [cell.words(10**i) for i in range(6)])
    assert cell.value == 5 + 111111


def test_many_callers(pool: PortablePool) -> None:
    cell, code = Cell(), function(count_down)
    threads = [threading.Thread(target=lambda: [pool.run("n", code.address, [cell.words(50)] * 3) for _ in range(100)])
               for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert cell.value == 4 * 100 * 3


def test_a_failure_of_a_part_reaches_the_caller(pool: PortablePool) -> None:
    with pytest.raises(TypeError):
        pool.run("bad", function(add).address, [Cell().words(1), None])
    cell = Cell()
    pool.run("add", function(add).address, [cell.words(1)] * 2)  # the threads go on
    assert cell.value == 2


def test_arenas_belong_to_a_thread_and_grow(pool: PortablePool) -> None:
    first, second = pool.scratch(1, 100), pool.scratch(2, 100)
    assert first != second and pool.scratch(1, 50) == first
    larger = pool.scratch(1, 1 << 20)
    assert larger != first and pool.scratch(1, 1 << 20) == larger
    mine, theirs = pool.scratch(0, 64), []
    other = threading.Thread(target=lambda: theirs.append(pool.scratch(0, 64)))
    other.start()
    other.join()
    assert theirs != [mine]


def test_words_wrap_and_fill_the_registers() -> None:
    assert list(argument_words([-1, 2])) == [2**64 - 1, 2, 0, 0, 0, 0] and len(argument_words([0] * 9)) == 9
