"""graph_rewrite: apply rules to every node of a graph until nothing changes.

Takes a root and a PatternMatcher; gives the rewritten root. Each node is rewritten once per call (results are
remembered), sources before users; with ``bottom_up`` a node's rules run before its sources are visited. ``walk``
makes a single pass that never looks inside a replacement. CALL and FUNCTION bodies are left alone unless
``enter_calls``. Works on an explicit stack, so depth does not matter; rules that never settle are reported with the
names of the rules that kept firing.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
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
    """Whether the first source of a CALL or FUNCTION is a body, not an address."""
    return not isinstance(u.arg, DType)


class _Rewriter:
    """State of one graph_rewrite call: what each node became."""

    def __init__(self, pm: PatternMatcher | None, bpm: PatternMatcher | None, ctx: Any, name: str | None,
                 enter_calls: bool) -> None:
        self.pm, self.bpm, self.ctx, self.name, self.enter_calls = pm, bpm, ctx, name, enter_calls
        self.done: dict[UOp, UOp] = {}

    def _sources(self, u: UOp) -> tuple[UOp, ...]:
        return u.src if self.enter_calls or u.op not in _CALLS or not _skips_body(u) else u.src[1:]

    def run(self, root: UOp) -> UOp:
        """Rewrite ``root``: its sources, then itself, then what a rule made of it, until no rule applies.

        A frame is (node, what its bottom-up rules made of it, what is left to visit below, whether the one below is the
        node's replacement).
        """
        done, bpm, finish = self.done, self.bpm, self._finish
        limit = REWRITE_STACK_LIMIT.value
        frames: list[tuple[UOp | None, UOp, Iterator[UOp], bool]] = []
        pending: dict[UOp, None] = {}  # nodes whose replacement is being rewritten
        node: UOp | None = None
        new, rest, replaced = root, iter((root,)), False
        while True:
            for s in rest:
                if s in done:
                    continue
                frames.append((node, new, rest, replaced))
                if len(frames) > limit:
                    limit = self._grow_limit(root, frames, limit)
                node = new = s
                replaced = False
                if bpm is not None:
                    try:
                        new = self._fixed_point(s)
                    except BottomUpGate:
                        done[s] = s
                        node, new, rest, replaced = frames.pop()
                        continue
                rest = iter(self._sources(new))
                break
            else:
                if node is None:
                    return done[root]
                if replaced:
                    pending.pop(node, None)
                    done[node] = done[new]
                elif (out := finish(node, new, pending)) is not None:
                    new, rest, replaced = out, iter((out,)), True
                    continue
                node, new, rest, replaced = frames.pop()

    def _finish(self, n: UOp, new: UOp, pending: dict[UOp, None]) -> UOp | None:
        """Rebuild ``new`` over its rewritten sources and apply one rule; gives what to go on with, None if done."""
        done, built = self.done, self._rebuilt(new)
        if built is not new and self.bpm is not None:
            out: UOp | None = built  # the rebuilt node gets its bottom-up rules as well
        else:
            out = self.pm.rewrite(built, self.ctx) if self.pm is not None else None
        if out is None:
            done[n] = built
            if built is not n:
                done[built] = built
            return None
        ready = done.get(out)
        if ready is not None:
            done[n] = ready
            return None
        if out in pending or (out is n and built is not n):
            raise self._loop_error("graph_rewrite", [*pending, out])
        pending[n] = None
        return out

    def _fixed_point(self, n: UOp) -> UOp:
        assert self.bpm is not None
        out = self.bpm.rewrite(n, self.ctx)
        if out is None:
            return n
        seen = {n: None}
        while out is not None:
            if out in seen:
                raise self._loop_error("fixed_point_rewrite", [*seen, out])
            seen[out] = None
            n, out = out, self.bpm.rewrite(out, self.ctx)
        return n

    def _grow_limit(self, root: UOp, frames: list[Any], limit: int) -> int:
        """A deep graph may need a deep stack; rules that keep growing it may not."""
        allowed = REWRITE_STACK_LIMIT.value + 8 * len(root.toposort())
        if limit >= allowed:
            raise self._loop_error("graph_rewrite (stack too big)", [f[0] for f in frames[-1000:]])
        return allowed

    def _loop_error(self, kind: str, recent: list[UOp]) -> RewriteLoopError:
        ops = Counter(u.op.name for u in recent)
        what = ", ".join(f"{op} x{n}" for op, n in ops.most_common(5))
        found = [pm.applicable(u, self.ctx) for u in recent[-8:] for pm in (self.bpm, self.pm) if pm is not None]
        rules = dict.fromkeys(f"{r.name} ({r.place})" for r in found if r is not None)
        return RewriteLoopError(f"infinite loop in {kind} ({self.name or 'unnamed'}): {', '.join(rules) or 'rules'} "
                                f"keep rewriting {what}; two rules undo each other or one grows its own input. "
                                f"Last node: {str(recent[-1])[:400]}")

    def walk(self, root: UOp) -> UOp:
        """One pass, sources first; replacements are taken as they are."""
        done, bpm, pm = self.done, self.bpm, self.pm
        frames: list[tuple[UOp | None, Iterator[UOp]]] = []
        node: UOp | None = None
        rest = iter((root,))
        while True:
            for s in rest:
                if s in done:
                    continue
                if bpm is not None and (made := self._before(s)) is not None:
                    done[s] = made
                    continue
                frames.append((node, rest))
                node, rest = s, iter(self._sources(s))
                break
            else:
                if node is None:
                    return done[root]
                built = self._rebuilt(node)
                out = pm.rewrite(built, self.ctx) if pm is not None else None
                done[node] = built if out is None else out
                node, rest = frames.pop()

    def _rebuilt(self, n: UOp) -> UOp:
        """``n`` over what its sources became; those that were not visited stay."""
        done = self.done
        for s in n.src:
            if done.get(s, s) is not s:
                return UOp(n.op, tuple([done.get(s, s) for s in n.src]), n.arg, n.tag)
        return n

    def _before(self, n: UOp) -> UOp | None:
        """What a bottom-up rule makes of ``n``; ``n`` itself where a rule says not to descend."""
        assert self.bpm is not None
        try:
            return self.bpm.rewrite(n, self.ctx)
        except BottomUpGate:
            return n


def graph_rewrite(sink: UOp, pm: PatternMatcher, ctx: Any = None, bottom_up: bool = False, name: str | None = None,
                  bpm: PatternMatcher | None = None, walk: bool = False, enter_calls: bool = False,
                  kept: Iterable[UOp] = ()) -> UOp:
    """Rewrite the graph under ``sink`` with ``pm``; nodes of ``kept`` stay as they are, with all below them.

    ``bottom_up`` runs ``pm`` on a node before its sources (users see original sources); ``bpm`` adds such rules beside
    top-down ``pm``. ``walk`` is one pass that does not revisit replacements.

    Raises:
        RewriteLoopError: the rules do not settle.
    """
    if bottom_up and bpm is not None:
        raise ValueError("give bottom_up=True or bpm, not both")
    top, bottom = (None, pm) if bottom_up else (pm, bpm)
    rewriter = _Rewriter(top, bottom, ctx, name, enter_calls)
    rewriter.done.update((u, u) for u in kept)
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
    return graph_rewrite(root, _substitute + extra_pm, real, True, name, walk=walk, enter_calls=enter_calls)


def _substitute_plain(root: UOp, real: dict[UOp, UOp], walk: bool, enter_calls: bool, name: str | None) -> UOp:
    """Substitution without other rules needs no matcher: rebuild what lies above a key."""
    if not walk and any(v in real or _reads(v, real) for v in real.values()):
        return graph_rewrite(root, _substitute, real, bottom_up=True, name=name, enter_calls=enter_calls)
    rewriter = _Rewriter(None, None, None, name, enter_calls)
    rewriter.done.update(real)
    return rewriter.walk(root)


def _reads(v: UOp, keys: dict[UOp, UOp]) -> bool:
    """Whether a replacement contains a key itself, so that it has to be rewritten in turn."""
    return v.op not in _LEAVES and not keys.keys().isdisjoint(v.toposort())


_LEAVES = frozenset({Ops.CONST, Ops.PARAM, Ops.BUFFER, Ops.SPECIAL})
