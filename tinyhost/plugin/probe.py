"""Asks devices that nobody named whether they would open, each in a process of its own.

`probe_devices` needs metadata only: the child imports the spec and calls its probe, so a driver that crashes, hangs
or exits is a `Probe` like any other and this process has imported nothing.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tinyhost.env import TINYHOST_PROBE_TIMEOUT
from tinyhost.plugin.catalog import Record
from tinyhost.plugin.isolate import run_isolated


@dataclass(frozen=True, slots=True)
class Probe:
    """What is known of a device without opening it here.

    `auto` says whether it may be chosen unasked; `failed` that its code failed, so that nobody knows.
    """

    record: Record
    ok: bool
    tier: int = 0
    count: int = 0
    reason: str = ""
    auto: bool = True
    failed: bool = False

    @property
    def rejected(self) -> bool:
        """Whether something that may be better is there and cannot be used; absent hardware is not rejected."""
        return self.failed or (self.auto and not self.ok and self.count > 0)


def probe_devices(records: Sequence[Record]) -> list[Probe]:
    """Probe each device in a child process, all at once, each within TINYHOST_PROBE_TIMEOUT seconds."""
    jobs = [[r.name, r.entry.value] for r in records]
    outcomes = run_isolated("tinyhost.plugin.child:probe_entry", jobs, TINYHOST_PROBE_TIMEOUT.value)
    return [Probe(r, ok=False, reason=o.failure, failed=True) if o.failure else Probe(r, **o.value)
            for r, o in zip(records, outcomes, strict=True)]
