"""Exports: what torch and numpy see is the tensor's memory, pinned; copies where that cannot be."""
from __future__ import annotations

import gc
import pathlib
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import torch

from tinyhost import GlobalCounters, Tensor, TinyJit, Variable
from tinyhost.dtype import _to_torch_dtype, dtypes
from tinyhost.errors import ExchangeError

DEVICES = ["CPU", "PYTHON"]


def realized(data, device: str = "CPU", dtype=None) -> Tensor:
    return Tensor(data, device=device, dtype=dtype).contiguous().realize()


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_torch_sees_every_dtype(device: str, dtype) -> None:
    x = realized([[0.0, 1.0, -2.0], [3.0, 0.5, 1.0]] if dtype.is_float else [[0, 1, 2], [3, 4, 1]], device, dtype)
    got = torch.from_dlpack(x)
    assert got.dtype is _to_torch_dtype(dtype) and got.shape == (2, 3) and got.stride() == (3, 1)
    assert got.to(torch.float32).tolist() == [[float(v) for v in row] for row in x.tolist()]


@pytest.mark.parametrize("device", DEVICES)
def test_memory_is_shared_both_ways(device: str) -> None:
    x = realized([1.0, 2.0, 3.0], device)
    a, b = torch.from_dlpack(x), torch.from_dlpack(x)
    assert a.data_ptr() == b.data_ptr()
    a[1] = 9
    assert x.tolist() == [1, 9, 3] and (x + 0).tolist() == [1, 9, 3]


def test_storage_on_the_host_is_shared_and_files_are_copied(tmp_path: pathlib.Path) -> None:
    x = Tensor(np.arange(3, dtype=np.int16), device="NPY")
    torch.from_dlpack(x)[0] = 8
    assert x.tolist() == [8, 1, 2]
    (tmp_path / "data").write_bytes(bytes(range(4)))
    y = Tensor(tmp_path / "data")
    a = torch.from_dlpack(y)
    a[0] = 9
    assert a.tolist() == [9, 1, 2, 3] and y.tolist() == [0, 1, 2, 3]
    with pytest.raises(ExchangeError, match="cannot be exported without a copy"):
        y.__dlpack__(copy=False)
    assert bytes(y.data()) == bytes(range(4))


def test_views_are_exported_at_their_offset() -> None:
    x = realized(list(range(12)))
    part = x.reshape(3, 4)[1:]
    got = torch.from_dlpack(part)
    got[0, 0] = 100
    assert got.tolist() == [[100, 5, 6, 7], [8, 9, 10, 11]] and x[4].item() == 100


def test_numpy_gets_shared_memory_read_only() -> None:
    x = realized([[1, 2], [3, 4]])
    a = np.from_dlpack(x)
    assert not a.flags.writeable and a.ctypes.data == torch.from_dlpack(x).data_ptr()
    torch.from_dlpack(x)[0, 0] = 7
    assert a[0, 0] == 7


def test_copies_are_the_consumers_own() -> None:
    x = realized([1.0, 2.0])
    a = np.from_dlpack(x, copy=True)
    assert a.flags.writeable
    a[0] = 5
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize("make", [
    lambda: Tensor(3.5), lambda: Tensor.full((2, 2), 7, buffer=False), lambda: realized([1, 2, 3]).flip(0),
    lambda: realized([1]).expand(3), lambda: realized([[1, 2], [3, 4]]).T.reshape(4)], ids=range(5))
def test_what_is_no_walk_through_host_memory_is_copied(make) -> None:
    x = make()
    np.testing.assert_array_equal(np.from_dlpack(x), x.numpy())
    np.testing.assert_array_equal(torch.from_dlpack(x).numpy(), x.numpy())
    with pytest.raises(ExchangeError, match="cannot be exported without a copy"):
        x.__dlpack__(copy=False)


@pytest.mark.parametrize("view", [
    lambda x: x.T, lambda x: x[:, 1:], lambda x: x[1], lambda x: x[:, 2], lambda x: x.reshape(2, 3, 2).permute(2, 0, 1),
    lambda x: x.detach()[:, :2].reshape(3, 2, 1), lambda x: x.bitcast("uint32").T, lambda x: x.bitcast("uint16")[1:]],
    ids=range(8))
def test_views_are_shared_with_their_strides(view) -> None:
    x = realized([[float(4 * i + j) for j in range(4)] for i in range(3)])
    v = view(x)
    a, b = torch.from_dlpack(v), np.asarray(v, copy=False)
    np.testing.assert_array_equal(b, v.numpy())
    assert a.tolist() == b.tolist() and a.shape == v.shape and a.data_ptr() == b.ctypes.data
    a.view(torch.int16 if a.element_size() == 2 else torch.int32)[...] = 0
    assert not v.numpy().any() and not b.any() and x.numpy().size - np.count_nonzero(x.numpy()) >= 1
    x += 1
    x.realize()
    assert not b.any() and not any(np.asarray(a.tolist()).flat)


def test_lazy_values_are_computed_and_then_shared() -> None:
    x = realized([1.0, 2.0]) * 3
    a = torch.from_dlpack(x)
    a[0] = 8
    assert x.tolist() == [8, 6]


def test_empty_and_0d() -> None:
    assert torch.from_dlpack(Tensor.empty(0, 3, device="CPU")).shape == (0, 3)
    assert np.from_dlpack(Tensor.empty(2, 0, device="CPU")).shape == (2, 0)
    assert torch.from_dlpack(realized([5])[0]).item() == 5 and torch.from_dlpack(Tensor(2)).shape == ()


def test_refusals_say_why() -> None:
    x = realized([1.0])
    assert x.__dlpack_device__() == (1, 0)
    with pytest.raises(ExchangeError, match="no streams, got stream=7"):
        x.__dlpack__(stream=7)
    with pytest.raises(ExchangeError, match=r"not on DLPack device \(2, 0\)"):
        x.__dlpack__(dl_device=(2, 0))
    with pytest.raises(BufferError):
        x.__dlpack__(dl_device=(10, 0))
    with pytest.raises((BufferError, RuntimeError, TypeError)):
        np.from_dlpack(realized([1.0], dtype=dtypes.bfloat16))
    frozen = Tensor.from_dlpack(x)
    shown = Tensor.from_dlpack(np.from_dlpack(realized([1.0, 2.0])))
    assert frozen.tolist() == [1] and shown.tolist() == [1, 2]
    with pytest.raises(ExchangeError, match="a legacy DLPack capsule cannot say"):
        shown.__dlpack__()
    assert "dltensor" in repr(shown.__dlpack__(copy=True))


def test_legacy_and_versioned_capsules() -> None:
    x = realized([1.0, 2.0])
    assert '"dltensor"' in repr(x.__dlpack__()) and '"dltensor_versioned"' in repr(x.__dlpack__(max_version=(1, 0)))
    assert '"dltensor"' in repr(x.__dlpack__(max_version=(0, 8)))
    for capsule in (x.__dlpack__(), x.__dlpack__(max_version=(1, 1))):
        assert torch.from_dlpack(capsule).tolist() == [1, 2]


# *** pins ***
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("write", [
    lambda x: x.assign(x * 0 + 7), lambda x: x.__iadd__(5), lambda x: x.__setitem__(slice(0, 1), 9.0),
    lambda x: x.assign(Tensor([8.0, 8.0, 8.0], device=x.device))], ids=["assign", "iadd", "setitem", "other"])
def test_exports_are_never_overwritten(device: str, write) -> None:
    x = realized([1.0, 2.0, 3.0], device)
    exports = [torch.from_dlpack(x), np.from_dlpack(x), x.data(), np.asarray(x, copy=False)]
    write(x)
    want = x.tolist()
    assert want != [1, 2, 3]
    assert all(list(e) == [1, 2, 3] for e in exports)
    again = torch.from_dlpack(x)
    again[2] = -1
    assert x.tolist() == [*want[:2], -1] and exports[0].tolist() == [1, 2, 3]


def test_memory_outlives_its_tensor_and_is_given_back_after_the_last_export() -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    x = realized(list(range(5000)))
    a, b = torch.from_dlpack(x), x.data()
    ref = weakref.ref(x)
    del x
    gc.collect()
    others = [realized([7] * 5000) for _ in range(8)]
    assert ref() is None and a.tolist() == list(range(5000)) and b[4999] == 4999
    del others, a
    gc.collect()
    assert GlobalCounters.mem_used == before + 20000
    del b
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_memory_left_by_a_write_is_given_back() -> None:
    gc.collect()
    before = GlobalCounters.mem_used
    x = realized([1.0] * 1000)
    a = torch.from_dlpack(x)
    x += 1
    x.realize()
    assert GlobalCounters.mem_used == before + 8000
    del a
    assert GlobalCounters.mem_used == before + 4000
    del x
    gc.collect()
    assert GlobalCounters.mem_used == before


def test_capsules_that_nobody_takes_hold_and_release() -> None:
    x = realized([1.0, 2.0])
    lease = x.uop.base.buffer._lease
    assert lease is None or lease() is None
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 0))]
    lease = x.uop.base.buffer._lease
    assert lease is not None and lease() is not None
    del capsules
    gc.collect()
    assert lease() is None


def test_no_leak_in_ten_thousand_exports() -> None:
    x = realized([1.0, 2.0])
    torch.from_dlpack(x)
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(2500):
        torch.from_dlpack(x)
        np.from_dlpack(x)
        x.__dlpack__()
        x.data()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200


def test_a_jit_replay_writes_no_export() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        return (x * 2 + 1).realize()
    outs = [step(realized([float(i), 1.0])) for i in range(3)]
    kept = torch.from_dlpack(outs[2])
    assert kept.tolist() == [5, 3]
    assert step(realized([10.0, 1.0])).tolist() == [21, 3]
    assert kept.tolist() == [5, 3]
    assert step(realized([11.0, 1.0])).tolist() == [23, 3]


def test_a_jit_replay_moves_state_that_is_exported() -> None:
    state = realized([0.0, 0.0])

    @TinyJit
    def step(x: Tensor) -> Tensor:
        state.assign(state + x)
        return (state * 1).realize()
    seen = []
    for i in range(6):
        out = step(realized([1.0, float(i)])).tolist()
        seen.append((torch.from_dlpack(state), state.tolist(), out))
    for i, (export, values, out) in enumerate(seen):
        want = [i + 1.0, sum(range(i + 1))]
        assert export.tolist() == values == out == want


def test_a_jit_replay_moves_arguments_that_it_writes() -> None:
    @TinyJit
    def step(x: Tensor) -> Tensor:
        x.assign(x * 2)
        return (x + 0).realize()
    x = realized([1.0, 2.0])
    seen = []
    for i in range(5):
        seen.append((torch.from_dlpack(x), [2.0**i, 2.0 ** (i + 1)]))
        assert step(x).tolist() == x.tolist() == [2.0 ** (i + 1), 2.0 ** (i + 2)]
    assert all(export.tolist() == want for export, want in seen)


def test_stores_that_wait_run_before_an_export() -> None:
    x = realized([1.0, 2.0])
    reader = x * 10
    x[0] = 5.0
    a = torch.from_dlpack(x)
    a[1] = 7
    assert a.tolist() == x.tolist() == [5, 7] and reader.tolist() == [10, 20]


def test_threads_export_and_write() -> None:
    x = realized([0.0] * 64)
    errors: list[str] = []
    turn = threading.Lock()  # taking an export and writing exclude each other, reading an export and writing do not

    def look() -> None:
        for _ in range(60):
            with turn:
                a = torch.from_dlpack(x)
            first = a.tolist()
            if len(set(first)) != 1 or a.tolist() != first:
                errors.append(repr(first))
    threads = [threading.Thread(target=look) for _ in range(3)]
    for t in threads:
        t.start()
    for i in range(30):
        with turn:
            x.assign(Tensor.full((64,), float(i), device="CPU"))
            x.realize()
    for t in threads:
        t.join()
    assert not errors


def test_exports_survive_the_end_of_the_interpreter() -> None:
    code = ("import torch, numpy as np\nfrom tinyhost import Tensor\nx = Tensor([1.0, 2.0]).contiguous().realize()\n"
            "a = torch.from_dlpack(x); b = np.from_dlpack(x); c = x.__dlpack__(); d = x.data()\n"
            "e = Tensor.from_dlpack(torch.ones(3))\nprint('ok')\n")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0 and done.stdout == "ok\n" and done.stderr == ""


def test_spread_and_symbolic_tensors_are_read() -> None:
    x = realized(list(range(8)))
    spread = x.shard(("CPU:0", "CPU:1"), 0)
    assert torch.from_dlpack(spread).tolist() == spread.data().tolist() == list(range(8))
    part = x[:Variable("n", 1, 8).bind(3)]
    torch.from_dlpack(part)[0] = 7
    assert part.tolist() == part.data().tolist() == np.asarray(part).tolist() == [7, 1, 2] and part.size == 8
    with pytest.raises(RuntimeError, match="variable k in k has no value"):
        x[:Variable("k", 1, 4)].__dlpack__()
