"""Kernel names: ``r`` for reductions or ``E`` for the rest, then the sizes of the axes, coloured by what runs them."""
from __future__ import annotations

from tinyhost.codegen.kernel import Kernel
from tinyhost.helpers import painted
from tinyhost.ops import AxisType

_COLORS = {AxisType.DEVICE: "green", AxisType.GLOBAL: "blue", AxisType.WARP: "CYAN", AxisType.LOCAL: "cyan",
           AxisType.WEAK: "WHITE", AxisType.LOOP: "WHITE", AxisType.GROUP_REDUCE: "RED", AxisType.REDUCE: "red",
           AxisType.UPCAST: "yellow", AxisType.UNROLL: "magenta", AxisType.THREAD: "BLUE", AxisType.LANE: "YELLOW"}


def kernel_name(k: Kernel) -> str:
    """The name of a kernel whose Opts are applied."""
    out = "r" if k.reduces else "E"
    for a in k.sorted_axes:
        size = (
            str(a.size)
            if isinstance(a.size, int)
            else a.size.render()
            if a.size.op is not a.size.op.WHERE
            else f"{a.size.src[2].arg}"
        )
        color = "BLUE" if a.kind is AxisType.GLOBAL and k.dont_use_locals else _COLORS.get(a.kind)
        # NO_COLOR must not change the name: it is part of cached programs
        out += painted("_", "BLACK") + (painted(size, color) if color else size)
    return out
