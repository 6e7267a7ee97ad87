"""The union of all tensor syntax that UOp and Tensor share.

Takes nothing of its own: it joins the mixins, each of which builds on the one before: elementwise and movement, reduce,
scan, sorting, selection, contraction, convolution, functional; beside them indexing, linear algebra, hashing, dtypes.
"""
from __future__ import annotations

from typing import Any

from tinyhost.mixin.dtype import DTypeMixin
from tinyhost.mixin.functional import FunctionalMixin
from tinyhost.mixin.indexing import IndexMixin


class OpMixin(FunctionalMixin, IndexMixin, DTypeMixin):
    """Everything but randomness, which needs state that only Tensor has."""

    __slots__ = ()

    def nbytes(self) -> Any:
        """Size of the elements in bytes."""
        return self.numel() * self.dtype.itemsize
