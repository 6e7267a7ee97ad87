"""Names of devices that exist somewhere, for did-you-mean and install hints; read from known.json.

Nothing is decided by these names: a device that is not listed works the same once it is installed.
"""
from __future__ import annotations

import difflib
import json
import pathlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any


@dataclass(frozen=True, slots=True)
class KnownDevice:
    """A published backend."""

    package: str
    summary: str
    host: bool = False
    renderers: list[str] = field(default_factory=list)

    @property
    def install(self) -> str:
        """The command that installs it."""
        return f"pip install {self.package}"


@cache
def _data() -> dict[str, dict[str, Any]]:
    loaded: dict[str, dict[str, Any]] = json.loads(pathlib.Path(__file__).with_name("known.json").read_text())
    return loaded


@cache
def known_devices() -> dict[str, KnownDevice]:
    """Name -> published backend."""
    return {name: KnownDevice(**row) for name, row in _data()["devices"].items()}


def also_called(name: str) -> str:
    """The device that people mean by a name that is none ("NVIDIA"), or ""."""
    return str(_data()["also_called"].get(name.upper(), ""))


def host_package() -> KnownDevice:
    """The backend for the host's processor, which every installation can use."""
    return next(d for d in known_devices().values() if d.host)


def nearest(name: str, candidates: Iterable[str]) -> list[str]:
    """Up to three candidates spelled like `name`, best first."""
    return difflib.get_close_matches(name.upper(), list(dict.fromkeys(candidates)), n=3, cutoff=0.6)
