"""Reads what installed distributions say about themselves; imports none of them.

Gives one `Entry` per entry point of our three groups, each with its `Provider`. A distribution whose metadata
cannot be read becomes a provider with a `problem`. The result is kept until `sys.path` changes or
`clear_metadata()` is called.
"""
from __future__ import annotations

import importlib
import importlib.machinery
import importlib.metadata
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

CORE = "tinyhost"
DEVICES, RENDERERS, PLUGINS = "tinyhost.devices", "tinyhost.renderers", "tinyhost.plugins"
GROUPS = (DEVICES, RENDERERS, PLUGINS)


@dataclass(frozen=True, slots=True)
class Provider:
    """A distribution: who offers an entry point."""

    distribution: str  # as its metadata spells it
    version: str
    location: str  # the folder its metadata lies in
    requires: tuple[str, ...] = ()  # its Requires-Dist lines
    problem: str = ""  # why its metadata cannot be read

    @property
    def key(self) -> str:
        """The name by which two spellings are compared."""
        return normalize(self.distribution)

    @property
    def is_core(self) -> bool:
        """Whether this is the core itself."""
        return self.key == CORE

    def __str__(self) -> str:
        return f"{self.distribution} {self.version}".rstrip()


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry point: `name` in `group` stands for the object at `value` ("module:attribute")."""

    group: str
    name: str
    value: str
    provider: Provider

    @property
    def module(self) -> str:
        """The module that `value` names."""
        return self.value.partition(":")[0].strip()

    def path(self) -> str:
        """The file of the entry's top-level package, found without importing it; else where its metadata lies."""
        spec = importlib.machinery.PathFinder.find_spec(self.module.partition(".")[0])
        return (spec.origin if spec and spec.origin else "") or self.provider.location


def normalize(distribution: str) -> str:
    """A distribution's name in the one spelling of PEP 503."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def entries() -> tuple[Entry, ...]:
    """Every entry point of our groups on the running `sys.path`, sorted by group, name and distribution."""
    path = tuple(sys.path)
    if path not in _SCANS:
        _SCANS.clear()
        _SCANS[path] = tuple(sorted(_scan(importlib.metadata.distributions()),
                                    key=lambda e: (e.group, e.name.upper(), e.provider.key)))
    return _SCANS[path]


def clear_metadata() -> None:
    """Forget what was read, after installing something into a running process."""
    _SCANS.clear()
    importlib.invalidate_caches()


_SCANS: dict[tuple[str, ...], tuple[Entry, ...]] = {}


def _scan(distributions: Iterable[importlib.metadata.Distribution]) -> Iterator[Entry]:
    seen: set[str] = set()
    for dist in distributions:
        # most distributions have no part in this; their METADATA, slow to parse, is never read
        try:
            text = dist.read_text("entry_points.txt") or ""
        except (OSError, UnicodeDecodeError):
            continue
        if not any(group in text for group in GROUPS):
            continue
        provider = _provider(dist)
        if provider.key in seen:  # a second copy further along the path is shadowed, as its modules are
            continue
        seen.add(provider.key)
        yield from _parse(text, provider)


def _provider(dist: importlib.metadata.Distribution) -> Provider:
    location = str(dist.locate_file(""))
    try:
        meta = dist.metadata
        name, version = meta["Name"], meta["Version"]
        if not name or not version:
            return Provider(name or location, version or "", location, problem="its METADATA has no Name or no Version")
        return Provider(name, version, location, tuple(dist.requires or ()))
    except Exception as e:  # any third-party file may be damaged in any way; the record says how
        return Provider(location, "", location, problem=f"its METADATA cannot be read: {type(e).__name__}: {e}")


def _parse(text: str, provider: Provider) -> Iterator[Entry]:
    """Entry points of our groups; the format is sections of ``name = value`` lines."""
    group = ""
    for line in map(str.strip, text.splitlines()):
        if line.startswith("[") and line.endswith("]"):
            group = line[1:-1].strip()
        elif group in GROUPS and line and not line.startswith(("#", ";")):
            name, _, value = line.partition("=")
            yield Entry(group, name.strip(), value.partition("[")[0].strip(), provider)
