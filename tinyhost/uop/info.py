"""Plain data that rides in the ``arg`` of nodes: storage, kernels, optimisations, programs and calls.

Every class is a frozen, hashable, picklable record without behaviour beyond small derived properties; hashes are cached
because a node's interning key contains its argument.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from enum import auto
from typing import Any, TypeVar

from tinyhost.dtype import DType
from tinyhost.helpers import to_function_name
from tinyhost.ops import AddrSpace, AxisType, FastEnum
from tinyhost.target import Target

T = TypeVar("T")


def _record(cls: type[T]) -> type[T]:
    """Give a frozen dataclass a hash computed once and a pickle form without it (string hashes differ by process)."""
    names = tuple(f.name for f in fields(cls))  # type: ignore[arg-type]
    compute: Callable[[Any], int] = cls.__hash__

    def __hash__(self: Any) -> int:
        cached = self.__dict__.get("_hash")
        if cached is None:
            cached = compute(self)
            object.__setattr__(self, "_hash", cached)
        return int(cached)

    def __reduce__(self: Any) -> tuple[Any, ...]:
        return cls, tuple(getattr(self, n) for n in names)

    cls.__hash__ = __hash__  # type: ignore[method-assign]
    cls.__reduce__ = __reduce__  # type: ignore[method-assign]
    return cls


@_record
@dataclass(frozen=True, repr=False)
class ParamArg:
    """Storage of a PARAM or BUFFER: ``size`` elements of ``dtype``, flat; ``size`` None is a scalar.

    ``slot`` -1 marks a scalar that is not numbered yet. ``image`` (height, width) gives the shape (h, w, 4).
    """

    slot: int
    dtype: DType
    size: int | None = None
    vmin_vmax: tuple[Any, Any] | None = None
    multiple_of: int | None = None
    name: str | None = None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    device: str | tuple[str, ...] | None = None
    volatile: bool = False
    image: tuple[int, int] | None = None

    def __repr__(self) -> str:
        parts = [str(self.slot), repr(self.dtype)] + ([] if self.size is None else [str(self.size)])
        for f in fields(self)[3:]:
            if (value := getattr(self, f.name)) != f.default:
                parts.append(f"{f.name}={value!r}")
        return f"ParamArg({', '.join(parts)})"

    def __lt__(self, other: "ParamArg") -> bool:
        return self._order() < other._order()

    def _order(self) -> tuple[Any, ...]:
        return self.slot, self.addrspace.value, self.name or "", str(self.dtype), self.size or 0, str(self.device)

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the flat storage."""
        if self.image is not None:
            return (*self.image, 4)
        return () if self.size is None else (self.size,)


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


@_record
@dataclass(frozen=True, order=True)
class Opt:
    """One action: what, on which axis, how much."""

    op: OptOps
    axis: int | None = None
    arg: Any = None

    def __repr__(self) -> str:
        return f"Opt(op={self.op}, axis={self.axis}, arg={self.arg})"


@_record
@dataclass(frozen=True)
class Estimates:
    """Work of a kernel: FLOPs, bytes loaded and stored, distinct bytes touched. Entries may be symbolic."""

    ops: Any = 0
    lds: Any = 0
    mem: Any = 0

    def __add__(self, other: "Estimates") -> "Estimates":
        return Estimates(self.ops + other.ops, self.lds + other.lds, self.mem + other.mem)


@_record
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


@_record
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


@dataclass(frozen=True, eq=True)
class CallInfo:
    """How a CALL or FUNCTION behaves: its custom gradient, its name, whether it is compiled on its own."""

    grad_fxn: Callable[..., Any] | None = None
    name: str | None = None
    precompile: bool = False
    precompile_backward: bool = False
    aux: Any = None

    def __repr__(self) -> str:
        grad = None if self.grad_fxn is None else id(self.grad_fxn)
        return f"CallInfo({grad}, {self.name!r}, {self.precompile}, {self.precompile_backward})"

    def __reduce__(self) -> tuple[Any, ...]:
        return CallInfo, (None, self.name, self.precompile, self.precompile_backward, self.aux)


@_record
@dataclass(frozen=True)
class BufferizeOpts:
    """Where a STAGE makes its storage and whether the scheduler may inline it back."""

    device: str | tuple[str, ...] | int | None
    addrspace: AddrSpace = AddrSpace.GLOBAL
    removable: bool = True
