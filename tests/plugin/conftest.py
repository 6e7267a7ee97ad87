"""Fixtures of the plugin tests."""

from __future__ import annotations

import pytest

from tests.plugin.distributions import site as site
from tinyhost.device.registry import Devices


@pytest.fixture
def devices() -> Devices:
    """A registry of its own, with nothing opened."""
    return Devices()
