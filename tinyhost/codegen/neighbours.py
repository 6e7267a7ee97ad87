"""Lists of Opts near a given list: what a search over a kernel's optimisations tries next.

Takes a function that makes a fresh ``Kernel`` and a tuple of Opts that applies to it; gives tuples that apply as well.
Every list of Opts that is not refused computes the same values, so nothing here has to be right, only promising.
A neighbour has one action more, one less, or one with another amount. Orders are fixed: the same kernel gives the same
neighbours in the same order in every process.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from tinyhost.codegen.kernel import Axis, Kernel, leaves, product_of
from tinyhost.codegen.opt import apply_opt
from tinyhost.codegen.tiles import main_reduce
from tinyhost.errors import KernelOptError
from tinyhost.ops import AxisType
from tinyhost.uop import Opt, OptOps

Opts = tuple[Opt, ...]
AMOUNTS: dict[OptOps, tuple[int, ...]] = {
    OptOps.UPCAST: (2, 3, 4, 5, 6, 7, 8, 12, 14, 16),
    OptOps.UNROLL: (0, 2, 4, 8),
    OptOps.LANE: (4, 8, 16, 32, 64),
    OptOps.LOCAL: (2, 4, 8, 16, 32),
    OptOps.GROUP: (4, 8, 16, 32),
    OptOps.GROUPTOP: (2, 4, 8, 16, 32, 64, 256),
}
_LOOPS = (AxisType.WEAK, AxisType.LOOP, AxisType.GLOBAL)


def applied(fresh: Callable[[], Kernel], opts: Opts) -> Kernel | None:
    """A kernel with the Opts applied, None where one is refused."""
    k = fresh()
    try:
        for opt in opts:
            apply_opt(k, opt)
    except KernelOptError:
        return None
    return k


def neighbours(fresh: Callable[[], Kernel], opts: Opts) -> list[Opts]:
    """The lists near ``opts`` that apply, without repetition, ``opts`` itself left out."""
    k = applied(fresh, opts)
    if k is None:
        return []
    found = [n for n in dict.fromkeys(_changed(k, opts)) if n != opts]
    return [n for n in found if applied(fresh, n) is not None]


def _changed(k: Kernel, opts: Opts) -> Iterator[Opts]:
    for i, opt in enumerate(opts):
        for amount in _amounts(k, opt):
            yield (*opts[:i], replace(opt, arg=amount), *opts[i + 1:])
    for action in actions(k):
        # tiles before panels: what a STAGE packs is fixed by the actions before it
        at = next((i for i, o in enumerate(opts) if o.op is OptOps.STAGE), len(opts))
        yield (*opts, action)
        if at < len(opts):
            yield (*opts[:at], action, *opts[at:])
    for i in range(len(opts)):
        yield (*opts[:i], *opts[i + 1:])


def _amounts(k: Kernel, opt: Opt) -> tuple[int, ...]:
    """Other amounts for an action."""
    if opt.op is OptOps.THREAD:
        return tuple(n * k.caps.threads for n in (1, 2, 4, 8))
    return AMOUNTS.get(opt.op, ())


def actions(k: Kernel) -> Iterator[Opt]:
    """Single actions that may come next."""
    axes = k.sorted_axes
    for i, axis in enumerate(axes):
        if axis.length is None:
            continue
        if k.caps.vector_bytes and axis.kind in (*_LOOPS, AxisType.REDUCE):
            most = min(axis.length, k.caps.vector_bytes)
            yield from (Opt(OptOps.LANE, i, n) for n in AMOUNTS[OptOps.LANE] if n <= most)
        if axis.kind in _LOOPS:
            yield from (Opt(OptOps.UPCAST, i, n) for n in AMOUNTS[OptOps.UPCAST] if n <= axis.length)
            if k.caps.threads > 1:
                yield from (Opt(OptOps.THREAD, i, n * k.caps.threads) for n in (1, 2, 4) if n <= axis.length)
            if k.caps.locals:
                yield from (Opt(OptOps.LOCAL, i, n) for n in AMOUNTS[OptOps.LOCAL] if axis.length % n == 0)
    for i, axis in enumerate(k.reduce_axes):
        yield from (Opt(OptOps.UNROLL, i, n) for n in AMOUNTS[OptOps.UNROLL] if n <= (axis.length or 0))
        grouped = (OptOps.GROUP, OptOps.GROUPTOP) if k.caps.locals else (OptOps.GROUPTOP,)
        yield from (Opt(op, i, n) for op in grouped for n in AMOUNTS[op] if n < (axis.length or 0))
    yield from _orders(k, axes)
    yield from _panels(k, axes)


def _orders(k: Kernel, axes: list[Axis]) -> Iterator[Opt]:
    """Loops in another order: each one moved innermost, each one moved outermost."""
    if k.caps.grid:
        return
    order = [axes.index(a) for a in _ordered(k, axes) if a.kind in (*_LOOPS, AxisType.REDUCE, AxisType.THREAD)]
    fixed = [i for i in order if axes[i] is k.partial]
    order = [i for i in order if i not in fixed]
    for i in order:
        rest = [j for j in order if j != i]
        yield Opt(OptOps.REORDER, None, (*fixed, *rest, i))
        yield Opt(OptOps.REORDER, None, (*fixed, i, *rest))


def _ordered(k: Kernel, axes: list[Axis]) -> list[Axis]:
    """The axes, loops in the order that a REORDER gave them."""
    return [p for a in k.order or axes for p in leaves(a) if p in axes]


def _panels(k: Kernel, axes: list[Axis]) -> Iterator[Opt]:
    """An operand of the summed product packed in the order of the loops, its copies and lanes innermost."""
    main = main_reduce(k)
    product = None if main is None else product_of(main)
    if product is None or k.caps.grid:
        return
    inner = (AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE)
    for side, operand in enumerate(product.src):
        moving = [a for a in _ordered(k, axes) if a.root in operand.ranges and a is not k.partial]
        panel = [a for a in moving if a.reduce and a.kind not in inner]
        panel += [a for a in axes if a.root in operand.ranges and a.kind in inner]
        if panel:
            yield Opt(OptOps.STAGE, side, tuple(axes.index(a) for a in panel))
    yield Opt(OptOps.STAGE, 2, ())
