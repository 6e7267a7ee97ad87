"""If, Loop and Scan: subgraphs run by the host.

A condition that depends on data is realized. A loop that ends by its data, or that has many steps, realizes what it
carries after each step, so that all steps share their kernels; a short one of known length becomes one graph.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.io.onnx.call import Call, boolean, scalar
from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import BY_NAME, Narrow, from_array
from tinyhost.tensor import Tensor
from tinyhost.uop import Variable

_UNROLLED = 16  # steps up to which a loop is one graph


@op("If", raw=True)
def if_(condition: Any, *, then_branch: Any, else_branch: Any, ctx: Call) -> list[Any]:
    """Outputs of the branch that the condition chooses."""
    return ctx.run(then_branch if boolean(condition) else else_branch, [])


def _realize(values: list[Any]) -> None:
    tensors = [v.carrier if isinstance(v, Narrow) else v for v in values if isinstance(v, (Tensor, Narrow))]
    tensors += [t for v in values if isinstance(v, list) for t in v if isinstance(t, Tensor)]
    if tensors:
        Tensor.realize(*tensors)


def stacked(values: list[Any], axis: int, ctx: Call) -> Any:
    """Values of one shape along a new axis."""
    if all(isinstance(v, np.ndarray) for v in values):
        return np.stack(values, axis=axis)
    kind = next((v.element for v in values if isinstance(v, Narrow)), None)
    first, *rest = (ctx.lift(v) for v in values)
    out = first.stack(*rest, dim=axis)
    return out if kind is None else Narrow(out, kind)


def _nothing(graph: Any, i: int) -> Any:
    """A scan output of no steps."""
    info = graph.output_types.get(graph.outputs[i])
    kind = BY_NAME.get(info.type[len("tensor("):-1], BY_NAME["float"]) if info is not None else BY_NAME["float"]
    dims = info.shape if info is not None and info.shape is not None else ()
    return from_array(np.empty((0, *(d if isinstance(d, int) else 0 for d in dims)), kind.array))


@op("Loop", raw=True)
def loop(trip_count: Any, condition: Any = None, *carried: Any, body: Any, ctx: Call) -> list[Any]:
    """The body again and again: at most ``trip_count`` times, and while its condition holds."""
    limit = None if trip_count is None else int(scalar(trip_count))
    go = condition is None or boolean(condition)
    steps = 0
    scans: list[list[Any]] = [[] for _ in body.outputs[1 + len(carried):]]
    state: list[Any] = list(carried)
    lazy = limit is not None and limit <= _UNROLLED
    while go and (limit is None or steps < limit):
        if steps >= ctx.runner.loop_limit:
            raise RuntimeError(f"a Loop did not end in {steps} steps: give OnnxRunner a larger loop_limit if it should")
        given = [np.array(steps, np.int64), np.array(True), *state]
        going, *found = ctx.run(body, given[:len(body.inputs)])
        state = found[:len(carried)]
        for kept, value in zip(scans, found[len(carried):]):
            kept.append(value)
        if not lazy or isinstance(going, Tensor):
            _realize(found)
        go = boolean(going)
        steps += 1
    ends = [stacked(kept, 0, ctx) if kept else _nothing(body, 1 + len(carried) + i) for i, kept in enumerate(scans)]
    return [*state, *ends]


# *** scan ***
def row_of(x: Tensor, axis: int, t: int, shared: bool) -> Tensor:
    """Element ``t`` of ``axis``; as a bound variable where one kernel must serve all steps."""
    axis %= x.ndim
    at = Variable("step", 0, x.shape[axis] - 1).bind(t) if shared and x.shape[axis] > 1 else t
    row = x.shrink(tuple((at, at + 1) if i == axis else None for i in range(x.ndim)))
    return row.reshape(tuple(s for i, s in enumerate(x.shape) if i != axis))


def _at(value: Any, axis: int, t: int, shared: bool = False) -> Any:
    """Step ``t`` of a value along ``axis``."""
    if isinstance(value, np.ndarray):
        return np.take(value, t, axis=axis)
    x = value.carrier if isinstance(value, Narrow) else value
    row = row_of(x, axis, t, shared)
    return Narrow(row, value.element) if isinstance(value, Narrow) else row


def _signs(values: list[int] | None, n: int) -> list[int]:
    out = [0] * n if values is None else list(values)
    if len(out) != n:
        raise ValueError(f"{n} scan values need {n} axes or directions, got {out}")
    return out


def _scanned(state: list[Any], inputs: list[Any], body: Any, in_axes: list[int], in_back: list[int],
             out_axes: list[int] | None, out_back: list[int] | None, ctx: Call) -> list[Any]:
    counts = {v.shape[a] for v, a in zip(inputs, in_axes)}
    if len(counts) != 1:
        raise ValueError(f"scan inputs differ in length: {sorted(counts)}")
    count = counts.pop()
    outs: list[list[Any]] = [[] for _ in body.outputs[len(state):]]
    size, long = len(state), count > _UNROLLED
    if long:
        _realize(inputs)
    for t in range(count):
        rows = [_at(v, a, count - 1 - t if back else t, long) for v, a, back in zip(inputs, in_axes, in_back)]
        found = ctx.run(body, [*state, *rows])
        state = found[:size]
        for kept, value in zip(outs, found[size:]):
            kept.append(value)
        if long:
            _realize(found)
    axes, backs = _signs(out_axes, len(outs)), _signs(out_back, len(outs))
    ends = []
    for i, (kept, axis, back) in enumerate(zip(outs, axes, backs)):
        ordered = kept[::-1] if back else kept
        ends.append(stacked(ordered, axis, ctx) if ordered else _nothing(body, size + i))
    return [*state, *ends]


@op("Scan", since=9, raw=True)
def scan(*values: Any, body: Any, num_scan_inputs: int, scan_input_axes: list[int] | None = None,
         scan_input_directions: list[int] | None = None, scan_output_axes: list[int] | None = None,
         scan_output_directions: list[int] | None = None, ctx: Call) -> list[Any]:
    """The body over the steps of the scan inputs, carrying a state."""
    cut = len(values) - num_scan_inputs
    if num_scan_inputs < 1 or cut < 0:
        raise ValueError(f"num_scan_inputs is {num_scan_inputs}, there are {len(values)} inputs")
    return _scanned(list(values[:cut]), list(values[cut:]), body, _signs(scan_input_axes, num_scan_inputs),
                    _signs(scan_input_directions, num_scan_inputs), scan_output_axes, scan_output_directions, ctx)


@op("Scan", since=8, raw=True)
def scan_batched(lens: Any = None, *values: Any, body: Any, num_scan_inputs: int, directions: list[int] | None = None,
                 ctx: Call) -> list[Any]:
    """The body over steps for each entry of a batch (opset 8)."""
    if lens is not None:
        raise OnnxUnsupported("Scan of opset 8 with sequence_lens: only whole sequences are supported")
    cut, batch = len(values) - num_scan_inputs, values[0].shape[0]
    each = [_scanned([_at(v, 0, b) for v in values[:cut]], [_at(v, 0, b) for v in values[cut:]], body,
                     [0] * num_scan_inputs, _signs(directions, num_scan_inputs), None, None, ctx)
            for b in range(batch)]
    return [stacked(list(parts), 0, ctx) for parts in zip(*each)]


