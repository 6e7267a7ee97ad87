"""The ``level`` fixture: tests of machine code that ask for it run at each level of the instruction set."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import x86_machine


@pytest.fixture(params=x86_machine.LEVELS)
def level(request: pytest.FixtureRequest) -> Iterator[str]:
    """The level that ``x86_machine`` assembles for; calling code the host has no instructions for skips the test."""
    with x86_machine.at_level(request.param):
        yield request.param
