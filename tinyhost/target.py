"""The DEV grammar: text to Target and back.

    DEV    := target (";" target)*
    target := [interface [":" indices] "+"] [NAME ["@" distribution]] [":" RENDERER [":" arch]] ["?"]

NAME and RENDERER are upper-cased, everything else is kept as written. `parse_targets(str(...))` is the identity on
canonical text. `?` makes a target a preference, otherwise a named device is a demand. Knows no device, reads no
environment; a malformed string is a TargetError, which is a ValueError and a RuntimeError at once.
"""
from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from tinyhost.errors import TargetError

_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*")


@dataclass(frozen=True, slots=True)
class Target:
    """What a program is built for and runs on; empty fields mean "let the device choose".

    `arch` is what the backend documents (for CPUs ``level[,+-feature]*``), `provider` the distribution after '@',
    `optional` the trailing '?'.
    """

    device: str = ""
    renderer: str = ""
    arch: str = ""
    interface: str = ""
    indices: str = ""
    provider: str = ""
    optional: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "device", self.device.upper())
        object.__setattr__(self, "renderer", self.renderer.upper())

    @staticmethod
    def parse(text: str) -> Target:
        """Read one target.

        >>> Target.parse("kfd:0,2+amd:llvm:gfx1100")
        kfd:0,2+AMD:LLVM:gfx1100
        """
        return _parse_target(text)

    def replacedefault(self, **defaults: str | bool) -> Target:
        """A copy in which only fields that are still empty take the given values.

        >>> Target.parse("AMD:LLVM").replacedefault(renderer="HIP", arch="gfx1100")
        AMD:LLVM:gfx1100
        """
        empty: dict[str, Any] = {k: v for k, v in defaults.items() if not getattr(self, k)}
        return replace(self, **empty)

    def index_list(self, available: int) -> list[int]:
        """The device numbers that `indices` selects ("0,2", "0-3") out of `available`; all of them when it is empty."""
        ids = _parse_indices(self.indices) if self.indices else list(range(available))
        if any(i >= available for i in ids):
            raise TargetError(f"invalid visibility filter: {ids} ({available} devices available)")
        return ids

    def __repr__(self) -> str:
        left = f"{self.interface}:{self.indices}".rstrip(":") + "+" if self.interface or self.indices else ""
        name = f"{self.device}@{self.provider}" if self.provider else self.device
        return left + f"{name}:{self.renderer}:{self.arch}".rstrip(":") + ("?" if self.optional else "")


def parse_targets(text: str) -> list[Target]:
    """Read a whole DEV value; empty entries ("" or a trailing ';') are left out.

    >>> parse_targets("NV?;CPU")
    [NV?, CPU]
    """
    return [_parse_target(part) for part in text.split(";") if part.strip()]


def format_targets(targets: Iterable[Target]) -> str:
    """The DEV text of a list of targets."""
    return ";".join(map(str, targets))


def _parse_target(text: str) -> Target:
    s = text.strip()
    if any(c.isspace() or c == ";" for c in s):
        raise TargetError(f"white space or ';' in target string: {s!r}; ';' separates the targets of DEV")
    optional, body = s.endswith("?"), s.removesuffix("?")
    # the '+' of an arch feature ("x86-64-v3,+fma") follows a ',', the '+' that ends an interface never does
    *left, right = re.split(r"(?<!,)\+", body)
    if len(left) > 1:
        raise TargetError(f"too many '+' in target string: {s!r}")
    interface, indices = _parse_interface(left[0], s) if left else ("", "")
    if right.count(":") > 2:
        raise TargetError(f"too many ':' in target string: {s!r}")
    name, renderer, arch = (right.split(":") + ["", ""])[:3]
    device, at, provider = name.partition("@")
    _check_right(s, device, renderer, provider, bool(at), optional)
    return Target(device, renderer, arch, interface, indices, provider, optional)


def _parse_interface(left: str, s: str) -> tuple[str, str]:
    interface, colon, indices = left.rpartition(":") if ":" in left else (left, "", "")
    if not interface and not indices:
        raise TargetError(f"'+' without an interface in target string: {s!r}; write INTERFACE+NAME")
    if indices:
        _parse_indices(indices)
    return interface, indices


def _check_right(s: str, device: str, renderer: str, provider: str, at: bool, optional: bool) -> None:
    if at and not (device and provider):
        raise TargetError(f"'@' without a {'distribution' if device else 'device'} in target string: {s!r}; "
                          "write NAME@distribution")
    if optional and not device:
        raise TargetError(f"'?' without a device in target string: {s!r}; it marks a named device as a preference")
    numbers = "in DEV, device numbers stand before '+', as in INTERFACE:0,2+NAME"
    for what, part in (("device", device), ("renderer", renderer)):
        if part and part[0].isdigit():
            raise TargetError(f"{part!r} is not a {what} name in target string: {s!r}; {numbers}")
        if part and not _NAME.fullmatch(part):
            raise TargetError(f"{part!r} is not a {what} name in target string: {s!r}; "
                              "names are letters, digits, '_', '-' and '.'")


def _parse_indices(text: str) -> list[int]:
    out: list[int] = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise TargetError(f"device numbers are '0,2' or '0-3', got {text!r}")
        out += range(int(first), int(last or first) + 1)
    return out
