"""Recording what runs: while a Capture is active, every executed plan is kept with its buffers, for replay.

Knows plans and buffers only. One capture may be active in a thread at a time.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING

from tinyhost.uop.storage import next_buffer_slot

if TYPE_CHECKING:
    from tinyhost.engine.realize import Bound
    from tinyhost.uop import UOp


@dataclass
class Capture:
    """The plans executed while it was active: arguments (temporaries stay alive), and the variables' values.

    ``outside`` are graphs that existed before: they are computed once, and their computation is not recorded.
    ``before`` are blocks of buffer numbers (first, last) that were given out before or meanwhile, not by what is
    recorded.
    """

    outside: "dict[UOp, None]" = field(default_factory=dict)
    items: "list[tuple[Bound, dict[str, int]]]" = field(default_factory=list)
    before: list[tuple[int, int]] = field(default_factory=list)

    def record(self, bound: "Bound", var_vals: dict[str, int]) -> None:
        """Keep one executed plan."""
        self.items.append((bound, var_vals))

    def made(self, buffer: "UOp") -> bool:
        """Whether a BUFFER node was made by what was recorded."""
        return not any(first <= buffer.arg.slot <= last for first, last in self.before)


class _Recorder(local):
    """The thread's active capture."""

    current: Capture | None = None

    def active(self) -> Capture | None:
        """The capture that records now, or None."""
        return self.current

    def start(self, outside: "dict[UOp, None]") -> Capture:
        """Begin recording, but not what computes ``outside``.

        Raises:
            RuntimeError: another capture is active in this thread.
        """
        if self.current is not None:
            raise RuntimeError("a capture is active already: a captured function may not call another one while "
                               "capturing")
        self.current = Capture(outside, before=[(0, next_buffer_slot())])
        return self.current

    def stop(self) -> None:
        """End recording."""
        self.current = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """A block that is not recorded."""
        kept, self.current = self.current, None
        first = next_buffer_slot()
        try:
            yield
        finally:
            self.current = kept
            if kept is not None:
                kept.before.append((first, next_buffer_slot()))


recorder = _Recorder()
