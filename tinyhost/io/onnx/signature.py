"""What the operator schemas of the onnx package say about types.

Takes domain, operator and opset; gives ``Signature``: which inputs share a type, which types are allowed, what the
outputs must be, and whether the schema has a body to expand. Types are strict: nothing is promoted.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import onnx.defs
from onnx import helper

from tinyhost.io.onnx.types import type_name


@dataclass(frozen=True, slots=True)
class Formal:
    """One formal parameter: the name of its type, the type strings allowed, and whether it may repeat."""

    name: str
    type_str: str
    allowed: frozenset[str]
    variadic: bool
    homogeneous: bool


@dataclass(frozen=True, slots=True)
class Signature:
    """Types of one operator at one opset.

    Attributes:
        since: opset that introduced this version of the operator.
        defaults: attribute values that hold where a node gives none.
    """

    inputs: tuple[Formal, ...]
    outputs: tuple[Formal, ...]
    since: int
    schema: Any
    defaults: dict[str, Any]

    @property
    def needed(self) -> frozenset[str]:
        """Attributes that a node must give."""
        return frozenset(name for name, a in self.schema.attributes.items() if a.required)

    @property
    def has_body(self) -> bool:
        """Whether the operator is defined by others."""
        return bool(self.schema.has_function or self.schema.has_context_dependent_function)

    def bind(self, values: list[Any]) -> dict[str, str]:
        """Type string of each type name.

        Raises:
            TypeError: a type is not allowed, or two inputs that must agree do not.
        """
        bound: dict[str, str] = {}
        for i, value in enumerate(values):
            formal = self.inputs[min(i, len(self.inputs) - 1)] if self.inputs else None
            got = type_name(value)
            if not got or formal is None:
                continue
            if got not in formal.allowed and f"optional({got})" not in formal.allowed:
                raise TypeError(f"input {formal.name!r} is {got}, allowed are {', '.join(sorted(formal.allowed))}")
            if formal.variadic and not formal.homogeneous:
                continue
            if (other := bound.setdefault(formal.type_str, got)) != got:
                raise TypeError(f"input {formal.name!r} is {got}, but another input of type {formal.type_str} is "
                                f"{other}; ONNX promotes nothing: insert a Cast")
        return bound

    def output_type(self, i: int, bound: dict[str, str]) -> str:
        """Type string that output ``i`` must have, "" where inputs do not tell."""
        if not self.outputs:
            return ""
        formal = self.outputs[min(i, len(self.outputs) - 1)]
        if formal.variadic and not formal.homogeneous:
            return ""
        if formal.type_str in bound:
            return bound[formal.type_str]
        return next(iter(formal.allowed)) if len(formal.allowed) == 1 else ""


def _formal(p: Any) -> Formal:
    variadic = p.option == onnx.defs.OpSchema.FormalParameterOption.Variadic
    return Formal(p.name, p.type_str, frozenset(p.types), variadic, bool(p.is_homogeneous))


def _default(a: Any) -> Any:
    value = helper.get_attribute_value(a)
    if isinstance(value, bytes):
        return value.decode()
    return [v.decode() if isinstance(v, bytes) else v for v in value] if isinstance(value, (list, tuple)) else value


@functools.cache
def signature(domain: str, op: str, opset: int) -> Signature | None:
    """The signature of an operator, None where the onnx package has no schema of it."""
    try:
        schema = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None
    defaults = {name: _default(a.default_value) for name, a in schema.attributes.items() if a.default_value.type}
    return Signature(tuple(map(_formal, schema.inputs)), tuple(map(_formal, schema.outputs)), schema.since_version,
                     schema, defaults)
