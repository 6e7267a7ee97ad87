"""Fixtures of the command-line tests."""

from tests.plugin.distributions import site as site
