"""Order over states of storage, views in the result, two buffers in turns, stages, limits, folded copies."""
from __future__ import annotations

import gc

import numpy as np
import pytest
from schedule.helpers import assign, check, count, kernels, output, param, schedule
from schedule.random_graphs import Grower

from tinyhost import Context, Device, GlobalCounters, Tensor, TinyJit
from tinyhost.capabilities import Capabilities
from tinyhost.dtype import dtypes
from tinyhost.errors import ScheduleError
from tinyhost.uop import GroupOp, Ops, UOp


def written(linear: UOp) -> list[int]:
    """The slot that each call writes, in order."""
    return [c.src[1].arg.slot for c in linear.src]


def temporaries(linear: UOp) -> int:
    """Buffers that a schedule asks for."""
    return sum(u.op is Ops.BUFFER for u in linear.toposort())


# *** order ***
def test_each_state_is_read_between_its_writer_and_the_next() -> None:
    a, b = param(0, (4, 4)), param(1, (4, 4))
    one = assign(a, b.permute((1, 0)))
    two = assign(one, one * 2 + b)
    effects = output(12, two.permute((1, 0))), output(11, one.permute((1, 0))), two, output(10, a.permute((1, 0)))
    order = written(check(*effects))
    assert order.index(10) < order.index(0) < order.index(11) < len(order) - 1 - order[::-1].index(0) < order.index(12)


def test_a_reader_of_one_part_runs_before_the_writer_of_another() -> None:
    a, b = param(0, (6, 4)), param(1, (2, 4))
    new = a.after(a.shrink(((0, 2), (0, 4))).store(b))
    rest = a.shrink(((1, 6), (0, 4)))  # overlaps with what is written
    assert written(check(new, output(2, rest.sum(0)))) == [2, 0]
    assert written(check(new, output(2, new.shrink(((1, 6), (0, 4))).sum(0)))) == [0, 2]


def test_a_kernel_that_reads_two_states_waits_for_both() -> None:
    a, b, c = (param(i, (4, 4)) for i in range(3))
    x, y = assign(a, c.permute((1, 0))), assign(b, c * 3)
    order = written(check(output(4, x.permute((1, 0)) - y), x, y))
    assert order[-1] == 4 and sorted(order) == [0, 1, 4]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_a_rotation_of_buffers_is_a_cycle(n: int) -> None:
    a = [param(i, (4,)) for i in range(n)]
    with pytest.raises(ScheduleError, match="cycle detected in assign graph"):
        schedule(*[assign(a[i], a[(i + 1) % n] + 1) for i in range(n)])
    check(*[assign(a[i], a[i + 1] + 1) for i in range(n - 1)])  # a shift has an order
    check(*[assign(a[i], a[i + 1] + 1) for i in reversed(range(n - 1))])


def test_a_cycle_through_a_value_that_is_stored() -> None:
    a, b = param(0, (4, 4)), param(1, (4,))
    total = a.sum(1)  # read twice: a kernel of its own, which needs the old a
    with pytest.raises(ScheduleError, match="cycle detected in assign graph"):
        schedule(output(2, assign(a, total.reshape((4, 1)) + a) * total * a), output(3, total + b))


# *** views ***
@pytest.mark.parametrize("block", range(4))
def test_no_view_is_left_in_a_schedule(block: int) -> None:
    seen = 0
    for seed in range(5000 + block * 25, 5000 + (block + 1) * 25):
        try:
            linear = schedule(*Grower(seed, 6 + seed % 14).sink())
        except ScheduleError:
            continue
        for call in linear.src:
            assert all(u.op in (Ops.PARAM, Ops.BUFFER) for u in call.src[1:]), seed
            moved = [u.op for u in call.src[0].toposort() if u.op in GroupOp.Movement or u.op in (Ops.AFTER, Ops.STAGE)]
            assert not moved, (seed, moved)
            seen += 1
    assert seen > 50


@pytest.mark.parametrize("devices", [2, 3])
def test_no_view_is_left_in_a_schedule_of_several_devices(devices: int) -> None:
    names = tuple(Device.canonicalize(f"CPU:{i}") for i in range(devices))
    x = Tensor(np.arange(60, dtype=np.float32).reshape(10, 6)).shard(names, 0).realize()
    programs = [x.T @ x, x[1:] - x[:-1], x.flip(0).reshape(5, 12).sum(1), x.to(names[1]) + 1, x.pad(((1, 2), (0, 0)))]
    for y in programs:
        linear = y.contiguous().schedule_linear()
        assert linear.src
        for call in linear.src:
            views = (Ops.RESHAPE, Ops.UNSHARD, Ops.MSTACK, Ops.AFTER, Ops.PERMUTE)
            assert not [a.op for a in call.src[1:] if a.op in views]
            assert not any(u.op in GroupOp.Movement for u in call.src[0].toposort() if call.src[0].op is Ops.SINK)


# *** two buffers ***
def test_two_buffers_that_write_each_other_need_no_third() -> None:
    a, b = param(0, (8, 8)), param(1, (8, 8))
    for _ in range(6):
        b = assign(b, a.permute((1, 0)) + a.flip(0))
        a = assign(a, b.permute((1, 0)) - b.flip(1))
    linear = check(a, b)
    assert written(linear) == [1, 0] * 6 and temporaries(linear) == 0


def test_a_buffer_that_is_written_from_itself_needs_one_more() -> None:
    a = param(0, (8, 8))
    for _ in range(4):
        a = assign(a, a.permute((1, 0)) + 1)
    assert count(check(a)) == 8


@pytest.mark.parametrize("jit", [False, True])
def test_alternating_buffers_allocate_nothing(jit: bool) -> None:
    a, b = Tensor(np.arange(4096, dtype=np.int32)).realize(), Tensor(np.zeros(4096, np.int32)).realize()
    want = np.arange(4096, dtype=np.int32)

    def step() -> Tensor:
        b.assign(a.flip(0) + a)
        a.assign(b.reshape(64, 64).T.reshape(-1) - b)
        return a.realize(b)
    run = TinyJit(step) if jit else step
    used = []
    for _ in range(6):
        run()
        other = want[::-1] + want
        want = other.reshape(64, 64).T.reshape(-1) - other
        gc.collect()
        used.append(GlobalCounters.mem_used)
        assert (a.numpy() == want).all() and (b.numpy() == other).all()
    assert len(set(used[2:])) == 1


# *** stages ***
def test_the_length_at_which_a_reduction_is_split() -> None:
    for caps in (Capabilities(grid=True), Capabilities(threads=4)):
        for dtype in (dtypes.int32, dtypes.float32):
            for n, want in ((32_764, 1), (32_768, 2)):
                a = param(0, (n,), dtype)
                assert count(check(output(1, a.sum()), caps=caps)) == want
    assert count(check(output(1, param(0, (32_768, 4)).max(0)), caps=Capabilities(threads=4))) == 1  # enough results


@pytest.mark.parametrize("op", ["sum", "max", "prod"])
def test_stages_give_what_one_kernel_gives(op: str) -> None:
    a = param(0, (4, 20_000), dtypes.int32)
    flat = a.reshape((80_000,)) + 1
    value = {"sum": flat.sum, "max": flat.max, "prod": flat.prod}[op]()
    linear = check(output(1, value), caps=Capabilities(threads=2))
    assert count(linear) == 2 and temporaries(linear) == 1
    first, second = kernels(linear)
    sizes = [sorted(int(r.src[0].const_value) for r in k.toposort() if r.op is Ops.RANGE) for k in (first, second)]
    assert np.prod(sizes[0]) == 80_000 and sizes[1][0] in sizes[0]  # pieces, then over the pieces
    with Context(SPLIT_REDUCEOP=0):
        assert count(check(output(1, value), caps=Capabilities(threads=2))) == 1


# *** limits ***
@pytest.mark.parametrize("device, limit, setting", [
    ("PYTHON::gpu", 8, 0), ("PYTHON::gpu", 5, 5), ("", 4, 4), ("", 8, 8)])
def test_a_program_within_the_buffers_of_a_device(device: str, limit: int, setting: int) -> None:
    data = [np.full(5, i, np.int32) for i in range(20)]
    with Context(MAX_KERNEL_BUFFERS=setting, DEV=device or Device.DEFAULT):
        total, want = Tensor(data[0]).realize(), data[0]
        for i, d in enumerate(data[1:]):
            x = Tensor(d).realize()
            total, want = (total + x, want + d) if i % 2 else (total.maximum(x) * 2, np.maximum(want, d) * 2)
        linear = total.schedule_linear()
        assert len(linear.src) == -(-(len(data) - 1) // (limit - 2))  # each has an output and what was computed before
        assert all(sum(a.op is Ops.BUFFER for a in call.src[1:]) <= limit for call in linear.src)
        assert total.tolist() == want.tolist()


# *** nothing, and copies that need not be ***
@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 2, 5)])
def test_values_without_elements_need_no_kernel(shape: tuple[int, ...]) -> None:
    a = param(0, (4, 3))
    nothing = a.shrink(((0, 0), (0, 3))).reshape(shape)
    assert count(schedule(output(1, nothing + 1))) == 0
    linear = check(output(2, nothing.sum(tuple(range(len(shape)))) + param(1, ())))
    assert count(linear) == 1
    assert not any(u.arg.slot == 0 for c in linear.src for u in c.src[1:])


def test_copies_in_a_row_are_those_that_move_something() -> None:
    a = param(0, (4, 5))
    there = a.copy_to_device("CPU:1")
    ops = [c.src[0].op for c in check(output(1, there.copy_to_device("CPU:1") + 1, "CPU:1")).src]
    assert ops == [Ops.COPY, Ops.SINK]
    twice = there.copy_to_device("CPU:2") + there.copy_to_device("CPU:2")
    ops = [c.src[0].op for c in check(output(1, twice, "CPU:2")).src]
    assert ops == [Ops.COPY, Ops.COPY, Ops.SINK]  # equal copies are one


def test_a_constant_is_made_where_it_is_needed() -> None:
    ones = UOp.const(3.0, dtypes.float32).reshape((1,)).expand((5,))
    linear = check(output(1, param(0, (5,), device="CPU:1") + ones.copy_to_device("CPU:1"), "CPU:1"))
    assert [c.src[0].op for c in linear.src] == [Ops.SINK]
