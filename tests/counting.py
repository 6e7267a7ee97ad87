"""Work counted instead of timed: the same on a busy machine as on a quiet one."""
from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls(fn: Callable[[], Any]) -> int:
    """How many Python functions are entered while ``fn`` runs."""
    count = 0

    def note(frame: FrameType, event: str, arg: object) -> None:
        nonlocal count
        count += event == "call"
    before = sys.getprofile()
    sys.setprofile(note)
    try:
        fn()
    finally:
        sys.setprofile(before)
    return count
