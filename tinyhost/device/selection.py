"""Which renderer a device uses, for which target, and with which capabilities; nothing is opened here.

`compile_target(device)` names renderer and target, `renderer_of(device)` makes the renderer, `caps_of(device)`
computes what the target can do. All three follow DEV and are kept per (device, DEV). A bare device takes the first
renderer of its spec that works here and says so; a named renderer that does not work is an error that lists those
that do.
"""
from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, TypeVar

from tinyhost.capabilities import Capabilities
from tinyhost.env import DEV, TINYHOST_PLUGINS
from tinyhost.errors import (
    DeviceError,
    FallbackWarning,
    PluginBroken,
    PluginError,
    RendererError,
    RendererNotFound,
    RendererUnavailable,
)
from tinyhost.plugin.catalog import Record, catalog, describe
from tinyhost.plugin.guard import PluginExit, resolve
from tinyhost.plugin.known import known_devices, nearest
from tinyhost.plugin.metadata import RENDERERS
from tinyhost.renderer.base import Renderer
from tinyhost.specs import DRY, STORAGE, DeviceSpec, RendererSpec
from tinyhost.target import Target

T = TypeVar("T")
_Key = tuple[str, Target, str]
_KEYS: dict[str, tuple[list[Target], _Key]] = {}  # device -> the DEV list its key was made from, and the key
_CAPS: dict[_Key, Capabilities] = {}
_RENDERERS: dict[_Key, Renderer] = {}
_CHOSEN: dict[_Key, tuple[RendererSpec, Target]] = {}
_NARROWED: dict[tuple[str, Target], Capabilities] = {}
_BROKEN: dict[str, str] = {}  # full renderer name -> why its class could not be made


def clear_selection() -> None:
    """Forget all choices."""
    for kept in (_KEYS, _CAPS, _RENDERERS, _CHOSEN, _BROKEN):
        kept.clear()


def narrow(name: str, target: Target, caps: Capabilities | None) -> None:
    """Take over the limits a device opened for `target` found to be tighter than promised."""
    base = name.partition(":")[0]
    if caps is not None:
        _NARROWED[base, target] = caps
        for key in [k for k in _CAPS if k[:2] == (base, target)]:
            del _CAPS[key]


def caps_of(device: str) -> Capabilities:
    """What the device can do, from its spec and target; an opened device may have narrowed it."""
    key = _key(device)
    if (caps := _CAPS.get(key)) is None:
        caps = _CAPS[key] = _compute_caps(key[0], key[1])
    return caps


def renderer_of(device: str) -> Renderer:
    """The renderer that compiles for the device, made once per (device, DEV)."""
    key = _key(device)
    while (made := _RENDERERS.get(key)) is None:
        spec, target = _chosen(key)
        try:
            made = _RENDERERS[key] = _construct(spec, target)
        except RendererError:
            if key[1].renderer:
                raise
            _CHOSEN.pop(key, None)  # `available` promised too much; take the next one
            _CAPS.pop(key, None)
    return made


def compile_target(device: str) -> Target:
    """The complete target the device's programs are compiled for, named after the renderer's own device."""
    return _chosen(_key(device))[1]


def load_class(reference: str) -> Any:
    """The class at a "module:Class" of a spec."""
    found = resolve(reference)
    if not isinstance(found, type):
        raise TypeError(f"{reference} must be a class, it is {found!r:.80}")
    return found


def device_spec(base: str, provider: str = "") -> DeviceSpec:
    """The spec of a device by name or alias."""
    spec: DeviceSpec = catalog().load(catalog().device(base, provider))
    return spec


def _key(device: str) -> _Key:
    targets, plugins = DEV.value, TINYHOST_PLUGINS.value
    kept = _KEYS.get(device)
    if kept is None or kept[0] is not targets or kept[1][2] != plugins:
        base = device.partition(":")[0].upper()
        kept = _KEYS[device] = targets, (base, DEV.target(base), plugins)
    return kept[1]


def _compute_caps(base: str, wanted: Target) -> Capabilities:
    if (base, wanted) in _NARROWED:
        return _NARROWED[base, wanted]
    spec = device_spec(base, wanted.provider)
    if STORAGE in spec.roles:
        return _call(spec.capabilities, Capabilities, wanted)
    renderer, target = _chosen((base, wanted, TINYHOST_PLUGINS.value))
    if renderer.capabilities:
        return _call(renderer.capabilities, Capabilities, target)
    owner = spec if renderer.device == spec.name else device_spec(renderer.device)
    return _call(owner.capabilities, Capabilities, target)


def _call(reference: str, kind: type[T], *arguments: object) -> T:
    function: Any = resolve(reference)
    result = function(*arguments)
    if not isinstance(result, kind):
        raise PluginBroken(f"{reference} must return {kind.__name__}, it returned {result!r:.80}")
    return result


# choosing


def _chosen(key: _Key) -> tuple[RendererSpec, Target]:
    if (found := _CHOSEN.get(key)) is None:
        found = _CHOSEN[key] = _choose(key[0], key[1])
    return found


def _choose(base: str, wanted: Target) -> tuple[RendererSpec, Target]:
    spec = device_spec(base, wanted.provider)
    if not spec.renderers and not wanted.renderer:
        raise RendererNotFound(f"{base} holds data and runs no kernels: move the tensor with .to(device) first"
                               if STORAGE in spec.roles else
                               f"{base} has no renderer of its own; name one: DEV={base}:DEVICE.RENDERER:arch")
    record = _named(spec, wanted) if wanted.renderer else _first_working(spec, wanted)
    renderer: RendererSpec = catalog().load(record)
    owner = spec if renderer.device == spec.name else None
    target = replace(wanted, device=renderer.device, renderer=renderer.short_name, optional=False)
    if not target.arch:
        owner = owner or _owner(renderer)
        if owner is not None and owner.default_arch:
            target = replace(target, arch=_call(owner.default_arch, str, target))
    # how the device is reached and who offers it are no part of what is compiled
    return renderer, replace(target, interface="", indices="", provider="")


def _owner(renderer: RendererSpec) -> DeviceSpec | None:
    """The spec of the device a renderer is for; it may be used without that device's package."""
    try:
        return device_spec(renderer.device)
    except DeviceError:
        return None


def _named(spec: DeviceSpec, wanted: Target) -> Record:
    """The record of the renderer DEV names, short ("LLVM") or full ("NAME.LLVM")."""
    name = wanted.renderer
    record = catalog().renderer(name if "." in name else f"{spec.name}.{name}", wanted.provider)
    if record is None and "." not in name and DRY in spec.roles:
        record = _of_another_device(spec, wanted)
    if record is not None and not record.name.startswith(spec.name + ".") and DRY not in spec.roles:
        raise RendererNotFound(f"the renderer {name} makes programs that {spec.name} cannot run; only a device that "
                               f"computes nothing takes another device's: DEV=NULL:{name}")
    if record is None:
        raise RendererNotFound(_unknown_renderer(spec, name))
    if reason := _why_not(record):
        raise RendererUnavailable(f"DEV asks for the renderer {name} of {spec.name}, which does not work here: "
                                  f"{reason}. {_those_that_work(spec)}")
    return record


def _of_another_device(spec: DeviceSpec, wanted: Target) -> Record | None:
    offered = catalog().renderers_called(wanted.renderer)
    if len(offered) > 1:
        arch = f":{wanted.arch}" if wanted.arch else ""
        choices = " or ".join(f"DEV={spec.name}:{full}{arch}" for full in offered)
        raise RendererNotFound(f"{spec.name} has no renderer {wanted.renderer} of its own, and more than one device "
                               f"offers one: {', '.join(offered)}. Write {choices}")
    return catalog().renderer(offered[0]) if offered else None


def _candidates(spec: DeviceSpec) -> list[Record]:
    """The renderers of a device in order of preference; those of other distributions come last."""
    preferred = [r for name in spec.renderers if (r := _lookup(name)) is not None]
    return preferred + [r for r in catalog().renderers_of(spec.name) if r not in preferred]


def _lookup(full_name: str) -> Record | None:
    try:
        return catalog().renderer(full_name)
    except (DeviceError, PluginError):  # switched off, ambiguous or incompatible: not asked for by name
        return None


def _first_working(spec: DeviceSpec, wanted: Target) -> Record:
    rejected: list[str] = []
    for record in _candidates(spec):
        reason = _why_not(record)
        if not reason:
            if rejected:
                name = record.name.partition(".")[2]
                warnings.warn(f"{spec.name} uses the renderer {name}, because a better one does not work here: "
                              + "; ".join(rejected), FallbackWarning, stacklevel=6)
            return record
        rejected.append(f"{record.name.partition('.')[2]}: {reason}")
    raise RendererUnavailable(f"no renderer of {spec.name} works here: {'; '.join(rejected) or 'none is installed'}. "
                              + spec.install_hint)


def _why_not(record: Record) -> str:
    """Why a renderer cannot be used, or ""; asks its spec's `available` and what happened before."""
    if record.name in _BROKEN:
        return _BROKEN[record.name]
    try:
        spec: RendererSpec = catalog().load(record)
        return _call(spec.available, str) if spec.available else ""
    except Exception as e:  # one renderer's failure leaves the others usable
        return describe(e)


def _construct(spec: RendererSpec, target: Target) -> Renderer:
    try:
        made = load_class(spec.renderer_class)(target)
        if not isinstance(made, Renderer):
            raise TypeError(f"{spec.renderer_class} must be a subclass of tinyhost.plugin.v1.Renderer, it made "
                            f"{made!r:.80}")
    except (Exception, SystemExit) as e:  # whatever a compiler binding raised
        error = PluginExit(f"it called sys.exit({e.code!r})") if isinstance(e, SystemExit) else e
        reason = _BROKEN[spec.name] = str(e) if isinstance(e, RendererError) else describe(error)
        hint = f" {spec.install_hint}" if spec.install_hint else ""
        raise RendererUnavailable(f"the renderer {spec.name} for {target} cannot be made: {reason}.{hint}") from e
    return made


# messages


def _those_that_work(spec: DeviceSpec) -> str:
    works = [r.name.partition(".")[2] for r in _candidates(spec) if not _why_not(r)]
    if not works:
        return f"No other renderer of {spec.name} works here"
    return "Those that work: " + ", ".join(f"DEV={spec.name}:{w}" for w in works)


def _unknown_renderer(spec: DeviceSpec, name: str) -> str:
    own = [r.name.partition(".")[2] for r in _candidates(spec)]
    known = known_devices().get(spec.name)
    near = nearest(name, [*own, *(known.renderers if known else []), *catalog().names(RENDERERS)])
    mean = f"; did you mean {' or '.join(near)}?" if near else "."
    return (f"no installed distribution offers a renderer {name!r} for {spec.name}{mean} Installed for {spec.name} "
            f"are: {', '.join(own) or 'none'}. Of other devices: {', '.join(catalog().names(RENDERERS)) or 'none'}, "
            f"written DEV={spec.name}:DEVICE.RENDERER:arch")
