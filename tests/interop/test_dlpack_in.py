"""Imports: torch's and numpy's memory is shared where it can be, kept alive, and given back exactly once."""
from __future__ import annotations

import ctypes
import gc
import sys
import threading
import weakref
from typing import Any

import numpy as np
import pytest
import torch

import tinyhost
from tinyhost import Tensor
from tinyhost.dtype import _to_torch_dtype, dtypes
from tinyhost.errors import ExchangeError

DEVICES = ["CPU", "PYTHON", "NPY"]


class Producer:
    """An exporter that counts its deleter's calls; the structure is built by hand after dlpack.h."""

    class Managed(ctypes.Structure):
        _fields_ = [("version", ctypes.c_uint32 * 2), ("context", ctypes.c_void_p), ("deleter", ctypes.c_void_p),
                    ("flags", ctypes.c_uint64), ("data", ctypes.c_void_p), ("device", ctypes.c_int32 * 2),
                    ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8),
                    ("lanes", ctypes.c_uint16), ("shape", ctypes.c_void_p), ("strides", ctypes.c_void_p),
                    ("byte_offset", ctypes.c_uint64)]

    made: list[Producer] = []

    def __init__(self, array: np.ndarray[Any, Any], shape: tuple[int, ...] | None = None,
                 strides: tuple[int, ...] | None = None, **fields: Any) -> None:
        self.array, self.calls = array, 0
        Producer.made.append(self)  # a deleter must outlive whoever may call it
        shape = array.shape if shape is None else shape
        self.shape = (ctypes.c_int64 * len(shape))(*shape)
        self.strides = None if strides is None else (ctypes.c_int64 * len(strides))(*strides)
        self.deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.delete)
        self.managed = self.Managed(
            data=array.ctypes.data, ndim=len(shape), code=2, bits=32, lanes=1, shape=ctypes.addressof(self.shape),
            strides=None if self.strides is None else ctypes.addressof(self.strides),
            deleter=ctypes.cast(self.deleter, ctypes.c_void_p))
        self.managed.version[0], self.managed.device[0] = fields.pop("major", 1), fields.pop("kind", 1)
        for name, value in fields.items():
            setattr(self.managed, name, value)

    def delete(self, address: int) -> None:
        assert address == ctypes.addressof(self.managed)
        self.calls += 1

    def __dlpack__(self, **kwargs: Any) -> Any:
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
        return new(ctypes.addressof(self.managed), b"dltensor_versioned", None)


@pytest.mark.parametrize("dtype", dtypes.all, ids=str)
def test_every_dtype_of_torch(dtype) -> None:
    source = torch.tensor([[0, 1, 2], [3, 4, 1]]).to(_to_torch_dtype(dtype))
    x = Tensor.from_dlpack(source)
    assert x.dtype is dtype and x.shape == (2, 3) and x.tolist() == source.to(torch.float64).tolist()
    back = torch.from_dlpack(x)
    assert back.data_ptr() == source.data_ptr() and back.dtype is source.dtype


@pytest.mark.parametrize("device", DEVICES)
def test_memory_is_shared_both_ways(device: str) -> None:
    source = torch.arange(6.0).reshape(2, 3)
    x = Tensor.from_dlpack(source, device=device, copy=False)
    source[0, 1] = 10
    assert x.device == device and x.tolist() == [[0, 10, 2], [3, 4, 5]]
    if device != "NPY":
        x += 1
        assert x.realize().tolist() == source.tolist() == [[1, 11, 3], [4, 5, 6]]


LAYOUTS: list[tuple[str, Any, bool]] = [
    ("offset", lambda a: a[1:], True), ("transposed", lambda a: a.T, True), ("0-d", lambda a: a[1, 2, 3], True),
    ("permuted", lambda a: a.transpose(2, 0, 1), True), ("reversed", lambda a: a[::-1, :, ::-1], True),
    ("repeated", lambda a: np.broadcast_to(a[0, 0], (3, 4)), True), ("ones", lambda a: a[:1, :, None], True),
    ("part of rows", lambda a: a[:, 1:], True), ("steps", lambda a: a[:, :, ::2], True),
    ("backward steps", lambda a: a[::-1, ::-2], True), ("column", lambda a: a[:, 1, 2], True),
    ("windows", lambda a: np.lib.stride_tricks.sliding_window_view(a.reshape(-1), 3), True),
    ("permuted steps", lambda a: a[:, ::2, 1::2].transpose(2, 0, 1), True),
    ("repeated steps", lambda a: np.broadcast_to(a[:, :1, ::2], (2, 3, 2)), True), ("no rows", lambda a: a[:0], False)]


@pytest.mark.parametrize("view, shared", [p[1:] for p in LAYOUTS], ids=[p[0] for p in LAYOUTS])
def test_layouts_of_numpy(view, shared: bool) -> None:
    whole = np.arange(24, dtype=np.int32).reshape(2, 3, 4)
    source = view(whole)
    x = Tensor.from_dlpack(np.asarray(source), device="CPU")
    assert x.shape == source.shape
    np.testing.assert_array_equal(x.numpy(), source)
    whole += 100
    np.testing.assert_array_equal(x.numpy(), source)
    if shared:
        assert Tensor.from_dlpack(np.asarray(source), device="CPU", copy=False).tolist() == source.tolist()


@pytest.mark.parametrize("view", [
    lambda a: a.T, lambda a: a[:, ::2], lambda a: a[1:, 1:], lambda a: a[::-1, ::-1], lambda a: a[::2, ::-2].T],
    ids=["transposed", "steps", "part", "reversed", "backward steps"])
def test_writing_through_strided_imports(view) -> None:
    whole, want = (np.arange(12, dtype=np.int32).reshape(3, 4) for _ in range(2))
    x = Tensor.from_dlpack(view(whole), device="CPU")
    x[0, 1] = 50
    x.realize()
    view(want)[0, 1] = 50
    np.testing.assert_array_equal(whole, want)
    x += 100
    x.realize()
    view(want)[...] += 100
    np.testing.assert_array_equal(whole, want)


def test_read_only_memory_is_never_written() -> None:
    source = np.arange(3, dtype=np.float32)
    source.flags.writeable = False
    x = Tensor.from_dlpack(source, device="CPU")
    assert torch.from_dlpack(x).data_ptr() == source.ctypes.data
    x += 1
    assert x.tolist() == [1, 2, 3] and source.tolist() == [0, 1, 2]


def test_copies() -> None:
    source = torch.zeros(2)
    x = Tensor.from_dlpack(source, copy=True)
    source[0] = 1
    assert x.tolist() == [0, 0]
    y = Tensor.from_dlpack(x)
    assert y.tolist() == [0, 0] and Tensor.from_dlpack(x, copy=True).tolist() == [0, 0]
    with pytest.raises(ExchangeError, match="by a copy only"):
        Tensor.from_dlpack(x, device="NPY", copy=False)


def test_storage_that_takes_no_foreign_memory(tmp_path) -> None:
    with pytest.raises(ExchangeError, match="cannot be shared with DISK"):
        Tensor.from_dlpack(torch.zeros(2), device=f"DISK:{tmp_path}/x", copy=False)


def test_misaligned_memory_is_copied() -> None:
    raw = np.zeros(16, np.uint8)
    start = (1 - raw.ctypes.data) % 4
    raw[start:start + 8] = np.array([1.5, 2.5], np.float32).view(np.uint8)
    producer = Producer(raw, shape=(2,), byte_offset=start)
    x = Tensor.from_dlpack(producer, device="CPU")
    gc.collect()
    assert producer.calls == 1
    raw[:] = 0
    assert x.tolist() == [1.5, 2.5]
    with pytest.raises(ExchangeError, match="cannot be shared with CPU"):
        Tensor.from_dlpack(Producer(raw, shape=(2,), byte_offset=start), device="CPU", copy=False)


# *** the deleter ***
def test_deleter_is_called_once_after_the_last_holder() -> None:
    producer = Producer(np.arange(4, dtype=np.float32))
    x = Tensor.from_dlpack(producer, device="CPU")
    y, a = x[1:], np.from_dlpack(x)
    z = (x * 2).realize()
    del x
    gc.collect()
    assert producer.calls == 0 and y.tolist() == [1, 2, 3]
    del y
    gc.collect()
    assert producer.calls == 0 and a.tolist() == [0, 1, 2, 3]
    del a
    gc.collect()
    assert producer.calls == 1 and z.tolist() == [0, 2, 4, 6]


def test_deleter_is_called_when_elements_were_copied() -> None:
    producer = Producer(np.arange(4, dtype=np.float32), shape=(2,), strides=(2,))
    x = Tensor.from_dlpack(producer, device="CPU", copy=True)
    gc.collect()
    assert producer.calls == 1 and x.tolist() == [0, 2]
    producer = Producer(np.arange(4, dtype=np.float32), shape=(0, 4))
    assert Tensor.from_dlpack(producer).shape == (0, 4)
    gc.collect()
    assert producer.calls == 1


def test_deleter_is_called_when_a_write_leaves_read_only_memory() -> None:
    producer = Producer(np.arange(2, dtype=np.float32), flags=1)
    x = Tensor.from_dlpack(producer, device="CPU")
    x += 1
    x.realize()
    gc.collect()
    assert producer.calls == 1 and producer.array.tolist() == [0, 1] and x.tolist() == [1, 2]


def test_a_missing_deleter_is_no_error() -> None:
    x = Tensor.from_dlpack(Producer(np.ones(2, np.float32), deleter=None), device="CPU")
    assert x.tolist() == [1, 1]
    del x
    gc.collect()


BAD: list[tuple[str, dict[str, Any], str]] = [
    ("complex", {"code": 5, "bits": 64}, "type complex, 64 bits, 1 lanes have no tinyhost dtype"),
    ("fp4", {"code": 17, "bits": 4}, "type float4_e2m1fn"), ("lanes", {"lanes": 4}, "32 bits, 4 lanes"),
    ("wide", {"bits": 128}, "128 bits"), ("unknown", {"code": 99}, "code 99"), ("gpu", {"kind": 2}, "device type 2"),
    ("version", {"major": 2}, "version 2.0 cannot be read")]


@pytest.mark.parametrize("fields, match", [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_refused_capsules_stay_full(fields: dict[str, Any], match: str) -> None:
    producer = Producer(np.ones(2, np.float32), **fields)
    capsule = producer.__dlpack__()
    with pytest.raises(ExchangeError, match=match):
        Tensor.from_dlpack(capsule)
    assert producer.calls == 0 and '"dltensor_versioned"' in repr(capsule)


def test_a_capsule_is_taken_once() -> None:
    capsule = torch.ones(2).__dlpack__()
    assert Tensor.from_dlpack(capsule).tolist() == [1, 1]
    with pytest.raises(ExchangeError, match="that nobody has taken yet"):
        Tensor.from_dlpack(capsule)
    with pytest.raises(TypeError, match="an object with __dlpack__ or a DLPack capsule, got list"):
        Tensor.from_dlpack([1])


def test_producers_from_before_version_1() -> None:
    class Old:
        def __init__(self) -> None:
            self.tensor = torch.ones(3)

        def __dlpack__(self, stream: Any = None) -> Any:
            return self.tensor.__dlpack__()
    assert Tensor.from_dlpack(Old()).tolist() == [1, 1, 1]


# *** lifetimes ***
def test_torch_memory_lives_as_long_as_the_tensor() -> None:
    source = np.arange(1000.0)
    ref = weakref.ref(source)
    x = Tensor.from_dlpack(source)
    del source
    gc.collect()
    assert ref() is not None and x.sum().item() == 499500
    del x
    gc.collect()
    assert ref() is None


def test_round_trips_do_not_leak() -> None:
    source = torch.ones(4)
    count = sys.getrefcount(source)
    for _ in range(20):
        Tensor.from_dlpack(torch.from_dlpack(Tensor.from_dlpack(source)))
    gc.collect()
    blocks = sys.getallocatedblocks()
    for _ in range(500):
        Tensor.from_dlpack(torch.from_dlpack(Tensor.from_dlpack(source)))
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 200 and sys.getrefcount(source) == count


def test_threads_import_and_drop() -> None:
    producers = [Producer(np.full(8, i, np.float32)) for i in range(40)]
    wrong: list[int] = []

    def use(part: list[Producer]) -> None:
        for p in part:
            if Tensor.from_dlpack(p, device="CPU").tolist() != p.array.tolist():
                wrong.append(int(p.array[0]))
    threads = [threading.Thread(target=use, args=(producers[i::4],)) for i in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    gc.collect()
    assert not wrong and [p.calls for p in producers] == [1] * 40


def test_the_function_of_the_package() -> None:
    source = torch.ones(2)
    x = tinyhost.from_dlpack(source, device="CPU", copy=False)
    source[0] = 4
    assert x.tolist() == [4, 1] and type(x) is Tensor
