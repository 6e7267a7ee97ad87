"""One record with a state for each installed entry point, and the look-up of one by name.

`catalog()` is made from metadata and `policy` alone, so it exists whatever plugins do. `find` gives the record a
name stands for, or raises saying whether that is a typo, a missing package, a conflict or a switched-off plugin.
`load` imports the record's spec once; what failed stays in the record and is quoted by later errors.
"""
from __future__ import annotations

import threading
import warnings
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tinyhost.env import TINYHOST_PLUGINS, TINYHOST_REQUIRE, TINYHOST_STRICT
from tinyhost.errors import (
    DeviceAmbiguous,
    DeviceNotFound,
    PluginBroken,
    PluginDisabled,
    PluginError,
    PluginIncompatible,
    PluginWarning,
)
from tinyhost.plugin.guard import resolve, watched
from tinyhost.plugin.known import also_called, known_devices, nearest
from tinyhost.plugin.metadata import DEVICES, PLUGINS, RENDERERS, Entry, entries, normalize
from tinyhost.plugin.policy import Selection, check_required, incompatibility
from tinyhost.specs import DeviceSpec, RendererSpec


class State(StrEnum):
    """How far an entry point has come."""

    FOUND = "found"  # installed and usable as far as metadata tells
    DISABLED = "disabled"  # TINYHOST_PLUGINS leaves it out
    INCOMPATIBLE = "incompatible"  # its metadata does not admit this core
    AMBIGUOUS = "ambiguous"  # another distribution offers the same name
    BROKEN = "broken"  # its import, its spec or one of its hooks failed
    LOADED = "loaded"  # its spec is there
    UNAVAILABLE = "unavailable"  # loaded, and it did not open here
    OPEN = "open"  # an open device uses it


KINDS = {DEVICES: "device", RENDERERS: "renderer", PLUGINS: "plugin"}


@dataclass(eq=False, slots=True)
class Record:
    """An entry point, its state, and why it is in it."""

    entry: Entry
    state: State
    reason: str = ""
    error: BaseException | None = None
    spec: Any = None  # DeviceSpec, RendererSpec or plugin module, once loaded

    @property
    def name(self) -> str:
        """The name by which DEV means it."""
        return self.entry.name.upper() if self.entry.group != PLUGINS else self.entry.name

    @property
    def kind(self) -> str:
        """device, renderer or plugin."""
        return KINDS[self.entry.group]

    def __str__(self) -> str:
        return f"{self.name} of {self.entry.provider}"

    def origin(self) -> str:
        """Distribution, version, entry point and path, for messages."""
        return f"{self.entry.provider}, {self.entry.value}, {self.entry.path()}"


class Catalog:
    """The records of one `sys.path` under one TINYHOST_PLUGINS."""

    def __init__(self, found: tuple[Entry, ...], selection: Selection) -> None:
        self.found = found
        core = next((e.provider for e in found if e.provider.is_core), None)
        self.core_version = core.version if core else ""
        reserved = frozenset((e.group, e.name.upper()) for e in found if e.provider.is_core)
        self.records: list[Record] = []
        for entry in found:
            if not selection.admits(entry):
                self.records.append(Record(entry, State.DISABLED, "TINYHOST_PLUGINS leaves it out"))
            elif reason := incompatibility(entry, self.core_version, reserved):
                self.records.append(Record(entry, State.INCOMPATIBLE, reason))
            else:
                self.records.append(Record(entry, State.FOUND))
        self._by_name: dict[tuple[str, str], list[Record]] = {}
        for record in self.records:
            self._by_name.setdefault((record.entry.group, record.name), []).append(record)
        self._mark_ambiguous()
        self._lock = threading.RLock()
        self._requirements_met = ""
        self.notes = selection.unknown(found)

    def _mark_ambiguous(self) -> None:
        for same in self._by_name.values():
            usable = [r for r in same if r.state is State.FOUND]
            if len(usable) > 1:
                for record in usable:
                    record.state = State.AMBIGUOUS
                    record.reason = "offered by " + " and ".join(str(r.entry.provider) for r in usable)

    @property
    def installed(self) -> bool:
        """Whether the core's own entry points are there."""
        return bool(self.core_version)

    def of(self, group: str) -> list[Record]:
        """The records of a group, sorted by name."""
        return [r for r in self.records if r.entry.group == group]

    def names(self, group: str) -> list[str]:
        """The names of a group that can be asked for."""
        usable = (State.DISABLED, State.INCOMPATIBLE)
        return list(dict.fromkeys(r.name for r in self.of(group) if r.state not in usable))

    # look-up

    def device(self, name: str, provider: str = "") -> Record:
        """The record of a device asked for by name or alias; raises a DeviceError or PluginError."""
        if (required := TINYHOST_REQUIRE.value) != self._requirements_met:
            check_required(required)
            self._requirements_met = required
        same = self._by_name.get((DEVICES, name)) or self._by_alias(name)
        if not same:
            raise DeviceNotFound(self._unknown_device(name, provider))
        return self._choose(same, name, provider)

    def renderer(self, full_name: str, provider: str = "") -> Record | None:
        """The record of "DEVICE.RENDERER", or None; raises when it is installed and cannot be used."""
        same = self._by_name.get((RENDERERS, full_name))
        return self._choose(same, full_name, provider if len(same) > 1 else "") if same else None

    def renderers_of(self, device: str) -> list[Record]:
        """Records of all renderers "DEVICE.*" that may be used."""
        return [r for r in self.of(RENDERERS) if r.name.startswith(device + ".")
                and r.state not in (State.DISABLED, State.INCOMPATIBLE)]

    def renderers_called(self, short_name: str) -> list[str]:
        """Full names of the renderers of any device with that short name."""
        return [n for n in self.names(RENDERERS) if n.partition(".")[2] == short_name]

    def _choose(self, same: list[Record], name: str, provider: str) -> Record:
        kind = same[0].kind
        if provider:
            same_all, same = same, [r for r in same if r.entry.provider.key == normalize(provider)]
            if not same:
                raise DeviceNotFound(f"no distribution {provider!r} offers the {kind} {name}; it is offered by "
                                     + ", ".join(str(r.entry.provider) for r in same_all))
        usable = [r for r in same if r.state not in (State.DISABLED, State.INCOMPATIBLE)]
        if len(usable) > 1:
            choices = " or ".join(f"{name}@{r.entry.provider.distribution}" for r in usable)
            raise DeviceAmbiguous(f"the {kind} {name} is offered by more than one installed distribution: "
                                  + "; ".join(r.origin() for r in usable) + f". Write {choices}, or uninstall one")
        if usable:
            return usable[0]
        raise self._unusable(same[0])

    def _unusable(self, record: Record) -> PluginError:
        provider = record.entry.provider
        if record.state is State.DISABLED:
            return PluginDisabled(f"the {record.kind} {record} is installed, but TINYHOST_PLUGINS="
                                  f"{TINYHOST_PLUGINS.value!r} leaves it out; add {provider.key!r} to it, or unset it")
        return PluginIncompatible(f"the {record.kind} {record} cannot be used: {record.reason} ({record.origin()}). "
                                  f"Install versions that fit: pip install -U tinyhost {provider.distribution}")

    def _by_alias(self, name: str) -> list[Record]:
        """Only a name that no entry point has comes here, so only then are specs loaded to see their aliases."""
        found = []
        for record in self.of(DEVICES):
            if record.state in (State.FOUND, State.LOADED, State.OPEN, State.UNAVAILABLE) and self.try_load(record):
                if name in record.spec.aliases:
                    found.append(record)
        return found

    def _unknown_device(self, name: str, provider: str) -> str:
        if not self.installed:
            return not_installed(f"the device {name}")
        here = ", ".join(f"{r.name} ({r.entry.provider})" for r in self.of(DEVICES) if r.name in self.names(DEVICES))
        known = known_devices().get(name) or known_devices().get(also_called(name))
        if known:
            asked = name if name in known_devices() else f"{name} ({also_called(name)})"
            return (f"the device {asked} is not installed: {known.install} ({known.summary}). Installed are: {here}")
        near = nearest(name, [*self.names(DEVICES), *known_devices()])
        hints = [n if n in self.names(DEVICES) else f"{n} ({known_devices()[n].install})" for n in near]
        mean = f"; did you mean {' or '.join(hints)}?" if hints else "."
        return f"no installed distribution offers a device named {name!r}{mean} Installed are: {here}"

    # loading

    def load(self, record: Record) -> Any:
        """The record's spec (or module), imported on first use; raises PluginBroken quoting what went wrong."""
        with self._lock:
            if record.spec is None and record.error is None:
                self._import(record)
            if record.state is State.BROKEN:
                raise PluginBroken(broken_text(record)) from record.error
            return record.spec

    def try_load(self, record: Record) -> bool:
        """Load what nobody asked for by name: a failure is one warning, and an error under TINYHOST_STRICT."""
        known = record.state is State.BROKEN
        try:
            self.load(record)
        except PluginBroken as e:
            if TINYHOST_STRICT:
                raise
            if not known:
                warnings.warn(str(e), PluginWarning, stacklevel=3)
            return False
        return True

    def _import(self, record: Record) -> None:
        try:
            what = f"import of the {record.kind} {record} ({record.entry.path()})"
            found = watched(lambda: resolve(record.entry.value), what)
            _check_spec(record, found)
        except Exception as e:  # whatever third-party code raised; the record keeps it
            mark_broken(record, e)
        else:
            record.spec, record.state = found, State.LOADED


def _check_spec(record: Record, found: object) -> None:
    expected = {DEVICES: DeviceSpec, RENDERERS: RendererSpec}.get(record.entry.group)
    if expected is None:
        return
    if not isinstance(found, (DeviceSpec, RendererSpec)) or type(found) is not expected:
        raise TypeError(f"{record.entry.value} must be a {expected.__name__}, it is {found!r:.80}")
    if found.name != record.name:
        raise ValueError(f"the entry point is named {record.entry.name!r}, its {expected.__name__} {found.name!r}; "
                         "both must be the same")


def mark_broken(record: Record, error: BaseException) -> None:
    """Keep why a record cannot be used."""
    record.state, record.error, record.reason = State.BROKEN, error, describe(error)


def describe(error: BaseException) -> str:
    """An exception in one line: type and message."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def broken_text(record: Record) -> str:
    """What a user is told about a plugin whose code failed."""
    return f"the {record.kind} {record} is installed and broken: {record.reason} ({record.origin()}). {_remedy(record)}"


def _remedy(record: Record) -> str:
    error, provider = record.error, record.entry.provider
    name = getattr(error, "name", None) if isinstance(error, ImportError) else None
    if name and name.startswith("tinyhost.plugin.v"):
        needs = "members of the plugin API that this core does not have yet"
        if isinstance(error, ModuleNotFoundError):
            needs = f"the plugin API {name.rpartition('.')[2]}, this core offers v1"
        return f"It needs {needs}: pip install -U tinyhost {provider.distribution}"
    own = record.entry.module.partition(".")[0]
    if isinstance(error, ModuleNotFoundError) and name and (top := name.partition(".")[0]) != own:
        return (f"It needs the module {top!r}, which is not installed; reinstall it with what it needs: "
                f"pip install -U {provider.distribution}")
    return (f"Repair or remove it: pip install -U {provider.distribution}, pip uninstall {provider.distribution}, "
            f"or TINYHOST_PLUGINS=-{provider.key}")


def not_installed(what: str) -> str:
    """The message for a source tree on sys.path that was never installed."""
    return (f"{what} cannot be found, because tinyhost has no entry points: this tree was never installed. "
            "Install it, and the backends you use, in one command: pip install -e . -e ./tinyhost_cpu")


_CATALOGS: dict[str, Catalog] = {}


def catalog() -> Catalog:
    """The catalog of the running `sys.path` and TINYHOST_PLUGINS; the same object as long as neither changes."""
    found, text = entries(), TINYHOST_PLUGINS.value
    made = _CATALOGS.get(text)
    if made is None or made.found is not found:
        made = _CATALOGS[text] = Catalog(found, Selection.parse(text))
        for note in made.notes:
            warnings.warn(note, PluginWarning, stacklevel=2)
    return made


def clear_catalog() -> None:
    """Forget all records."""
    _CATALOGS.clear()
