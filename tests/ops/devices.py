"""The devices that op tests run on: those of the test matrix that work on this machine."""
from __future__ import annotations

from functools import cache

from tinyhost.device import Device, renderer_of
from tinyhost.env import Context
from tinyhost.errors import TinyhostError

MATRIX = ("CPU", "CPU:CLANG", "CPU:LLVM", "PYTHON", "PYTHON::gpu")


@cache
def why_not(dev: str) -> str:
    """Why ``dev`` does not work here, "" when it does."""
    with Context(DEV=dev):
        try:
            renderer_of(Device.DEFAULT)
            Device[Device.DEFAULT]
        except TinyhostError as e:
            return str(e)
    return ""
