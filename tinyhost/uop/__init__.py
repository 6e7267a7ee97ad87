"""The IR: nodes, patterns and rewriting. Rules, specs and gradients are modules of their own, loaded when used.

Records of kernels and the rewrite engine load at first use too: building a graph needs neither.
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop.fields import sint
from tinyhost.uop.info import BufferizeOpts, CallInfo, ParamArg
from tinyhost.uop.node import UOp, Variable, resolve

if TYPE_CHECKING:
    from tinyhost.uop.kernel_info import Estimates, KernelInfo, Opt, OptOps, ProgramInfo
    from tinyhost.uop.pattern import PatternMatcher, UPat
    from tinyhost.uop.rewrite import BottomUpGate, graph_rewrite

__all__ = ["AddrSpace", "AxisType", "BottomUpGate", "BufferizeOpts", "CallInfo", "Estimates", "GroupOp", "KernelInfo",
           "Ops", "Opt", "OptOps", "ParamArg", "PatternMatcher", "ProgramInfo", "UOp", "UPat", "Variable",
           "graph_rewrite", "resolve", "sint"]

_HOME = dict.fromkeys(("Estimates", "KernelInfo", "Opt", "OptOps", "ProgramInfo"), "kernel_info") | {
    "PatternMatcher": "pattern", "UPat": "pattern", "BottomUpGate": "rewrite", "graph_rewrite": "rewrite"}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    return value
