"""`Device[name]`: from a device string to the opened device, and which device is the default.

A device string is ``NAME[:number]`` (for storage devices ``NAME:anything``); its canonical form is upper-case
without ":0". Which distribution, interface and renderer stand behind a name is what DEV and the plugin catalog say.
Opening is guarded: a plugin that hangs, exits or raises becomes an error that names it. Opened devices are closed
at exit, last first.
"""
from __future__ import annotations

import atexit
import contextvars
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

from tinyhost.device.base import Compiled
from tinyhost.device.choice import Choice, choose_default, choose_preferred, unavailable_text
from tinyhost.device.retired import check_retired_variables
from tinyhost.device.selection import caps_of, clear_selection, compile_target, load_class, narrow, renderer_of
from tinyhost.env import ALLOW_DEVICE_USAGE, DEBUG, DEV, TINYHOST_PLUGINS, TINYHOST_STRICT, snapshot
from tinyhost.errors import (
    DeviceError,
    DeviceNotFound,
    DeviceUnavailable,
    DeviceUsageError,
    FallbackWarning,
    TinyhostError,
)
from tinyhost.plugin.catalog import Record, State, catalog, clear_catalog
from tinyhost.plugin.guard import watched
from tinyhost.plugin.hooks import clear_hooks, hooks
from tinyhost.plugin.metadata import DEVICES, clear_metadata
from tinyhost.specs import REFERENCE, STORAGE, DeviceSpec
from tinyhost.target import Target

__all__ = ["Device", "caps_of", "compile_target", "renderer_of"]

_opening: contextvars.ContextVar[tuple[str, ...]] = contextvars.ContextVar("opening", default=())


class Devices:
    """The devices of this process; there is one instance, `Device`."""

    def __init__(self) -> None:
        self._opened: dict[str, Compiled] = {}
        # the DEV list an entry was last checked against: while DEV stays the same object, look-up is two comparisons
        self._checked: dict[str, tuple[list[Target], Compiled]] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()
        self._defaults: dict[tuple[str, str], str] = {}
        self._last_default: tuple[list[Target], str, str] | None = None  # the same by identity, for speed
        self.finalized = False

    # names

    def canonicalize(self, device: str | None) -> str:
        """The canonical form of a device string: upper-case name, ":0" left out; None is the default device."""
        if device is None:
            return self.DEFAULT
        name, colon, rest = device.partition(":")
        name = name.upper()
        return f"{name}:{rest}" if colon and rest not in ("", "0") else name

    @property
    def DEFAULT(self) -> str:
        """The device of tensors that name none: DEV's first, else the best one that opens."""
        targets = DEV.value
        if targets and targets[0].device and not targets[0].optional:
            return targets[0].device
        return self._chosen_default(targets)

    @DEFAULT.setter
    def DEFAULT(self, value: object) -> None:
        raise AttributeError(f"Device.DEFAULT cannot be set: write Context(DEV={str(value)!r}) around the code, "
                             f"DEV.value = {str(value)!r} for all that follows, or DEV={value} before the program")

    @property
    def default(self) -> Compiled:
        """The default device, opened."""
        return self[self.DEFAULT]

    def _chosen_default(self, targets: list[Target]) -> str:
        last, plugins = self._last_default, TINYHOST_PLUGINS.value
        if last is not None and last[0] is targets and last[1] == plugins:
            return last[2]
        key = (str(DEV), plugins)
        if (name := self._defaults.get(key)) is None:
            check_retired_variables([r.name for r in catalog().of(DEVICES)])
            choice = choose_preferred(targets, self._opens) or choose_default(self._opens)
            self._report(choice)
            name = self._defaults[key] = choice.name
        self._last_default = (targets, plugins, name)
        return name

    def _opens(self, name: str) -> str:
        """Open a device that was chosen rather than named; "" or the reason why not."""
        if not ALLOW_DEVICE_USAGE:
            return ""
        try:
            self[name]
        except TinyhostError as e:
            return str(e)
        return ""

    @staticmethod
    def _report(choice: Choice) -> None:
        if DEBUG >= 1:
            for line in choice.explain():
                print(line, file=sys.stderr)
        if choice.warning:
            if TINYHOST_STRICT:
                raise DeviceUnavailable(choice.warning + " (TINYHOST_STRICT=1)")
            warnings.warn(choice.warning, FallbackWarning, stacklevel=5)

    # opening

    def __getitem__(self, device: str) -> Compiled:
        """The opened device; opens it on first use."""
        found = self._checked.get(device)
        if found is not None and found[0] is DEV.value:
            return found[1]
        return self._find(device)

    def _find(self, device: str) -> Compiled:
        name = self.canonicalize(device)
        opened = self._opened.get(name)
        if opened is None:
            opened = self._open(name)
        else:
            _check_same(opened, DEV.target(name.partition(":")[0]))
        self._checked[device] = (DEV.value, opened)
        return opened

    def _open(self, name: str) -> Compiled:
        base, _, index = name.partition(":")
        target = DEV.target(base)
        record = catalog().device(base, target.provider)
        spec: DeviceSpec = catalog().load(record)
        if spec.name != base:  # an alias
            return self[f"{spec.name}:{index}"]
        if index and not index.isdecimal() and STORAGE not in spec.roles:
            raise DeviceNotFound(f"{name!r} is not a device string: after ':' stands the device's number. Renderer and "
                                 f"interface are chosen with DEV, as in DEV={name}")
        if not ALLOW_DEVICE_USAGE and not spec.roles & {STORAGE, REFERENCE}:
            raise DeviceUsageError(f"opening {name} is forbidden here: ALLOW_DEVICE_USAGE=0")
        if name in _opening.get():
            raise DeviceUnavailable(f"opening {name} needs {name} itself: {' -> '.join((*_opening.get(), name))}")
        with self._lock:
            lock = self._locks.setdefault(name, threading.RLock())
        with lock:
            if (opened := self._opened.get(name)) is None:
                opened = self._make(name, target, spec, record)
                if not self._opened:
                    atexit.register(self.finalize)
                self._opened[name] = opened
                hooks().call("tinyhost_device_opened", device=opened)
        return opened

    def _make(self, name: str, target: Target, spec: DeviceSpec, record: Record) -> Compiled:
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

    def get_class(self, device: str) -> type[Any]:
        """The device's class, imported but not opened."""
        base = self.canonicalize(device).partition(":")[0]
        record = catalog().device(base, DEV.target(base).provider)
        found: type[Any] = load_class(catalog().load(record).device_class)
        return found

    def get_available_devices(self) -> Iterator[str]:
        """Names of the installed devices that open here and run kernels, one after the other; opens each."""
        for record in catalog().of(DEVICES):
            if record.state in (State.DISABLED, State.INCOMPATIBLE, State.AMBIGUOUS) or not catalog().try_load(record):
                continue
            if STORAGE not in record.spec.roles and not self._opens(record.name):
                yield record.name

    @property
    def _opened_devices(self) -> set[str]:
        return set(self._opened)

    # the end

    def finalize(self) -> None:
        """Close all opened devices, last opened first; a failing one does not keep the others open."""
        self.finalized = True
        for name, device in reversed(list(self._opened.items())):
            try:
                device.finalize()
            except Exception as e:  # at exit nobody is left to handle it
                print(f"tinyhost: closing {name} failed: {type(e).__name__}: {e}", file=sys.stderr)

    def reset(self) -> None:
        """Forget metadata, records, hooks and choices, after packages were installed; opened devices stay open."""
        self._defaults.clear()
        self._last_default = None
        self._checked.clear()
        clear_selection()
        clear_hooks()
        clear_catalog()
        clear_metadata()

    def child_state(self) -> dict[str, Any]:
        """The variables a child process has to `env.restore` to see the devices this one sees."""
        state = snapshot()
        if "DEV" not in state and (name := self._defaults.get((str(DEV), TINYHOST_PLUGINS.value))):
            state["DEV"] = name
        return state


def _construct(name: str, target: Target, spec: DeviceSpec) -> Compiled:
    cls = load_class(spec.device_class)
    device = cls(name, target, spec)
    if not isinstance(device, Compiled):
        raise TypeError(f"{spec.device_class} must be a subclass of tinyhost.plugin.v1.Compiled, it is {cls!r}")
    return device


def _check_same(opened: Compiled, wanted: Target) -> None:
    """DEV may choose another renderer at any time; another interface or provider would be another machine."""
    had = opened.target
    for what in ("interface", "indices", "provider"):
        ask, have = getattr(wanted, what), getattr(had, what)
        if ask and ask.upper() != have.upper():
            raise DeviceError(f"DEV asks for {wanted}, but {opened.name} is already open as {had}; {what} cannot "
                              "change in a running process: start another one")


Device = Devices()
