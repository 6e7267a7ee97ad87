"""DISK: views, copies and writes at the right place, files that vanish, shrink or are read-only, and large offsets."""
from __future__ import annotations

import gc
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tinyhost import Tensor, dtypes
from tinyhost.dtype import DType
from tinyhost.errors import ScheduleError

NAMES = {dtypes.uint8: np.uint8, dtypes.int16: np.int16, dtypes.float32: np.float32, dtypes.int64: np.int64}


def stored(path: Path, content: bytes, dtype: DType = dtypes.uint8) -> Tensor:
    """A file of ``content`` and its elements as a tensor."""
    path.write_bytes(content)
    return Tensor.empty(len(content) // dtype.itemsize, dtype=dtype, device=f"DISK:{path}")


@pytest.mark.parametrize("dtype", NAMES)
@pytest.mark.parametrize("pick", [np.s_[10:20], np.s_[-3:], np.s_[5], np.s_[::3], np.s_[::-1], np.s_[7:2:-2],
                                  np.s_[4:4]])
def test_slices(tmp_path: Path, dtype: DType, pick: Any):
    raw = bytes(range(200)) * dtype.itemsize
    t, want = stored(tmp_path / "f", raw, dtype)[pick], np.frombuffer(raw, NAMES[dtype])[pick]
    assert (t.numpy() == want).all() and (t.to(None).numpy() == want).all()
    assert ((t.to(None) + 1).numpy() == want + NAMES[dtype](1)).all()
    assert t.device == f"DISK:{tmp_path / 'f'}"


def test_views_of_views(tmp_path: Path):
    raw = np.random.default_rng(0).bytes(4 * 6 * 8)
    x, t = np.frombuffer(raw, np.float32).reshape(6, 8), stored(tmp_path / "f", raw, dtypes.float32).reshape(6, 8)
    for got, want in ((t[2:5][1:], x[2:5][1:]), (t[1:4, 2:6], x[1:4, 2:6]), (t.T[3], x.T[3]),
                      (t[:, ::2].T, x[:, ::2].T), (t.flip(0)[1:3], x[::-1][1:3]),
                      (t[3].reshape(2, 4), x[3].reshape(2, 4)),
                      (t[None, 1].expand(3, 8), np.broadcast_to(x[1], (3, 8)))):
        assert got.numpy().tobytes() == np.ascontiguousarray(want).tobytes()
        assert got.to(None).contiguous().numpy().tobytes() == np.ascontiguousarray(want).tobytes()


def test_bitcasts(tmp_path: Path):
    raw = bytes(range(1, 26))
    t = stored(tmp_path / "f", raw)
    for start in range(9):  # also where the file's bytes are not aligned
        for dtype, name in NAMES.items():
            assert t[start:start + 16].bitcast(dtype).tolist() == np.frombuffer(raw[start:start + 16], name).tolist()
            back = t[start:start + 16].bitcast(dtype)[1:].bitcast(dtypes.uint8)
            assert bytes(back.data()) == raw[start + dtype.itemsize:start + 16]


def test_copies_to_and_between_files(tmp_path: Path):
    x = np.arange(5, dtype=np.int16)
    t = Tensor(x).to(f"DISK:{tmp_path / 'new'}").realize()
    assert (tmp_path / "new").read_bytes() == x.tobytes() and t.tolist() == x.tolist()
    u = t[1:4].to(f"DISK:{tmp_path / 'other'}").realize()
    assert (tmp_path / "other").read_bytes() == x[1:4].tobytes() and u.tolist() == [1, 2, 3]


def test_writes_at_their_place(tmp_path: Path):
    t = stored(tmp_path / "f", bytes(range(10, 18)))
    before = t[2:6]
    t[2:5] = Tensor([1, 2, 3], dtype=dtypes.uint8).to(t.device)
    t.realize()
    assert list((tmp_path / "f").read_bytes()) == [10, 11, 1, 2, 3, 15, 16, 17]
    assert t.tolist() == [10, 11, 1, 2, 3, 15, 16, 17] and before.shape == (4,)
    u = stored(tmp_path / "g", bytes(24), dtypes.float32).reshape(3, 2)
    u[1].assign((Tensor([2.0, 3.0]) * 2).to(u.device)).realize()
    assert np.fromfile(tmp_path / "g", np.float32).tolist() == [0, 0, 4, 6, 0, 0]
    u[2] = stored(tmp_path / "h", bytes(range(16)), dtypes.float32)[1:3].to(u.device)
    u.realize()
    assert (tmp_path / "g").read_bytes()[16:] == bytes(range(4, 12))


def test_values_of_other_devices_are_moved(tmp_path: Path):
    t = stored(tmp_path / "f", bytes(range(10, 18)))
    t[2:5] = Tensor([1, 2, 3], dtype=dtypes.uint8)
    t[6] = 7
    t.realize()
    assert list((tmp_path / "f").read_bytes()) == [10, 11, 1, 2, 3, 15, 7, 17]
    t.assign(Tensor.arange(8, dtype=dtypes.uint8)).realize()
    assert list((tmp_path / "f").read_bytes()) == list(range(8)) == t.tolist()


@pytest.mark.parametrize("pick", [np.s_[::2], np.s_[::-1]])
def test_writes_with_steps_leave_the_file_as_it_was(tmp_path: Path, pick: Any):
    t = stored(tmp_path / "f", bytes(range(8)))
    with pytest.raises(ScheduleError, match="cannot run a kernel on DISK:.*it only stores data; copy to another"):
        t[pick] = Tensor([1] * len(range(8)[pick]), dtype=dtypes.uint8).to(t.device)
        t.realize()
    assert (tmp_path / "f").read_bytes() == bytes(range(8))


def test_computing_needs_another_device(tmp_path: Path):
    t = stored(tmp_path / "f", b"abcd")
    with pytest.raises(ScheduleError, match="cannot run a kernel on DISK:.*copy to another device before computing"):
        (t + 1).realize()
    assert (t.to(None) + 1).tolist() == list(b"bcde")


def test_a_new_file_takes_its_size(tmp_path: Path):
    t = Tensor.empty(4, dtype=dtypes.float32, device=f"DISK:{tmp_path / 'f'}")
    t[2:].assign(Tensor([1.0, 2.0]).to(t.device)).realize()
    assert np.fromfile(tmp_path / "f", np.float32).tolist() == [0, 0, 1, 2]
    with pytest.raises(FileNotFoundError):
        Tensor([1]).to(f"DISK:{tmp_path / 'none' / 'f'}").realize()
    with pytest.raises(FileNotFoundError):
        Tensor(tmp_path / "none")
    with pytest.raises(IsADirectoryError):
        Tensor.empty(4, dtype=dtypes.uint8, device=f"DISK:{tmp_path}").tolist()


def test_files_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    t = stored(tmp_path / "f", b"abcd")
    (tmp_path / "f").chmod(0o444)
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # root may write everywhere
    assert t.tolist() == list(b"abcd")
    with pytest.raises(PermissionError, match="f is read-only for this process: check the file's permissions"):
        t.assign(Tensor([1, 2, 3, 4], dtype=dtypes.uint8).to(t.device)).realize()
    assert (tmp_path / "f").read_bytes() == b"abcd"


def test_files_that_vanish_or_shrink_while_they_are_used(tmp_path: Path):
    t = stored(tmp_path / "f", b"abcd" * 1000)
    assert t[:4].tolist() == list(b"abcd")
    (tmp_path / "f").unlink()
    assert bytes(t.data()) == b"abcd" * 1000  # the open file keeps its content
    (tmp_path / "h").write_bytes(b"abcd")
    path = Tensor(tmp_path / "h")
    (tmp_path / "h").unlink()
    assert bytes(path.data()) == b"abcd" and not (tmp_path / "h").exists()
    u = stored(tmp_path / "g", b"abcd" * 1000)
    assert u[:4].tolist() == list(b"abcd")
    os.truncate(tmp_path / "g", 10)
    assert u[:8].tolist() == list(b"abcdabcd")
    for part in (u[8:12], u[100:200], u):
        with pytest.raises(ValueError, match="g has 10 bytes, .* are needed: the file is truncated, or shrank while it "
                                             "was in use"):
            part.tolist()
    with pytest.raises(ValueError, match="g has 10 bytes, 4000 are needed"):
        Tensor.empty(4000, dtype=dtypes.uint8, device=f"DISK:{tmp_path / 'g'}").tolist()


def test_files_are_closed_when_nothing_views_them(tmp_path: Path):
    before = len(os.listdir("/proc/self/fd"))
    kept = []
    for i in range(20):
        t = stored(tmp_path / f"f{i}", bytes([i]) * 8)
        assert t[2:4].tolist() == [i, i]
        if i % 4 == 0:
            kept.append(t[:2])
    del t
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before + len(kept)
    assert [t.tolist() for t in kept] == [[i, i] for i in range(0, 20, 4)]


def test_offsets_beyond_four_gibibytes(tmp_path: Path):
    size = 5 << 30
    with open(tmp_path / "f", "wb") as f:
        f.truncate(size)  # sparse: nothing is stored but what is written
        f.seek(size - 8)
        f.write(bytes(range(8)))
    t = Tensor(tmp_path / "f")
    assert t.shape == (size,) and t[-8:].tolist() == list(range(8))
    assert t.bitcast(dtypes.int64)[-1].item() == int.from_bytes(bytes(range(8)), "little")
    assert t.reshape(5, 1 << 30)[4, -2:].tolist() == [6, 7]
    assert (t[-8:].bitcast(dtypes.int16).to(None) + 1).tolist() == [0x101, 0x303, 0x505, 0x707]
    at = (1 << 32) + 1
    t[at:at + 3] = Tensor([7, 8, 9], dtype=dtypes.uint8).to(t.device)
    t.realize()
    with open(tmp_path / "f", "rb") as f:
        f.seek(at - 1)
        assert f.read(5) == b"\0\7\10\11\0"
    assert os.stat(tmp_path / "f").st_blocks * 512 < 1 << 20


@pytest.mark.soak
def test_a_copy_of_more_than_two_gibibytes(tmp_path: Path):
    """One call to the system reads at most 2 GiB."""
    size = (1 << 31) + (1 << 20)
    with open(tmp_path / "f", "wb") as f:
        f.truncate(size)
        f.seek(size - 3)
        f.write(b"abc")
    t = Tensor(tmp_path / "f").to(None).realize()
    assert t[-4:].tolist() == [0, *b"abc"] and t[:2].tolist() == [0, 0]
