"""Runs a function in a fresh child process, so that one that crashes, hangs or prints cannot harm this one.

The function is named ("module:function"), takes one JSON value and returns one. The child gets the parent's
`sys.path` and changed variables; os.environ is inherited and never written. What the function prints goes to the
child's stderr, of which the last lines are kept.
"""
from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from tinyhost.env import snapshot

_CHILD = "import sys, json; job = json.load(sys.stdin); sys.path[:] = job['path']; " \
         "from tinyhost.plugin.child import main; main(job)"


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a run: its `value`, or the `failure` in words; `stderr` holds its last lines."""

    value: Any = None
    failure: str = ""
    stderr: str = ""


def run_isolated(function: str, arguments: Sequence[Any], limit: float) -> list[Outcome]:
    """Call `function` once per argument, each in its own process, all at once, for `limit` seconds (0: no limit)."""
    children = [_start(function, argument) for argument in arguments]
    if len(children) == 1:
        return [_collect(children[0], limit)]
    with ThreadPoolExecutor(max(1, len(children))) as pool:  # all pipes are read side by side, so none blocks a child
        return list(pool.map(lambda process: _collect(process, limit), children))


def _start(function: str, argument: Any) -> subprocess.Popen[str]:
    process = subprocess.Popen([sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True, errors="replace", start_new_session=True)
    job = {"path": [str(p) for p in sys.path], "variables": snapshot(), "function": function, "argument": argument}
    assert process.stdin is not None
    try:
        process.stdin.write(json.dumps(job))
        process.stdin.close()
    except BrokenPipeError:  # it died at once; _collect reports how
        pass
    process.stdin = None
    return process


def _collect(process: subprocess.Popen[str], limit: float) -> Outcome:
    try:
        out, err = process.communicate(timeout=limit or None)
    except KeyboardInterrupt:
        _kill(process)
        raise
    except subprocess.TimeoutExpired:
        _kill(process)
        _, err = process.communicate()
        return Outcome(failure=f"it did not answer within {limit:g} s (TINYHOST_PROBE_TIMEOUT)", stderr=_tail(err))
    try:
        answer = json.loads(out)
    except ValueError:
        return Outcome(failure=_how_it_ended(process.returncode), stderr=_tail(err))
    return Outcome(answer.get("value"), answer.get("failure", ""), _tail(err))


def _kill(process: subprocess.Popen[str]) -> None:
    if hasattr(os, "killpg"):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it ended meanwhile
            return
    else:
        process.kill()


def _how_it_ended(status: int) -> str:
    if status < 0:
        return f"the process was ended by {signal.Signals(-status).name}"
    return f"the process ended with status {status} without an answer"


def _tail(text: str, lines: int = 5) -> str:
    return "\n".join(text.strip().splitlines()[-lines:])
