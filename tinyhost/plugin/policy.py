"""Which installed plugins may be used, decided from metadata alone.

TINYHOST_PLUGINS selects by name, Requires-Dist says which cores a plugin was made for, TINYHOST_REQUIRE says what
must be there. No code of a plugin runs here. `packaging` is imported only where a requirement is not an exact pin.
"""
from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from dataclasses import dataclass

from tinyhost.errors import PluginError, VariableError
from tinyhost.plugin.known import nearest
from tinyhost.plugin.metadata import CORE, Entry, normalize


@dataclass(frozen=True, slots=True)
class Selection:
    """TINYHOST_PLUGINS: only the `names`, or all but the names (`exclude`)."""

    names: frozenset[str]
    exclude: bool

    @staticmethod
    def parse(text: str) -> Selection:
        """'*' all, '' none, 'cpu,amd' only these, '-amd' all but these."""
        items = [item.strip() for item in text.split(",") if item.strip()]
        if items == ["*"]:
            return Selection(frozenset(), exclude=True)
        minus = [item.startswith("-") for item in items]
        if any(minus) and not all(minus):
            raise VariableError(f"TINYHOST_PLUGINS={text}: expected either names to use ('cpu,amd') or names to leave "
                                "out ('-amd,-nv'), not both")
        return Selection(frozenset(normalize(item.removeprefix("-")) for item in items), exclude=any(minus))

    def admits(self, entry: Entry) -> bool:
        """Whether the entry may be used; what the core itself offers always may."""
        return entry.provider.is_core or (self.exclude != bool(self.names & labels(entry)))

    def unknown(self, entries: Iterable[Entry]) -> list[str]:
        """A message for each name that matches no installed plugin."""
        installed = {label for e in entries if not e.provider.is_core for label in labels(e)}
        out = []
        for name in sorted(self.names - installed):
            near = [n.lower() for n in nearest(name, [label.upper() for label in installed])]
            out.append(f"TINYHOST_PLUGINS names {name!r}, which no installed plugin is called"
                       + (f"; did you mean {', '.join(near)}?" if near else ""))
        return out


def labels(entry: Entry) -> set[str]:
    """The names by which TINYHOST_PLUGINS may mean an entry: its own, its device's, its distribution's."""
    return {normalize(entry.name), normalize(entry.name.partition(".")[0]), entry.provider.key}


def incompatibility(entry: Entry, core_version: str, reserved: frozenset[tuple[str, str]]) -> str:
    """Why an entry cannot be used with this core, or ""."""
    if entry.provider.problem:
        return entry.provider.problem
    if not entry.provider.is_core and (entry.group, entry.name.upper()) in reserved:
        return f"the name {entry.name.upper()} belongs to the core"
    for requirement in entry.provider.requires:
        if reason := _rejects(requirement, core_version):
            return reason
    return ""


def _rejects(requirement: str, core_version: str) -> str:
    if not requirement.lower().startswith(CORE):
        return ""
    if requirement.replace(" ", "") == f"{CORE}=={core_version}":
        return ""
    from packaging.requirements import InvalidRequirement, Requirement
    try:
        parsed = Requirement(requirement)
    except InvalidRequirement as e:
        return f"its Requires-Dist {requirement!r} cannot be read: {e}"
    if normalize(parsed.name) != CORE or (parsed.marker is not None and not parsed.marker.evaluate({"extra": ""})):
        return ""
    if parsed.specifier.contains(core_version, prereleases=True):
        return ""
    return f"it requires {CORE}{parsed.specifier}, and {CORE} {core_version} is running"


def check_required(text: str) -> None:
    """Raise PluginError unless each requirement of TINYHOST_REQUIRE is installed."""
    problems = [p for item in text.split(",") if item.strip() and (p := _missing(item.strip(), text))]
    if problems:
        raise PluginError(f"TINYHOST_REQUIRE={text}: " + "; ".join(problems))


def _missing(item: str, text: str) -> str:
    from packaging.requirements import InvalidRequirement, Requirement
    try:
        parsed = Requirement(item)
    except InvalidRequirement as e:
        raise VariableError(f"TINYHOST_REQUIRE={text}: expected requirements like 'tinyhost-amd>=0.3', separated "
                            f"by ',': {e}") from None
    try:
        version = importlib.metadata.version(parsed.name)
    except importlib.metadata.PackageNotFoundError:
        return f"{parsed.name} is not installed (pip install {item!r})"
    if parsed.specifier.contains(version, prereleases=True):
        return ""
    return f"{parsed.name} {version} is installed, which is not {parsed.specifier} (pip install -U {item!r})"
