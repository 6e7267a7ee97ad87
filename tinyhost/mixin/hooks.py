"""What a class implements to get the tensor syntax: the hooks under every mixin.

``UOp`` and ``Tensor`` implement these names; the mixins call nothing else of them. The declarations exist for the type
checker only, so that a class that forgets one fails with the usual AttributeError.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Self

    from tinyhost.dtype import DType
    from tinyhost.ops import Ops


class Node:
    """A value with shape, dtype and device over which tensor syntax works.

    Movement arguments are Python tuples: RESHAPE a shape, EXPAND the new leading extents, PERMUTE an order, PAD and
    SHRINK one (offset, size) pair for each axis, FLIP one bool for each axis.
    """

    __slots__ = ()

    def _fresh(self) -> Self:
        """Self as a result of its own, where a method has nothing to do; Tensor makes one that shares no writes."""
        return self

    if TYPE_CHECKING:
        @property
        def shape(self) -> tuple[Any, ...]: ...

        @property
        def dtype(self) -> DType: ...

        @property
        def device(self) -> str | tuple[str, ...] | None: ...

        def alu(self, op: Ops, *src: Self) -> Self:
            """Node ``op`` over self and src, taken as they are."""

        def _mop(self, op: Ops, arg: tuple[Any, ...]) -> Self:
            """Movement node over self."""

        def _rop(self, op: Ops, axes: tuple[int, ...]) -> Self:
            """Reduction of self over ``axes``, which disappear; ``axes`` are the leading ones and longer than 1."""

        def const_like(self, b: Any) -> Self:
            """``b`` at self's dtype and shape."""

        @classmethod
        def _const(cls, b: Any, dtype: DType | None = None, device: Any = None) -> Self:
            """0-d literal; weak without ``dtype``."""

        @classmethod
        def _stack(cls, items: Sequence[Self]) -> Self:
            """Nodes of one shape along a new leading axis."""

        @classmethod
        def _iota(cls, size: Any) -> Self:
            """0, 1, ... size-1 as weakint, without a device."""

        def _literal(self) -> Any:
            """The Python value of a bare CONST, else None."""

        def index(self, *idx: Self) -> Self:
            """Elements of self at integer nodes that count axes from the left (INDEX)."""

        def ufix(self, x: Any) -> Self:
            """``x`` as a node of self's class; Python scalars become bare literals."""

        def cast(self, dtype: Any) -> Self: ...

        def bitcast(self, dtype: Any) -> Self: ...

        def contiguous(self, *args: Any, **kwargs: Any) -> Self: ...

        def dropout(self, p: float = 0.5) -> Self:
            """Zeros at random; only classes with random state have it."""
