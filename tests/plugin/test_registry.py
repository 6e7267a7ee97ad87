"""Device[name]: names, opening, DEV, and closing."""

from __future__ import annotations

import threading

import pytest

from tinyhost.env import DEV, Context
from tinyhost.errors import DeviceError, DeviceNotFound, DeviceUnavailable, DeviceUsageError, TargetError
from tinyhost.plugin.catalog import State, catalog


@pytest.mark.parametrize(
    "given, canonical",
    [
        ("acme", "ACME"),
        ("ACME:0", "ACME"),
        ("acme:1", "ACME:1"),
        ("Acme:", "ACME"),
        ("disk:/tmp/Some:0", "DISK:/tmp/Some:0"),
        ("disk:/a/B", "DISK:/a/B"),
    ],
)
def test_canonical_names(devices, given, canonical):
    assert devices.canonicalize(given) == canonical
    assert devices.canonicalize(canonical) == canonical


def test_opened_once(site, devices):
    site.device("ACME")
    first = devices["acme"]
    assert devices["ACME:0"] is first and devices["ACME"] is first and devices["ACME:1"] is not first
    assert devices._opened_devices == {"ACME", "ACME:1"} and devices["acme:1"].name == "ACME:1"
    assert catalog().device("ACME").state is State.OPEN


def test_opened_once_by_many_threads(site, devices):
    site.device("ACME")
    found = []
    threads = [threading.Thread(target=lambda: found.append(devices["ACME"])) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1


def test_alias_is_the_same_device(site, devices):
    site.device("ACME", more='aliases=("GADGET",)')
    assert devices["gadget:1"] is devices["ACME:1"]


def test_closed_last_first(site, devices):
    site.device("ACME")
    devices["ACME"], devices["ACME:1"]
    devices.finalize()
    import acme_acme.impl

    assert acme_acme.impl.Dev.closed == ["ACME:1", "ACME"] and devices.finalized


def test_text_after_colon_is_a_number(site, devices):
    site.device("ACME")
    with pytest.raises(DeviceNotFound, match=r"'ACME:ONE' is not a device string: .* DEV=ACME:ONE"):
        devices["ACME:ONE"]


def test_typo_and_broken_driver_read_differently(site, devices):
    site.device(
        "ACME",
        impl="from tinyhost.plugin.v1 import Compiled\nclass Dev(Compiled):\n"
        "    def __init__(self, name, target, spec): raise OSError('no driver')",
    )
    with pytest.raises(DeviceNotFound, match="did you mean ACME"):
        devices["ACM"]
    with pytest.raises(DeviceUnavailable, match="ACME does not open here: OSError: no driver"):
        devices["ACME"]


def test_default_is_the_first_of_dev(devices):
    with Context(DEV="acme:one;null"):
        assert devices.DEFAULT == "ACME"
        with Context(DEV="null"):
            assert devices.DEFAULT == "NULL"
        assert devices.canonicalize(None) == "ACME"


def test_default_cannot_be_set(devices):
    with pytest.raises(AttributeError, match=r"Device.DEFAULT cannot be set: write Context\(DEV='AMD'\)"):
        devices.DEFAULT = "AMD"


def test_interface_cannot_change_while_open(site, devices):
    site.device(
        "ACME", more='interfaces=(InterfaceSpec("BUS", "acme_acme.impl:Bus"), InterfaceSpec("SIM", "m:S", mock=True))'
    )
    with Context(DEV="SIM+ACME"):
        assert devices["ACME"].target.interface == "SIM"
    with (
        Context(DEV="BUS+ACME"),
        pytest.raises(DeviceError, match=r"DEV asks for BUS\+ACME, but ACME is already open as SIM\+ACME"),
    ):
        devices["ACME"]
    with Context(DEV="ACME:TWO"):
        assert devices["ACME"].target.interface == "SIM"  # a renderer may change at any time


def test_usage_can_be_forbidden(site, devices):
    site.device("ACME")
    with Context(ALLOW_DEVICE_USAGE=0):
        with pytest.raises(DeviceUsageError, match="opening ACME is forbidden here: ALLOW_DEVICE_USAGE=0"):
            devices["ACME"]
        assert devices["NPY"].name == "NPY"


def test_device_that_needs_itself(site, devices):
    site.device(
        "ACME",
        impl="""
        from tinyhost.plugin.v1 import Compiled
        class Dev(Compiled):
            def __init__(self, name, target, spec):
                import acme_acme
                acme_acme.devices["ACME"]
    """,
    )
    import acme_acme

    acme_acme.devices = devices
    with pytest.raises(DeviceUnavailable, match="opening ACME needs ACME itself: ACME -> ACME"):
        devices["ACME"]


def test_get_class_does_not_open(site, devices):
    site.device("ACME")
    assert devices.get_class("acme:3").__name__ == "Dev" and not devices._opened_devices


@pytest.mark.parametrize(
    "variable, value, text",
    [
        ("ACME_IFACE", "kfd", r"ACME_IFACE=kfd is not read by tinyhost; write DEV=KFD\+ACME"),
        ("ACME_ONE", "1", "ACME_ONE=1 is not read by tinyhost; write DEV=ACME:ONE"),
        ("HCQ_VISIBLE_DEVICES", "0,2", r"write DEV=INTERFACE:0,2\+NAME"),
    ],
)
def test_retired_variables(site, devices, monkeypatch, variable, value, text):
    site.device("ACME")
    monkeypatch.setenv(variable, value)
    with pytest.raises(TargetError, match=text):
        devices["ACME"]


def test_child_state_carries_the_choice(devices):
    with Context(DEV="acme::wide", DEBUG=0):
        assert devices.child_state()["DEV"] == "ACME::wide"


def test_dev_value_can_be_set():
    before = DEV.value
    try:
        DEV.value = "acme"
        assert DEV.device == "ACME"
    finally:
        DEV.value = before
