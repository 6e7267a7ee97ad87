"""The union of all tensor syntax that UOp and Tensor share.

Takes nothing of its own: it only joins the mixins, in an order that puts the general ones last.
"""
from __future__ import annotations

from tinyhost.mixin.creation import CreationMixin
from tinyhost.mixin.dtype import DTypeMixin
from tinyhost.mixin.indexing import IndexMixin
from tinyhost.mixin.reduce import ReduceMixin


class OpMixin(ReduceMixin, IndexMixin, CreationMixin, DTypeMixin):
    """Everything but randomness, which needs state that only Tensor has."""

    __slots__ = ()
