"""Compiles plain patterns, and rules over them, to functions.

Takes patterns without alternatives (``UPat.expand`` makes them); gives a check ``(node, store) -> bool`` that
records names, or for a rule one function that tries it. ``known`` says how much the caller has already established:
2 that the ops of the node and of its sources fit (and their number), 1 that the node's op fits, 0 nothing; only the
rest is checked. Names of the node itself and of its sources are passed straight to the rule's function, deeper ones
go through a store.
"""
from __future__ import annotations

from collections.abc import Callable
from inspect import CO_VARARGS, CO_VARKEYWORDS
from types import FunctionType
from typing import TYPE_CHECKING, Any

from tinyhost.ops import Ops

if TYPE_CHECKING:
    from tinyhost.uop.node import UOp
    from tinyhost.uop.pattern import UPat

Store = dict[str, "UOp"]
Check = Callable[["UOp", Store], bool]
Attempt = Callable[["UOp", Any], "UOp | None"]


# *** patterns ***
def compile_pattern(p: UPat, known: int = 0, bind: bool = True) -> Check | None:
    """The check of ``p``, None where there is nothing left to check; with ``bind`` it records names."""
    checks = _own_checks(p, known)
    if p.src is not None and (sources := _compile_sources(p, known, bind)) is not None:
        checks.append(sources)
    if bind and p.name is not None:
        checks.append(_binder(p.name))
    return _all_of(checks) if checks else None


def _own_checks(p: UPat, known: int) -> list[Check]:
    checks: list[Check] = []
    if p.ops is not None and known < 1:
        ops = p.ops
        if len(ops) == 1:
            only = next(iter(ops))
            checks.append(lambda u, st: u.op is only)
        else:
            checks.append(lambda u, st: u.op in ops)
    if p.arg is not None:
        arg = p.arg
        literal = p.ops is not None and Ops.CONST in p.ops
        checks.append((lambda u, st: _same_literal(arg, u.arg)) if literal else (lambda u, st: bool(u.arg == arg)))
    if p.tag is not None:
        tag = p.tag
        checks.append(lambda u, st: bool(u.tag == tag))
    if p.dtypes is not None:
        allowed = p.dtypes
        checks.append(lambda u, st: u.dtype in allowed)
    return checks


def _same_literal(want: Any, have: Any) -> bool:
    """Literals match by value; a bool only matches a bool, NaN matches NaN."""
    if isinstance(want, bool) or isinstance(have, bool):
        return want is have
    return bool(want == have) or (want != want and have != have)


def _binder(name: str) -> Check:
    def bind(u: UOp, st: Store) -> bool:
        return st.setdefault(name, u) is u
    return bind


def _all_of(checks: list[Check]) -> Check:
    if len(checks) == 1:
        return checks[0]
    if len(checks) == 2:
        a, b = checks
        return lambda u, st: a(u, st) and b(u, st)
    if len(checks) == 3:
        a, b, c = checks
        return lambda u, st: a(u, st) and b(u, st) and c(u, st)
    every = tuple(checks)

    def run(u: UOp, st: Store) -> bool:
        for check in every:
            if not check(u, st):
                return False
        return True
    return run


def _compile_sources(p: UPat, known: int, bind: bool) -> Check | None:
    if not isinstance(p.src, (tuple, list)):
        assert p.src is not None
        each = compile_pattern(p.src, known - 1, bind)
        return None if each is None else lambda u, st: all([each(s, st) for s in u.src])
    n = len(p.src)
    subs = [(i, check) for i, s in enumerate(p.src) if (check := compile_pattern(s, known - 1, bind)) is not None]
    inner = _at_positions(subs)
    if known >= 2:
        return inner
    count: Check = (lambda u, st: len(u.src) >= n) if p.allow_any_len else (lambda u, st: len(u.src) == n)
    return count if inner is None else lambda u, st: count(u, st) and inner(u, st)


def _at_positions(subs: list[tuple[int, Check]]) -> Check | None:
    if not subs:
        return None
    if len(subs) == 1:
        (i, a), = subs
        return lambda u, st: a(u.src[i], st)
    if len(subs) == 2:
        (i, a), (j, b) = subs
        return lambda u, st: a(u.src[i], st) and b(u.src[j], st)

    def run(u: UOp, st: Store) -> bool:
        src = u.src
        for k, check in subs:
            if not check(src[k], st):
                return False
        return True
    return run


# *** rules ***
def compile_rule(p: UPat, fn: Callable[..., Any], takes_ctx: bool, known: int) -> tuple[bool, Callable[..., Any]]:
    """(whether it takes the node alone or the node and the context, the function that tries the rule on a node)."""
    where = _positions(p)
    names = _parameters(fn)
    if where is None or names is None or not set(names) <= {*where, "ctx"} or not set(where) <= set(names):
        return False, _general(p, fn, takes_ctx, known)
    guard = compile_pattern(p, known, bind=False)
    if guard is None and names == (p.name,):
        return True, fn
    return False, _direct(fn, tuple([None if n == "ctx" else where[n] for n in names]), guard)


def _general(p: UPat, fn: Callable[..., Any], takes_ctx: bool, known: int) -> Attempt:
    check = compile_pattern(p, known)

    def attempt(u: UOp, ctx: Any) -> UOp | None:
        store: Store = {}
        if check is not None and not check(u, store):
            return None
        return fn(ctx=ctx, **store) if takes_ctx else fn(**store)  # type: ignore[no-any-return]
    return attempt


def _direct(fn: Callable[..., Any], args: tuple[int | None, ...], guard: Check | None) -> Attempt:
    """``fn`` over the context (None), the node (-1) and its sources (0, 1 ..)."""
    empty: Store = {}
    if args == (-1,):
        def one(u: UOp, ctx: Any) -> UOp | None:
            return fn(u) if guard is None or guard(u, empty) else None
        return one
    if args == (None, -1):
        def with_ctx(u: UOp, ctx: Any) -> UOp | None:
            return fn(ctx, u) if guard is None or guard(u, empty) else None
        return with_ctx
    if args == (-1, 0, 1):
        def three(u: UOp, ctx: Any) -> UOp | None:
            return fn(u, *u.src[:2]) if guard is None or guard(u, empty) else None
        return three

    def attempt(u: UOp, ctx: Any) -> UOp | None:
        if guard is not None and not guard(u, empty):
            return None
        return fn(*[ctx if i is None else u if i < 0 else u.src[i] for i in args])  # type: ignore[no-any-return]
    return attempt


def _positions(p: UPat) -> dict[str, int] | None:
    """Where each name of ``p`` stands, -1 for the node itself; None if one stands deeper or twice."""
    where: dict[str, int] = {}
    sources = p.src if isinstance(p.src, (tuple, list)) else () if p.src is None else (p.src,)
    for i, sub in enumerate((p, *sources), -1):
        if sub is not p and (sub.src is not None and _has_names(sub.src)):
            return None
        if sub.name is not None:
            if sub.name in where or sub is p.src:
                return None
            where[sub.name] = i
    return where


def _has_names(src: Any) -> bool:
    return any(s.name is not None or (s.src is not None and _has_names(s.src))
               for s in (src if isinstance(src, (tuple, list)) else (src,)))


def _parameters(fn: Callable[..., Any]) -> tuple[str, ...] | None:
    """Names of the parameters of a plain function without defaults, None for anything else."""
    if not isinstance(fn, FunctionType) or fn.__defaults__:
        return None
    code = fn.__code__
    if code.co_kwonlyargcount or code.co_flags & (CO_VARARGS | CO_VARKEYWORDS):
        return None
    return code.co_varnames[:code.co_argcount]
