"""What UOp methods need from code that is loaded later: a record of functions, set once by the owner of each.

``uop`` owns simplification and substitution and names their modules here (they load at first use); storage is owned by
the device floor, which registers itself when it is imported. An unset service is a loud error, never a silent default.
"""
from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

_LAZY = {
    "simplify": "tinyhost.uop.rules:simplify",
    "substitute": "tinyhost.uop.rewrite:substitute",
    "render": "tinyhost.uop.printing:render",
    "pyrender": "tinyhost.uop.printing:pyrender",
    "repr": "tinyhost.uop.printing:tree",
    "argstr": "tinyhost.uop.printing:argstr",
    "tagstr": "tinyhost.uop.printing:tagstr",
    "min_max": "tinyhost.uop.bounds:min_max",
    "flatten": "tinyhost.uop.flat:flatten",
    "unflatten": "tinyhost.uop.flat:unflatten",
    "verify_node": "tinyhost.uop.spec.verify:verify_node",
}
_OWNERS = dict.fromkeys(("buffer", "from_buffer", "on_buffer_pickle", "on_buffer_unpickle"), "tinyhost.device.buffer")
_services: dict[str, Callable[..., Any]] = {}


def register(**functions: Callable[..., Any]) -> None:
    """Set services by name; the owner calls this once at import."""
    for name, fn in functions.items():
        if name not in _OWNERS:
            raise KeyError(f"no service {name!r}: {sorted(_OWNERS)} can be registered")
        _services[name] = fn


def service(name: str) -> Callable[..., Any]:
    """The function behind ``name``.

    Raises:
        RuntimeError: nobody registered it.
    """
    fn = _services.get(name)
    if fn is None:
        if name not in _LAZY:
            raise RuntimeError(f"UOp.{name} needs {_OWNERS.get(name, 'an owner')}: import that module first")
        module, _, attr = _LAZY[name].partition(":")
        fn = _services[name] = getattr(importlib.import_module(module), attr)
    return fn


def registered(name: str) -> Callable[..., Any] | None:
    """The function behind ``name`` if its owner is loaded, else None."""
    return _services.get(name)
