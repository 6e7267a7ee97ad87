"""Notes on errors of scheduling, compiling and running: the user's line that built what failed.

Takes the exception and the graphs that were to be computed; adds a note to it and never changes or hides it. What
failed is found by scheduling parts of the graph again: the first value, sources first, with which they fail in the same
way.
"""
from __future__ import annotations

import time
from collections.abc import Collection, Sequence

from tinyhost.engine.effects import Effects
from tinyhost.engine.plan import plan_of
from tinyhost.engine.schedule import get_linear
from tinyhost.env import Context
from tinyhost.errors import (
    CompileError,
    DeviceError,
    JitError,
    RendererError,
    RewriteError,
    ScheduleError,
    SpecError,
)
from tinyhost.uop import UOp
from tinyhost.uop.fields import UNSET
from tinyhost.uop.lines import line_of

_REPEATABLE = (ScheduleError, CompileError, RewriteError, SpecError, RendererError)
_NOT_OF_THE_GRAPH = (DeviceError, JitError)  # whatever would be computed, these would be raised
_SECONDS = 2.0  # the longest search for the failing value
_SHOWN = 3


def add_lines(error: Exception, roots: Collection[UOp]) -> None:
    """Note on ``error``, raised while ``roots`` were computed, which lines of the program built what failed."""
    notes = getattr(error, "__notes__", ())
    if isinstance(error, _NOT_OF_THE_GRAPH) or any(n.startswith(("built at ", "while computing ")) for n in notes):
        return
    if isinstance(error, _REPEATABLE) and (found := _failing(error, roots)) is not None:
        error.add_note(f"built at {found}")
        return
    lines = list(dict.fromkeys(line for u in roots if (line := line_of(u)) is not None))
    if lines:
        more = f" and {len(lines) - _SHOWN} more" if len(lines) > _SHOWN else ""
        error.add_note(f"while computing what was built at {'; '.join(lines[:_SHOWN])}{more}")


def _failing(error: Exception, roots: Collection[UOp]) -> str | None:
    """The line of the first value below ``roots`` with which scheduling fails like ``error``."""
    topo = list(UOp.sink(*roots).toposort(enter_calls=False))[:-1]
    ends = [i for i, u in enumerate(topo) if _is_marked(u)]
    if not ends or not _fails(error, topo):
        return None
    deadline = time.monotonic() + _SECONDS
    low, high = 0, len(ends) - 1
    while low < high and time.monotonic() < deadline:  # what fails keeps failing when more is computed
        middle = (low + high) // 2
        if _fails(error, topo[:ends[middle] + 1]):
            high = middle
        else:
            low = middle + 1
    return line_of(topo[ends[high]])


def _is_marked(u: UOp) -> bool:
    return u._line_ is not UNSET and u._shape is not None and u.device is not None


def _tops(topo: Sequence[UOp]) -> list[UOp]:
    """The marked values that no other marked value is computed from."""
    out: list[UOp] = []
    below: set[UOp] = set()
    for u in reversed(topo):
        if u in below:
            below.update(u.src)
        elif _is_marked(u):
            out.append(u)
            below.update(u.src)
    return out


def _fails(error: Exception, topo: Sequence[UOp]) -> bool:
    effects = Effects()
    try:
        with Context(SCACHE=0):
            for u in _tops(topo):
                effects.add(u)
            if effects:
                plan_of(get_linear(effects.sink))
    except type(error):
        return True
    except Exception:  # another failure is none that this search explains
        return False
    return False
