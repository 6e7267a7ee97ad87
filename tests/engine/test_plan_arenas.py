"""Storage of temporaries by device and lane."""
from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tinyhost import Context, dtypes
from tinyhost.engine.arenas import Life, Place, Storage, arenas

DTYPES = [dtypes.float32, dtypes.uint8, dtypes.int64]
lives_drawn = st.lists(st.builds(
    lambda device, size, dtype, first, length, copied: Life(device, size, dtype, first, first + length, copied),
    st.sampled_from(["CPU", "CPU:1", "PYTHON"]), st.integers(0, 300), st.sampled_from(DTYPES), st.integers(0, 20),
    st.integers(0, 9), st.booleans()), max_size=25).map(lambda lives: sorted(lives, key=lambda life: life.first))


def span(life: Life, place: Place, storage: list[Storage]) -> tuple[int, int]:
    """(first byte, end) of the storage that a temporary has."""
    device, size, dtype = storage[place.storage]
    assert device == life.device
    if place.view is None:
        assert (size, dtype) == (life.size, life.dtype)
        return 0, size * dtype.itemsize
    offset, elements, kind = place.view
    assert (elements, kind) == (life.size, life.dtype) and offset % 256 == 0
    assert offset + elements * kind.itemsize <= size * dtype.itemsize
    return offset, offset + elements * kind.itemsize


def check(lives: list[Life]) -> tuple[list[Place], list[Storage]]:
    places, storage = arenas(lives)
    spans = [span(life, place, storage) for life, place in zip(lives, places)]
    for i, (a, at) in enumerate(zip(lives, places)):
        for j, (b, other) in enumerate(zip(lives[:i], places)):
            if at.storage == other.storage:
                assert a.copied == b.copied, "lanes share nothing"
                if a.block().first <= b.block().last and b.block().first <= a.block().last:
                    assert spans[i][1] <= spans[j][0] or spans[j][1] <= spans[i][0] or 0 in (a.size, b.size)
    assert {p.storage for p in places} == set(range(len(storage)))
    return places, storage


@given(lives_drawn)
@settings(max_examples=60, deadline=None)
def test_lives_that_overlap_lie_apart(lives: list[Life]):
    _, storage = check(lives)
    assert len(storage) == len({(life.device, life.copied) for life in lives})


@given(lives_drawn)
@settings(max_examples=60, deadline=None)
def test_whole_buffers_where_a_device_has_no_views(lives: list[Life]):
    with Context(DEV="PYTHON::gpu"):
        places, storage = check(lives)
    assert all((life.device == "PYTHON") == (place.view is None) for life, place in zip(lives, places))
    assert sum(device != "PYTHON" for device, _, _ in storage) <= 4


@given(lives_drawn)
@settings(max_examples=30, deadline=None)
def test_without_the_planner_nothing_shares(lives: list[Life]):
    with Context(NO_MEMORY_PLANNER=1):
        places, storage = check(lives)
    assert [storage[p.storage] for p in places] == [(life.device, life.size, life.dtype) for life in lives]
    assert len(storage) == len(lives)


def test_what_copies_touch_is_held_twice_as_long():
    def arena(copied: bool) -> int:
        lives = [Life("CPU", 1024, dtypes.uint8, i, i + 1, copied) for i in range(12)]
        _, [(_, size, _)] = arenas(lives)
        return size
    assert arena(False) == 2 * 1024 and arena(True) == 3 * 1024


def test_buffers_take_turns():
    with Context(DEV="PYTHON::gpu"):
        f4 = dtypes.float32
        lives = [Life("PYTHON", 10, f4, 0, 2), Life("PYTHON", 10, f4, 1, 3), Life("PYTHON", 10, f4, 2, 5),
                 Life("PYTHON", 10, f4, 3, 4), Life("PYTHON", 11, f4, 4, 5), Life("PYTHON", 10, f4, 6, 6)]
        places, storage = check(lives)
    assert [p.storage for p in places] == [0, 1, 2, 0, 3, 1] and len(storage) == 4
