"""Conversions between data types, as methods named after the types.

Takes a node with ``cast`` and ``dtype``; gives casts. Inside this class ``float``, ``int`` and ``bool`` are methods, so
nothing here uses the built-ins of those names.
"""
from __future__ import annotations

from typing import TYPE_CHECKING

from tinyhost.dtype import dtypes
from tinyhost.mixin.hooks import Node

if TYPE_CHECKING:
    import builtins
    from typing import Self


class DTypeMixin(Node):
    """Shorthands for ``cast``."""

    __slots__ = ()

    def element_size(self) -> builtins.int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def is_floating_point(self) -> builtins.bool:
        """Whether the dtype is a float."""
        return self.dtype.is_float

    def float(self) -> Self:
        """Cast to float32."""
        return self.cast(dtypes.float32)

    def half(self) -> Self:
        """Cast to float16."""
        return self.cast(dtypes.float16)

    def bfloat16(self) -> Self:
        """Cast to bfloat16."""
        return self.cast(dtypes.bfloat16)

    def double(self) -> Self:
        """Cast to float64."""
        return self.cast(dtypes.float64)

    def int(self) -> Self:
        """Cast to int32."""
        return self.cast(dtypes.int32)

    def long(self) -> Self:
        """Cast to int64."""
        return self.cast(dtypes.int64)

    def short(self) -> Self:
        """Cast to int16."""
        return self.cast(dtypes.int16)

    def bool(self) -> Self:
        """Cast to bool: whether the value is not zero."""
        return self.cast(dtypes.bool)
