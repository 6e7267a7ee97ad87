"""Every line of the table of x86-64-v3 through an independent decoder: the bytes mean what the line says."""

from __future__ import annotations

import iced_x86
import pytest
from x86_decoding import (
    MEMORY,
    REGISTERS,
    Operands,
    decode,
    decoded_operands,
    immediate_bits,
    is_branch,
    meant_operands,
    plain,
    with_index,
)

from tinyhost_cpu.x86.encode import Imm, Mem, Reg, assemble, encode
from tinyhost_cpu.x86.insns import (
    IMM_KINDS,
    R8,
    R16,
    R32,
    R64,
    REL8,
    VMEM_KINDS,
    XMM,
    YMM,
    Form,
    FormError,
    X86Ops,
)
from tinyhost_cpu.x86.printer import format_instruction

FORMS = [form for op in X86Ops if op.lines for form in op.forms]
NUMBERS = ((1, 2, 3), (6, 7, 5), (8, 15, 12), (4, 9, 10))
MEMORIES = (
    Mem(0),
    Mem(4),
    Mem(5),
    Mem(12),
    Mem(13),
    Mem(7, disp=10),
    Mem(4, disp=-128),
    Mem(13, disp=128),
    Mem(12, disp=0x12345),
    Mem(7, 6, 4, 10),
    Mem(5, 5, 1),
    Mem(13, 12, 8, 0),
    Mem(4, 15, 2, -1000),
    Mem(8, 0, 4, 4, wide=True),
)


def operand_sets(form: Form) -> list[Operands]:
    """Operands of several shapes for ``form``: low, high and byte registers, every addressing mode."""

    def memory(base: Mem, kinds: int, bits: int) -> Mem:
        if kinds & VMEM_KINDS:
            return with_index(base, kinds, 14 if base.idx % 2 else 11)  # destination, index and mask must differ
        return base._replace(bits=bits)

    def build(regs: tuple[int, ...], mem: Mem | None) -> Operands:
        out: Operands = []
        numbers = iter(regs + regs)
        for spec in form.explicit:
            if spec.kinds & MEMORY and (mem is not None or not spec.kinds & REGISTERS):
                out.append(memory(mem or MEMORIES[0], spec.kinds, spec.bits))
            elif spec.kinds & REGISTERS:
                out.append(Reg(spec.kinds & REGISTERS, next(numbers)))
            elif is_branch(spec):
                out.append(Imm(-20, 8 if spec.kinds & REL8 else 32))
            else:
                out.append(Imm(0x11 if form.vex else -3, immediate_bits(form)))
        return out

    sets = [build(regs, None) for regs in NUMBERS]
    if any(spec.kinds & MEMORY for spec in form.explicit):
        sets += [build(NUMBERS[i % 4], mem) for i, mem in enumerate(MEMORIES)]
    return sets


@pytest.mark.parametrize("form", FORMS, ids=lambda f: " ".join(f.line.split()))
def test_round_trip(form: Form) -> None:
    for operands in operand_sets(form):
        code = assemble(form, plain(operands))
        instruction = decode(code)
        info = iced_x86.OpCodeInfo(instruction.code)
        assert info.instruction_string.split(" ")[0] == form.op.name, (operands, code.hex(), info.instruction_string)
        got = decoded_operands(instruction)
        if form.op.name in ("SHL", "SHR", "SAR") and form.implicit:
            assert got.pop() == "cl"
        want = meant_operands(operands, form)
        if form.imm_bytes and isinstance(operands[-1], Imm) and not form.op.name.startswith("J"):
            mask = (1 << form.imm_bytes * 8) - 1
            got[-1], want[-1] = got[-1] & mask, want[-1] & mask
        assert got == want, (code.hex(), info.instruction_string)


@pytest.mark.parametrize("form", FORMS, ids=lambda f: " ".join(f.line.split()))
def test_the_line_is_the_manual_s(form: Form) -> None:
    """The decoder's own transcription of the manual shows the same operands and the same encoding."""
    code = assemble(form, plain(operand_sets(form)[-1]))
    info = iced_x86.OpCodeInfo(decode(code).code)
    encoding = form.line.split("|")[3].strip()
    theirs = info.op_code_string
    for prefix in ("o16 ", "o32 ", "o64 "):
        theirs = theirs.removeprefix(prefix)
    assert encoding.removeprefix("REX.W + ") == theirs


@pytest.mark.parametrize("form", FORMS, ids=lambda f: " ".join(f.line.split()))
def test_access_and_flags(form: Form) -> None:
    """Reads, writes and flag effects agree with the decoder's facts."""
    names = {v: k for k, v in vars(iced_x86.OpAccess).items() if isinstance(v, int)}
    operands = operand_sets(form)[0]
    instruction = decode(assemble(form, plain(operands)))
    info = iced_x86.InstructionInfoFactory().info(instruction)
    for i, spec in enumerate(form.explicit):
        if isinstance(operands[i], Imm):
            continue
        theirs = names[info.op_access(i)]
        theirs = {
            "READ": "R",
            "COND_READ": "R",
            "WRITE": "W",
            "READ_WRITE": "X",
            "COND_WRITE": "W",
            "READ_COND_WRITE": "X",
            "NO_MEM_ACCESS": "R",
        }[theirs]
        if form.op.name.startswith("CMOV") and i == 0:
            theirs = "X"
        assert spec.access == theirs, (i, spec.text)
    if form.op.name not in ("VZEROUPPER",):
        reads = instruction.rflags_read != 0
        writes = instruction.rflags_modified != 0
        assert form.op.reads_flags == reads
        assert form.op.writes_flags == writes


def test_printer_matches_the_decoder() -> None:
    formatter = iced_x86.Formatter(iced_x86.FormatterSyntax.INTEL)
    formatter.space_after_operand_separator = True
    formatter.hex_prefix, formatter.hex_suffix = "0x", ""
    formatter.uppercase_hex = False
    formatter.memory_size_options = iced_x86.MemorySizeOptions.ALWAYS
    formatter.branch_leading_zeros = False
    formatter.show_useless_prefixes = False
    different = []
    for form in FORMS:
        if form.op.name[0] == "J" or form.op.name.startswith(("VCMP", "CALL")):
            continue
        for operands in operand_sets(form):
            if any(isinstance(o, Mem) and (o.wide or o.idx >= 0 and o.scale == 1) for o in operands):
                continue
            ours = format_instruction(form.op, *operands)
            theirs = formatter.format(decode(encode(form.op, *operands)))
            if normal(ours) != normal(theirs):
                different.append((ours, theirs))
    assert not different, different[:10]


def normal(text: str) -> str:
    """Spelling differences that carry no meaning: number bases, negative numbers, names of memory widths."""
    import re

    text = re.sub(r"(ptr )+", "", text).replace(" + ", "+").replace(" - ", "-")
    text = re.sub(r"\b(byte|word|dword|qword|xmmword|ymmword|oword|mmword) (?=\[)", "", text)

    def number(match: re.Match[str]) -> str:
        return str(int(match[0], 0) & 0xFF)

    return re.sub(r"-?\b(0x[0-9a-f]+|\d+)\b", number, text)


def test_no_form_is_an_error_that_lists_the_forms() -> None:
    with pytest.raises(FormError, match=r"no form of VADDPS takes \(xmm, r32\); it has\n  VADDPS \| W:xmm1"):
        encode(X86Ops.VADDPS, Reg(XMM, 0), Reg(R32, 0))
    with pytest.raises(FormError, match="displacement 4294967296 does not fit 32 bits"):
        encode(X86Ops.MOV, Reg(R32, 0), Mem(0, disp=1 << 32))
    with pytest.raises(AttributeError, match="no x86 instruction 'VADDPX' in the table"):
        assert X86Ops.VADDPX


def test_shortest_immediate_is_taken() -> None:
    assert encode(X86Ops.ADD, Reg(R32, 1), Imm(5)).hex() == "83c105"
    assert encode(X86Ops.ADD, Reg(R32, 1), Imm(5, 32)).hex() == "81c105000000"
    assert encode(X86Ops.ADD, Reg(R64, 9), Imm(-200)).hex() == "4981c138ffffff"
    assert encode(X86Ops.MOV, Reg(R64, 9), Imm(1 << 40)).hex() == "49b90000000000010000"
    assert encode(X86Ops.MOV, Reg(R8, 6), Imm(1)).hex() == "40b601"
    assert encode(X86Ops.MOV, Reg(R16, 6), Imm(1)).hex() == "66be0100"


def test_the_table_is_read_line_by_line() -> None:
    assert len(FORMS) > 700 and all(form.feature == "" and not form.evex for form in FORMS)
    assert {op.number for op in X86Ops} == set(range(min(o.number for o in X86Ops), max(o.number for o in X86Ops) + 1))
    assert all(op.entry and op.latency for op in X86Ops if op.forms)
    assert YMM and IMM_KINDS
