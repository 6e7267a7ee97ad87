"""Levels of the host's instruction set, for the renderers that leave selection to a compiler.

The arch field is ``level[,+-feature]*``, as for the X86 renderer; arm64 is a level too. Gives what a compiler is told
(level and features) and the Capabilities that follow. Opens nothing.
"""
from __future__ import annotations

import platform
from dataclasses import dataclass

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import DType, dtypes
from tinyhost.errors import RendererUnavailable, TargetError
from tinyhost.ops import Ops
from tinyhost_cpu.target import thread_count
from tinyhost_cpu.x86.caps import cache_bytes, host_level

NATIVE = frozenset(dtypes.ints) | {dtypes.bool, dtypes.float16, dtypes.float32, dtypes.float64}
_SIZES = {"x86-64": (16, 16), "x86-64-v2": (16, 16), "x86-64-v3": (32, 16), "x86-64-v4": (64, 32), "arm64": (16, 32)}
_SINCE = {"sse4.1": 1, "fma": 2, "f16c": 2}  # first of the levels above with it; arm64 has instructions of its own


@dataclass(frozen=True)
class Level:
    """One instruction set: a level and the features that are added to it (True) or taken away (False)."""

    name: str
    changes: tuple[tuple[str, bool], ...] = ()

    def has(self, feature: str) -> bool:
        """Whether ``sse4.1`` (rounding), ``fma`` or ``f16c`` (half conversions) is there, or its counterpart."""
        return dict(self.changes).get(feature, list(_SIZES).index(self.name) >= _SINCE[feature])

    @property
    def is_x86(self) -> bool:
        """Whether it is a level of x86-64."""
        return self.name != "arm64"

    @property
    def vector_bytes(self) -> int:
        """Bytes of the widest vector."""
        return _SIZES[self.name][0]

    @property
    def lacking_ops(self) -> frozenset[Ops]:
        """Float ops without an instruction: a compiler would call a library."""
        return frozenset([op for op, feature in ((Ops.MULACC, "fma"), (Ops.TRUNC, "sse4.1")) if not self.has(feature)])

    def capabilities(self, without: frozenset[DType] = frozenset()) -> Capabilities:
        """What code for this level can do, less the types ``without``; half needs its conversion instructions."""
        lacking = without if self.has("f16c") else without | {dtypes.float16}
        return Capabilities(host_visible=True, vector_bytes=self.vector_bytes, vector_registers=_SIZES[self.name][1],
                            fma=self.has("fma"), threads=thread_count(), dtypes=NATIVE - lacking,
                            l1_bytes=cache_bytes(0, 32 << 10), l2_bytes=cache_bytes(2, 1 << 20),
                            llc_bytes=cache_bytes(3, 32 << 20))


def default_level() -> str:
    """The level of this machine."""
    if platform.machine().lower() in ("arm64", "aarch64"):
        return "arm64"
    try:
        return host_level() or "x86-64"
    except RendererUnavailable:
        return "x86-64"  # what every x86-64 has


def parse_level(arch: str) -> Level:
    """The level an arch field names; "" is this machine.

    Raises:
        RendererUnavailable: no such level.
        TargetError: a feature without + or -.
    """
    name, *changes = [part.strip() for part in arch.split(",")]
    name = name if name not in ("", "native") else default_level()
    if name not in _SIZES:
        raise RendererUnavailable(f"no compiler target for arch {arch!r}: the levels are {', '.join(_SIZES)}")
    for change in changes:
        if change[:1] not in "+-" or not change[1:]:
            raise TargetError(f"feature {change!r} in arch {arch!r} has no sign; write level,+feature,-feature")
    return Level(name, tuple((c[1:].replace("sse4_", "sse4."), c[0] == "+") for c in changes))
