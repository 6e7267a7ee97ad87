"""Devices with small limits, devices that are not there, plugins that are broken, files that are unknown."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tinyhost import Context, Tensor, dtypes
from tinyhost.errors import DeviceNotFound, PlacementError


@pytest.mark.parametrize("count", [7, 8, 9, 12, 30])
def test_more_inputs_than_a_kernel_may_have(count: int) -> None:
    with Context(DEV="PYTHON::gpu"):
        parts = [Tensor(np.full(8, i, np.float32)).realize() for i in range(count)]
        assert sum(parts[1:], parts[0]).tolist() == [float(sum(range(count)))] * 8
        assert Tensor.stack(*parts).max(0).tolist() == [count - 1.0] * 8


def test_a_search_over_kernels_with_shared_memory() -> None:
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((16, 16)).astype(np.float32), rng.standard_normal((16, 16)).astype(np.float32)
    with Context(DEV="PYTHON::gpu", BEAM=1):
        np.testing.assert_allclose((Tensor(a).realize() @ Tensor(b).realize()).numpy(), a @ b, atol=1e-4)


@pytest.mark.soak
def test_more_workgroups_than_one_dimension_holds() -> None:
    n = 65536 * 256 + 1
    with Context(DEV="PYTHON::gpu"):
        one = Tensor.ones(1, dtype=dtypes.uint8).contiguous().realize()
        assert ((one.expand(n) + 1).contiguous().realize().numpy() == 2).all()


def test_a_device_that_is_not_installed_names_its_package() -> None:
    for name, package in (("NV", "pip install tinyhost-nv"), ("AMD", "pip install tinyhost-amd"), ("FOO", "'FOO'")):
        with Context(DEV=name), pytest.raises(DeviceNotFound, match=package) as caught:
            Tensor([1.0]).realize()
        assert "Installed are: " in str(caught.value)
        assert not any(n.startswith("while computing") for n in caught.value.__notes__)


def test_a_broken_plugin_stops_only_itself(tmp_path: Path) -> None:
    info = tmp_path / "broken_plug-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken-plug\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[tinyhost.devices]\nBROKEN = broken_plug:SPEC\n")
    (tmp_path / "broken_plug.py").write_text("raise ImportError('no libbroken.so')\n")
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def run(code: str, **more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code]
        return subprocess.run(command, env={**env, **more}, capture_output=True, text=True, timeout=100)

    code = "from tinyhost import Tensor; print((Tensor([1.0]).realize() + 1).tolist())"
    by_choice, by_default, asked = run(code, DEV="CPU"), run(code), run(code, DEV="BROKEN")
    assert by_choice.stdout.strip() == by_default.stdout.strip() == "[2.0]" and not by_choice.stderr
    assert "FallbackWarning" in by_default.stderr and "no libbroken.so" in by_default.stderr
    assert asked.returncode != 0 and "no libbroken.so" in asked.stderr


def test_an_operand_on_another_device_is_named() -> None:
    x, y = Tensor.ones(2, 3, device="PYTHON"), Tensor.ones(3, device="CPU")
    for use in (lambda: x + y, lambda: x @ y, lambda: x.stack(Tensor.ones(2, 3, device="CPU")), lambda: x.maximum(y)):
        with pytest.raises(
            PlacementError, match=r"operand 1 of shape .* is on CPU and was not moved with the others on"
        ):
            use()
    with pytest.raises(PlacementError, match="assign device mismatch PYTHON != CPU: move the value with .to()"):
        x.assign(Tensor.ones(2, 3, device="CPU"))


def test_an_unknown_type_in_a_model_file_names_the_tensor(tmp_path: Path) -> None:
    from tinyhost.io.gguf import gguf_load

    name = b"blk.0.w"
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", len(name)) + name
    head += struct.pack("<IQIQ", 1, 32, 999, 0)
    (tmp_path / "model.gguf").write_bytes(head + bytes(-len(head) % 32) + bytes(64))
    with pytest.raises(ValueError, match="tensor 'blk.0.w' has ggml type 999, which is not supported; supported: "):
        gguf_load(tmp_path / "model.gguf")
