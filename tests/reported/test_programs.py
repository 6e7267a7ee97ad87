"""Whole programs: size, depth, threads, processes, files, random numbers, other libraries, messages."""

from __future__ import annotations

import concurrent.futures
import cProfile
import importlib
import json
import os
import pkgutil
import struct
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tinyhost
from tinyhost import Context, Device, Tensor, dtypes, nn
from tinyhost.errors import TinyhostError
from tinyhost.nn.state import load_state_dict, safe_load

pytestmark = pytest.mark.usefixtures("device")


# *** size and depth ***
def test_hundreds_of_operands(device: str) -> None:
    count = 300 if device == "CPU" else 40
    parts = [Tensor(np.full(4, i, np.float32)).realize() for i in range(count)]
    assert Tensor.stack(*parts).sum().item() == 4 * sum(range(count))
    assert parts[0].cat(*parts[1:]).sum().item() == 4 * sum(range(count))


@pytest.mark.soak
def test_two_thousand_operands(device: str) -> None:
    if device == "PYTHON":
        pytest.skip("the reference device takes minutes")
    parts = [Tensor(np.full(4, i, np.float32)).realize() for i in range(2000)]
    assert Tensor.stack(*parts).sum().item() == 4 * sum(range(2000))


@pytest.mark.parametrize("count", [40, 450])
def test_many_inputs_of_one_expression(count: int) -> None:
    parts = [Tensor([1.0]).realize() for _ in range(count)]
    assert sum(parts[1:], parts[0]).item() == count


def test_work_grows_with_the_graph() -> None:
    def calls(n: int) -> int:
        x, profile = Tensor.rand(16).realize(), cProfile.Profile()
        with profile:
            for _ in range(n):
                x = (x.exp() + 1).log().contiguous()
            x.realize()
        return sum(entry.callcount for entry in profile.getstats())

    calls(5)
    assert calls(120) < 5 * calls(30)


@pytest.mark.soak
@pytest.mark.parametrize("dtype", ["uint8", "int8", "bool"])
def test_more_elements_than_an_int_counts(dtype: str, device: str) -> None:
    if device == "PYTHON":
        pytest.skip("a loop of 2^31 steps")
    one = Tensor.ones(1, dtype=dtype).contiguous().realize()
    assert one.expand(2**31 + 8).sum(dtype=dtypes.int64).item() == 2**31 + 8


# *** processes and threads ***
def test_threads() -> None:
    backend = Device.DEFAULT

    def work(i: int) -> Any:
        with Context(DEV=backend):
            return (Tensor([float(i), 1.0]).realize() * 3 + i).tolist()

    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert list(pool.map(work, range(16))) == [[i * 4.0, 3.0 + i] for i in range(16)]


def test_processes_that_start_together(tmp_path: Path, device: str) -> None:
    tmp_path.chmod(0o700)
    env = {**os.environ, "DEV": device, "CACHEDIR": str(tmp_path)}
    code = "from tinyhost import Tensor; print((Tensor([1.0, 2.0]).realize() * {}.5).tolist())"
    jobs = [
        subprocess.Popen(
            [sys.executable, "-W", "error", "-c", code.format(i)], env=env, stdout=subprocess.PIPE, text=True
        )
        for i in range(4)
    ]
    assert [j.communicate(timeout=100)[0].strip() for j in jobs] == [str([i + 0.5, 2 * i + 1.0]) for i in range(4)]


def test_no_compiler_is_needed(device: str) -> None:
    env = {**os.environ, "PATH": "/nonexistent", "CACHELEVEL": "0", "DEV": device}
    code = "from tinyhost import Tensor; print((Tensor([1.0]).realize() + 1).item())"
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=100)
    assert done.stdout.strip() == "2.0" and done.returncode == 0, done.stderr


def test_every_module_can_be_imported() -> None:
    bad: list[str] = []
    names = [
        m.name
        for m in pkgutil.walk_packages(tinyhost.__path__, "tinyhost.", onerror=bad.append)
        if not m.name.endswith("__main__")
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in names:
            importlib.import_module(name)
    assert not bad and len(names) > 100


# *** files ***
def _write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], bytes]], padding: int = 0) -> None:
    offset, header, blob = 0, {}, b""
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset, blob = offset + len(data), blob + data
    text = json.dumps(header).encode() + b" " * padding
    path.write_bytes(struct.pack("<Q", len(text)) + text + blob)


@pytest.mark.parametrize("padding", [0, 1, 5])
def test_safetensors_of_narrow_floats(tmp_path: Path, padding: int) -> None:
    codes = {
        "BF16": struct.pack("<HH", 0x3F80, 0x4000),
        "F16": np.array([1, 2], np.float16).tobytes(),
        "F64": np.array([1.0, 2]).tobytes(),
        "F8_E5M2": bytes([0x3C, 0x40]),
        "F8_E4M3": bytes([0x38, 0x40]),
        "F32": np.array([1, 2], np.float32).tobytes(),
    }
    _write_safetensors(tmp_path / "f", {k: (k, [2], v) for k, v in codes.items()}, padding)
    for name, t in safe_load(tmp_path / "f").items():
        assert t.to(Device.DEFAULT).cast(dtypes.float32).tolist() == [1.0, 2.0], name


@pytest.mark.parametrize("part", [slice(10, 20), slice(0, 1), slice(199, 200), slice(64, 128), slice(3, 3)], ids=repr)
def test_parts_of_a_file(tmp_path: Path, part: slice) -> None:
    data = bytes(range(200))
    (tmp_path / "f").write_bytes(data)
    t = Tensor.empty(200, dtype=dtypes.uint8, device=f"DISK:{tmp_path / 'f'}")[part]
    assert t.tolist() == list(data[part]) and t.to(Device.DEFAULT).tolist() == list(data[part])
    assert (t.to(Device.DEFAULT) + 0).tolist() == list(data[part])


@pytest.mark.parametrize(
    "part", [slice(None, None, 2), slice(None, None, -1), slice(1, 6), slice(2, 3), slice(None)], ids=repr
)
def test_writes_to_parts_of_a_file(tmp_path: Path, part: slice) -> None:
    path, n = tmp_path / "f", np.zeros(8, np.uint8)
    path.write_bytes(bytes(8))
    t = Tensor.empty(8, dtype=dtypes.uint8, device=f"DISK:{path}")
    value = np.arange(1, n[part].size + 1, dtype=np.uint8)
    n[part] = value
    try:
        t[part] = Tensor(value)
        t.realize()
    except TinyhostError:
        assert part.step is not None and path.read_bytes() == bytes(8)
    else:
        assert path.read_bytes() == n.tobytes()


def test_state_dicts_that_do_not_fit() -> None:
    layer = nn.Linear(2, 3)
    wrong = {"weight": Tensor.zeros(3, 5), "extra": Tensor.zeros(1)}
    with pytest.raises((ValueError, KeyError)) as caught:
        load_state_dict(layer, wrong, verbose=False)
    assert all(word in str(caught.value) for word in ("weight", "bias", "extra", "(3, 5)", "(3, 2)"))


# *** random numbers ***
@pytest.mark.parametrize(
    "draw",
    [lambda: Tensor.rand(4), lambda: Tensor.randn(5), lambda: Tensor.randint(6, high=2**30), lambda: Tensor.uniform(3)],
)
def test_random_numbers_do_not_depend_on_the_order_of_realization(draw: Any) -> None:
    Tensor.manual_seed(0)
    first, second = draw(), draw()
    in_order = first.tolist(), second.tolist()
    Tensor.manual_seed(0)
    first, second = draw(), draw()
    late = second.tolist()
    assert (first.tolist(), late) == in_order and in_order[0] != in_order[1]


@pytest.mark.parametrize("size", [1, 2, 16, 257])
def test_permutations(size: int) -> None:
    Tensor.manual_seed(3)
    seen = [Tensor.randperm(size).tolist() for _ in range(2)]
    assert all(sorted(p) == list(range(size)) for p in seen) and (size < 16 or seen[0] != seen[1])


# *** other libraries ***
@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "fp8e4m3", "fp8e5m2"])
def test_narrow_floats_leave_exactly(dtype: str) -> None:
    values = [1.0, 2.5, -0.125, 0.0]
    for t in (Tensor(values, dtype=dtype), Tensor(values, dtype=dtype).realize(), Tensor(values).cast(dtype)):
        assert t.tolist() == values and t.numpy().astype(np.float32).tolist() == values and t[1].item() == 2.5


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "int64", "float16"])
def test_arrays_without_alignment_or_order(dtype: str) -> None:
    item = np.dtype(dtype).itemsize
    raw = np.zeros(item * 3000 + 1, np.uint8)
    odd = raw[1:].view(dtype)
    odd[:] = np.arange(3000) % 100
    assert not odd.flags.aligned
    np.testing.assert_array_equal((Tensor(odd) * 1).numpy(), odd)
    n = np.arange(24).reshape(4, 6).astype(dtype)
    for view in (
        n.T,
        n[:, ::2],
        n[::-1],
        n[1:3, 4:1:-1],
        np.broadcast_to(n[0], (3, 6)),
        np.asfortranarray(n),
        n.astype(n.dtype.newbyteorder(">")),
    ):
        np.testing.assert_array_equal(Tensor(view).numpy(), view)
        np.testing.assert_array_equal((Tensor(view) + 1).numpy(), view + 1)


# *** messages ***
def test_a_repr_says_what_a_tensor_is() -> None:
    x = Tensor([[1.0, 2.0]])
    assert repr(x) == f"<Tensor (1, 2) dtypes.float on {Device.DEFAULT}, lazy copy>"
    assert repr(x.realize()) == f"<Tensor (1, 2) dtypes.float on {Device.DEFAULT}, realized: [[1.0, 2.0]]>"


@pytest.mark.parametrize(
    "shape, new", [((2, 3), (4, 2)), ((2, 3), (5,)), ((4,), (2, 3)), ((2, 3), (2, 2, 2)), ((0,), (1,))]
)
def test_reshapes_that_cannot_be(shape: tuple[int, ...], new: tuple[int, ...]) -> None:
    with pytest.raises(ValueError) as caught:
        Tensor.ones(*shape).reshape(new)
    assert (
        str(shape) in str(caught.value)
        and str(new) in str(caught.value)
        and str(int(np.prod(shape))) in str(caught.value)
    )


@pytest.mark.parametrize("width", [1, 2])
def test_a_searched_kernel_computes_the_same(width: int, device: str) -> None:
    if device == "PYTHON" and width > 1:
        pytest.skip("the reference device is slow")
    rng = np.random.default_rng(2)
    a, b = (rng.standard_normal(s).astype(np.float32) for s in ((24, 40), (40, 8)))
    with Context(BEAM=width):
        np.testing.assert_allclose((Tensor(a).realize() @ Tensor(b).realize()).numpy(), a @ b, atol=1e-4)
        np.testing.assert_allclose(Tensor(a).realize().sum(1).numpy(), a.sum(1), atol=1e-4)
