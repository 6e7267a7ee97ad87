"""Values on several devices: shards, the whole they make, single lanes of them, combination over devices.

A value on a tuple of devices holds one shard a device; UNSHARD sees the shards as one value, side by side along an
axis, with one DEVICE range an axis as the number of the shard. Which axis a value is split along is derived
(``shape.py``). Nothing here moves data: lowering to one graph a device is a pass of its own.
"""
from __future__ import annotations

from typing import Any, Self

from tinyhost.ops import AxisType, Ops
from tinyhost.uop.fields import NodeFields, sint

DEVICE_AXIS = -1  # id of the default range over devices


class ShardingMixin(NodeFields):
    """Constructors and questions around values on several devices."""

    __slots__ = ()

    def _devices(self, what: str) -> tuple[str, ...]:
        if not isinstance(self.device, tuple):
            raise RuntimeError(f"{what} needs a value on several devices, this one is on {self.device}")
        return self.device

    def unshard(self, axis: int | tuple[int, ...] | None, ranges: Self | tuple[Self, ...] | None = None) -> Self:
        """The shards side by side along ``axis`` (several axes: one range for each); None is the value itself.

        Raises:
            RuntimeError: the value is on one device.
            ValueError: axes and ranges do not pair up.
        """
        if axis is None:
            return self
        axes = axis if isinstance(axis, tuple) else (axis,)
        if ranges is None:
            count = len(self._devices("unshard"))
            ranges = type(self)(Ops.RANGE, (self._const(count),), (DEVICE_AXIS, AxisType.DEVICE))
        over = ranges if isinstance(ranges, tuple) else (ranges,)
        if len(over) != len(axes):
            raise ValueError(f"unshard takes one range for each axis, got axes {axes} and {len(over)} ranges")
        pairs = sorted(zip(axes, over, strict=True), key=lambda pair: pair[0])
        return type(self)(Ops.UNSHARD, (self, *[r for _, r in pairs]), tuple([a for a, _ in pairs]))

    @property
    def shard_shape(self) -> tuple[sint, ...]:
        """Shape of what one device holds."""
        axis = self.axis
        if axis is None:
            return self.shape
        count = len(self._devices("shard_shape"))
        return tuple([d // count if i == axis else d for i, d in enumerate(self.shape)])

    @property
    def max_shard_shape(self) -> tuple[int, ...]:
        """``shard_shape`` with symbolic dimensions at their largest."""
        return tuple([d if isinstance(d, int) else int(d.vmax) for d in self.shard_shape])

    @property
    def unsharded_base(self) -> Self:
        """``base``, and what lies under one UNSHARD there."""
        b = self.base
        return b.src[0].base if b.op is Ops.UNSHARD else b

    def mselect(self, lane: int) -> Self:
        """The copy of one device."""
        return type(self)(Ops.MSELECT, (self,), lane)

    def mstack(self, *others: Self) -> Self:
        """One value for each device, this one for the first."""
        return type(self)(Ops.MSTACK, (self, *others))

    def allreduce(self, op: Ops, device: str | tuple[str, ...]) -> Self:
        """The shards combined with ``op``, on ``device``.

        Raises:
            RuntimeError: the value is on one device.
        """
        self._devices("allreduce")
        return type(self)(Ops.ALLREDUCE, (self,), (op, device))

    def getaddr(self, device: Any = None) -> Self:
        """Address of this storage as ``device`` sees it, its own by default."""
        return type(self)(Ops.GETADDR, (self,), self.device if device is None else device)
