"""Where a program built a value: the user's line, for errors that show up later.

``mark`` notes beside a node the code and instruction of the innermost frame outside of this package; of equal nodes
the first builder's stays. ``line_of`` spells it. The note is no part of a node's identity, key or pickle, and holds no
frame, so nothing lives longer for it. TRACEMETA=0 switches it off.
"""
from __future__ import annotations

import linecache
import os
import sys
from collections.abc import Iterable
from types import CodeType, FrameType

from tinyhost.env import TRACEMETA
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.fields import UNSET
from tinyhost.uop.node import UOp

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_DEPTH = 4  # frames from mark() to the user in the usual case: mark, wrapping, hook, method
_VIEWS = GroupOp.Movement | {Ops.DETACH, Ops.BITCAST, Ops.AFTER}
_frame = sys._getframe
_on = TRACEMETA._var.get
_ours: set[str] = set()  # files of this package, as code objects name them
_theirs: set[str] = set()  # all other files that were seen


def mark(node: UOp) -> None:
    """Note the user's line for ``node``, unless it has one; every computed tensor passes here."""
    if node._line_ is not UNSET or not _on():
        return
    try:
        from_here: FrameType = _frame(_DEPTH)
    except ValueError:  # called from closer to the bottom of the stack
        from_here = _frame(1)
    f: FrameType | None = from_here
    if from_here.f_code.co_filename in _theirs:
        for depth in (_DEPTH - 1, _DEPTH - 2):  # called by a short way: a frame further in is the user's, too
            inner = _frame(depth)
            if inner.f_code.co_filename not in _theirs:
                break
            f = inner
    else:
        f = _outside(from_here if from_here.f_code.co_filename in _ours else _frame(1))
    if f is not None:
        node._line_ = (f.f_code, f.f_lasti)


def _outside(f: FrameType | None) -> FrameType | None:
    """The innermost frame from ``f`` on that is not of this package."""
    while f is not None:
        filename = f.f_code.co_filename
        if filename not in _ours:
            if filename not in _theirs and filename.startswith((_HERE, "<frozen")):
                _ours.add(filename)
            else:
                _theirs.add(filename)
                break
        f = f.f_back
    return f


def line_of(node: UOp) -> str | None:
    """``file:line, in function: source`` of the statement that built ``node`` or what it is a view of; None if nobody
    noted it."""
    while node._line_ is UNSET and node.op in _VIEWS:
        node = node.src[0]
    return None if node._line_ is UNSET else _spelled(*node._line_)


def nearest_line(node: UOp, topo: Iterable[UOp]) -> str | None:
    """The line of ``node``, or of the first value after it in ``topo`` (sources first) that has one."""
    seen = False
    for u in topo:
        seen = seen or u is node
        if seen and u._line_ is not UNSET:
            return line_of(u)
    return None


def _spelled(code: CodeType, instruction: int) -> str:
    number = next((n for start, end, n in code.co_lines() if start <= instruction < end and n is not None),
                  code.co_firstlineno)
    source = linecache.getline(code.co_filename, number).strip()
    place = f"{code.co_filename}:{number}, in {code.co_name}"
    return f"{place}: {source}" if source else place
