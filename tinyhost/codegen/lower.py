"""Decomposition: ops and dtypes that the target lacks, rewritten on the small kernel; single integer ops afterwards."""
from __future__ import annotations

from collections.abc import Callable

from tinyhost.dtype import DType, dtypes, to_dtype
from tinyhost.env import EMULATED_DTYPES, TRANSCENDENTAL
from tinyhost.errors import DTypeError
from tinyhost.ops import GroupOp, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import PatternMatcher, UOp, graph_rewrite
from tinyhost.uop.rules.decompose import get_decompositions
from tinyhost.uop.rules.dtype_emulation import emulate_dtypes
from tinyhost.uop.rules.long_emulation import LONGS, emulate_longs, uses_longs
from tinyhost.uop.rules.transcendental import replace_formulas

_EMULATED = frozenset({*LONGS, dtypes.float16, dtypes.bfloat16, *dtypes.fp8s})
_TRANSCENDENTAL = frozenset({Ops.EXP2, Ops.LOG2, Ops.SIN})


def native_ops(renderer: Renderer) -> frozenset[Ops]:
    """ALU ops the target has, without those that TRANSCENDENTAL=2 takes away."""
    ops = frozenset(renderer.code_for_op)
    return ops - _TRANSCENDENTAL if TRANSCENDENTAL.value == 2 else ops


def decompositions(renderer: Renderer, native: frozenset[Ops] | None = None) -> PatternMatcher:
    """The rules for what the renderer's target lacks."""
    return get_decompositions(native_ops(renderer) if native is None else native, native_dtypes(renderer))


def native_dtypes(renderer: Renderer) -> frozenset[DType]:
    """Types the target has, without those that EMULATED_DTYPES takes away; int64 and uint64 go together.

    Raises:
        DTypeError: EMULATED_DTYPES names a type that has no emulation.
    """
    if not EMULATED_DTYPES.value:
        return renderer.caps.dtypes
    wanted = {to_dtype(name.strip()) for name in EMULATED_DTYPES.value.split(",") if name.strip()}
    if wrong := sorted(wanted - _EMULATED):
        raise DTypeError(f"EMULATED_DTYPES={EMULATED_DTYPES.value}: {', '.join(map(str, wrong))} has no emulation; "
                         f"these have one: {', '.join(d.alias for d in sorted(_EMULATED))}")
    return renderer.caps.dtypes - (wanted | LONGS if wanted & LONGS else wanted)


def lower_dtypes(sink: UOp, renderer: Renderer) -> UOp:
    """The kernel without the narrow floats that the target lacks; integers go with ``lower_values``.

    Raises:
        DTypeError: the target lacks a type of the kernel that has no emulation.
    """
    native = native_dtypes(renderer)
    if missing := frozenset(dtypes.all) - _EMULATED - native:
        for u in sink.toposort():
            if u.op is not Ops.SINK and u.dtype in missing:
                raise DTypeError(f"{u.op} of {u.dtype}: {renderer.target} has no {u.dtype} and nothing emulates it; "
                                 f"cast to one of {', '.join(d.alias for d in sorted(native))}")
    return emulate_dtypes(sink, native)


# ops whose meaning on all operands, or whose expansion, the emulation of 64-bit integers does not know
_TOTAL = frozenset({Ops.FLOORDIV, Ops.FLOORMOD, Ops.POW, Ops.THREEFRY})


def lower_values(sink: UOp, renderer: Renderer) -> UOp:
    """The small kernel with only ops of the target; weak index math is left as it is."""
    if renderer.pre_matcher is not None:
        sink = graph_rewrite(sink, renderer.pre_matcher, ctx=renderer, name="renderer's early rules")
    if any(u.op in _TRANSCENDENTAL for u in sink.toposort()):
        sink = replace_formulas(sink, dtypes.float64 in native_dtypes(renderer))
    lacks_longs = not LONGS <= native_dtypes(renderer)
    native = native_ops(renderer)
    if lacks_longs and uses_longs(sink):
        native -= _TOTAL
    if any(_may_need_lowering(u, native) for u in sink.toposort()):
        sink = graph_rewrite(sink, decompositions(renderer, native), name="decompositions")
    return emulate_longs(sink) if lacks_longs else sink


_GUARDED = frozenset({Ops.CDIV, Ops.CMOD, Ops.FLOORDIV, Ops.FLOORMOD, Ops.SHL, Ops.SHR})


def _may_need_lowering(u: UOp, native: frozenset[Ops]) -> bool:
    """Whether some decomposition could apply to a node; cheap, and right for the nodes that most kernels have."""
    op = u.op
    if op is Ops.CAST:
        x = u.src[0]
        return x.op is not Ops.CONST and x.dtype.is_float and not u.arg.is_float or u.arg is dtypes.bool
    if op not in GroupOp.ALU or u.dtype is dtypes.weakint:
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
        # operands are lowered already; a loop among them must stay the node that others read too
        return graph_rewrite(u, decompositions(renderer), name="decompositions of index math", kept=u.src)
    return lower


