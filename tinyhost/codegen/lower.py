"""Decomposition: ops and dtypes that the target lacks, rewritten on the small kernel; single integer ops afterwards."""
from __future__ import annotations

from collections.abc import Callable

from tinyhost.dtype import DType, dtypes, to_dtype
from tinyhost.env import EMULATED_DTYPES, TRANSCENDENTAL
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite
from tinyhost.uop.rules.decompose import get_decompositions
from tinyhost.uop.rules.dtype_emulation import emulate_dtypes

_TRANSCENDENTAL = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN})


def native_ops(renderer: Renderer) -> frozenset[Ops]:
    """ALU ops the target has, without those that TRANSCENDENTAL=2 takes away."""
    ops = frozenset(renderer.code_for_op)
    return ops - _TRANSCENDENTAL if TRANSCENDENTAL.value == 2 else ops


def decompositions(renderer: Renderer) -> PatternMatcher:
    """The rules for what the renderer's target lacks."""
    return get_decompositions(native_ops(renderer), renderer.caps.dtypes)


def native_dtypes(renderer: Renderer) -> frozenset[DType]:
    """Types the target has, without those that EMULATED_DTYPES takes away."""
    wanted = [to_dtype(name.strip()) for name in EMULATED_DTYPES.value.split(",") if name.strip()]
    return renderer.caps.dtypes - frozenset(wanted)


def lower_dtypes(sink: UOp, renderer: Renderer) -> UOp:
    """The kernel without types the target lacks."""
    return emulate_dtypes(sink, native_dtypes(renderer))


def lower_values(sink: UOp, renderer: Renderer) -> UOp:
    """The small kernel with only ops of the target; weak index math is left as it is."""
    if renderer.pre_matcher is not None:
        sink = graph_rewrite(sink, renderer.pre_matcher, ctx=renderer, name="renderer's early rules")
    native = native_ops(renderer)
    if not any(_may_need_lowering(u, native) for u in sink.toposort()):
        return sink
    return graph_rewrite(sink, decompositions(renderer), name="decompositions")


_GUARDED = frozenset({Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD, Ops.SHL, Ops.SHR})


def _may_need_lowering(u: UOp, native: frozenset[Ops]) -> bool:
    """Whether some decomposition could apply to a node; cheap, and right for the nodes that most kernels have."""
    op = u.op
    if op is Ops.CAST:
        x = u.src[0]
        return x.op is not Ops.CONST and x.dtype.is_float and not u.arg.is_float or u.arg is dtypes.bool
    if op not in GroupOp.ALU or u.dtype.is_weak:
        return False
    return (
        op not in native
        or op in _GUARDED
        or not u.dtype.is_float
        and op not in GroupOp.Comparison
        and op is not Ops.WHERE
    )


def lower_scalar(renderer: Renderer) -> Callable[[UOp], UOp]:
    """A function that lowers one strong integer op."""
    native = frozenset(renderer.code_for_op)
    if Ops.FLOORDIV in native:
        return lambda u: u

    def lower(u: UOp) -> UOp:
        return graph_rewrite(u, decompositions(renderer), name="decompositions of index math")
    return lower


