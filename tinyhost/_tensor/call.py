"""Calls: a graph with parameters applied to tensors, and hand-written kernels.

``call`` builds a differentiable FUNCTION; ``custom_kernel`` a CALL whose body is a kernel over placeholders.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import TensorCore
from tinyhost.dtype import least_upper_dtype
from tinyhost.errors import CallError, DTypeError
from tinyhost.helpers import prod
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.leaf import without_identity
from tinyhost.uop.sharding import stored_axis

if TYPE_CHECKING:
    from typing import Self


class CallTensor(TensorCore):
    """call, custom_kernel, as_param."""

    __slots__ = ()

    def as_param(self, slot: int) -> Self:
        """Parameter number ``slot`` of a function body, of self's shape, dtype and device."""
        return self._wrap(self.uop.param_like(slot))

    def call(self, *lst: Self, fxn: Self | UOp, grad_fxn: Callable[..., Any] | None = None) -> Self:
        """``fxn``, a graph over parameters, applied to self and ``lst``.

        Args:
            fxn: the body; ``as_param(i)`` stands for the i-th argument.
            grad_fxn: called with the gradient and ``call=``, returns one gradient for each argument.

        Raises:
            CallError, DTypeError: an argument does not fit its parameter.
        """
        body = without_identity(fxn.uop if isinstance(fxn, TensorCore) else fxn)
        args = fitted_arguments(body, tuple(t.uop for t in (self, *lst)))
        return self._wrap(body.call(*args, grad_fxn=grad_fxn).gettuple(0))

    def custom_kernel(self, *lst: Self, fxn: Callable[..., UOp],
                      grad_fxn: Callable[..., Any] | None = None) -> list[Self]:
        """Run the kernel that ``fxn`` builds from one placeholder for each of self and ``lst``.

        ``fxn`` returns a SINK of stores; it is called with the shapes of one shard where arguments are split over
        devices, and the kernel runs on each of them. The results are the arguments as of after the kernel.
        """
        from tinyhost.schedule.places import flat_places
        given = [t.uop for t in (self, *lst)]
        kernel = flat_places(fxn(*[u.placeholder_like(i) for i, u in enumerate(given)]))
        written = _written_slots(kernel)
        srcs = tuple([_stored(u, i in written or grad_fxn is None) for i, u in enumerate(given)])
        call = kernel.call(*srcs, grad_fxn=grad_fxn)
        return [self._wrap(_like(u, s.after(call))) for u, s in zip(given, srcs)]


def _written_slots(kernel: UOp) -> set[int]:
    """Slots of the placeholders that a kernel writes."""
    return {u.src[0].src[0].arg.slot for u in kernel.toposort(enter_calls=False)
            if u.op is Ops.STORE and u.src[0].op is Ops.INDEX and u.src[0].src[0].op is Ops.PARAM}


def _stored(u: UOp, itself: bool) -> UOp:
    """Storage with the value ``u``; of a split one, with full shards on all devices.

    Args:
        itself: where the last shards of stored values are shorter, the storage and not a copy of the value, so that
            it may be written; gradients only reach the value.
    """
    axis = stored_axis(u)
    if axis is not None and u.shape[axis] % len(u.device or ()):
        if itself and u.op is Ops.SHRINK and u.src[0].op is Ops.UNSHARD and u.src[0].has_buffer_identity():
            return u.src[0]
        return u.with_full_shards(axis, len(u.device or ())).contiguous()
    return u if u.op is Ops.AFTER or u.has_buffer_identity() else u.contiguous()


def _like(u: UOp, full: UOp) -> UOp:
    """``full`` without the padding that ``u`` does not have."""
    axis = stored_axis(u)
    return full if axis is None else full.only(axis, u.shape[axis])


def fitted_arguments(body: UOp, args: tuple[UOp, ...]) -> tuple[UOp, ...]:
    """The arguments of a call, weak ones at the dtype of their parameter.

    Raises:
        CallError: number or shapes of the arguments differ from the parameters.
        DTypeError: a dtype differs.
    """
    params = {u.arg.slot: u for u in body.toposort(enter_calls=False) if u.op is Ops.PARAM and u.arg.slot >= 0}
    if params and max(params) >= len(args):
        raise CallError(f"expected {max(params) + 1} args, got {len(args)}")
    out = []
    for i, a in enumerate(args):
        p = params.get(i)
        if p is None:
            out.append(a)
            continue
        if p.arg.size is None and a.shape != ():
            raise CallError(f"arg {i} shape mismatch: expected scalar, got {a.shape}")
        if p.arg.size is not None and p.arg.size != prod(a.max_shard_shape):
            raise CallError(f"arg {i} shape mismatch: expected size {p.arg.size}, got {a.shape}")
        if a.dtype.is_weak and least_upper_dtype(a.dtype, p.dtype) is p.dtype:
            a = a.cast(p.dtype)
        if p.dtype is not a.dtype:
            raise DTypeError(f"arg {i} dtype mismatch: expected {p.dtype}, got {a.dtype}")
        out.append(a)
    return tuple(out)
