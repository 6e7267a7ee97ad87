"""Comparisons, logic and bits."""
from __future__ import annotations

import torch

from .case import EDGES, Input, case

for _name, _fn in {"lt": lambda x, y: x < y, "gt": lambda x, y: x > y, "le": lambda x, y: x <= y, "ge": lambda x,
                   y: x >= y,
                   "eq": lambda x, y: x == y, "ne": lambda x, y: x != y}.items():
    case(f"cmp_{_name}", _fn, Input((10,), "int32", -2, 2), Input((10,), "int32", -2, 2), grad=False)
    case(f"cmp_{_name}_nan", lambda x, f=_fn: f(x, x.flip(0)), EDGES, ref=lambda x, f=_fn: f(x, x.flip(0)), grad=False)
    case(f"cmp_{_name}_self", lambda x, f=_fn: f(x, x), EDGES, grad=False)
case("logical_not", lambda x: x.logical_not(), Input((10,), "int32", -2, 2), grad=False)
case("bool_ops", lambda x, y: (x & y) | (x ^ y), Input((10,), "bool"), Input((10,), "bool"), grad=False)
case("bit_ops", lambda x, y: ((x & y) | 5) ^ ~y, Input((10,), "int32", -99, 99), Input((10,), "int32", -99, 99),
     grad=False)
case("shifts", lambda x: (x << 3) >> 2, Input((10,), "int32", -99, 99), grad=False)
case("shifts_uint8", lambda x: (x << 1) >> 2, Input((10,), "uint8", 0, 255), grad=False)
case("where", lambda x, y: (x < y).where(x, y * 2), (3, 4), (4,), ref=lambda x, y: torch.where(x < y, x, y * 2))
case("where_scalar", lambda x: (x < 0).where(1.5, x), (3, 4), ref=lambda x: torch.where(x < 0, 1.5, x))
case("masked_fill", lambda x: x.masked_fill(x > 0, -1.0), (3, 4))
