"""Every live Tensor of the process, weakly.

Realization asks for them to put buffers in the place of graphs. Tensors compare element by element, so the table is
keyed by address; the reference removes its own entry, and a tensor that nobody holds is never kept alive.
"""
from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.tensor import Tensor


class _Ref(weakref.ref):  # type: ignore[type-arg]
    __slots__ = ("address",)
    address: int


_live: dict[int, _Ref] = {}


def _forget(ref: _Ref) -> None:
    if _live.get(ref.address) is ref:
        del _live[ref.address]


def track(tensor: Any) -> None:
    """Enter a new tensor."""
    ref = _Ref(tensor, _forget)
    ref.address = id(tensor)
    _live[ref.address] = ref


def live_tensors() -> list[Tensor]:
    """All tensors that are alive now, oldest first."""
    # a collection during the walk removes entries, so walk a copy
    return [t for ref in _live.copy().values() if (t := ref()) is not None]
