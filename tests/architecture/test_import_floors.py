"""The import graph points down, and the core names no device of a backend."""
from __future__ import annotations

import ast
import importlib.metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FLOORS = {
    "ops": 0, "dtype": 0, "capabilities": 0, "specs": 0, "env": 0, "target": 0, "errors": 0, "helpers": 0,
    "download": 0, "files": 0, "profiling": 0, "events": 0,
    "mixin": 1, "uop": 2, "schedule": 3, "codegen": 3, "renderer": 3, "plugin": 4, "device": 4, "hcq": 4, "engine": 5,
    "tensor": 6, "_tensor": 6, "realization": 6, "jit": 6, "function": 6, "rng": 6, "nn": 6, "io": 6, "array_api": 6,
    "_reset": 6,
    "cli": 7, "viz": 7, "testing": 7, "llm": 7, "distributed": 7, "__main__": 8,
}
NEVER = {("schedule", "codegen"), ("codegen", "schedule"), ("schedule", "renderer")}


def sources(package: str) -> list[Path]:
    return sorted((ROOT / package).rglob("*.py"))


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def type_checking_lines(tree: ast.AST) -> set[int]:
    """Lines inside ``if TYPE_CHECKING:`` blocks."""
    out: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                out.update(range(inner.lineno, (inner.end_lineno or inner.lineno) + 1))
    return out


def imports(path: Path) -> list[tuple[str, bool, bool]]:
    """(module, inside TYPE_CHECKING, at module level) of every import of ours in a file, in-function ones included."""
    tree = ast.parse(path.read_text())
    typing_only = type_checking_lines(tree)
    top = {id(n) for n in tree.body}
    out = []
    for node in ast.walk(tree):
        names = []
        if isinstance(node, ast.Import):
            names = [a.name for a in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            names = [f"{node.module}.{a.name}" for a in node.names]
        out += [(n, node.lineno in typing_only, id(node) in top) for n in names if n.partition(".")[0] == "tinyhost"]
    return out


def room(module: str) -> str:
    """The second part of a module name: which room of the house it stands in."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else ""


CORE = [p for p in sources("tinyhost") if p.parent != ROOT / "tinyhost" or p.name != "__init__.py"]


@pytest.mark.parametrize("path", CORE, ids=lambda p: module_name(p))
def test_imports_point_down(path: Path):
    here = room(module_name(path))
    assert here in FLOORS, f"{here} has no floor: give it one in architecture.md and here"
    for target, _, _ in imports(path):
        there = room(target)
        if there in ("", here) or there not in FLOORS:
            continue
        up = f"floor {FLOORS[there]} above {FLOORS[here]}"
        assert FLOORS[there] <= FLOORS[here], f"{module_name(path)} imports {target}: {up}"
        assert (here, there) not in NEVER, f"{module_name(path)} imports {target}"


def test_no_import_cycles_between_modules():
    """Module-level imports of the core form no cycle."""
    files = {module_name(p): p for p in sources("tinyhost")}
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        deps = set()
        for target, typing_only, top in imports(path):
            if typing_only or not top:
                continue
            hit = target if target in files else target.rpartition(".")[0]
            if hit in files and hit != name and not name.startswith(hit + "."):
                deps.add(hit)
        graph[name] = deps
    state: dict[str, int] = {}
    for start in graph:
        stack = [(start, iter(graph[start]))]
        if state.get(start):
            continue
        state[start] = 1
        while stack:
            node, it = stack[-1]
            nxt = next(it, None)
            if nxt is None:
                state[node] = 2
                stack.pop()
                continue
            path_now = [n for n, _ in stack]
            assert state.get(nxt) != 1, f"import cycle: {' -> '.join(path_now[path_now.index(nxt):] + [nxt])}"
            if not state.get(nxt):
                state[nxt] = 1
                stack.append((nxt, iter(graph[nxt])))


def backend_names() -> set[str]:
    """Device and renderer names that installed backends (not the core) register."""
    out = set()
    for dist in importlib.metadata.distributions():
        name = (dist.metadata["Name"] or "").lower()
        if name == "tinyhost":
            continue
        for ep in dist.entry_points:
            if ep.group in ("tinyhost.devices", "tinyhost.renderers"):
                out.update(ep.name.split("."))
    return out


@pytest.mark.parametrize("path", sources("tinyhost"), ids=lambda p: module_name(p))
def test_core_names_no_backend(path: Path):
    names = backend_names()
    assert "CPU" in names, "tinyhost-cpu must be installed for this test"
    found = [n.value for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Constant) and n.value in names]
    assert not found, f"{module_name(path)} names {found}: what differs between devices is a capability"


def test_mixins_import_neither_node_nor_tensor():
    for path in sources("tinyhost/mixin"):
        bad = [t for t, typing_only, _ in imports(path) if not typing_only and room(t) in ("uop", "tensor", "_tensor")]
        assert not bad, f"{module_name(path)} imports {bad}"
