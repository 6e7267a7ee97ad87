"""shard, to, assign and item assignment on several devices: where parts lie, what stays split, what is refused."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.multi.devices import names
from tinyhost import Context, Tensor, Variable
from tinyhost.device.buffer import buffer_of
from tinyhost.device.multibuffer import MultiBuffer
from tinyhost.errors import DeviceError, DeviceNotFound, PlacementError, ScheduleError, ShapeError
from tinyhost.ops import Ops

N = np.arange(48, dtype=np.float32).reshape(12, 4)


def parts(t: Tensor) -> list[np.ndarray[Any, Any]]:
    """What each device holds of a realized tensor."""
    return [b.numpy() for b in buffer_of(t.realize().uop.buf_uop).parts]


@pytest.mark.parametrize("count", [2, 3, 4, 6])
def test_shards_lie_in_order(count: int):
    rows = Tensor(N).shard(names(count), 0)
    assert rows.shape == (12, 4) and rows.device == names(count) and rows.uop.axis == 0
    assert rows.uop.shard_shape == (12 // count, 4)
    for got, want in zip(parts(rows), np.split(N, count)):
        assert (got == want.reshape(-1)).all()
    if 4 % count == 0:
        columns = Tensor(N).shard(names(count), axis=-1)
        assert [p.tolist() for p in parts(columns)] == [p.reshape(-1).tolist() for p in np.split(N, count, 1)]


def test_without_an_axis_each_device_holds_all():
    for t in (Tensor(N).shard(names(3)), Tensor(N).to(names(3)), Tensor(N, device=names(3))):
        assert t.device == names(3) and t.uop.axis is None
        assert all((p == N.reshape(-1)).all() for p in parts(t)) and len(parts(t)) == 3


def test_one_device_is_a_move():
    t = Tensor(N).shard(names(2)[1:], 0)
    assert t.device == names(2)[1] and (t.numpy() == N).all()


def test_results_stay_split():
    x = Tensor(N).shard(names(4), 0).realize()
    for t, axis in [(x + 1, 0), (x.T, 1), (x.reshape(12, 2, 2), 0), (x.sum(1), 0), (x.sum(0), None), (x @ x.T, 1),
                    (x.zeros_like(), 0), (x.rand_like(), 0), (x.clone(), 0), (x.contiguous(), 0), (x.relu().max(1), 0)]:
        assert t.realize().uop.axis == axis
        assert t.device == names(4)
    assert {p.size for p in parts(x + 1)} == {12} and {p.size for p in parts(x.sum(0))} == {4}


def test_moves_between_sets_of_devices():
    for axis in (0, 1, None):
        x = Tensor(N).shard(names(4), axis).realize()
        assert (x.to(names(1)[0]).numpy() == N).all() and x.to(names(6)[5]).device == names(6)[5]
        for target, other in [(names(2), 0), (names(6)[2:5], 0), (names(6)[4:], 1), (names(4)[::-1], 0),
                              (names(3), None)]:
            y = x.shard(target, other)
            assert (y.numpy() == N).all() and y.device == target and y.uop.axis == other
            assert (y.realize().numpy() == N).all()


@pytest.mark.parametrize("rows", [1, 2, 3, 5, 7, 10])
def test_an_axis_that_does_not_divide(rows: int):
    """Shards are equal but for the last ones, which hold less or nothing; everything works as on equal ones."""
    each, n = -(-rows // 4), np.arange(rows * 3, dtype=np.float32).reshape(rows, 3)
    x = Tensor(n).shard(names(4), 0)
    assert x.shape == (rows, 3) and x.uop.axis == 0 and x.uop.shard_shape == (each, 3) and (x.numpy() == n).all()
    y = (x.realize() * 2 + x).realize()
    assert y.uop.axis == 0 and (y.numpy() == 3 * n).all() and {p.size for p in parts(y)} == {each * 3}
    assert (x.sum(0).numpy() == n.sum(0)).all() and (x.max(0).numpy() == n.max(0)).all()
    assert ((x.T @ x).numpy() == n.T @ n).all() and (x.flip(0).numpy() == n[::-1]).all()
    (g,) = (x * x).sum().gradient(x)
    assert (g.numpy() == 2 * n).all()
    x[-1] = 9
    x += 1
    n[-1] = 9
    assert (x.numpy() == n + 1).all() and (x.clone().numpy() == n + 1).all()
    assert (x.zeros_like() + 1).realize().uop.axis == 0


@pytest.mark.parametrize("before", [0, 1, None])
@pytest.mark.parametrize("after", [0, 1])
def test_own_parts_of_a_value_split_otherwise(before: int | None, after: int):
    x = Tensor(N).shard(names(4), before).realize()
    y = Tensor(x.uop.own_shard(after).unshard(after)).contiguous().realize()
    assert y.uop.axis == after and (y.numpy() == N).all()
    assert y.uop.sharding is not None and y.uop.sharding[0][0] == after
    assert [p.tolist() for p in parts(y)] == [p.reshape(-1).tolist() for p in np.split(N, 4, after)]


def test_shard_in_place_and_like():
    x, y = Tensor(N), Tensor(N.T.copy()).shard(names(2), 1)
    assert x.shard_(names(4), 0) is x and x.uop.axis == 0 and (x.numpy() == N).all()
    for z in (Tensor(N.T.copy()).shard_like(y), x.T.shard_like(y)):
        assert z.device == names(2) and z.uop.axis == 1 and (z.numpy() == N.T).all()
    assert y.shard_like(y) is y and y.shard_like(Tensor(N, device=names(1)[0])).device == names(1)[0]
    one = Tensor(N).to(names(2)).shard_like(Tensor(N).to(names(2)))
    assert one.uop.axis is None


def test_gradients_move_along():
    x = Tensor(N).is_param_()
    (x * 2).sum().backward()
    x.shard_(names(2), 0)
    assert x.grad.device == names(2) and x.requires_grad and (x.grad.numpy() == 2).all()


# *** writes ***
@pytest.mark.parametrize("axis", [0, 1, None])
def test_writes(axis: int | None):
    x, want = Tensor(N).shard(names(2), axis).realize(), N.copy()
    view = x[2:4]
    x += 1
    want += 1
    x[3:9] = 5
    want[3:9] = 5
    x[:, 1] = x[:, 2]
    want[:, 1] = want[:, 2]
    x[4] = x[11]
    want[4] = want[11]
    assert (x.numpy() == want).all() and (view.numpy() == want[2:4]).all()
    x[1:5, 1:3] = Tensor(np.full((4, 2), -3, np.float32)).shard(names(2), 0)
    want[1:5, 1:3] = -3
    x[::2] = 7
    want[::2] = 7
    x[::-1][2:5] = 1
    want[::-1][2:5] = 1
    assert (x.numpy() == want).all() and x.uop.axis == axis
    x.assign(Tensor(N).shard(names(2), 1))
    assert (x.numpy() == N).all()
    x.assign(x.flip(0) * 2)
    assert (x.numpy() == N[::-1] * 2).all()


def test_lazy_readers_see_their_own_time():
    x = Tensor(N).shard(names(3), 0).realize()
    before = x.sum(0)
    x.assign(x * 2)
    assert (x.sum(0).numpy() == 2 * N.sum(0)).all() and (before.numpy() == N.sum(0)).all()


def test_symbolic_rows_of_a_value_on_several_devices():
    v = Variable("n", 1, 4)
    x = Tensor(N).shard(names(3), 0).realize()
    for n in (1, 3, 4):
        part = x[:, :v.bind(n)]
        assert part.sum().item() == N[:, :n].sum() and (part.sum(1).numpy() == N[:, :n].sum(1)).all()


# *** what is refused ***
D = names(4)
REFUSED = {
    "a symbolic axis": (
        lambda x: Tensor(np.ones((6, 10)))[:Variable("n", 1, 6).bind(3)].shard(D, 0), ShapeError,
        r"cannot shard axis 0 of shape \(.*, 10\) over 4 devices \('CPU', .*\): .* is symbolic; shard another axis",
    ),
    "no axis": (lambda x: Tensor(3.0).shard(D, 0), ShapeError, "cannot shard a tensor without axes over"),
    "axis out of range": (lambda x: Tensor(N).shard(D, 2), IndexError, "axis 2 is outside of -2 to 1"),
    "twice": (lambda x: Tensor(N).shard(D[:1] * 2, 0), DeviceError,
              r"a tensor on several devices needs different ones, got \('CPU', 'CPU'\): each holds a part of it"),
    "twice under two names": (lambda x: Tensor(N).to(("CPU", "cpu:0")), DeviceError, "needs different ones, got"),
    "new on one twice": (lambda x: Tensor.zeros(4, device=D[1:2] * 2), DeviceError, "needs different ones, got"),
    "no devices": (lambda x: Tensor(N).shard((), 0), DeviceError, r"shard takes a tuple of devices, got \(\)"),
    "an unknown device": (lambda x: Tensor(N).shard((D[0], "NOPE"), 0).realize(), DeviceNotFound,
                          "no installed distribution offers a device named 'NOPE'"),
    "negative axis out of range": (lambda x: Tensor(N).shard(D, -3), IndexError, "axis -3 is outside of -2 to 1"),
    "no number": (lambda x: Tensor(N).shard(D, "rows"), TypeError, "an axis is an int, got 'rows'"),
    "in another order": (lambda x: x + Tensor(N).shard(D[::-1], 0), PlacementError,
                         r"operand 1 of shape \(12, 4\) is on \('CPU:3', .*\) and was not moved with the others"),
    "on fewer devices": (lambda x: x * Tensor(N).shard(D[:2], 0), PlacementError,
                         r"is on \('CPU', 'CPU:1'\) and was not moved with the others on .*; move it with .to"),
    "a condition elsewhere": (lambda x: (Tensor(N) > 0).where(x, 0), PlacementError, "was not moved with the others"),
    "joined with one elsewhere": (lambda x: x.cat(Tensor(N)), PlacementError, "was not moved with the others"),
    "an index elsewhere": (lambda x: x[Tensor([1, 2])], RuntimeError,
                           r"index on CPU for a tensor on \('CPU', .*\): move it with .to\(\)"),
    "an item from one device": (lambda x: x.__setitem__(0, Tensor([1.0, 2, 3, 4])), PlacementError,
                                r"setitem device mismatch \('CPU', .*\) != CPU: move the value with .to\(\)"),
    "no lanes": (lambda x: Tensor(N).uop.allreduce(Ops.ADD, D), RuntimeError,
                 "allreduce needs a value on several devices, this one is on CPU"),
    "items moved between shards": (lambda x: x.reshape(3, 16).uop.axis, RuntimeError,
                                   r"reshape \(12, 4\) -> \(3, 16\) moved items between shards of axis 0"),
    "no tuple": (lambda x: Tensor(N).shard("CPU", 0), DeviceError,
                 "shard takes a tuple of devices, got 'CPU': use .to"),
    "hidden weight": (
        lambda x: x @ Tensor(np.ones((4, 5), np.float32)), PlacementError,
        r"operand 1 of shape \(.*4.*\) is on CPU and was not moved with the others on \('CPU', 'CPU:1'",
    ),
    "assign from one device": (lambda x: x.assign(Tensor(N)), PlacementError,
                               r"assign device mismatch \('CPU', .* CPU"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str):
    make, kind, text = REFUSED[what]
    with Context(DEV="CPU"), pytest.raises(kind, match=text):
        make(Tensor(N).shard(D, 0).realize())


def test_storage_needs_a_device_for_each_part():
    a, b = buffer_of(Tensor(N).shard(names(2), 0).realize().uop.buf_uop).parts
    both = MultiBuffer([a, b])
    assert both.device == names(2) and both.lane(names(2)[1]) is b and both.nbytes == 2 * a.nbytes
    with pytest.raises(ValueError, match="storage on several devices needs a different device for each part, got"):
        MultiBuffer([a, a])


def test_a_store_across_shards_is_refused():
    x = Tensor(N).shard(names(4), 1).realize()
    with pytest.raises(ScheduleError, match=r"cannot store into a view of shape \(4,\) of a value that is split over "):
        x.reshape(48)[3:7].assign(Tensor([1.0, 2, 3, 4]).to(names(4))).realize()


def test_a_store_at_a_variable_place_of_the_split_axis_is_refused():
    v = Variable("s", 0, 9)
    x = Tensor(N).shard(D, 0).realize()
    text = r"cannot store into a view of shape \(2, 4\) .*: its place along the split axis is a variable; split the "
    with pytest.raises(ScheduleError, match=text):
        x[v.bind(3):v.bind(3) + 2] = Tensor(np.ones((2, 4), np.float32)).shard(D)
        x.realize()


# *** several values at once ***
def test_a_value_of_which_only_a_part_is_computed_with():
    """Storage that a program is told of is filled on all devices, even where one lane alone is read."""
    for axis in (0, None):
        x = Tensor(N).shard(names(4), axis)
        part = (x[1:2] * 2).to(names(2)[1]).realize()
        assert (part.numpy() == N[1:2] * 2).all() and (x.numpy() == N).all()
        y = Tensor(N).shard(names(4), axis).clone()
        y[3] = 5
        row = y[3:4].to(names(1)[0]).realize()
        want = N.copy()
        want[3] = 5
        assert (row.numpy() == 5).all() and (y.numpy() == want).all()


def test_copies_of_a_value_that_is_an_output_too():
    x = Tensor(N).realize()
    y = (x * 3).contiguous()
    copies = [y.to(d) for d in names(4)[1:]]
    for order in (y, *copies), (*copies, y):
        order[0].realize(*order[1:])
        assert all((t.numpy() == N * 3).all() for t in order)
        y = (x * 3).contiguous()
        copies = [y.to(d) for d in names(4)[1:]]
