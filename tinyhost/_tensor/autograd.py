"""Gradients of tensors: a thin layer over ``tinyhost.uop.gradient``.

``gradient`` is a pure function of graph and targets; ``backward`` finds the live parameters below self and adds to
their ``grad``. Nothing is recorded while computing forward; a value that was realized is followed through ``history``.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tinyhost._tensor.core import TensorCore
from tinyhost._tensor.history import unrealized
from tinyhost._tensor.registry import exchanging, live_params, live_tensors
from tinyhost._tensor.views import family_of
from tinyhost.errors import DTypeError, GradientError, ShapeError
from tinyhost.mixin.sint import same_shape
from tinyhost.ops import GroupOp
from tinyhost.uop import UOp
from tinyhost.uop.leaf import is_leaf

if TYPE_CHECKING:
    from typing import Self


class AutogradTensor(TensorCore):
    """gradient and backward."""

    __slots__ = ()

    def _output_gradient(self, gradient: Self | None) -> UOp:
        if not self.dtype.is_float:
            raise DTypeError(f"only floats have gradients, got a tensor of {self.dtype}")
        if gradient is None:
            if self.shape != ():
                raise ShapeError(f"a tensor of shape {self.shape} needs a gradient= of that shape: give one, or reduce "
                                 "it to a scalar first")
            return self.uop.const_like(1.0)
        if not same_shape(self.shape, gradient.shape):
            raise ShapeError(f"gradient shape mismatch {self.shape} != {gradient.shape}")
        return gradient.uop.cast(self.dtype)

    def _gradients(self, targets: list[UOp], gradient: Self | None, root: UOp | None = None,
                   realized: dict[UOp, UOp] | None = None) -> dict[UOp, UOp]:
        from tinyhost.uop.gradient import compute_gradient  # rules load with the first gradient
        if root is None or realized is None:
            root, realized = unrealized(self.uop, targets)
        grads = compute_gradient(root, self._output_gradient(gradient), set(targets))
        return {t: g.substitute(realized, walk=True) for t, g in grads.items()} if realized else grads

    def gradient(self, *targets: Self, gradient: Self | None = None) -> list[Self]:
        """Gradients of self with respect to ``targets``; ``gradient`` is that of a final value with respect to self.

        Raises:
            DTypeError: self or a target is no float.
            ShapeError: self is no scalar and no ``gradient`` is given.
            GradientError: self does not depend on a target.
        """
        for t in targets:
            if not t.dtype.is_float:
                raise DTypeError(f"only floats have gradients, got a target of {t.dtype}")
        with exchanging:  # another thread's realization may have to compute what these tensors stand for
            nodes = [t.uop for t in targets]
            grads = self._gradients(nodes, gradient)
        for i, (t, node) in enumerate(zip(targets, nodes)):
            if node not in grads:
                raise GradientError(
                    f"target {i} {t!r} has no gradient: {self!r} does not depend on it, or only through detach(), "
                    "integers, comparisons, or values that were read or realized before (those keep their graphs only "
                    "below tensors marked with is_param_())")
        return [self._wrap(grads[node])._fresh() for node in nodes]

    def backward(self, gradient: Self | None = None) -> Self:
        """Add the gradient of self to the ``grad`` of every live parameter it depends on.

        Parameters are tensors marked with ``is_param_()`` (layers and optimizers do that). Where none is marked, every
        live float tensor that is computed from no other one gets a gradient.

        Raises:
            GradientError: there is no such parameter, one was overwritten since self was realized, or two parameters
                are one value.
        """
        with exchanging:
            root, realized = unrealized(self.uop, [t.uop for t in live_params()])
            params = _parameters(root, self)
            if not params:
                self._output_gradient(gradient)
                raise GradientError(f"backward() reached no parameter below {self!r}: mark parameters with "
                                    "is_param_() before they are used, and call backward() before they are overwritten")
            nodes = [t.uop for t in params]
            grads = self._gradients(nodes, gradient, root, realized)
        for t, node in zip(params, nodes):
            if (g := grads.get(node)) is not None:
                new = self._wrap(g)._fresh()
                t.grad = new if t.grad is None else t.grad + new
        return self


def _demand_own_values(params: list[Any]) -> None:
    """Refuse two parameters that are equal graphs, and so one node: each would get the gradient of both."""
    owner: dict[UOp, Any] = {}
    for t in params:
        other = owner.setdefault(t.uop, t)
        if other is not t and not any(member is other for member in family_of(t)):
            raise GradientError(f"two parameters are one value, {t!r}: equal graphs are one node, so their gradients "
                                "cannot be told apart; give one storage of its own with .clone() before it is used")


def _parameters(root: UOp, output: TensorCore) -> list[Any]:
    """Live tensors below ``root`` that get gradients: those marked as parameters, else the leaves."""
    below = root.toposort()
    found = [t for t in live_tensors()
             if t is not output and t.uop in below and t.is_param is not False and t.dtype.is_float]
    marked = [t for t in found if t.is_param]
    if marked:
        _demand_own_values(marked)
        return marked
    leaves: dict[UOp, bool] = {}  # whether a node has storage or a leaf below: else it is a number of the program
    for u in below:
        leaves[u] = u.op in GroupOp.Defines or is_leaf(u) or any(leaves[s] for s in u.src)
    found = [t for t in found if leaves[t.uop]]
    values = {t.uop for t in found}
    above: dict[UOp, bool] = {}  # whether a node is computed from one of the values
    for u in below:
        above[u] = any(above[s] or s in values for s in u.src)
    return [t for t in found if not above[t.uop]]
