"""Effects: stores, states, copies, variables, dtypes of what is stored, functions and calls."""
from __future__ import annotations

import numpy as np
import pytest
from schedule.helpers import CAPS, assign, check, count, inputs_of, kernels, loads, output, param, schedule
from schedule.interp import run_linear

from tinyhost.capabilities import Capabilities
from tinyhost.dtype import dtypes
from tinyhost.errors import ScheduleError
from tinyhost.uop import Ops, UOp


# *** effects ***
def test_contiguous_makes_a_kernel() -> None:
    a = param(0, (4, 5))
    assert count(check(output(1, (a + 1).contiguous() * 2))) == 2
    assert count(check(output(1, (a + 1).contiguous()))) == 1
    assert count(check(output(1, a.contiguous() + 1))) == 1


def test_opts_of_contiguous_reach_the_kernel() -> None:
    from tinyhost.uop import Opt, OptOps
    opts = (Opt(OptOps.UPCAST, 0, 4),)
    (ast,) = kernels(schedule(output(1, UOp(Ops.CONTIGUOUS, (param(0, (8,)) + 1,), opts))))
    assert ast.arg.opts_to_apply == opts


def test_assign_reads_its_own_element() -> None:
    a = param(0, (4, 4))
    assert count(check(assign(a, a * 2 + 1))) == 1


@pytest.mark.parametrize("value", [
    lambda a: a.permute((1, 0)), lambda a: a.flip(0) + a, lambda a: a + a.shrink(((0, 1), (0, 4))),
    lambda a: a + a.sum(1, keepdim=True), lambda a: (a.reshape((4, 4, 1)) * a).sum(1)])
def test_assign_that_would_overwrite_its_input(value) -> None:
    a = param(0, (4, 4))
    assert count(check(assign(a, value(a)))) == 2


def test_setitem_on_views() -> None:
    a, v = param(0, (6, 4)), param(1, (2, 4))
    row = a.shrink(((1, 3), (0, 4)))
    assert count(check(a.after(row.store(v + 1)))) == 1
    other = a.shrink(((3, 5), (0, 4)))
    assert count(check(a.after(row.store(other + 1)))) == 1  # apart: no temporary
    overlapping = a.shrink(((2, 4), (0, 4)))
    assert count(check(a.after(row.store(overlapping + 1)))) == 2
    first = a.shrink(((0, 1), (0, 4)))
    check(a.after(row.store(v)).after(first.store(v.shrink(((0, 1), (0, 4))))))


def test_later_state_is_read_after_the_store() -> None:
    a, b = param(0, (4, 4)), param(1, (4, 4))
    new = assign(a, a + 1)
    linear = check(output(2, new * b), new, caps=Capabilities(grid=True))
    assert count(linear) == 2
    assert linear.src[0].src[1].arg.slot == 0
    assert count(check(output(2, new * b), new)) == 1  # both outputs of an element at once


def test_readers_of_the_old_state_run_first() -> None:
    a, b = param(0, (4, 4)), param(1, (4, 4))
    new = assign(a, b.permute((1, 0)))
    linear = check(new, output(2, a * b))
    assert [c.src[1].arg.slot for c in linear.src] == [2, 0]


def test_chain_of_assigns() -> None:
    a = param(0, (5,))
    x = assign(a, a + 1)
    y = assign(x, x * 2)
    check(output(1, x + 0), y, output(2, y * y))


def test_swap_is_a_cycle() -> None:
    a, b = param(0, (4,)), param(1, (4,))
    with pytest.raises(RuntimeError, match="cycle detected in assign graph"):
        schedule(assign(a, b + 1), assign(b, a + 1))


def test_old_and_new_state_in_one_kernel_is_a_cycle() -> None:
    a = param(0, (4,))
    with pytest.raises(ScheduleError, match="cycle detected in assign graph"):
        schedule(output(1, assign(a, a + 1) * a))


def test_constant_fill_is_folded_into_readers() -> None:
    a = param(0, (4,))
    fill = assign(a, UOp.const(3.0, dtypes.float32).expand((4,)))
    linear = check(fill, output(1, fill + param(2, (4,))))
    assert all(loads(k) <= 1 for k in kernels(linear))
    assert not any(u.op is Ops.PARAM and u.arg.slot == 2 for u in kernels(linear)[1].toposort())


def test_stores_without_effect_are_dropped() -> None:
    a = param(0, (4,))
    assert count(schedule(assign(a, a))) == 0
    assert count(schedule(assign(a, UOp.invalid().expand((4,))))) == 0
    assert count(schedule(a.after())) == 0


def test_empty_values() -> None:
    a, b = param(0, (4, 3)), param(1, (3,))
    nothing = a.shrink(((0, 0), (0, 3)))
    check(output(2, nothing.sum(0) + b), output(3, nothing.prod(0) * b))
    pads = ((0, 2), (0, 0))
    mask = UOp.const(True).reshape((1, 1)).expand((1, 3)).shrink(((0, 0), (0, 3)))._pad_box(pads)
    check(output(2, mask.where(nothing._pad_box(pads), 4.0)))


# *** copies ***
def test_copy_makes_a_call_and_a_temporary() -> None:
    a = param(0, (4, 5))
    linear = check(output(1, a.copy_to_device("CPU:1") + 1, "CPU:1"))
    assert [c.src[0].op for c in linear.src] == [Ops.COPY, Ops.SINK]
    assert linear.src[0].src[1].op is Ops.BUFFER and linear.src[0].src[1].arg.device == "CPU:1"


def test_copy_into_an_output_is_direct() -> None:
    a = param(0, (4, 5))
    linear = check(output(1, a.copy_to_device("CPU:1"), "CPU:1"))
    assert [c.src[0].op for c in linear.src] == [Ops.COPY] and linear.src[0].src[1].op is Ops.PARAM


@pytest.mark.parametrize("view", [lambda x: x.shrink(((1, 3),)), lambda x: x.reshape((4, 1)).expand((4, 2)),
                                  lambda x: x.reshape((2, 2)).permute((1, 0)), lambda x: x + 1])
def test_copy_of_a_view_is_made_contiguous_first(view) -> None:
    a = param(0, (4,))
    linear = check(output(1, view(a).copy_to_device("CPU:1"), "CPU:1"))
    assert [c.src[0].op for c in linear.src] == [Ops.SINK, Ops.COPY]


def test_copy_to_the_same_device_is_the_value() -> None:
    a = param(0, (4,))
    assert [c.src[0].op for c in check(output(1, a.copy_to_device("CPU") + 1)).src] == [Ops.SINK]


def storage_only(device: str) -> Capabilities:
    return Capabilities(storage_only=device.startswith("DISK"))


def test_storage_only_device_copies_blocks() -> None:
    from tinyhost.schedule import create_linear
    disk = param(0, (64,), dtypes.uint8, "DISK:x")
    view = disk.shrink(((8, 40),)).bitcast(dtypes.float32).reshape((2, 4))
    linear = create_linear(UOp.sink(output(1, view.copy_to_device("CPU").permute((1, 0)))), storage_only)
    assert [c.src[0].op for c in linear.src] == [Ops.COPY, Ops.SINK]
    raw = np.arange(64, dtype=np.uint8)
    given = {disk: raw, param(1, (8,)): np.zeros(8, np.float32)}
    out = run_linear(linear, given)[param(1, (8,))]
    np.testing.assert_array_equal(out, raw[8:40].view(np.float32).reshape(2, 4).T.reshape(-1))


def test_storage_only_device_takes_other_views_at_the_destination() -> None:
    from tinyhost.schedule import create_linear
    disk = param(0, (4, 6), dtypes.int32, "DISK:x")
    value = disk.permute((1, 0)).copy_to_device("CPU")
    linear = create_linear(UOp.sink(output(1, value)), storage_only)
    assert [c.src[0].op for c in linear.src] == [Ops.COPY, Ops.SINK]


def test_storage_only_device_computes_nothing() -> None:
    from tinyhost.schedule import create_linear
    disk = param(0, (4,), dtypes.int32, "DISK:x")
    with pytest.raises(ScheduleError, match="only stores data"):
        create_linear(UOp.sink(output(1, (disk + 1).copy_to_device("CPU"))), storage_only)
    with pytest.raises(ScheduleError, match="cannot run a kernel on DISK:x"):
        create_linear(UOp.sink(assign(disk, disk + 1)), storage_only)


def test_store_into_a_block_of_storage_only_memory() -> None:
    from tinyhost.schedule import create_linear
    disk, a = param(0, (16,), dtypes.uint8, "DISK:x"), param(1, (4,), dtypes.uint8)
    place = disk.shrink(((4, 8),))
    linear = create_linear(UOp.sink(disk.after(place.store(a.copy_to_device("DISK:x")))), storage_only)
    assert [c.src[0].op for c in linear.src] == [Ops.COPY] and linear.src[0].src[1].op is Ops.SHRINK
    memory = run_linear(linear, {disk: np.zeros(16, np.uint8), a: np.arange(1, 5, dtype=np.uint8)})
    assert memory[disk].tolist() == [0] * 4 + [1, 2, 3, 4] + [0] * 8


# *** variables ***
def test_variable_as_value() -> None:
    v = UOp.variable("v", 1, 9)
    a = param(0, (4,), dtypes.int32)
    linear = check(output(1, a + v.bind(3)))
    assert linear.src[0].src[-1] is v.bind(3)
    free = check(output(1, a + v), binds={"v": 5})
    assert free.src[0].src[-1] is v
    assert kernels(free)[0] is kernels(linear)[0]


def test_one_variable_has_one_value() -> None:
    v = UOp.variable("v", 1, 9)
    with pytest.raises(RuntimeError, match="bind mismatch on v, 3 != 4"):
        schedule(output(1, param(0, (4,), dtypes.int32) + v.bind(3) + v.bind(4)))


def test_symbolic_extent() -> None:
    v = UOp.variable("n", 1, 8)
    a = param(0, (8, 4), dtypes.int32)
    linear = check(output(1, a.shrink(((0, v), (0, 4))).sum(0)), binds={"n": 5})
    assert count(linear) == 1
    linear = check(output(1, (a.shrink(((0, v), (0, 4))) + 1).contiguous().sum(0)), binds={"n": 5})
    assert count(linear) == 2


def test_symbolic_reshape_and_flip() -> None:
    v = UOp.variable("n", 2, 8)
    a = param(0, (8, 6), dtypes.int32)
    part = a.shrink(((0, v), (0, 6)))
    check(output(1, part.reshape((v, 2, 3)).permute((1, 0, 2)).sum(1)), binds={"n": 5})
    check(output(1, part.reshape((v * 6,)).flip(0).sum(0)), binds={"n": 3})


# *** dtypes and marks ***
def test_stored_weak_value_stays_weak_for_its_readers() -> None:
    i, h = [param(k, (4,), dtypes.int32) for k in range(4, 8)], param(1, (4,), dtypes.float16)
    x = (i[0] + i[1] * i[2] + i[3]) * 0.5  # four buffers: stored for its two readers
    assert x.dtype is dtypes.weakfloat
    value = x * h
    assert value.dtype is dtypes.float16
    linear = check(output(2, value), output(3, (x + 1.0).cast(dtypes.float32)), exact=False)
    assert linear.src[0].src[1].dtype is dtypes.float32


def test_weak_value_is_stored_at_the_targets_dtype() -> None:
    target = param(0, (4,), dtypes.int8)
    linear = check(assign(target, UOp.arange(4) * 3))
    (ast,) = kernels(linear)
    assert ast.src[0].src[0].src[1].dtype is dtypes.int8


def test_gradient_marks_are_dropped() -> None:
    a = param(0, (4,))
    assert schedule(output(1, (a + 1).detach().contiguous_backward() * 2)) is schedule(output(1, (a + 1) * 2))


# *** functions and calls ***
def test_function_is_inlined() -> None:
    p, q = UOp.param(0, dtypes.float32, (4, 5)), UOp.param(1, dtypes.float32, (5,))
    a, b = param(0, (4, 5)), param(1, (5,))
    call = UOp(Ops.TUPLE, (p + q, p * 2)).call(a + 1, b)
    linear = schedule(output(2, call.gettuple(0) + call.gettuple(1)))
    direct = schedule(output(2, (a + 1 + b) + (a + 1) * 2))
    assert linear is direct


def test_nested_function_is_inlined() -> None:
    p = UOp.param(0, dtypes.float32, (4,))
    inner = (p + 1).call(p * 2).gettuple(0)
    a = param(0, (4,))
    assert schedule(output(1, inner.call(a).gettuple(0))) is schedule(output(1, a * 2 + 1))


def call_errors() -> list[tuple[UOp, str, type[Exception]]]:
    p, s = UOp.param(0, dtypes.float32, (4,)), UOp.param(0, dtypes.float32)
    a, i = param(0, (4,)), param(0, (4,), dtypes.int32)
    two = UOp.param(1, dtypes.float32, (4,))
    return [
        ((p + 1).call(param(0, (5,))), r"arg 0 shape mismatch: expected size 4, got \(5,\)", TypeError),
        ((s + 1).call(param(0, (2,))), r"arg 0 shape mismatch: expected scalar, got \(2,\)", TypeError),
        ((p + 1).call(i), "arg 0 dtype mismatch: expected dtypes.float, got dtypes.int", TypeError),
        ((two + 1).call(a), r"params not in order: \[1\]", RuntimeError),
        ((p + 1).call(a, a), "expected 1 args, got 2", TypeError)]


@pytest.mark.parametrize("k", range(5))
def test_function_arguments_are_checked(k: int) -> None:
    call, text, kind = call_errors()[k]
    with pytest.raises(kind, match=text):
        schedule(output(1, call.gettuple(0)))


def test_custom_kernel_arguments_have_storage() -> None:
    a, out = param(0, (4,)), param(1, (4,))
    x, y = UOp.placeholder((4,), dtypes.float32, 0), UOp.placeholder((4,), dtypes.float32, 1)
    r = UOp.range(4, 0)
    body = UOp.sink(x.index(r).store(y.index(r) * 2).end(r))
    call = body.call(out, a + 1)
    linear = schedule(output(2, out.after(call) + 1))
    assert [c.src[0] is body for c in linear.src] == [False, True, False]
    assert linear.src[1].src[1] is out and linear.src[1].src[2].op is Ops.BUFFER
    given = inputs_of((output(2, out + a),))
    memory = run_linear(linear, given)
    np.testing.assert_array_equal(memory[param(2, (4,))], (given[a] + 1) * 2 + 1)


def test_store_needs_storage() -> None:
    a = param(0, (4,))
    with pytest.raises(ScheduleError, match="it has no storage"):
        schedule(assign(a + 1, a))
    assert CAPS.max_kernel_ops == 2000
