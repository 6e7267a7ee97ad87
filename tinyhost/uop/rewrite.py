"""graph_rewrite: apply rules to every node of a graph until nothing changes.

Takes a root and a PatternMatcher; gives the rewritten root. Each node is rewritten once per call (results are remembered),
sources before users; with ``bottom_up`` a node's rules run before its sources are visited. ``walk`` makes a single pass
that never looks inside a replacement. CALL and FUNCTION bodies are left alone unless ``enter_calls``. Works on an explicit
stack, so depth does not matter; rules that never settle are reported with the names of the rules that kept firing.
"""
from __future__ import annotations

from collections import Counter
from typing import Any

from tinyhost.dtype import DType
from tinyhost.env import REWRITE_STACK_LIMIT
from tinyhost.ops import Ops
from tinyhost.uop.node import UOp
from tinyhost.uop.pattern import PatternMatcher, UPat


class BottomUpGate(Exception):
    """Raised by a bottom-up rule: keep this node as it is and do not descend."""


class RewriteLoopError(RuntimeError):
    """Rules that undo each other, or that never stop growing the graph."""


_CALLS = frozenset({Ops.CALL, Ops.FUNCTION})


def _skips_body(u: UOp) -> bool:
    return u.op in _CALLS and not isinstance(u.arg, DType)


def _loop_error(kind: str, name: str | None, recent: list[UOp]) -> RewriteLoopError:
    ops = Counter(u.op.name for u in recent)
    return RewriteLoopError(f"infinite loop in {kind} ({name or 'unnamed'}): rules keep rewriting "
                            f"{', '.join(f'{op} x{n}' for op, n in ops.most_common(5))}; two rules undo each other or one "
                            f"grows its own input. Last node: {str(recent[-1])[:400] if recent else 'none'}")


class _Rewriter:
    """State of one graph_rewrite call: what each node became."""

    def __init__(self, pm: PatternMatcher | None, bpm: PatternMatcher | None, ctx: Any, name: str | None,
                 enter_calls: bool) -> None:
        self.pm, self.bpm, self.ctx, self.name, self.enter_calls = pm, bpm, ctx, name, enter_calls
        self.done: dict[UOp, UOp] = {}

    def run(self, root: UOp) -> UOp:
        """Stages of a node: 0 bottom-up rules and its sources, 1 rebuild and top-down rules, 2 take a result over."""
        done, bpm = self.done, self.bpm
        limit = REWRITE_STACK_LIMIT.value
        stack: list[tuple[UOp, int, UOp]] = [(root, 0, root)]
        pending: set[UOp] = set()  # nodes whose replacement is being rewritten
        while stack:
            n, stage, new = stack.pop()
            if stage == 2:
                pending.discard(n)
                done[n] = done[new]
                continue
            if n in done:
                continue
            if stage == 0:
                if len(stack) > limit:
                    limit = self._grow_limit(root, stack, limit)
                if bpm is not None:
                    try:
                        new = self._fixed_point(n)
                    except BottomUpGate:
                        done[n] = n
                        continue
                stack.append((n, 1, new))
                src = new.src if self.enter_calls or not _skips_body(new) else new.src[1:]
                for s in reversed(src):
                    if s not in done:
                        stack.append((s, 0, s))
                continue
            self._finish(n, new, stack, pending)
        return done[root]

    def _finish(self, n: UOp, new: UOp, stack: list[tuple[UOp, int, UOp]], pending: set[UOp]) -> None:
        done = self.done
        built = new
        src = new.src
        for s in src:
            if done.get(s, s) is not s:
                built = UOp(new.op, tuple([done.get(s, s) for s in src]), new.arg, new.tag)
                break
        if built is not new and self.bpm is not None:
            out: UOp | None = built  # the rebuilt node gets its bottom-up rules as well
        else:
            out = self.pm.rewrite(built, self.ctx) if self.pm is not None else None
        if out is None:
            done[n] = built
            if built is not n:
                done[built] = built
            return
        ready = done.get(out)
        if ready is not None:
            done[n] = ready
            return
        if out in pending or (out is n and built is not n):
            raise _loop_error("graph_rewrite", self.name, [out])
        pending.add(n)
        stack.append((n, 2, out))
        stack.append((out, 0, out))

    def _fixed_point(self, n: UOp) -> UOp:
        assert self.bpm is not None
        seen = None
        while True:
            out = self.bpm.rewrite(n, self.ctx)
            if out is None:
                return n
            if seen is None:
                seen = {n}
            if out in seen:
                raise _loop_error("fixed_point_rewrite", self.name, [*seen, out])
            seen.add(out)
            n = out

    def _grow_limit(self, root: UOp, stack: list[tuple[UOp, int, UOp]], limit: int) -> int:
        """A deep graph may need a deep stack; rules that keep growing it may not."""
        allowed = REWRITE_STACK_LIMIT.value + 8 * len(root.toposort())
        if limit >= allowed:
            raise _loop_error("graph_rewrite (stack too big)", self.name, [n for n, _, _ in stack[-1000:]])
        return allowed

    def walk(self, root: UOp) -> UOp:
        """One pass, sources first; replacements are taken as they are."""
        done, bpm, pm = self.done, self.bpm, self.pm
        stack: list[tuple[UOp, bool]] = [(root, False)]
        while stack:
            n, ready = stack.pop()
            if n in done:
                continue
            if not ready:
                if bpm is not None:
                    try:
                        out = bpm.rewrite(n, self.ctx)
                    except BottomUpGate:
                        out = n
                    if out is not None:
                        done[n] = out
                        continue
                stack.append((n, True))
                src = n.src if self.enter_calls or not _skips_body(n) else n.src[1:]
                stack.extend((s, False) for s in reversed(src) if s not in done)
                continue
            built = UOp(n.op, tuple([done.get(s, s) for s in n.src]), n.arg, n.tag) \
                if any(done.get(s, s) is not s for s in n.src) else n
            out = pm.rewrite(built, self.ctx) if pm is not None else None
            done[n] = built if out is None else out
        return done[root]


def graph_rewrite(sink: UOp, pm: PatternMatcher, ctx: Any = None, bottom_up: bool = False, name: str | None = None,
                  bpm: PatternMatcher | None = None, walk: bool = False, enter_calls: bool = False) -> UOp:
    """Rewrite the graph under ``sink`` with ``pm``.

    ``bottom_up`` runs ``pm`` on a node before its sources (users see original sources); ``bpm`` adds such rules beside
    top-down ``pm``. ``walk`` is one pass that does not revisit replacements.

    Raises:
        RewriteLoopError: the rules do not settle.
    """
    if bottom_up and bpm is not None:
        raise ValueError("give bottom_up=True or bpm, not both")
    top, bottom = (None, pm) if bottom_up else (pm, bpm)
    rewriter = _Rewriter(top, bottom, ctx, name, enter_calls)
    return rewriter.walk(sink) if walk else rewriter.run(sink)


def _lookup(ctx: dict[UOp, UOp], x: UOp) -> UOp | None:
    return ctx.get(x)


_substitute = PatternMatcher([(UPat(name="x"), _lookup)])


def substitute(root: UOp, dvars: dict[UOp, UOp], name: str | None = None, extra_pm: PatternMatcher | None = None,
               walk: bool = False, enter_calls: bool = False) -> UOp:
    """``root`` with the keys of ``dvars`` exchanged for their values; see ``UOp.substitute``."""
    real = {k: v for k, v in dvars.items() if k is not v}
    if not real:
        return root
    if extra_pm is None:
        return _substitute_plain(root, real, walk, enter_calls, name)
    return graph_rewrite(root, _substitute + extra_pm, real, bottom_up=True, name=name, walk=walk, enter_calls=enter_calls)


def _substitute_plain(root: UOp, real: dict[UOp, UOp], walk: bool, enter_calls: bool, name: str | None) -> UOp:
    """Substitution without other rules needs no matcher: rebuild what lies above a key."""
    if not walk and any(v in real or (v.op not in _LEAVES and not real.keys().isdisjoint(v.toposort())) for v in real.values()):
        return graph_rewrite(root, _substitute, real, bottom_up=True, name=name, enter_calls=enter_calls)
    done: dict[UOp, UOp] = dict(real)
    stack: list[tuple[UOp, bool]] = [(root, False)]
    while stack:
        n, ready = stack.pop()
        if n in done:
            continue
        src = n.src if enter_calls or not _skips_body(n) else n.src[1:]
        if not ready:
            stack.append((n, True))
            stack.extend([(s, False) for s in src if s not in done])
            continue
        for s in src:
            if done[s] is not s:
                done[n] = UOp(n.op, tuple([done.get(s, s) for s in n.src]), n.arg, n.tag)
                break
        else:
            done[n] = n
    return done[root]


_LEAVES = frozenset({Ops.CONST, Ops.PARAM, Ops.BUFFER, Ops.SPECIAL})
