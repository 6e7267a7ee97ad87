"""The ``dev`` fixture: each test runs under every device of the matrix; ``code``: with and without optimisation.

Of the tests that repeat themselves over devices, a fixed choice runs by default; the others are marked ``soak``. The op
database runs in full on CPU and once a case on PYTHON; of the rest, and of other tests on CPU:CLANG (a process per
kernel) and PYTHON::gpu, one in some runs.
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
    first = dtype == case.dtypes[0]  # type: ignore[attr-defined]
    if dev == "CPU":
        return 1 if first or not case.slow else 4  # type: ignore[attr-defined]
    if case.slow:  # type: ignore[attr-defined]
        return 1_000_000
    return (1 if first else 4) if dev == "PYTHON" else 10
