"""Values on several devices: shards, the whole they make, single lanes of them, combination over devices.

A value on a tuple of devices holds one shard a device; UNSHARD sees the shards as one value, side by side along an
axis, with one DEVICE range an axis as the number of the shard. Which axis a value is split along is derived
(``shape.py``). Nothing here moves data: lowering to one graph a device is a pass of its own.
"""
from __future__ import annotations

from typing import Any, Self

from tinyhost.dtype import DType
from tinyhost.errors import ShapeError
from tinyhost.helpers import ceildiv, prod
from tinyhost.ops import AxisType, Ops
from tinyhost.uop.fields import NodeFields, sint

DEVICE_AXIS = -1  # id of the default range over devices
_SHOWS = frozenset({Ops.RESHAPE, Ops.SHRINK, Ops.DETACH, Ops.AFTER, Ops.CONTIGUOUS})


class ShardingMixin(NodeFields):
    """Constructors and questions around values on several devices."""

    __slots__ = ()

    def _devices(self, what: str) -> tuple[str, ...]:
        if not isinstance(self.device, tuple):
            raise RuntimeError(f"{what} needs a value on several devices, this one is on {self.device}")
        return self.device

    def unshard(self, axis: int | tuple[int, ...] | None, device_range: Self | tuple[Self, ...] | None = None) -> Self:
        """The shards side by side along ``axis`` (several axes: one range for each); None is the value itself.

        Raises:
            RuntimeError: the value is on one device.
            ValueError: axes and ranges do not pair up.
        """
        if axis is None:
            return self
        axes = axis if isinstance(axis, tuple) else (axis,)
        if device_range is None:
            device_range = self._device_range(len(self._devices("unshard")))
        over = device_range if isinstance(device_range, tuple) else (device_range,)
        if len(over) != len(axes):
            raise ValueError(f"unshard takes one range for each axis, got axes {axes} and {len(over)} ranges")
        pairs = sorted(zip(axes, over, strict=True), key=lambda pair: pair[0])
        return type(self)(Ops.UNSHARD, (self, *[r for _, r in pairs]), tuple([a for a, _ in pairs]))

    @classmethod
    def new_storage(cls, shape: tuple[sint, ...], dtype: DType, device: str | tuple[str, ...],
                    axis: int | None = None) -> Self:
        """A new buffer seen as ``shape``, split along ``axis`` over the devices; symbolic extents at their largest."""
        count = len(device) if axis is not None else 1
        shard = tuple([ceildiv(d, count) if i == axis else d for i, d in enumerate(shape)])
        size = int(prod(d if isinstance(d, int) else d.vmax for d in shard))
        whole = cls.new_buffer(device, size, dtype).view_as(shard, axis)
        return whole if axis is None else whole.only(axis, shape[axis])

    def only(self, axis: int, extent: int) -> Self:
        """The first ``extent`` elements along an axis: a value without the padding of its last shards."""
        if self.shape[axis] == extent:
            return self
        box = tuple((0, extent if i == axis else d) for i, d in enumerate(self.shape))
        return self._mop(Ops.SHRINK, box)

    def with_full_shards(self, axis: int, count: int) -> Self:
        """The value padded along ``axis`` to a multiple of ``count``."""
        extent = ceildiv(self.shape[axis], count) * count
        if self.shape[axis] == extent:
            return self
        box = tuple((0, extent if i == axis else d) for i, d in enumerate(self.shape))
        return self._mop(Ops.PAD, box)

    def _device_range(self, count: int) -> Self:
        return type(self)(Ops.RANGE, (self._const(count),), (DEVICE_AXIS, AxisType.DEVICE))

    def own_shard(self, axis: int) -> Self:
        """On each device the part along ``axis`` that is its own: what ``unshard`` puts together again.

        Shards are equal; where the axis does not divide, the last ones end in padding.

        Raises:
            ShapeError: the axis is symbolic.
        """
        devices = self._devices("own_shard")
        size, count = self.shape[axis], len(devices)
        if not isinstance(size, int):
            shape = ", ".join(str(d) if isinstance(d, int) else d.render() for d in self.shape)
            raise ShapeError(f"cannot shard axis {axis} of shape ({shape}) over {count} devices {devices}: "
                             f"{size.render()} is symbolic; shard another axis")
        full, number = self.with_full_shards(axis, count), self._device_range(count)
        each = full.shape[axis] // count
        return full._mop(Ops.SHRINK, tuple((number * each, each) if i == axis else (0, d)
                                           for i, d in enumerate(self.shape)))

    def shard(self, devices: tuple[str, ...], axis: int | None = None) -> Self:
        """The value on several devices: split along ``axis``, or all of it on each.

        Raises:
            ShapeError: the axis is symbolic.
        """
        if axis is None or not isinstance(self.shape[axis], int):
            moved = self.copy_to_device(devices)
            return moved if axis is None else moved.own_shard(axis)
        full = self.with_full_shards(axis, len(devices)).copy_to_device(devices)
        return full.own_shard(axis).unshard(axis).only(axis, self.shape[axis])

    @property
    def is_own_shard(self) -> bool:
        """Whether this node takes each device's own part of its source."""
        return self.op is Ops.SHRINK and isinstance(self.device, tuple) and any(
            r.arg[-1] is AxisType.DEVICE for r in self.src[1].ranges)

    @property
    def sharding(self) -> tuple[tuple[int, Self], ...] | None:
        """(axis, range) pairs of the outermost UNSHARD, None where there is none."""
        u = self
        while u.op in _SHOWS:
            u = u.src[0]
        return tuple(zip(u.arg, u.src[1:])) if u.op is Ops.UNSHARD else None

    @property
    def shard_shape(self) -> tuple[sint, ...]:
        """Shape of what one device holds; the last ones may hold less."""
        axis = stored_axis(self)
        if axis is None:
            return self.shape
        count = len(self._devices("shard_shape"))
        return tuple([ceildiv(d, count) if i == axis else d for i, d in enumerate(self.shape)])

    @property
    def max_shard_shape(self) -> tuple[int, ...]:
        """``shard_shape`` with symbolic dimensions at their largest."""
        return tuple([d if isinstance(d, int) else int(d.vmax) for d in self.shard_shape])

    @property
    def unsharded_base(self) -> Self:
        """``base``, and what lies under one UNSHARD there."""
        b = self.base
        return b.src[0].base if b.op is Ops.UNSHARD else b

    def mselect(self, arg: int) -> Self:
        """The copy of one device, by its number."""
        return type(self)(Ops.MSELECT, (self,), arg)

    def mstack(self, *srcs: Self) -> Self:
        """One value for each device, this one for the first."""
        return type(self)(Ops.MSTACK, (self, *srcs))

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


def stored_axis(u: Any) -> int | None:
    """The axis along which storage for a node is split, None where every device holds all of it.

    Where a reshape moved items between shards values are whole.
    """
    if not isinstance(u.device, tuple):
        return None
    try:
        axis = u.axis
    except RuntimeError:  # a reshape that moved items between shards has no axis
        return None
    return None if axis is None or not isinstance(u.shape[axis], int) else int(axis)
