"""Gradients through values that were realized, read or printed before backward()."""
from __future__ import annotations

import gc

import numpy as np
import pytest

from tinyhost import Context, Tensor
from tinyhost._tensor import history
from tinyhost.nn.optim import SGD
from tinyhost.ops import Ops


def param() -> Tensor:
    return Tensor([1.0, -2.0, 3.0]).is_param_().realize()


def test_loss_is_read_before_backward():
    w = param()
    loss = (w * w).sum()
    assert loss.item() == 14.0
    loss.backward()
    np.testing.assert_allclose(w.grad.numpy(), [2.0, -4.0, 6.0])


def test_intermediate_is_realized():
    w = param()
    h = (w * 3).exp2().realize()
    (h * h).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), 2 * 3 * np.log(2) * np.exp2(6 * np.array([1.0, -2.0, 3.0])), rtol=1e-5)


def test_chain_of_realized_values():
    w = param()
    a = (w + 1).realize()
    b = (a * 2).realize()
    c = (b * a).sum().realize()
    c.backward()
    np.testing.assert_allclose(w.grad.numpy(), 4 * (np.array([1.0, -2.0, 3.0]) + 1))


def test_gradient_with_targets():
    w = param()
    y = (w * w * w).sum()
    y.realize()
    (g,) = y.gradient(w)
    np.testing.assert_allclose(g.numpy(), 3 * np.array([1.0, 4.0, 9.0]))


def test_realized_values_are_not_computed_again():
    w = param()
    h = w.exp2().realize()
    loss = (h * 2).sum()
    loss.backward()
    assert not w.grad.uop.op_in_backward_slice_with_self(Ops.EXP2)


def test_overwritten_parameter_is_an_error_not_a_mixture():
    w = param()
    loss = (w * w).sum().realize()
    w.assign(w.detach() * 10).realize()
    with pytest.raises(RuntimeError, match="reached no parameter below .* before they are overwritten"):
        loss.backward()


def test_training_that_reads_the_loss_first():
    w = param()
    opt = SGD([w], lr=0.25)
    seen = []
    with Context(TRAINING=1):
        for _ in range(4):
            opt.zero_grad()
            loss = (w * w).sum()
            seen.append(loss.item())
            loss.backward()
            opt.step()
    np.testing.assert_allclose(seen, [14.0, 3.5, 0.875, 0.21875])


def test_detached_values_keep_no_graph():
    w = param()
    before = len(history._graphs)
    kept = (w.detach() * 2).realize()
    assert len(history._graphs) == before
    del kept


def test_graphs_go_with_their_buffers():
    w = param()
    gc.collect()
    before = len(history._graphs)
    h = (w * 2).realize()
    assert len(history._graphs) == before + 1
    del h
    gc.collect()
    assert len(history._graphs) == before


def test_a_write_that_waits_does_not_hide_the_parameter():
    """A parameter that waits for a store of a realized gradient is still what the next gradient is taken of."""
    def run(eager: bool) -> list[object]:
        w, v = param(), Tensor([4.0, 0.5, 2.0]).is_param_().realize()
        (w * v * v).sum().backward()
        for t in (w, v):
            t.grad.realize()
            t.assign(t - t.grad * 0.5)
            t.grad.assign(t.grad * 0)
        if eager:
            Tensor.realize(w, v, w.grad, v.grad)
        loss = (w * w * v).sum().backward()
        once = loss.gradient(w)[0]
        return [loss.item(), w.grad.tolist(), v.grad.tolist(), once.tolist()]
    assert run(False) == run(True)
