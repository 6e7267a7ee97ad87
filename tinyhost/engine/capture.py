"""Recording what runs: while a Capture is active, every executed plan is kept with its buffers, for replay.

Knows plans and Buffers only. One capture may be active in a thread at a time.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tinyhost.device import Buffer
    from tinyhost.engine.realize import Plan


@dataclass
class Recorded:
    """One executed plan: its parameters, its temporaries (kept alive for replay), its variables' values."""

    plan: "Plan"
    params: "list[Buffer]"
    temps: "list[Buffer | None]"
    var_vals: dict[str, int]


@dataclass
class Capture:
    """The plans executed while it was active."""

    items: list[Recorded] = field(default_factory=list)

    def record(self, plan: "Plan", params: "list[Buffer]", temps: "list[Buffer | None]", var_vals: dict[str, int]) -> None:
        """Keep one executed plan."""
        self.items.append(Recorded(plan, params, temps, var_vals))


class _Recorder(local):
    """The thread's active capture."""

    current: Capture | None = None

    def active(self) -> Capture | None:
        """The capture that records now, or None."""
        return self.current

    def start(self) -> Capture:
        """Begin recording.

        Raises:
            RuntimeError: another capture is active in this thread.
        """
        if self.current is not None:
            raise RuntimeError("a capture is active already: a captured function may not call another one while capturing")
        self.current = Capture()
        return self.current

    def stop(self) -> None:
        """End recording."""
        self.current = None


recorder = _Recorder()
