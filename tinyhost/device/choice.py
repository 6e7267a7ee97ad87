"""Chooses a device when DEV names none, or only preferences.

Installed devices are probed in child processes and tried from the highest tier down; the reference device comes
only when nothing else opens. The result says what was rejected and why, so that no fall-back is silent. Opening is
the caller's.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tinyhost.errors import DeviceError, DeviceUnavailable, PluginError
from tinyhost.plugin.catalog import Record, State, catalog, not_installed
from tinyhost.plugin.hooks import hooks
from tinyhost.plugin.known import host_package
from tinyhost.plugin.metadata import DEVICES
from tinyhost.plugin.probe import Probe, probe_devices
from tinyhost.specs import REFERENCE, DeviceSpec
from tinyhost.target import Target

Opens = Callable[[str], str]  # opens the device of that name; "" or the reason why not


@dataclass(slots=True)
class Choice:
    """The chosen device, what is to be said about it, and what became of each candidate."""

    name: str
    warning: str = ""
    notes: list[str] = field(default_factory=list)

    def explain(self) -> list[str]:
        """One line per device that was considered."""
        return [f"device {note}" for note in self.notes] + [f"device {self.name}: chosen"]


def choose_preferred(targets: Iterable[Target], opens: Opens) -> Choice | None:
    """The first target of DEV that is a demand, or a preference that opens; None when all were preferences in vain."""
    rejected: list[str] = []
    for target in targets:
        if not target.device:
            continue
        if not target.optional:
            return Choice(target.device, _fallback(target.device, rejected), rejected)
        reason = _try_preference(target, opens)
        if not reason:
            return Choice(target.device, _fallback(target.device, rejected), rejected)
        rejected.append(f"{target.device}: {reason}")
    if not rejected:
        return None
    choice = choose_default(opens, skip=frozenset(t.device for t in targets))
    choice.warning, choice.notes = _fallback(choice.name, rejected), rejected + choice.notes
    return choice


def _try_preference(target: Target, opens: Opens) -> str:
    try:
        record = catalog().device(target.device, target.provider)
    except (DeviceError, PluginError) as e:
        return str(e)
    probe = probe_devices([record])[0]
    # a mock or another interface may open where the probe of the hardware says no
    if not probe.ok and (probe.failed or (probe.auto and not target.interface)):
        return probe.reason
    return opens(target.device)


def choose_default(opens: Opens, skip: frozenset[str] = frozenset()) -> Choice:
    """The best installed device that opens."""
    if not catalog().installed:
        raise DeviceUnavailable(not_installed("a device"))
    usable = (State.FOUND, State.LOADED, State.OPEN, State.UNAVAILABLE)
    records = [r for r in catalog().of(DEVICES)
               if not r.entry.provider.is_core and r.name not in skip and r.state in usable]
    probes = probe_devices(records)
    notes = [f"{p.record}: {p.reason}" for p in probes if not p.ok]
    rejected = [f"{p.record}: {p.reason}" for p in probes if p.rejected]
    rejected += [f"{r}: {r.reason}" for r in catalog().of(DEVICES) if r.state in (State.AMBIGUOUS, State.BROKEN)]
    for probe in _ordered([p for p in probes if p.ok]):
        reason = opens(probe.record.name)
        if not reason:
            return Choice(probe.record.name, _fallback(probe.record.name, rejected), notes)
        rejected.append(f"{probe.record}: {reason}")
        notes.append(f"{probe.record}: {reason}")
    return _last_resort(rejected, notes)


def _ordered(probes: list[Probe]) -> list[Probe]:
    """Highest tier first, names break ties; a plugin's `tinyhost_select` may put one first."""
    probes = sorted(probes, key=lambda p: (-p.tier, p.record.name))
    candidates = [{"name": p.record.name, "tier": p.tier, "count": p.count,
                   "distribution": p.record.entry.provider.distribution} for p in probes]
    first = hooks().first("tinyhost_select", candidates=candidates) if len(probes) > 1 else None
    return sorted(probes, key=lambda p: p.record.name != first)


def _fallback(name: str, rejected: list[str]) -> str:
    if not rejected:
        return ""
    return f"using {name}, because what may be better was rejected: {'; '.join(rejected)}. DEV={name} silences this"


def _last_resort(rejected: list[str], notes: list[str]) -> Choice:
    name = next((r.name for r in catalog().of(DEVICES) if r.entry.provider.is_core and _is_reference(r)), "")
    if not name:
        raise DeviceUnavailable("no installed device opens: " + "; ".join(rejected or notes or ["none is installed"]))
    host = host_package()
    why = "no other device " + (f"opens ({'; '.join(rejected or notes)})" if rejected or notes else "is installed")
    return Choice(name, f"using {name}, which is slow and meant for checking, because {why}. For {host.summary}: "
                        f"{host.install}. DEV={name} silences this", notes)


def _is_reference(record: Record) -> bool:
    spec: DeviceSpec = catalog().load(record)
    return REFERENCE in spec.roles


def unavailable_text(name: str, record: Record, spec: DeviceSpec) -> str:
    """What a user is told about a device that is installed and does not open."""
    hint = f" {spec.install_hint}" if spec.install_hint else ""
    docs = f" See {spec.docs}" if spec.docs else ""
    return f"{name} does not open here: {record.reason} ({record.origin()}).{hint}{docs}"
