"""CPU:CLANG with the C compiler that is not the default one here, on a sample of everything."""
from __future__ import annotations

import shutil
from collections.abc import Iterator

import numpy as np
import pytest

from tinyhost.device.selection import clear_selection, renderer_of
from tinyhost.dtype import DType, dtypes
from tinyhost.env import Context
from tinyhost.ops import Ops
from tinyhost.tensor import Tensor
from tinyhost.uop import UOp
from tinyhost.uop.semantics import cast_np, evaluate_np

from .database import RUNS, Case, check, run_id
from .elementwise import all_of, apply, check_numbers, compute, mixed, tensor
from .random_programs import matrix_program, program
from .test_random_programs import run


@pytest.fixture(autouse=True)
def second_compiler() -> Iterator[None]:
    """gcc where clang is the default."""
    if not (shutil.which("clang") and shutil.which("gcc")):
        pytest.skip("one C compiler at most: install clang and gcc")
    with Context(DEV="CPU:CLANG", CC="gcc"):
        clear_selection()  # renderers are kept per DEV
        assert renderer_of("CPU").compiler.command == ("gcc",)
        yield
    clear_selection()


@pytest.mark.parametrize("case, dtype", RUNS[::6], ids=run_id)
def test_against_torch(case: Case, dtype: str) -> None:
    check(case, dtype, lambda a, dt: Tensor(a, dtype=dt), lambda t: t.numpy())


def test_random_programs() -> None:
    run(program, 500, 515)
    run(matrix_program, 500, 515)


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("source", [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint64])
def test_casts(source: DType, noopt: int) -> None:
    x = all_of(source) if source.itemsize <= 2 else mixed(source, 777, 1)
    t = tensor(x, source)
    with Context(NOOPT=noopt):
        for target in dtypes.all:
            if target is not source:
                got = compute(lambda u, dt=target: UOp(Ops.CAST, (u,), dt), t)
                check_numbers(got, np.asarray(cast_np(x, source, target)), x)


@pytest.mark.parametrize("noopt", [0, 1])
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.float32, dtypes.float64, dtypes.bfloat16], ids=str)
def test_float_bits(dtype: DType, noopt: int) -> None:
    x, y = mixed(dtype, 3001, 1), mixed(dtype, 3001, 2)
    with Context(NOOPT=noopt):
        for op in (Ops.ADD, Ops.MUL, Ops.FDIV, Ops.MAX, Ops.CMPLT, Ops.CMPNE, Ops.SQRT, Ops.TRUNC):
            operands = (x,) if op in (Ops.SQRT, Ops.TRUNC) else (x, y)
            got = apply(op, *[tensor(v, dtype) for v in operands])
            check_numbers(got, np.asarray(evaluate_np(op, dtype, *operands)), *operands)
