"""Launch indices: axes that the hardware or the launcher runs become SPECIALs, or the scalar ``core_id``.

GLOBAL axes become ``gidx0..2`` and LOCAL ones ``lidx0..2`` (without workgroup threads, ``idx0..2``); more than three
are merged, one above its limit is factored into two. THREAD becomes the parameter ``core_id``, DEVICE
``_device_num``. Works on the small kernel; what was a RANGE becomes index arithmetic that the expansion simplifies.
"""
from __future__ import annotations

from typing import Any

from tinyhost.codegen.nests import ranges_of
from tinyhost.dtype import dtypes
from tinyhost.errors import KernelOptError
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.renderer.base import Renderer
from tinyhost.uop import ParamArg, UOp

_GLOBAL = frozenset({AxisType.GLOBAL})
_LOCAL = frozenset({AxisType.LOCAL, AxisType.WARP, AxisType.GROUP_REDUCE})


def mark_global(sink: UOp, renderer: Renderer) -> UOp:
    """On a grid, output axes that every store has are GLOBAL."""
    if not renderer.caps.grid:
        return sink
    ends = [u for u in sink.toposort() if u.op is Ops.END]
    reduced = {r for u in sink.toposort() if u.op is Ops.REDUCE for r in ranges_of(u)}
    shared = [r for r in (ranges_of(ends[0]) if ends else []) if r.arg[-1] is AxisType.WEAK and r not in reduced
              and r.src[0].op is not Ops.NOOP and all(r in e.src[1:] for e in ends)]
    swap = {r: UOp(Ops.RANGE, r.src, (*r.arg[:-1], AxisType.GLOBAL)) for r in shared}
    return sink.substitute(swap, walk=True) if swap else sink


def add_launch_indices(sink: UOp, renderer: Renderer) -> UOp:
    """The kernel with launch indices in place of the RANGEs that are not loops."""
    ranges = [u for u in sink.toposort() if u.op is Ops.RANGE]
    groups = [r for r in ranges if r.arg[-1] in _GLOBAL]
    threads = [r for r in ranges if r.arg[-1] in _LOCAL]
    caps, swap = renderer.caps, {}
    swap.update(
        _indices(sorted(groups, key=lambda r: r.arg[:-1]), "gidx" if caps.locals else "idx", caps.global_max, True)
    )
    swap.update(_indices(sorted(threads, key=lambda r: (r.arg[-1] is AxisType.GROUP_REDUCE, r.arg[:-1])), "lidx",
                         caps.local_max, False))
    for r in ranges:
        if r.arg[-1] is AxisType.THREAD:
            swap[r] = scalar("core_id", int(r.src[0].const_value))
        elif r.arg[-1] is AxisType.DEVICE:
            swap[r] = scalar("_device_num", int(r.src[0].vmax))
    return sink.substitute(swap, walk=True) if swap else sink


def scalar(name: str, count: int) -> UOp:
    """An integer parameter from 0 to ``count`` - 1 that the launcher fills in."""
    return UOp(Ops.PARAM, (), ParamArg(-1, dtypes.weakint, None, (0, count - 1), None, name, AddrSpace.ALU))


def _indices(ranges: list[UOp], prefix: str, limits: tuple[int, ...] | None, reverse: bool) -> dict[UOp, UOp]:
    """Each RANGE as an expression over at most three SPECIALs; the last axis is index 0, which runs fastest."""
    if not ranges:
        return {}
    sizes = [r.src[0].const_value if r.src[0].is_const else r.src[0] for r in ranges]
    order = list(range(len(ranges)))[::-1] if reverse else list(range(len(ranges)))
    limits = limits or (1 << 62,) * 3
    bins = _bins([sizes[i] for i in order], limits)
    out: dict[UOp, UOp] = {}
    at = 0
    for dim, (count, parts) in enumerate(bins):
        mine = order[at:at + count]
        at += count
        value = _special(prefix, dim + sum(len(p) - 1 for _, p in bins[:dim]), parts)
        step: Any = 1
        for j, i in enumerate(mine):
            x = value if isinstance(step, int) and step == 1 else value // step
            out[ranges[i]] = x if j == len(mine) - 1 else x % sizes[i]
            step = step * sizes[i]
    return out


def _special(prefix: str, first: int, parts: list[Any]) -> UOp:
    """One index of the product of ``parts``, each a launch dimension, the first running fastest."""
    value, step = UOp.special(parts[0], f"{prefix}{first}"), parts[0]
    for i, n in enumerate(parts[1:], 1):
        value = UOp.special(n, f"{prefix}{first + i}") * step + value
        step = step * n
    return value


def _bins(sizes: list[Any], limits: tuple[int, ...]) -> list[tuple[int, list[Any]]]:
    """Launch dimensions: how many axes each takes and the sizes of the SPECIALs it needs.

    Raises:
        KernelOptError: the axes do not fit the limits.
    """
    bins: list[tuple[int, Any]] = [(1, s) for s in sizes]
    while len(bins) > len(limits):
        i = min(range(len(bins) - 1), key=lambda j: _most(bins[j][1]) * _most(bins[j + 1][1]))
        bins[i:i + 2] = [(bins[i][0] + bins[i + 1][0], bins[i][1] * bins[i + 1][1])]
    out: list[tuple[int, list[Any]]] = [(n, [s]) for n, s in bins]
    for i, (n, s) in enumerate(bins):
        used = sum(len(p) for _, p in out[:i])
        if _most(s) <= limits[min(used, len(limits) - 1)]:
            continue
        spare = len(limits) - sum(len(p) for _, p in out)
        parts = _factors(s, limits[used:used + spare + 1]) if isinstance(s, int) else None
        if parts is None:
            raise KernelOptError(f"a launch of {sizes} does not fit the limits {limits}: {s} has no factors that do")
        out[i] = (n, parts)
    return out


def _most(size: Any) -> int:
    return size if isinstance(size, int) else int(size.vmax)


def _factors(size: int, limits: tuple[int, ...]) -> list[int] | None:
    """``size`` as a product of factors within ``limits``, None where there is none."""
    out: list[int] = []
    for limit in limits:
        if size <= limit:
            return [*out, size]
        f = next((d for d in range(min(limit, size), 1, -1) if size % d == 0), None)
        if f is None:
            return None
        out.append(f)
        size //= f
    return None if size > 1 else out


def launch_sizes(uops: list[UOp]) -> tuple[tuple[Any, ...], tuple[Any, ...] | None]:
    """(global size, local size or None) from the SPECIALs and scalar PARAMs of a program."""
    groups: list[Any] = [1, 1, 1]
    threads: list[Any] | None = [1, 1, 1]
    plain = True
    for u in uops:
        if u.op is Ops.SPECIAL:
            bound = u.src[0]
            size = int(bound.const_value) if bound.is_const else bound
            where = int(u.arg[-1])
            if u.arg.startswith("lidx"):
                assert threads is not None
                threads[where], plain = size, False
            else:
                groups[where] = size
                plain = plain and not u.arg.startswith("gidx")
        elif u.op is Ops.PARAM and u.arg.name == "core_id":
            groups[0] = u.arg.vmin_vmax[1] + 1
    uses_groups = any(u.op is Ops.SPECIAL and u.arg.startswith("gidx") for u in uops)
    return tuple(groups), tuple(threads or ()) if uses_groups or not plain else None
