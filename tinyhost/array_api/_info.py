"""What the namespace says about itself."""
from __future__ import annotations

from typing import Any

from tinyhost.array_api._dtypes import KINDS
from tinyhost.device import Device
from tinyhost.dtype import DType, dtypes

_STANDARD = {alias: getattr(dtypes, alias) for alias in (
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")}


class NamespaceInfo:
    """Capabilities, devices and dtypes."""

    def capabilities(self) -> dict[str, Any]:
        """What the standard leaves open: masks as indices, and some functions, read the data."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": None}

    def default_device(self) -> str:
        """The device of arrays that name none."""
        return Device.DEFAULT

    def devices(self) -> list[str]:
        """Devices that open here and run kernels."""
        return [d for d in Device.get_available_devices()]

    def default_dtypes(self, *, device: Any = None) -> dict[str, DType]:
        """Types of arrays that name none."""
        return {"real floating": dtypes.default_float, "integral": dtypes.default_int, "indexing": dtypes.default_int}

    def dtypes(self, *, device: Any = None, kind: str | tuple[str, ...] | None = None) -> dict[str, DType]:
        """The standard's types by name, those of a kind.

        Raises:
            ValueError: unknown kind.
        """
        kinds = (kind,) if isinstance(kind, str) else kind
        if kinds is None:
            return dict(_STANDARD)
        if unknown := [k for k in kinds if k not in KINDS]:
            raise ValueError(f"unknown kind of dtype {unknown[0]!r}: the kinds are {', '.join(KINDS)}")
        return {name: dt for name, dt in _STANDARD.items() if any(dt in KINDS[k] for k in kinds)}


def __array_namespace_info__() -> NamespaceInfo:
    """What the namespace offers, as the standard wants to be asked."""
    return NamespaceInfo()
