"""The hooks: cold, one-to-many, optional. A plugin module implements any of them under `tinyhost.plugin.v1.hookimpl`.

An implementation may take fewer arguments than the specification, never others. Each is called on its own: one that
raises is taken out, reported once, and the rest run.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    import argparse

    from tinyhost.target import Target

hookspec = pluggy.HookspecMarker("tinyhost")


@hookspec
def tinyhost_rewrites(stage: str, target: Target) -> Any:
    """A PatternMatcher to run at the end of a code-generation stage for the target, or None."""


@hookspec
def tinyhost_cache_salt(target: Target) -> str | None:
    """Text that goes into the cache keys of everything compiled for the target; required of who rewrites."""


@hookspec
def tinyhost_doctor(device: str) -> Sequence[Mapping[str, Any]] | None:
    """Checks of `tinyhost doctor` for a device: mappings with name, ok, text and remedy."""


@hookspec
def tinyhost_cli(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add subcommands to `tinyhost`; each sets the default `run`, from the parsed arguments to an exit status."""


@hookspec
def tinyhost_device_opened(device: Any) -> None:
    """A device was opened (a Compiled); devices opened before the plugin was loaded are told too."""


@hookspec
def tinyhost_kernel_compiled(name: str, target: Target, source: str, binary: bytes, seconds: float) -> None:
    """A kernel was compiled; not called for one that came from a cache."""


@hookspec
def tinyhost_profile(events: Sequence[Any]) -> None:
    """The events of a finished profile."""


@hookspec
def tinyhost_select(candidates: Sequence[Mapping[str, Any]]) -> str | None:
    """The name to try first when nobody named a device; candidates hold name, tier, count and distribution."""
