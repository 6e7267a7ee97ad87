"""The ``dev`` fixture: each test runs under every device of the matrix."""
from __future__ import annotations

import pytest

from tinyhost.env import Context

from .devices import MATRIX, why_not


@pytest.fixture(params=MATRIX)
def dev(request: pytest.FixtureRequest):
    """DEV for the test; skipped where this machine lacks what the device needs (capability, never silence)."""
    if reason := why_not(request.param):
        pytest.skip(reason)
    with Context(DEV=request.param):
        yield request.param
