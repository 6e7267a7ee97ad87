"""Runs a loaded model on Tensors.

Takes inputs by name; gives outputs by name, lazily: nothing is realized except where the size of a result, a condition
or a loop depends on data. Shape arithmetic happens in numpy: a small integer array stays on the host while everything
it meets is on the host too. Names are dropped after their last use.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tinyhost.errors import DeviceError, TinyhostError
from tinyhost.io.onnx.call import Call, narrowed, with_dtype
from tinyhost.io.onnx.errors import OnnxError, OnnxModelError, OnnxNodeError
from tinyhost.io.onnx.functions import expanded
from tinyhost.io.onnx.inputs import ValueInfo, checked_input
from tinyhost.io.onnx.model import Graph, Node, build_model
from tinyhost.io.onnx.proto import ModelLike, onnx_load
from tinyhost.io.onnx.registry import Implementation
from tinyhost.io.onnx.types import BY_NAME, Narrow, describe, element_of, from_array, to_array, to_tensor, type_name
from tinyhost.tensor import Tensor

__all__ = ["OnnxRunner"]

_KEPT = 1024  # elements of a constant vector that stays on the host, beside its copy on the device


class OnnxRunner:
    """An ONNX model as a callable.

    Args:
        model: path, bytes, uint8 Tensor or ModelProto.
        device: where it runs; None is the default device.
        loop_limit: iterations after which a Loop counts as endless.

    Attributes:
        graph_inputs, graph_outputs: type and shape of each by name; extents are numbers, names or None.
        opsets: imported version of each operator domain, "" being ai.onnx.

    Raises:
        OnnxModelError: the file is damaged or breaks a rule.
        OnnxUnsupported: operators have no implementation; all of them are named.
    """

    def __init__(self, model: ModelLike, device: str | None = None, loop_limit: int = 100_000) -> None:
        self.device, self.loop_limit = device, loop_limit
        proto, base_dir = onnx_load(model)
        self._graph, self._builder = build_model(proto, base_dir)
        self.opsets = dict(self._builder.opsets)
        self.graph_inputs: dict[str, ValueInfo] = dict(self._graph.input_types)
        self.graph_outputs: dict[str, ValueInfo] = dict(self._graph.output_types)
        self._replaceable = {v.name for v in proto.graph.input} & set(self._graph.constants)
        self._ready: set[int] = set()
        self._constants: dict[int, Any] = {}  # arrays of the model that stay on the host, by identity
        self._lifted: dict[int, Tensor] = {}
        self._bodies: dict[Any, tuple[Any, Graph]] = {}
        del proto  # its bytes are not needed beside the device's
        self._prepare(self._graph)

    def __repr__(self) -> str:
        def listed(infos: dict[str, ValueInfo]) -> str:
            return ", ".join(f"{n}: {i}" for n, i in infos.items())
        return f"<OnnxRunner ({listed(self.graph_inputs)}) -> ({listed(self.graph_outputs)}), " \
               f"{len(self._graph.nodes)} nodes>"

    # *** the call ***
    def __call__(self, inputs: Mapping[str, Any] | None = None, outputs: Sequence[str] | None = None) -> dict[str, Any]:
        """Run the model.

        Args:
            inputs: Tensors or numpy arrays by name; lists of them for sequences.
            outputs: names of the values to give instead of the model's outputs; any value of the main graph.

        Returns:
            Tensors by name; numpy arrays for element types that no device has, lists for sequences.

        Raises:
            OnnxError: an input is missing, unknown or of the wrong type or shape, or a node fails.
        """
        given = dict(inputs or {})
        values = self._inputs(given)
        extra = {k: checked_input(k, given[k], None, {}, self.device) for k in given if k in self._replaceable}
        wanted = tuple(self._graph.outputs if outputs is None else outputs)
        found = self._run(self._graph, values, extra, wanted)
        return {name: self._outside(v) for name, v in zip(wanted, found)}

    def _inputs(self, given: dict[str, Any]) -> list[Any]:
        names = set(self._graph.inputs)
        if missing := [n for n, info in self.graph_inputs.items() if n not in given and not info.optional]:
            raise OnnxError(f"inputs {missing} are missing: the model takes "
                            + ", ".join(f"{n} ({i})" for n, i in self.graph_inputs.items()))
        if unknown := sorted(set(given) - names - self._replaceable):
            raise OnnxError(f"the model has no inputs {unknown}: it takes {list(self._graph.inputs)}")
        extents: dict[str, int] = {}
        return [checked_input(n, given.get(n), self.graph_inputs[n], extents, self.device) for n in self._graph.inputs]

    def _outside(self, value: Any) -> Any:
        """A value as it is handed out: what is written to it reaches neither the model nor an input."""
        if isinstance(value, Tensor):
            return value._fresh()
        if isinstance(value, list):
            return [self._outside(v) for v in value]
        if isinstance(value, Narrow):
            return to_array(value)
        if isinstance(value, np.ndarray):
            lifted = from_array(value, self.device)
            return to_array(lifted) if isinstance(lifted, Narrow) else lifted
        return value

    # *** graphs ***
    def _prepare(self, graph: Graph) -> None:
        """Constants to where they are used: short vectors stay until a device needs them, the rest goes there."""
        if id(graph) in self._ready:
            return
        self._ready.add(id(graph))
        tensors = []
        for name, array in graph.constants.items():
            small = array.size <= _KEPT and array.ndim <= 1 and array.dtype.kind in "iubf"
            if array.dtype == object or array.size <= 1 or small:
                self._constants[id(array)] = array
                continue
            value = graph.constants[name] = from_array(array, self.device)
            if isinstance(value, (Tensor, Narrow)):
                tensors.append(to_tensor(value))
        if tensors:
            Tensor.realize(*tensors)

    def _run(self, graph: Graph, values: Sequence[Any], outer: Mapping[str, Any],
             wanted: Sequence[str] | None = None) -> list[Any]:
        """Outputs of a graph for its inputs and the values it captures."""
        self._prepare(graph)
        if len(values) > len(graph.inputs):
            raise OnnxModelError(f"graph {graph.name!r} takes {len(graph.inputs)} inputs, got {len(values)}")
        env: dict[str, Any] = dict(graph.constants)
        env.update(outer)
        env.update(zip(graph.inputs, values))
        keep = frozenset(wanted or ())
        for node in graph.nodes:
            found = self._run_node(node, env)
            for name, value in zip(node.outputs, found):
                if name:
                    env[name] = value
            for name in node.dead:
                if name not in keep:
                    env.pop(name, None)
        names = graph.outputs if wanted is None else wanted
        env[""] = None
        if unknown := [n for n in names if n not in env]:
            raise OnnxError(f"the main graph gives no values {unknown}")
        return [env[n] for n in names]

    def run_graph(self, graph: Graph, values: Sequence[Any], env: Mapping[str, Any]) -> list[Any]:
        """Outputs of a subgraph, whose captured values are read from ``env``."""
        return self._run(graph, values, {n: env[n] for n in graph.captured})

    # *** nodes ***
    def _run_node(self, node: Node, env: dict[str, Any]) -> Sequence[Any]:
        args = [env.get(n) if n else None for n in node.inputs]
        try:
            bound = node.signature.bind(args) if node.signature is not None else {}
            found = self._computed(node, args, env)
            if len(found) < len(node.outputs):
                if any(node.outputs[len(found):]):
                    raise OnnxModelError(f"{len(node.outputs)} outputs are asked for, {len(found)} exist")
            if node.signature is not None and node.body is None:
                found = [self._typed(node, i, v, bound) for i, v in enumerate(found)]
            return found
        except OnnxNodeError:
            raise
        except (MemoryError, DeviceError):
            raise
        except (TinyhostError, ArithmeticError, AssertionError, AttributeError, LookupError, NotImplementedError,
                TypeError, ValueError, RuntimeError) as error:
            shapes = ", ".join(f"{n or '-'}: {describe(a)}" for n, a in zip(node.inputs, args))
            raise OnnxNodeError(f"{node} with inputs {shapes or 'none'}: {error or type(error).__name__}") from error

    def _computed(self, node: Node, args: list[Any], env: dict[str, Any]) -> Sequence[Any]:
        if node.body is not None:
            return self._expanded(node, args)
        call = Call(self, node, env)
        if node.host is not None and all(a is None or isinstance(a, np.ndarray) for a in args):
            with np.errstate(all="ignore"):
                found = self._called(node.host, call, args)
            if found is not NotImplemented:
                return [np.asarray(v) for v in (found if isinstance(found, (tuple, list)) else (found,))]
        assert node.form is not None
        found = self._called(node.form, call, self._placed(node.form, args))
        return found if isinstance(found, (tuple, list)) else (found,)

    def _called(self, form: Implementation, call: Call, args: list[Any]) -> Any:
        attributes = {k: v for k, v in call.node.attributes.items() if k in form.attributes}
        if form.with_call:
            attributes["ctx"] = call
        return form.function(*args, **attributes)

    def _placed(self, form: Implementation, args: list[Any]) -> list[Any]:
        """Arguments as the implementation takes them: on the host, on the device, or as they are."""
        if form.raw:
            return [to_array(a) if i in form.host and a is not None else a for i, a in enumerate(args)]
        return [a if a is None or isinstance(a, list) else to_array(a) if i in form.host else self.lift(a)
                for i, a in enumerate(args)]

    def is_constant(self, value: Any) -> bool:
        """Whether an array on the host is part of the model."""
        return id(value) in self._constants

    def lift(self, value: Any) -> Tensor:
        """A tensor value on the device; single numbers of the model become literals."""
        if not isinstance(value, np.ndarray):
            return to_tensor(value)
        if not self.is_constant(value):
            return to_tensor(value, self.device)
        found = self._lifted.get(id(value))
        if found is None:
            kind = element_of(value)
            literal = value.size == 1 and kind.native and kind.dtype is not None
            found = Tensor.const(value.reshape(()).item(), kind.dtype).reshape(value.shape) if literal else \
                to_tensor(value, self.device).realize()
            self._lifted[id(value)] = found
        return found

    def _typed(self, node: Node, i: int, value: Any, bound: dict[str, str]) -> Any:
        """A result in the type that the schema demands; results of weak type get the default."""
        assert node.signature is not None
        wanted = node.signature.output_type(i, bound)
        if isinstance(value, Tensor) and value.dtype.is_weak:
            value = with_dtype(value, wanted)
        if not wanted.startswith("tensor(") or isinstance(value, list) or value is None or type_name(value) == wanted:
            return value
        return narrowed(value, wanted) if isinstance(value, Tensor) else value.astype(_array_dtype(wanted))

    def _expanded(self, node: Node, args: list[Any]) -> Sequence[Any]:
        """Results of a function of the model, or of the operator's own body."""
        key, graph = expanded(node, args, self._builder, self._bodies)
        self._bodies[key] = (node.body, graph)
        padded = [*args, *(None for _ in range(len(graph.inputs) - len(args)))]
        return self._run(graph, padded, {})


def _array_dtype(name: str) -> Any:
    return BY_NAME[name[len("tensor("):-1]].array
