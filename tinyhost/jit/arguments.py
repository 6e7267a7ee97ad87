"""The arguments of a call: which buffers they are, and what a replay demands of them.

Takes arguments in any nesting of lists, tuples and dicts; gives one buffer for each tensor and one comparable demand
for each leaf. Tensors of symbolic shape are views of a buffer in which variables stand for numbers, so the same view
with other values is the same demand. Nothing is captured here.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from tinyhost.device import Buffer
from tinyhost.device.buffer import buffer_of
from tinyhost.device.multibuffer import MultiBuffer, parts_of
from tinyhost.engine.hazards import is_storage, under_views
from tinyhost.env import TRAINING
from tinyhost.errors import JitError
from tinyhost.realization import realize
from tinyhost.schedule.storage import region_of
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp

_VALUES = (bool, int, float, complex, str, bytes, type(None))


# *** nested arguments and results ***
def leaves(path: str, x: Any) -> Iterator[tuple[str, Any]]:
    """(path, value) of everything inside nested lists, tuples and dicts, in order."""
    stack = [(path, x)]
    while stack:
        p, v = stack.pop()
        if isinstance(v, (list, tuple)):
            stack.extend((f"{p}[{i}]", item) for i, item in reversed(list(enumerate(v))))
        elif isinstance(v, dict):
            stack.extend((f"{p}[{k!r}]", v[k]) for k in reversed(list(v)))
        else:
            yield p, v


def rebuilt(x: Any, change: Callable[[Any], Any]) -> Any:
    """Nested lists, tuples and dicts with every leaf changed."""
    if isinstance(x, (list, tuple)):
        items = [rebuilt(v, change) for v in x]
        return type(x)(*items) if hasattr(x, "_fields") else type(x)(items)
    if isinstance(x, dict):
        return {k: rebuilt(v, change) for k, v in x.items()}
    return change(x)


# *** demands ***
@dataclass(frozen=True)
class Demand:
    """What one argument of a replay must be: ``value`` (or the same object), told as ``text``."""

    path: str
    value: Any
    text: str

    def met_by(self, other: Demand) -> bool:
        """Whether the argument of another call is the same."""
        a, b = self.value, other.value
        return self.path == other.path and (a is b or (type(a) is type(b) is tuple and a == b))


def met(captured: list[Demand], now: list[Demand]) -> bool:
    """Whether the arguments of a call are those of a capture."""
    return len(captured) == len(now) and all(a.met_by(b) for a, b in zip(captured, now))


def check(captured: list[Demand], now: list[Demand]) -> None:
    """Compare the arguments of a call with those of the capture.

    Raises:
        JitError: they differ in number, name or value.
    """
    if [d.path for d in captured] != [d.path for d in now]:
        raise JitError(f"args mismatch in JIT: captured with {', '.join(d.path for d in captured)}, called with "
                       f"{', '.join(d.path for d in now)}; call with the same arguments, or use a second TinyJit")
    wrong = [f"{a.path} was {a.text} at capture and is {b.text if b.text != a.text else 'another view'} now"
             for a, b in zip(captured, now) if not a.met_by(b)]
    if wrong:
        raise JitError(f"args mismatch in JIT: {'; '.join(wrong)}: call with the same, or use a second TinyJit")


def _demand(path: str, v: Any) -> Demand:
    if isinstance(v, Tensor):
        shape = tuple([d if isinstance(d, int) else d.unbind_all()[0] for d in v.shape])
        shown = f"({', '.join(d.render() if isinstance(d, UOp) else str(d) for d in shape)}{',' * (len(shape) == 1)})"
        view = _pattern(v.uop) if v.uop.axis is not None or _is_symbolic(v.uop) else None
        split = "" if v.uop.axis is None else f", split along axis {v.uop.axis}"
        return Demand(path, (Tensor, shape, v.dtype, v.device, v.uop.axis, view),
                      f"a tensor {shown} {v.dtype} on {v.device}{split}")
    if isinstance(v, UOp) and v.is_bound_var:
        return Demand(path, v.unbind()[0], f"variable {v.expr}")
    # floats by text: nan is nan, and -0.0 is not 0.0
    return Demand(path, (type(v), repr(v)) if isinstance(v, _VALUES) else v, f"{v!r:.80}")


def _is_symbolic(view: UOp) -> bool:
    """Whether variables stand in a view: in its shape, or only in an offset."""
    return any(u.is_variable for u in view.toposort())


def _pattern(view: UOp) -> UOp:
    """A view with free variables, over any buffer of the size."""
    storage = under_views(view)
    free = view.unbind_all()[0]
    any_buffer = UOp.param(0, storage.dtype, (storage.max_numel(),), storage.device)
    return free.substitute({storage: any_buffer}, walk=True)


# *** tensors ***
class Inputs:
    """The arguments of one call, made real, and what a replay demands of them.

    ``buffers`` are those of the tensors: the block that a tensor is, the storage under a symbolic view.
    """

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        named = [(f"arg {i}", a) for i, a in enumerate(args)] + sorted(kwargs.items())
        found = [leaf for name, a in named for leaf in leaves(name, a)]
        self.tensors = [(p, v) for p, v in found if isinstance(v, Tensor)]
        realize(*[t for _, t in self.tensors])
        self.buffers = [_input_buffer(p, t) for p, t in self.tensors]
        self._check_overlap()
        self.bound = self._bound([v for _, v in found if isinstance(v, UOp) and v.is_bound_var])
        self.var_vals = {name: v.val for name, v in self.bound.items()}
        self.demands = [_demand(p, v) for p, v in found] + [_demand("TRAINING", TRAINING.value)]

    def _bound(self, given: list[UOp]) -> dict[str, UOp]:
        """Bound variables by name, those in shapes included."""
        inside = [u for _, t in self.tensors for u in t.uop.toposort() if u.is_bound_var]
        out: dict[str, UOp] = {}
        for v in (*given, *inside):
            if out.setdefault(v.expr, v) is not v:
                raise JitError(f"bind mismatch on {v.expr!r}: the arguments bind it to {out[v.expr].val} and {v.val}; "
                               "one call uses one value of a variable")
        return out

    def _check_overlap(self) -> None:
        spans = sorted((id(b.base), b.offset, b.offset + b.nbytes, p)
                       for buffer, (p, _) in zip(self.buffers, self.tensors) for b in parts_of(buffer))
        for (base, _, end, first), (other, start, _, second) in zip(spans, spans[1:]):
            if base == other and start < end:
                raise JitError(f"duplicate inputs to JIT: {first} and {second} share memory, so a replay could not "
                               "tell them apart; pass a .clone() of one")

    def is_part(self, i: int) -> bool:
        """Whether one tensor is a part of its buffer."""
        return self.buffers[i].base is not self.buffers[i]

    def flat(self, i: int) -> UOp:
        """The elements of one tensor in order: its whole buffer, or a part of one."""
        u = self.tensors[i][1].uop
        return u.reshape((self.buffers[i].size,)) if self.is_part(i) else under_views(u)


def _input_buffer(path: str, t: Tensor) -> Buffer | MultiBuffer:
    storage = under_views(t.uop)
    if is_storage(storage) and (t.uop.axis is not None or _is_symbolic(t.uop)):
        return buffer_of(storage).ensure_allocated()
    region = region_of(t.uop) if t.uop.device is not None else None
    if region is None or not is_storage(region.root):
        what = "a constant" if t.uop.device is None else "a view that is no single block of its buffer"
        raise JitError(f"JIT inputs must be real buffers; use .clone(): {path} of shape {t.shape} is {what}")
    buffer = buffer_of(region.root).ensure_allocated()
    return buffer if region.whole else buffer.view(region.size, region.dtype, region.start)
