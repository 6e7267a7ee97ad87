"""Prints ``docs/spec.md`` from the grammar: ``python -m tinyhost.uop.spec > docs/spec.md``.

Takes the tables of ``grammar.py`` and ``kinds.py``, gives Markdown. A test holds the page to this text, so the page
cannot say anything else than what the verifier checks.
"""
from __future__ import annotations

from collections.abc import Iterable

from tinyhost.ops import AddrSpace, AxisType, GroupOp, Ops
from tinyhost.uop.spec.grammar import RESERVED, SECTIONS, STAGES, Form, forms
from tinyhost.uop.spec.kinds import ARG_KINDS, CONDITIONS, SOURCE_KINDS

_INTRO = """# The IR: every op and its legal forms

This page is printed by `python -m tinyhost.uop.spec` from the tables that `type_verify` checks; a test compares both.

A node is `UOp(op, src, arg, tag)`. It is legal at a stage when one form of its op that names the stage accepts its
sources and argument. Sources are written `name:kind`; `?` marks an optional one, `*` any number. A kind in capitals is
a choice of ops, the others are listed under [Kinds](#kinds-of-sources).
"""

_PROPERTIES = """## Derived properties

A node stores nothing but its four fields. The rest follows, from `uop/derive.py`, `uop/shape.py` and `uop/bounds.py`.
"""

_RULES = (
    ("dtype", "literals by Python type: int weakint, float weakfloat, bool and Invalid bool"),
    ("", "comparisons bool; CAST and BITCAST their argument; effects void"),
    ("", "float functions the least float above their operand; shifts the left operand"),
    ("", "WHERE the join of its arms; other arithmetic the join of all operands; all else the first source"),
    ("shape", "PARAM and BUFFER their flat storage; views by their operand; arithmetic broadcasts, right-aligned"),
    ("", "INDEX the shapes of its indices in order, then the rest of x"),
    ("device", "the first source that has one; PARAM, BUFFER, COPY, STAGE and ALLREDUCE say it themselves"),
    ("ranges", "the union of the sources' ranges, minus those that the node ends; a RANGE adds itself"),
    ("ended ranges", "sources from 1 of STAGE, REDUCE, END, CALL, FUNCTION, UNSHARD; from 3 of WMMA; all of LINEAR"),
    ("", "AFTER what its dependencies end"),
    ("bounds", "an interval that holds every value; where a value may wrap, the range of the dtype"),
    ("", "floats other than literals promise nothing"),
)


def _table(head: str, rows: Iterable[Iterable[str]]) -> list[str]:
    columns = head.split("|")
    lines = [f"| {' | '.join(c.strip() for c in columns)} |", "|" + "---|" * len(columns)]
    return lines + [f"| {' | '.join(c.replace('|', chr(92) + '|') for c in row)} |" for row in rows] + [""]


def _form_row(form: Form) -> list[str]:
    src = ", ".join(f"`{s}`" for s in form.src)
    stages = " ".join(s for s in STAGES if s in form.stages)
    number = f"{form.op.value} {form.op.name}"
    return [number, src, "" if form.arg == "none" else form.arg, stages, form.check, form.meaning]


def _sections() -> list[str]:
    out = []
    by_op = forms()
    for title, rows in SECTIONS.items():
        out.append(f"## {title}\n")
        ops = dict.fromkeys(row[0] for row in rows)
        out += _table("op | sources | arg | stages | condition | meaning",
                      (_form_row(f) for op in ops for f in by_op[op]))
    return out


def _kinds() -> list[str]:
    out = ["## Kinds of sources\n", *_table("kind | takes", ((k, text) for k, (_, text) in SOURCE_KINDS.items()))]
    out += ["## Kinds of arguments\n", *_table("kind | is", ((k, text) for k, (_, text) in ARG_KINDS.items()))]
    return out + ["## Conditions\n", *_table("name | says", ((k, text) for k, (_, text) in CONDITIONS.items()))]


def _groups() -> list[str]:
    names = [n for n in vars(GroupOp) if not n.startswith("_") and n != "All"]
    rows = ([n, " ".join(o.name for o in sorted(getattr(GroupOp, n)))] for n in names)
    out = ["## Groups of ops\n", *_table("group | members", rows)]
    out += [f"Axis types, by number: {', '.join(f'{a.value} {a.name}' for a in AxisType)}.",
            f"Address spaces: {', '.join(f'{a.value} {a.name}' for a in AddrSpace)}.",
            f"Reserved, without a form: {', '.join(o.name for o in sorted(RESERVED))}.", ""]
    return out


def text() -> str:
    """The page."""
    stages = _table("stage | where", ((k, v) for k, v in STAGES.items()))
    count = f"There are {len(Ops)} ops; the number of an op orders nodes, so it is part of its meaning.\n"
    return "\n".join([_INTRO, *stages, count, *_sections(), *_kinds(), *_groups(), _PROPERTIES,
                      *_table("property | rule", _RULES)])
