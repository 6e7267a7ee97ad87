"""The tables of docs/onnx.md, made from the registry, the schemas and the lists of the tests.

``python -m tests.onnx.document`` rewrites them; a test compares them with what is there.
"""
from __future__ import annotations

from pathlib import Path

import onnx.defs

from tests.onnx.conformance import EXPECTED, cases
from tinyhost.io.onnx.registry import all_operators, find

PAGE = Path(__file__).resolve().parents[2] / "docs" / "onnx.md"


def _name(domain: str) -> str:
    return domain or "ai.onnx"


def operator_table() -> str:
    """Operators with functions of their own: opsets from which each form holds."""
    rows = ["| domain | operator | forms since opset |", "|---|---|---|"]
    first: dict[tuple[str, str], int] = {}
    for s in onnx.defs.get_all_schemas_with_history():
        first[s.domain, s.name] = min(s.since_version, first.get((s.domain, s.name), s.since_version))
    for domain, op, since in all_operators():
        opsets = [str(max(s, first.get((domain, op), s))) for s in since]
        rows.append(f"| {_name(domain)} | {op} | {', '.join(opsets)} |")
    return "\n".join(rows)


def _newest() -> list[object]:
    return [s for s in onnx.defs.get_all_schemas() if not s.deprecated]


def _by_domain(names: list[tuple[str, str]]) -> str:
    rows = ["| domain | operators |", "|---|---|"]
    for domain in sorted({d for d, _ in names}):
        rows.append(f"| {_name(domain)} | {', '.join(sorted(n for d, n in names if d == domain))} |")
    return "\n".join(rows)


def _without_form() -> list[object]:
    return [s for s in _newest() if find(s.domain, s.name, s.since_version)[0] is None]


def expanded_table() -> str:
    """Operators that are computed by the body in their schema."""
    return _by_domain([(s.domain, s.name) for s in _without_form()
                       if s.has_function or s.has_context_dependent_function])


def missing_table() -> str:
    """Operators that nothing computes."""
    return _by_domain([(s.domain, s.name) for s in _without_form()
                       if not (s.has_function or s.has_context_dependent_function)])


def failure_table() -> str:
    """Node cases that do not pass."""
    total, failing = len(cases()), len(EXPECTED)
    share = 100 * (total - failing) / total
    rows = [f"onnx {onnx.__version__}: {total - failing} of {total} node cases pass ({share:.1f} %). The others:", "",
            "| case | why |", "|---|---|"]
    rows += [f"| {name} | {why} |" for name, why in sorted(EXPECTED.items())]
    return "\n".join(rows)


def rendered(page: str) -> str:
    """The page with its tables as they are now."""
    tables = {"operators": operator_table, "expanded": expanded_table, "missing": missing_table,
              "failures": failure_table}
    for name, table in tables.items():
        start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
        head, rest = page.split(start)
        page = head + start + table() + "\n" + end + rest.split(end)[1]
    return page


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text()))
