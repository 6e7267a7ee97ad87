"""tinyhost: a tensor compiler and deep-learning framework whose core knows no device.

Names load on first use, so importing the package costs nothing that a program does not need.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tinyhost import array_api as array_api
    from tinyhost import nn as nn
    from tinyhost._reset import reset as reset
    from tinyhost.array_api import from_dlpack as from_dlpack
    from tinyhost.device import Device as Device
    from tinyhost.download import fetch as fetch
    from tinyhost.dtype import dtypes as dtypes
    from tinyhost.env import Context as Context
    from tinyhost.env import getenv as getenv
    from tinyhost.function import function as function
    from tinyhost.helpers import GlobalCounters as GlobalCounters
    from tinyhost.jit import TinyJit as TinyJit
    from tinyhost.tensor import Tensor as Tensor
    from tinyhost.uop import UOp as UOp
    from tinyhost.uop import Variable as Variable

__version__ = "0.1.0"
__all__ = ["Context", "Device", "GlobalCounters", "Tensor", "TinyJit", "UOp", "Variable", "array_api", "dtypes",
           "fetch", "from_dlpack", "function", "getenv", "nn", "reset"]

_HOME = {
    "Context": "tinyhost.env", "getenv": "tinyhost.env", "Device": "tinyhost.device", "dtypes": "tinyhost.dtype",
    "function": "tinyhost.function", "GlobalCounters": "tinyhost.helpers", "TinyJit": "tinyhost.jit",
    "fetch": "tinyhost.download", "Tensor": "tinyhost.tensor",
    "UOp": "tinyhost.uop", "Variable": "tinyhost.uop", "reset": "tinyhost._reset",
    "from_dlpack": "tinyhost.array_api",
}


def __getattr__(name: str) -> Any:
    if name in ("array_api", "nn"):
        return importlib.import_module(f"tinyhost.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'tinyhost' has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
