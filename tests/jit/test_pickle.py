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


# *** new processes ***
def in_new_process(path: Path, code: str) -> list[Any]:
    """What a program that loads ``f`` from ``path`` prints, a JSON value a line."""
    head = f"""
        import json, pickle
        import numpy as np
        from tinyhost import Context, Tensor, Variable
        f = pickle.load(open({str(path)!r}, "rb"))
        def arr(*values): return Tensor(np.array(values, np.float32))
        def show(x): print(json.dumps(x))
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(head) + textwrap.dedent(code)], capture_output=True,
                         text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    return [json.loads(line) for line in ran.stdout.splitlines()]


def test_state_random_numbers_and_training_go_on(tmp_path: Path):
    w = Tensor(np.ones((2, 1), np.float32)).is_param_().realize()
    opt = tinyhost.nn.optim.SGD([w], lr=0.125)

    @TinyJit
    def step(x: Tensor) -> Any:
        opt.zero_grad()
        loss = (x @ w).square().sum().backward()
        noise = Tensor.rand(3)
        return loss.realize(*opt.schedule_step()), w, {"noise": noise}
    Tensor.manual_seed(7)
    with Context(TRAINING=1):
        for i in range(3):
            step(arr(i, 1).reshape(1, 2))
        path = tmp_path / "step.pkl"
        path.write_bytes(pickle.dumps(step))
        want = []
        for i in range(3):
            loss, weight, rest = step(arr(i, 2).reshape(1, 2))
            want.append([loss.item(), weight.tolist(), rest["noise"].tolist()])
    assert in_new_process(path, """
        with Context(TRAINING=1):
            for i in range(3):
                loss, weight, rest = f(arr(i, 2).reshape(1, 2))
                show([loss.item(), weight.tolist(), rest["noise"].tolist()])
    """) == want


def test_shards_in_a_new_process(tmp_path: Path):
    w = Tensor(np.arange(4, dtype=np.float32)).shard(names(2), 0).realize()
    f = TinyJit(lambda x: (x * w, (x * w).sum()))
    x = np.arange(4, dtype=np.float32) + 1
    for _ in range(3):
        f(Tensor(x).shard(names(2), 0).realize())
    path = tmp_path / "f.pkl"
    path.write_bytes(pickle.dumps(f))
    assert in_new_process(path, f"""
        for k in range(3):
            y, total = f(Tensor(np.arange(4, dtype=np.float32) + k).shard({names(2)!r}, 0).realize())
            show([y.tolist(), total.item()])
    """) == [[[(i + k) * i for i in range(4)], sum((i + k) * i for i in range(4))] for k in range(3)]


def test_a_mismatch_in_a_new_process(tmp_path: Path):
    path = tmp_path / "f.pkl"
    path.write_bytes(pickle.dumps(captured()))
    assert in_new_process(path, """
        from tinyhost.errors import JitError
        for call in (lambda: f(arr(1, 2, 3)), lambda: f(arr(1, 2), 2.0), lambda: f(Tensor([1, 2]))):
            try:
                call()
            except JitError as e:
                show(str(e)[:60])
        show(f(arr(1, 2))["y"].tolist())
    """) == ["args mismatch in JIT: arg 0 was a tensor (2,) dtypes.float o",
             "args mismatch in JIT: captured with arg 0, called with arg 0",
             "args mismatch in JIT: arg 0 was a tensor (2,) dtypes.float o", [2, 6]]


def test_a_model_and_its_capture_stay_together():
    lin = tinyhost.nn.Linear(2, 1)
    f = TinyJit(lin.__call__)
    for _ in range(3):
        f(arr(1, 2).reshape(1, 2))
    other, g = pickle.loads(pickle.dumps((lin, f)))
    assert g(arr(1, 2).reshape(1, 2)).tolist() == f(arr(1, 2).reshape(1, 2)).tolist()
    other.weight.assign(Tensor([[5.0, 7.0]]))
    other.bias.assign(Tensor([1.0]))
    assert g(arr(1, 2).reshape(1, 2)).tolist() == [[20.0]] != f(arr(1, 2).reshape(1, 2)).tolist()


def test_captures_of_a_loaded_one_can_be_pickled_again():
    f = captured()
    g = pickle.loads(pickle.dumps(pickle.loads(pickle.dumps(f))))
    assert [g(arr(i, 5))["y"].tolist() for i in range(3)] == [f(arr(i, 5))["y"].tolist() for i in range(3)]


def test_results_that_are_arguments():
    f = TinyJit(lambda x: (x, x[1:], x + 1))
    for i in range(3):
        f(arr(i, 1))
    g = pickle.loads(pickle.dumps(f))
    x = arr(4, 5).realize()
    same, tail, more = g(x)
    tail += 1
    assert same is x and x.tolist() == [4, 6] and more.tolist() == [5, 6]


def test_a_damaged_file():
    data = pickle.dumps(captured())
    for cut in (10, len(data) // 2, len(data) - 5):
        with pytest.raises((EOFError, pickle.UnpicklingError)):
            pickle.loads(data[:cut])
    make, parts = captured()._known[-1].__reduce__()
    for i in range(1, len(parts)):
        if i in (1, 2, 3):
            continue  # what is compared with arguments
        with pytest.raises(JitError, match=r"a pickled capture is damaged \(\w+: .*\): capture it again"):
            make(*parts[:i], "nonsense", *parts[i + 1:])


def test_an_object_among_the_arguments():
    f = TinyJit(lambda x, k: x + 1)
    for _ in range(2):
        f(arr(1), print)
    assert pickle.loads(pickle.dumps(f))(arr(2), print).item() == 3
