"""The allocator of a device with command queues: everything but where the memory comes from.

A backend says how memory is made and given back; copies to and from the host and between devices are here, through the
queues that copy, or by the host where it sees the memory and no queue copies.
"""
from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

from tinyhost.device.base import Allocator, BufferSpec, LRUAllocator, Opaque
from tinyhost.hcq.peers import transfer
from tinyhost.hcq.staging import copy_in, copy_out

if TYPE_CHECKING:
    from tinyhost.hcq.device import Queues


class HCQAllocator(LRUAllocator[Opaque], ABC):
    """Memory of a device whose ``queues`` are set before the first copy."""

    @property
    def queues(self) -> Queues:
        """The device's queues."""
        queues = self.dev.queues
        assert queues is not None, f"{self.dev.name} has an HCQAllocator and no queues"
        return queues

    @abstractmethod
    def _give_back(self, opaque: Opaque, options: BufferSpec) -> None:
        """Free memory that no queue uses."""

    def _free(self, opaque: Opaque, options: BufferSpec) -> None:
        if self.queues.errors.error is None:  # a failed device does not end its work, and has no use for its memory
            self.queues.synchronize()
        self._give_back(opaque, options)

    def _copyin(self, dest: Opaque, src: memoryview) -> None:
        view = None if self.queues.copying_queue is not None else self._as_buffer(dest)
        if view is None:
            copy_in(self.queues, self.queues.address_of(dest), src)
        else:
            self.queues.synchronize()
            view[:len(src)] = src

    def _copyout(self, dest: memoryview, src: Opaque) -> None:
        view = None if self.queues.copying_queue is not None else self._as_buffer(src)
        if view is None:
            copy_out(self.queues, dest, self.queues.address_of(src))
        else:
            self.queues.synchronize()
            dest[:] = view[:len(dest)]

    def _transfer(self, dest: Opaque, src: Any, nbytes: int, source: Allocator[Any]) -> bool:
        theirs = source.dev.queues
        if theirs is None:
            return False
        copying = [q.copying_queue is not None for q in (theirs, self.queues)]
        if theirs.group is self.queues.group and not any(copying):
            return False
        if theirs.group is not self.queues.group and (not all(copying) or source._as_buffer(src) is not None):
            return False  # memory that the host sees needs no second copy on the way
        transfer(self.queues, self.queues.address_of(dest), theirs, theirs.address_of(src), nbytes)
        return True
