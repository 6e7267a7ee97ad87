"""Literals: what the value of a constant node may be.

Python numbers, and two classes of our own: floats that can be interning keys, and the marker for "no value here".
"""
from __future__ import annotations

import math
from typing import Final, TypeAlias


class ConstFloat(float):
    """A float that can be an interning key: NaN equals NaN, and -0.0 differs from 0.0."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if float.__eq__(self, other) is True:
            return float.__ne__(self, 0.0) or math.copysign(1.0, self) == math.copysign(1.0, other)  # type: ignore
        return float.__ne__(self, self) and isinstance(other, float) and float.__ne__(other, other)

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return 0x7FC00000 if float.__ne__(self, self) else float.__hash__(self)


class InvalidType:
    """The literal that stands for "no value here": padding, and the index of an access that must not happen."""

    __slots__ = ()
    _instance: InvalidType | None = None

    def __new__(cls) -> InvalidType:
        if cls._instance is None:
            cls._instance = object.__new__(cls)
        return cls._instance

    # sorts behind every number, so literals have a total order
    def __lt__(self, other: object) -> bool:
        return False

    def __gt__(self, other: object) -> bool:
        return other is not self

    def __repr__(self) -> str:
        return "Invalid"

    def __reduce__(self) -> str:
        return "Invalid"


Invalid: Final = InvalidType()

PyConst: TypeAlias = float | int | bool
ConstType: TypeAlias = float | int | bool | InvalidType
