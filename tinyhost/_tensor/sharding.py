"""Tensors on several devices: split along an axis, or whole on each.

The value is one; where its parts lie is structure of its graph. Nothing moves before the tensor is realized.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import canonical_device
from tinyhost._tensor.random import RandomTensor
from tinyhost._tensor.storage import StorageTensor
from tinyhost.dtype import strong_dtype, to_dtype
from tinyhost.errors import DeviceError, ShapeError
from tinyhost.uop import UOp
from tinyhost.uop.sharding import stored_axis

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DTypeLike


class ShardingTensor(RandomTensor, StorageTensor):
    """shard, shard_, shard_like, and what new tensors like a split one do."""

    __slots__ = ()

    def shard(self, devices: tuple[str, ...], axis: int | None = None) -> Self:
        """Self on several devices.

        Args:
            devices: two or more different devices; the order is that of the shards.
            axis: the axis that is cut in equal shards, one a device (the last ones are shorter where it does not
                divide); None puts all of self on each device, gathering the shards of what is split.

        Raises:
            DeviceError: a device is given twice.
            ShapeError: self has no axes, or the axis is symbolic.
            IndexError: the axis does not exist.

        Example:
            >>> from tinyhost import Tensor
            >>> Tensor([[1, 2], [3, 4]]).shard(("CPU", "CPU:1"), axis=0).sum(0).tolist()
            [4, 6]
        """
        names = _several(devices)
        if isinstance(names, str):
            return self.to(names)
        if axis is None:
            return self.to(names) if self.device != names or stored_axis(self.uop) is None else self._whole_on(names)
        if not self.shape:
            raise ShapeError(f"cannot shard a tensor without axes over {names}: leave axis out to have it on each "
                             "device")
        ret = self._wrap(self.uop.cast(strong_dtype(self.dtype)).shard(names, self._resolve_dim(axis)))
        ret.is_param = self.is_param
        if self.grad is not None:
            ret.grad = self.grad.shard(names, axis)
        return ret

    def _whole_on(self, names: tuple[str, ...]) -> Self:
        """All of self on each of the devices that hold its shards."""
        ret = self._wrap(self.uop.cast(strong_dtype(self.dtype)).copy_to_device(names))
        ret.is_param = self.is_param
        if self.grad is not None:
            ret.grad = self.grad.shard(names)
        return ret

    def shard_(self, devices: tuple[str, ...], axis: int | None = None) -> Self:
        """Move self, and its gradient, to several devices; see ``shard``."""
        moved = self.shard(devices, axis)
        if self.grad is not None and moved is not self:
            self.grad = moved.grad
        self.uop, self._family = moved.uop, None
        return self

    def shard_like(self, y: Self) -> Self:
        """Self on the devices of ``y``, split along the same axis."""
        if not isinstance(y.device, tuple):
            return self.to(y.device)
        axis = stored_axis(y.uop)
        if self.device == y.device and stored_axis(self.uop) == axis:
            return self
        return self.shard(y.device, axis)

    # *** new tensors ***
    def empty_like(self, dtype: DTypeLike | None = None, device: Any = None) -> Self:
        """Storage of self's shape, split like self; dtype and device are self's unless others are given."""
        axis = stored_axis(self.uop) if device is None else None
        if axis is None:
            return super().empty_like(dtype, device)
        assert self.device is not None
        dt = strong_dtype(self.dtype) if dtype is None else to_dtype(dtype)
        return self._wrap(UOp.new_storage(self.shape, dt, self.device, axis))

    def full_like(self, fill_value: Any, dtype: DTypeLike | None = None, device: Any = None,
                  buffer: bool = True) -> Self:
        """``fill_value`` at self's shape, split like self; dtype and device are self's unless others are given."""
        if not buffer or device is not None or stored_axis(self.uop) is None:
            return super().full_like(fill_value, dtype, device, buffer)
        return self.empty_like(dtype).assign(self.full(self.shape, fill_value, dtype or self.dtype, buffer=False))

    @classmethod
    def rand(cls, *shape: Any, device: Any = None, dtype: DTypeLike | None = None, contiguous: bool = True) -> Self:
        """Uniform floats in [0, 1); for several devices drawn on the first, the same on each."""
        names = canonical_device(device)
        if isinstance(names, str):
            return super().rand(*shape, device=names, dtype=dtype, contiguous=contiguous)
        return super().rand(*shape, device=names[0], dtype=dtype).to(names)

    def rand_like(self, **kwargs: Any) -> Self:
        """``rand`` with self's shape, dtype and device, split like self."""
        ret = super().rand_like(**kwargs)
        return ret if "device" in kwargs else ret.shard_like(self)


def _several(devices: Any) -> str | tuple[str, ...]:
    if isinstance(devices, str) or not isinstance(devices, (tuple, list)) or not devices:
        raise DeviceError(f"shard takes a tuple of devices, got {devices!r}: use .to() for one device")
    return canonical_device(devices)
