"""Several outputs in one kernel, where that saves reading a large input again.

Takes items in an order of execution; merges kernels that run over the same ranges and read the same storage at the
same place, with as many elements as they have iterations: the sums of a batch norm's gradient, the moments of an
optimiser. Kernels that wait for each other are never merged: only items of one level (the longest chain of items before
them) are compared. Contractions stay alone, as none of their inputs has an element for each iteration, and so does
anything below ``MIN_ITERATIONS``, where one kernel for each output is the simpler schedule.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tinyhost.capabilities import Capabilities
from tinyhost.helpers import dedup, prod
from tinyhost.schedule.graph import Device
from tinyhost.schedule.storage import Region
from tinyhost.uop import KernelInfo, Ops, ParamArg, UOp

MIN_ITERATIONS = 1 << 14
MAX_OUTPUTS = 4
Load: TypeAlias = tuple[Any, UOp]  # storage, index


@dataclass(eq=False)
class Item:
    """One CALL to be: its body, the storage nodes or regions of its arguments, the states it reads."""

    node: UOp
    body: UOp
    args: list[UOp | Region]
    states: list[UOp]
    device: Device = None
    variables: list[UOp] = field(default_factory=list)
    before: list["Item"] = field(default_factory=list)  # what must have run


class Candidate:
    """A kernel that may be merged: its store, its ranges, and the loads that have an element for each iteration."""

    def __init__(self, item: Item, end: UOp) -> None:
        self.item, self.store, self.outs = item, end.src[0], end.src[1:]
        nodes = end.toposort()
        self.ops = len(nodes)
        self.ranges = frozenset(u for u in nodes if u.op is Ops.RANGE)
        self.iterations = int(prod(r.vmax + 1 for r in self.ranges))
        self.loads: set[Load] = {
            (item.args[u.src[0].arg.slot], u.src[1]) for u in self.store.src[1].toposort()
            if u.op is Ops.INDEX and u.src[1].ranges.keys() == self.ranges}


def candidate(item: Item) -> Candidate | None:
    """``item`` as a candidate, None if it has to stay alone."""
    if item.body.op is not Ops.SINK or item.variables or item.body.arg != KernelInfo() or len(item.body.src) != 1:
        return None
    end = item.body.src[0]
    if end.op is not Ops.END or end.src[0].op is not Ops.STORE:
        return None
    c = Candidate(item, end)
    return c if c.loads and c.iterations >= MIN_ITERATIONS else None


def shared_kernels(items: list[Item], caps_of: Any) -> list[list[Candidate]]:
    """Groups of at least two kernels that become one."""
    level: dict[Item, int] = {}
    buckets: dict[Any, list[list[Candidate]]] = {}
    for item in items:
        level[item] = 1 + max((level[b] for b in item.before), default=0)
        c = candidate(item)
        if c is None:
            continue
        groups = buckets.setdefault((level[item], item.device, c.outs, c.ranges), [])
        group = next((g for g in groups if _fits(g, c, caps_of(item.device))), None)
        if group is None:
            groups.append([c])
        else:
            group.append(c)
    return [g for groups in buckets.values() for g in groups if len(g) > 1]


def _fits(group: list[Candidate], c: Candidate, caps: Capabilities) -> bool:
    if len(group) == MAX_OUTPUTS or not any(c.loads & other.loads for other in group):
        return False
    if any(other.item.args[0] in c.item.args or c.item.args[0] in other.item.args for other in group):
        return False  # what one writes the other may still have to read
    storage = {a for x in (*group, c) for a in x.item.args}
    if caps.max_kernel_buffers is not None and len(storage) > caps.max_kernel_buffers:
        return False
    return sum(x.ops for x in (*group, c)) <= caps.max_kernel_ops


def merge(group: list[Candidate]) -> Item:
    """One item with the stores of all: outputs first, then inputs by first use."""
    items = [c.item for c in group]
    storage = dedup([*(i.args[0] for i in items), *(a for i in items for a in i.args)])
    slot = {a: n for n, a in enumerate(storage)}
    stores = []
    for c in group:
        params = {u for u in c.store.toposort() if u.op is Ops.PARAM}
        new = {p: UOp(Ops.PARAM, (), ParamArg(slot[c.item.args[p.arg.slot]], p.arg.dtype, p.arg.size)) for p in params}
        stores.append(c.store.substitute(new, walk=True))
    body = UOp(Ops.SINK, (UOp(Ops.GROUP, tuple(stores)).end(*group[0].outs),), KernelInfo())
    return Item(items[0].node, body, storage, dedup([s for i in items for s in i.states]), items[0].device,
                before=dedup([b for i in items for b in i.before]))
