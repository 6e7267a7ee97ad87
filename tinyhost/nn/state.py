"""Parameters by name, and giving models the values of files.

A state dict maps dotted attribute paths to tensors. The readers and writers of files are in ``tinyhost.io``; those that
belong to state dicts are named here too.
"""
from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, cast

from tinyhost.env import DEBUG
from tinyhost.errors import ShapeError
from tinyhost.helpers import tqdm
from tinyhost.io.archive import tar_extract, zip_extract
from tinyhost.io.safetensors import safe_load, safe_load_metadata, safe_save
from tinyhost.io.source import TensorIO, accept_filename
from tinyhost.io.torch_pickle import torch_load
from tinyhost.tensor import Tensor

__all__ = ["StateDictError", "TensorIO", "accept_filename", "get_parameters", "get_state_dict", "load_state_dict",
           "safe_load", "safe_load_metadata", "safe_save", "tar_extract", "torch_load", "zip_extract"]


BATCH_BYTES, BATCH_TENSORS = 1 << 28, 128  # that are given at once


class StateDictError(ShapeError, KeyError):
    """The names or shapes of a state dict do not fit the model."""


# *** names ***
def get_state_dict(obj: Any, prefix: str = "", tensor_type: type = Tensor) -> dict[str, Tensor]:
    """Tensors inside ``obj`` (attributes, lists, tuples, dicts and dataclasses, nested) by dotted path.

    Attributes in ``__slots__`` count; functions, classes and captured graphs hold no parameters.

    Example:
        >>> from tinyhost import Tensor
        >>> class Net: pass
        >>> net = Net(); net.w = Tensor.ones(2); net.layers = [Tensor.ones(1)]
        >>> sorted(get_state_dict(net))
        ['layers.0', 'w']
    """
    out: dict[str, Tensor] = {}
    stack: list[tuple[str, Any]] = [(prefix.strip("."), obj)]
    seen: set[int] = set()
    while stack:
        path, x = stack.pop()
        if isinstance(x, tensor_type):
            out[path] = cast(Tensor, x)
            continue
        items = _items(x)
        if items and id(x) in seen:
            continue
        if items:
            seen.add(id(x))
        stack.extend((f"{path}.{k}" if path else str(k), v) for k, v in reversed(items))
    return out


def _items(x: Any) -> list[tuple[Any, Any]]:
    """What a container or an object holds, by name."""
    if hasattr(x, "_asdict"):
        return list(x._asdict().items())
    if isinstance(x, dict):
        return list(x.items())
    if isinstance(x, (list, tuple)):
        return list(enumerate(x))
    if isinstance(x, type) or hasattr(x, "__code__"):
        return []  # functions hold no parameters
    out = [(f.name, getattr(x, f.name)) for f in fields(x) if hasattr(x, f.name)] if is_dataclass(x) else []
    named = {k for k, _ in out}
    attributes = getattr(x, "__dict__", {})
    if "__wrapped__" in attributes:
        return []  # nor do decorated ones
    return out + [(k, v) for k, v in [*attributes.items(), *_slots(x)] if k not in named]


def _slots(x: Any) -> list[tuple[str, Any]]:
    """Attributes that lie in ``__slots__``."""
    if type(x).__module__ == "builtins":
        return []
    names = [n for c in type(x).__mro__ for n in _as_names(c.__dict__.get("__slots__", ()))]
    return [(n, getattr(x, n)) for n in names if n not in ("__dict__", "__weakref__") and hasattr(x, n)]


def _as_names(slots: Any) -> list[str]:
    return [slots] if isinstance(slots, str) else list(slots)


def get_parameters(obj: Any) -> list[Tensor]:
    """The tensors of ``get_state_dict``."""
    return list(get_state_dict(obj).values())


def load_state_dict(model: Any, state_dict: dict[str, Tensor], strict: bool = True, verbose: bool = True,
                    consume: bool = False, realize: bool = True) -> list[Tensor]:
    """Give the tensors of ``model`` the values of ``state_dict``; returns those that were given.

    Values are moved to the device and cast to the dtype of the model's tensors. Nothing is changed if a name or a shape
    is wrong. Names that the model lacks are only reported together with an error, or with DEBUG=1.

    Args:
        strict: names that ``state_dict`` lacks are an error, else the model keeps its own values for them.
        verbose: show the progress, with DEBUG=1.
        consume: remove each value from ``state_dict`` once it was given.
        realize: give values now, else when they are used.

    Raises:
        StateDictError: a KeyError and a ShapeError that lists all names that are missing or unexpected and all shapes
        that differ.
    """
    own = get_state_dict(model)
    missing = sorted(own.keys() - state_dict.keys()) if strict else []
    unexpected = sorted(map(str, state_dict.keys() - own.keys()))
    given = {name: old for name, old in own.items() if name in state_dict}
    wrong = [text for name, old in given.items() if (text := _wrong(name, old, state_dict[name]))]
    if missing or wrong:
        raise StateDictError(_misfit(missing, unexpected, wrong))
    if unexpected and DEBUG.value >= 1:
        print(f"warning: unused weights in state_dict {unexpected}")
    for batch in tqdm(_batches(given), desc="loading weights", disable=not verbose or DEBUG.value < 1):
        for name in batch:
            given[name].replace(state_dict[name].shard_like(given[name]).cast(given[name].dtype))
        if realize:
            Tensor.realize(*(given[name] for name in batch))
        for name in batch if consume else ():
            del state_dict[name]
    return list(given.values())


def _batches(tensors: dict[str, Tensor]) -> list[list[str]]:
    """Names in groups that are worth a realization: each looks at all live tensors once."""
    out, room, left = list[list[str]](), 0, 0
    for name, t in tensors.items():
        size = int(t.nbytes())
        if not out or left == 0 or room < size:
            out.append([])
            room, left = BATCH_BYTES, BATCH_TENSORS
        out[-1].append(name)
        room, left = room - size, left - 1
    return out


def _wrong(name: str, old: Tensor, new: Any) -> str:
    """Why ``new`` cannot be the value of ``old``; nothing if it can."""
    if not isinstance(new, Tensor):
        return f"`{name}` is a {type(new).__name__}, not a tensor."
    if new.shape != old.shape:
        return f"Shape mismatch in layer `{name}`: Expected shape {old.shape}, but found {new.shape} in state dict."
    return ""


def _misfit(missing: list[str], unexpected: list[str], wrong: list[str]) -> str:
    """What does not fit, all in one text."""
    parts = [f"it has no {_some(missing)}"] if missing else []
    parts += [f"the model has no {_some(unexpected)}"] if unexpected else []
    parts += [" ".join(wrong[:20]) + (f" ... {len(wrong)} shapes differ." if len(wrong) > 20 else "")] if wrong else []
    hint = ": load with strict=False to keep the model's own values for those that are missing" if missing else ""
    return "the state dict does not fit the model: " + "; ".join(parts) + hint


def _some(names: list[str]) -> str:
    return str(names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
