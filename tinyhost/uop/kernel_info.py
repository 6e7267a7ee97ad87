"""Plain data of kernels: what their SINK carries, the optimiser's actions, what a launch needs.

Records like those of ``info.py``, in a file of their own because a program that only builds graphs needs none of them.
"""
from __future__ import annotations

from dataclasses import dataclass
from enum import auto
from typing import Any

from tinyhost.helpers import to_function_name
from tinyhost.ops import AxisType, FastEnum, direct
from tinyhost.target import Target
from tinyhost.uop.info import record


@direct
class OptOps(FastEnum):
    """Actions of the optimiser; ``docs/codegen.md`` says what each does to the ranges of a kernel."""

    TC = auto()
    UPCAST = auto()
    UNROLL = auto()
    LOCAL = auto()
    THREAD = auto()
    GROUP = auto()
    GROUPTOP = auto()
    NOLOCALS = auto()
    PADTO = auto()
    SWAP = auto()
    LANE = auto()
    REORDER = auto()
    STAGE = auto()
    PEEL = auto()
    MERGE = auto()


@record
@dataclass(frozen=True, order=True)
class Opt:
    """One action: what, on which axis, how much."""

    op: OptOps
    axis: int | None = None
    arg: Any = None

    def __repr__(self) -> str:
        return f"Opt(op={self.op}, axis={self.axis}, arg={self.arg})"


@record
@dataclass(frozen=True)
class Estimates:
    """Work of a kernel: FLOPs, bytes loaded and stored, distinct bytes touched. Entries may be symbolic."""

    ops: Any = 0
    lds: Any = 0
    mem: Any = 0

    def __add__(self, other: "Estimates") -> "Estimates":
        return Estimates(self.ops + other.ops, self.lds + other.lds, self.mem + other.mem)


@record
@dataclass(frozen=True)
class KernelInfo:
    """What a kernel's SINK carries: its name, how its axes run, the optimiser's actions, the nesting of its loops.

    ``loop_order`` lists axis ids (the ``arg[:-1]`` of RANGEs) from the outermost loop inwards; None leaves it to the
    lineariser.
    """

    name: str = "test"
    axis_types: tuple[AxisType, ...] = ()
    dont_use_locals: bool = False
    applied_opts: tuple[Opt, ...] = ()
    opts_to_apply: tuple[Opt, ...] | None = None
    estimates: Estimates | None = None
    beam: int = 0
    loop_order: tuple[tuple[int, ...], ...] | None = None

    @property
    def function_name(self) -> str:
        """``name`` as an identifier."""
        return to_function_name(self.name)


@record
@dataclass(frozen=True)
class ProgramInfo:
    """What a compiled kernel needs at launch."""

    name: str = "test"
    global_size: tuple[Any, ...] = (1, 1, 1)
    local_size: tuple[Any, ...] | None = None
    vars: tuple[Any, ...] = ()
    globals: tuple[int, ...] = ()
    outs: tuple[int, ...] = ()
    ins: tuple[int, ...] = ()
    target: Target = Target()
    estimates: Estimates = Estimates()
    scratch: int = 0  # bytes of the per-worker arena the kernel uses

    @property
    def function_name(self) -> str:
        """``name`` as an identifier."""
        return to_function_name(self.name)

    @property
    def runtimevars(self) -> dict[str, int]:
        """Position in ``vars`` of the scalars that the launcher fills in."""
        return {v.arg.name: i for i, v in enumerate(self.vars) if v.arg.name == "core_id"}

    def vals(self, var_vals: dict[str, int]) -> tuple[int | None, ...]:
        """Values of ``vars``; None for those that the launcher fills in.

        Raises:
            RuntimeError: a variable has no value.
        """
        runtime = self.runtimevars
        for v in self.vars:
            if v.arg.name not in runtime and v.arg.name not in var_vals:
                raise RuntimeError(f"kernel {self.name} needs a value for variable {v.arg.name!r}, got only "
                                   f"{sorted(var_vals)}: bind it before realizing")
        return tuple(None if v.arg.name in runtime else var_vals[v.arg.name] for v in self.vars)
