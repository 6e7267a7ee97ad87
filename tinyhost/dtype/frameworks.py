"""Counterparts of the types in numpy and torch; neither is imported before it is needed."""
from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, Final

from tinyhost.dtype.types import DType, dtypes
from tinyhost.errors import DTypeError

if TYPE_CHECKING:
    import numpy
    import torch


def _to_np_dtype(dtype: DType) -> type[numpy.generic] | None:
    """The numpy scalar type, None where numpy has none."""
    import numpy as np
    return np.dtype(dtype.fmt).type if dtype.fmt is not None else None


@functools.cache
def _np_names() -> dict[str, DType]:
    import numpy as np
    return {np.dtype(dt.fmt).name: dt for dt in dtypes.all if dt.fmt is not None}


def _from_np_dtype(npdtype: numpy.dtype[Any]) -> DType:
    """The type of a numpy dtype.

    Raises:
        DTypeError: it has no counterpart here (complex, strings, objects, dates).
    """
    import numpy as np
    name = np.dtype(npdtype).name
    if name not in _np_names():
        raise DTypeError(f"numpy dtype {name!r} has no tinyhost dtype: convert the array first, for example with "
                        f".astype('float32'); supported are {', '.join(sorted(_np_names()))}")
    return _np_names()[name]


_TORCH_NAMES: Final = {
    **{dt: name for dt, name in zip(dtypes.ints, ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32",
                                                   "int64"))},
    dtypes.bool: "bool", dtypes.float16: "float16", dtypes.bfloat16: "bfloat16", dtypes.float32: "float32",
    dtypes.float64: "float64", dtypes.fp8e4m3: "float8_e4m3fn", dtypes.fp8e5m2: "float8_e5m2",
    dtypes.fp8e4m3fnuz: "float8_e4m3fnuz", dtypes.fp8e5m2fnuz: "float8_e5m2fnuz"}


def _to_torch_dtype(dtype: DType) -> torch.dtype | None:
    """The torch dtype, None where torch has none."""
    import torch
    return getattr(torch, _TORCH_NAMES.get(dtype, ""), None)


def _from_torch_dtype(torchdtype: torch.dtype) -> DType:
    """The type of a torch dtype.

    Raises:
        DTypeError: it has no counterpart here.
    """
    name = str(torchdtype).removeprefix("torch.")
    for dtype, torch_name in _TORCH_NAMES.items():
        if torch_name == name:
            return dtype
    raise DTypeError(f"torch dtype {torchdtype} has no tinyhost dtype: convert the tensor first, for example with "
                    ".float()")
