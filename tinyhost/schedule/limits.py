"""Limits of one kernel: number of operations and number of buffers.

Takes the fusion decision; gives more values storage until every kernel keeps ``max_kernel_ops`` and
``max_kernel_buffers`` of its device. A kernel that is too long is cut where the fewest values are live, in the
second half of what is allowed, so a chain of n operations gives ceil(n / max_kernel_ops) kernels. Operands whose
buffers do not fit together are stored, the one with most buffers first. Linear in the size of the graph.
"""
from __future__ import annotations

from dataclasses import replace
from functools import cache

from tinyhost.capabilities import Capabilities
from tinyhost.env import MAX_KERNEL_BUFFERS, MAX_KERNEL_OPS
from tinyhost.errors import ScheduleError
from tinyhost.schedule.fuse import Fusion
from tinyhost.schedule.graph import Kernel, data_sources
from tinyhost.schedule.prepare import CapsOf
from tinyhost.schedule.storage import storage_root
from tinyhost.uop import GroupOp, Ops, UOp

_COMPUTED = GroupOp.Elementwise | {Ops.REDUCE, Ops.STACK, Ops.INDEX}
_WALKED = _COMPUTED | GroupOp.Movement


def narrowed(caps_of: CapsOf) -> CapsOf:
    """``caps_of`` with the limits that MAX_KERNEL_OPS and MAX_KERNEL_BUFFERS set; they never widen a device's own."""
    ops, buffers = MAX_KERNEL_OPS.value, MAX_KERNEL_BUFFERS.value
    if not ops and not buffers:
        return caps_of

    @cache
    def narrow(device: str) -> Capabilities:
        caps = caps_of(device)
        own = caps.max_kernel_buffers
        fewer = own if not buffers else buffers if own is None else min(own, buffers)
        shorter = min(caps.max_kernel_ops, ops or caps.max_kernel_ops)
        return replace(caps, max_kernel_ops=shorter, max_kernel_buffers=fewer)
    return narrow


def apply_limits(fusion: Fusion, caps_of: CapsOf) -> None:
    """Cut the kernels of ``fusion`` that are too large for their device."""
    nodes = len(fusion.graph.order)
    todo = list(fusion.kernels.values())
    while todo:
        kernel = todo.pop()
        caps = caps_of(kernel.device)
        buffers = caps.max_kernel_buffers
        if nodes <= caps.max_kernel_ops and (buffers is None or nodes <= buffers):
            continue
        body = _body(fusion, kernel)
        if len(body) > caps.max_kernel_ops:
            todo += _cut(fusion, kernel, body, caps.max_kernel_ops)
            body = _body(fusion, kernel)
        if buffers is not None:
            _limit_buffers(fusion, kernel, body, buffers)


def _stored(fusion: Fusion, u: UOp, kernel: Kernel) -> bool:
    """Whether ``kernel`` reads ``u`` from storage."""
    if u in fusion.kernels:
        return fusion.kernels[u] is not kernel
    return u in fusion.homes and fusion.homes[u] is not kernel


def _body(fusion: Fusion, kernel: Kernel) -> list[UOp]:
    """The computed nodes of a kernel, sources first."""
    out: list[UOp] = []
    done: set[UOp] = set()
    stack: list[tuple[UOp, bool]] = [(kernel.value, False)]
    while stack:
        u, ready = stack.pop()
        if ready:
            out.append(u)
        elif u not in done:
            done.add(u)
            if u.op not in _WALKED or _stored(fusion, u, kernel):
                continue
            if u.op in _COMPUTED and not u.is_const:
                stack.append((u, True))
            stack += [(s, False) for s in reversed(data_sources(u)) if s not in done]
    return out


def _operand(u: UOp) -> UOp:
    """The computed or stored node that a chain of views shows."""
    while u.op in GroupOp.Movement:
        u = u.src[0]
    return u


def _cut(fusion: Fusion, kernel: Kernel, body: list[UOp], limit: int) -> list[Kernel]:
    opened: list[Kernel] = []
    last_use: dict[UOp, int] = {}
    for i, u in enumerate(body):
        for s in data_sources(u):
            last_use[_operand(s)] = i
    start, live, ends = 0, 0, [0] * (len(body) + 1)
    best, best_live = -1, 0
    for i, u in enumerate(body):
        live += 1 - ends[i]
        ends[last_use.get(u, i)] += 1
        done = i + 1 - start
        if 2 * done >= limit and (best < 0 or live <= best_live):
            best, best_live = i, live
        if done == limit and len(body) - start > limit:
            for v in body[start:best + 1]:
                if last_use.get(v, -1) > best and fusion.facts[v].leaves != frozenset():
                    opened.append(fusion.open(v, kernel.device))
            start, best = best + 1, -1
    return opened


def _limit_buffers(fusion: Fusion, kernel: Kernel, body: list[UOp], limit: int) -> None:
    """``limit`` counts the output as well."""
    inside = set(body)
    sets: dict[UOp, frozenset[UOp]] = {}
    for u in body:
        operands = list(dict.fromkeys(_operand(s) for s in data_sources(u)))
        total = frozenset().union(*(_buffers(fusion, kernel, s, sets, inside) for s in operands))
        while len(total) > limit - 1:
            largest = max((s for s in operands if len(sets.get(s, ())) > 1), key=lambda s: len(sets[s]), default=None)
            if largest is None:
                raise ScheduleError(f"{u.op} of shape {u.shape} reads {len(total)} buffers at once, a kernel on "
                                    f"{kernel.device} takes {limit} with its output: join some operands in a "
                                    "contiguous() value first")
            fusion.open(largest, kernel.device)
            sets[largest] = frozenset((largest,))
            total = frozenset().union(*(_buffers(fusion, kernel, s, sets, inside) for s in operands))
        sets[u] = total


def _buffers(fusion: Fusion, kernel: Kernel, u: UOp, sets: dict[UOp, frozenset[UOp]],
             inside: set[UOp]) -> frozenset[UOp]:
    """The buffers that an operand stands for."""
    if u in inside:
        return sets[u]
    home = fusion.homes.get(u)
    if home is not None and home is not kernel:
        return frozenset((storage_root(home.node.src[0]) if home.node.op is Ops.STORE else home.node,))
    if u in fusion.kernels:
        return frozenset((u,))
    root = storage_root(u)
    return frozenset((root,)) if root.op in (Ops.PARAM, Ops.BUFFER, Ops.CONTIGUOUS, Ops.COPY) else frozenset()
