"""The child's side of `isolate` and of device probes; imports as little as it can, because a person waits for it.

The answer has the pipe of stdout for itself: whatever the called function prints goes to stderr.
"""
from __future__ import annotations

import json
import os
import sys
from typing import Any

from tinyhost.env import restore
from tinyhost.plugin.guard import resolve
from tinyhost.specs import DeviceSpec, ProbeResult


def main(job: dict[str, Any]) -> None:
    """Do one job of `isolate.run_isolated` and end the process."""
    out = os.dup(1)
    os.dup2(2, 1)
    restore(job["variables"])
    try:
        function: Any = resolve(job["function"])
        answer = {"value": function(job["argument"])}
    except (Exception, SystemExit) as e:  # whatever it is, the parent is told
        answer = {"failure": f"{type(e).__name__}: {' '.join(str(e).split())}".rstrip(": ")}
    with os.fdopen(out, "w") as f:
        json.dump(answer, f)
    sys.stderr.flush()
    os._exit(0)  # a driver's exit handlers may hang, and everything is said


def probe_entry(argument: tuple[str, str]) -> dict[str, Any]:
    """Import the spec at the entry point (name, value) and call its probe."""
    name, value = argument
    spec = resolve(value)
    if not isinstance(spec, DeviceSpec) or spec.name != name:
        raise TypeError(f"{value} must be the DeviceSpec of {name}, it is {spec!r:.80}")
    if not spec.probe:
        return {"ok": False, "reason": "it is only used when it is named", "auto": False}
    function: Any = resolve(spec.probe)
    result = function()
    if not isinstance(result, ProbeResult):
        raise TypeError(f"{spec.probe} must return a ProbeResult, it returned {result!r:.80}")
    return {"ok": result.ok, "tier": int(result.tier), "count": result.count, "reason": result.reason}
