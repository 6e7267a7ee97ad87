"""The command line, with working, broken, crashing and hanging plugins beside the installed ones."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tinyhost.cli import main
from tinyhost.cli.table import columns
from tinyhost.env import Context


def rows(capsys, *argv):
    assert main([*argv, "--json"]) == 0
    return {r["name"]: r for r in json.loads(capsys.readouterr().out)}


def test_plugins_is_metadata_only(site, capsys):
    site.device("ACME", spec="import os; os.abort()")
    site.device("OLD", requires=("tinyhost<0.1",))
    found = rows(capsys, "plugins")
    assert found["ACME"] == {
        "name": "ACME",
        "kind": "device",
        "state": "found",
        "distribution": "acme-acme",
        "version": "1.0",
        "entry_point": "acme_acme.spec:ACME",
        "path": str(site.root / "acme_acme" / "__init__.py"),
        "reason": "",
    }
    assert found["OLD"]["state"] == "incompatible" and "it requires tinyhost<0.1" in found["OLD"]["reason"]
    assert found["ACME.ONE"]["kind"] == "renderer" and found["NULL"]["distribution"] == "tinyhost"
    assert main(["plugins"]) == 0
    text = capsys.readouterr().out
    assert text.splitlines()[0].split() == ["NAME", "KIND", "STATE", "DISTRIBUTION", "ENTRY", "POINT"]
    assert "it requires tinyhost<0.1, and tinyhost" in text


def test_devices_survives_every_kind_of_plugin(site, capsys):
    site.device("CRASH", spec="import os; print('about to die', file=__import__('sys').stderr, flush=True); os.abort()")
    site.device("HANG", spec="import time; time.sleep(60)")
    site.device("EXIT", spec="import sys; sys.exit(0)")
    site.device("COLD", probe="ProbeResult(False, Tier.DISCRETE, 0, 'no card')")
    with Context(TINYHOST_PROBE_TIMEOUT=4, TINYHOST_PLUGINS="crash,hang,exit,cold"):
        found = rows(capsys, "devices")
    assert (
        found["CRASH"]["state"] == "broken"
        and found["CRASH"]["reason"] == "the process was ended by SIGABRT\nabout to die"
    )
    assert found["HANG"]["state"] == "broken" and "did not answer within 4 s" in found["HANG"]["reason"]
    assert found["EXIT"]["state"] == "broken" and "it called sys.exit(0)" in found["EXIT"]["reason"]
    assert (found["COLD"]["state"], found["COLD"]["reason"], found["COLD"]["tier"]) == (
        "unavailable",
        "no card",
        "discrete",
    )
    assert "NPY" not in found


def test_disabled_devices_are_rows(site, capsys):
    site.device("ACME")
    with Context(TINYHOST_PLUGINS=""):
        found = rows(capsys, "devices")
    assert found["ACME"]["state"] == "disabled" and found["ACME"]["reason"] == "TINYHOST_PLUGINS leaves it out"


def test_module_runs(tmp_path):
    done = subprocess.run([sys.executable, "-m", "tinyhost", "plugins"], capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0 and "PYTHON" in done.stdout


def test_malformed_environment_is_one_line(tmp_path, monkeypatch):
    monkeypatch.setenv("DEV", "A+B+C")
    done = subprocess.run([sys.executable, "-m", "tinyhost", "plugins"], capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (2, "tinyhost: error: too many '+' in target string: 'A+B+C'\n")


def test_unknown_command(capsys):
    with pytest.raises(SystemExit) as e:
        main(["plugin"])
    assert e.value.code == 2 and "invalid choice: 'plugin'" in capsys.readouterr().err


def test_commands_of_plugins(site, capsys):
    site.add(
        "extra",
        plugins={"extra": "extra_plugin"},
        files={
            "extra_plugin.py": """
        from tinyhost.plugin.v1 import hookimpl
        @hookimpl
        def tinyhost_cli(subparsers):
            parser = subparsers.add_parser("greet")
            parser.set_defaults(run=lambda options: print("hello") or 0)
    """
        },
    )
    assert main(["greet"]) == 0 and capsys.readouterr().out == "hello\n"
    assert main(["plugins"]) == 0


def test_columns():
    assert columns(["A", "B"], [["long", "x"]], ["because"]) == "A     B\nlong  x\n      because"
