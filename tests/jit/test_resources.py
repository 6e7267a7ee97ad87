"""Memory, threads and dtypes under TinyJit."""
from __future__ import annotations

import gc
import threading
import weakref
from typing import Any

import numpy as np
import pytest

from tests.jit.inputs import arr
from tinyhost import GlobalCounters, Tensor, TinyJit, dtypes
from tinyhost._tensor import registry
from tinyhost._tensor.core import TensorCore
from tinyhost.device.buffer import buffer_of


def test_replays_allocate_nothing():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return ((x @ x.transpose()).sum(0, keepdim=True) * x.transpose()).sum()
    x = Tensor(np.ones((16, 16), np.float32)).realize()
    for _ in range(3):
        f(x)
    gc.collect()
    used = GlobalCounters.mem_used
    for _ in range(5):
        f(x)
    assert GlobalCounters.mem_used == used


def test_a_dropped_jit_frees_its_memory():
    x = Tensor(np.ones((64, 64), np.float32)).realize()
    gc.collect()
    used = GlobalCounters.mem_used

    def make() -> None:
        f = TinyJit(lambda t: (t @ t).softmax() @ t)
        for _ in range(3):
            f(x)
        assert GlobalCounters.mem_used > used
    make()
    gc.collect()
    assert GlobalCounters.mem_used == used


def test_one_jit_from_several_threads():
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return (x * 3).sum()
    for _ in range(2):
        f(arr(1, 2))
    wrong = []

    def work(k: int) -> None:
        for i in range(20):
            f(arr(k, i))  # results are shared memory, so only the calls must not disturb each other
        with lock:
            if f(arr(k, 1)).item() != 3 * (k + 1):
                wrong.append(k)
    lock = threading.Lock()
    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert f(arr(5, 6)).item() == 33


@pytest.mark.parametrize("dtype", [dtypes.int8, dtypes.float16, dtypes.int64, dtypes.bool])
def test_dtypes(dtype: Any):
    @TinyJit
    def f(x: Tensor) -> Tensor:
        return x.flip(0).contiguous()
    for i in range(4):
        values = [i % 2, 1, 0]
        assert f(Tensor(values).cast(dtype)).tolist() == [dtype.const(v) for v in reversed(values)]


def test_a_capture_holds_none_of_its_arguments_and_results():
    f = TinyJit(lambda x: (x + 1, x[:1]))
    refs = []
    for i in range(4):
        x = Tensor(np.full(64, i, np.float32)).realize()
        y, _ = f(x)
        refs += [weakref.ref(buffer_of(x.uop.base)), weakref.ref(x), weakref.ref(y)]
        del x, y, _
    gc.collect()
    assert [r() for r in refs] == [None] * len(refs)


def test_a_replay_walks_no_tensors(monkeypatch: pytest.MonkeyPatch):
    weights = [arr(i, 1).realize() for i in range(50)]

    @TinyJit
    def f(x: Tensor) -> Tensor:
        for w in weights:
            x = x * w
        return x.contiguous()
    x = arr(1, 1).realize()
    for _ in range(3):
        f(x)
    looked: list[int] = []
    home = TensorCore._uop.__get__
    monkeypatch.setattr(registry, "live_tensors", lambda: pytest.fail("a replay asked for all tensors"))
    monkeypatch.setattr(TensorCore, "uop", property(lambda t: looked.append(id(t)) or home(t), TensorCore._move))
    f(x)
    assert looked and not {id(w) for w in weights} & set(looked)  # tensors of other tests may be lazy
