"""How much a program computes and moves: FLOPs, bytes loaded and stored, distinct bytes touched."""
from __future__ import annotations

from fractions import Fraction
from typing import Any

from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop import Estimates, UOp


def estimate(uops: list[UOp]) -> Estimates:
    """Totals over a linear program; entries are symbolic where loop bounds are."""
    times: Any = 1
    stack: list[Any] = []
    ops: Any = 0
    lds: Any = 0
    touched: dict[tuple[UOp, Ops], Any] = {}
    address = _address_nodes(uops)
    for u in uops:
        op = u.op
        if op is Ops.RANGE:
            stack.append(times)
            times = times * (1 if u.src[0].op is Ops.NOOP else _number(u.src[0]))
        elif op is Ops.END:
            times = stack.pop()
        elif op is Ops.SPECIAL:
            times = times * _number(u.src[0])
        elif op is Ops.PARAM and u.arg.name == "core_id":
            times = times * (u.arg.vmin_vmax[1] + 1)
        elif op in GroupOp.ALU and u not in address:
            ops = ops + times * _lanes(u) * (2 if op is Ops.MULACC else 1)
        elif op is Ops.LOAD or op is Ops.STORE:
            storage = _storage(u.src[0])
            if storage is not None and storage.arg.addrspace is not AddrSpace.REG:
                size = times * _lanes(u.src[0]) * u.src[0].dtype.itemsize
                lds = lds + size
                if storage.op is Ops.PARAM and storage.arg.name != "scratch":  # the arena stays in caches
                    touched[storage, op] = touched.get((storage, op), 0) + size
    mem: Any = 0
    for (storage, _), size in touched.items():
        whole = (storage.arg.size or 0) * storage.dtype.itemsize
        mem = mem + (min(size, whole) if isinstance(size, int | Fraction) else size)
    return Estimates(_whole(ops), _whole(lds), _whole(mem))


def _whole(total: Any) -> Any:
    return round(total) if isinstance(total, Fraction) else total


def _number(u: UOp) -> Any:
    """A loop bound; one that differs between threads counts as the mean over them."""
    if u.is_const:
        return int(u.const_value)
    core = next((x for x in u.toposort() if x.op is Ops.PARAM and x.arg.name == "core_id"), None)
    if core is None:
        return u
    cores = range(core.arg.vmin_vmax[1] + 1)
    bounds = [u.substitute({core: core.const_like(c)}).simplify() for c in cores]
    return Fraction(sum(max(int(b.vmax), 0) for b in bounds), len(cores))


def _lanes(u: UOp) -> int:
    shape = u._shape
    return int(shape[0]) if shape else 1


def _storage(place: UOp) -> UOp | None:
    u = place
    while u.op in (Ops.INDEX, Ops.SHRINK, Ops.AFTER, Ops.CAST, Ops.BITCAST):
        u = u.src[0]
    return u if u.op is Ops.PARAM or u.op is Ops.BUFFER else None


def _address_nodes(uops: list[UOp]) -> set[UOp]:
    """ALU nodes that only feed addresses, gates and loop bounds."""
    value: set[UOp] = set()
    for u in reversed(uops):
        if u.op is Ops.STORE:
            value.add(u.src[1])
        elif u in value and u.op in GroupOp.ALU | {Ops.CAST, Ops.BITCAST, Ops.STACK}:
            value.update(u.src)
        elif u in value and u.op is Ops.INDEX and u.src[0].op not in (Ops.PARAM, Ops.BUFFER, Ops.AFTER):
            value.add(u.src[0])
    return {u for u in uops if u not in value}
