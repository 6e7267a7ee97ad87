"""SPEC=2: every node is checked when it is built, in the contexts that ask for it, and construction is free before."""
from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from tinyhost.dtype import dtypes
from tinyhost.env import Context
from tinyhost.ops import Ops
from tinyhost.uop import ParamArg, UOp

F32 = UOp(Ops.PARAM, (), ParamArg(0, dtypes.float32))


def test_a_bad_node_is_an_error_where_it_is_built() -> None:
    with Context(SPEC=2), pytest.raises(RuntimeError, match=r"(?s)UOp verification failed at 0 on Ops\.AND .*not bits"):
        F32.alu(Ops.AND, F32)
    with Context(SPEC=2), pytest.raises(RuntimeError, match="2 sources, 1 expected"):
        UOp(Ops.SQRT, (F32, F32))
    with Context(SPEC=2), pytest.raises(RuntimeError, match="where cond must be bool, got dtypes.float"):
        UOp(Ops.WHERE, (F32, F32, F32))


def test_a_node_that_exists_is_checked_as_well() -> None:
    kept = UOp(Ops.MUL, (F32, F32), 5)
    with Context(SPEC=2), pytest.raises(RuntimeError, match="the argument is not None"):
        UOp(Ops.MUL, (F32, F32), 5)
    assert UOp(Ops.MUL, (F32, F32), 5) is kept


@pytest.mark.parametrize("level", [0, 1])
def test_lower_levels_build_anything(level: int) -> None:
    with Context(SPEC=level):
        assert UOp(Ops.ADD, (F32, F32), "wrong").arg == "wrong"


def test_a_context_binds_its_own_thread_only() -> None:
    built: list[UOp] = []
    with Context(SPEC=2):
        thread = threading.Thread(target=lambda: built.append(UOp(Ops.ADD, (F32, F32), "other thread")))
        thread.start()
        thread.join()
    assert built[0].arg == "other thread"


def test_legal_nodes_pass_and_keep_their_identity() -> None:
    plain = (F32 + 1.0).sqrt()
    with Context(SPEC=2):
        assert (F32 + 1.0).sqrt() is plain
        r = UOp.range(8, 0)
        UOp.param(0, dtypes.float32, 8).index(r).store(F32 * 2.0).end(r).sink()


SCRIPT = """
from tinyhost.uop import Ops, UOp
plain = UOp.__new__
UOp(Ops.ADD, (UOp.const(1), UOp.const(2)), "wrong")
from tinyhost.env import Context
with Context(SPEC=1):
    assert UOp.__new__ is plain
with Context(SPEC=2):
    assert UOp.__new__ is not plain
"""


def run(script: str, spec: str) -> subprocess.CompletedProcess[str]:
    env = {"SPEC": spec, "PATH": ""}
    return subprocess.run([sys.executable, "-c", script], env=env, capture_output=True, text=True)


def test_the_constructor_is_exchanged_at_the_first_request_only() -> None:
    done = run(SCRIPT, "0")
    assert done.returncode == 0, done.stderr


def test_the_environment_asks_too() -> None:
    done = run(SCRIPT, "2")
    assert done.returncode == 1 and "RuntimeError: UOp verification failed at 0 on Ops.ADD" in done.stderr


@pytest.mark.parametrize("device", ["PYTHON", "CPU"])
def test_every_node_on_the_way_to_code_is_legal(device: str) -> None:
    from tinyhost import Tensor
    with Context(SPEC=2, SCACHE=0, CCACHE=0):
        x = Tensor.rand(1, 2, 6, 6, device=device).realize()
        w = Tensor.rand(3, 2, 3, 3, device=device).realize()
        w.requires_grad = True
        x.conv2d(w).relu().max_pool2d().sum().backward()
        assert w.grad is not None and w.grad.numpy().shape == (3, 2, 3, 3)
        assert Tensor([3, 1, 2], device=device).sort()[0].tolist() == [1, 2, 3]
