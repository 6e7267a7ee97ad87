"""Every form beyond x86-64-v3 (EVEX, opmasks, single features) through an independent decoder."""

from __future__ import annotations

import random
import re

import iced_x86
import pytest
from x86_decoding import (
    MEMORY,
    Operands,
    decode,
    decoded_operands,
    draw,
    meant_operands,
    names_of,
    plain,
)

from tinyhost_cpu.x86.encode import Imm, Mem, Reg, assemble, encode, operand_kind
from tinyhost_cpu.x86.insns import (
    BCST,
    DECORATIONS,
    MASK,
    R32,
    ROUND_DOWN,
    ROUND_NEAREST,
    ROUND_UP,
    ROUND_ZERO,
    SAE,
    TWINS,
    VEC_KINDS,
    XMM,
    YMM,
    ZEROING,
    ZMM,
    Form,
    FormError,
    OpcodeTable,
    X86Op,
    X86Ops,
)
from tinyhost_cpu.x86.printer import format_instruction

OPS = [op for op in X86Ops if op.extended]
ROUNDINGS = {
    "NONE": 0,
    "ROUND_TO_NEAREST": ROUND_NEAREST,
    "ROUND_DOWN": ROUND_DOWN,
    "ROUND_UP": ROUND_UP,
    "ROUND_TOWARD_ZERO": ROUND_ZERO,
}
FEATURES = {
    "AVX512F": "avx512f",
    "AVX512BW": "avx512bw",
    "AVX512DQ": "avx512dq",
    "AVX512CD": "avx512cd",
    "AVX512_VNNI": "avx512_vnni",
    "AVX_VNNI": "avx_vnni",
    "AVX512_BF16": "avx512_bf16",
    "AVX512_FP16": "avx512_fp16",
    "AVX512_VBMI": "avx512vbmi",
    "AVX512_IFMA": "avx512ifma",
    "AVX512_BITALG": "avx512_bitalg",
    "AVX512_VPOPCNTDQ": "avx512_vpopcntdq",
    "PREFETCHW": "3dnowprefetch",
}


def variants(op: X86Op) -> list[Form]:
    return [form for line in op.extended for form in line.variants()]


def check(form: Form, operands: Operands) -> None:
    """The decoder reads from the bytes of ``form`` what ``form`` and ``operands`` say."""
    code = assemble(form, plain(operands))
    instruction = decode(code)
    info = iced_x86.OpCodeInfo(instruction.code)
    assert info.instruction_string.split(" ")[0] == form.op.name, (code.hex(), info.instruction_string)
    assert decoded_operands(instruction) == meant_operands(operands, form), (code.hex(), info.instruction_string)
    decorations = 0
    for spec in form.explicit:
        decorations |= spec.kinds & DECORATIONS
    assert instruction.suppress_all_exceptions == bool(decorations & SAE), code.hex()
    rounding = ROUNDINGS[names_of(iced_x86.RoundingControl)[instruction.rounding_control]]
    assert rounding == decorations & ~(SAE | BCST | ZEROING), code.hex()


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_round_trip(op: X86Op) -> None:
    rng = random.Random(op.name)
    for form in variants(op):
        for _ in range(3):
            check(form, draw(form, rng))


@pytest.mark.soak
@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_soak_round_trip(op: X86Op) -> None:
    rng = random.Random(op.name)
    for form in variants(op):
        for position, spec in enumerate(form.explicit):
            for number in range(32 if spec.kinds & VEC_KINDS else 8 if spec.kinds & MASK else 16):
                operands = draw(form, rng)
                if isinstance(o := operands[position], Reg) and not (position == form.k and number == 0):
                    operands[position] = o._replace(num=number)
                indexes = [o.idx for o in operands if isinstance(o, Mem) and o.vector]
                if not any(isinstance(o, Reg) and o.kind & VEC_KINDS and o.num in indexes for o in operands):
                    check(form, operands)
        for _ in range(200):
            check(form, draw(form, rng))


def theirs(info: iced_x86.OpCodeInfo) -> tuple[str, str]:
    """Operands and encoding of the decoder's transcription of the manual."""
    _, _, operands = info.instruction_string.partition(" ")
    if info.ignores_rounding_control:  # what the decoder accepts of exact conversions is not in the manual
        operands = operands.replace("{er}", "")
    return operands.replace(" {", "{"), info.op_code_string.replace("/vsib", "/r")


def memory_bytes(tuple_type: str, broadcast: bool) -> int:
    """N of disp8*N from names as N64B4: 64 bytes, 4 under broadcast."""
    whole, _, element = tuple_type[1:].partition("B" if "B" in tuple_type else "b")
    return int(element if broadcast else whole)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_the_line_is_the_manual_s(op: X86Op) -> None:
    """Operands, encoding, N of disp8*N and feature agree with the decoder's own transcription of the manual."""
    rng = random.Random(0)
    cpuid, tuples = names_of(iced_x86.CpuidFeature), names_of(iced_x86.TupleType)
    for line in op.extended:
        form = next(line.variants())
        instruction = decode(assemble(form, plain(draw(form, rng, low=not form.evex))))
        info = iced_x86.OpCodeInfo(instruction.code)
        operands, encoding = (part.strip() for part in line.line.split("|")[1::2][:2])
        assert (re.sub(r"\b[WX]:", "", operands), encoding) == theirs(info)
        features = {FEATURES[cpuid[f]] for f in instruction.cpuid_features() if cpuid[f] != "AVX512VL"}
        assert line.feature in features and features <= {line.feature, "avx512f"}
        if any(spec.kinds & MEMORY for spec in line.explicit) and line.evex:
            assert line.scale == memory_bytes(tuples[info.tuple_type], False)
            for form in line.variants():
                if any(spec.kinds & BCST for spec in form.explicit):
                    assert form.scale == memory_bytes(tuples[info.tuple_type], True)


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_access_and_flags(op: X86Op) -> None:
    """Reads, writes and flag effects agree with the decoder's facts."""
    rng = random.Random(0)
    access = names_of(iced_x86.OpAccess)
    letters = {"READ": "R", "WRITE": "W", "READ_WRITE": "X", "COND_WRITE": "W", "READ_COND_WRITE": "X"}
    for form in variants(op):
        operands = draw(form, rng)
        instruction = decode(assemble(form, plain(operands)))
        info = iced_x86.InstructionInfoFactory().info(instruction)
        used = {r.register: letters[access[r.access]] for r in info.used_registers() if access[r.access] in letters}
        position = 0
        for i, spec in enumerate(form.explicit):
            if i == form.k:
                assert spec.access == used[instruction.op_mask], form
                continue
            if isinstance(operands[i], Reg):
                assert spec.access == letters[access[info.op_access(position)]], (i, form)
            position += 1
        assert (form.op.reads_flags, form.op.writes_flags) == (False, instruction.rflags_modified != 0)
        assert form.tied == (form.explicit[0].access == "X")


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
def test_operand_kinds_choose_the_form(op: X86Op) -> None:
    """``encode`` finds a form from kinds alone; where VEX could do as well, registers from 16 up make it EVEX."""
    rng = random.Random(op.name)
    for form in variants(op):
        operands = draw(form, rng)
        kinds = tuple(map(operand_kind, operands))
        chosen = op.form(kinds, form.feature if not form.evex else None)
        if ambiguous(form):
            continue
        if chosen.evex == form.evex:
            check(chosen, operands)
            assert chosen.length == form.length and chosen.bits_2 == form.bits_2
        else:
            assert chosen.twin is not None and chosen.twin.length == form.length, kinds


def ambiguous(form: Form) -> bool:
    """Broadcasts whose lanes the other operands do not tell: the first line, of 128 bits, is taken."""
    sizes = {spec.bits for spec in form.explicit if spec.kinds & VEC_KINDS}
    lanes = next((spec.lanes for spec in form.explicit if spec.kinds & BCST), 0)
    element = next((spec.bits for spec in form.explicit if spec.kinds & BCST), 0)
    return lanes > 0 and (not sizes or form.op.name.startswith("VCVT") and sizes == {128} and lanes * element > 128)


# *** VEX forms on registers from 16 up ***
TWINNED = [form for op in X86Ops if op.lines for form in op.forms if form.twin]


def test_twins_have_the_operands_of_their_vex_form() -> None:
    assert len(TWINNED) > 350 and set(TWINS) <= {form.op.name for form in TWINNED}
    for form in TWINNED:
        twin = form.twin
        assert twin is not None and twin.evex and twin.twin is None
        assert twin.op.name == TWINS.get(form.op.name, form.op.name)
        assert [o.access for o in form.explicit] == [o.access for o in twin.explicit], form


@pytest.mark.parametrize("form", TWINNED, ids=lambda f: " ".join(f.line.split()))
def test_high_registers_take_the_twin(form: Form) -> None:
    rng = random.Random(form.line)
    for _ in range(4):
        operands = draw(form, rng, low=True)
        assert assemble(form, plain(operands))[0] in (0xC4, 0xC5)
        vectors = [i for i, o in enumerate(operands) if isinstance(o, Reg) and o.kind & VEC_KINDS]
        if not vectors:
            continue
        where = rng.choice(vectors)
        operands[where] = Reg(operands[where].kind, rng.randrange(16, 32))
        assert form.twin is not None
        check(form.twin, operands)
        assert assemble(form, plain(operands)) == assemble(form.twin, plain(operands))
        text = format_instruction(form.op, *operands)
        assert text.split(" ")[0] == form.twin.op.name.lower()


def test_low_registers_stay_vex() -> None:
    assert encode(X86Ops.VPXOR, Reg(YMM, 1), Reg(YMM, 15), Reg(YMM, 2)).hex() == "c585efca"
    assert encode(X86Ops.VPXOR, Reg(YMM, 1), Reg(YMM, 16), Reg(YMM, 2)).hex() == "62f17d20efca"


# *** displacements, by hand ***
@pytest.mark.parametrize(
    ("disp", "tail"),
    [
        (0, "07"),
        (64, "4701"),
        (-64, "47ff"),
        (127 * 64, "477f"),
        (-128 * 64, "4780"),
        (128 * 64, "8700200000"),
        (-129 * 64, "87c0dfffff"),
        (1, "8701000000"),
        (63, "873f000000"),
    ],
)
def test_displacements_count_the_access(disp: int, tail: str) -> None:
    assert encode(X86Ops.VADDPS, Reg(ZMM, 0), Reg(ZMM, 0), Mem(7, disp=disp)).hex() == "62f17c4858" + tail


def test_displacements_of_elements() -> None:
    element = Mem(7, disp=64, bcst=True)
    assert encode(X86Ops.VADDPS, Reg(ZMM, 0), Reg(ZMM, 0), element).hex() == "62f17c58584710"
    assert encode(X86Ops.VADDPD, Reg(ZMM, 0), Reg(ZMM, 0), element).hex() == "62f1fd58584708"
    assert encode(X86Ops.VADDPS, Reg(ZMM, 0), Reg(ZMM, 0), element._replace(wide=True)).hex().endswith("8740000000")
    assert encode(X86Ops.VADDPS, Reg(ZMM, 0), Reg(ZMM, 0), Mem(5, bcst=True)).hex().endswith("4500")
    assert encode(X86Ops.VADDSS, Reg(XMM, 16), Reg(XMM, 0), Mem(12, disp=8)).hex().endswith("442402")


# *** text and errors ***
def test_text() -> None:
    a, b, k = Reg(ZMM, 31), Reg(ZMM, 2), Reg(MASK | ZEROING, 3)
    assert format_instruction(X86Ops.VADDPS, a, k, b, Mem(7, disp=64, bcst=True)) == (
        "vaddps zmm31{k3}{z}, zmm2, dword ptr [rdi+0x40]{1to16}"
    )
    assert format_instruction(X86Ops.VADDPS, a, b, Reg(ZMM | ROUND_UP, 5)) == "vaddps zmm31, zmm2, zmm5, {ru-sae}"
    assert format_instruction(X86Ops.VCMPPS, Reg(MASK, 1), b, Reg(ZMM | SAE, 5), Imm(3)) == (
        "vcmpps k1, zmm2, zmm5, {sae}, 3"
    )
    assert format_instruction(X86Ops.VMOVUPS, Mem(0), Reg(MASK, 7), b) == "vmovups zmmword ptr [rax]{k7}, zmm2"


def test_errors_name_what_does_not_fit() -> None:
    x, z, k = Reg(XMM, 1), Reg(ZMM, 1), Reg(MASK, 1)
    with pytest.raises(FormError, match=r"k0 cannot be a write mask, it means no mask; use k1 to k7 or the plain form"):
        encode(X86Ops.VADDPS, z, Reg(MASK, 0), z, z)
    with pytest.raises(FormError, match=r"VPTEST has no EVEX form for vector register 16, 31; give it a register"):
        encode(X86Ops.VPTEST, Reg(XMM, 16), Reg(XMM, 31))
    with pytest.raises(FormError, match=r"VBLENDVPS has no EVEX form for vector register 17"):
        encode(X86Ops.VBLENDVPS, x, x, x, Reg(XMM, 17))
    with pytest.raises(FormError, match=r"VGATHERDPS has no EVEX form for vector register 20"):
        encode(X86Ops.VGATHERDPS, x, Mem(0, 20, vector=XMM), Reg(XMM, 2))
    with pytest.raises(FormError, match=r"no form of VPADDB takes \(zmm, zmm, m32bcst\); it has\n  VPADDB"):
        encode(X86Ops.VPADDB, z, z, Mem(0, bits=32, bcst=True))
    with pytest.raises(FormError, match=r"no form of VADDPS takes \(zmm, r32, zmm, zmm\)"):
        encode(X86Ops.VADDPS, z, Reg(R32, 1), z, z)
    with pytest.raises(FormError, match=r"no form of VMOVUPS takes \(m512, k\{z\}, zmm\)"):
        encode(X86Ops.VMOVUPS, Mem(0, bits=512), Reg(MASK | ZEROING, 1), z)
    with pytest.raises(FormError, match=r"no form of VCMPPS takes \(k, k\{z\}, zmm, zmm, imm8"):
        encode(X86Ops.VCMPPS, k, Reg(MASK | ZEROING, 1), z, z, Imm(0, 8))
    with pytest.raises(FormError, match=r"no form of VPTEST takes \(k, xmm, xmm\)"):
        encode(X86Ops.VPTEST, k, x, x)
    with pytest.raises(FormError, match=r"no form of VGATHERDPS takes \(zmm, vm32z\)"):
        encode(X86Ops.VGATHERDPS, z, Mem(0, 2, vector=ZMM))
    with pytest.raises(FormError, match=r"no form of VADDPS takes \(ymm, ymm, ymm\{rz-sae\}\)"):
        encode(X86Ops.VADDPS, Reg(YMM, 1), Reg(YMM, 1), Reg(YMM | ROUND_ZERO, 1))
    with pytest.raises(FormError, match=r"no form of VADDPS takes \(zmm, zmm, zmm\{sae\}\)"):
        encode(X86Ops.VADDPS, z, z, Reg(ZMM | SAE, 1))


def test_a_feature_may_be_asked_for() -> None:
    kinds = (YMM, YMM, YMM)
    assert X86Ops.VPDPBUSD.form(kinds).feature == "avx512_vnni"
    vex = X86Ops.VPDPBUSD.form(kinds, "avx_vnni")
    assert not vex.evex and vex.vex and vex.feature == "avx_vnni" and vex.twin is not None
    assert X86Ops.VADDPS.form(kinds, "avx512f").evex and not X86Ops.VADDPS.form(kinds, "").evex
    assert X86Ops.VADDPS.match((ZMM, ZMM, ZMM), "") is None
    with pytest.raises(FormError, match="no form of VPDPBUSD takes"):
        X86Ops.VPDPBUSD.form((ZMM, ZMM, ZMM), "avx_vnni")


def test_tables_beyond_v3_are_opened_when_asked_for() -> None:
    import subprocess
    import sys

    code = """if True:
        import sys
        from tinyhost_cpu.x86.insns import MEM, XMM, YMM, ZMM, X86Ops
        X86Ops.VADDPS.form((YMM, YMM, MEM)), X86Ops.VMOVSS.forms, X86Ops.ZERO
        opened = lambda: any("table_evex" in name or "table_mask" in name for name in sys.modules)
        assert not opened()
        X86Ops.VADDPS.form((ZMM, ZMM, MEM))
        assert opened()
    """
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_tables_hold_the_forms() -> None:
    assert sum(len(op.extended) for op in OPS) > 1500 and sum(len(variants(op)) for op in OPS) > 8000
    assert all(form.vex == op.vex for op in X86Ops for form in op.forms)
    assert {line.feature for op in OPS for line in op.extended} == set(FEATURES.values())


def test_threads_see_whole_tables() -> None:
    """Threads that ask at once for mnemonics of a table that is not open yet wait for all of it."""
    from concurrent.futures import ThreadPoolExecutor

    names = ["VADDPS", "VPXORD", "KTESTB", "PREFETCHW", "VPERMB", "VADDPH", "VPTERNLOGD", "ADD"]
    for _ in range(20):
        table = OpcodeTable()
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(lambda name: (table[name].name, name in table), names))
        assert found == [(name, True) for name in names]
        table.extend()
        assert [op.number for op in table] == [op.number for op in X86Ops]
        assert all(op.extensions == X86Ops[op.name].extensions for op in table)
