"""Computing tensors: realization, and the elements of one as a buffer.

Everything here runs kernels. Weak values take their default dtype when they are read, values without a device the
default device.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost._tensor.core import TensorCore, canonical_device, store_in_new_buffer
from tinyhost.dtype import strong_dtype
from tinyhost.env import ALLOW_DEVICE_USAGE
from tinyhost.errors import DeviceUsageError

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.device import Buffer
    from tinyhost.uop import UOp


class RealizeTensor(TensorCore):
    """realize and the schedules behind it."""

    __slots__ = ()

    def realize(self, *lst: Self, do_update_stats: bool = True) -> Self:
        """Compute self and ``lst`` together; weak values stay virtual."""
        _check_may_run()
        tensors = [t for t in (self, *lst) if not t.dtype.is_weak and not is_empty(t)]
        for t in tensors:
            if t.uop.device is None:
                t.uop = store_in_new_buffer(t.uop, canonical_device(None))
        if tensors:
            from tinyhost import realization  # loads scheduler and engine, at the first realization
            realization.realize(*tensors, do_update_stats=do_update_stats)
        return self

    def schedule_linear(self, *lst: Self) -> UOp:
        """The LINEAR of kernels that would compute self and ``lst``."""
        from tinyhost import realization
        return realization.linear_with_vars([self, *lst])[0]

    def linear_with_vars(self, *lst: Self) -> tuple[UOp, dict[str, int]]:
        """The LINEAR of kernels that would compute self and ``lst``, and the values of bound variables."""
        from tinyhost import realization
        return realization.linear_with_vars([self, *lst])

    def _concrete(self) -> Self:
        """Self, computed where its shape has variables, with their values in the place of them.

        Raises:
            RuntimeError: a variable has no value.
        """
        if all(isinstance(s, int) for s in self.shape):
            return self
        from tinyhost._tensor.symbolic import concrete
        return self._wrap(concrete(self.realize().uop))

    def _read(self) -> Buffer:
        """The realized elements in order, on one device; the shape has no variables."""
        _check_may_run()
        t = self.cast(strong_dtype(self.dtype))
        if isinstance(t.device, tuple):
            t = t._wrap(t.uop.copy_to_device(t.device[0]))
        from tinyhost import realization
        return realization.read(t)

    def _where_stored(self) -> UOp | None:
        """Self as a view of storage on one device, computed; None if it is none, as literals and spread values."""
        if self.dtype.is_weak or self.device is None or isinstance(self.device, tuple):
            return None
        from tinyhost.engine.capture import recorder
        if recorder.active() is not None:
            self._read()  # which says that nothing can be read now
        return self.realize().uop


def _check_may_run() -> None:
    if not ALLOW_DEVICE_USAGE.value:
        raise DeviceUsageError("a tensor is realized or read while ALLOW_DEVICE_USAGE=0, as in a function that is "
                               "being traced: return it, and read it outside")


def is_empty(t: TensorCore) -> bool:
    """Whether an extent is 0."""
    return any(isinstance(s, int) and s == 0 for s in t.shape)
