"""Tree ensembles of the domain ai.onnx.ml, on the host: all rows walk all trees together, one level at a time."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tinyhost.io.onnx.call import Call, check_host_size
from tinyhost.io.onnx.errors import OnnxUnsupported
from tinyhost.io.onnx.ops.ml import labels_of, transformed_scores
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, to_array, to_tensor

_DOMAIN = "ai.onnx.ml"
_MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ", "BRANCH_MEMBER", "LEAF")
_LEAF = _MODES.index("LEAF")


@dataclass(slots=True)
class Forest:
    """Nodes of all trees in one row of arrays; ``roots`` are where the trees start."""

    roots: Array
    features: Array
    modes: Array
    splits: Array
    below: Array  # next node where the test holds
    other: Array
    missing: Array  # whether NaN counts as holding
    members: dict[int, Array]

    def leaves(self, x: Array) -> Array:
        """The leaf that each row reaches in each tree, (rows, trees).

        Raises:
            ValueError: the trees go round in a circle, or a number points nowhere.
        """
        check_host_size(len(x) * len(self.roots), "a tree ensemble")
        at = np.repeat(self.roots[None], len(x), 0)
        row = np.arange(len(x))[:, None]
        for _ in range(len(self.features) + 1):
            leaf = self.modes[at] == _LEAF
            if leaf.all():
                return at
            value = x[row, np.where(leaf, 0, self.features[at])]
            hit = np.where(np.isnan(value), self.missing[at], self._holds(at, value))
            at = np.where(leaf, at, np.where(hit, self.below[at], self.other[at]))
        raise ValueError("the trees go round in a circle")

    def _holds(self, at: Array, value: Array) -> Array:
        split, mode = self.splits[at], self.modes[at]
        tests = [value <= split, value < split, value >= split, value > split, value == split, value != split]
        out = np.select([mode == i for i in range(len(tests))], tests, False)
        for node, members in self.members.items():
            out = np.where(at == node, np.isin(value, members), out)
        return out


def _gathered(leaves: Array, targets: Array, weights: Array, owners: Array, count: int, how: str,
              kind: Any) -> Array:
    """Weights of the leaves reached, combined for each target; ``owners`` is the leaf of each weight."""
    check_host_size(len(leaves) * count, "a tree ensemble")
    start = {"MIN": np.inf, "MAX": -np.inf}.get(how, 0.0)
    out = np.full((len(leaves), count), start, np.float64)
    combine: Any = {"MIN": np.minimum, "MAX": np.maximum, "SUM": np.add, "AVERAGE": np.add}.get(how)
    if combine is None:
        raise ValueError(f"aggregate_function is SUM, AVERAGE, MIN or MAX, got {how!r}")
    order = np.argsort(owners, kind="stable")
    first, last = (np.searchsorted(owners[order], leaves, side) for side in ("left", "right"))
    for k in range(int((last - first).max(initial=0))):
        row, tree = np.nonzero(first + k < last)
        chosen = order[first[row, tree] + k]
        combine.at(out, (row, targets[chosen]), weights[chosen])
    return (out / leaves.shape[1] if how == "AVERAGE" else out).astype(kind)


# *** operators of opset 1 and 3: nodes by (tree, node) numbers ***
def _classic(a: dict[str, Any]) -> tuple[Forest, dict[tuple[int, int], int]]:
    names = list(zip(a["nodes_treeids"], a["nodes_nodeids"]))
    place = {name: i for i, name in enumerate(names)}
    modes = np.array([_MODES.index(m) for m in a["nodes_modes"]])

    def targets(key: str) -> Array:
        return np.array([i if mode == _LEAF else place[tree, to]
                         for i, ((tree, _), to, mode) in enumerate(zip(names, a[key], modes))])
    splits = a.get("nodes_values")
    splits = a.get("nodes_values_as_tensor", ()) if splits is None else splits
    first: dict[int, int] = {}
    for i, (tree, _) in enumerate(names):
        first.setdefault(tree, i)
    missing = a.get("nodes_missing_value_tracks_true") or [0] * len(names)
    forest = Forest(np.array(list(first.values())), np.array(a["nodes_featureids"]), modes,
                    np.array(splits, np.float32), targets("nodes_truenodeids"), targets("nodes_falsenodeids"),
                    np.array(missing, bool), {})
    return forest, place


def _scores(x: Any, a: dict[str, Any], prefix: str, count: int, how: str) -> Array:
    """(rows, targets) of a classic ensemble."""
    rows = np.asarray(to_array(x), np.float32)
    rows = rows.reshape(1, -1) if rows.ndim == 1 else rows
    forest, place = _classic(a)
    owners = np.array([place[k] for k in zip(a[f"{prefix}_treeids"], a[f"{prefix}_nodeids"])], np.int64)
    weights = a.get(f"{prefix}_weights")
    weights = a.get(f"{prefix}_weights_as_tensor", ()) if weights is None else weights
    out = _gathered(forest.leaves(rows), np.array(a[f"{prefix}_ids"]), np.array(weights, np.float64), owners, count,
                    how, np.float32)
    base = a.get("base_values")
    return out if not base else out + np.array(base, np.float32)


@op("TreeEnsembleRegressor", domain=_DOMAIN, raw=True)
def tree_ensemble_regressor(
        x: Any, *, aggregate_function: str = "SUM", base_values: Any = None, base_values_as_tensor: Any = None,
        n_targets: int = 1, nodes_falsenodeids: Any, nodes_featureids: Any, nodes_hitrates: Any = None,
        nodes_hitrates_as_tensor: Any = None, nodes_missing_value_tracks_true: Any = None, nodes_modes: Any,
        nodes_nodeids: Any, nodes_treeids: Any, nodes_truenodeids: Any, nodes_values: Any = None,
        nodes_values_as_tensor: Any = None, post_transform: str = "NONE", target_ids: Any, target_nodeids: Any,
        target_treeids: Any, target_weights: Any = None, target_weights_as_tensor: Any = None, ctx: Call) -> Any:
    """Values of the leaves that each row reaches, combined for each target."""
    scores = _scores(x, ctx.node.attributes, "target", n_targets, aggregate_function)
    return transformed_scores(to_tensor(scores, ctx.device), post_transform)


@op("TreeEnsembleClassifier", domain=_DOMAIN, raw=True)
def tree_ensemble_classifier(
        x: Any, *, base_values: Any = None, base_values_as_tensor: Any = None, class_ids: Any, class_nodeids: Any,
        class_treeids: Any, class_weights: Any = None, class_weights_as_tensor: Any = None,
        classlabels_int64s: Any = None, classlabels_strings: Any = None, nodes_falsenodeids: Any,
        nodes_featureids: Any, nodes_hitrates: Any = None, nodes_hitrates_as_tensor: Any = None,
        nodes_missing_value_tracks_true: Any = None, nodes_modes: Any, nodes_nodeids: Any, nodes_treeids: Any,
        nodes_truenodeids: Any, nodes_values: Any = None, nodes_values_as_tensor: Any = None,
        post_transform: str = "NONE", ctx: Call) -> tuple[Any, Any]:
    """Labels of the largest score, and the scores.

    Raises:
        OnnxUnsupported: two classes share one score.
    """
    count = len(classlabels_strings or classlabels_int64s or ())
    if count == 2 and set(class_ids) != {0, 1}:
        raise OnnxUnsupported("a TreeEnsembleClassifier of two classes with one score is not supported")
    scores = _scores(x, ctx.node.attributes, "class", count, "SUM")
    labels = labels_of(scores.argmax(1), classlabels_int64s, classlabels_strings)
    return labels, transformed_scores(to_tensor(scores, ctx.device), post_transform)


# *** the operator of opset 5 ***
@op("TreeEnsemble", since=5, domain=_DOMAIN, raw=True)
def tree_ensemble(x: Any, *, aggregate_function: int = 1, leaf_targetids: list[int], leaf_weights: Array,
                  membership_values: Array | None = None, n_targets: int | None = None,
                  nodes_falseleafs: list[int], nodes_falsenodeids: list[int], nodes_featureids: list[int],
                  nodes_hitrates: Array | None = None, nodes_missing_value_tracks_true: list[int] | None = None,
                  nodes_modes: Array, nodes_splits: Array, nodes_trueleafs: list[int],
                  nodes_truenodeids: list[int], post_transform: int = 0, tree_roots: list[int],
                  ctx: Call) -> Any:
    """Sum, mean, smallest or largest of the leaves that each row reaches."""
    rows, count, leaves = to_array(x), len(nodes_featureids), len(leaf_targetids)

    def targets(ids: list[int], is_leaf: list[int]) -> Array:  # leaves are numbered behind the nodes
        return np.array([i + count if leaf else i for i, leaf in zip(ids, is_leaf)] + [0] * leaves)
    wide = np.zeros(leaves)
    missing = nodes_missing_value_tracks_true or [0] * count
    forest = Forest(np.array(tree_roots), np.array([*nodes_featureids, *wide.astype(int)]),
                    np.concatenate([nodes_modes.astype(int), wide.astype(int) + _LEAF]),
                    np.concatenate([nodes_splits, wide.astype(nodes_splits.dtype)]),
                    targets(nodes_truenodeids, nodes_trueleafs), targets(nodes_falsenodeids, nodes_falseleafs),
                    np.array([*missing, *wide], bool), _members(nodes_modes, membership_values))
    how = ("AVERAGE", "SUM", "MIN", "MAX")[aggregate_function]
    scores = _gathered(forest.leaves(rows), np.array(leaf_targetids), leaf_weights.astype(np.float64),
                       np.arange(leaves) + count, n_targets or max(leaf_targetids) + 1, how, rows.dtype)
    names = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
    return transformed_scores(to_tensor(scores, ctx.device), names[post_transform])


def _members(modes: Array, values: Array | None) -> dict[int, Array]:
    """The set of each node that tests for members; NaN ends a set."""
    if values is None:
        return {}
    ends = np.flatnonzero(np.isnan(values))
    sets = [s[~np.isnan(s)] for s in np.split(values, ends + 1)]
    nodes = [i for i, m in enumerate(modes) if _MODES[int(m)] == "BRANCH_MEMBER"]
    return dict(zip(nodes, sets))
