"""The devices on which each program of this folder runs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tinyhost import Context


@pytest.fixture(params=["CPU", "PYTHON"])
def device(request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of the default device during the test."""
    with Context(DEV=request.param):
        yield request.param
