"""What a target can do, as data.

A backend computes one ``Capabilities`` from a target without opening the device; an opened device may only narrow
limits. Scheduler, code generation, test skips and the support matrix read these fields and nothing else, so the core
needs no device name.
"""
from __future__ import annotations

from dataclasses import dataclass, field, fields

from tinyhost.dtype import DType, dtypes


@dataclass(frozen=True)
class Capabilities:
    """Fields describe one target; sizes are in bytes unless the name says otherwise."""

    # memory
    max_kernel_buffers: int | None = None  # storage arguments of one kernel, None = unlimited
    max_kernel_ops: int = 2000  # nodes of one kernel before the scheduler cuts it
    buffer_views: bool = True  # a kernel argument may point into the middle of an allocation
    host_visible: bool = False  # host reads and writes device memory in place
    storage_only: bool = False  # holds data, runs no kernels
    # execution model
    grid: bool = False  # output axes become workgroup indices
    locals: bool = False  # workgroups have threads, shared memory and barriers
    global_max: tuple[int, ...] | None = None  # workgroups per dimension
    local_max: tuple[int, ...] | None = None  # threads per dimension of a workgroup
    local_prod_max: int = 1024  # threads of a workgroup
    shared_bytes: int = 0  # workgroup memory
    threads: int = 1  # host threads that run one kernel side by side
    # vectors
    vector_bytes: int = 0  # widest vector register, 0 = scalar target
    vector_registers: int = 16  # how many of them
    scalar_registers: int = 14
    masked: bool = False  # masked loads and stores of vector_bytes exist
    gather: bool = False  # vector loads from computed addresses exist
    fma: bool = False  # a fused multiply-add exists
    max_tile: int = 32  # product of UPCAST axes
    max_unroll: int = 32
    # caches, for cost models
    cacheline: int = 64
    stream_bytes: int = 0  # outputs of this size and more are stored past the caches, 0 = never
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    llc_bytes: int = 32 << 20
    # numbers
    dtypes: frozenset[DType] = field(default_factory=lambda: frozenset(dtypes.all))
    denormals: bool = True
    atomics: bool = False
    image_pitch: int = 0  # row alignment of images in pixels, 0 = no images
    fifo_queues: bool = True

    @property
    def text(self) -> str:
        """All fields in a form that is the same in every process, for cache keys."""
        values = {f.name: getattr(self, f.name) for f in fields(self)}
        values["dtypes"] = sorted(map(str, self.dtypes))
        return ",".join(f"{name}={value}" for name, value in values.items())

    def supports(self, dtype: DType) -> bool:
        """Whether memory and arithmetic of ``dtype`` exist on the target."""
        return dtype in self.dtypes
