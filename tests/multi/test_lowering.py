"""What several devices cost: which programs copy what between devices, and how many kernels are compiled."""
from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Tensor, nn
from tinyhost.dtype import dtypes
from tinyhost.errors import ScheduleError
from tinyhost.ops import Ops
from tinyhost.schedule.lanes import Lanes, covered, joined, part, shard_spans, whole
from tinyhost.schedule.multi import lower_devices
from tinyhost.uop import UOp

D = names(4)
N = np.arange(96, dtype=np.float32).reshape(8, 12)


def copies(t: Tensor) -> list[int]:
    """Elements of each copy that computing ``t`` makes."""
    return [int(c.src[1].max_numel()) for c in t.schedule_linear().src if c.src[0].op is Ops.COPY]


def rows() -> Tensor:
    return Tensor(N).shard(D, 0).realize()


FREE: dict[str, Callable[[Tensor], Tensor]] = {
    "element-wise": lambda x: (x * 2 + x.relu()).exp(),
    "row of values": lambda x: x * Tensor(N[0]).to(D).realize(),
    "sum of other axes": lambda x: x.sum(1),
    "transpose": lambda x: x.T.contiguous(),
    "merged inner axes": lambda x: x.reshape(8, 3, 2, 2).permute(0, 2, 1, 3).reshape(8, 12),
    "split outer axis": lambda x: x.reshape(4, 2, 12).sum(1),
    "softmax": lambda x: x.softmax(1),
    "product": lambda x: x @ Tensor(N.T.copy()).to(D).realize(),
    "arange": lambda x: x + Tensor.arange(8).reshape(8, 1),
    "columns by index": lambda x: x[:, Tensor([1, 5, 1]).to(D).realize()],
}


@pytest.mark.parametrize("name", FREE)
def test_what_copies_nothing(name: str):
    t = FREE[name](rows())
    linear = t.schedule_linear()
    assert all(c.src[0].op is not Ops.COPY for c in linear.src)
    assert len({c.src[0] for c in linear.src}) <= max(1, len(linear.src) // 4) + (name == "arange") * 3


def test_a_value_on_each_device_is_cut_where_it_is():
    assert copies(rows() + Tensor(N).to(D).realize()) == []


def test_neighbours_exchange_one_row():
    x = rows()
    everyone = [1] * 12  # the all-reduce of a number
    assert sorted(copies((x[1:] - x[:-1]).sum())) == everyone + [12] * 3
    assert sorted(copies(x.pad(((3, 0), (0, 0)))[3:].sum())) == everyone
    assert copies(x.flip(0).sum(1)) == [2] * 4  # each shard is stored on the other side


def test_a_part_on_one_device_stays_there():
    x = rows()
    linear = Tensor((x[2:4] * 2).sum(1).uop.copy_to_device(D[1])).schedule_linear()
    assert [c.src[0].op for c in linear.src].count(Ops.COPY) == 0


def test_gathering_copies_the_other_shards():
    assert copies(rows().to(D[0])) == [24] * 3 and sorted(copies(rows().to(names(5)[4]))) == [24] * 4
    assert copies(Tensor(N).to(D).realize().to(D[2])) == []
    assert sum(copies((rows() + 1).reshape(32, 3)[1:2].to(D[0]))) <= 24


def test_a_convolution_over_the_batch_copies_nothing():
    conv = nn.Conv2d(3, 4, 3, padding=1)
    for t in (conv.weight, conv.bias):
        t.shard_(D).realize()
    x = Tensor(np.ones((8, 3, 6, 6), np.float32)).shard(D, 0).realize()
    linear = conv(x).schedule_linear()
    assert len(linear.src) == 4 and len({c.src[0] for c in linear.src}) == 1


# *** lanes ***
def value(spans: tuple[tuple[int, int], ...], extent: int) -> Lanes:
    """A vector of which the lanes hold spans."""
    nodes = [None if a == b else UOp.param(i, dtypes.float32, (b - a,), D[i]) for i, (a, b) in enumerate(spans)]
    return Lanes(D[:len(spans)], tuple(nodes), 0, spans, extent)


@pytest.mark.parametrize("spans", [((0, 3), (3, 6)), ((4, 6), (0, 4)), ((0, 0), (0, 6)), ((1, 2), (4, 5))])
def test_parts_of_lanes(spans: tuple[tuple[int, int], ...]):
    v = value(spans, 6)
    for lo in range(6):
        for hi in range(lo + 1, 7):
            got = part(v, D[0], 0, (lo, hi))
            assert got.shape == (hi - lo,) and got.device in (None, D[0])
            taken = {u.src[0].base for u in got.toposort() if u.op is Ops.COPY}
            assert taken == ({v.nodes[1]} if v.nodes[1] is not None and max(lo, spans[1][0]) < min(hi, spans[1][1])
                             else set())
    assert whole(v, D[1]).shape == (6,)
    full = covered(v)
    assert sum(b - a for a, b in full.spans) == 6 and covered(full) is full
    assert joined([whole(v, D[0])], 0).shape == (6,)


def test_equal_shards():
    assert shard_spans(12, 4) == ((0, 3), (3, 6), (6, 9), (9, 12)) and shard_spans(10, 4)[-1] == (9, 10)
    assert shard_spans(2, 4) == ((0, 1), (1, 2), (0, 0), (0, 0)) and shard_spans(5, 4)[2:] == ((4, 5), (0, 0))


# *** graphs that are refused ***
def test_a_graph_on_one_device_is_left_alone():
    sink = UOp.sink(UOp.param(0, dtypes.float32, (4,), D[0]).contiguous())
    assert lower_devices(sink) is sink


def test_devices_must_differ():
    x = UOp.param(0, dtypes.float32, (4,), D[0])
    for twice in (x.copy_to_device((D[0], D[0])), x.mstack(x)):
        with pytest.raises(ScheduleError, match="a value on several devices needs different ones, got"):
            lower_devices(UOp.sink(twice.contiguous()))


def test_operands_on_other_devices():
    x, y = UOp.param(0, dtypes.float32, (4,), D[:2]), UOp.param(1, dtypes.float32, (4,), D[0])
    text = r"Ops.ADD over \('CPU', 'CPU:1'\) has an operand of shape \(4,\) on CPU: it was not moved with the others; "
    with pytest.raises(ScheduleError, match=text + r"move it with .shard\("):
        lower_devices(UOp.sink((x + y).contiguous()))


def test_two_split_axes():
    x = UOp.param(0, dtypes.float32, (4, 4), D[:2])
    r, s = (UOp.range(2, i) for i in (0, 1))
    text = r"a value of shape \(8, 8\) is split along the axes \(0, 1\): split it along one"
    with pytest.raises(ScheduleError, match=text):
        lower_devices(UOp.sink(x.unshard((0, 1), (r, s)).contiguous()))
