"""The ``dev`` fixture: each test runs under every device of the matrix; ``code``: with and without optimisation."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinyhost.env import Context

from .devices import MATRIX, why_not


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
