"""The IR: nodes, patterns and rewriting. Rules, specs and gradients are modules of their own, loaded when used."""
from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop.fields import sint
from tinyhost.uop.info import BufferizeOpts, CallInfo, Estimates, KernelInfo, Opt, OptOps, ParamArg, ProgramInfo
from tinyhost.uop.node import UOp, Variable, resolve
from tinyhost.uop.pattern import PatternMatcher, UPat
from tinyhost.uop.rewrite import BottomUpGate, graph_rewrite

__all__ = ["AddrSpace", "AxisType", "BottomUpGate", "BufferizeOpts", "CallInfo", "Estimates", "GroupOp", "KernelInfo",
           "Ops", "Opt", "OptOps", "ParamArg", "PatternMatcher", "ProgramInfo", "UOp", "UPat", "Variable",
           "graph_rewrite", "resolve", "sint"]
