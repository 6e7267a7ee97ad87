"""The allocation checker runs on every kernel that is compiled under SPEC or DEBUG, which includes this test suite.

The proof is a fault: with an allocator that gives two live values one register, a checked compilation fails and an
unchecked one does not notice.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from codegen import kernels

from tinyhost.codegen import to_program
from tinyhost.env import SPEC, Context
from tinyhost.renderer.isa.regalloc import Allocation, CheckError
from tinyhost.target import Target
from tinyhost_cpu.x86.renderer import X86Renderer

RUN = sys.modules["tinyhost.renderer.isa.regalloc.run"]  # the package's attribute of that name is the function
RENDERER = X86Renderer(Target("CPU", "X86", "x86-64-v3"))


@pytest.fixture()
def faulty(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An allocator that exchanges two operands of one class in one instruction."""
    finish = RUN.finish

    def wrong(state: Any, slots: Any) -> Allocation:
        allocation, function = finish(state, slots), state.function
        locations = list(allocation.locations)
        for at, (inst, where) in enumerate(zip(function.insts, locations, strict=True)):
            if len(set(where)) == 3 and len({function.vregs[v].cls for v in inst.vregs}) == 1:
                locations[at] = (where[0], where[2], where[1])
                return replace(allocation, locations=locations)
        raise AssertionError("the kernel has no instruction with three operands of one class")

    monkeypatch.setattr(RUN, "finish", wrong)
    yield


def test_the_suite_runs_with_checks() -> None:
    assert SPEC.value >= 1


@pytest.mark.parametrize("setting", [{"SPEC": 1}, {"SPEC": 0, "DEBUG": 1}])
def test_a_fault_is_found_where_checks_are_on(faulty: None, setting: dict[str, int]) -> None:
    with Context(**setting), pytest.raises(CheckError, match="operand"):
        to_program(kernels.matmul(8, 8, 8)[0], RENDERER)


def test_a_user_does_not_pay_for_the_proof(faulty: None) -> None:
    with Context(SPEC=0, DEBUG=0):
        to_program(kernels.matmul(8, 8, 8)[0], RENDERER)


def test_every_compiled_kernel_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    check, allocated, checked = RUN.check, [], []
    run = sys.modules["tinyhost.renderer.isa.regalloc"].run  # what every own renderer calls

    def count_check(function: object, env: object, allocation: object) -> None:
        checked.append(function)
        check(function, env, allocation)

    def count_run(function: object, *rest: object) -> Allocation:
        allocated.append(function)
        return run(function, *rest)

    monkeypatch.setattr(RUN, "check", count_check)
    monkeypatch.setattr("tinyhost.renderer.isa.regalloc.run", count_run)
    for ast, _ in (kernels.add(64), kernels.matmul(16, 16, 16)):
        to_program(ast, RENDERER)
    assert len(allocated) == 2 and checked == allocated
