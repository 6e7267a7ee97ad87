"""The ``dev`` fixture: each test runs under every device of the matrix; ``code``: with and without optimisation.

Of the tests that repeat themselves over devices, CPU:CLANG (a process per kernel) and PYTHON::gpu run one in three, a
fixed choice; the others are marked ``soak``. The op database runs in full everywhere.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhost.env import Context

from .devices import MATRIX, why_not

SAMPLED = ("CPU:CLANG", "PYTHON::gpu")
IN_FULL = {"test_op_devices.py", "test_determinism.py"}


@pytest.fixture(params=MATRIX)
def dev(request: pytest.FixtureRequest) -> Iterator[str]:
    """DEV for the test; skipped where this machine lacks what the device needs (capability, never silence)."""
    if reason := why_not(request.param):
        pytest.skip(reason)
    with Context(DEV=request.param):
        yield request.param


@pytest.fixture(params=["vector", "scalar"])
def code(request: pytest.FixtureRequest) -> Iterator[str]:
    """Whether kernels are optimised (vectors, where the device has them) or plain loops over elements."""
    with Context(NOOPT=int(request.param == "scalar")):
        yield request.param


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        spec = getattr(item, "callspec", None)
        if item.path.parent != here or item.path.name in IN_FULL or spec is None:
            continue
        if spec.params.get("dev") in SAMPLED and zlib.crc32(item.name.encode()) % 3:
            item.add_marker(pytest.mark.soak)
