"""The default device when DEV names none: by tier, in child processes, and never silently worse."""

from __future__ import annotations

import time

import pytest

from tinyhost.env import Context
from tinyhost.errors import DeviceUnavailable, FallbackWarning
from tinyhost.plugin.catalog import State, catalog

ONLY = "fast,slow,bad,cold"


@pytest.fixture(autouse=True)
def only_fixtures(site):
    """Leave out what is installed beside the fixtures; DEV is empty."""
    site.device("COLD", probe="ProbeResult(False, Tier.DISCRETE, 0, 'no card')")
    site.device("SLOW", probe="ProbeResult(True, Tier.HOST)")
    site.device("FAST", probe="ProbeResult(True, Tier.DISCRETE)")
    site.device("BAD", probe="ProbeResult(False, Tier.DISCRETE, 0, 'no card')")


def choose(devices, names):
    with Context(DEV="", TINYHOST_PLUGINS=names):
        return devices.DEFAULT


def test_highest_tier_wins(devices):
    assert choose(devices, "cold,slow,fast") == "FAST"
    assert choose(devices, "cold,slow") == "SLOW"


def test_choice_imports_no_rejected_backend(devices):
    import sys

    choose(devices, "cold,slow,fast")
    assert "acme_fast.impl" in sys.modules and "acme_slow" not in sys.modules and "acme_cold" not in sys.modules


def test_absent_hardware_is_no_fallback_but_is_explained_under_debug(devices, capsys):
    with Context(DEBUG=1):
        choose(devices, "cold,slow")
    err = capsys.readouterr().err
    assert "device COLD of acme-cold 1.0: no card\n" in err and "device SLOW: chosen\n" in err


def write_impl(site, name, text):
    (site.root / f"acme_{name}" / "impl.py").write_text(text)


def test_hardware_that_cannot_be_used_is_reported(site, devices):
    write_impl(
        site,
        "bad",
        "from tinyhost.plugin.v1 import ProbeResult\n"
        "def probe(): return ProbeResult(False, 40, 2, '/dev/acme: permission denied')",
    )
    with pytest.warns(
        FallbackWarning,
        match="using SLOW, because what may be better was rejected: BAD of acme-bad 1.0: "
        "/dev/acme: permission denied. DEV=SLOW silences this",
    ):
        assert choose(devices, "bad,slow") == "SLOW"


@pytest.mark.parametrize(
    "body, reason",
    [
        ("import os; os.abort()", "the process was ended by SIGABRT"),
        ("import os; os._exit(4)", "the process ended with status 4 without an answer"),
        ("raise SystemExit(2)", "SystemExit: 2"),
        ("raise OSError('no libbad.so')", "OSError: no libbad.so"),
        ("def probe(): return 1", "TypeError: acme_bad.impl:probe must return a ProbeResult, it returned 1"),
    ],
)
def test_a_crash_is_contained_and_reported(site, devices, body, reason):
    write_impl(site, "bad", body)
    with pytest.warns(FallbackWarning, match="BAD of acme-bad 1.0: " + reason):
        assert choose(devices, "bad,slow") == "SLOW"


def test_a_hang_is_contained_and_reported(site, devices):
    write_impl(site, "bad", "import time; time.sleep(30)")
    start = time.monotonic()
    with (
        Context(TINYHOST_PROBE_TIMEOUT=1.5),
        pytest.warns(FallbackWarning, match="BAD of acme-bad 1.0: it did not answer within"),
    ):
        assert choose(devices, "bad,slow") == "SLOW"
    assert time.monotonic() - start < 10


def test_prints_of_a_driver_do_not_spoil_the_answer(site, devices):
    write_impl(site, "slow", "print('driver banner')\n" + (site.root / "acme_slow" / "impl.py").read_text())
    assert choose(devices, "slow") == "SLOW"


def test_probe_ok_but_does_not_open(site, devices):
    text = (site.root / "acme_fast" / "impl.py").read_text()
    write_impl(
        site, "fast", text.replace("closed = []", "def __init__(self, name, target, spec): raise OSError('lost')")
    )
    with pytest.warns(
        FallbackWarning, match="using SLOW, .* FAST of acme-fast 1.0: FAST does not open here: OSError: lost"
    ):
        assert choose(devices, "fast,slow") == "SLOW"
    assert catalog().device("PYTHON")


def test_strict_makes_a_fallback_an_error(site, devices):
    write_impl(site, "bad", "raise OSError('no libbad.so')")
    with Context(TINYHOST_STRICT=1), pytest.raises(DeviceUnavailable, match="rejected: BAD of .*TINYHOST_STRICT=1"):
        choose(devices, "bad,slow")


def test_reference_device_is_the_last_resort_with_one_notice(devices, monkeypatch):
    monkeypatch.setattr(type(devices), "_opens", lambda self, name: "")
    with pytest.warns(FallbackWarning) as caught:
        assert choose(devices, "cold") == "PYTHON"
    assert len(caught) == 1
    assert (
        "no other device opens (COLD of acme-cold 1.0: no card). For the host's processor: pip install tinyhost-cpu"
        in str(caught[0].message)
    )
    assert choose(devices, "cold") == "PYTHON"  # no second notice
    with pytest.warns(FallbackWarning, match="no other device is installed"):
        choose(devices, "")


def test_mock_and_null_are_never_chosen(devices, monkeypatch):
    monkeypatch.setattr(type(devices), "_opens", lambda self, name: "")
    with pytest.warns(FallbackWarning):
        assert choose(devices, "") not in ("NULL", "NPY", "DISK")


def test_preference_that_opens(devices):
    with Context(DEV="fast?;slow", TINYHOST_PLUGINS=ONLY):
        assert devices.DEFAULT == "FAST"


def test_preference_in_vain_is_announced(devices):
    with Context(DEV="cold?;missing?;slow", TINYHOST_PLUGINS=ONLY), pytest.warns(FallbackWarning) as caught:
        assert devices.DEFAULT == "SLOW"
    assert "COLD: no card; MISSING: no installed distribution offers a device named 'MISSING'" in str(caught[0].message)


def test_only_preferences_in_vain(devices):
    with Context(DEV="cold?", TINYHOST_PLUGINS="cold,slow,fast"), pytest.warns(FallbackWarning, match="using FAST"):
        assert devices.DEFAULT == "FAST"


def test_a_plugin_may_choose(site, devices):
    site.add(
        "chooser",
        plugins={"chooser": "chooser_plugin"},
        files={
            "chooser_plugin.py": """
        from tinyhost.plugin.v1 import hookimpl
        @hookimpl
        def tinyhost_select(candidates): return candidates[-1]["name"]
    """
        },
    )
    assert choose(devices, "fast,slow,chooser") == "SLOW"


def test_retired_choice_variable(devices, monkeypatch):
    monkeypatch.setenv("FAST", "1")
    with pytest.raises(ValueError, match="FAST=1 is not read by tinyhost; write DEV=FAST instead"):
        choose(devices, "fast,slow")


def test_state_after_choice(devices):
    with Context(DEV="", TINYHOST_PLUGINS="fast,slow"):
        assert devices.DEFAULT == "FAST"
        assert catalog().device("FAST").state is State.OPEN and catalog().device("SLOW").state is State.FOUND
