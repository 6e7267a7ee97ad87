"""The ``dev`` fixture: each test runs under every device of the matrix; ``code``: with and without optimisation.

Of the tests that repeat themselves over devices, a fixed choice runs by default; the others are marked ``soak``. The op
database runs every case on CPU, one in eight on PYTHON, and a share of the other devices and dtypes; other tests
run one in three on CPU:CLANG (a process per kernel) and PYTHON::gpu.
"""
from __future__ import annotations

import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tinyhost.env import Context

from .devices import MATRIX, why_not

SAMPLED = ("CPU:CLANG", "PYTHON::gpu")
IN_FULL = {"test_determinism.py"}
DATABASE = "test_op_devices.py"


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
        if zlib.crc32(item.name.encode()) % _one_in(item.path.name, spec.params):
            item.add_marker(pytest.mark.soak)


def _one_in(file: str, params: dict[str, object]) -> int:
    """One in how many tests like this one runs by default."""
    dev = params.get("dev")
    if file != DATABASE:
        return 3 if dev in SAMPLED else 1
    case, dtype = params["case"], params["dtype"]
    first = dtype == case.dtypes[0]
    if case.slow:
        return 1 if dev == "CPU" and first else 1_000_000
    every, others = {"CPU": (1, 8), "PYTHON": (8, 32)}.get(str(dev), (40, 40))
    return every if first else others
