"""Recording what runs: while a Capture is active, every executed plan is kept with its buffers, for replay.

Knows plans and buffers only. Storage that had content before is kept alive; storage that the recorded plans gave its
first content is not, so what dies with the last tensor over it is known to be nobody's. One capture may be active in a
thread at a time.
"""
from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import local
from typing import TYPE_CHECKING, TypeAlias

from tinyhost.device import Buffer, caps_of
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.uop.storage import next_buffer_slot

if TYPE_CHECKING:
    from tinyhost.engine.plan import Plan
    from tinyhost.uop import UOp


class Fresh:
    """Storage without content before what was recorded, known without being kept alive.

    ``device`` (one or several), ``size`` and ``dtype`` are those of the storage.
    """

    def __init__(self, storage: Buffer | MultiBuffer) -> None:
        self.device, self.size, self.dtype = storage.device, storage.size, storage.dtype
        self._whole = weakref.ref(storage)
        self._parts = [weakref.ref(part) for part in parts_of(storage)]

    def is_of(self, storage: Buffer | MultiBuffer) -> bool:
        """Whether it stands for this storage."""
        return self._whole() is storage

    def is_gone(self) -> bool:
        """Whether nothing refers to any of it any more."""
        return all(ref() is None for ref in self._parts)

    def storage(self) -> Buffer | MultiBuffer:
        """The storage; parts that nothing refers to any more are new ones, without content."""
        if (whole := self._whole()) is not None:
            return whole
        devices = self.device if isinstance(self.device, tuple) else (self.device,)
        parts = [ref() or Buffer(d, self.size, self.dtype) for ref, d in zip(self._parts, devices)]
        out = MultiBuffer(parts) if isinstance(self.device, tuple) else parts[0]
        self._whole, self._parts = weakref.ref(out), [weakref.ref(p) for p in parts]
        return out


def _is_empty(storage: Buffer | MultiBuffer) -> bool:
    """Whether storage has no content yet; a file has what is in it."""
    return not any(p.is_allocated() or caps_of(p.device).storage_only for p in parts_of(storage))


Held: TypeAlias = Buffer | MultiBuffer | Fresh


@dataclass(frozen=True)
class Executed:
    """A plan that ran, with what its parameters were."""

    plan: "Plan"
    held: list[Held]


@dataclass
class Capture:
    """The plans executed while it was active: arguments, and the variables' values.

    ``outside`` are graphs that existed before (as they are now, with what they were): they are computed once, and their
    computation is not recorded. ``computed`` are those, as they were, that were computed since, with what they became,
    ``early`` those of them that what was recorded reads.
    ``leaves`` are values without storage, of an identity of their own, that it reads.
    ``before`` are blocks of buffer numbers (first, last) that were given out before or meanwhile, not by what is
    recorded.
    """

    outside: "dict[UOp, UOp]" = field(default_factory=dict)
    computed: "dict[UOp, UOp]" = field(default_factory=dict)
    early: "set[UOp]" = field(default_factory=set)
    leaves: "set[UOp]" = field(default_factory=set)
    items: list[tuple[Executed, dict[str, int]]] = field(default_factory=list)
    before: list[tuple[int, int]] = field(default_factory=list)
    _fresh: dict[int, Fresh | None] = field(default_factory=dict)  # by id of the storage

    def known(self, params: Sequence[Buffer | MultiBuffer]) -> list[Held]:
        """What parameters of a plan that will run are known as: those without content so far are not kept alive."""
        held: list[Held] = []
        for p in params:
            known = self._fresh.get(id(p))
            if known is None or not known.is_of(p):  # another one may have had this address
                known = self._fresh[id(p)] = Fresh(p) if _is_empty(p) else None
            held.append(known or p)
        return held

    def record(self, plan: "Plan", held: list[Held], var_vals: dict[str, int]) -> None:
        """Keep a plan that ran on ``known`` parameters."""
        self.items.append((Executed(plan, held), var_vals))

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
        self.current = Capture({u: u for u in outside}, before=[(0, next_buffer_slot())])
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
