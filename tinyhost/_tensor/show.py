"""``repr`` of a tensor: shape, dtype, device, whether it is computed, whether it has a gradient, and a few values.

Nothing is computed, opened or waited for beyond reading memory that already holds the values, and nothing raises: a
repr is what one looks at when something else went wrong.
"""
from __future__ import annotations

import sys
from typing import Any

import numpy as np

from tinyhost.dtype import _to_np_dtype
from tinyhost.helpers import prod
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp

_MOST_VALUES = 12  # more are not shown
_MOST_BYTES = 1 << 16  # of the storage that a shown view lies in


def describe(t: Any) -> str:
    """``<Tensor (2,) dtypes.float on CPU, realized, grad: [1.0, 2.0]>``."""
    try:
        u: UOp = t.uop
        place = "" if u.device is None else f" on {u.device}"
        notes = [_state(u), *(["parameter"] if t.is_param else []), *(["grad"] if t.grad is not None else [])]
        values = _values(u)
        return f"<Tensor {_shape(u)} {u.dtype}{place}, {', '.join(notes)}{'' if values is None else f': {values}'}>"
    except Exception as e:  # whatever is wrong with the graph: an exception here would hide another one
        return f"<Tensor that cannot be shown: {type(e).__name__}: {e}>"


def _shape(u: UOp) -> str:
    dims = [str(s) if isinstance(s, int) else s.render() for s in u.shape]
    return f"({dims[0]},)" if len(dims) == 1 else f"({', '.join(dims)})"


def _state(u: UOp) -> str:
    base = u.base
    if u.is_realized or base.is_realized:
        return "realized"
    if base.op is Ops.BUFFER:
        return "empty storage"
    if base.op is Ops.AFTER:
        return "lazy store"
    return "literal" if u.device is None and base.is_const else f"lazy {base.op.name.lower()}"


def _values(u: UOp) -> Any:
    """The values as nested lists, None where they are many, or not in memory."""
    if not all(isinstance(s, int) for s in u.shape) or prod(u.shape) > _MOST_VALUES:
        return None
    if u.device is None:
        return u.base.const_value if not u.shape and u.base.is_const else None
    if not u.base.is_realized or isinstance(u.device, tuple) or _is_capturing():
        return None
    chain = []
    while u.op in GroupOp.Movement or u.op is Ops.DETACH:
        chain.append(u)
        u = u.src[0]
    if u.op is not Ops.BUFFER or _to_np_dtype(u.dtype) is None or u.arg.size * u.dtype.itemsize > _MOST_BYTES:
        return None
    array = u.buffer.numpy()
    for view in reversed(chain):
        array = _moved(array, view)
        if array is None:
            return None
    return array.tolist()


def _is_capturing() -> bool:
    capture = sys.modules.get("tinyhost.engine.capture")  # no capture runs where it was never loaded
    return capture is not None and capture.recorder.active() is not None


def _moved(x: Any, view: UOp) -> Any:
    """A view of a numpy array; None for one that adds elements."""
    if view.op is Ops.RESHAPE:
        return x.reshape(view.marg)
    if view.op is Ops.PERMUTE:
        return x.transpose(view.marg)
    if view.op is Ops.EXPAND:
        return np.broadcast_to(x, (*view.marg, *x.shape))
    if view.op is Ops.FLIP:
        return x[tuple(slice(None, None, -1) if flipped else slice(None) for flipped in view.marg)]
    if view.op is Ops.SHRINK:
        return x[tuple(slice(start, start + size) for start, size in view.marg)]
    return x if view.op is Ops.DETACH else None
