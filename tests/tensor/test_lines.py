"""Errors name the user's line: that of the call, and that which built what failed later."""

from __future__ import annotations

import gc
import inspect
import sys
import traceback
import weakref
from typing import Any

import pytest

from tinyhost import Context, Tensor
from tinyhost.errors import GradientError, ScheduleError, ShapeError, TinyhostError
from tinyhost.ops import Ops
from tinyhost.uop import UOp
from tinyhost.uop.lines import line_of


def here(offset: int = 0) -> str:
    """``file:line`` of the calling line, moved by some lines."""
    frame = inspect.currentframe()
    assert frame is not None and frame.f_back is not None
    return f"{__file__}:{frame.f_back.f_lineno + offset}, in {frame.f_back.f_code.co_name}"


def notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", []))


def test_every_way_to_build_a_value_is_noted() -> None:
    x = Tensor([1.0, 2.0, 3.0, 4.0], device="NPY")
    built = [
        (x + x, here()),
        (x * 2.0, here()),
        (2.0 - x, here()),
        (x.exp(), here()),
        (x.softmax(0), here()),
        (x.cast("float64"), here()),
        (x.sum(), here()),
        (x.reshape(2, 2) @ x.reshape(2, 2), here()),
        (x.contiguous() + Tensor.arange(4), here()),
        (Tensor.zeros(3, device="NPY"), here()),
        (Tensor(2.0), here()),
        (Tensor.stack(x, x * 3), here()),
        (x[Tensor([0, 1], device="NPY")], here()),
        (x.float().half(), here()),
    ]
    for t, place in built:
        assert (line_of(t.uop) or "").startswith(place + ": ("), (t, place)


def test_the_first_builder_stays_and_views_show_what_they_are_of() -> None:
    x = Tensor([1.0, 2.0], device="NPY")
    first, place = x + 1, here()
    again = x + 1
    assert again.uop is first.uop and (line_of(again.uop) or "").startswith(place)
    assert (line_of(first.reshape(2, 1).detach().uop) or "").startswith(place)


def test_it_can_be_switched_off_and_keeps_nothing_alive() -> None:
    class Local:
        pass

    local = Local()
    ref, x = weakref.ref(local), Tensor([1.0], device="NPY")

    def build(held: Any) -> Tensor:
        return x * 3.0

    y = build(local)
    del local
    gc.collect()
    assert ref() is None and line_of(y.uop) is not None
    with Context(TRACEMETA=0):
        assert line_of((x * 4.0).uop) is None
    assert y.uop.key == UOp(y.uop.op, y.uop.src, y.uop.arg).key


def test_scheduling_errors_name_the_value_that_failed() -> None:
    x = Tensor([1.0, 2.0])
    stored = Tensor([1.0, 2.0], device="NPY")
    place = here(1)
    bad = stored * 3
    total = (x.exp() + (bad + 1).to(x.device)).sum() * 2
    with pytest.raises(ScheduleError, match="it only stores data") as caught:
        (total / 3).realize()
    assert [n for n in notes(caught.value) if n.startswith(f"built at {place}: bad = stored * 3")]
    assert any(n.startswith(f"called at {__file__}") for n in notes(caught.value))


def test_other_errors_name_what_was_computed(monkeypatch: pytest.MonkeyPatch) -> None:
    from tinyhost import realization

    def fails(*args: Any) -> None:
        raise MemoryError("no room")

    monkeypatch.setattr(realization, "run", fails)
    x, place = Tensor([1.0, 2.0]) * 3, here()
    with pytest.raises(MemoryError) as caught:
        x.realize()
    [note] = notes(caught.value)
    assert note.startswith(f"while computing what was built at {place}: x, place = Tensor(")
    monkeypatch.undo()
    assert x.tolist() == [3, 6]


def test_gradient_errors_name_the_operation() -> None:
    x = Tensor([1.0])
    twice = UOp(Ops.MSELECT, (UOp(Ops.MSTACK, (x.uop, x.uop)),), 0)
    y, place = Tensor(twice) * 2, here()
    with pytest.raises(GradientError, match="no gradient for Ops.MSELECT") as caught:
        y.sum().gradient(x)
    assert any(n.startswith(f"built at {place}") for n in notes(caught.value))


def test_errors_of_a_call_note_its_line() -> None:
    x = Tensor([[1.0, 2.0]])
    with pytest.raises(ShapeError) as caught:
        x.reshape(3)
    assert notes(caught.value) == [f"called at {here(-1)}: x.reshape(3)"]
    text = traceback.format_exception(caught.value)
    assert "x.reshape(3)" in text[-1] and sys.exc_info() == (None, None, None)


def test_errors_without_a_user_have_no_note() -> None:
    namespace: dict[str, Any] = {"TinyhostError": TinyhostError}
    exec(compile("e = TinyhostError('x')", TinyhostError.__init__.__code__.co_filename, "exec"), namespace)
    assert all("errors.py" not in n for n in notes(namespace["e"]))
