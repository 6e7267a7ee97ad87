"""Small models for tests."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

F, I = TensorProto.FLOAT, TensorProto.INT64
# two trees: the first of three leaves, the second of two
TREES: dict[str, Any] = dict(
    nodes_treeids=[0] * 5 + [1] * 3, nodes_nodeids=[0, 1, 2, 3, 4, 0, 1, 2], nodes_featureids=[0, 1, 0, 0, 0, 1, 0, 0],
    nodes_modes=["BRANCH_LEQ", "BRANCH_GT", "LEAF", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"],
    nodes_values=[0.1, -0.2, 0.0, 0.0, 0.0, 0.3, 0.0, 0.0], nodes_truenodeids=[1, 3, 0, 0, 0, 1, 0, 0],
    nodes_falsenodeids=[2, 4, 0, 0, 0, 2, 0, 0], nodes_missing_value_tracks_true=[1, 0, 0, 0, 0, 1, 0, 0])


def value(name: str, shape: Sequence[Any] | None = None, kind: int = F) -> Any:
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any], constants: dict[str, np.ndarray] = {},
          opset: int = 21, functions: Sequence[Any] = (), opsets: dict[str, int] = {}) -> ModelProto:
    """A model of nodes; inputs and outputs are names (float of any shape) or value infos."""
    def infos(items: Sequence[Any]) -> list[Any]:
        return [value(v) if isinstance(v, str) else v for v in items]
    graph = helper.make_graph(list(nodes), "g", infos(inputs), infos(outputs),
                              [numpy_helper.from_array(a, name) for name, a in constants.items()])
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, v) for d, v in opsets.items())]
    return helper.make_model(graph, opset_imports=imports, functions=list(functions))


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> Any:
    """A node; names are separated by spaces, "-" is an input left out."""
    return helper.make_node(op, ["" if n == "-" else n for n in inputs.split()], outputs.split(), **attributes)
