"""Operators of the domain ai.onnx.ml: lookups, preparation of features, linear models.

What selects or looks up is done on the host; arithmetic gives Tensors. Tree ensembles are in ``trees``.
"""
from __future__ import annotations

from typing import Any

import numpy as np

from tinyhost.dtype import dtypes
from tinyhost.io.onnx.call import Call, check_host_size
from tinyhost.io.onnx.errors import OnnxUnsupported
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


# *** features ***
@op("Scaler", domain=_DOMAIN)
def scaler(x: Tensor, *, offset: list[float] | None = None, scale: list[float] | None = None) -> Tensor:
    """``(x - offset) * scale`` along the last axis."""
    y = x.cast(dtypes.float32)
    y = y if offset is None else y - Tensor(np.array(offset, np.float32), device=x.device)
    return y if scale is None else y * Tensor(np.array(scale, np.float32), device=x.device)


@op("Normalizer", domain=_DOMAIN)
def normalizer(x: Tensor, *, norm: str = "MAX") -> Tensor:
    """Rows divided by their largest value, or their 1- or 2-norm; a row of zeros stays."""
    y = x.cast(dtypes.float32)
    sizes: dict[str, Any] = {"MAX": lambda: y.max(-1, keepdim=True), "L1": lambda: y.abs().sum(-1, keepdim=True),
                             "L2": lambda: y.square().sum(-1, keepdim=True).sqrt()}
    if norm not in sizes:
        raise ValueError(f"norm is one of {sorted(sizes)}, got {norm!r}")
    size = sizes[norm]()
    return y / size.eq(0).where(1, size)


@op("Imputer", domain=_DOMAIN)
def imputer(x: Tensor, *, imputed_value_floats: list[float] | None = None,
            imputed_value_int64s: list[int] | None = None, replaced_value_float: float = 0.0,
            replaced_value_int64: int = 0) -> Tensor:
    """One value, which may be NaN, replaced by those given for each column."""
    new = imputed_value_floats if x.dtype.is_float else imputed_value_int64s
    if not new:
        raise ValueError("Imputer needs values of the type of its input")
    old: Any = replaced_value_float if x.dtype.is_float else replaced_value_int64
    hit = x.isnan() if old != old else x.eq(old)
    kind = np.float64 if x.dtype is dtypes.float64 else np.float32 if x.dtype.is_float else np.int64
    return hit.where(Tensor(np.array(new, kind), device=x.device).cast(x.dtype), x)


@op("FeatureVectorizer", domain=_DOMAIN)
def feature_vectorizer(first: Tensor, *rest: Tensor, inputdimensions: list[int] | None = None) -> Tensor:
    """Columns side by side, as floats."""
    rows = [t.cast(dtypes.float32).reshape((t.shape[0] if t.ndim > 1 else 1, -1)) for t in (first, *rest)]
    for i, width in enumerate(inputdimensions or ()):
        rows[i] = rows[i].shrink((None, (0, min(width, rows[i].shape[1]))))
    return rows[0].cat(*rows[1:], dim=1)


@op("OneHotEncoder", domain=_DOMAIN, raw=True)
def one_hot_encoder(x: Any, *, cats_int64s: list[int] | None = None, cats_strings: list[str] | None = None,
                    zeros: int = 1) -> Array:
    """1 at the place of the category along a new last axis.

    Raises:
        ValueError: a value is no category, and ``zeros`` is 0.
    """
    array = to_array(x)
    categories: Any = (cats_strings if array.dtype == object else cats_int64s) or ()
    table = {c: i for i, c in enumerate(categories)}
    check_host_size(array.size * len(table), "OneHotEncoder")
    out = np.zeros((array.size, len(table)), np.float32)
    for row, v in zip(out, array.reshape(-1).tolist()):
        place = table.get(v)
        if place is None and not zeros:
            raise ValueError(f"{v!r} is no category of OneHotEncoder")
        if place is not None:
            row[place] = 1
    return out.reshape((*array.shape, len(table)))


# *** linear models ***
def transformed_scores(scores: Tensor, post_transform: str) -> Tensor:
    """Scores after a transform by name.

    Raises:
        OnnxUnsupported: the transform is PROBIT, or unknown.
    """
    if post_transform == "SOFTMAX":
        return scores.softmax(-1)
    if post_transform == "LOGISTIC":
        return scores.sigmoid()
    if post_transform == "SOFTMAX_ZERO":
        return scores.eq(0).where(0, scores.softmax(-1))
    if post_transform != "NONE":
        raise OnnxUnsupported(f"post_transform {post_transform!r} is not supported")
    return scores


def _linear(x: Tensor, coefficients: list[float], intercepts: list[float] | None, outputs: int) -> Tensor:
    rows = x.cast(dtypes.float32) if x.ndim > 1 else x.cast(dtypes.float32).reshape((1, -1))
    weights = Tensor(np.array(coefficients, np.float32).reshape(outputs, -1), device=x.device)
    y = rows.matmul(weights.transpose())
    return y if not intercepts else y + Tensor(np.array(intercepts, np.float32), device=x.device)


@op("LinearRegressor", domain=_DOMAIN)
def linear_regressor(x: Tensor, *, coefficients: list[float], intercepts: list[float] | None = None,
                     post_transform: str = "NONE", targets: int = 1) -> Tensor:
    """``x @ coefficients + intercepts``."""
    return transformed_scores(_linear(x, coefficients, intercepts, targets), post_transform)


def labels_of(index: Array, ints: list[int] | None, strings: list[str] | None) -> Array:
    """Labels by class numbers.

    Raises:
        ValueError: there are no labels.
    """
    labels = np.array(strings, object) if strings else np.array(ints or (), np.int64)
    if not labels.size:
        raise ValueError("a classifier needs classlabels_ints or classlabels_strings")
    return labels[index]


@op("LinearClassifier", domain=_DOMAIN)
def linear_classifier(x: Tensor, *, classlabels_ints: list[int] | None = None,
                      classlabels_strings: list[str] | None = None, coefficients: list[float],
                      intercepts: list[float] | None = None, multi_class: int = 0, post_transform: str = "NONE",
                      ctx: Call) -> tuple[Any, Tensor]:
    """Labels of the largest score, and the scores; one score stands for two classes."""
    count = len(classlabels_strings or classlabels_ints or ())
    single = count == 2 and len(intercepts or (0, 0)) == 1
    scores = _linear(x, coefficients, intercepts, 1 if single else count)
    if single:
        index = (scores[:, 0] > 0).cast(dtypes.int32)
        other = 1 - scores.sigmoid() if post_transform == "LOGISTIC" else -scores
        both = other.cat(transformed_scores(scores, post_transform), dim=1)
        return labels_of(index.numpy(), classlabels_ints, classlabels_strings), both
    index = scores.argmax(1)
    return labels_of(index.numpy(), classlabels_ints, classlabels_strings), transformed_scores(scores, post_transform)
