"""How much a program computes and moves: FLOPs, bytes loaded and stored, distinct bytes touched.

Takes the linear program; each loop body is counted once, in plain integers, and multiplied by the times it runs, which
may be a symbolic number or, where threads share a loop unevenly, a mean.
"""
from __future__ import annotations

from fractions import Fraction
from typing import Any

from tinyhost.ops import AddrSpace, GroupOp, Ops
from tinyhost.uop import Estimates, UOp

_ALU = GroupOp.ALU
_PASSED_ON = _ALU | {Ops.CAST, Ops.BITCAST, Ops.STACK}  # ops of a value whose operands are values
_PLACES = frozenset({Ops.INDEX, Ops.SHRINK, Ops.AFTER, Ops.CAST, Ops.BITCAST})
_STORAGE = frozenset({Ops.PARAM, Ops.BUFFER})


class _Body:
    """What one run of a loop body computes and moves, without its inner loops."""

    __slots__ = ("ops", "moved")

    def __init__(self) -> None:
        self.ops = 0
        self.moved: dict[tuple[UOp, Ops], int] = {}  # bytes by storage and LOAD or STORE


class _Totals:
    """Sums over bodies and the times they run."""

    def __init__(self) -> None:
        self.ops: Any = 0
        self.moved: dict[tuple[UOp, Ops], Any] = {}

    def add(self, body: _Body, times: Any) -> None:
        """Count ``times`` runs of ``body``."""
        self.ops = self.ops + times * body.ops
        for key, size in body.moved.items():
            self.moved[key] = self.moved.get(key, 0) + times * size

    def estimates(self) -> Estimates:
        """The sums; no storage counts for more than it holds, and the arena, which stays in caches, for nothing."""
        loaded_and_stored: Any = 0
        mem: Any = 0
        for (storage, _), size in self.moved.items():
            loaded_and_stored = loaded_and_stored + size
            if storage.op is Ops.PARAM and storage.arg.name != "scratch":
                whole = (storage.arg.size or 0) * storage.dtype.itemsize
                mem = mem + (min(size, whole) if isinstance(size, int | Fraction) else size)
        return Estimates(_whole(self.ops), _whole(loaded_and_stored), _whole(mem))


def estimate(uops: list[UOp]) -> Estimates:
    """Totals over a linear program; entries are symbolic where loop bounds are."""
    values = _values(uops)
    totals, body, times = _Totals(), _Body(), 1  # type: _Totals, _Body, Any
    around: list[tuple[_Body, Any]] = []
    for u in uops:
        op = u.op
        if op in _ALU:
            if u in values:
                body.ops += _lanes(u) * (2 if op is Ops.MULACC else 1)
        elif op is Ops.LOAD or op is Ops.STORE:
            place = u.src[0]
            storage = _storage(place)
            if storage is not None and storage.arg.addrspace is not AddrSpace.REG:
                key = storage, op
                body.moved[key] = body.moved.get(key, 0) + _lanes(place) * place.dtype.itemsize
        elif op is Ops.RANGE:
            around.append((body, times))
            body, times = _Body(), times * (1 if u.src[0].op is Ops.NOOP else _number(u.src[0]))
        elif op is Ops.END:
            totals.add(body, times)
            body, times = around.pop()
        elif (count := _launched(u)) is not None:
            totals.add(body, times)
            body, times = _Body(), times * count
    totals.add(body, times)
    return totals.estimates()


def _launched(u: UOp) -> Any:
    """How often all that follows runs because of ``u``, None if it is no index of a launch."""
    if u.op is Ops.SPECIAL:
        return _number(u.src[0])
    return u.arg.vmin_vmax[1] + 1 if u.op is Ops.PARAM and u.arg.name == "core_id" else None


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
    while u.op in _PLACES:
        u = u.src[0]
    return u if u.op in _STORAGE else None


def _values(uops: list[UOp]) -> set[UOp]:
    """Nodes that a stored value is made of; all others only feed addresses, gates and loop bounds."""
    values: set[UOp] = set()
    for u in reversed(uops):
        op = u.op
        if op is Ops.STORE:
            values.add(u.src[1])
        elif u in values:
            if op in _PASSED_ON:
                values.update(u.src)
            elif op is Ops.INDEX and (x := u.src[0]).op not in _STORAGE and x.op is not Ops.AFTER:
                values.add(x)
    return values
