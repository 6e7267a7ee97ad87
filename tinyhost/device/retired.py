"""Environment variables of older frameworks of this family that chose devices; each is an error with its DEV
replacement.

A variable that looks like a choice and has no effect is worse than none, so nothing is ignored silently.
"""
from __future__ import annotations

import os
from collections.abc import Iterable

from tinyhost.errors import TargetError

_GENERAL = {
    "HCQ_VISIBLE_DEVICES": "DEV=INTERFACE:{value}+NAME",
    "EMULATE": "DEV=PYTHON::{value}",
    "MOCKGPU_ARCH": "DEV=MOCK+NAME::{value}",
}


def check_retired_variables(devices: Iterable[str], opening: str = "", renderers: Iterable[str] = ()) -> None:
    """Raise TargetError for a retired variable: NAME=1 for `devices`, NAME_... for the device `opening`."""
    for name, form in _GENERAL.items():
        _check(name, form)
    for device in devices:
        if os.environ.get(device) == "1":
            _check(device, f"DEV={device}")
    if opening:
        _check(f"{opening}_IFACE", f"DEV={{value}}+{opening}")
        _check(f"{opening}_CC", f"DEV={opening}:{{value}}")
        for renderer in renderers:
            _check(f"{opening}_{renderer}", f"DEV={opening}:{renderer}")


def _check(name: str, replacement: str) -> None:
    if value := os.environ.get(name):
        form = replacement.format(value=value.upper() if "+" in replacement and "IFACE" in name else value)
        raise TargetError(f"the environment variable {name}={value} is not read by tinyhost; write {form} instead")
