"""Strings, which live in numpy arrays on the host."""
from __future__ import annotations

import re
from typing import Any

import numpy as np

from tinyhost.io.onnx.call import check_host_size
from tinyhost.io.onnx.registry import op
from tinyhost.io.onnx.types import Array, to_array


def _each(fn: Any, x: Array, dtype: Any = object) -> Array:
    return np.array([fn(v) for v in x.reshape(-1)], dtype=dtype).reshape(x.shape)


@op("StringConcat", raw=True)
def string_concat(x: Array, y: Array) -> Array:
    """Elements joined, with broadcasting."""
    a, b = np.broadcast_arrays(x, y)
    return np.array([str(p) + str(q) for p, q in zip(a.reshape(-1), b.reshape(-1))], dtype=object).reshape(a.shape)


@op("StringSplit", raw=True)
def string_split(x: Array, *, delimiter: str | None = None, maxsplit: int | None = None) -> tuple[Array, Array]:
    """Pieces along a new last axis, filled with "", and their numbers."""
    limit = -1 if maxsplit is None else maxsplit
    parts = [str(v).split(delimiter or None, limit) for v in x.reshape(-1)]
    width = max(map(len, parts), default=0)
    rows = [p + [""] * (width - len(p)) for p in parts]
    return (np.array(rows, dtype=object).reshape((*x.shape, width)),
            np.array([len(p) for p in parts], np.int64).reshape(x.shape))


@op("RegexFullMatch", raw=True)
def regex_full_match(x: Array, *, pattern: str) -> Array:
    """Whether the whole element matches.

    Raises:
        ValueError: the pattern is no regular expression.
    """
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ValueError(f"pattern {pattern!r} is no regular expression: {error}") from error
    return _each(lambda v: compiled.fullmatch(str(v)) is not None, x, np.bool_)


@op("StringNormalizer", raw=True)
def string_normalizer(x: Array, *, case_change_action: str = "NONE", is_case_sensitive: int = 0, locale: str = "",
                      stopwords: list[str] | None = None) -> Array:
    """Elements without stop words, in upper or lower case; one "" if none is left."""
    change: Any = {"LOWER": str.lower, "UPPER": str.upper, "NONE": str}.get(case_change_action)
    if change is None or x.ndim not in (1, 2) or (x.ndim == 2 and x.shape[0] != 1):
        raise ValueError(f"StringNormalizer takes [C] or [1, C] and LOWER, UPPER or NONE, got {list(x.shape)} and "
                         f"{case_change_action!r}")
    fold: Any = str if is_case_sensitive else str.lower
    stops = {fold(s) for s in stopwords or ()}
    kept = [change(v) for v in x.reshape(-1) if fold(v) not in stops] or [""]
    return np.array(kept, dtype=object).reshape((len(kept),) if x.ndim == 1 else (1, len(kept)))


@op("TfIdfVectorizer", raw=True)
def tf_idf(x: Any, *, max_gram_length: int, max_skip_count: int, min_gram_length: int, mode: str,
           ngram_counts: list[int], ngram_indexes: list[int], pool_int64s: list[int] | None = None,
           pool_strings: list[str] | None = None, weights: list[float] | None = None) -> Array:
    """Counts of the pool's n-grams in each row, weighted by ``mode``."""
    pool: list[Any] = list(pool_int64s if pool_int64s is not None else pool_strings or ())
    grams: dict[tuple[Any, ...], int] = {}
    bounds = [*ngram_counts, len(pool)]
    for n in range(1, len(ngram_counts) + 1):
        for start in range(bounds[n - 1], bounds[n], n):
            grams[tuple(pool[start:start + n])] = ngram_indexes[len(grams)]
    array = to_array(x)
    rows = array.reshape(1, -1) if array.ndim <= 1 else array
    check_host_size(rows.shape[0] * (max(ngram_indexes, default=-1) + 1), "TfIdfVectorizer")
    out = np.zeros((rows.shape[0], max(ngram_indexes, default=-1) + 1), np.float32)
    for row, counts in zip(rows.tolist(), out):
        for gram in _grams_of(row, min_gram_length, max_gram_length, max_skip_count):
            if gram in grams:
                counts[grams[gram]] += 1
    scale = np.ones(out.shape[1], np.float32)
    if weights is not None:
        scale[np.asarray(ngram_indexes)] = np.asarray(weights, np.float32)
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ValueError(f"mode is TF, IDF or TFIDF, got {mode!r}")
    out = out if mode == "TF" else np.where(out > 0, scale, 0) if mode == "IDF" else out * scale
    return out.astype(np.float32).reshape(array.shape[:-1] + out.shape[-1:] if array.ndim > 1 else out.shape[-1:])


def _grams_of(row: list[Any], least: int, most: int, skips: int) -> Any:
    """All n-grams of a row, whose items lie up to ``skips`` items apart."""
    for n in range(max(1, least), min(most, len(row)) + 1):
        for step in range(1, (min(skips + 1, len(row)) if n > 1 else 1) + 1):
            for start in range(len(row) - (n - 1) * step):
                yield tuple(row[start + k * step] for k in range(n))
