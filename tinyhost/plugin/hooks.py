"""Loads the modules of the group ``tinyhost.plugins`` and calls their hook implementations.

A loader of our own over pluggy: pluggy keeps a plugin it rejected half registered and stops a call at the first
exception. Here each plugin is registered in a try of its own, checked against `hookspecs` with its distribution
named, and each implementation is called alone; the one that raises is quarantined with one warning (an error under
TINYHOST_STRICT). Nothing is imported, not even pluggy, while no plugin is installed.
"""
from __future__ import annotations

import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhost.env import TINYHOST_PLUGINS, TINYHOST_STRICT
from tinyhost.errors import HookError, PluginBroken, PluginWarning
from tinyhost.plugin.catalog import Catalog, Record, State, broken_text, catalog, mark_broken
from tinyhost.plugin.guard import PluginExit
from tinyhost.plugin.known import nearest
from tinyhost.plugin.metadata import PLUGINS

if TYPE_CHECKING:
    import pluggy


HISTORIC = frozenset({"tinyhost_device_opened"})  # also told to plugins that are registered later


class HookHost:
    """The hook implementations of one catalog, loaded at the first call."""

    def __init__(self, source: Catalog) -> None:
        self.source = source
        self._records: dict[str, Record] = {}  # pluggy's plugin name -> record
        self._history: list[tuple[str, dict[str, Any]]] = []
        self._manager: pluggy.PluginManager | None = None
        self._lock = threading.RLock()
        self._loaded = False

    def call(self, hook: str, **arguments: Any) -> list[Any]:
        """The results of all implementations that gave one, last registered first."""
        out = []
        for record, function in self._implementations(hook, arguments):
            if (result := self._guarded(record, function, arguments, hook)) is not None:
                out.append(result)
        return out

    def first(self, hook: str, **arguments: Any) -> Any:
        """The first result that is not None, or None."""
        for record, function in self._implementations(hook, arguments):
            if (result := self._guarded(record, function, arguments, hook)) is not None:
                return result
        return None

    def register(self, module: object, record: Record) -> None:
        """Check a loaded plugin and make its hooks callable; a rejected one raises HookError and leaves no trace."""
        manager = self._made_manager()
        name = f"{record.entry.provider.key}:{record.name}"
        try:
            manager.register(module, name=name)
            self._check(manager, module, name, record)
        except Exception as e:
            # pluggy stores the name before it validates, so a rejected plugin has to be taken out again
            if manager.has_plugin(name):
                manager.unregister(name=name)
            if isinstance(e, HookError):
                raise
            raise HookError(f"{record.entry.provider} ({record.entry.value}): {e}") from e
        self._records[name] = record
        for hook, arguments in self._history:
            for owner, function in self._of(manager, hook):
                if owner is record:
                    self._guarded(record, function, arguments, hook)

    def _implementations(self, hook: str, arguments: dict[str, Any]) -> list[tuple[Record, Callable[..., Any]]]:
        with self._lock:
            if not self._loaded:
                self._loaded = True
                self._load()
            if hook in HISTORIC:
                self._history.append((hook, arguments))
            return self._of(self._manager, hook) if self._manager is not None else []

    def _of(self, manager: pluggy.PluginManager, hook: str) -> list[tuple[Record, Callable[..., Any]]]:
        caller = getattr(manager.hook, hook)
        return [(self._records[i.plugin_name], _by_name(i.function, i.argnames))
                for i in reversed(caller.get_hookimpls()) if i.plugin_name in self._records]

    def _load(self) -> None:
        for record in self.source.of(PLUGINS):
            if record.state in (State.DISABLED, State.INCOMPATIBLE) or not self.source.try_load(record):
                continue
            try:
                self.register(record.spec, record)
            except HookError as e:
                self._quarantine(record, e)

    def _guarded(self, record: Record, function: Callable[..., Any], arguments: dict[str, Any], hook: str) -> Any:
        try:
            return function(arguments)
        except SystemExit as e:
            self._quarantine(record, PluginExit(f"{hook} called sys.exit({e.code!r})"))
        except Exception as e:  # one plugin's failure must not stop the others
            self._quarantine(record, e, hook)
        return None

    def _quarantine(self, record: Record, error: Exception, hook: str = "") -> None:
        mark_broken(record, error)
        if hook:
            record.reason = f"its hook {hook} raised {record.reason}"
        name = f"{record.entry.provider.key}:{record.name}"
        if self._manager is not None and self._manager.has_plugin(name):
            self._manager.unregister(name=name)
        self._records.pop(name, None)
        if TINYHOST_STRICT:
            raise PluginBroken(broken_text(record)) from error
        warnings.warn(broken_text(record), PluginWarning, stacklevel=4)

    def _made_manager(self) -> pluggy.PluginManager:
        if self._manager is None:
            import pluggy

            from tinyhost.plugin import hookspecs
            self._manager = pluggy.PluginManager("tinyhost")
            self._manager.add_hookspecs(hookspecs)
        return self._manager

    @staticmethod
    def _check(manager: pluggy.PluginManager, module: object, name: str, record: Record) -> None:
        from tinyhost.plugin import hookspecs
        known = [n for n in dir(hookspecs) if n.startswith("tinyhost_")]
        who = f"{record.entry.provider} ({record.entry.value})"
        for caller in manager.get_hookcallers(manager.get_plugin(name)) or []:
            if caller.spec is None:
                near = [n.lower() for n in nearest(caller.name, [k.upper() for k in known])]
                mean = f"did you mean {near[0]}?" if near else f"hooks are {', '.join(known)}"
                raise HookError(f"{who} implements {caller.name}, which is no hook of tinyhost; {mean}")
            if any(i.plugin_name == name and (i.hookwrapper or i.wrapper) for i in caller.get_hookimpls()):
                raise HookError(f"{who} wraps {caller.name}; hook wrappers are not supported, because each "
                                "implementation is called on its own")


def _by_name(function: Callable[..., Any], names: tuple[str, ...]) -> Callable[[dict[str, Any]], Any]:
    return lambda arguments: function(*[arguments[n] for n in names])


_HOSTS: dict[str, HookHost] = {}


def hooks() -> HookHost:
    """The hook host of the running catalog."""
    source, text = catalog(), TINYHOST_PLUGINS.value
    host = _HOSTS.get(text)
    if host is None or host.source is not source:
        host = _HOSTS[text] = HookHost(source)
    return host


def clear_hooks() -> None:
    """Forget all loaded hook plugins."""
    _HOSTS.clear()
