"""What the tests over several devices share."""
from __future__ import annotations

from tinyhost import Device


def names(count: int) -> tuple[str, ...]:
    """The first devices of the kind of the default one."""
    return tuple(Device.canonicalize(f"{Device.DEFAULT}:{i}") for i in range(count))
