"""Tensors of more than 2**31 elements: a sparse mapping as storage, so that only the touched pages exist.

Elements near 2**31 and 2**32 are read and written through views, slices with steps, index tensors and masks of one
axis; reductions run over expanded values.
"""
from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tinyhost import Device, dtypes
from tinyhost.tensor import Tensor

SIZE = 2**32 + 2**20  # bytes of the mapping
EDGES = [0, 1, 2**31 - 2, 2**31 - 1, 2**31, 2**31 + 1, 2**32 - 1, 2**32, 2**32 + 5, SIZE - 1]

pytestmark = pytest.mark.skipif(Device.DEFAULT != "CPU", reason="maps host memory into the CPU device")


class Mapping:
    """A sparse mapping: ``array`` for numpy, ``tensor`` for us, over the same bytes."""

    def __init__(self) -> None:
        no_reserve = getattr(mmap, "MAP_NORESERVE", 0x4000)  # Python names it since 3.13
        self.memory = mmap.mmap(-1, SIZE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | no_reserve)
        self.array = np.frombuffer(self.memory, np.uint8)

    def tensor(self, dtype: str = "uint8", shape: tuple[int, ...] | None = None) -> Tensor:
        size = SIZE // np.dtype(dtype).itemsize
        pointer = ctypes.addressof(ctypes.c_char.from_buffer(self.memory))
        return Tensor.from_blob(pointer, shape or (size,), dtype=dtype, device="CPU")


@pytest.fixture
def mapping() -> Iterator[Mapping]:
    m = Mapping()
    m.array[EDGES] = np.arange(1, len(EDGES) + 1)
    yield m


def test_single_elements(mapping: Mapping) -> None:
    x = mapping.tensor()
    assert [x[e].item() for e in EDGES] == list(range(1, len(EDGES) + 1))
    assert x[-1].item() == len(EDGES)


def test_slices(mapping: Mapping) -> None:
    x, a = mapping.tensor(), mapping.array
    for start in (2**31 - 3, 2**32 - 3):
        np.testing.assert_array_equal((x[start:start + 9] + 1).numpy(), a[start:start + 9] + 1)
        np.testing.assert_array_equal(x[start:start + 9:2].numpy(), a[start:start + 9:2])
    np.testing.assert_array_equal(x[::2**27].numpy(), a[::2**27])
    np.testing.assert_array_equal(x[::-2**27].numpy(), a[::-2**27])
    for step in (2**31 - 2**28, 2**31, 2**31 + 2**29):
        np.testing.assert_array_equal(x[::step].numpy(), a[::step])
    np.testing.assert_array_equal(x[2**31 + 1:2**31 - 3:-1].numpy(), a[2**31 + 1:2**31 - 3:-1])


def test_rows(mapping: Mapping) -> None:
    rows = SIZE // 2**16
    x, a = mapping.tensor(shape=(rows, 2**16)), mapping.array.reshape(rows, 2**16)
    np.testing.assert_array_equal(x[2**15 - 1:2**15 + 2, ::1000].numpy(), a[2**15 - 1:2**15 + 2, ::1000])
    np.testing.assert_array_equal(x.T[-1, 2**15 - 2:2**15 + 2].numpy(), a.T[-1, 2**15 - 2:2**15 + 2])
    np.testing.assert_array_equal(x[2**15:2**15 + 4].sum(1).numpy(), a[2**15:2**15 + 4].sum(1))
    np.testing.assert_array_equal(x[::2**13].max(1).numpy(), a[::2**13].max(1))


@pytest.mark.parametrize("dtype", ["int64", "uint32"])
def test_index_tensors(mapping: Mapping, dtype: str) -> None:
    x, a = mapping.tensor(), mapping.array
    index = np.array([e for e in EDGES if e < 2**32][::-1], np.int64).astype(dtype)
    np.testing.assert_array_equal(x[Tensor(index)].numpy(), a[index])
    if dtype == "int64":
        np.testing.assert_array_equal(x[Tensor(np.array([-1, -SIZE, SIZE, 2**31]))].numpy(), [10, 1, 0, 5])
        np.testing.assert_array_equal(x.gather(0, Tensor(index)).numpy(), a[index])
        np.testing.assert_array_equal(x[EDGES].numpy(), a[EDGES])
        np.testing.assert_array_equal(x.index_select(0, Tensor(index)).numpy(), a[index])


def test_two_index_tensors(mapping: Mapping) -> None:
    rows = SIZE // 2**16
    x, a = mapping.tensor(shape=(rows, 2**16)), mapping.array.reshape(rows, 2**16)
    i, j = np.array([2**15 - 1, 2**15, rows - 1], np.int32), np.array([2**16 - 1, 1, -1], np.int32)
    np.testing.assert_array_equal(x[Tensor(i), Tensor(j)].numpy(), a[i, j])


def test_wider_elements(mapping: Mapping) -> None:
    """Places below 2**31 whose bytes lie above it."""
    x, a = mapping.tensor("int32"), mapping.array.view(np.int32)
    at = 2**29 - 2
    np.testing.assert_array_equal((x[at:at + 5] * 3).numpy(), a[at:at + 5] * 3)
    np.testing.assert_array_equal(x[[2**30, 2**29]].numpy(), a[[2**30, 2**29]])


def test_writes(mapping: Mapping) -> None:
    x, a = mapping.tensor(), mapping.array
    x[2**31 - 1:2**31 + 2] = 77
    x[2**32 + 1:2**32 + 4] += 5
    x[2**32 - 1] = 9
    x.realize()
    np.testing.assert_array_equal(a[2**31 - 2:2**31 + 3], [3, 77, 77, 77, 0])
    np.testing.assert_array_equal(a[2**32 - 1:2**32 + 6], [9, 8, 5, 5, 5, 0, 9])


def test_writes_into_rows(mapping: Mapping) -> None:
    rows = SIZE // 2**16
    x, a = mapping.tensor(shape=(rows, 2**16)), mapping.array.reshape(rows, 2**16)
    x[2**15 + 1:2**15 + 3, 7] = 4
    x[-1, -3:] = Tensor(np.array([1, 2, 3], np.uint8))
    x.realize()
    np.testing.assert_array_equal(a[2**15:2**15 + 4, 7], [0, 4, 4, 0])
    np.testing.assert_array_equal(a[-1, -4:], [0, 1, 2, 3])


def test_expanded_reductions() -> None:
    n = 2**31 + 8
    one = Tensor.ones(1, dtype="uint8").contiguous().realize()
    assert one.expand(n).sum(dtype=dtypes.int64).item() == n
    assert one.expand(2, n).cast("bool").all().item() is True


def test_slices_of_a_large_file(tmp_path: Path) -> None:
    """A sparse file as a tensor: slices beyond 2**31 and 2**32 are read without the rest."""
    file = tmp_path / "sparse"
    with file.open("wb") as f:
        f.truncate(SIZE)
        for at in (2**31, 2**32):
            f.seek(at - 1)
            f.write(bytes([1, 2, 3]))
    x = Tensor(file)
    assert x.shape == (SIZE,)
    for at in (2**31, 2**32):
        assert x[at - 2:at + 3].to("CPU").tolist() == [0, 1, 2, 3, 0]
    assert x[2**32 - 8:2**32].to("CPU").bitcast("uint64").tolist() == [1 << 56]


@pytest.mark.soak
def test_long_scans_and_positions() -> None:
    """Values that depend on the place of an element beyond 2**31."""
    n = 2**32 + 3
    places = Tensor.arange(n, dtype="int64")
    assert places[n - 2:].tolist() == [n - 2, n - 1]
    assert places.max().item() == n - 1
    assert (places % 1000 == 7).cast("int64").sum().item() == (n - 8) // 1000 + 1
