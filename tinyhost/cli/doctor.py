"""``tinyhost doctor [DEV]``: what stands between this installation and a running kernel, with a remedy for each fault.

Checks run from the outside in: installation, plugins, the device (probed and opened in a child process), its renderers
(each multiplies three numbers in a child), the disk cache, and what plugins check through the hook ``tinyhost_doctor``.
The exit status is 1 when a check that matters for the device fails; a renderer that is not the one in use is a note.
"""
from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

from tinyhost.cli import devices
from tinyhost.env import CACHEDIR, CACHELEVEL, DEV, TINYHOST_PROBE_TIMEOUT, Context
from tinyhost.errors import TinyhostError
from tinyhost.plugin.catalog import Record, State, catalog, not_installed
from tinyhost.plugin.hooks import hooks
from tinyhost.plugin.isolate import run_isolated
from tinyhost.specs import DeviceSpec


@dataclass(frozen=True, slots=True)
class Check:
    """One finding: what was looked at, whether it is well, in words, what to do, and whether the device needs it."""

    name: str
    ok: bool
    text: str
    remedy: str = ""
    needed: bool = True


def add(subparsers: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser("doctor", help="check an installation and say how to repair it")
    parser.add_argument("dev", nargs="?", default="", metavar="DEV", help="device as in the variable DEV")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Run all checks and print them."""
    with Context(DEV=options.dev or DEV):
        found = list(checks())
    if options.json:
        print(json.dumps([asdict(c) for c in found], indent=2))
    else:
        for c in found:
            print(f"{'ok  ' if c.ok else 'FAIL' if c.needed else 'note'}  {c.name}: {c.text}")
            if c.remedy and not c.ok:
                print(f"      {c.remedy}")
    return int(any(c.needed and not c.ok for c in found))


def checks() -> Iterator[Check]:
    """All findings for the device that DEV chooses."""
    if not catalog().installed:
        yield Check("installation", False, "tinyhost has no entry points", not_installed("a device"))
        return
    yield Check("installation", True, f"tinyhost {catalog().core_version}")
    yield from _plugins()
    name, failure = _device_name()
    if failure:
        yield Check("device", False, failure, "`tinyhost devices` lists what opens here")
    else:
        yield from _device(name)
        yield from _of_plugins(name)
    yield _cache()


def _plugins() -> Iterator[Check]:
    faulty = (State.INCOMPATIBLE, State.AMBIGUOUS)
    for record in catalog().records:
        if record.state in faulty:
            remedy = "uninstall one of them" if record.state is State.AMBIGUOUS else \
                f"pip install -U tinyhost {record.entry.provider.distribution}"
            text = f"the {record.kind} {record} is {record.state}: {record.reason}"
            yield Check("plugin", False, text, remedy, needed=False)


def _device_name() -> tuple[str, str]:
    """The device that DEV names, or that would be chosen; and why there is none."""
    if DEV.device:
        return DEV.device, ""
    outcome = run_isolated("tinyhost.cli.doctor:default_device", [None], _limit())[0]
    return (outcome.value or ""), outcome.failure


def default_device(_: None) -> str:
    """In a child: the device chosen when nobody names one."""
    from tinyhost.device.registry import Device
    return Device.DEFAULT.partition(":")[0]


def _device(name: str) -> Iterator[Check]:
    try:
        record = catalog().device(name, DEV.provider)
    except TinyhostError as e:
        yield Check("device", False, str(e))
        return
    outcome = run_isolated("tinyhost.cli.devices:examine", [record.name], _limit())[0]
    if outcome.failure:
        text = "\n".join(filter(None, (f"{record} failed: {outcome.failure}", outcome.stderr)))
        yield Check("device", False, text, f"pip install -U {record.entry.provider.distribution}")
        return
    row: dict[str, Any] = outcome.value
    works = row["state"] == "works"
    yield Check("device", works, f"{record} {'opens' if works else 'does not open: ' + row['reason']}", _hint(record))
    if works and not row["storage"]:
        yield from _renderers(record, list(row["renderers"]))


def _hint(record: Record) -> str:
    """The install hint of a device; its spec is loaded only after the child has shown that it can be."""
    spec: DeviceSpec = catalog().load(record)
    return spec.install_hint


def _renderers(record: Record, names: list[str]) -> Iterator[Check]:
    """The renderer that DEV names has to work; where it names none, one of all has to."""
    asked = DEV.renderer
    if asked:
        yield _renderer_check(record, asked, _multiply(record, [asked])[0], needed=True)
    others = [n for n in names if n != asked.removeprefix(record.name + ".")]
    results = _multiply(record, others)
    yield from (_renderer_check(record, n, r, needed=False) for n, r in zip(others, results, strict=True))
    if not asked and devices.OK not in results:
        yield Check("renderer", False, f"no renderer of {record.name} works here", _hint(record))


def _multiply(record: Record, names: list[str]) -> list[str]:
    """What each renderer answers in a child."""
    outcomes = run_isolated("tinyhost.cli.devices:multiply", [[record.name, n] for n in names], _limit())
    return [o.failure or str(o.value) for o in outcomes]


def _renderer_check(record: Record, name: str, result: str, needed: bool) -> Check:
    ok = result == devices.OK
    text = f"{record.name}:{name} " + ("multiplies" if ok else f"does not work here: {result}")
    return Check("renderer", ok, text, "`tinyhost devices` lists those that work", needed)


def _cache() -> Check:
    from tinyhost.engine import diskcache
    if not CACHELEVEL.value:
        return Check("cache", True, "switched off (CACHELEVEL=0)")
    word = os.urandom(8)
    diskcache.put("check", "doctor", word)
    ok = diskcache.get("check", "doctor") == word
    text = "entries are written and read back" if ok else f"{CACHEDIR.value} cannot be used"
    return Check("cache", ok, text, "make it a private, writable folder (chmod 700), or set CACHEDIR to one", False)


def _of_plugins(device: str) -> Iterator[Check]:
    for found in hooks().call("tinyhost_doctor", device=device):
        for c in found:
            yield Check(str(c["name"]), bool(c["ok"]), str(c["text"]), str(c.get("remedy", "")))


def _limit() -> float:
    return TINYHOST_PROBE_TIMEOUT.value
