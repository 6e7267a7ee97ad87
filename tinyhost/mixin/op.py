"""The union of all tensor syntax that UOp and Tensor share.

Takes nothing of its own: it joins the mixins, each of which builds on the one before: elementwise and movement, reduce,
scan, sorting, selection, contraction, convolution, functional; beside them indexing, linear algebra, hashing, dtypes.
"""
from __future__ import annotations

from typing import Any

from tinyhost.mixin.dtype import DTypeMixin
from tinyhost.mixin.hashing import HashMixin
from tinyhost.mixin.linalg import LinalgMixin


class OpMixin(HashMixin, LinalgMixin, DTypeMixin):
    """Everything but randomness, which needs state that only Tensor has."""

    __slots__ = ()

    def nbytes(self) -> Any:
        """Size of the elements in bytes."""
        return self.numel() * self.dtype.itemsize
