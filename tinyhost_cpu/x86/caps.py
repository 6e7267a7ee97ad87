"""What an x86-64 processor can do: feature levels, detection, and the Capabilities of a target.

The arch field is ``level[,+-feature]*``: "x86-64-v3", "x86-64-v3,-fma" or "" for what this machine has. Detection reads
/proc/cpuinfo and, where that is absent, gives an error that asks for the level. This back end's floor is x86-64-v3;
with all features of x86-64-v4 it uses 512-bit registers, 32 of them, and opmask registers (``Level``).
"""

from __future__ import annotations

import functools
import platform
from dataclasses import dataclass
from pathlib import Path

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import dtypes
from tinyhost.errors import RendererUnavailable, TargetError
from tinyhost_cpu.cpus import available_cpus

# x86-64 psABI, table 3.1: what each level adds, as Linux spells it
LEVELS: dict[str, frozenset[str]] = {
    "x86-64": frozenset({"cmov", "cx8", "fpu", "fxsr", "mmx", "sse", "sse2"}),
    "x86-64-v2": frozenset({"cx16", "lahf_lm", "popcnt", "pni", "sse4_1", "sse4_2", "ssse3"}),
    "x86-64-v3": frozenset({"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe", "xsave"}),
    "x86-64-v4": frozenset({"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}),
}
NEEDED = frozenset({"avx", "avx2", "bmi2", "f16c", "fma", "cmov"})
MAX_BUFFERS = 256  # arguments of one kernel; ctypes refuses a call of more than 1,024
EXTRAS = frozenset({"avx512vbmi"})  # beyond x86-64-v4, used where they are
STREAM_BYTES = 8 << 20  # outputs above which a store past the caches and a read from memory beat both through them
DTYPES = frozenset(dtypes.ints) | {dtypes.bool, dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64}


@dataclass(frozen=True)
class Level:
    """What instruction selection asks of a target.

    Attributes:
        evex: 512-bit registers, 32 of them, opmask registers, broadcasts in memory operands (F, BW, DQ, VL).
        byte_permutes: VPERMB.
    """

    evex: bool
    byte_permutes: bool


def level_of(features: frozenset[str]) -> Level:
    """The instructions that ``features`` allow."""
    evex = level_features("x86-64-v4") <= features
    return Level(evex, evex and "avx512vbmi" in features)


def level_features(level: str) -> frozenset[str]:
    """All features of ``level``, those of the levels below included."""
    names = list(LEVELS)
    return frozenset().union(*(LEVELS[n] for n in names[: names.index(level) + 1]))


@functools.cache
def host_features() -> frozenset[str]:
    """Features of this machine's processor; empty on another architecture.

    Raises:
        RendererUnavailable: /proc/cpuinfo cannot be read.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return frozenset()
    try:
        text = Path("/proc/cpuinfo").read_text()
    except OSError as e:
        raise RendererUnavailable(
            f"cannot detect the features of this processor: {e}; name a level, for example DEV=CPU:X86:x86-64-v3"
        ) from e
    flags = next((line.partition(":")[2] for line in text.splitlines() if line.startswith("flags")), "")
    return frozenset(flags.split())


def host_level() -> str:
    """The highest level that this machine has in full, "" when it is no x86-64."""
    features = host_features()
    return next((level for level in reversed(LEVELS) if level_features(level) <= features), "")


def host_arch() -> str:
    """The arch field of this machine: its level, and the features beyond it that ``Level`` asks for.

    Part of the key of programs on disk, so that none runs where a feature is missing.
    """
    level = host_level()
    extras = sorted(EXTRAS & host_features()) if level == "x86-64-v4" else []
    return ",".join([level, *(f"+{feature}" for feature in extras)])


def parse_arch(arch: str) -> frozenset[str]:
    """Features that ``level[,+-feature]*`` names; "" is this machine.

    Raises:
        TargetError: an unknown level, or a feature without + or -.

    >>> "fma" in parse_arch("x86-64-v3,-fma")
    False
    """
    level, *changes = [part.strip() for part in arch.split(",")]
    if level in ("", "native"):
        features = set(host_features())
    elif level in LEVELS:
        features = set(level_features(level))
    else:
        raise TargetError(f"unknown x86 level {level!r} in arch {arch!r}; levels are {', '.join(LEVELS)} or native")
    for change in changes:
        if change[:1] not in "+-" or not change[1:]:
            raise TargetError(f"feature {change!r} in arch {arch!r} has no sign; write level,+feature,-feature")
        (features.add if change[0] == "+" else features.discard)(change[1:])
    return frozenset(features)


def check_features(arch: str) -> frozenset[str]:
    """``parse_arch``, refused where this back end has no code for it.

    Raises:
        RendererUnavailable: AVX2, FMA, F16C or BMI2 is missing.
    """
    features = parse_arch(arch)
    missing = sorted(NEEDED - features)
    if missing:
        what = f"arch {arch!r}" if arch else "this processor"
        raise RendererUnavailable(
            f"the X86 renderer needs x86-64-v3, but {what} lacks {', '.join(missing)}; use CPU:LLVM or CPU:CLANG"
        )
    return features


def cache_bytes(index: int, default: int) -> int:
    """Size of a cache of the first processor from sysfs."""
    try:
        text = Path(f"/sys/devices/system/cpu/cpu0/cache/index{index}/size").read_text().strip()
    except OSError:
        return default
    unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
    return int(text.rstrip("KMG")) * unit


def capabilities(arch: str = "", threads: int | None = None) -> Capabilities:
    """What code for ``arch`` may rely on; opens nothing."""
    features = check_features(arch)
    evex = level_of(features).evex
    return Capabilities(
        host_visible=True,
        threads=available_cpus() if threads is None else threads,
        max_kernel_buffers=MAX_BUFFERS,
        vector_bytes=64 if evex else 32,
        vector_registers=32 if evex else 16,
        scalar_registers=14,
        masked=True,
        gather=False,
        fma="fma" in features,
        stream_bytes=STREAM_BYTES,
        l1_bytes=cache_bytes(0, 32 << 10),
        l2_bytes=cache_bytes(2, 1 << 20),
        llc_bytes=cache_bytes(3, 32 << 20),
        dtypes=DTYPES,
    )
