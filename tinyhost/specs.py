"""What a package says about its devices and renderers: frozen, light, picklable data behind the entry points.

A spec holds names, texts and ``"module:attribute"`` strings; the heavy things behind those strings are imported
when the device is used. Making a spec checks every field, so a mistake shows where the package is loaded and not
where a device is opened. The caller of each string stands beside its field.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import IntEnum

HOST, STORAGE, REFERENCE, DRY = "host", "storage", "reference", "dry"
ROLES = {
    HOST: "runs on the host's processor and compiles submitters and staging code for other devices",
    STORAGE: "holds data and runs no kernels",
    REFERENCE: "defines what a program means, at any price; the last resort of device selection",
    DRY: "schedules and compiles, computes nothing",
}

_NAME = re.compile(r"[A-Z][A-Z0-9_-]*")
_RENDERER = re.compile(r"[A-Z][A-Z0-9_-]*\.[A-Z][A-Z0-9_-]*")
_REFERENCE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


class Tier(IntEnum):
    """How good a device is when nobody named one; the highest tier that opens is chosen."""

    HOST = 10  # the processor itself
    PORTABLE = 20  # an accelerator behind a portable layer
    INTEGRATED = 30  # an accelerator that shares the processor's memory
    DISCRETE = 40  # an accelerator with its own memory


@dataclass(frozen=True, slots=True)
class ProbeResult:
    """What a probe found: `ok` to open it, its `tier`, how many devices, and otherwise a `reason` for people.

    `count` above 0 beside ``ok=False`` says that hardware is there and cannot be used: device selection reports that,
    while absent hardware is nothing to report.
    """

    ok: bool
    tier: int = Tier.HOST
    count: int = 1
    reason: str = ""

    def __post_init__(self) -> None:
        if not self.ok and not self.reason:
            raise ValueError("ProbeResult(ok=False) needs a reason: what is missing, and what to do")


@dataclass(frozen=True, slots=True)
class InterfaceSpec:
    """One way to reach a device (a kernel driver, a bus, a simulator); a `mock` is never chosen unasked."""

    name: str
    interface_class: str  # "module:Class", called by the device class
    mock: bool = False

    def __post_init__(self) -> None:
        _check_name("InterfaceSpec", "name", self.name, _NAME, "an upper-case word like KFD")
        _check_reference("InterfaceSpec", self.name, "interface_class", self.interface_class)


@dataclass(frozen=True, slots=True)
class EnvVar:
    """An environment variable a backend reads, for listings and docs."""

    name: str
    doc: str


@dataclass(frozen=True, slots=True)
class DeviceSpec:
    """A device, as entry points of the group ``tinyhost.devices`` point to it.

    `capabilities` and `default_arch` must not open the device: they are called for targets whose hardware is elsewhere.
    """

    name: str
    device_class: str  # "module:Class", opened as Class(name, target, spec) -> Compiled
    capabilities: str  # "module:function", (target) -> Capabilities
    renderers: tuple[str, ...] = ()  # full names in order of preference: ("NAME.FIRST", "NAME.SECOND")
    aliases: tuple[str, ...] = ()
    roles: frozenset[str] = frozenset()
    interfaces: tuple[InterfaceSpec, ...] = ()
    probe: str = ""  # "module:function", () -> ProbeResult, cheap; "" is never chosen unasked
    default_arch: str = ""  # "module:function", (target) -> arch for a target that names none
    env: tuple[EnvVar, ...] = ()
    install_hint: str = ""  # what to do when the device does not open
    docs: str = ""  # address of the documentation

    def __post_init__(self) -> None:
        object.__setattr__(self, "roles", frozenset(self.roles))
        for part in ("renderers", "aliases", "interfaces", "env"):
            if isinstance(value := getattr(self, part), str):
                raise TypeError(f"DeviceSpec {self.name}: {part} is a tuple, got the text {value!r}")
            object.__setattr__(self, part, tuple(value))
        _check_name("DeviceSpec", "name", self.name, _NAME, "an upper-case word like MYDEV")
        for alias in self.aliases:
            _check_name("DeviceSpec", "alias", alias, _NAME, "an upper-case word like MYDEV")
        for renderer in self.renderers:
            _check_name("DeviceSpec", "renderer", renderer, _RENDERER, "DEVICE.RENDERER in upper case")
        _check_reference("DeviceSpec", self.name, "device_class", self.device_class)
        _check_reference("DeviceSpec", self.name, "capabilities", self.capabilities)
        for part in ("probe", "default_arch"):
            if value := getattr(self, part):
                _check_reference("DeviceSpec", self.name, part, value)
        if unknown := self.roles - ROLES.keys():
            raise ValueError(f"DeviceSpec {self.name}: unknown roles {sorted(unknown)}; roles are {', '.join(ROLES)}")
        names = [i.name for i in self.interfaces]
        if len(set(names)) != len(names):
            raise ValueError(f"DeviceSpec {self.name}: an interface name stands twice in {names}")

    def interface(self, name: str) -> InterfaceSpec | None:
        """The interface of that name in any case, or None."""
        return next((i for i in self.interfaces if i.name == name.upper()), None)


@dataclass(frozen=True, slots=True)
class RendererSpec:
    """A renderer, as entry points of the group ``tinyhost.renderers`` point to it; usable without its device."""

    name: str  # "DEVICE.RENDERER"
    renderer_class: str  # "module:Class", made as Class(target)
    capabilities: str = ""  # "module:function", (target) -> Capabilities; "" asks the device's spec
    available: str = ""  # "module:function", () -> "" or the reason why it cannot work here; cheap, compiles nothing
    env: tuple[EnvVar, ...] = field(default=())
    install_hint: str = ""
    docs: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "env", tuple(self.env))
        _check_name("RendererSpec", "name", self.name, _RENDERER, "DEVICE.RENDERER in upper case")
        _check_reference("RendererSpec", self.name, "renderer_class", self.renderer_class)
        for part in ("capabilities", "available"):
            if value := getattr(self, part):
                _check_reference("RendererSpec", self.name, part, value)

    @property
    def device(self) -> str:
        """The device part of the name."""
        return self.name.partition(".")[0]

    @property
    def short_name(self) -> str:
        """The renderer part of the name, as DEV writes it."""
        return self.name.partition(".")[2]


def _check_name(kind: str, what: str, value: object, pattern: re.Pattern[str], form: str) -> None:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{kind}: {what} must be {form}, got {value!r}")


def _check_reference(kind: str, name: str, part: str, value: object) -> None:
    if not isinstance(value, str) or not _REFERENCE.fullmatch(value):
        raise ValueError(f'{kind} {name}: {part} must be "module:attribute", got {value!r}')
