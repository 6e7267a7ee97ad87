"""One element, or nested lists of them, as Python numbers; and the conversions that Python itself asks for.

A tensor counts as a number where it has exactly one element, as an index only where it is 0-d and an integer, and as a
truth value only where it is 0-d and bool: what a larger one should mean is for the program to say.
"""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.interop import InteropTensor
from tinyhost.dtype import dtypes

if TYPE_CHECKING:
    from typing import Self


class ReadTensor(InteropTensor):
    """item, tolist, truth and numbers."""

    __slots__ = ()

    def _elements(self) -> Any:
        """Number of elements, by the values of variables."""
        return self.numel() if isinstance(self.numel(), int) else self._concrete().numel()

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            ValueError: there is not exactly one element.
        """
        if self._elements() != 1:
            raise ValueError(f"item() needs exactly one element, got shape {self.shape}: use tolist() or index first")
        if (value := self._literal()) is not None:
            return value
        return self.numpy().reshape(()).item()

    def tolist(self) -> Any:
        """The elements as nested lists, a number for a 0-d tensor."""
        return self.item() if not self.shape else self.numpy().tolist()

    def __bool__(self) -> bool:
        if self.shape or self.dtype is not dtypes.bool:
            raise TypeError(f"only a 0-d bool tensor has a truth value, got shape {self.shape} of {self.dtype}: use "
                            ".any(), .all() or .item()")
        return bool(self.item())

    def _number(self, kind: str) -> Any:
        if self._elements() != 1:
            raise TypeError(f"{kind}() needs a tensor of one element, got shape {self.shape}: use tolist() or index "
                            "first")
        return self.item()

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if self.shape or not self.dtype.is_int:
            raise TypeError(f"only an integer tensor can be an index, and a 0-d one, got shape {self.shape} of "
                            f"{self.dtype}: use .item()")
        return int(self.item())

    def __iter__(self) -> Iterator[Self]:
        """The elements of the first axis.

        Raises:
            TypeError: there is no axis.
        """
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor: use .item()")
        size = len(self)
        return (self[i] for i in range(size))

    def __contains__(self, x: Any) -> bool:
        """Whether some element equals ``x``, which may be an array that broadcasts."""
        return bool(self.eq(x).any().item())
