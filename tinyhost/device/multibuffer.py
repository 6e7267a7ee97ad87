"""MultiBuffer: the storage of a value on several devices, one Buffer a device, all of one size and dtype.

It takes buffers and stands where one Buffer could stand: allocated as a whole, viewed as a whole. What a lane holds
(a shard, or all of the value) is not known here.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.device.buffer import Buffer
    from tinyhost.dtype import DType


class MultiBuffer:
    """One buffer for each of several devices."""

    def __init__(self, parts: Sequence[Buffer]) -> None:
        self.parts = tuple(parts)
        self._lanes = {b.device: b for b in self.parts}
        if len(self._lanes) != len(self.parts):
            raise ValueError(f"storage on several devices needs a different device for each part, got "
                             f"{', '.join(b.device for b in self.parts)}")

    def __repr__(self) -> str:
        return f"<MultiBuffer {', '.join(map(repr, self.parts))}>"

    def __reduce__(self) -> tuple[Any, ...]:
        return MultiBuffer, (self.parts,)

    @property
    def device(self) -> tuple[str, ...]:
        """Devices of the parts."""
        return tuple(self._lanes)

    @property
    def size(self) -> int:
        """Elements of each part."""
        return self.parts[0].size

    @property
    def dtype(self) -> DType:
        """Type of the elements."""
        return self.parts[0].dtype

    @property
    def nbytes(self) -> int:
        """Bytes of all parts."""
        return sum(b.nbytes for b in self.parts)

    @property
    def base(self) -> MultiBuffer:
        """The storage that owns the memory."""
        return self if all(b.base is b for b in self.parts) else MultiBuffer([b.base for b in self.parts])

    def lane(self, device: str) -> Buffer:
        """The part on one device."""
        return self._lanes[device]

    def is_allocated(self) -> bool:
        """Whether memory stands behind every part."""
        return all(b.is_allocated() for b in self.parts)

    def ensure_allocated(self) -> MultiBuffer:
        """Allocate what lacks memory."""
        for b in self.parts:
            b.ensure_allocated()
        return self

    def view(self, size: int, dtype: DType, offset: int) -> MultiBuffer:
        """The same view of every part."""
        return MultiBuffer([b.view(size, dtype, offset) for b in self.parts])


def parts_of(buffer: Buffer | MultiBuffer) -> tuple[Buffer, ...]:
    """The single buffers of some storage."""
    return buffer.parts if isinstance(buffer, MultiBuffer) else (buffer,)
