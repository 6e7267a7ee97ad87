"""The core knows no device: no string of its code is the name of a backend's device or renderer."""

from __future__ import annotations

import ast
import pathlib

import tinyhost
from tinyhost.plugin.known import known_devices

CORE = pathlib.Path(tinyhost.__file__).parent


def test_no_literal_is_a_device_name():
    names = set(known_devices()) | {r for d in known_devices().values() for r in d.renderers}
    found = [
        f"{path.relative_to(CORE)}:{node.lineno}: {node.value!r}"
        for path in sorted(CORE.rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.upper() in names
    ]
    assert not found, "names of devices stand in plugin/known.json only:\n" + "\n".join(found)
