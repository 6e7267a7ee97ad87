"""A few operators of the domain ai.onnx.ml: lookups and tree ensembles, on the host."""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.io.onnx.call import check_host_size
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, to_array
from tinyhost.tensor import Tensor

_DOMAIN = "ai.onnx.ml"


@op("ArrayFeatureExtractor", domain=_DOMAIN, raw=True)
def array_feature_extractor(x: Any, y: Any) -> Array:
    """Columns of the last axis."""
    array, places = to_array(x), to_array(y).reshape(-1)
    out = np.take(array, places, axis=-1)
    return out.reshape(1, -1) if array.ndim == 1 else out


@op("Binarizer", domain=_DOMAIN)
def binarizer(x: Tensor, *, threshold: float = 0.0) -> Tensor:
    """1 above the threshold, else 0."""
    return (x > threshold).where(1, 0)


@op("LabelEncoder", domain=_DOMAIN, raw=True)
def label_encoder(x: Any, *, keys_floats: Any = None, keys_int64s: Any = None, keys_strings: Any = None,
                  keys_tensor: Any = None, values_floats: Any = None, values_int64s: Any = None,
                  values_strings: Any = None, values_tensor: Any = None, default_float: float = -0.0,
                  default_int64: int = -1, default_string: str = "_Unused", default_tensor: Any = None,
                  classes_strings: Any = None) -> Array:
    """Values looked up by keys; what has no key gets the default."""
    array = to_array(x)
    kind: Any
    default: Any
    if classes_strings is not None:
        strings = array.dtype == object
        keys: Any = classes_strings if strings else range(len(classes_strings))
        values: Any = range(len(classes_strings)) if strings else classes_strings
        kind, default = (np.int64, default_int64) if strings else (object, default_string)
    else:
        keys = next((k for k in (keys_floats, keys_int64s, keys_strings, keys_tensor) if k is not None), None)
        forms = ((values_floats, np.float32, default_float), (values_int64s, np.int64, default_int64),
                 (values_strings, object, default_string))
        found: Any = next((f for f in forms if f[0] is not None), (values_tensor, None, None))
        values, kind, default = found
        if kind is None and values is not None:
            kind = values.dtype
            default = default_tensor.reshape(-1)[0] if default_tensor is not None else \
                "_Unused" if kind.kind == "O" else kind.type(-1)
    if keys is None or values is None or len(keys) != len(values):
        raise ValueError("LabelEncoder needs as many values as keys")
    table = {_key(k): v for k, v in zip(np.asarray(keys).tolist(), np.asarray(values).tolist())}
    return np.array([table.get(_key(v), default) for v in array.reshape(-1).tolist()], dtype=kind).reshape(array.shape)


def _key(v: Any) -> Any:
    return "nan" if isinstance(v, float) and v != v else v


_MODES = ("<=", "<", ">=", ">", "==", "!=", "in")


@op("TreeEnsemble", since=5, domain=_DOMAIN, raw=True)
def tree_ensemble(x: Any, *, aggregate_function: int = 1, leaf_targetids: list[int], leaf_weights: Array,
                  membership_values: Array | None = None, n_targets: int | None = None,
                  nodes_falseleafs: list[int], nodes_falsenodeids: list[int], nodes_featureids: list[int],
                  nodes_hitrates: Array | None = None, nodes_missing_value_tracks_true: list[int] | None = None,
                  nodes_modes: Array, nodes_splits: Array, nodes_trueleafs: list[int],
                  nodes_truenodeids: list[int], post_transform: int = 0, tree_roots: list[int]) -> Array:
    """Sum, mean, smallest or largest of the leaves that each row reaches."""
    if post_transform:
        raise NotImplementedError("TreeEnsemble with a post_transform is not supported")
    rows = to_array(x)
    members = _members(nodes_modes, membership_values)
    targets = n_targets or max(leaf_targetids) + 1
    check_host_size(rows.shape[0] * targets, "TreeEnsemble")
    out = np.zeros((rows.shape[0], targets), rows.dtype)
    start = {1: 0.0, 0: 0.0, 2: np.inf, 3: -np.inf}[aggregate_function]
    out[:] = start
    for r, row in enumerate(rows):
        for root in tree_roots:
            at, leaf = root, False
            for _ in range(len(nodes_splits) + 1):
                if leaf:
                    break
                value = row[nodes_featureids[at]]
                missing = bool(nodes_missing_value_tracks_true and nodes_missing_value_tracks_true[at])
                hit = missing if np.isnan(value) else _holds(int(nodes_modes[at]), value, nodes_splits[at],
                                                             members.get(at, ()))
                leaf = bool((nodes_trueleafs if hit else nodes_falseleafs)[at])
                at = (nodes_truenodeids if hit else nodes_falsenodeids)[at]
            if not leaf:
                raise ValueError("the trees go round in a circle")
            _gathered(out[r], leaf_targetids[at], leaf_weights[at], aggregate_function)
    return out / len(tree_roots) if aggregate_function == 0 else out


def _members(modes: Array, values: Array | None) -> dict[int, tuple[Any, ...]]:
    """The set of each node of mode "in", which NaN ends."""
    if values is None:
        return {}
    sets: list[list[Any]] = [[]]
    for v in values:
        if np.isnan(v):
            sets.append([])
        else:
            sets[-1].append(v)
    nodes = [i for i, m in enumerate(modes) if _MODES[int(m)] == "in"]
    return {i: tuple(s) for i, s in zip(nodes, sets)}


def _holds(mode: int, value: Any, split: Any, members: tuple[Any, ...]) -> bool:
    tests = {"<=": value <= split, "<": value < split, ">=": value >= split, ">": value > split,
             "==": value == split, "!=": value != split}
    name = _MODES[mode]
    return value in members if name == "in" else bool(tests[name])


def _gathered(row: Array, target: int, weight: Any, how: int) -> None:
    row[target] = min(row[target], weight) if how == 2 else max(row[target], weight) if how == 3 else \
        row[target] + weight
