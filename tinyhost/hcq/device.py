"""What a device with command queues implements: Queues (the queues of one device) and PeerGroup (who submits).

Devices of a peer group see each other's memory and signals, so a command of one may name an address of another. The
engine encodes queues with ``Queues.encoder``, links them to memory from ``Queues.allocate``, patches them, and gives
all queues of one submission to ``PeerGroup.submit`` at once. ``docs/queues.md`` is the page for authors of backends.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cached_property
from threading import RLock
from typing import TYPE_CHECKING, Any, NamedTuple

from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.signals import ErrorState, Point, SignalPool, Timeline
from tinyhost.hcq.stream import Encoder, Linked

if TYPE_CHECKING:
    from tinyhost.hcq.immediate import Immediate
    from tinyhost.hcq.staging import Staging

__all__ = ["HostMemory", "PeerGroup", "Queues", "Submission", "Timing"]


class Timing(NamedTuple):
    """What one launch or copy took: which submission, its ordinal among the execute and copy commands of that queue,
    the worker of the device that ran it; start and end in nanoseconds of the host's clock (``time.perf_counter_ns``).
    """

    submission: int
    command: int
    worker: int
    start: int
    end: int


@dataclass(frozen=True, eq=False)
class Submission:
    """A linked stream whose words are complete, and the queue it is for."""

    queues: Queues
    name: str
    linked: Linked


class PeerGroup(ABC):
    """Devices that see each other's memory and signals.

    Attributes:
        signals: where their signals come from.
        lock: held while the words of a submission are written and the submission is handed in.
        synchronous: whether everything is done, or has failed, when ``submit`` returns.
        measures: whether ``submit`` can say what launches took; otherwise profiles come from timestamp commands.
    """

    signals: SignalPool
    synchronous: bool = False
    measures: bool = False

    def __init__(self) -> None:
        self.lock: AbstractContextManager[Any] = RLock()

    @abstractmethod
    def submit(self, work: Sequence[Submission], timed: bool = False) -> Sequence[Timing] | None:
        """Start all of ``work``, in an order that lets each queue run as soon as what it waits for is done.

        The streams belong to the devices until the last signal in them is set. A submission to a device that has
        failed raises its error (``Queues.errors.check``) and starts nothing.

        Returns:
            With ``timed``, what each launch and copy took; None where the group cannot say.

        Raises:
            DeviceError: a device failed; with ``synchronous`` also for what the work itself did.
        """


class Queues(ABC):
    """The command queues of one opened device.

    Attributes:
        device: its name.
        compute_copies: whether the compute queue takes copy commands.
        staging_bytes, staging_slots: memory for copies between host and device, and into how many parts it is cut.
        group: the peer group it belongs to; another device of the same object is a peer.
        names: its queues, ``COMPUTE:0`` and so on; copies go to ``COPY:0`` where there is one.
        errors: whether it failed, and how; sticky.
        timeline: numbers of its work.
    """

    names: tuple[str, ...] = ("COMPUTE:0",)
    compute_copies: bool = True
    staging_bytes: int = 64 << 20
    staging_slots: int = 32

    def __init__(self, device: str, group: PeerGroup, timeline_start: int = 0) -> None:
        self.device, self.group = device, group
        self.errors = ErrorState(device)
        self.timeline = Timeline(group.signals, self.errors, timeline_start)
        self._kept: dict[int, tuple[object, Point]] = {}

    @property
    def compute_queue(self) -> str:
        """The queue that runs kernels."""
        return next(n for n in self.names if n.startswith("COMPUTE"))

    @property
    def copy_queue(self) -> str | None:
        """The queue that copies beside the compute queue; None where there is none."""
        return next((n for n in self.names if n.startswith("COPY")), None)

    @property
    def has_copy_queue(self) -> bool:
        """Whether copies have a queue of their own."""
        return self.copy_queue is not None

    @property
    def copying_queue(self) -> str | None:
        """The queue that copies: the copy queue, else the compute queue if it can; None where only the host copies."""
        return self.copy_queue or (self.compute_queue if self.compute_copies else None)

    @cached_property
    def immediate(self) -> Immediate:
        """Runs commands that are in no graph."""
        from tinyhost.hcq.immediate import Immediate
        return Immediate(self)

    @cached_property
    def staging(self) -> Staging:
        """Memory between host and device."""
        from tinyhost.hcq.staging import Staging
        return Staging(self.allocate(self.staging_bytes), self.staging_slots)

    @abstractmethod
    def encoder(self, name: str) -> Encoder:
        """How commands of the queue ``name`` become words."""

    @abstractmethod
    def allocate(self, nbytes: int) -> HostMemory:
        """Memory for streams that this device reads and the host writes, aligned as its encoders want it. It is freed
        with the last reference to the object.
        """

    @abstractmethod
    def address_of(self, opaque: Any) -> int:
        """The address, as devices of the group see it, of memory that this device's allocator gave out."""

    def keep(self, what: object) -> None:
        """Hold a reference until everything submitted so far is done: streams and signals that the device uses."""
        with self.timeline.lock:
            self._kept.pop(id(what), None)
            self._kept[id(what)] = what, self.timeline.point()
            gone = self._let_go()
        del gone  # outside of the lock: what goes may take locks of its own

    def _let_go(self) -> list[object]:
        out: list[object] = []
        while self._kept:
            number, (what, point) = next(iter(self._kept.items()))
            if not point.done:
                break
            out.append(what)
            del self._kept[number]
        return out

    def synchronize(self) -> None:
        """Wait until everything submitted is done.

        Raises:
            DeviceError: the device has failed.
        """
        self.timeline.wait()
        with self.timeline.lock:
            gone = self._let_go()
        del gone
