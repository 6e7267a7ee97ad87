"""From a tensor graph to kernels: what is computed together, what gets storage, in which order it runs.

``create_linear`` takes a SINK of effects and the capabilities of devices; it gives a LINEAR of CALLs. Nothing is
compiled and nothing runs here; no device is opened. ``docs/scheduling.md`` tells how fusion is decided. The passes are
loaded when something is scheduled.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost.schedule.driver import create_linear as create_linear

__all__ = ["create_linear"]


def __getattr__(name: str) -> Any:
    if name != "create_linear":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tinyhost.schedule.driver import create_linear
    return create_linear
