"""Runs a plugin's code so that its host survives it: bounded in time, with SystemExit an error like any other.

`watched(work, what)` runs `work` in a thread of its own. After `NOTICE` seconds a line on stderr says what is being
waited for, after TINYHOST_OPEN_TIMEOUT seconds TimeoutError is raised and the thread is left behind.
KeyboardInterrupt passes. A process that dies cannot be helped here: see `isolate`.
"""
from __future__ import annotations

import contextvars
import importlib
import sys
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from tinyhost.env import TINYHOST_OPEN_TIMEOUT

T = TypeVar("T")
NOTICE = 5.0  # seconds of silence before a line says what is happening


class PluginExit(RuntimeError):
    """A plugin called sys.exit; RuntimeError, so that the host goes on."""


def watched(work: Callable[[], T], what: str, notice: float | None = None) -> T:
    """The result of `work()`, or its exception; `what` names it in messages ("import of ... (path)")."""
    results: list[T] = []
    errors: list[BaseException] = []
    done = threading.Event()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            results.append(context.run(work))
        except BaseException as e:  # handed to the caller, whatever it is
            errors.append(e)
        done.set()

    try:
        threading.Thread(target=run, name=f"tinyhost {what}", daemon=True).start()
    except RuntimeError:  # at interpreter exit no thread starts any more; then there is nobody to wait for
        run()
    _wait(done, what, NOTICE if notice is None else notice, TINYHOST_OPEN_TIMEOUT.value)
    if not errors:
        return results[0]
    error = errors.pop()
    if isinstance(error, SystemExit):
        raise PluginExit(f"it called sys.exit({error.code!r})") from error
    raise error


def _wait(done: threading.Event, what: str, notice: float, limit: float) -> None:
    start = time.monotonic()
    if done.wait(min(notice, limit) if limit else notice):
        return
    until = f"giving up after {limit:g} s" if limit else "no limit is set"
    if not limit or notice < limit:
        print(f"tinyhost: waiting for the {what} since {notice:g} s ({until}; TINYHOST_OPEN_TIMEOUT)", file=sys.stderr)
    if not done.wait(limit - (time.monotonic() - start) if limit else None):
        raise TimeoutError(f"the {what} did not finish within {limit:g} s (TINYHOST_OPEN_TIMEOUT)")


def resolve(reference: str) -> object:
    """The object at "module:attribute", or the module at "module"; dots in the attribute are followed."""
    module, _, attribute = reference.partition(":")
    found: object = importlib.import_module(module.strip())
    for part in filter(None, attribute.strip().split(".")):
        found = getattr(found, part)
    return found
