"""Finding the loops of a linear program that tests look into."""
from __future__ import annotations

from collections.abc import Iterable

from tinyhost.ops import Ops
from tinyhost.uop import UOp


def multiply_add_bodies(uops: Iterable[UOp]) -> list[list[UOp]]:
    """The nodes of the innermost loop bodies that hold a MULACC."""
    body: list[UOp] = []
    out = []
    for u in uops:
        if u.op is Ops.RANGE:
            body = []
        elif u.op is Ops.END:
            if any(x.op is Ops.MULACC for x in body):
                out.append(body)
            body = []
        else:
            body.append(u)
    return out
