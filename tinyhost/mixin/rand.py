"""Random bits as nodes: pure functions of a key and a counter."""
from __future__ import annotations

from tinyhost.mixin.op import OpMixin


class RandMixin(OpMixin):
    """Threefry bits from a key and a counter."""

    __slots__ = ()
