"""Operators that are defined by others: functions of the model, and bodies in the schemas of the onnx package.

Takes a node and its arguments; gives the graph to run instead. Graphs are built once for each call and, where a body
depends on types, for each combination of types.
"""
from __future__ import annotations

from typing import Any

import onnx
from onnx import helper

from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.model import Builder, Graph, Node
from tinyhost.io.onnx.signature import Signature
from tinyhost.io.onnx.types import element_of, type_name


def expanded(node: Node, args: list[Any], builder: Builder, cache: dict[Any, tuple[Any, Graph]]) -> tuple[Any, Graph]:
    """(key, graph) of what stands for a node.

    Raises:
        OnnxUnsupported: the body holds operators without an implementation, or needs types that are not known.
    """
    key = (id(node), tuple(map(_type_key, args)))
    found = cache.get(key)
    if found is not None:
        return key, found[1]
    proto = _schema_body(node, node.body, args) if isinstance(node.body, Signature) else node.body
    graph = builder.function(proto, node.attributes, node.outputs)
    return key, graph


def _type_key(value: Any) -> Any:
    return type_name(value), len(value.shape) if hasattr(value, "shape") else None


def _schema_body(node: Node, sig: Signature, args: list[Any]) -> Any:
    """The FunctionProto of an operator's own body."""
    schema = sig.schema
    versions = schema.function_opset_versions or schema.context_dependent_function_opset_versions
    version = max((v for v in versions if v <= node.opset), default=min(versions))
    if schema.has_function:
        raw = schema.get_function_with_opset_version(version)
        return raw if isinstance(raw, onnx.FunctionProto) else onnx.FunctionProto.FromString(raw)
    call = onnx.NodeProto()
    call.CopyFrom(node.proto)
    given = {a.name for a in call.attribute}
    del call.attribute[:]
    call.attribute.extend(a for a in node.proto.attribute if not a.ref_attr_name)
    for name in sorted(given - {a.name for a in call.attribute}):  # values that came through a reference
        if name in node.attributes:
            call.attribute.append(helper.make_attribute(name, node.attributes[name]))
    raw = schema.get_context_dependent_function_with_opset_version(version, call.SerializeToString(),
                                                                   [_type_proto(a).SerializeToString() for a in args])
    body = onnx.FunctionProto.FromString(raw)
    if not body.node:
        raise OnnxUnsupported(f"{node}: the onnx package has no body for these types")
    return body


def _type_proto(value: Any) -> Any:
    if value is None:
        return onnx.TypeProto()
    if isinstance(value, list):
        return helper.make_sequence_type_proto(_type_proto(value[0] if value else None))
    return helper.make_tensor_type_proto(element_of(value).code, list(value.shape))
