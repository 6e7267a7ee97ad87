"""Tensor: the class that programs use.

It joins the shared tensor syntax of ``tinyhost.mixin`` with what needs data, devices or state, from
``tinyhost._tensor``. Methods build graphs; nothing runs before a result is asked for.
"""
from __future__ import annotations

from tinyhost._tensor.autograd import AutogradTensor
from tinyhost._tensor.call import CallTensor
from tinyhost._tensor.dynamic import DynamicTensor
from tinyhost._tensor.items import ItemTensor
from tinyhost._tensor.sharding import ShardingTensor
from tinyhost._tensor.storage import StorageTensor

__all__ = ["Tensor"]


class Tensor(ShardingTensor, ItemTensor, CallTensor, AutogradTensor, DynamicTensor, StorageTensor):
    """An n-dimensional array whose value is computed when it is read or realized.

    >>> (Tensor([1, 2, 3]) * 2).tolist()
    [2, 4, 6]
    """

    __slots__ = ()
