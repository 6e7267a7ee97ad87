"""The actions of the optimiser: what each does to the axes of a ``Kernel``, and when it is refused.

Takes a ``Kernel`` and an ``Opt``; changes the kernel or raises KernelOptError and changes nothing. Axis numbers are
positions in ``Kernel.sorted_axes`` at the time of the action (for UNROLL, GROUP and GROUPTOP: among the reduce axes).
Limits come from ``Capabilities``. Given Opts are applied literally; no action is added, moved or dropped.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.codegen.kernel import Axis, Cover, Kernel, has_tail, leaves, product_of
from tinyhost.codegen.pad import pad_axis
from tinyhost.codegen.strides import only_through_sums
from tinyhost.errors import KernelOptError
from tinyhost.ops import AxisType, Ops
from tinyhost.uop import Opt, OptOps, UOp

PARTS_PER_THREAD = 16  # more only cost
_LOOPS = (AxisType.WEAK, AxisType.LOOP, AxisType.GLOBAL)


def apply_opt(k: Kernel, opt: Opt) -> Axis | None:
    """Apply one action; the axis it made, if any.

    Raises:
        KernelOptError: the action cannot be applied to this kernel; the kernel is as before.
    """
    action = _ACTIONS.get(opt.op)
    if action is None:
        raise KernelOptError(f"{opt}: {opt.op} is reserved and no action of this optimiser yet")
    made: Axis | None = action(k, opt)
    k.applied.append(opt)
    return made


def _fail(opt: Opt, why: str) -> KernelOptError:
    return KernelOptError(f"cannot apply {opt}: {why}")


# *** what an Opt names ***
def _axis(k: Kernel, opt: Opt) -> Axis:
    axes = k.sorted_axes
    if opt.axis is None or not 0 <= opt.axis < len(axes):
        raise _fail(opt, f"there is no axis {opt.axis}, the kernel has {len(axes)}: {axes}")
    if axes[opt.axis] is k.partial:
        raise _fail(opt, f"{axes[opt.axis]} goes over partial sums and stays one loop")
    return axes[opt.axis]


def _reduce_axis(k: Kernel, opt: Opt) -> Axis:
    axes = k.reduce_axes
    if opt.axis is None or not 0 <= opt.axis < len(axes):
        raise _fail(opt, f"there is no reduce axis {opt.axis}, the kernel has {len(axes)}: {axes}")
    return axes[opt.axis]


def _amount(axis: Axis, opt: Opt, most: int | None = None, what: str = "") -> int:
    size = axis.length
    if size is None:
        raise _fail(opt, f"{axis} has the symbolic length {axis.size.render()}; only axes of known length can be split")
    if not isinstance(opt.arg, int) or opt.arg < 0:
        raise _fail(opt, f"the amount is a number of steps, got {opt.arg!r}")
    amount = opt.arg or size
    if amount > size:
        raise _fail(opt, f"the amount {amount} is more than the {size} steps of {axis}")
    if amount < 2:
        raise _fail(opt, f"an amount of {amount} changes nothing; {axis} needs at least 2")
    if most is not None and amount > most:
        raise _fail(opt, f"the amount {amount} is more than {what} allows ({most})")
    return amount


def _check_kind(axis: Axis, opt: Opt, kinds: tuple[AxisType, ...]) -> None:
    if axis.kind not in kinds:
        raise _fail(opt, f"{axis} is {axis.kind.name}, the action is for {', '.join(t.name for t in kinds)} axes")


def _cover(k: Kernel, axis: Axis, amount: int, opt: Opt) -> Cover:
    """How a split of an output axis may cover what its amount does not divide."""
    if (axis.length or 0) % amount and k.in_place:
        raise _fail(
            opt,
            f"{amount} does not divide the {axis.length} steps of {axis}, and a kernel that reads what it writes "
            "may compute no element twice",
        )
    return Cover.CLAMP


def _check_staged(k: Kernel, axis: Axis, opt: Opt) -> None:
    """Copies and lanes of a staged operand are part of its panel."""
    for operand, panel in k.staged:
        if axis.root in operand.ranges and all(axis is not p for a in panel for p in leaves(a)):
            raise _fail(
                opt, f"the operand that was staged moves along {axis}, which is no axis of its panel; STAGE comes last"
            )


# *** copies ***
def _upcast(k: Kernel, opt: Opt) -> Axis:
    axis = _axis(k, opt)
    _check_kind(axis, opt, (*_LOOPS, AxisType.LOCAL))
    _check_staged(k, axis, opt)
    amount = _amount(axis, opt)
    tile = amount
    for a in k.of_kind(AxisType.UPCAST):
        tile *= a.length or 1
    if tile > k.caps.max_tile:
        raise _fail(opt, f"the UPCAST axes would make {tile} copies, the target allows {k.caps.max_tile}")
    if axis.kind is AxisType.LOCAL and (axis.length or 0) % amount:
        raise _fail(opt, f"{amount} does not divide the {axis.length} steps of {axis}")
    return k.split(axis, amount, AxisType.UPCAST, cover=_cover(k, axis, amount, opt))


def _unroll(k: Kernel, opt: Opt) -> Axis:
    axis = _reduce_axis(k, opt)
    _check_staged(k, axis, opt)
    amount = _amount(axis, opt, k.caps.max_unroll, "the target")
    if axis.kind is AxisType.GROUP_REDUCE and (axis.length or 0) % amount:
        raise _fail(opt, f"{amount} does not divide the {axis.length} steps of {axis}")
    return k.split(axis, amount, AxisType.UNROLL, cover=_reduce_cover(k, axis, amount, opt))


def _reduce_cover(k: Kernel, axis: Axis, amount: int, opt: Opt) -> Cover:
    """MAX may see an element twice; sums and products need a masked last block."""
    if (axis.length or 0) % amount == 0:
        return Cover.EXACT
    ops = {u.arg[0] for u in k.reduces if axis.root in u.src[1:]}
    if ops == {Ops.MAX}:
        return Cover.CLAMP
    if axis.ids != axis.root.arg[:-1] and axis.ids[len(axis.root.arg) - 1 :] != (0,) * (
        len(axis.ids) - len(axis.root.arg) + 1
    ):
        raise _fail(
            opt, f"{amount} does not divide the {axis.length} steps of {axis}, which is the inner part of a split"
        )
    return Cover.TAIL


def _lane(k: Kernel, opt: Opt) -> Axis:
    axis = _axis(k, opt)
    _check_kind(axis, opt, (*_LOOPS, AxisType.REDUCE))
    _check_staged(k, axis, opt)
    if not k.caps.vector_bytes:
        raise _fail(opt, "the target has no vector registers")
    amount = _amount(axis, opt, k.caps.vector_bytes, "the widest vector register")
    if amount & (amount - 1):
        raise _fail(opt, f"{amount} lanes: vectors have a power of two")
    for other in k.of_kind(AxisType.LANE):
        if _together(k, axis, other):
            raise _fail(opt, f"{other} is the LANE axis of the same values already; a value has at most one")
    cover = _reduce_cover(k, axis, amount, opt) if axis.reduce else _cover(k, axis, amount, opt)
    uneven = (axis.length or 0) % amount != 0
    lane = k.split(axis, amount, AxisType.LANE, cover=cover)
    # one register's worth of lanes; the rest are copies, each in a register of its own
    widest = max(k.widest(axis.root), 4 if uneven and axis.reduce else 1)
    most = max(1, k.caps.vector_bytes // widest)
    if amount > most and amount % most == 0:
        lane.kind = AxisType.UNROLL if axis.reduce else AxisType.UPCAST
        lane = k.split(lane, most, AxisType.LANE)
    return lane


def _together(k: Kernel, a: Axis, b: Axis) -> bool:
    """Whether some value depends on both axes."""
    return a.root is b.root or any(a.root in u.ranges and b.root in u.ranges for u in k.nodes)


# *** what runs in parallel ***
def _thread(k: Kernel, opt: Opt) -> Axis:
    axis = _axis(k, opt)
    _check_kind(axis, opt, _LOOPS)
    if k.caps.threads < 2:
        raise _fail(opt, "the target runs a kernel on one thread")
    if k.of_kind(AxisType.THREAD):
        raise _fail(opt, "the kernel has a THREAD axis already")
    amount = _amount(axis, opt, PARTS_PER_THREAD * k.caps.threads, f"{PARTS_PER_THREAD} parts a thread")
    if axis.reduce or any(axis.root not in e.src[1:] for e in k.ends):
        raise _fail(opt, f"{axis} is not an axis of every store, so threads would repeat each other's stores")
    exact = (axis.length or 0) % amount == 0
    if not exact and axis.split is None and any(a.root is axis.root and a.kind is AxisType.THREAD for a in k.axes):
        raise _fail(opt, f"{axis} is split over threads already")
    return k.split(axis, amount, AxisType.THREAD, top=True, cover=Cover.EXACT if exact else Cover.RAGGED)


def _local(k: Kernel, opt: Opt) -> Axis:
    axis = _axis(k, opt)
    _check_kind(axis, opt, _LOOPS)
    if not k.caps.locals:
        raise _fail(opt, "the target has no workgroups of several threads")
    if k.dont_use_locals:
        raise _fail(opt, "NOLOCALS was applied")
    amount = _amount(axis, opt)
    if (axis.length or 0) % amount:
        raise _fail(opt, f"{amount} does not divide the {axis.length} steps of {axis}")
    _check_workgroup(k, amount, opt)
    return k.split(axis, amount, AxisType.LOCAL)


def _check_workgroup(k: Kernel, amount: int, opt: Opt) -> None:
    threads = amount
    for a in k.of_kind(AxisType.LOCAL, AxisType.GROUP_REDUCE, AxisType.WARP):
        threads *= a.length or 1
    if threads > k.caps.local_prod_max:
        raise _fail(opt, f"the workgroup would have {threads} threads, the target allows {k.caps.local_prod_max}")


def _group(k: Kernel, opt: Opt) -> Axis:
    axis = _reduce_axis(k, opt)
    if axis.kind is not AxisType.REDUCE:
        raise _fail(opt, f"{axis} is {axis.kind.name}, the action is for REDUCE axes")
    if opt.op is OptOps.GROUPTOP and not k.caps.locals and not k.caps.grid:
        return _partial_sums(k, axis, opt)
    if not k.caps.locals or not k.caps.shared_bytes:
        raise _fail(opt, "the target has no workgroup memory")
    if k.dont_use_locals:
        raise _fail(opt, "NOLOCALS was applied")
    amount = _amount(axis, opt)
    if (axis.length or 0) % amount:
        raise _fail(opt, f"{amount} does not divide the {axis.length} steps of {axis}")
    owner = next(u for u in k.reduces if axis.root in u.src[1:])
    if any(u is not owner and owner in u.toposort() for u in k.reduces):
        raise _fail(
            opt, f"the reduction over {axis} is inside another one, whose loop cannot hold a barrier for all threads"
        )
    shared = amount * owner.dtype.itemsize
    for a in k.of_kind(AxisType.LOCAL, AxisType.GROUP_REDUCE, AxisType.UPCAST):
        shared *= a.length or 1
    if shared > k.caps.shared_bytes:
        raise _fail(
            opt, f"the partial results need {shared} bytes of workgroup memory, the target has {k.caps.shared_bytes}"
        )
    _check_workgroup(k, amount, opt)
    return k.split(axis, amount, AxisType.GROUP_REDUCE, top=opt.op is OptOps.GROUPTOP)


def _partial_sums(k: Kernel, axis: Axis, opt: Opt) -> Axis:
    """On one processor the parts of a reduction run one after the other, and the output holds the sum so far."""
    amount = _amount(axis, opt)
    if (axis.length or 0) % amount or amount == axis.length:
        raise _fail(opt, f"{amount} parts do not divide the {axis.length} steps of {axis} into parts of several steps")
    store = k.ends[0].src[0] if len(k.ends) == 1 and len(k.sink.src) == 1 else None
    if (
        store is None
        or store.op is not Ops.STORE
        or store.src[1].op is not Ops.REDUCE
        or store.src[1].arg[0] is not Ops.ADD
        or axis.root not in store.src[1].src[1:]
        or store.src[1].dtype is not store.src[0].dtype
    ):
        raise _fail(
            opt, "partial sums are kept in the output, so the kernel must store one sum over this axis as it is"
        )
    if k.in_place or any(s.cover is not Cover.EXACT for s in k.splits()):
        raise _fail(opt, "no element may be computed twice where the output holds partial sums")
    outer = k.split(axis, amount, AxisType.LOOP, top=True)
    k.partial = outer
    others = [a for a in k.sorted_axes if a is not outer and a.kind in (*_LOOPS, AxisType.REDUCE)]
    k.order = (outer, *others)
    return outer


def _nolocals(k: Kernel, opt: Opt) -> None:
    if k.of_kind(AxisType.LOCAL, AxisType.WARP, AxisType.GROUP_REDUCE):
        raise _fail(opt, "the kernel uses workgroup threads already")
    k.dont_use_locals = True


def _padto(k: Kernel, opt: Opt) -> None:
    axis = _axis(k, opt)
    size = axis.length
    if size is None or axis.split is not None or axis.ids != axis.root.arg[:-1]:
        raise _fail(opt, f"{axis} must be an axis of known length that is not split")
    if not isinstance(opt.arg, int) or opt.arg < 2:
        raise _fail(opt, f"the argument is the multiple to pad to, got {opt.arg!r}")
    if k.staged or k.windows or k.staged_results:
        raise _fail(opt, "it changes what was staged already; PADTO comes before STAGE")
    padded = -(-size // opt.arg) * opt.arg
    if padded == size:
        raise _fail(opt, f"the {size} steps of {axis} are a multiple of {opt.arg} already")
    if padded >= 4 * size:
        raise _fail(opt, f"{padded} steps instead of {size} would be 4 times the work")
    pad_axis(k, axis, padded)


# *** order ***
def _swap(k: Kernel, opt: Opt) -> None:
    a = _axis(k, opt)
    b = _axis(k, Opt(opt.op, opt.arg if isinstance(opt.arg, int) else None))
    if a.kind is not AxisType.GLOBAL or b.kind is not AxisType.GLOBAL:
        raise _fail(opt, f"it exchanges two GLOBAL axes, got {a} and {b}")
    if a.split is not None or b.split is not None or a.ids == b.ids:
        raise _fail(opt, f"it exchanges two different axes, got {a} twice")
    a.ids, b.ids = b.ids, a.ids


def _reorder(k: Kernel, opt: Opt) -> None:
    axes = k.sorted_axes
    loops = [i for i, a in enumerate(axes) if a.kind in (*_LOOPS, AxisType.REDUCE, AxisType.THREAD)]
    first = [] if k.partial is None else [axes.index(k.partial)]
    if not isinstance(opt.arg, tuple) or sorted(opt.arg) != loops:
        raise _fail(opt, f"its argument is the order of the loop axes {tuple(loops)}, got {opt.arg!r}")
    if list(opt.arg[:len(first)]) != first:
        raise _fail(opt, f"{k.partial} goes over partial sums in the output and stays outermost")
    order = [axes[i] for i in opt.arg]
    for u in k.reduces:
        mine = {r for r in u.src[1:]}
        inside = u.src[0].ranges.keys() - mine
        for i, a in enumerate(order):
            if a.root in mine and a is not k.partial and any(b.root in inside for b in order[i + 1:]):
                raise _fail(
                    opt,
                    f"{a} is reduced inside {[b for b in order[i + 1 :] if b.root in inside]}: loops of a store "
                    "and of outer reductions stay outside of the reductions they contain",
                )
    k.order = tuple(order)


# *** memory ***
def _stage(k: Kernel, opt: Opt) -> None:
    if k.caps.grid:
        raise _fail(opt, "panels lie in a worker's arena, and the target runs a grid")
    found = [(u, product) for u in k.reduces if (product := product_of(u)) is not None]
    if not found:
        raise _fail(opt, "the kernel sums no products, so there is no operand to pack")
    u, product = max(found, key=lambda f: len(f[1].ranges))
    if opt.axis not in (0, 1, 2):
        raise _fail(opt, f"the operand of the product is 0 or 1, and 2 is the result, got {opt.axis}")
    if opt.axis == 2:
        _stage_results(k, opt)
        return
    operand = product.src[opt.axis]
    if isinstance(opt.arg, tuple) and opt.arg and all(isinstance(g, tuple) for g in opt.arg):
        _stage_window(k, opt, operand)
        return
    axes = k.sorted_axes
    if (
        not isinstance(opt.arg, tuple)
        or not opt.arg
        or not all(isinstance(i, int) and 0 <= i < len(axes) for i in opt.arg)
    ):
        raise _fail(
            opt, f"its argument is the panel's axes from the outermost, numbers below {len(axes)}, got {opt.arg!r}"
        )
    panel = tuple(axes[i] for i in opt.arg)
    mine = set(u.src[1:])
    missing = [a for a in axes if a.root in operand.ranges and a not in panel and a is not k.partial and
               (a.root in mine or a.kind in (AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE))]
    if missing:
        raise _fail(
            opt, f"the operand moves along {missing} inside one iteration of the panel, which must be part of it"
        )
    if any(s.cover is Cover.TAIL for s in k.splits() if any(a.root is s.outer.root for a in panel)):
        raise _fail(opt, "an axis of the panel has a masked last block")
    if still := [a for a in panel if a.root not in operand.ranges]:
        raise _fail(opt, f"the operand does not move along {still}")
    if any(a.length is None for a in panel):
        raise _fail(opt, f"the panel has an axis of unknown length: {[a for a in panel if a.length is None]}")
    if k.staged or any(o is operand or o.dtype is not operand.dtype for o, _ in k.windows):
        raise _fail(opt, "one operand is staged already, or the arena holds another dtype")
    k.staged.append((operand, panel))


def _stage_window(k: Kernel, opt: Opt, operand: UOp) -> None:
    axes = k.sorted_axes
    if not all(isinstance(i, int) and 0 <= i < len(axes) for g in opt.arg for i in g):
        raise _fail(opt, f"its argument is groups of axis numbers below {len(axes)}, got {opt.arg!r}")
    groups = tuple(tuple(dict.fromkeys(axes[i].root for i in g)) for g in opt.arg)
    inside = [r for g in groups for r in g]
    loops = (*_LOOPS, AxisType.THREAD)
    missing = [a for a in axes if a.root in operand.ranges and a.root not in inside and a.kind not in loops]
    if missing or len(set(inside)) != len(inside):
        raise _fail(
            opt, f"the operand moves along {missing} inside one filling of the panel, or a group repeats an axis"
        )
    if not only_through_sums(operand, groups, k.memo):
        raise _fail(opt, "the operand depends on these axes otherwise than through the sums of the groups")
    if any(not r.src[0].is_const for r in inside) or any(has_tail(k.root_axis[r]) for r in inside):
        raise _fail(opt, "an axis of the groups has a symbolic length or a masked last block")
    if k.windows or any(operand is o for o, _ in k.staged) or any(o.dtype is not operand.dtype for o, _ in k.staged):
        raise _fail(opt, "one window is staged already, or the arena holds another dtype")
    k.windows.append((operand, groups))


def _stage_results(k: Kernel, opt: Opt) -> None:
    lanes = [a for a in k.of_kind(AxisType.LANE) if not a.reduce]
    if len(k.ends) != 1 or len(k.sink.src) != 1 or k.ends[0].src[0].op is not Ops.STORE:
        raise _fail(opt, "results are staged for kernels of one store")
    if not lanes or opt.arg != () or k.staged_results:
        raise _fail(
            opt, f"it stages the tile of a vector axis of the output, with the argument (), once; got {opt.arg!r}"
        )
    held = {o.dtype for o, _ in k.staged} | {o.dtype for o, _ in k.windows}
    if held - {k.ends[0].src[0].src[1].dtype}:
        raise _fail(opt, f"the arena holds {held}, the results are {k.ends[0].src[0].src[1].dtype}")
    if k.in_place and k.partial is None:
        raise _fail(opt, "the kernel reads what it writes")
    k.staged_results = True


_ACTIONS: dict[OptOps, Callable[[Kernel, Opt], Any]] = {
    OptOps.UPCAST: _upcast,
    OptOps.UNROLL: _unroll,
    OptOps.LANE: _lane,
    OptOps.THREAD: _thread,
    OptOps.LOCAL: _local,
    OptOps.GROUP: _group,
    OptOps.GROUPTOP: _group,
    OptOps.NOLOCALS: _nolocals,
    OptOps.PADTO: _padto,
    OptOps.SWAP: _swap,
    OptOps.REORDER: _reorder,
    OptOps.STAGE: _stage,
}
