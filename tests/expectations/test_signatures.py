"""Programs written for this family of frameworks find names, parameters and defaults where they expect them.

``signatures.txt`` has one public name a line: a property, or a function with its parameters in order; ``...`` is any
default. Ours may have further optional parameters behind, and named ones where the list has ``**kwargs``.
"""
from __future__ import annotations

import importlib
import inspect
import re
from pathlib import Path
from typing import Any

import pytest

LINES = (Path(__file__).parent / "signatures.txt").read_text().split("\n")[:-1]
HOMES = {"Tensor": "tinyhost:Tensor", "UOp": "tinyhost:UOp", "UPat": "tinyhost.uop:UPat", "uop": "tinyhost.uop",
         "PatternMatcher": "tinyhost.uop:PatternMatcher", "Buffer": "tinyhost.device:Buffer",
         "Device": "tinyhost:Device", "dtypes": "tinyhost:dtypes", "nn": "tinyhost.nn"}
LEFT_OUT = {
    "Tensor.callify": "realization makes its calls itself; nothing to do by hand",
    "Tensor.decode_hevc_frame": "no video decoder",
    "Tensor.size": "a number that can be called: arrays have .size, torch's tensors .size(dim)",
    "Tensor.image_conv2d": "no image storage yet", "Tensor.image_dot": "no image storage yet",
    "nn.state.fs_load": "no network store", "nn.state.fs_store": "no network store",
    "UOp.bool_slice": "nobody needs it: bounds walk once", "UOp.is_virtual": "no such state",
    "UOp.metadata": "names of tensor methods are kept beside the graph, not in nodes",
    "UOp.trace_num": "nodes are not numbered for traces", "Buffer.trace_num": "nodes are not numbered for traces",
    "UOp.to_elf": "engine.program makes it", "UOp.render": "one way to print, without further rules",
    "UOp.copy_to_device": "the device is the node's arg",
    "Buffer.ref": "storage lives as long as its nodes", "Buffer.uop_refcount": "storage lives as long as its nodes",
    "Buffer.__init__": "storage lives as long as its nodes: no uop_refcount",
    "UOp.param": "a PARAM has a size and no axis",
}


def home(name: str) -> Any:
    """The object whose attributes ``name`` counts."""
    first, *rest = name.split(".")
    module, _, attr = HOMES[first].partition(":")
    found = importlib.import_module(module)
    for part in ([attr] if attr else []) + rest:
        found = getattr(found, part) if hasattr(found, part) else importlib.import_module(f"{module}.{part}")
    return found


def parameters(text: str) -> list[str]:
    """``a, b=(1, 2)`` as ["a", "b=(1, 2)"]."""
    return [p.strip() for p in re.findall(r"(?:[^,(]|\([^)]*\))+", text) if p.strip()]


def spelled(p: inspect.Parameter) -> str:
    """A parameter of ours as the list writes it."""
    star = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
    if p.default is p.empty:
        return star + p.name
    return f"{p.name}={p.default if isinstance(p.default, str) else re.sub('^dtypes.', '', repr(p.default))}"


@pytest.mark.parametrize("line", LINES)
def test_signature(line: str) -> None:
    name, paren, rest = line.partition("(")
    owner, _, attr = name.rpartition(".")
    if name in LEFT_OUT:
        return
    found = home(owner)
    assert hasattr(found, attr), f"{owner} has no {attr}"
    if not paren:
        return
    ours = [p for n, p in inspect.signature(getattr(found, attr)).parameters.items() if n not in ("self", "cls")]
    wanted = [p for p in parameters(rest[:-1]) if not p.startswith("**")]
    for theirs, p in zip(wanted, ours):
        mine = spelled(p)
        if theirs.startswith("*"):
            assert p.kind is p.VAR_POSITIONAL, (line, mine)
        elif theirs.endswith("=..."):
            assert mine.startswith(theirs[:-3]), (line, mine)
        elif "=" not in theirs:
            assert p.name == theirs, (line, mine)
        else:
            assert mine.replace(" ", "") == theirs.replace(" ", ""), (line, mine)
    assert len(ours) >= len(wanted), line
    for p in ours[len(wanted):]:
        assert p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL, p.KEYWORD_ONLY), (line, p)


def test_what_is_left_out_is_on_the_list() -> None:
    assert set(LEFT_OUT) <= {line.partition("(")[0] for line in LINES}
