"""Functions and machines that break a precondition: the error names the instruction and what is wrong."""
from __future__ import annotations

import pytest
from isa.regalloc_code import MAKE, RAX, RCX, SINK, V0, Code

from tinyhost.renderer.isa.regalloc import (
    COPY_SIGNATURE,
    DEF,
    USE,
    AllocationError,
    Function,
    Inst,
    Kind,
    MachineEnv,
    RegClass,
    Signature,
    define,
    run,
    use,
)


def error_of(code: Code) -> str:
    with pytest.raises(AllocationError) as caught:
        code.run()
    return str(caught.value)


def test_too_many_operands():
    code = Code()
    values = [code.make() for _ in range(5)]
    code.op("gather", Signature((USE,) * 5), *values)
    text = error_of(code)
    assert "instruction 5 (op gather" in text and "class gpr has 4 allocatable registers" in text
    assert "leave no register for v" in text


def test_read_before_definition():
    code = Code()
    a, b = code.make(), code.value()
    code.branch("end")
    code.op("make", MAKE, b)
    code.label("end")
    code.add(a, b)
    text = error_of(code)
    assert "v1 is read by instruction 4" in text and "before it is defined on some path" in text


def test_branch_with_operands():
    code = Code()
    a = code.make()
    code.label("loop")
    code.insts.append(Inst("cbz", (a,), SINK, Kind.BRANCH, "loop"))
    assert "compare in an instruction before the branch" in error_of(code)


def test_unknown_and_doubled_labels():
    code = Code()
    code.jump("nowhere")
    assert "no label 'nowhere'" in error_of(code)
    code = Code()
    code.label("a")
    code.label("a")
    assert "the label stands twice" in error_of(code)


def test_wrong_operand_count_and_unknown_register():
    code = Code()
    code.op("make", MAKE)
    assert "names 0 virtual registers, its signature has 1 operands" in error_of(code)
    code = Code()
    code.op("make", MAKE, 7)
    assert "names a virtual register that Function.vregs (length 0) does not have" in error_of(code)


@pytest.mark.parametrize(("signature", "text"), [
    (Signature((use(fixed=99),)), "is fixed to r99, which no class allocates"),
    (Signature((use(fixed=V0),)), "not of its class gpr"),
    (Signature((use(among=(98, 99)),)), "none of which is allocatable"),
    (Signature((use(among=(RAX, RCX)), use(fixed=RAX), use(fixed=RCX))), "make the set wider, or the operand FIXED"),
    (Signature((use(fixed=RAX), use(fixed=RAX))), "two read operands are fixed to one register (rax, rax)"),
    (Signature((define(reuse=0),)), "reuses operand 0, which is not a read operand"),
    (Signature((USE, define(reuse=0), define(reuse=0))), "two definitions reuse the same read operand"),
    (Signature((use(late=True), define(reuse=0))), "is read late, but definition 1 reuses its register"),
    (Signature((use(fixed=RAX, late=True),), clobbers=(RAX,)), "is read late in rax"),
    (Signature((use(fixed=RAX), define(fixed=RAX, early=True))), "register of an early definition"),
])
def test_signatures_that_contradict_themselves(signature: Signature, text: str):
    code = Code()
    values = [code.make() for _ in signature.operands]
    code.op("odd", signature, *values)
    message = error_of(code)
    assert text in message and "(op odd" in message


def test_doubled_definition_and_class_mix():
    code = Code()
    a = code.value()
    code.op("pair", Signature((DEF, DEF)), a, a)
    assert "defines one virtual register twice" in error_of(code)
    code = Code()
    a, b = code.make(), code.value(1)
    code.op("mix", Signature((define(reuse=1), USE)), b, a)
    assert "operand 0 of class vec reuses operand 1 of class gpr" in error_of(code)
    code = Code()
    a, b = code.make(), code.value(1)
    code.insts.append(Inst("copy", (b, a), COPY_SIGNATURE, Kind.COPY))
    assert "a COPY stays in one class" in error_of(code)


def test_rematerialisation_needs_one_plain_definition():
    code = Code()
    a = code.make(remat=True)
    code.op("make", MAKE, a)
    assert "defined at instructions 0 and 1; it may have one definition" in error_of(code)
    code = Code()
    a, b = code.make(), code.value(remat=True)
    code.op("negate", Signature((DEF, USE)), b, a)
    assert "has other operands, constraints or clobbers" in error_of(code)


def test_machine_that_contradicts_itself():
    with pytest.raises(AllocationError, match="stand in more than one class or twice in an order"):
        run(Function([], []), MachineEnv((RegClass("a", (1, 2)), RegClass("b", (2, 3)))))
    with pytest.raises(AllocationError, match="scratch register r1 of class a is allocatable"):
        run(Function([], []), MachineEnv((RegClass("a", (1, 2), scratch=1),)))
