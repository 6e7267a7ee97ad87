"""What the tests of TinyJit share."""
from __future__ import annotations

import numpy as np

from tinyhost import Tensor


def arr(*values: float) -> Tensor:
    """A float32 tensor from the host."""
    return Tensor(np.array(values, np.float32))
