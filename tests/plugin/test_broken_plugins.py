"""Plugins that fail in every way we know: each becomes an error that names distribution, version, path and remedy."""

from __future__ import annotations

import textwrap

import pytest

from tests.plugin.distributions import SPEC
from tinyhost.env import Context
from tinyhost.errors import DeviceUnavailable, PluginBroken, PluginWarning
from tinyhost.plugin.catalog import State, catalog
from tinyhost.plugin.metadata import DEVICES


def load(name):
    return catalog().load(catalog().device(name))


def test_raises_at_import(site):
    site.device("ACME", spec="raise ValueError('no such\\ncard')")
    with pytest.raises(PluginBroken) as e:
        load("ACME")
    text = str(e.value)
    assert text.startswith(
        "the device ACME of acme-acme 1.0 is installed and broken: ValueError: no such card "
        "(acme-acme 1.0, acme_acme.spec:ACME, "
    )
    assert str(site.root) in text and "pip install -U acme-acme" in text and "TINYHOST_PLUGINS=-acme-acme" in text
    assert isinstance(e.value.__cause__, ValueError)
    assert catalog().device("ACME").state is State.BROKEN


def test_failure_is_remembered_and_quoted(site):
    site.device(
        "ACME",
        spec="import pathlib; p = pathlib.Path(__file__).with_name('count'); p.write_text(p.read_text() + 'x' "
        "if p.exists() else 'x'); raise ValueError('gone')",
    )
    for _ in range(3):
        with pytest.raises(PluginBroken, match="ValueError: gone"):
            load("ACME")
    assert (site.root / "acme_acme" / "count").read_text() == "x"


def test_exit_at_import(site):
    site.device("ACME", spec="import sys; sys.exit(3)")
    with pytest.raises(PluginBroken, match=r"broken: PluginExit: it called sys.exit\(3\)"):
        load("ACME")


def test_keyboard_interrupt_passes(site):
    site.device("ACME", spec="raise KeyboardInterrupt")
    with pytest.raises(KeyboardInterrupt):
        load("ACME")
    assert catalog().device("ACME").state is State.FOUND


def test_hang_at_import(site, capsys, monkeypatch):
    monkeypatch.setattr("tinyhost.plugin.guard.NOTICE", 0.1)
    site.device("HANG", spec="import time; time.sleep(5)")
    with (
        Context(TINYHOST_OPEN_TIMEOUT=0.3),
        pytest.raises(
            PluginBroken,
            match="TimeoutError: the import of the device HANG of "
            r"acme-hang 1.0 \(.*\) did not finish within 0.3 s",
        ),
    ):
        load("HANG")
    line = capsys.readouterr().err
    assert (
        line.startswith("tinyhost: waiting for the import of the device HANG of acme-hang 1.0 (")
        and str(site.root) in line
    )
    assert "since 0.1 s (giving up after 0.3 s; TINYHOST_OPEN_TIMEOUT)" in line


def test_slow_but_fine(site, capsys, monkeypatch):
    monkeypatch.setattr("tinyhost.plugin.guard.NOTICE", 0.05)
    site.device(
        "ACME",
        spec="import time; time.sleep(0.2)\n" + textwrap.dedent(SPEC.format(name="ACME", package="acme_acme", more="")),
    )
    assert load("ACME").name == "ACME"
    assert "waiting for the import" in capsys.readouterr().err


@pytest.mark.parametrize(
    "spec, text",
    [
        ("ACME = 'hello'", "acme_acme.spec:ACME must be a DeviceSpec, it is 'hello'"),
        ("pass", "AttributeError: module 'acme_acme.spec' has no attribute 'ACME'"),
        (
            "from tinyhost.plugin.v1 import RendererSpec\nACME = RendererSpec('A.B', 'm:C')",
            "must be a DeviceSpec, it is RendererSpec",
        ),
        (
            "from tinyhost.plugin.v1 import DeviceSpec\nACME = DeviceSpec('OTHER', 'm:C', 'm:f')",
            "the entry point is named 'ACME', its DeviceSpec 'OTHER'",
        ),
        (
            "from tinyhost.plugin.v1 import DeviceSpec\nACME = DeviceSpec('ACME', 'm.C', 'm:f')",
            "device_class must be \"module:attribute\", got 'm.C'",
        ),
        (
            "from tinyhost.plugin.v1 import Nothing",
            "It needs members of the plugin API that this core does not have yet: pip install -U tinyhost acme-acme",
        ),
    ],
)
def test_wrong_objects(site, spec, text):
    site.device("ACME", spec=spec)
    with pytest.raises(PluginBroken) as e:
        load("ACME")
    assert text in str(e.value)


def test_newer_api(site):
    site.device("ACME", spec="from tinyhost.plugin.v9 import DeviceSpec")
    with pytest.raises(
        PluginBroken, match="needs the plugin API v9, this core offers v1: pip install -U tinyhost acme-acme"
    ):
        load("ACME")


def test_missing_dependency(site):
    site.device("ACME", spec="import acme_runtime_that_is_missing.core")
    with pytest.raises(
        PluginBroken, match="needs the module 'acme_runtime_that_is_missing', which is not installed; reinstall"
    ):
        load("ACME")


def test_missing_native_library(site, devices):
    site.device(
        "ACME",
        impl="""
        import ctypes
        from tinyhost.plugin.v1 import Compiled
        class Dev(Compiled):
            def __init__(self, name, target, spec): ctypes.CDLL("libacme_is_missing.so.7")
    """,
    )
    with pytest.raises(DeviceUnavailable) as e:
        devices["ACME"]
    text = str(e.value)
    assert text.startswith("ACME does not open here: OSError: libacme_is_missing.so.7: cannot open shared object file")
    assert "(acme-acme 1.0, acme_acme.spec:ACME, " in text and text.endswith("Install the driver.")
    assert isinstance(e.value.__cause__, OSError)
    assert catalog().device("ACME").state is State.UNAVAILABLE


@pytest.mark.parametrize(
    "body, text",
    [
        ("raise RuntimeError('card is busy')", "RuntimeError: card is busy"),
        ("import sys; sys.exit('bye')", "PluginExit: it called sys.exit('bye')"),
    ],
)
def test_fails_to_open(site, devices, body, text):
    site.device(
        "ACME",
        impl=f"""
        from tinyhost.plugin.v1 import Compiled
        class Dev(Compiled):
            def __init__(self, name, target, spec):
                {body}
    """,
    )
    with pytest.raises(DeviceUnavailable) as e:
        devices["ACME"]
    assert text in str(e.value)


def test_hangs_when_opened(site, devices, capsys, monkeypatch):
    monkeypatch.setattr("tinyhost.plugin.guard.NOTICE", 0.1)
    site.device(
        "ACME",
        impl="""
        import time
        from tinyhost.plugin.v1 import Compiled
        class Dev(Compiled):
            def __init__(self, name, target, spec): time.sleep(5)
    """,
    )
    with Context(TINYHOST_OPEN_TIMEOUT=0.3), pytest.raises(DeviceUnavailable, match="did not finish within 0.3 s"):
        devices["ACME:1"]
    assert "waiting for the device ACME:1 of acme-acme 1.0 to open (" in capsys.readouterr().err


def test_device_class_of_wrong_type(site, devices):
    site.device("ACME", impl="class Dev:\n    def __init__(self, name, target, spec): pass")
    with pytest.raises(DeviceUnavailable, match="acme_acme.impl:Dev must be a subclass of tinyhost.plugin.v1.Compiled"):
        devices["ACME"]


def test_not_asked_for_is_one_warning(site):
    site.device("ACME", spec="1/0")
    record = catalog().device("ACME")
    with pytest.warns(
        PluginWarning, match="the device ACME of acme-acme 1.0 is installed and broken: ZeroDivisionError"
    ):
        assert not catalog().try_load(record)
    assert not catalog().try_load(record)  # a second warning would be an error here
    with Context(TINYHOST_STRICT=1), pytest.raises(PluginBroken):
        catalog().try_load(record)


def test_a_broken_plugin_does_not_touch_others(site, devices):
    site.device("BAD", spec="raise SystemExit")
    site.device("GOOD")
    assert devices["GOOD"].name == "GOOD"
    assert [r.state for r in catalog().of(DEVICES) if r.name == "BAD"] == [State.FOUND]
