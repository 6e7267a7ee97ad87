"""Which function computes which operator, from which opset on.

``@op("Name", since=13)`` registers a function on Tensors, ``@host_op("Name")`` one on numpy arrays, which is taken
when all inputs are on the host. Positional parameters are the inputs (None where left out), keyword-only parameters
the attributes with their defaults; a parameter ``ctx`` gets the ``Call``. The function of the largest ``since`` that
is not above the model's opset is chosen. Nothing here knows models or values.
"""
from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

_MISSING = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Implementation:
    """One function for one operator.

    Attributes:
        inputs: names of the positional parameters; variadic: whether any number may follow.
        required: how many inputs must be given.
        attributes: keyword-only parameters with their defaults; needed: those without one.
        host: positions of inputs that the function takes as numpy arrays.
        with_call: whether the function takes ``ctx``.
    """

    name: str
    domain: str
    since: int
    function: Callable[..., Any]
    inputs: tuple[str, ...]
    variadic: bool
    required: int
    attributes: frozenset[str]
    needed: frozenset[str]
    host: frozenset[int]
    with_call: bool
    raw: bool


_tensor_ops: dict[tuple[str, str], list[Implementation]] = {}
_host_ops: dict[tuple[str, str], list[Implementation]] = {}


def _implementation(function: Callable[..., Any], name: str, domain: str, since: int, host: str,
                    raw: bool) -> Implementation:
    parameters = inspect.signature(function).parameters.values()
    inputs = tuple(p.name for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD)
    keywords = [p for p in parameters if p.kind is p.KEYWORD_ONLY and p.name != "ctx"]
    names = host.split()
    if bad := set(names) - set(inputs):
        raise TypeError(f"@op({name!r}): host inputs {sorted(bad)} are no parameters of {function.__name__}")
    return Implementation(
        name, domain, since, function, inputs,
        any(p.kind is p.VAR_POSITIONAL for p in parameters),
        sum(p.kind is p.POSITIONAL_OR_KEYWORD and p.default is _MISSING for p in parameters),
        frozenset(p.name for p in keywords), frozenset(p.name for p in keywords if p.default is _MISSING),
        frozenset(inputs.index(n) for n in names), any(p.name == "ctx" for p in parameters), raw)


def _register(table: dict[tuple[str, str], list[Implementation]], new: Implementation) -> None:
    forms = table.setdefault((new.domain, new.name), [])
    if any(f.since == new.since for f in forms):
        raise TypeError(f"operator {new.name} of domain {new.domain!r} has two functions since opset {new.since}")
    forms.append(new)
    forms.sort(key=lambda f: f.since)


def op(*names: str, since: int = 1, domain: str = "", host: str = "",
       raw: bool = False) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function for operators.

    Args:
        names: operators that it computes.
        since: first opset for which it does.
        host: inputs, separated by spaces, that it takes as numpy arrays.
        raw: take values as they are (arrays, ``Narrow``, sequences), not as Tensors.
    """
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _register(_tensor_ops, _implementation(function, name, domain, since, host, raw))
        return function
    return decorate


def host_op(*names: str, since: int = 1, domain: str = "") -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a function on numpy arrays for operators; it gives NotImplemented to leave a call to the Tensor form."""
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            _register(_host_ops, _implementation(function, name, domain, since, "", True))
        return function
    return decorate


def _newest(forms: list[Implementation] | None, opset: int) -> Implementation | None:
    return next((f for f in reversed(forms or ()) if f.since <= opset), None)


def find(domain: str, name: str, opset: int) -> tuple[Implementation | None, Implementation | None]:
    """The Tensor form and the host form of an operator at an opset, None where there is none."""
    from tinyhost.io.onnx import ops  # registers everything
    assert ops
    key = (domain, name)
    return _newest(_tensor_ops.get(key), opset), _newest(_host_ops.get(key), opset)


def all_operators() -> Iterator[tuple[str, str, tuple[int, ...]]]:
    """(domain, operator, opsets from which its forms hold) of everything that is registered."""
    from tinyhost.io.onnx import ops
    assert ops
    for key in sorted(_tensor_ops.keys() | _host_ops.keys()):
        forms = _tensor_ops.get(key) or _host_ops[key]
        yield *key, tuple(f.since for f in forms)
