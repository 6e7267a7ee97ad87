"""Plain data that rides in the ``arg`` of nodes: storage and calls (kernels and programs: ``kernel_info.py``).

Every class is a frozen, hashable, picklable record without behaviour beyond small derived properties; hashes are cached
because a node's interning key contains its argument.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from tinyhost.dtype import DType
from tinyhost.ops import AddrSpace

T = TypeVar("T")


def record(cls: type[T]) -> type[T]:
    """Give a frozen dataclass a hash computed once and a pickle form without it (string hashes differ by process)."""
    names = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]
    compute: Callable[[Any], int] = cls.__hash__

    def __hash__(self: Any) -> int:
        cached = self.__dict__.get("_hash")
        if cached is None:
            cached = compute(self)
            object.__setattr__(self, "_hash", cached)
        return int(cached)

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return cls, tuple(getattr(self, n) for n in names)

    cls.__hash__ = __hash__  # type: ignore[method-assign]
    cls.__reduce__ = __reduce__  # type: ignore[method-assign]
    return cls


@record
@dataclass(frozen=True, repr=False)
class ParamArg:
    """Storage of a PARAM or BUFFER: ``size`` elements of ``dtype``, flat; ``size`` None is a scalar.

    ``slot`` -1 marks a scalar that is not numbered yet. ``image`` (height, width) gives the shape (h, w, 4).
    """

    slot: int
    dtype: DType
    size: int | None = None
    vmin_vmax: tuple[Any, Any] | None = None
    multiple_of: int | None = None
    name: str | None = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    device: str | tuple[str, ...] | None = None
    volatile: bool = False
    image: tuple[int, int] | None = None

    def __repr__(self) -> str:
        parts = [str(self.slot), repr(self.dtype)] + ([] if self.size is None else [str(self.size)])
        for f in fields(self)[3:]:
            if (value := getattr(self, f.name)) != f.default:
                parts.append(f"{f.name}={value!r}")
        return f"ParamArg({', '.join(parts)})"

    def __lt__(self, other: "ParamArg") -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[Any, ...]:
        return self.slot, self.addrspace.value, self.name or "", str(self.dtype), self.size or 0, str(self.device)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the flat storage."""
        if self.image is not None:
            return (*self.image, 4)
        return () if self.size is None else (self.size,)


@dataclass(frozen=True, eq=True)
class CallInfo:
    """How a CALL or FUNCTION behaves: its custom gradient, its name, whether it is compiled on its own."""

    grad_fxn: Callable[..., Any] | None = None
    name: str | None = None
    precompile: bool = False
    precompile_backward: bool = False
    aux: Any = None

    def __repr__(self) -> str:
        grad = None if self.grad_fxn is None else id(self.grad_fxn)
        return f"CallInfo({grad}, {self.name!r}, {self.precompile}, {self.precompile_backward})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CallInfo, (None, self.name, self.precompile, self.precompile_backward, self.aux)


@record
@dataclass(frozen=True)
class BufferizeOpts:
    """Where a STAGE makes its storage and whether the scheduler may inline it back."""

    device: str | tuple[str, ...] | int | None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    removable: bool = True


@dataclass(frozen=True)
class HostCommand:
    """The arg of a host command (INS) that says more than its name; ``hcq.commands`` has the kinds."""
