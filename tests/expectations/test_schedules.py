"""Schedules: no views in the kernel graph, sizes in the buffers, copies into storage of the largest shape."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, TinyJit, Variable
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.spec import spec_kernel_graph

PROGRAMS: dict[str, Callable[[], Tensor]] = {
    "reshape, then a reduction": lambda: Tensor.ones(6, 4).contiguous().reshape(3, 8).sum(1).exp(),
    "a slice": lambda: (Tensor.ones(6, 4).contiguous()[1:3] * 2).sum(),
    "softmax": lambda: Tensor.ones(6, 4).contiguous().softmax(),
    "split over devices": lambda: Tensor.ones(6, 4).shard(names(3), 0).contiguous().sum(0) + 1,
    "from another device": lambda: Tensor.ones(6, 4).contiguous().T.to(names(2)[1]) + 1,
    "stored in a slice": lambda: assigned(),
    "of symbolic size": lambda: rows(4).softmax(0).contiguous().sum(),
}


def rows(n: int) -> Tensor:
    return Tensor.ones(6, 4).contiguous()[:Variable("n", 1, 6).bind(n)]


def assigned() -> Tensor:
    t = Tensor.zeros(6, 4).contiguous().realize()
    t[2:4] = Tensor.ones(2, 4).contiguous() * 3
    return t


def bases(linear: UOp) -> set[UOp]:
    return {a for c in linear.src for a in c.src[1:]}


@pytest.mark.parametrize("name", PROGRAMS)
def test_arguments_of_calls_are_storage(name: str) -> None:
    """RESHAPE, SHRINK and UNSHARD over storage do not reach the kernel graph."""
    linear = PROGRAMS[name]().schedule_linear()
    assert linear.src
    for arg in bases(linear):
        assert arg.op in (Ops.BUFFER, Ops.PARAM) or arg.is_bound_var, arg
        if arg.op is Ops.BUFFER:
            assert arg.src == () and isinstance(arg.arg.size, int) and isinstance(arg.arg.device, str)
    for call in linear.src:
        if call.src[0].op is Ops.SINK:
            views = {Ops.RESHAPE, Ops.SHRINK, Ops.PERMUTE, Ops.EXPAND, Ops.PAD, Ops.FLIP, Ops.UNSHARD, Ops.MSTACK}
            assert not views & {u.op for u in call.src[0].toposort()}
    assert all(spec_kernel_graph.accepts(a) for a in bases(linear) if a.op is Ops.BUFFER)


@pytest.mark.parametrize("name", PROGRAMS)
def test_storage_in_a_kernel_has_the_size_of_the_buffer(name: str) -> None:
    for call in PROGRAMS[name]().schedule_linear().src:
        if call.src[0].op is not Ops.SINK:
            continue
        params = {u.arg.slot: u for u in call.src[0].toposort() if u.op is Ops.PARAM and u.arg.slot >= 0}
        for slot, p in params.items():
            arg = call.src[1 + slot]
            assert p.arg.size == arg.arg.size and p.dtype is arg.dtype and p.src == ()


def test_temporaries_of_symbolic_values_have_the_largest_size() -> None:
    n = Variable("n", 1, 6)
    x = Tensor.ones(6, 4).contiguous().realize()
    linear = (x[:n.bind(2)] * 2).contiguous().schedule_linear()
    assert [c.src[1].arg.size for c in linear.src] == [24]


def test_a_copy_of_a_symbolic_value_takes_storage_of_the_largest_shape() -> None:
    n = Variable("n", 1, 6)
    data = np.arange(24, dtype=np.float32).reshape(6, 4)
    x = Tensor(data).realize()
    for i in (2, 6, 1):
        moved = x[:n.bind(i)].to(names(2)[1])
        copies = [c for c in moved.schedule_linear().src if c.src[0].op is Ops.COPY]
        assert [c.src[1].arg.size for c in copies] == [24] and moved.device == names(2)[1]
        assert (moved.numpy() == data[:i]).all()


def test_the_axes_of_a_parameter_are_in_the_graph() -> None:
    """What is split is UNSHARD over storage of one shard, also in what programs are compared by."""
    x = Tensor.ones(6, 4).shard(names(3), 0).contiguous().realize()
    storage = x.uop.buf_uop
    assert storage.op is Ops.BUFFER and storage.arg.size == 8 and storage.arg.device == names(3)
    assert [u.op for u in x.uop.toposort() if u.op is Ops.UNSHARD] == [Ops.UNSHARD]
    linear = (x * 2).contiguous().schedule_linear()
    assert [(c.src[1].arg.device, c.src[1].arg.size) for c in linear.src] == [(d, 8) for d in names(3)]


# *** devices ***
def test_allreduce_all_to_all_jit() -> None:
    """Five runs, each of other random values."""
    with Context(ALL2ALL=2):
        total = TinyJit(lambda x: x.sum(0))
        for i in range(5):
            Tensor.manual_seed(i)
            x = Tensor.rand(4, 256, 256).realize()
            got = total(x.shard(names(4), 0).realize())
            np.testing.assert_almost_equal(got.numpy(), x.numpy().sum(0), decimal=5)
