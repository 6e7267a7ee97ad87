"""Opening a device: from its canonical name, through the plugin catalog, to the object its package makes.

The part of the registry that needs the plugin loader, so that a program which has not used a device yet has not loaded
one either. Opening is guarded: a plugin that hangs, exits or raises becomes an error that names it. What is opened
already, and by which thread, is the registry's business.
"""
from __future__ import annotations

import contextvars
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from tinyhost.device.base import Compiled
from tinyhost.device.choice import Choice, choose_default, choose_preferred, unavailable_text
from tinyhost.device.retired import check_retired_variables
from tinyhost.device.selection import clear_selection, load_class, narrow
from tinyhost.env import ALLOW_DEVICE_USAGE, DEBUG, DEV, TINYHOST_STRICT
from tinyhost.errors import DeviceError, DeviceNotFound, DeviceUnavailable, DeviceUsageError, FallbackWarning
from tinyhost.plugin.catalog import Record, State, catalog, clear_catalog
from tinyhost.plugin.guard import watched
from tinyhost.plugin.hooks import clear_hooks, hooks
from tinyhost.plugin.metadata import DEVICES, clear_metadata
from tinyhost.specs import REFERENCE, STORAGE, DeviceSpec
from tinyhost.target import Target

_opening: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("opening", default=())


def look_up(base: str, target: Target) -> tuple[Record, DeviceSpec]:
    """What the catalog knows about a device name."""
    record = catalog().device(base, target.provider)
    spec: DeviceSpec = catalog().load(record)
    return record, spec


def check_name(name: str, spec: DeviceSpec) -> None:
    """Raise for a device string that names no device, or none that may be opened here and now."""
    index = name.partition(":")[2]
    if index and not index.isdecimal() and STORAGE not in spec.roles:
        raise DeviceNotFound(f"{name!r} is not a device string: after ':' stands the device's number. Renderer and "
                             f"interface are chosen with DEV, as in DEV={name}")
    if not ALLOW_DEVICE_USAGE and not spec.roles & {STORAGE, REFERENCE}:
        raise DeviceUsageError(f"opening {name} is forbidden here: ALLOW_DEVICE_USAGE=0")
    if name in _opening.get():
        raise DeviceUnavailable(f"opening {name} needs {name} itself: {' -> '.join((*_opening.get(), name))}")


def make(name: str, target: Target, spec: DeviceSpec, record: Record) -> Compiled:
    """Open the device.

    Raises:
        DeviceError: it does not open here; the driver's own exception is chained.
    """
    check_retired_variables([], name.partition(":")[0], [r.partition(".")[2] for r in spec.renderers])
    start = time.perf_counter()
    token = _opening.set((*_opening.get(), name))
    try:
        what = f"device {name} of {record.entry.provider} to open ({record.entry.path()})"
        device = watched(lambda: _construct(name, target, spec), what)
    except DeviceError as e:
        record.state, record.reason, record.error = State.UNAVAILABLE, str(e), None
        raise
    except Exception as e:  # whatever a driver raised
        record.state, record.reason = State.UNAVAILABLE, f"{type(e).__name__}: {e}"
        raise DeviceUnavailable(unavailable_text(name, record, spec)) from e
    finally:
        _opening.reset(token)
    record.state, record.reason = State.OPEN, ""
    if DEBUG >= 1:
        print(f"opened device {name} ({record.entry.provider}) in {(time.perf_counter() - start) * 1e3:.1f} ms",
              file=sys.stderr)
    narrow(name, target, device.caps)
    return device


def _construct(name: str, target: Target, spec: DeviceSpec) -> Compiled:
    cls = load_class(spec.device_class)
    device = cls(name, target, spec)
    if not isinstance(device, Compiled):
        raise TypeError(f"{spec.device_class} must be a subclass of tinyhost.plugin.v1.Compiled, it is {cls!r}")
    return device


def announce(device: Compiled) -> None:
    """Tell the plugins that a device was opened."""
    hooks().call("tinyhost_device_opened", device=device)


def device_class(base: str) -> type[Any]:
    """The class of a device, imported but not opened."""
    _, spec = look_up(base, DEV.target(base))
    found: type[Any] = load_class(spec.device_class)
    return found


def runners(opens: Callable[[str], str]) -> Iterator[str]:
    """Names of the installed devices that run kernels and that ``opens`` finds nothing against."""
    for record in catalog().of(DEVICES):
        if record.state in (State.DISABLED, State.INCOMPATIBLE, State.AMBIGUOUS) or not catalog().try_load(record):
            continue
        if STORAGE not in record.spec.roles and not opens(record.name):
            yield record.name


def choose(targets: list[Target], opens: Callable[[str], str]) -> str:
    """The default device for a DEV that demands none; a fall-back is said."""
    check_retired_variables([r.name for r in catalog().of(DEVICES)])
    choice = choose_preferred(targets, opens) or choose_default(opens)
    _report(choice)
    return choice.name


def _report(choice: Choice) -> None:
    if DEBUG >= 1:
        for line in choice.explain():
            print(line, file=sys.stderr)
    if choice.warning:
        if TINYHOST_STRICT:
            raise DeviceUnavailable(choice.warning + " (TINYHOST_STRICT=1)")
        warnings.warn(choice.warning, FallbackWarning, stacklevel=6)


def forget() -> None:
    """Drop metadata, records, hooks and choices."""
    clear_selection()
    clear_hooks()
    clear_catalog()
    clear_metadata()
