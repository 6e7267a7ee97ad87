"""RNN, GRU and LSTM, in either direction or both.

The products with the inputs are taken for all steps at once; each step then is a product with the state. Long
sequences are realized step by step, so that all steps share their kernels.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tinyhost.io.onnx.call import filled
from tinyhost.io.onnx.ops.control import row_of
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array
from tinyhost.tensor import Tensor

_UNROLLED = 16  # steps up to which a sequence is one graph
Activation = Callable[[Tensor], Tensor]


def _activation(name: str, alpha: float | None, beta: float | None) -> Activation:
    def given(v: float | None, default: float) -> float:
        return default if v is None else v
    table: dict[str, Activation] = {
        "relu": lambda x: x.relu(), "tanh": lambda x: x.tanh(), "sigmoid": lambda x: x.sigmoid(),
        "affine": lambda x: x * given(alpha, 1.0) + given(beta, 0.0),
        "leakyrelu": lambda x: x.leaky_relu(given(alpha, 0.01)),
        "thresholdedrelu": lambda x: (x > given(alpha, 1.0)).where(x, 0),
        "scaledtanh": lambda x: (x * given(beta, 1.0)).tanh() * given(alpha, 1.0),
        "hardsigmoid": lambda x: x.hardsigmoid(given(alpha, 0.2), given(beta, 0.5)),
        "elu": lambda x: x.elu(given(alpha, 1.0)), "softsign": lambda x: x.softsign(),
        "softplus": lambda x: x.softplus()}
    if name.lower() not in table:
        raise ValueError(f"activation is one of {sorted(table)}, got {name!r}")
    return table[name.lower()]


def _activations(names: list[str] | None, default: list[str], alphas: Any, betas: Any, directions: int) -> list[Any]:
    """One list of functions for each direction; parameters go to the functions in order."""
    names = default * directions if not names else list(names)
    takes = {"affine", "leakyrelu", "thresholdedrelu", "scaledtanh", "hardsigmoid", "elu"}
    alphas, betas = list(alphas or ()), list(betas or ())
    made = []
    for name in names:
        alpha = alphas.pop(0) if alphas and name.lower() in takes else None
        beta = betas.pop(0) if betas and name.lower() in {"affine", "scaledtanh", "hardsigmoid"} else None
        made.append(_activation(name, alpha, beta))
    each = len(default)
    if len(made) != each * directions:
        raise ValueError(f"{directions} directions need {each * directions} activations, got {names}")
    return [made[i * each:(i + 1) * each] for i in range(directions)]


def _scan(projected: Tensor, states: list[Tensor], step: Callable[[Tensor, list[Tensor]], list[Tensor]],
          lens: list[int] | None, reverse: bool) -> tuple[Tensor, list[Tensor]]:
    """(outputs (T, B, H), last states) of a step over (T, B, ...) inputs; finished sequences keep their state."""
    count = projected.shape[0]
    long = count > _UNROLLED
    if long:
        projected = projected.contiguous().realize()
    outs: list[Any] = [None] * count
    for t in range(count - 1, -1, -1) if reverse else range(count):
        new = step(row_of(projected, 0, t, long), states)
        if lens is None:
            states, outs[t] = new, new[0]
        else:
            live = Tensor([[t < n] for n in lens], device=projected.device)
            states = [live.where(a, b) for a, b in zip(new, states)]
            outs[t] = live.where(new[0], 0).cast(new[0].dtype)
        if long:
            Tensor.realize(*states, outs[t])
    return outs[0].stack(*outs[1:]), states


class _Recurrent:
    """Inputs and attributes that the three operators share, cut into directions."""

    def __init__(self, x: Tensor, w: Tensor, r: Tensor, b: Tensor | None, lens: Array | None, direction: str,
                 layout: int, clip: float | None) -> None:
        if direction not in ("forward", "reverse", "bidirectional"):
            raise ValueError(f"direction is forward, reverse or bidirectional, got {direction!r}")
        self.x = x.transpose(0, 1) if layout else x
        self.w, self.r, self.b, self.layout, self.clip_at = w, r, b, layout, clip
        self.directions = 2 if direction == "bidirectional" else 1
        self.reverse = [direction == "reverse", True]
        if w.shape[0] != self.directions or r.shape[0] != self.directions:
            raise ValueError(f"weights {w.shape} and {r.shape} are not for {self.directions} directions")
        self.hidden, self.batch = r.shape[-1], self.x.shape[1]
        steps = None if lens is None else [int(n) for n in lens]
        self.lens = None if steps is None or all(n == self.x.shape[0] for n in steps) else steps

    def clipped(self, x: Tensor) -> Tensor:
        """``x`` within the clip bounds."""
        return x if self.clip_at is None else x.clip(-self.clip_at, self.clip_at)

    def state(self, given: Tensor | None, d: int) -> Tensor:
        """The first state of direction ``d``."""
        if given is None:
            return filled((self.batch, self.hidden), 0.0, self.x.dtype)
        return given[:, d] if self.layout else given[d]

    def biases(self, d: int, gates: int) -> tuple[Tensor | None, Tensor | None]:
        """Biases of inputs and of states."""
        if self.b is None:
            return None, None
        n = gates * self.hidden
        return self.b[d, :n], self.b[d, n:]

    def run(self, step_of: Callable[[int], Any], starts: list[list[Tensor]]) -> tuple[Tensor, list[Tensor]]:
        """(Y, last states) over all directions; ``step_of(d)`` gives (projected inputs, step)."""
        outs, lasts = [], []
        for d in range(self.directions):
            projected, step = step_of(d)
            y, last = _scan(projected, starts[d], step, self.lens, self.reverse[d])
            outs.append(y)
            lasts.append(last)
        y = outs[0].stack(*outs[1:], dim=1)  # (T, D, B, H)
        states = [lasts[0][i].stack(*(s[i] for s in lasts[1:])) for i in range(len(lasts[0]))]
        if self.layout:
            return y.permute((2, 0, 1, 3)), [s.transpose(0, 1) for s in states]
        return y, states


def _gate(x: Tensor, i: int, n: int) -> Tensor:
    return x[..., i * n:(i + 1) * n]


@op("RNN", host="sequence_lens")
def rnn(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Array | None = None,
        initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
        activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0, output_sequence: int = 1) -> tuple[Tensor, Tensor]:
    """``h = f(x W' + h R' + b)`` over the steps."""
    net = _Recurrent(x, w, r, b, sequence_lens, direction, layout, clip)
    fns = _activations(activations, ["Tanh"], activation_alpha, activation_beta, net.directions)

    def step_of(d: int) -> Any:
        wb, rb = net.biases(d, 1)
        projected = net.x.matmul(w[d].transpose())
        projected = projected if wb is None or rb is None else projected + wb + rb
        back = r[d].transpose()
        return projected, lambda p, s: [fns[d][0](net.clipped(p + s[0].matmul(back)))]
    y, (h,) = net.run(step_of, [[net.state(initial_h, d)] for d in range(net.directions)])
    return y, h


@op("GRU", host="sequence_lens")
def gru(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Array | None = None,
        initial_h: Tensor | None = None, *, activation_alpha: Any = None, activation_beta: Any = None,
        activations: list[str] | None = None, clip: float | None = None, direction: str = "forward",
        hidden_size: int | None = None, layout: int = 0, linear_before_reset: int = 0,
        output_sequence: int = 1) -> tuple[Tensor, Tensor]:
    """Gated recurrent unit; gates come in the order update, reset, hidden."""
    net = _Recurrent(x, w, r, b, sequence_lens, direction, layout, clip)
    fns = _activations(activations, ["Sigmoid", "Tanh"], activation_alpha, activation_beta, net.directions)
    n = net.hidden

    def step_of(d: int) -> Any:
        wb, rb = net.biases(d, 3)
        projected = net.x.matmul(w[d].transpose())
        projected = projected if wb is None else projected + wb
        gates, hidden = r[d, :2 * n].transpose(), r[d, 2 * n:].transpose()
        gate_bias = None if rb is None else rb[:2 * n]
        hidden_bias = None if rb is None else rb[2 * n:]

        def step(p: Tensor, s: list[Tensor]) -> list[Tensor]:
            (h,) = s
            both = h.matmul(gates)
            zr = fns[d][0](net.clipped(p[..., :2 * n] + (both if gate_bias is None else both + gate_bias)))
            z, reset = _gate(zr, 0, n), _gate(zr, 1, n)
            inner = h.matmul(hidden) if linear_before_reset else (reset * h).matmul(hidden)
            inner = inner if hidden_bias is None else inner + hidden_bias
            new = fns[d][1](net.clipped(p[..., 2 * n:] + (reset * inner if linear_before_reset else inner)))
            return [(1 - z) * new + z * h]
        return projected, step
    y, (h,) = net.run(step_of, [[net.state(initial_h, d)] for d in range(net.directions)])
    return y, h


@op("LSTM", host="sequence_lens")
def lstm(x: Tensor, w: Tensor, r: Tensor, b: Tensor | None = None, sequence_lens: Array | None = None,
         initial_h: Tensor | None = None, initial_c: Tensor | None = None, p: Tensor | None = None, *,
         activation_alpha: Any = None, activation_beta: Any = None, activations: list[str] | None = None,
         clip: float | None = None, direction: str = "forward", hidden_size: int | None = None, input_forget: int = 0,
         layout: int = 0, output_sequence: int = 1) -> tuple[Tensor, Tensor, Tensor]:
    """Long short-term memory; gates come in the order input, output, forget, cell."""
    net = _Recurrent(x, w, r, b, sequence_lens, direction, layout, clip)
    fns = _activations(activations, ["Sigmoid", "Tanh", "Tanh"], activation_alpha, activation_beta, net.directions)
    n = net.hidden

    def step_of(d: int) -> Any:
        wb, rb = net.biases(d, 4)
        projected = net.x.matmul(w[d].transpose())
        projected = projected if wb is None or rb is None else projected + wb + rb
        back, (f, g, out) = r[d].transpose(), fns[d]
        peep = [None] * 3 if p is None else [_gate(p[d], i, n) for i in range(3)]

        def step(at: Tensor, s: list[Tensor]) -> list[Tensor]:
            h, c = s
            gates = at + h.matmul(back)
            raw = [_gate(gates, i, n) for i in range(4)]
            i = f(net.clipped(_peeped(raw[0], peep[0], c)))
            forget = 1 - i if input_forget else f(net.clipped(_peeped(raw[2], peep[2], c)))
            cell = forget * c + i * g(net.clipped(raw[3]))
            return [f(net.clipped(_peeped(raw[1], peep[1], cell))) * out(cell), cell]
        return projected, step
    starts = [[net.state(initial_h, d), net.state(initial_c, d)] for d in range(net.directions)]
    y, (h, c) = net.run(step_of, starts)
    return y, h, c


def _peeped(gate: Tensor, weight: Any, cell: Tensor) -> Tensor:
    return gate if weight is None else gate + weight * cell
