"""Host memory for tests of streams, with a device address of its own choosing."""
from __future__ import annotations

import numpy as np

from tinyhost.hcq.mmio import HostMemory
from tinyhost.hcq.stream import Stream


def host_memory(nbytes: int, address: int | None = None, fill: int = 0xA5) -> HostMemory:
    """``nbytes`` bytes, aligned to 64; the device sees them at ``address``, or where they are."""
    array = np.full(nbytes + 64, fill, dtype=np.uint8)
    start = -array.ctypes.data % 64
    here = array.ctypes.data + start
    return HostMemory(here if address is None else address, memoryview(array)[start:start + nbytes], array)


def memory_for(stream: Stream, at: int | None = None) -> dict[str, HostMemory]:
    """Memory for each region of a stream."""
    out = {}
    for i, name in enumerate(stream.regions):
        out[name] = host_memory(stream.nbytes(name), None if at is None else at + (i << 20))
    return out
