"""Nested arguments and results, and what makes two Python values the same to a capture.

Takes values in any nesting of lists, tuples, dicts, dataclasses, deques and slices; gives their leaves with the path to
each, and a key for a leaf: equal keys are values that a program cannot tell apart. What can change under a program
(arrays, byte arrays) is compared by content, an object of another kind is itself only. Tensors are no matter of this
file.
"""
from __future__ import annotations

import copy
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from hashlib import blake2b
from typing import Any

import numpy as np

from tinyhost.dtype import DType
from tinyhost.errors import JitError
from tinyhost.uop import UOp

_DEPTH = 100
_PLAIN = frozenset({bool, int, str, bytes, type(None)})
_SCALARS = (bool, int, float, complex, str, bytes)


@dataclass(frozen=True)
class Container:
    """A container as a leaf: its class and how many, or which, members it has."""

    kind: type
    members: Any

    def __str__(self) -> str:
        if isinstance(self.members, int):
            return f"a {self.kind.__name__} of {self.members}"
        keys = [repr(m[1]) if isinstance(m, tuple) else "an object" for m in self.members]
        return f"a {self.kind.__name__} with {', '.join(keys) or 'no keys'}"


@dataclass(frozen=True, eq=False)
class Same:
    """An object that equals nothing but itself."""

    it: Any

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.it is other.it

    def __hash__(self) -> int:
        return id(self.it)


def _field_names(v: Any) -> list[str]:
    return [f.name for f in fields(v) if hasattr(v, f.name)]


def is_record(v: Any) -> bool:
    """Whether a value is a dataclass's object with members of its own."""
    return is_dataclass(v) and not isinstance(v, (type, DType))


def _members(path: str, v: Any) -> tuple[Container, list[tuple[str, Any]]] | None:
    """A container as a leaf and its members, None for anything else."""
    cls = v.__class__
    if cls in _PLAIN:
        return None
    if isinstance(v, (list, tuple, deque)):
        return Container(cls, len(v)), [(f"{path}[{i}]", item) for i, item in enumerate(v)]
    if isinstance(v, dict):
        keys = tuple([key_of(f"a key of {path}", k) for k in v])
        return Container(cls, keys), [(f"{path}[{k!r}]", item) for k, item in v.items()]
    if isinstance(v, slice):
        return Container(cls, 3), [(f"{path}.{n}", getattr(v, n)) for n in ("start", "stop", "step")]
    if is_record(v):
        names = _field_names(v)
        return Container(cls, len(names)), [(f"{path}.{n}", getattr(v, n)) for n in names]
    return None


def leaves(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything inside nested containers, in order, each container in front of its members.

    Raises:
        JitError: containers nest too deep, as where one contains itself.
    """
    stack = [(path, x, 0)]
    while stack:
        p, v, depth = stack.pop()
        found = _members(p, v)
        if found is None:
            yield p, v
            continue
        if depth == _DEPTH:
            raise JitError(f"{path} nests deeper than {_DEPTH} containers: does one contain itself? Pass the tensors "
                           "themselves")
        yield p, found[0]
        stack.extend([(q, item, depth + 1) for q, item in reversed(found[1])])


def rebuilt(x: Any, change: Callable[[Any], Any]) -> Any:
    """Nested lists, tuples, dicts, deques and dataclasses with every leaf changed."""
    if isinstance(x, (list, tuple)):
        items = [rebuilt(v, change) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, deque):
        return type(x)([rebuilt(v, change) for v in x], x.maxlen)
    if isinstance(x, dict):
        new = copy.copy(x)
        new.update({k: rebuilt(v, change) for k, v in x.items()})
        return new
    if is_record(x):
        new = copy.copy(x)
        for name in _field_names(x):
            object.__setattr__(new, name, rebuilt(getattr(x, name), change))
        return new
    return change(x)


# *** keys ***
def key_of(path: str, v: Any) -> Any:
    """What compares equal to the key of another value if and only if the two are the same to a program.

    Raises:
        JitError: the value has content that cannot be compared.
    """
    cls = v.__class__
    if cls in _PLAIN:
        return cls, v
    if cls is float or cls is complex:  # by text: nan is nan, and -0.0 is not 0.0
        return cls, repr(v)
    if cls is Container:
        return v
    if isinstance(v, UOp):
        return UOp, v.unbind_all()[0]
    if isinstance(v, range):
        return cls, v.start, v.stop, v.step
    if isinstance(v, (set, frozenset)):
        return cls, frozenset([key_of(f"an element of {path}", item) for item in v])
    if (content := _content(path, v)) is not None:
        return content
    if isinstance(v, _SCALARS) and not isinstance(v, Enum):
        return cls, repr(v)
    return Same(v)


def _content(path: str, v: Any) -> Any:
    """The content of what holds elements outside of Python objects, None for other values."""
    cls = type(v)
    if isinstance(v, (type, Enum)):
        return None
    if not (hasattr(cls, "__array__") or hasattr(cls, "__dlpack__")):
        try:
            v = memoryview(v)
        except TypeError:
            return None
    try:
        array = np.asarray(v)
    except Exception as e:
        raise JitError(f"the content of {path}, a {cls.__name__}, cannot be compared with that at capture: pass a "
                       "Tensor") from e
    if array.dtype.hasobject:
        raise JitError(f"{path} is a {cls.__name__} of Python objects, whose content would be frozen at capture: pass "
                       "a Tensor, or a list")
    return cls, array.shape, array.dtype.str, blake2b(np.ascontiguousarray(array).tobytes()).digest()


def text_of(v: Any) -> str:
    """A value in words."""
    if isinstance(v, UOp) and v.is_bound_var:
        low, high = v.src[0].arg.vmin_vmax
        return f"variable {v.expr} from {low} to {high}"
    return str(v) if isinstance(v, Container) else f"{v!r:.80}"
