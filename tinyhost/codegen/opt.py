"""The actions of the optimiser: what each does to the axes of a ``Kernel``, and when it is refused.

Takes a ``Kernel`` and an ``Opt``; changes the kernel or raises KernelOptError and changes nothing. Axis numbers are
positions in ``Kernel.sorted_axes`` at the time of the action (for UNROLL, GROUP and GROUPTOP: among the reduce axes).
Limits come from ``Capabilities``. Given Opts are applied literally; no action is added, moved or dropped.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.codegen.kernel import Axis, Cover, Kernel, Merge, conditions_of, has_tail, leaves, product_of, results_of
from tinyhost.codegen.pad import divide_axis, pad_axis
from tinyhost.codegen.stage import SCRATCH
from tinyhost.codegen.windows import Window, forms_of, sides_of
from tinyhost.dtype import DType, dtypes
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


def _check_arena(k: Kernel, opt: Opt) -> None:
    if any(u.op is Ops.PARAM and u.arg.name == SCRATCH for u in k.nodes):
        raise _fail(opt, "the arena holds row values already")


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
    """How a split of an output axis may cover what its amount does not divide.

    Beside partial sums elements are computed twice, and stored once: under masks (``apply.py``).
    """
    once = k.in_place and (k.partial is None or not k.caps.masked or k.ends[0].src[0].src[1].dtype.itemsize < 4)
    if (axis.length or 0) % amount and once and not _is_merged(k, axis.root):
        raise _fail(
            opt,
            f"{amount} does not divide the {axis.length} steps of {axis}, and a kernel that reads what it writes "
            "may compute no element twice",
        )
    return Cover.CLAMP


def _is_merged(k: Kernel, root: UOp) -> bool:
    """Whether an axis is one that MERGE made: its results are copied out, so no element is stored twice."""
    return any(root is m.axis.root for m in k.merges)


def _check_staged(k: Kernel, axis: Axis, opt: Opt) -> None:
    """Copies and lanes of a staged operand are part of its panel."""
    root = k.moved_by(axis.root)
    for operand, panel in k.staged:
        if root in operand.ranges and all(axis is not p for a in panel for p in leaves(a)):
            raise _fail(
                opt, f"the operand that was staged moves along {axis}, which is no axis of its panel; STAGE comes last"
            )
    for w in k.windows:
        if root in w.operand.ranges and all(root not in s.ranges for s in w.sides):
            raise _fail(opt, f"the operand that was staged moves along {axis}, which is no axis of its window")


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
    if any(axis.root in o.ranges for o in (*(o for o, _ in k.staged), *(w.operand for w in k.windows))):
        raise _fail(opt, f"{amount} does not divide the {axis.length} steps of {axis}, which moves a staged operand")
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
    left, right = k.moved_by(a.root), k.moved_by(b.root)
    return left is right or any(left in u.ranges and right in u.ranges for u in k.nodes)


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
    alone = [a for a in k.reduce_axes if a is not axis] == []
    if (axis.length or 0) % amount or amount == axis.length and (alone or axis.split is not None):
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
    stored = [s for s in k.splits() if not _is_merged(k, s.outer.root)]
    if k.in_place or any(s.cover is not Cover.EXACT for s in stored):
        raise _fail(opt, "no element may be computed twice where the output holds partial sums")
    if axis.split is None and axis.root is axis.range and not k.staged and not k.windows and not k.merges:
        outer = divide_axis(k, axis, amount, AxisType.LOOP)
    else:
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
    if k.staged or k.windows or k.staged_results or k.merges:
        raise _fail(opt, "it changes what was staged or merged already; PADTO comes before STAGE and MERGE")
    _check_arena(k, opt)
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
    if not isinstance(opt.arg, tuple) or sorted(opt.arg) != loops:
        raise _fail(opt, f"its argument is the order of the loop axes {tuple(loops)}, got {opt.arg!r}")
    order = [axes[i] for i in opt.arg]
    for u in k.reduces:
        mine = {r for r in u.src[1:]}
        inside = u.src[0].ranges.keys() - mine
        if k.partial is not None and any(a.root in mine for a in order[:order.index(k.partial)]):
            raise _fail(opt, f"{k.partial} goes over partial sums and stays outside of the sums it cuts")
        for i, a in enumerate(order):
            if a.root in mine and a is not k.partial and any(k.moved_by(b.root) in inside for b in order[i + 1:]):
                inner = [b for b in order[i + 1 :] if k.moved_by(b.root) in inside]
                raise _fail(
                    opt,
                    f"{a} is reduced inside {inner}: loops of a store "
                    "and of outer reductions stay outside of the reductions they contain",
                )
    k.order = tuple(order)


# *** memory ***
def _stage(k: Kernel, opt: Opt) -> None:
    if k.caps.grid:
        raise _fail(opt, "panels lie in a worker's arena, and the target runs a grid")
    _check_arena(k, opt)
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
    missing = [a for a in axes if k.moved_by(a.root) in operand.ranges and a not in panel and a is not k.partial and
               (a.root in mine or a.kind in (AxisType.UPCAST, AxisType.UNROLL, AxisType.LANE))]
    if missing:
        raise _fail(
            opt, f"the operand moves along {missing} inside one iteration of the panel, which must be part of it"
        )
    if any(s.cover is Cover.TAIL for s in k.splits() if any(a.root is s.outer.root for a in panel)):
        raise _fail(opt, "an axis of the panel has a masked last block")
    if still := [a for a in panel if k.moved_by(a.root) not in operand.ranges]:
        raise _fail(opt, f"the operand does not move along {still}")
    if any(a.length is None for a in panel):
        raise _fail(opt, f"the panel has an axis of unknown length: {[a for a in panel if a.length is None]}")
    if _is_staged(k, operand) or operand.dtype is not _arena_dtype(k, operand):
        raise _fail(opt, "the operand is staged already, or the arena holds another dtype")
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
    if any(not r.src[0].is_const for r in inside) or any(has_tail(k.root_axis[r]) for r in inside):
        raise _fail(opt, "an axis of the groups has a symbolic length or a masked last block")
    if k.windows or _is_staged(k, operand) or operand.dtype is not _arena_dtype(k, operand):
        raise _fail(opt, "one window is staged already, or the arena holds another dtype")
    sides = sides_of(operand, groups, k.memo)
    if sides is None:
        raise _fail(opt, "the operand depends on these axes otherwise than through the sums of the groups")
    windows = [Window(operand, sides)]
    for cond in conditions_of(k, results_of(k)):
        if any(a.root in cond.ranges and a.root not in inside and a.kind not in loops for a in axes):
            continue  # it moves inside one filling of a plane, and stays a condition
        if inside_cond := [i for i, g in enumerate(groups) if any(r in cond.ranges for r in g)]:
            moving = [i for i, g in enumerate(groups) if i in inside_cond or any(not k.root_axis[r].reduce for r in g)]
            like = tuple(sides[i] for i in moving)
            found = sides_of(cond, tuple(groups[i] for i in moving), k.memo, like)
            if found is None:
                raise _fail(opt, "a condition on the products depends on these axes otherwise than the operand does")
            windows.append(Window(cond, found))
    k.windows += windows


def _is_staged(k: Kernel, operand: UOp) -> bool:
    return any(operand is o for o, _ in k.staged) or any(operand is w.operand for w in k.windows)


def _arena_dtype(k: Kernel, operand: UOp) -> DType:
    """The dtype of what is staged already, that of ``operand`` where nothing is."""
    held = [o for o, _ in k.staged] + [w.operand for w in k.windows if w.operand.dtype is not dtypes.bool]
    held += [results_of(k)] if k.merges else []
    return held[0].dtype if held else operand.dtype


def _stage_results(k: Kernel, opt: Opt) -> None:
    lanes = [a for a in k.of_kind(AxisType.LANE) if not a.reduce]
    if len(k.ends) != 1 or len(k.sink.src) != 1 or k.ends[0].src[0].op is not Ops.STORE:
        raise _fail(opt, "results are staged for kernels of one store")
    if not lanes or opt.arg != () or k.staged_results:
        raise _fail(
            opt, f"it stages the tile of a vector axis of the output, with the argument (), once; got {opt.arg!r}"
        )
    held = {o.dtype for o, _ in k.staged} | {w.operand.dtype for w in k.windows if w.operand.dtype is not dtypes.bool}
    if held - {k.ends[0].src[0].src[1].dtype}:
        raise _fail(opt, f"the arena holds {held}, the results are {k.ends[0].src[0].src[1].dtype}")
    if k.in_place and k.partial is None:
        raise _fail(opt, "the kernel reads what it writes")
    if k.merges:
        raise _fail(opt, "results of merged axes are staged already")
    k.staged_results = True


# *** merged axes ***
def _merge(k: Kernel, opt: Opt) -> Axis:
    outer = _axis(k, opt)
    if not isinstance(opt.arg, tuple) or len(opt.arg) != 2 or not all(isinstance(n, int) for n in opt.arg):
        raise _fail(opt, f"its argument is the inner axis and the pitch of a row of it, got {opt.arg!r}")
    number, pitch = opt.arg
    if not 0 <= number < len(k.sorted_axes):
        raise _fail(opt, f"there is no axis {number}, the kernel has {len(k.sorted_axes)}: {k.sorted_axes}")
    inner = k.sorted_axes[number]
    if k.caps.grid:
        raise _fail(opt, "merged results lie in a worker's arena, and the target runs a grid")
    for a in (outer, inner):
        if a.kind not in _LOOPS or a.reduce or a.split is not None or a.ids != a.root.arg[:-1] or a.length is None:
            raise _fail(opt, f"{a} must be an output axis of known length that is not split")
    if outer is inner or pitch < (inner.length or 0):
        raise _fail(opt, f"rows of {inner}, every {pitch} steps, of {outer} would overlap")
    if len(k.ends) != 1 or len(k.sink.src) != 1 or k.ends[0].src[0].op is not Ops.STORE or k.staged_results:
        raise _fail(opt, "it stages the results of kernels of one store, once")
    if k.in_place and k.partial is None:
        raise _fail(opt, "the kernel reads what it writes")
    _check_arena(k, opt)
    if all(product_of(u) is None for u in k.reduces):
        raise _fail(opt, "the kernel sums no products")
    results = results_of(k)
    if k.ends[0].src[0].src[1].ranges.keys() - results.ranges.keys() or results.dtype is not _arena_dtype(k, results):
        raise _fail(opt, "the sum of products does not give each result, or the arena holds another dtype")
    if any(k.moved_by(a.root) in o.ranges for o, _ in k.staged for a in (outer, inner)):
        raise _fail(opt, "an operand that moves along these axes is packed already; STAGE of a panel comes later")
    _check_pitch(k, opt, results, outer, inner, pitch)
    size = ((outer.length or 1) - 1) * pitch + (inner.length or 1)
    ids = (1 + max(r.arg[0] for r in (*k.roots, *[m.axis.root for m in k.merges])),)
    merged = Axis(ids, size, inner.kind, UOp(Ops.RANGE, (UOp.const(size),), (*ids, inner.kind)))
    for a in (outer, inner):
        k.axes.remove(a)
        del k.root_axis[a.root]
    k.axes.append(merged)
    k.root_axis[merged.root] = merged
    k.merges.append(Merge(outer.root, inner.root, pitch, merged))
    return merged


def _check_pitch(k: Kernel, opt: Opt, results: UOp, outer: Axis, inner: Axis, pitch: int) -> None:
    """A step of ``outer`` must move each access of the sum as ``pitch`` steps of ``inner`` do."""
    roots = {a: k.moved_by(a.root) for a in (outer, inner)}
    stops = tuple(w.operand for w in k.windows)
    forms = forms_of(results, frozenset(roots.values()), stops, k.memo)
    if forms is None or any(r in f.opaque for f in forms for r in roots.values()):
        raise _fail(opt, f"the sum depends on {outer} or {inner} otherwise than through an index")
    gated = [a for a in k.accesses if a.gate is not None and a.node in results.toposort(gate=lambda u: u not in stops)
             and any(r in a.gate.ranges for r in roots.values())]
    strides: list[tuple[int | None, int | None]]
    strides = [(f.terms.get(roots[outer], 0), f.terms.get(roots[inner], 0)) for f in forms]
    strides += [(w.stride(roots[outer]), w.stride(roots[inner])) for w in k.windows]
    if gated or any(a is None or b is None or a != b * pitch for a, b in strides):
        raise _fail(opt, f"steps of {outer} and {inner} move the sum's operands by {strides} elements, which a pitch "
                         f"of {pitch} does not describe, or gates depend on them; STAGE a window first")


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
    OptOps.MERGE: _merge,
}
