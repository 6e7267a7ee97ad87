"""Patterns over nodes and ordered lists of rewrite rules.

Takes rules ``(UPat, function)``; gives ``PatternMatcher.rewrite(node) -> node or None``: the first rule, in order,
whose pattern matches and whose function returns another node. A pattern's alternatives (``UPat.any``, operands in
any order) are expanded into plain patterns once; which rules can match is looked up by the ops of a node and of its
sources, and that answer is remembered, so a node that no rule fits costs one dictionary look-up. Nothing is
compiled at import.
"""
from __future__ import annotations

import inspect
import itertools
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tinyhost.dtype import DType, dtypes
from tinyhost.env import TRACK_MATCH_STATS
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop.match import Store, compile_pattern, compile_rule
from tinyhost.uop.node import UOp


class UPat:
    """A pattern: sets of ops and dtypes, sources (tuple: in order; list: in any order; one pattern: all alike), a
    literal argument and a name. A name used twice means the same node. Operators build patterns of the node they would
    build.
    """

    __slots__ = ("ops", "dtypes", "src", "arg", "name", "allow_any_len", "early_reject", "tag", "alternatives")

    def __init__(self, op: Ops | Iterable[Ops] | None = None, dtype: DType | tuple[DType, ...] | None = None,
                 src: tuple[UPat, ...] | list[UPat] | UPat | None = None, arg: Any = None, name: str | None = None,
                 allow_any_len: bool = False, early_reject: set[Ops] | None = None, tag: Any = None,
                 alternatives: tuple[UPat, ...] = ()) -> None:
        self.ops = None if op is None else frozenset((op,)) if isinstance(op, Ops) else frozenset(op)
        self.dtypes = None if dtype is None else frozenset(dtype) if isinstance(dtype, tuple) else frozenset((dtype,))
        self.src, self.arg, self.name, self.tag = src, arg, name, tag
        self.allow_any_len, self.early_reject, self.alternatives = allow_any_len, early_reject, alternatives

    def _copy(self, **changes: Any) -> UPat:
        new = UPat.__new__(UPat)
        for slot in UPat.__slots__:
            setattr(new, slot, changes.get(slot, getattr(self, slot)))
        return new

    def __repr__(self) -> str:
        ops = "any" if self.ops is None else "|".join(o.name for o in sorted(self.ops))
        shown = [f"{slot}={value!r}" for slot in ("name", "arg", "src") if (value := getattr(self, slot)) is not None]
        return f"UPat({', '.join([ops, *shown])})"

    # *** constructors ***
    @staticmethod
    def var(name: str | None = None, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        """Any node."""
        return UPat(dtype=dtype, name=name)

    @staticmethod
    def cvar(name: str | None = None, dtype: DType | tuple[DType, ...] | None = None, arg: Any = None) -> UPat:
        """Any literal, bare or under its CAST; read it with ``const_value``."""
        bare = UPat(Ops.CONST, dtype, None, arg, name)
        return UPat(alternatives=(bare, UPat(Ops.CAST, dtype, (UPat(Ops.CONST, arg=arg),), name=name)))

    @staticmethod
    def const(b: Any, dtype: DType | tuple[DType, ...] | None = None) -> UPat:
        """The literal ``b``, bare or under its CAST."""
        return UPat.cvar(None, dtype, b)

    @staticmethod
    def any(*src: UPat) -> UPat:
        """One of several patterns, tried in order."""
        return UPat(alternatives=src)

    def named(self, name: str) -> UPat:
        """This pattern with a name."""
        if self.alternatives:
            return self._copy(alternatives=tuple(a.named(name) for a in self.alternatives))
        return self._copy(name=name)

    def or_casted(self, name: str | None = None) -> UPat:
        """This, or a CAST of this (then ``name`` is the CAST)."""
        return UPat.any(self if name is None else self.named(name), UPat(Ops.CAST, src=(self,), name=name))

    def or_after(self, name: str | None = None) -> UPat:
        """This, or an AFTER of this."""
        return UPat.any(self if name is None else self.named(name),
                        UPat(Ops.AFTER, src=(self,), name=name, allow_any_len=True))

    def f(self, op: Ops, **kwargs: Any) -> UPat:
        """``op`` with this as first source."""
        return UPat(op, src=(self, *kwargs.pop("src", ())), **kwargs)

    def alu(self, op: Ops, *src: UPat) -> UPat:
        """``op`` over this and ``src``, in any order where the op commutes."""
        args = (self, *src)
        return UPat(op, dtypes.bool if op in GroupOp.Comparison else None,
                    list(args) if op in GroupOp.Commutative and args[0] is not args[1] else args)

    def _lift(self, x: Any) -> UPat:
        return x if isinstance(x, UPat) else UPat.const(x)

    def __add__(self, x: Any) -> UPat:
        return self.alu(Ops.ADD, self._lift(x))

    def __mul__(self, x: Any) -> UPat:
        return self.alu(Ops.MUL, self._lift(x))

    def __floordiv__(self, x: Any) -> UPat:
        return self.alu(Ops.FLOORDIV, self._lift(x))

    def __mod__(self, x: Any) -> UPat:
        return self.alu(Ops.FLOORMOD, self._lift(x))

    def __and__(self, x: Any) -> UPat:
        return self.alu(Ops.AND, self._lift(x))

    def __or__(self, x: Any) -> UPat:
        return self.alu(Ops.OR, self._lift(x))

    def __xor__(self, x: Any) -> UPat:
        return self.alu(Ops.XOR, self._lift(x))

    def __lshift__(self, x: Any) -> UPat:
        return self.alu(Ops.SHL, self._lift(x))

    def __rshift__(self, x: Any) -> UPat:
        return self.alu(Ops.SHR, self._lift(x))

    def __lt__(self, x: Any) -> UPat:
        return self.alu(Ops.CMPLT, self._lift(x))

    def ne(self, x: Any) -> UPat:
        """CMPNE of this and ``x``."""
        return self.alu(Ops.CMPNE, self._lift(x))

    def eq(self, x: Any) -> UPat:
        """CMPEQ of this and ``x``."""
        return self.alu(Ops.CMPEQ, self._lift(x))

    def maximum(self, x: Any) -> UPat:
        """MAX of this and ``x``."""
        return self.alu(Ops.MAX, self._lift(x))

    def where(self, x: Any, y: Any) -> UPat:
        """WHERE of this condition."""
        return UPat(Ops.WHERE, src=(self, self._lift(x), self._lift(y)))

    def cast(self, dtype: DType | tuple[DType, ...] | None = None, name: str | None = None) -> UPat:
        """CAST of this."""
        return UPat(Ops.CAST, dtype, (self,), name=name)

    def bitcast(self, dtype: DType | tuple[DType, ...] | None = None, name: str | None = None) -> UPat:
        """BITCAST of this."""
        return UPat(Ops.BITCAST, dtype, (self,), name=name)

    def broadcast(self, **kwargs: Any) -> UPat:
        """STACK of this alone, any number of times."""
        return UPat(Ops.STACK, src=self, **kwargs)

    def index(self, *srcs: UPat, **kwargs: Any) -> UPat:
        """INDEX of this."""
        return UPat(Ops.INDEX, src=(self, *srcs), **kwargs)

    def load(self, *src: UPat, **kwargs: Any) -> UPat:
        """LOAD of this."""
        return UPat(Ops.LOAD, src=(self, *src), **kwargs)

    def store(self, *src: UPat, **kwargs: Any) -> UPat:
        """STORE to this."""
        return UPat(Ops.STORE, src=(self, *src), **kwargs)

    def reduce(self, *src: UPat, **kwargs: Any) -> UPat:
        """REDUCE of this."""
        return UPat(Ops.REDUCE, src=(self, *src), **kwargs)

    def after(self, *src: UPat, **kwargs: Any) -> UPat:
        """AFTER of this."""
        return UPat(Ops.AFTER, src=(self, *src), **kwargs)

    def end(self, *src: UPat, **kwargs: Any) -> UPat:
        """END of this."""
        return UPat(Ops.END, src=(self, *src), **kwargs)

    def sink(*srcs: UPat, **kwargs: Any) -> UPat:
        """SINK over patterns."""
        return UPat(Ops.SINK, src=srcs, **kwargs)

    # *** matching ***
    def expand(self) -> list[UPat]:
        """The plain patterns (no alternatives, no free order) that this one stands for, in the order they are tried."""
        if self.alternatives:
            own = self.name
            return [p if own is None else p._copy(name=own) for a in self.alternatives for p in a.expand()]
        if self.src is None:
            return [self]
        if isinstance(self.src, UPat):
            return [self._copy(src=p) for p in self.src.expand()]
        orders = itertools.permutations(self.src) if isinstance(self.src, list) else (self.src,)
        return [self._copy(src=combo) for order in orders for combo in itertools.product(*(s.expand() for s in order))]

    def match(self, uop: UOp, store: Store) -> list[Store]:
        """All ways to match ``uop`` that agree with ``store``."""
        out = []
        for p in self.expand():
            found, check = dict(store), compile_pattern(p)
            if check is None or check(uop, found):
                out.append(found)
        return out


@dataclass(slots=True)
class RuleStats:
    """Counters of one rule under TRACK_MATCH_STATS: attempts, rewrites, seconds."""

    tries: int = 0
    hits: int = 0
    seconds: float = 0.0


@dataclass(slots=True, eq=False)
class Rule:
    """One plain pattern with its function; ``name`` and ``place`` are what traces print."""

    pattern: UPat
    fn: Callable[..., UOp | None]
    takes_ctx: bool
    name: str
    place: str
    stats: RuleStats = field(default_factory=RuleStats)
    _attempts: dict[int, tuple[bool, Callable[..., Any]]] = field(default_factory=dict)

    def attempt(self, known: int) -> tuple[bool, Callable[..., Any]]:
        """The compiled rule, made at first use; see ``match.compile_rule``."""
        if known not in self._attempts:
            self._attempts[known] = compile_rule(self.pattern, self.fn, self.takes_ctx, known)
        return self._attempts[known]


def _describe(fn: Callable[..., Any]) -> tuple[bool, str, str]:
    code = getattr(fn, "__code__", None)
    if code is None:
        return "ctx" in inspect.signature(fn).parameters, getattr(fn, "__name__", repr(fn)), "?"
    takes_ctx = "ctx" in code.co_varnames[:code.co_argcount + code.co_kwonlyargcount]
    name = fn.__name__ if fn.__name__ != "<lambda>" else f"{code.co_filename.rsplit('/', 1)[-1]}:{code.co_firstlineno}"
    return takes_ctx, name, f"{code.co_filename}:{code.co_firstlineno}"


def _can_match(p: UPat, ops: tuple[Ops, ...]) -> bool:
    """Whether ``p`` may match a node whose op and sources' ops are ``ops``."""
    if p.ops is not None and ops[0] not in p.ops:
        return False
    src = p.src
    if src is None:
        return p.early_reject is None or p.early_reject <= frozenset(ops[1:])
    if isinstance(src, UPat):
        return src.ops is None or all(o in src.ops for o in ops[1:])
    n = len(src)
    if len(ops) - 1 < n or (len(ops) - 1 > n and not p.allow_any_len):
        return False
    return all(s.ops is None or o in s.ops for s, o in zip(src, ops[1:]))


_LONG = 4  # nodes with more sources are looked up by op alone
_tried: dict[int, Rule] = {}  # by the identity of the counters, which all alternatives of a rule share
Candidate = tuple[bool, Callable[..., Any], Rule]


class PatternMatcher:
    """An ordered list of rules; the first one that changes a node wins. ``a + b`` tries a's rules first.

    ``compiled`` is accepted for programs that say it; a rule is always compiled, when it is first tried.
    """

    def __init__(self, patterns: Sequence[tuple[UPat, Callable[..., UOp | None]]], compiled: bool = True) -> None:
        self.patterns = list(patterns)
        self._rules: list[Rule] | None = None
        self._table: dict[tuple[Ops, ...], tuple[Candidate, ...]] = {}
        self._sums: dict[int, tuple[PatternMatcher, PatternMatcher]] = {}

    def __add__(self, more: PatternMatcher) -> PatternMatcher:
        found = self._sums.get(id(more))
        if found is None:
            found = self._sums[id(more)] = (more, PatternMatcher(self.patterns + more.patterns))
        return found[1]

    @property
    def rules(self) -> list[Rule]:
        """All rules with their alternatives expanded, in order."""
        if self._rules is None:
            out = []
            for pattern, fn in self.patterns:
                takes_ctx, name, place = _describe(fn)
                stats = RuleStats()
                out += [Rule(p, fn, takes_ctx, name, place, stats) for p in pattern.expand()]
            self._rules = out
        return self._rules

    def _find(self, key: tuple[Ops, ...], uop: UOp) -> tuple[Candidate, ...]:
        """The rules that may match a node with these ops, remembered."""
        long = len(uop.src) > _LONG
        fitting = [r for r in self.rules if (r.pattern.ops is None or uop.op in r.pattern.ops if long
                                             else _can_match(r.pattern, key))]
        entry = self._table[key] = tuple([(*r.attempt(1 if long else 2), r) for r in fitting])
        return entry

    def rewrite(self, uop: UOp, ctx: Any = None) -> UOp | None:
        """What the first applicable rule makes of ``uop``; None when none applies or the node stays itself."""
        src = uop.src
        n = len(src)
        if n == 2:
            key: tuple[Ops, ...] = (uop.op, src[0].op, src[1].op)
        elif n == 1:
            key = (uop.op, src[0].op)
        elif n == 3:
            key = (uop.op, src[0].op, src[1].op, src[2].op)
        elif n > _LONG:
            key = (uop.op, uop.op, uop.op, uop.op, uop.op, uop.op)
        else:
            key = (uop.op, *[s.op for s in src])
        rules = self._table.get(key)
        if rules is None:
            rules = self._find(key, uop)
        if not rules:
            return None
        if TRACK_MATCH_STATS.value:
            return _rewrite_tracked(rules, uop, ctx)
        for alone, attempt, _ in rules:
            out = attempt(uop) if alone else attempt(uop, ctx)
            if out is not None and out is not uop:
                return out  # type: ignore[no-any-return]
        return None

    def applicable(self, uop: UOp, ctx: Any = None) -> Rule | None:
        """The rule that ``rewrite`` applies to ``uop``, for messages; its function is called again."""
        for rule in self.rules:
            alone, attempt = rule.attempt(0)
            out = attempt(uop) if alone else attempt(uop, ctx)
            if out is not None and out is not uop:
                return rule
        return None


def _rewrite_tracked(rules: Sequence[Candidate], uop: UOp, ctx: Any) -> UOp | None:
    for alone, attempt, rule in rules:
        _tried.setdefault(id(rule.stats), rule)
        start = time.perf_counter()
        out = attempt(uop) if alone else attempt(uop, ctx)
        rule.stats.tries += 1
        rule.stats.seconds += time.perf_counter() - start
        if out is not None and out is not uop:
            rule.stats.hits += 1
            return out  # type: ignore[no-any-return]
    return None


def match_stats() -> list[tuple[str, RuleStats]]:
    """(place, counters) of every rule that was tried, dearest first; needs TRACK_MATCH_STATS."""
    return sorted(((f"{r.place} {r.name}", r.stats) for r in _tried.values()), key=lambda row: -row[1].seconds)


def forget_match_stats() -> None:
    """Set the counters of all rules to zero."""
    for rule in _tried.values():
        rule.stats.tries, rule.stats.hits, rule.stats.seconds = 0, 0, 0.0
    _tried.clear()


def print_match_stats(limit: int = 40) -> None:
    """Print the dearest rules to stderr."""
    for place, s in match_stats()[:limit]:
        print(f"{s.seconds * 1e3:8.2f} ms {s.hits:7d} / {s.tries:8d}  {place}", file=sys.stderr)
