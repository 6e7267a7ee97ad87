"""Specs check every field when they are made."""

from __future__ import annotations

import pytest

from tinyhost.specs import DeviceSpec, InterfaceSpec, ProbeResult, RendererSpec

GOOD = {"name": "ACME", "device_class": "a.b:C", "capabilities": "a:f"}


def test_fields():
    spec = DeviceSpec(
        **GOOD, interfaces=[InterfaceSpec("BUS", "m:B"), InterfaceSpec("SIM", "m:S", mock=True)], roles={"host"}
    )
    assert spec.interface("sim").mock and spec.interface("NONE") is None and spec.roles == frozenset({"host"})
    assert isinstance(spec.interfaces, tuple) and hash(spec)
    renderer = RendererSpec("ACME.ONE", "m:R")
    assert (renderer.device, renderer.short_name) == ("ACME", "ONE")


@pytest.mark.parametrize(
    "change, text",
    [
        ({"name": "acme"}, "DeviceSpec: name must be an upper-case word like MYDEV, got 'acme'"),
        ({"device_class": "a.b.C"}, "DeviceSpec ACME: device_class must be \"module:attribute\", got 'a.b.C'"),
        ({"capabilities": ""}, "DeviceSpec ACME: capabilities must be"),
        ({"probe": "x"}, "DeviceSpec ACME: probe must be"),
        ({"renderers": ("ONE",)}, "DeviceSpec: renderer must be DEVICE.RENDERER in upper case, got 'ONE'"),
        ({"roles": {"boss"}}, "DeviceSpec ACME: unknown roles ['boss']; roles are host, storage, reference, dry"),
        (
            {"interfaces": (InterfaceSpec("A", "m:B"), InterfaceSpec("A", "m:C"))},
            "an interface name stands twice in ['A', 'A']",
        ),
    ],
)
def test_wrong_fields(change, text):
    with pytest.raises(ValueError) as e:
        DeviceSpec(**{**GOOD, **change})
    assert text in str(e.value)


def test_text_instead_of_a_tuple():
    with pytest.raises(TypeError, match="DeviceSpec ACME: renderers is a tuple, got the text 'ACME.ONE'"):
        DeviceSpec(**GOOD, renderers="ACME.ONE")


def test_probe_result_needs_a_reason():
    with pytest.raises(ValueError, match="needs a reason"):
        ProbeResult(False)
