"""What the parts of the node class rely on: the four fields, the constructor and the derived properties.

``UOp`` in ``node.py`` is put together from mixins, one file for each concern; they inherit this class and therefore
never import ``node.py``. The declarations exist for the type checker only.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost.mixin import OpMixin

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from tinyhost.dtype import DType
    from tinyhost.ops import Ops

sint = Any  # int or symbolic node: a shape entry, a bound, an offset
UNSET: Any = type("Unset", (), {"__repr__": lambda self: "UNSET", "__slots__": ()})()


class NodeFields(OpMixin):
    """A node as its mixins see it."""

    __slots__ = ()

    if TYPE_CHECKING:
        op: Ops
        src: tuple[Self, ...]
        arg: Any
        tag: Any

        def __new__(cls, op: Ops, src: tuple[Self, ...] = (), arg: Any = None, tag: Any = None) -> Self: ...

        @property
        def bounds(self) -> tuple[Any, Any]: ...

        @property
        def is_const(self) -> bool: ...

        @property
        def const_value(self) -> Any: ...

        @property
        def is_invalid(self) -> bool: ...

        @property
        def is_variable(self) -> bool: ...

        @property
        def is_bound_var(self) -> bool: ...

        @property
        def axis(self) -> int | None: ...

        @property
        def base(self) -> Self: ...

        @property
        def ranges(self) -> dict[Self, None]: ...

        @classmethod
        def new_buffer(cls, device: str | tuple[str, ...], size: int, dtype: DType, num: int | None = None) -> Self: ...

        def view_as(self, shape: tuple[sint, ...], axis: int | None = None) -> Self: ...

        def copy_to_device(self, device: str | tuple[str, ...]) -> Self: ...

        def unshard(self, axis: int | tuple[int, ...] | None) -> Self: ...

        def only(self, axis: int, extent: int) -> Self: ...

        @property
        def shard_shape(self) -> tuple[sint, ...]: ...

        @property
        def max_shard_shape(self) -> tuple[int, ...]: ...

        @staticmethod
        def invalid() -> Any: ...

        def after(self, *src: Self) -> Self: ...

        def store(self, src: Any, gate: Self | None = None) -> Self: ...

        def has_buffer_identity(self, after_ok: bool = False) -> bool: ...

        def toposort(self, gate: Callable[[Self], bool] | None = None,
                     enter_calls: bool = True) -> dict[Self, None]: ...

        def variables(self) -> list[Self]: ...

        def simplify(self) -> Self: ...

        def substitute(self, dvars: dict[Self, Self]) -> Self: ...

        def render(self) -> str: ...
