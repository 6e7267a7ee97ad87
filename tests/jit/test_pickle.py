"""A pickled capture runs in another process, with its state; one of another version says so before it is loaded."""
from __future__ import annotations

import json
import pickle
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhost
from tests.jit.inputs import arr
from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, Variable
from tinyhost.errors import JitError


def captured() -> TinyJit[Any]:
    total, weight = Tensor.zeros(2).contiguous(), Tensor(np.array([2.0, 3.0], np.float32)).realize()

    @TinyJit
    def step(x: Tensor, scale: float = 1.0) -> dict[str, Any]:
        total.assign(total + x)
        return {"y": x * weight * scale, "all": [total, x], "sum": total.sum()}
    for i in range(3):
        step(arr(i, 1))
    return step


def test_a_capture_goes_on_where_it_was():
    step = captured()
    data = pickle.dumps(step)
    other = pickle.loads(data)
    for f in (other, step):  # each has state of its own
        kept = [f(arr(i, 5)) for i in (3, 4, 5)]
        assert [k["y"].tolist() for k in kept] == [[6, 15], [8, 15], [10, 15]]
        assert kept[-1]["all"][0].tolist() == [15, 18] and kept[0]["all"][1].tolist() == [3, 5]
        assert [k["sum"].item() for k in kept] == [14, 23, 33]
    assert other.__name__ == "step"
    with pytest.raises(JitError, match="args mismatch in JIT: arg 0 was a tensor"):
        other(arr(1, 2, 3))


def test_in_a_new_process(tmp_path: Path):
    v = Variable("n", 1, 8)

    @TinyJit
    def f(x: Tensor) -> Tensor:
        return (x * 2).softmax(0) + x.sum()
    data = np.arange(8, dtype=np.float32)
    for n in (2, 5):
        f(Tensor(data).realize()[:v.bind(n)])
    path = tmp_path / "capture.pkl"
    path.write_bytes(pickle.dumps(f))
    code = textwrap.dedent(f"""
        import pickle, sys
        import numpy as np
        from tinyhost import Tensor, Variable
        f = pickle.load(open({str(path)!r}, "rb"))
        x = Tensor(np.arange(8, dtype=np.float32)).realize()
        for n in (1, 3, 8):
            print(f(x[:Variable("n", 1, 8).bind(n)]).tolist())
    """)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    for n, line in zip((1, 3, 8), ran.stdout.splitlines(), strict=True):
        e = np.exp(2 * data[:n] - 2 * data[n - 1])
        np.testing.assert_allclose(json.loads(line), e / e.sum() + data[:n].sum(), rtol=1e-5)


def test_several_devices_and_captures():
    f = TinyJit(lambda x: (x + 1, x.sum(0)), captures=2)
    for rows in (4, 6):
        for _ in range(2):
            f(Tensor(np.ones((rows, 2), np.float32)).shard(names(2), 0).realize())
    g = pickle.loads(pickle.dumps(f))
    for rows in (6, 4):
        x = np.arange(rows * 2, dtype=np.float32).reshape(rows, 2)
        y, total = g(Tensor(x).shard(names(2), 0).realize())
        assert (y.numpy() == x + 1).all() and y.uop.axis == 0 and (total.numpy() == x.sum(0)).all()
    with pytest.raises(JitError, match="was loaded from a pickle, which holds captures but no Python function"):
        g(arr(1))


def test_another_version(monkeypatch: pytest.MonkeyPatch):
    with monkeypatch.context() as m:
        m.setattr(tinyhost, "__version__", "0.0.7")
        data = pickle.dumps(captured())
    text = f"this capture was made by tinyhost 0.0.7, this is {tinyhost.__version__}: re-capture it"
    with pytest.raises(JitError, match=text):
        pickle.loads(data)
    damaged = data[:-40] + b"\xff" * 39 + b"."  # nothing behind the version is looked at
    with pytest.raises(JitError, match=text):
        pickle.loads(damaged)


def test_nothing_to_pickle():
    f = TinyJit(lambda x: x + 1)
    f(arr(1))
    with pytest.raises(JitError, match="nothing to pickle: <lambda> was not captured yet, call it twice first"):
        pickle.dumps(f)
    with Context(JIT=0):
        f(arr(1))
    with pytest.raises(JitError, match="nothing to pickle"):
        pickle.dumps(f)
