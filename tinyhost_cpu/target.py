"""Targets of the CPU device: what the loader asks without opening it."""
from __future__ import annotations

import platform

from tinyhost.env import NUM_CPU_THREADS
from tinyhost.errors import RendererUnavailable
from tinyhost.plugin.v1 import Capabilities, ProbeResult, Target, Tier
from tinyhost_cpu.cpus import available_cpus
from tinyhost_cpu.x86 import caps


def thread_count() -> int:
    """Threads of one kernel: NUM_CPU_THREADS, else every processor this process may use."""
    return NUM_CPU_THREADS.value or available_cpus()


def capabilities(target: Target) -> Capabilities:
    """What X86 code for ``target`` may rely on."""
    return caps.capabilities(target.arch, thread_count())


def default_arch(target: Target) -> str:
    """The level of this machine, and what the X86 renderer uses beyond it."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return ""
    return caps.host_arch() if target.renderer in ("", "X86") else caps.host_level()


def probe() -> ProbeResult:
    """The host processor is always there."""
    return ProbeResult(ok=True, tier=Tier.HOST)


def x86_missing() -> str:
    """Why the X86 renderer cannot work here, "" when it can."""
    try:
        caps.check_features("")
    except RendererUnavailable as e:
        return str(e)
    return ""
