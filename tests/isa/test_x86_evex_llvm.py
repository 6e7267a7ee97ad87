"""A sample of the forms beyond x86-64-v3 through LLVM's assembler: our text, assembled by it, is our bytes."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest
from x86_decoding import Operands, draw, plain

from tinyhost_cpu.x86.encode import Mem, assemble
from tinyhost_cpu.x86.insns import Form, X86Op, X86Ops
from tinyhost_cpu.x86.printer import format_form

pytest.importorskip("llvmlite")
PLACE = 16  # bytes from one instruction to the next; none is longer than 15
OPS = [op for op in X86Ops if op.extended]
# a process of its own: LLVM ends the process at a line that it cannot read
ASSEMBLER = """if True:
    import sys
    import llvmlite.binding as llvm
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.initialize_native_asmparser()
    target = llvm.Target.from_triple("x86_64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="sapphirerapids", opt=0)
    lines = [".intel_syntax noprefix", *sys.stdin.read().splitlines()]
    text = 'target triple = "x86_64-unknown-linux-gnu"' + "".join(chr(10) + f'module asm "{line}"' for line in lines)
    sections = llvm.ObjectFileRef.from_data(machine.emit_object(llvm.parse_assembly(text))).sections()
    sys.stdout.write(next(s.data().hex() for s in sections if s.is_text()))
"""


def assembled(lines: list[str]) -> list[bytes]:
    """Each line's bytes, padded with int3 to ``PLACE``."""
    text = "\n".join(f"{line}\n.p2align 4, 0xcc" for line in lines)
    done = subprocess.run([sys.executable, "-c", ASSEMBLER], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-2000:]
    code = bytes.fromhex(done.stdout)
    return [code[i : i + PLACE] for i in range(0, PLACE * len(lines), PLACE)]


def text_of(form: Form, operands: Operands) -> str:
    """Our text with what makes LLVM take the prefix of ``form`` where another would do."""
    prefix = "{evex} " if form.evex else "{vex} " if form.feature == "avx_vnni" else ""
    return prefix + format_form(form, plain(operands))


def suitable(form: Form, operands: Operands) -> bool:
    """Whether the text has one encoding: not a store form over registers, a wide displacement, VMOVQ from memory."""
    memory = [o for o in operands if isinstance(o, Mem)]
    if not memory:
        return form.m != 0
    return not memory[0].wide and form.op is not X86Ops.VMOVQ


def sample(ops: list[X86Op], rng: random.Random, each: int) -> list[tuple[Form, Operands]]:
    out = []
    for op in ops:
        forms = [form for line in op.extended for form in line.variants()]
        for form in rng.choices(forms, k=each):
            operands = draw(form, rng, low=not form.evex)
            if suitable(form, operands):
                out.append((form, operands))
    return out


def compare(cases: list[tuple[Form, Operands]]) -> None:
    lines = [text_of(form, operands) for form, operands in cases]
    different = []
    for (form, operands), line, theirs in zip(cases, lines, assembled(lines)):
        ours = assemble(form, plain(operands))
        if theirs != ours.ljust(PLACE, b"\xcc"):
            different.append((line, ours.hex(), theirs.hex()))
    assert not different, (len(different), different[:10])


def test_llvm_assembles_our_text_to_our_bytes() -> None:
    compare(sample(OPS, random.Random(7), 3))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(10))
def test_soak_llvm_assembles_our_text_to_our_bytes(seed: int) -> None:
    compare(sample(OPS, random.Random(seed), 40))
