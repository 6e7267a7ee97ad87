"""A ModelProto as graphs of resolved nodes.

Takes protos; gives ``Graph``: constants as values, nodes in order with their implementation, their attributes decoded
and the names that die with them. Every rule a graph can break is checked here, and all operators without an
implementation are reported together. Nothing is computed.
"""
from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import onnx
import onnx.defs
from onnx import AttributeProto

from tinyhost.io.onnx.errors import OnnxModelError, OnnxUnsupported
from tinyhost.io.onnx.inputs import ValueInfo, value_infos
from tinyhost.io.onnx.proto import sparse_array, tensor_array
from tinyhost.io.onnx.registry import Implementation, find
from tinyhost.io.onnx.signature import Signature, signature

NODE_LIMIT = 1_000_000  # nodes of a model with its functions expanded
DEPTH_LIMIT = 64  # subgraphs in subgraphs, functions in functions
Functions: TypeAlias = dict[tuple[str, str, str], Any]  # FunctionProto by (domain, name, overload)


@dataclass(slots=True)
class Node:
    """One operator call, resolved.

    Attributes:
        opset: version of its domain that the model imports.
        form, host: functions on Tensors and on arrays; body: the function to expand instead.
        captured: names of outer values that its subgraphs read.
        dead: names that nothing reads after it.
    """

    name: str
    op: str
    domain: str
    opset: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: dict[str, Any]
    form: Implementation | None = None
    host: Implementation | None = None
    body: Any = None
    signature: Signature | None = None
    captured: tuple[str, ...] = ()
    dead: tuple[str, ...] = ()
    proto: Any = None

    def __str__(self) -> str:
        place = f"node {self.name!r} ({self.op}" if self.name else f"node ({self.op}"
        return f"{place}, domain {self.domain or 'ai.onnx'!r}, opset {self.opset})"


@dataclass(slots=True)
class Graph:
    """A graph that can be run: the values of ``captured`` come from around it."""

    name: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    constants: dict[str, Any] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    captured: tuple[str, ...] = ()
    input_types: dict[str, ValueInfo] = field(default_factory=dict)
    output_types: dict[str, ValueInfo] = field(default_factory=dict)


class Builder:
    """What graphs of one model share: opsets, functions, the folder of external data."""

    def __init__(self, opsets: dict[str, int], functions: Functions, base_dir: str | None) -> None:
        self.opsets, self.functions, self.base_dir = opsets, functions, base_dir
        self.missing: dict[str, list[str]] = {}
        self.references: dict[str, Any] = {}  # attributes of the function call that is being expanded

    # *** graphs ***
    def graph(self, proto: Any, outer: frozenset[str] = frozenset(), depth: int = 0) -> Graph:
        """The graph of a GraphProto; ``outer`` are names that it may read from around it.

        Raises:
            OnnxModelError: the graph breaks a rule.
        """
        if depth > DEPTH_LIMIT:
            raise OnnxModelError(f"graph {proto.name!r} lies in more than {DEPTH_LIMIT} graphs")
        constants = {text_of(t.name): tensor_array(t, self.base_dir, f"initializer {t.name!r}")
                     for t in proto.initializer}
        for s in proto.sparse_initializer:
            constants[text_of(s.values.name)] = sparse_array(s, self.base_dir, f"sparse initializer {s.values.name!r}")
        given = [v for v in proto.input if text_of(v.name) not in constants]
        ret = Graph(text_of(proto.name), tuple(v.name for v in given), tuple(text_of(v.name) for v in proto.output),
                    constants,
                    input_types=value_infos(given), output_types=value_infos(proto.output))
        if len(set(ret.inputs)) != len(ret.inputs):
            raise OnnxModelError(f"graph {proto.name!r} names an input twice: {list(ret.inputs)}")
        self._fill(ret, proto.node, outer, depth)
        return ret

    def function(self, proto: Any, attributes: dict[str, Any], wanted: tuple[str, ...]) -> Graph:
        """The graph of a FunctionProto for a call with the given attributes and names of outputs."""
        opsets = {_domain(o.domain): int(o.version) for o in proto.opset_import}
        inner = Builder({"": onnx.defs.onnx_opset_version()} | self.opsets | opsets, self.functions, self.base_dir)
        inner.references = {name: None for name in proto.attribute}
        for a in proto.attribute_proto:
            inner.references[a.name] = inner.attribute(a, frozenset(), 0)
        inner.references |= attributes
        # a body may leave out what the call does not ask for
        outputs = tuple(name if asked else "" for name, asked in zip(proto.output, wanted))
        ret = Graph(text_of(proto.name), tuple(map(text_of, proto.input)), outputs)
        inner._fill(ret, proto.node, frozenset(), 0)
        inner.report()
        return ret

    def _fill(self, graph: Graph, protos: Iterable[Any], outer: frozenset[str], depth: int) -> None:
        """Nodes of a graph, in order, with what they read and what dies."""
        known = set(graph.inputs) | set(graph.constants)
        captured: dict[str, None] = {}
        protos = list(protos)
        for proto in protos:
            visible = outer | known
            node = self._node(proto, visible, depth)
            for name in (*node.inputs, *node.captured):
                if name and name not in known:
                    if name not in outer:
                        raise _undefined(graph, node, name, protos)
                    captured[name] = None
            for name in node.outputs:
                if name and name in known:
                    raise OnnxModelError(f"graph {graph.name!r}: {node} gives {name!r}, which exists already; each "
                                         "name is given once")
            known.update(n for n in node.outputs if n)
            if node.op == "Constant" and node.domain == "" and node.outputs and (value := _constant(node)) is not None:
                graph.constants[node.outputs[0]] = value
            else:
                graph.nodes.append(node)
        for name in graph.outputs:
            if name and name not in known:
                if name not in outer:
                    raise OnnxModelError(f"graph {graph.name!r} has output {name!r}, which no node gives")
                captured[name] = None
        graph.captured = tuple(captured)
        _mark_deaths(graph)

    # *** nodes ***
    def _node(self, proto: Any, visible: frozenset[str], depth: int) -> Node:
        domain = _domain(proto.domain)
        attributes = {text_of(a.name): self.attribute(a, visible, depth) for a in proto.attribute}
        attributes = {k: v for k, v in attributes.items() if v is not None}
        node = Node(text_of(proto.name), text_of(proto.op_type), domain, self.opsets.get(domain, 0),
                    tuple(map(text_of, proto.input)), tuple(map(text_of, proto.output)), attributes)
        inner: dict[str, None] = {}
        for v in attributes.values():
            for g in v if isinstance(v, list) else (v,):
                if isinstance(g, Graph):
                    inner.update(dict.fromkeys(g.captured))
        node.captured = tuple(inner)
        self._resolve(node, proto)
        return node

    def _resolve(self, node: Node, proto: Any) -> None:
        """Find what computes the node: a function of the model, an implementation, or the body in the schema."""
        local = self.functions.get((node.domain, node.op, getattr(proto, "overload", "")))
        if local is not None:
            node.body = local
            return
        if not node.opset:
            raise OnnxModelError(f"{node}: the model imports no opset of domain {node.domain or 'ai.onnx'!r}")
        node.signature = signature(node.domain, node.op, node.opset)
        node.form, node.host = find(node.domain, node.op, node.opset)
        if node.form is not None:
            form = node.form
            self._check_call(node, form.inputs, None if form.variadic else len(form.inputs), form.required,
                             form.attributes, form.needed)
        elif node.signature is not None and node.signature.has_body:
            sig = node.signature
            self._check_call(node, tuple(p.name for p in sig.inputs), sig.schema.max_input, sig.schema.min_input,
                             frozenset(sig.schema.attributes), sig.needed)
            node.attributes = sig.defaults | node.attributes
            node.body, node.proto = node.signature, copied(proto)
        elif not (node.op == "Constant" and node.domain == ""):
            known = "" if node.signature is not None else ", and the onnx package has no such operator"
            self.missing.setdefault(f"{node.op} (domain {node.domain or 'ai.onnx'!r}, opset {node.opset}{known})",
                                    []).append(node.name)

    def _check_call(self, node: Node, names: tuple[str, ...], most: int | None, required: int,
                    attributes: frozenset[str], needed: frozenset[str]) -> None:
        """Number of inputs and names of attributes are those of the operator."""
        if bad := sorted(set(node.attributes) - attributes):
            raise OnnxUnsupported(f"{node}: attributes {bad} are not supported, this operator has "
                                  f"{sorted(attributes) or 'none'}")
        if lacking := sorted(needed - set(node.attributes)):
            raise OnnxModelError(f"{node} lacks its attributes {lacking}")
        count = len(node.inputs)
        if most is not None and count > most:
            raise OnnxModelError(f"{node} has {count} inputs, it takes at most {most}: {list(names)}")
        if any(not n for n in node.inputs[:required]) or count < required:
            raise OnnxModelError(f"{node} needs its first {required} inputs {list(names[:required])}, got "
                                 f"{list(node.inputs)}")

    # *** attributes ***
    def attribute(self, a: Any, visible: frozenset[str], depth: int) -> Any:
        """The value of an AttributeProto; None for a reference to an attribute that the call left out."""
        if a.ref_attr_name:
            if a.ref_attr_name not in self.references:
                raise OnnxModelError(f"attribute {a.name!r} refers to {a.ref_attr_name!r}, which is no attribute of a "
                                     "function around it")
            return self.references[a.ref_attr_name]
        what = f"attribute {a.name!r}"
        kind = a.type
        if kind in (a.FLOAT, a.INT):
            return float(a.f) if kind == a.FLOAT else int(a.i)
        if kind == a.STRING:
            return _text(a.s, what)
        if kind == a.TENSOR:
            return tensor_array(a.t, self.base_dir, what)
        if kind == a.SPARSE_TENSOR:
            return sparse_array(a.sparse_tensor, self.base_dir, what)
        if kind == a.GRAPH:
            return self.graph(a.g, visible, depth + 1)
        if kind in (a.FLOATS, a.INTS):
            return [float(x) for x in a.floats] if kind == a.FLOATS else [int(x) for x in a.ints]
        if kind == a.STRINGS:
            return [_text(s, what) for s in a.strings]
        if kind == a.TENSORS:
            return [tensor_array(t, self.base_dir, what) for t in a.tensors]
        if kind == a.GRAPHS:
            return [self.graph(g, visible, depth + 1) for g in a.graphs]
        if kind == a.TYPE_PROTO:
            return copied(a.tp)
        names = AttributeProto.AttributeType
        known = names.Name(kind) if kind in names.values() else str(kind)
        raise OnnxUnsupported(f"{what} is of type {known}, which is not supported")

    def report(self) -> None:
        """Raises:
            OnnxUnsupported: operators have no implementation; all of them are named.
        """
        if self.missing:
            lines = [f"  {what}: {len(nodes)} nodes" + (f", first {nodes[0]!r}" if nodes[0] else "")
                     for what, nodes in sorted(self.missing.items())]
            raise OnnxUnsupported("operators without an implementation:\n" + "\n".join(lines))


def copied(proto: Any) -> Any:
    """A message of its own: a part of a model would keep the whole model, weights included, in memory."""
    new = type(proto)()
    new.CopyFrom(proto)
    return new


def text_of(name: Any) -> str:
    """A name; protobuf gives what is no text as bytes.

    Raises:
        OnnxModelError: it is no text.
    """
    if not isinstance(name, str):
        raise OnnxModelError(f"the name {name!r} is no UTF-8 text: the file is damaged")
    return name


def _domain(name: Any) -> str:
    return "" if name == "ai.onnx" else text_of(name)


def _text(raw: bytes, what: str) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise OnnxModelError(f"{what} is no UTF-8 text: {error}") from error


def _undefined(graph: Graph, node: Node, name: str, protos: list[Any]) -> OnnxModelError:
    maker = next((p for p in protos if name in p.output), None)
    why = "no input, initializer or node gives it" if maker is None else \
        f"only node {maker.name!r} ({maker.op_type}), which does not come before it, gives it: the nodes are not in " \
        "order, or go round in a circle"
    return OnnxModelError(f"graph {graph.name!r}: {node} reads {name!r}, but {why}")


def _constant(node: Node) -> Any:
    """The value of a Constant node; None for a form that is computed by its implementation."""
    import numpy as np
    if len(node.attributes) != 1:
        raise OnnxModelError(f"{node} needs exactly one value, got {sorted(node.attributes) or 'none'}")
    key, value = next(iter(node.attributes.items()))
    kinds: dict[str, Any] = {"value_int": np.int64, "value_ints": np.int64, "value_float": np.float32,
                             "value_floats": np.float32, "value_string": object, "value_strings": object}
    if key in ("value", "sparse_value"):
        return value
    if key not in kinds:
        raise OnnxModelError(f"{node} has no attribute {key!r}")
    return np.array(value, dtype=kinds[key])


def _mark_deaths(graph: Graph) -> None:
    """Note on each node the names that nothing reads after it."""
    last: set[str] = set(graph.outputs)
    for node in reversed(graph.nodes):
        dead = []
        for name in dict.fromkeys((*node.inputs, *node.captured, *node.outputs)):
            if name and name not in last:
                last.add(name)
                dead.append(name)
        node.dead = tuple(dead)


# *** models ***
def build_model(model: Any, base_dir: str | None) -> tuple[Graph, Builder]:
    """The graph of a ModelProto.

    Raises:
        OnnxModelError, OnnxUnsupported: the model breaks a rule, or needs what is not there.
    """
    opsets = {_domain(o.domain): int(o.version) for o in model.opset_import}
    newest = onnx.defs.onnx_opset_version()
    if not opsets:
        raise OnnxModelError("the model imports no opset: it is no ONNX model, or damaged")
    if not 1 <= opsets.get("", 1) <= newest:
        raise OnnxUnsupported(f"the model needs opset {opsets['']}, the installed onnx package knows 1 to {newest}")
    functions = {(_domain(f.domain), text_of(f.name), text_of(getattr(f, "overload", ""))): copied(f)
                 for f in model.functions}
    builder = Builder(opsets, functions, base_dir)
    try:
        _check_functions(model, functions)
        graph = builder.graph(model.graph)
    except RecursionError as error:
        raise OnnxModelError("the model nests deeper than can be read") from error
    builder.report()
    return graph, builder


def _nodes_of(nodes: Iterable[Any]) -> Iterable[Any]:
    """All NodeProtos, those of subgraphs included."""
    stack = list(nodes)
    while stack:
        node = stack.pop()
        yield node
        for a in node.attribute:
            stack.extend(a.g.node)
            for g in a.graphs:
                stack.extend(g.node)


def _check_functions(model: Any, functions: Functions) -> None:
    """Functions do not call themselves, expand to a bounded number of nodes, and have known operators."""
    def callees(nodes: Iterable[Any]) -> tuple[int, list[tuple[str, str, str]]]:
        count, calls = 0, []
        for n in _nodes_of(nodes):
            count += 1
            key = (_domain(n.domain), text_of(n.op_type), text_of(getattr(n, "overload", "")))
            if key in functions:
                calls.append(key)
        return count, calls

    needs = {key: callees(f.node) for key, f in functions.items()}
    sizes: dict[tuple[str, str, str], int] = {}
    depths: dict[tuple[str, str, str], int] = {}
    waiting = dict(needs)
    while waiting:
        ready = [k for k, (_, calls) in waiting.items() if all(c in sizes for c in calls)]
        if not ready:
            names = ", ".join(sorted(k[1] for k in waiting))
            raise OnnxModelError(f"the functions {names} call themselves: a function must not")
        for k in ready:
            count, calls = waiting.pop(k)
            sizes[k] = min(count + sum(sizes[c] for c in calls), NODE_LIMIT + 1)
            depths[k] = 1 + max((depths[c] for c in calls), default=0)
    if max(depths.values(), default=0) > DEPTH_LIMIT:
        raise OnnxModelError(f"functions call each other more than {DEPTH_LIMIT} deep: refused")
    count, calls = callees(model.graph.node)
    if count + sum(sizes[c] for c in calls) > NODE_LIMIT:
        raise OnnxModelError(f"the model expands to more than {NODE_LIMIT} nodes: refused")
    builders_missing: dict[str, list[str]] = {}
    for f in functions.values():
        _scan_function(f, functions, builders_missing)
    if builders_missing:
        probe = Builder({}, functions, None)
        probe.missing = builders_missing
        probe.report()


def _scan_function(f: Any, functions: Functions, missing: dict[str, list[str]]) -> None:
    """Note operators of a function that nothing computes."""
    opsets = {_domain(o.domain): int(o.version) for o in f.opset_import}
    for n in _nodes_of(f.node):
        domain = _domain(n.domain)
        if (domain, n.op_type, getattr(n, "overload", "")) in functions or (domain, n.op_type) == ("", "Constant"):
            continue
        opset = opsets.get(domain, 0)
        sig = signature(domain, n.op_type, opset) if opset else None
        if find(domain, n.op_type, opset)[0] is None and not (sig is not None and sig.has_body):
            missing.setdefault(f"{n.op_type} (domain {domain or 'ai.onnx'!r}, opset {opset}, in function {f.name!r})",
                               []).append(n.name)
