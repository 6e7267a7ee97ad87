"""Distributions made on the fly: a dist-info folder with metadata and entry points beside a package, on sys.path."""

from __future__ import annotations

import os
import pathlib
import sys
import textwrap

import pytest

from tinyhost.device.registry import Device

SPEC = """
    from tinyhost.plugin.v1 import DeviceSpec, RendererSpec, InterfaceSpec, Tier
    {name} = DeviceSpec("{name}", device_class="{package}.impl:Dev", capabilities="{package}.impl:capabilities",
                        renderers=("{name}.ONE",), probe="{package}.impl:probe",
                        install_hint="Install the driver.", {more})
    {name}_ONE = RendererSpec("{name}.ONE", renderer_class="{package}.impl:One")
    {name}_TWO = RendererSpec("{name}.TWO", renderer_class="{package}.impl:Two", available="{package}.impl:two_missing")
"""
IMPL = """
    from tinyhost.plugin.v1 import Capabilities, Compiled, ProbeResult, Renderer, Tier
    class Dev(Compiled):
        closed = []
        def finalize(self): Dev.closed.append(self.name)
    class One(Renderer):
        def __init__(self, target):
            super().__init__(target)
            self.caps = capabilities(target)
        def render(self, uops): return "one"
    class Two(One): pass
    def capabilities(target): return Capabilities(vector_bytes=32 if target.arch == "wide" else 16)
    def probe(): return {probe}
    def two_missing(): return {two!r}
"""


class Site:
    """A folder on sys.path into which distributions are written."""

    def __init__(self, root: pathlib.Path) -> None:
        self.root = root

    def add(
        self,
        distribution: str,
        *,
        version: str = "1.0",
        requires: tuple[str, ...] = (),
        files: dict[str, str] | None = None,
        **groups: dict[str, str],
    ) -> None:
        """Write a distribution; keyword `devices={"ACME": "acme.spec:ACME"}` is an entry-point group."""
        info = self.root / f"{distribution.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
        (info / "METADATA").write_text("\n".join(lines + [f"Requires-Dist: {r}" for r in requires]) + "\n")
        (info / "entry_points.txt").write_text(
            "".join(
                f"[tinyhost.{group}]\n" + "".join(f"{k} = {v}\n" for k, v in rows.items())
                for group, rows in groups.items()
            )
        )
        for name, text in (files or {}).items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        Device.reset()

    def device(
        self,
        name: str,
        *,
        distribution: str = "",
        spec: str = "",
        impl: str = "",
        more: str = "",
        two: str = "",
        probe: str = "ProbeResult(True, Tier.DISCRETE)",
        **rest: object,
    ) -> None:
        """Write a complete backend for the device `name`; `spec` or `impl` replace its modules."""
        distribution = distribution or f"acme-{name.lower()}"
        package = distribution.replace("-", "_")
        self.add(
            distribution,
            files={
                f"{package}/__init__.py": "",
                f"{package}/spec.py": spec or SPEC.format(name=name, package=package, more=more),
                f"{package}/impl.py": impl or IMPL.format(probe=probe, two=two),
            },
            devices={name: f"{package}.spec:{name}"},
            renderers={f"{name}.ONE": f"{package}.spec:{name}_ONE", f"{name}.TWO": f"{package}.spec:{name}_TWO"},
            **rest,
        )


@pytest.fixture
def site(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch):
    """An empty site folder, first on sys.path; everything it brought is forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    known = set(sys.modules)
    environment = dict(os.environ)
    Device.reset()
    yield Site(tmp_path)
    monkeypatch.undo()
    for name in set(sys.modules) - known:
        if str(tmp_path) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    Device.reset()
    assert dict(os.environ).items() >= {k: v for k, v in environment.items() if k != "PYTEST_CURRENT_TEST"}.items()
