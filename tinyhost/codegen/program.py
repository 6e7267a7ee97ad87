"""to_program: a kernel becomes a PROGRAM. This file is the table of contents of code generation.

Takes a kernel's SINK (weak index expressions, INDEX as a value, REDUCE and END over RANGEs) and a renderer; gives
PROGRAM(SINK, LINEAR, SOURCE, BINARY). The graph stays small until ``expand``, which makes all copies, vectors and
strong dtypes in one walk; after it only the target's own rules and the linear order are left. ``docs/codegen.md``
says what holds between the steps.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable

from tinyhost.codegen.barriers import add_barriers, uses_local_memory
from tinyhost.codegen.digits import split_digits
from tinyhost.codegen.estimates import estimate
from tinyhost.codegen.expand import Expander
from tinyhost.codegen.groups import group_reductions
from tinyhost.codegen.kernel import Kernel
from tinyhost.codegen.launch import add_launch_indices, launch_sizes, mark_global
from tinyhost.codegen.linearize import linearize
from tinyhost.codegen.long_sums import nest_long_sums
from tinyhost.codegen.lower import lower_dtypes, lower_scalar, lower_values
from tinyhost.codegen.merge import merge_ranges
from tinyhost.codegen.names import kernel_name
from tinyhost.codegen.nests import loop_order, one_closer_each
from tinyhost.codegen.opt import apply_opt
from tinyhost.codegen.rows import keep_row_values
from tinyhost.codegen.rules import hand_rules
from tinyhost.codegen.scatters import scatter_sums
from tinyhost.codegen.simplify import hoist_gates, simplify_kernel
from tinyhost.codegen.stage import SCRATCH
from tinyhost.codegen.streams import mark_streams
from tinyhost.env import DEBUG, NOOPT, SPEC
from tinyhost.ops import AddrSpace, Ops
from tinyhost.profiling import cpu_profile
from tinyhost.renderer.base import Renderer
from tinyhost.uop import KernelInfo, ParamArg, PatternMatcher, ProgramInfo, UOp, graph_rewrite

Rewrites = Callable[[str], Iterable[PatternMatcher]]
STAGES = ("simplify", "optimise", "expand")  # where rules from outside run, each at the end of the stage


def to_program(ast: UOp, renderer: Renderer, rewrites: Rewrites | None = None) -> UOp:
    """The compiled program of a kernel. ``rewrites`` gives further rules for the stages of ``STAGES``, by name.

    Raises:
        KernelOptError: ``KernelInfo.opts_to_apply`` holds an action that cannot be applied.
        CompileError: the renderer's compiler rejected the text.
    """
    sink = optimised(ast, renderer, rewrites)
    uops = linear_program(sink, renderer, rewrites)
    if SPEC.value:
        from tinyhost.uop.spec import spec_program, type_verify
        type_verify(uops, spec_program)
    info = program_info(sink, uops, renderer)
    sink = sink.replace(arg=_with_estimates(sink.arg, info))
    source = renderer.render(_sink_last(uops, sink))
    if DEBUG.value >= 5:
        print(source)
    with cpu_profile("compile", category="compile"):
        binary = renderer.compiler.compile(source)
    return UOp(
        Ops.PROGRAM,
        (sink, UOp(Ops.LINEAR, tuple(uops)), UOp(Ops.SOURCE, (), source), UOp(Ops.BINARY, (), binary)),
        info,
    )


def _extra(sink: UOp, stage: str, rewrites: Rewrites | None) -> UOp:
    """The graph after the rules from outside for a stage."""
    for rules in rewrites(stage) if rewrites is not None else ():
        sink = graph_rewrite(sink, rules, name=f"rules of a plugin after {stage}")
    return sink


def prepared(ast: UOp, renderer: Renderer, rewrites: Rewrites | None = None) -> Kernel:
    """The small kernel before any Opt: simplified, in dtypes and ops of the target, one closer for each range."""
    sink = split_digits(_extra(simplify_kernel(ast), "simplify", rewrites))
    sink = hoist_gates(lower_dtypes(sink, renderer))
    sink = merge_ranges(keep_row_values(one_closer_each(sink), renderer.caps))
    return Kernel(scatter_sums(mark_global(lower_values(sink, renderer), renderer), renderer.caps), renderer)


def optimised(ast: UOp, renderer: Renderer, rewrites: Rewrites | None = None) -> UOp:
    """The small kernel with its axes split and marked, named."""
    k = prepared(ast, renderer, rewrites)
    wanted = k.sink.arg.opts_to_apply if isinstance(k.sink.arg, KernelInfo) else None
    if wanted is not None:
        for opt in wanted:
            apply_opt(k, opt)
    elif not NOOPT.value:
        hand_rules(k)
    out = k.rewritten()
    if k.staged:
        out = merge_ranges(out)
    out = mark_streams(nest_long_sums(out), renderer.caps)
    info = out.arg
    if info.name == "test":
        info = KernelInfo(kernel_name(k), *[getattr(info, f) for f in _INFO_FIELDS[1:]])
    return one_closer_each(_extra(out.replace(arg=info), "optimise", rewrites))


def linear_program(sink: UOp, renderer: Renderer, rewrites: Rewrites | None = None) -> list[UOp]:
    """The nodes a renderer takes, in order, SINK last."""
    sink = group_reductions(sink)
    order = loop_order(sink)
    sink = number_scalars(add_launch_indices(sink, renderer))
    shared = uses_local_memory(sink)
    sink = Expander(renderer, order, lower_scalar(renderer)).run(sink)
    if shared:
        sink = add_barriers(sink)
    sink = _extra(sink, "expand", rewrites)
    if renderer.extra_matcher is not None:
        sink = graph_rewrite(sink, renderer.extra_matcher, ctx=renderer, name="renderer's rules")
    return linearize(sink)


_INFO_FIELDS = (
    "name",
    "axis_types",
    "dont_use_locals",
    "applied_opts",
    "opts_to_apply",
    "estimates",
    "beam",
    "loop_order",
)


def _with_estimates(info: KernelInfo, program: ProgramInfo) -> KernelInfo:
    values = {f: getattr(info, f) for f in _INFO_FIELDS}
    return KernelInfo(**{**values, "estimates": program.estimates})


def _sink_last(uops: list[UOp], sink: UOp) -> list[UOp]:
    """The list with the kernel's information on its last node."""
    return [*uops[:-1], uops[-1].replace(arg=sink.arg)]


def number_scalars(sink: UOp) -> UOp:
    """Give scalar parameters slots after those of the storage: variables by name, ``core_id`` last."""
    params = [u for u in sink.toposort() if u.op is Ops.PARAM]
    scalars = sorted(
        (u for u in params if u.arg.addrspace is AddrSpace.ALU),
        key=lambda u: (u.arg.name == "core_id", u.arg.name or ""),
    )
    if not scalars or all(u.arg.slot >= 0 for u in scalars):
        return sink
    first = 1 + max((u.arg.slot for u in params if u.arg.addrspace is not AddrSpace.ALU), default=-1)
    swap = {u: UOp(Ops.PARAM, (), _renumbered(u.arg, first + i)) for i, u in enumerate(scalars)}
    return sink.substitute(swap, walk=True)


def _renumbered(a: ParamArg, slot: int) -> ParamArg:
    return ParamArg(
        slot, a.dtype, a.size, a.vmin_vmax, a.multiple_of, a.name, a.addrspace, a.device, a.volatile, a.image
    )


def program_info(sink: UOp, uops: list[UOp], renderer: Renderer) -> ProgramInfo:
    """What a launch needs to know."""
    params, launched = [], []  # type: list[UOp], list[UOp]
    outs, ins = set(), set()  # type: set[int], set[int]
    for u in uops:
        op = u.op
        if op is Ops.STORE:
            _add_slot(outs, u)
        elif op is Ops.LOAD:
            _add_slot(ins, u)
        elif op is Ops.PARAM:
            params.append(u)
        elif op is Ops.SPECIAL:
            launched.append(u)
    scalars = [u for u in params if u.arg.addrspace is AddrSpace.ALU]
    storage = [u for u in params if u.arg.addrspace is not AddrSpace.ALU]
    scratch = sum((u.arg.size or 0) * u.dtype.itemsize for u in storage if u.arg.name == SCRATCH)
    global_size, local_size = launch_sizes(launched + scalars)
    return ProgramInfo(sink.arg.name, global_size, local_size, tuple(sorted(scalars, key=lambda u: u.arg.slot)),
                       tuple(sorted(u.arg.slot for u in storage if u.arg.name != SCRATCH)), tuple(sorted(outs)),
                       tuple(sorted(ins)), renderer.target, estimate(uops), scratch)


def _add_slot(slots: set[int], access: UOp) -> None:
    """Add the slot of the storage that a LOAD or STORE touches."""
    p = access.src[0]
    while p.op in _PLACES:
        p = p.src[0]
    if p.op is Ops.PARAM and p.arg.name != SCRATCH:
        slots.add(p.arg.slot)


_PLACES = frozenset({Ops.INDEX, Ops.SHRINK, Ops.AFTER, Ops.CAST, Ops.BITCAST})
