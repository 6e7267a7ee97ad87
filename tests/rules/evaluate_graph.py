"""A small evaluator of scalar expression graphs on numpy arrays, for tests of rules."""
from typing import Any

import numpy as np

from tinyhost.dtype import DType, dtypes, truncate
from tinyhost.ops import GroupOp, Ops
from tinyhost.uop import UOp
from tinyhost.uop.semantics import bitcast_np, carrier_np, cast_np, evaluate_np


def _literal(value: Any, dtype: DType) -> Any:
    return np.array(truncate[dtype](value), carrier_np(dtype))


def evaluate_graph(root: UOp, leaves: dict[UOp, Any]) -> Any:
    """The value of ``root`` where each leaf is an array; bare literals take the dtype of the node they stand in."""
    done = dict(leaves)
    for u in root.toposort():
        if u in done or u.op is Ops.CONST:
            continue
        if u.is_const:
            done[u] = _literal(u.const_value, u.dtype)
        elif u.op is Ops.CAST:
            done[u] = cast_np(done[u.src[0]], u.src[0].dtype, u.arg)
        elif u.op is Ops.BITCAST:
            done[u] = bitcast_np(done[u.src[0]], u.src[0].dtype, u.arg)
        else:
            operand = UOp(Ops.ADD, u.src).dtype if u.op in GroupOp.Comparison else u.dtype
            kinds = [dtypes.bool if u.op is Ops.WHERE and not i else operand for i in range(len(u.src))]
            done[u] = evaluate_np(u.op, operand, *[_literal(s.arg, k) if s.op is Ops.CONST else done[s]
                                                   for s, k in zip(u.src, kinds)])
    return _literal(root.arg, root.dtype) if root.op is Ops.CONST else done[root]
