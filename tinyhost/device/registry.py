"""`Device[name]`: from a device string to the opened device, and which device is the default.

A device string is ``NAME[:number]`` (for storage devices ``NAME:anything``); its canonical form is upper-case
without ":0". Which distribution, interface and renderer stand behind a name is what DEV and the plugin catalog say.
Opening is guarded: a plugin that hangs, exits or raises becomes an error that names it. Opened devices are closed
at exit, last first.
"""
from __future__ import annotations

import atexit
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tinyhost.env import ALLOW_DEVICE_USAGE, DEV, TINYHOST_PLUGINS, snapshot
from tinyhost.errors import DeviceError, TinyhostError

if TYPE_CHECKING:
    from tinyhost.device.base import Compiled
    from tinyhost.target import Target


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
        if not isinstance(device, str):
            raise TypeError(f"a device is named by text such as 'NAME' or 'NAME:1', or None, got {device!r}")
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
            from tinyhost.device import opening  # the plugin loader, at the first use of a device
            name = self._defaults[key] = opening.choose(targets, self._opens)
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

    # opening

    def __getitem__(self, ix: str) -> Compiled:
        """The opened device; opens it on first use."""
        found = self._checked.get(ix)
        if found is not None and found[0] is DEV.value:
            return found[1]
        return self._find(ix)

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
        from tinyhost.device import opening
        base, _, index = name.partition(":")
        target = DEV.target(base)
        record, spec = opening.look_up(base, target)
        if spec.name != base:  # an alias
            return self[f"{spec.name}:{index}"]
        opening.check_name(name, spec)
        with self._lock:
            lock = self._locks.setdefault(name, threading.RLock())
        with lock:
            if (opened := self._opened.get(name)) is None:
                opened = opening.make(name, target, spec, record)
                if not self._opened:
                    atexit.register(self.finalize)
                self._opened[name] = opened
                opening.announce(opened)
        return opened

    def get_class(self, ix: str) -> type[Any]:
        """The device's class, imported but not opened."""
        from tinyhost.device import opening
        return opening.device_class(self.canonicalize(ix).partition(":")[0])

    def get_available_devices(self) -> Iterator[str]:
        """Names of the installed devices that open here and run kernels, one after the other; opens each."""
        from tinyhost.device import opening
        yield from opening.runners(self._opens)

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
        from tinyhost.device import opening
        opening.forget()

    def child_state(self) -> dict[str, Any]:
        """The variables a child process has to `env.restore` to see the devices this one sees."""
        state = snapshot()
        if "DEV" not in state and (name := self._defaults.get((str(DEV), TINYHOST_PLUGINS.value))):
            state["DEV"] = name
        return state


def _check_same(opened: Compiled, wanted: Target) -> None:
    """DEV may choose another renderer at any time; another interface or provider would be another machine."""
    had = opened.target
    for what in ("interface", "indices", "provider"):
        ask, have = getattr(wanted, what), getattr(had, what)
        if ask and ask.upper() != have.upper():
            raise DeviceError(f"DEV asks for {wanted}, but {opened.name} is already open as {had}; {what} cannot "
                              "change in a running process: start another one")


Device = Devices()
