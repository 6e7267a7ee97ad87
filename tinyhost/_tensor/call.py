"""Calls: a graph with parameters applied to tensors, and hand-written kernels.

``call`` builds a differentiable FUNCTION; ``custom_kernel`` a CALL whose body is a kernel over placeholders.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable

from tinyhost._tensor.core import TensorCore
from tinyhost.mixin.sint import same_shape
from tinyhost.ops import Ops
from tinyhost.uop import UOp

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
            TypeError: an argument does not fit its parameter.
        """
        body = fxn.uop if isinstance(fxn, TensorCore) else fxn
        args = tuple(t.uop for t in (self, *lst))
        check_arguments(body, args)
        return self._wrap(body.call(*args, grad_fxn=grad_fxn).gettuple(0))

    def custom_kernel(self, *lst: Self, fxn: Callable[..., UOp], grad_fxn: Callable[..., Any] | None = None) -> list[Self]:
        """Run the kernel that ``fxn`` builds from one placeholder for each of self and ``lst``.

        ``fxn`` returns a SINK of stores. The results are the arguments as of after the kernel.
        """
        srcs = tuple(t.uop if t.uop.op is Ops.AFTER or t.uop.has_buffer_identity() else t.uop.contiguous()
                     for t in (self, *lst))
        placeholders = tuple(s.placeholder_like(i) for i, s in enumerate(srcs))
        kernel = fxn(*placeholders)
        call = kernel.call(*srcs, grad_fxn=grad_fxn)
        return [self._wrap(s.after(call)) for s in srcs]


def check_arguments(body: UOp, args: tuple[UOp, ...]) -> None:
    """Compare the arguments of a call with the parameters of its body.

    Raises:
        TypeError: shape or dtype differ, or an argument is missing.
    """
    for p in body.toposort(enter_calls=False):
        if p.op is not Ops.PARAM or p.arg.slot < 0:
            continue
        if p.arg.slot >= len(args):
            raise TypeError(f"parameter {p.arg.slot} has no argument: the call has {len(args)}")
        arg = args[p.arg.slot]
        if p.arg.dtype is not arg.dtype and not arg.dtype.is_weak:
            raise TypeError(f"argument {p.arg.slot} dtype mismatch: expected {p.arg.dtype}, got {arg.dtype}")
        if p.arg.size is None and arg.shape != ():
            raise TypeError(f"argument {p.arg.slot} shape mismatch: expected scalar, got {arg.shape}")
        if p.arg.size is not None and not same_shape((p.arg.size,), (arg.max_numel(),)):
            raise TypeError(f"argument {p.arg.slot} shape mismatch: expected {p.arg.size} elements, got {arg.shape}")
