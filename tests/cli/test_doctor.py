"""``tinyhost doctor`` and ``tinyhost info``: every fault is a line with a remedy, and none brings the command down."""
from __future__ import annotations

import json
import platform
from typing import Any

import pytest

from tinyhost.cli import main
from tinyhost.env import Context


def doctor(capsys: pytest.CaptureFixture[str], *argv: str) -> tuple[int, list[dict[str, Any]]]:
    """Exit status and checks."""
    status = main(["doctor", *argv, "--json"])
    return status, json.loads(capsys.readouterr().out)


def failed(checks: list[dict[str, Any]]) -> list[str]:
    return [f"{c['name']}: {c['text']}" for c in checks if c["needed"] and not c["ok"]]


def test_a_healthy_installation(capsys):
    status, checks = doctor(capsys, "PYTHON")
    assert status == 0 and not failed(checks)
    assert [c["name"] for c in checks] == ["installation", "device", "renderer", "cache"]
    assert checks[2]["text"] == "PYTHON:LINEAR multiplies"


def test_text_for_people(capsys):
    assert main(["doctor", "NPY"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ok    installation: tinyhost ")
    assert lines[1].startswith("ok    device: NPY of tinyhost ")


def test_a_device_that_is_not_installed(capsys):
    status, checks = doctor(capsys, "NOPE")
    assert status == 1
    assert failed(checks)[0].startswith("device: no installed distribution offers a device named 'NOPE'")


def test_a_renderer_that_does_not_exist(capsys):
    status, checks = doctor(capsys, "PYTHON:FOO")
    (text,) = failed(checks)
    assert status == 1 and text.startswith("renderer: PYTHON:FOO does not work here: RendererNotFound: ")
    assert any(c["text"] == "PYTHON:LINEAR multiplies" for c in checks)


def test_a_driver_that_dies(site, capsys):
    site.device("CRASH", impl="import os, sys; print('no firmware', file=sys.stderr, flush=True); os.abort()")
    status, checks = doctor(capsys, "CRASH")
    (text,) = failed(checks)
    assert status == 1 and "the process was ended by SIGABRT\nno firmware" in text
    assert next(c for c in checks if not c["ok"])["remedy"] == "pip install -U acme-crash"


def test_hardware_that_is_absent(site, capsys):
    site.device("COLD", probe="ProbeResult(False, Tier.DISCRETE, 0, 'no card')")
    status, checks = doctor(capsys, "COLD")
    assert status == 1 and failed(checks) == ["device: COLD of acme-cold 1.0 does not open: no card"]
    assert checks[1]["remedy"] == "Install the driver."
    assert main(["doctor", "COLD"]) == 1
    text = capsys.readouterr().out
    assert "FAIL  device: COLD of acme-cold 1.0 does not open: no card\n      Install the driver." in text


def test_plugins_nobody_asked_for_are_notes(site, capsys):
    site.device("OLD", requires=("tinyhost<0.1",))
    status, checks = doctor(capsys, "PYTHON")
    note = next(c for c in checks if c["name"] == "plugin")
    assert status == 0 and not note["ok"] and not note["needed"]
    assert "OLD of acme-old 1.0 is incompatible: it requires tinyhost<0.1" in note["text"]
    assert note["remedy"] == "pip install -U tinyhost acme-old"


def test_a_cache_that_others_can_write(tmp_path, capsys):
    tmp_path.chmod(0o777)
    with Context(CACHEDIR=str(tmp_path)), pytest.warns(UserWarning, match="others can write there"):
        status, checks = doctor(capsys, "PYTHON")
    assert status == 0 and not checks[-1]["ok"] and "chmod 700" in checks[-1]["remedy"]
    with Context(CACHELEVEL=0):
        assert doctor(capsys, "PYTHON")[1][-1]["text"] == "switched off (CACHELEVEL=0)"


def test_checks_of_plugins(site, capsys):
    site.add("extra", plugins={"extra": "extra_plugin"}, files={"extra_plugin.py": """
        from tinyhost.plugin.v1 import hookimpl
        @hookimpl
        def tinyhost_doctor(device):
            return [{"name": "clock", "ok": device == "NPY", "text": f"for {device}", "remedy": "wind it"}]
    """})
    assert doctor(capsys, "NPY")[1][-2] == {
        "name": "clock", "ok": True, "text": "for NPY", "remedy": "wind it", "needed": True}
    status, checks = doctor(capsys, "PYTHON")
    assert status == 1 and failed(checks) == ["clock: for PYTHON"]


def test_info(capsys):
    with Context(DEBUG=1):
        assert main(["info", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["python"].endswith(platform.python_version()) and found["variables"]["DEBUG"] == "1"
    assert {"name": "PYTHON", "kind": "device", "state": "found", "distribution": "tinyhost", "reason": "",
            "version": found["tinyhost"], "entry_point": "tinyhost.device.builtin.spec:PYTHON"} in found["plugins"]
    assert main(["info"]) == 0
    text = capsys.readouterr().out
    assert f"tinyhost: {found['tinyhost']}\n" in text and "PYTHON found (tinyhost " in text


def test_devices_tries_each_renderer_whatever_dev_says(capsys):
    with Context(DEV="PYTHON:FOO:arch", TINYHOST_PLUGINS=""):
        assert main(["devices", "--json"]) == 0
    (row,) = [r for r in json.loads(capsys.readouterr().out) if r["name"] == "PYTHON"]
    assert row["state"] == "works" and row["renderers"] == {"LINEAR": "ok"}
