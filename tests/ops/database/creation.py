"""Sequences and literals: no inputs, or one whose shape is taken."""
from __future__ import annotations

from typing import Any

import numpy as np
import torch

from tinyhost.tensor import Tensor

from .case import case

FLOAT_TYPES = {"float32": torch.float32, "float16": torch.float16, "float64": torch.float64}
INT_TYPES = {"int32": torch.int32, "int8": torch.int8, "int16": torch.int16, "int64": torch.int64,
             "uint8": torch.uint8}
TYPES = {**FLOAT_TYPES, **INT_TYPES}


def _add(name: str, ours: Any, theirs: Any, **kwargs: Any) -> None:
    case(name, ours, ref=theirs, grad=False, **{"op": name.split()[0], **kwargs})


# *** arange ***
for _args in ((5,), (2, 11, 3), (10, 2, -3), (0,), (5, 5), (0.5, 3.0), (1.0, 0.0, -0.25), (0, 1, 0.125)):
    _add(f"arange {_args}", lambda a=_args: Tensor.arange(*a), lambda a=_args: torch.arange(*a))
for _name, _type in TYPES.items():
    _add(f"arange {_name}", lambda n=_name: Tensor.arange(3, 100, 7, dtype=n),
         lambda t=_type: torch.arange(3, 100, 7, dtype=t))
_add("arange beyond int32", lambda: Tensor.arange(2**40, 2**40 + 9, 2), lambda: torch.arange(2**40, 2**40 + 9, 2))
_add("arange large steps", lambda: Tensor.arange(2**62, 2**62 + 2**35, 2**33),
     lambda: torch.arange(2**62, 2**62 + 2**35, 2**33))
_add("arange long in half", lambda: Tensor.arange(0, 6000, 3, dtype="float16"),
     lambda: torch.arange(0, 6000, 3, dtype=torch.float16), rtol=1e-3)

# *** linspace ***
for _ends in ((0, 10, 4), (-5, 7, 50), (10, -10, 7), (3, 3, 4), (0, 100, 1), (1, 2, 2), (0, 1, 0), (2.5, 7.9, 6)):
    _add(f"linspace {_ends}", lambda e=_ends: Tensor.linspace(*e), lambda e=_ends: torch.linspace(*e), atol=2e-6)
for _name, _type in TYPES.items():
    _add(f"linspace {_name}", lambda n=_name: Tensor.linspace(0, 100, 33, dtype=n),
         lambda t=_type: torch.linspace(0, 100, 33, dtype=t), rtol=2e-3 if _name == "float16" else 1e-5)
for _ends in ((0, 4, 197), (-100, 100, 33), (10, -10, 7), (0, 127, 200), (5, 9, 1)):
    _add(f"linspace of integers {_ends}", lambda e=_ends: Tensor.linspace(*e, dtype="int32"),
         lambda e=_ends: torch.linspace(*e, dtype=torch.int32))

# *** eye, full and their like ***
for _name, _type in {**TYPES, "bool": torch.bool}.items():
    _add(f"eye {_name}", lambda n=_name: Tensor.eye(3, 4, dtype=n), lambda t=_type: torch.eye(3, 4, dtype=t))
_add("eye", lambda: Tensor.eye(3), lambda: torch.eye(3))
_add("eye tall", lambda: Tensor.eye(4, 2), lambda: torch.eye(4, 2))
_add("eye empty", lambda: Tensor.eye(0, 3), lambda: torch.eye(0, 3))
for _name, _type in {**TYPES, "bool": torch.bool}.items():
    _add(f"full {_name}", lambda n=_name: Tensor.full((2, 3), 1, dtype=n),
         lambda t=_type: torch.full((2, 3), 1, dtype=t))
_add("full largest", lambda: Tensor.full((2,), 2**63 - 1, dtype="int64", buffer=False),
     lambda: torch.full((2,), 2**63 - 1, dtype=torch.int64))
_add("full empty", lambda: Tensor.full((0, 2), 3.0, buffer=False), lambda: torch.full((0, 2), 3.0))
_add("full scalar", lambda: Tensor.full((), 3.5, buffer=False), lambda: torch.full((), 3.5))
_add("zeros", lambda: Tensor.zeros(2, 3), lambda: torch.zeros(2, 3))
_add("zeros of integers", lambda: Tensor.zeros((4,), dtype="int16"), lambda: torch.zeros(4, dtype=torch.int16))
_add("ones", lambda: Tensor.ones(2, 3), lambda: torch.ones(2, 3))
_add("ones of bools", lambda: Tensor.ones(0, 2, dtype="bool"), lambda: torch.ones(0, 2, dtype=torch.bool))
case("zeros_like", lambda x: x.zeros_like(buffer=False), (2, 3), ref=torch.zeros_like, grad=False)
case("ones_like", lambda x: x.ones_like(buffer=False), (2, 3), ref=torch.ones_like, grad=False,
     dtypes=("float32", "int32"))
case("full_like", lambda x: x.full_like(7, buffer=False), (2, 3), ref=lambda x: torch.full_like(x, 7), grad=False,
     dtypes=("float32", "float16", "int32", "uint8"))
case("const_like", lambda x: x.const_like(2.5), (2, 3), ref=lambda x: torch.full_like(x, 2.5), grad=False)
_add("const", lambda: Tensor.const(3, "int32"), lambda: torch.from_numpy(np.array(3, np.int32)))
