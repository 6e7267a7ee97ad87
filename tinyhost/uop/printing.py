"""Text for nodes: ``repr``, index expressions, and a listing with one line per node.

Takes any object with ``op, src, arg, tag`` (it imports no node class) and gives strings. Nothing recurses: the
functions work at any depth; indentation and the length of an expression are capped so that the text of a deep or
heavily shared graph stays linear in its size.

Does not simplify: a caller that wants the simplified expression simplifies first.
"""
from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

from tinyhost.dtype import Invalid
from tinyhost.ops import AddrSpace, Ops

MAX_INDENT = 64  # levels; a chain of 100,000 nodes would otherwise print 10 GB of spaces
MAX_TEXT = 4000  # characters of one expression; sharing makes the text of a small graph exponential


def argstr(u: Any) -> str:
    """Text of the argument of ``u``."""
    return repr(u.arg)


def tagstr(u: Any) -> str:
    """``, tag=...`` or nothing."""
    return "" if u.tag is None else f", tag={u.tag!r}"


def post_order(root: Any) -> list[Any]:
    """All nodes under ``root``, each once, sources first and from left to right."""
    seen: set[Any] = set()
    out: list[Any] = []
    stack: list[tuple[Any, bool]] = [(root, False)]
    while stack:
        u, expanded = stack.pop()
        if expanded:
            out.append(u)
        elif u not in seen:
            seen.add(u)
            stack.append((u, True))
            stack.extend((s, False) for s in reversed(u.src) if s not in seen)
    return out


# *** repr ***
def _shared(root: Any) -> set[Any]:
    """Nodes that are a source more than once."""
    uses: dict[Any, int] = {}
    stack = [root]
    while stack:
        for s in stack.pop().src:
            uses[s] = uses.get(s, 0) + 1
            if uses[s] == 1:
                stack.append(s)
    return {u for u, n in uses.items() if n > 1}


def tree(root: Any) -> str:
    """``repr`` of a node: nested ``UOp(...)``, two spaces per level; a shared node is named at its first use.

    >>> from tinyhost.uop import Ops, UOp
    >>> print(tree(UOp(Ops.ADD, (UOp(Ops.CONST, arg=42), UOp(Ops.CONST, arg=3)))))
    UOp(Ops.ADD, arg=None, src=(
      UOp(Ops.CONST, arg=42, src=()),
      UOp(Ops.CONST, arg=3, src=()),))
    """
    shared, names = _shared(root), {}  # type: set[Any], dict[Any, int]
    out: list[str] = []
    stack: list[tuple[Any, int]] = [(root, 0)]  # (node or finished text, level)
    while stack:
        u, level = stack.pop()
        if isinstance(u, str):
            out.append(u)
            continue
        indent = "  " * min(level, MAX_INDENT)
        if u in names:
            out.append(f"{indent}x{names[u]}")
            continue
        name = ""
        if u in shared:
            name = f"x{names.setdefault(u, len(names))}:="
        out.append(f"{indent}{name}UOp({u.op}, arg={argstr(u)}{tagstr(u)}, src=(")
        stack.append(("))", 0))
        for s in reversed(u.src):
            stack += ((",", 0), (s, level + 1), ("\n", 0))
    return "".join(out)


# *** index expressions ***
# how tightly an operator binds; a source that binds less gets parentheses
_INFIX: dict[Ops, tuple[str, int]] = {
    Ops.MUL: ("*", 7), Ops.FLOORDIV: ("//", 7), Ops.FLOORMOD: ("%", 7), Ops.FDIV: ("/", 7),
    Ops.ADD: ("+", 6), Ops.SUB: ("-", 6), Ops.SHL: ("<<", 5), Ops.SHR: (">>", 5), Ops.AND: ("&", 4),
    Ops.XOR: ("^", 3), Ops.OR: ("|", 2), Ops.CMPLT: ("<", 1), Ops.CMPNE: ("!=", 1), Ops.CMPEQ: ("==", 1),
}
_ATOM = 9
_Piece = tuple[str, int]


def axis_name(u: Any) -> str:
    """``r0_1`` for the RANGE with ids 0 and 1; a negative id is written ``m`` and its magnitude."""
    return "r" + "_".join(str(i) if i >= 0 else f"m{-i}" for i in u.arg[:-1])


def _text_of_const(u: Any, _: list[_Piece]) -> _Piece:
    text = "Invalid" if u.arg is Invalid else str(u.arg)
    return text, _ATOM if not text.startswith("-") else 8


def _text_of_storage(u: Any, _: list[_Piece]) -> _Piece:
    return (u.arg.name or f"data{u.arg.slot}"), _ATOM


def _text_of_range(u: Any, _: list[_Piece]) -> _Piece:
    return axis_name(u), _ATOM


def _text_of_special(u: Any, _: list[_Piece]) -> _Piece:
    return str(u.arg), _ATOM


def _text_of_where(u: Any, src: list[_Piece]) -> _Piece:
    c, x, y = (s for s, _ in src)
    return f"{x} if {c} else {y}", 0


def _text_of_index(u: Any, src: list[_Piece]) -> _Piece:
    return f"{src[0][0]}[{', '.join(s for s, _ in src[1:])}]", _ATOM


def _text_of_cast(u: Any, src: list[_Piece]) -> _Piece:
    if u.src[0].op is Ops.CONST:
        return src[0]
    return f"{str(u.arg).removeprefix('dtypes.')}({src[0][0]})", _ATOM


def _text_of_first(u: Any, src: list[_Piece]) -> _Piece:
    return src[0]


_TEXT: dict[Ops, Callable[[Any, list[_Piece]], _Piece]] = {
    Ops.CONST: _text_of_const, Ops.PARAM: _text_of_storage, Ops.BUFFER: _text_of_storage, Ops.RANGE: _text_of_range,
    Ops.SPECIAL: _text_of_special, Ops.WHERE: _text_of_where, Ops.INDEX: _text_of_index, Ops.CAST: _text_of_cast,
    Ops.AFTER: _text_of_first, Ops.LOAD: _text_of_first,
}


def _wrap(piece: _Piece, least: int) -> str:
    return piece[0] if piece[1] >= least else f"({piece[0]})"


def _text_of(u: Any, src: list[_Piece]) -> _Piece:
    if (infix := _INFIX.get(u.op)) is not None:
        sign, level = infix
        # a-(b-c), a//(b*c): the right operand needs parentheses at the same level, except in sums and products
        right = level if u.op in (Ops.ADD, Ops.MUL) and u.src[1].op is u.op else level + 1
        left = level + 1 if level == 1 else level
        return f"{_wrap(src[0], left)}{sign}{_wrap(src[1], right)}", level
    if (rule := _TEXT.get(u.op)) is not None:
        return rule(u, src)
    return f"{u.op.name.lower()}({', '.join(s for s, _ in src)})", _ATOM


def render(root: Any) -> str:
    """Python-like text of an index expression, a compound one in parentheses: ``(r0*4+1)``."""
    pieces: dict[Any, _Piece] = {}
    for u in post_order(root):
        text, level = _text_of(u, [pieces[s] for s in u.src])
        pieces[u] = (text, level) if len(text) <= MAX_TEXT else ("...", _ATOM)
    return _wrap(pieces[root], 8)


# *** listing ***
def _literal(x: Any) -> str:
    """Python source of an argument."""
    if isinstance(x, float) and not math.isfinite(x):
        return f"float('{x}')"
    return repr(x)


def _construct(u: Any, name_of: Callable[[Any], str]) -> str:
    if u.op is Ops.BUFFER and u.tag is None and _is_plain_buffer(u.arg):
        return f"UOp.new_buffer({u.arg.device!r}, {u.arg.size}, {u.arg.dtype!r}, {u.arg.slot})"
    srcs = ", ".join(name_of(s) for s in u.src) + ("," if len(u.src) == 1 else "")
    return f"UOp({u.op}, ({srcs}), {_literal(u.arg)}{tagstr(u)})"


def _is_plain_buffer(arg: Any) -> bool:
    return bool(arg.addrspace is AddrSpace.GLOBAL and arg.device is not None and arg.size is not None
                and arg.vmin_vmax is None and arg.multiple_of is None and arg.name is None and not arg.volatile
                and arg.image is None)


def pyrender(root: Any) -> str:
    """Python source that builds ``root``, one line per node, literals inline; the last line names it ``ast``."""
    names: dict[Any, str] = {}
    lines: list[str] = []
    for u in post_order(root):
        text = _construct(u, names.__getitem__)
        if u.op is Ops.CONST and u.tag is None:
            names[u] = f"UOp.const({_literal(u.arg)})"
            continue
        names[u] = f"x{len(lines)}"
        lines.append(f"{names[u]} = {text}")
    return "\n".join([*lines, f"ast = {names[root]}"])


def print_uops(uops: Iterable[Any]) -> None:
    """Print a linear program: number, op, dtype, numbers of the sources, argument."""
    number: dict[Any, int] = {}
    for i, u in enumerate(uops):
        number[u] = i
        src = [str(number[s]) if s in number else repr(s.arg) if s.op is Ops.CONST else "--" for s in u.src]
        print(f"{i:4d} {str(u.op):20s}: {str(u.dtype):20s} [{', '.join(src)}] {argstr(u)}")
