"""Tensor syntax as methods over an abstract node.

``UOp`` and ``Tensor`` inherit these classes and supply the hooks of ``hooks.Node``. Nothing here imports either of
them, and every class has empty slots.
"""
from __future__ import annotations

from tinyhost.mixin.creation import CreationMixin
from tinyhost.mixin.dtype import DTypeMixin
from tinyhost.mixin.elementwise import ElementwiseMixin
from tinyhost.mixin.movement import MovementMixin
from tinyhost.mixin.op import OpMixin
from tinyhost.mixin.rand import RandMixin
from tinyhost.mixin.reduce import ReduceMixin

__all__ = ["CreationMixin", "DTypeMixin", "ElementwiseMixin", "MovementMixin", "OpMixin", "RandMixin", "ReduceMixin"]
