"""Streams: packets from rules, words by word-by-word evaluation, the two ways to submit against it."""
from __future__ import annotations

import random
from collections.abc import Mapping

import pytest

from tests.counting import calls
from tests.hcq.expressions import Meaning, random_values, random_word
from tests.hcq.memory import host_memory, memory_for
from tinyhost.dtype import dtypes
from tinyhost.engine.program import get_kernel, get_program
from tinyhost.errors import CompileError, DeviceError, DeviceNotFound
from tinyhost.hcq.commands import barrier, copy, execute, queue, signal, variable, wait, write
from tinyhost.hcq.stream import Encoder, Encoding, Stream, encode, packet, several
from tinyhost.hcq.submit import CompiledPatcher, Patcher, PythonPatcher, host_device
from tinyhost.hcq.words import Evaluator, Field, field_of, high, low
from tinyhost.ops import Ops
from tinyhost.uop import PatternMatcher, UOp, UPat


def compile_here(sink: UOp):
    return get_program(get_kernel(sink, host_device()), host_device())


# *** words ***
def test_fields_and_evaluator_mean_the_same():
    rng, fields = random.Random(5), 0
    for _ in range(1500):
        u, meaning = random_word(rng)
        values = random_values(rng)
        want = meaning(values)
        assert Evaluator([u])(values) == [want], u
        if (field := field_of(u)) is not None and u.op is not Ops.CONST:
            fields += 1
            assert field.value(values[field.name]) == want, u
    assert fields > 500


@pytest.mark.parametrize("word, field", [
    (variable("a"), Field("a")),
    (16 + variable("a"), Field("a", addend=16)),
    (low(variable("a") + 16), Field("a", 16, mask=0xFFFFFFFF)),
    (high(variable("a") + 16), Field("a", 16, shift=32, mask=0xFFFFFFFF)),
    ((variable("a") >> 40) & 0xFF | 0x7000, Field("a", shift=40, mask=0xFF, base=0x7000)),
    (variable("a") // 256 * 4, Field("a", shift=8, mask=(1 << 56) - 1, left=2)),
    (variable("a") % 4096, Field("a", mask=4095)),
    (UOp.variable("n", 1, 10).cast(dtypes.uint64) + 1, Field("n", 1)),
    ((variable("a") & 0xFF) | 0x80, None),  # bits overlap
    (variable("a") * 3, None),
    (variable("a") + variable("b"), None),
], ids=lambda x: repr(x).replace("\n", "")[:60] if isinstance(x, Field) else "")
def test_what_is_a_field(word: UOp, field: Field | None):
    assert field_of(word) == field


def test_halves_of_a_number():
    assert low(0x123456789A) == 0x3456789A and high(0x123456789A) == 0x12
    assert low(UOp(Ops.CONST, arg=0x123456789A)) == 0x3456789A


def test_floats_are_no_words():
    with pytest.raises(TypeError, match="words are integer arithmetic"):
        Evaluator([variable("a").cast(dtypes.float32)])


# *** both ways to submit ***
class Words:
    """A stream of random words, and what each of them means."""

    def __init__(self, rng: random.Random, bits: int, packets: int) -> None:
        self.meanings: dict[str, list[tuple[int, int, Meaning]]] = {"commands": [], "arguments": []}
        self.bits, at = bits, 0
        made = []
        for _ in range(packets):
            words = [random_word(rng) for _ in range(rng.randrange(1, 5))]
            self.meanings["commands"] += [(at + i * bits // 8, bits, f) for i, (_, f) in enumerate(words)]
            at += len(words) * bits // 8
            made.append(packet(*[u for u, _ in words]))
        self.extra = [(rng.choice([8, 16, 32, 64]), [random_word(rng) for _ in range(rng.randrange(1, 4))])
                      for _ in range(packets // 3)]
        self.stream = encode(queue(("TEST",), "COMPUTE:0", made), _Extra(PatternMatcher([]), bits, words=self))

    def expected(self, memory: Mapping[str, object], values: Mapping[str, int]) -> dict[str, bytes]:
        """The bytes of the regions, one word after the other."""
        out = {}
        for name, words in self.meanings.items():
            data = bytearray(self.stream.nbytes(name))
            for at, bits, meaning in words:
                data[at:at + bits // 8] = (meaning(values) % (1 << bits)).to_bytes(bits // 8, "little")
            out[name] = bytes(data)
        return out


class _Extra(Encoder):
    """Puts arguments of all widths behind the packets."""

    def __init__(self, lower: PatternMatcher, bits: int, words: Words) -> None:
        super().__init__(lower, bits)
        object.__setattr__(self, "words", words)

    def trailer(self, ctx: Encoding):
        for bits, words in self.words.extra:
            literals_fit = [(u & (1 << bits) - 1 if u.op is Ops.CONST else u, f) for u, f in words]
            at = ctx.place("arguments", [u for u, _ in literals_fit], bits)
            self.words.meanings["arguments"] += [(at + i * bits // 8, bits, f)
                                                 for i, (_, f) in enumerate(literals_fit)]
        return ()


def check_patchers(seed: int, compiled: bool) -> None:
    rng = random.Random(seed)
    made = [Words(rng, rng.choice([32, 64]), rng.randrange(1, 9)) for _ in range(rng.randrange(1, 3))]
    known = {k: v for k, v in random_values(rng).items() if rng.random() < 0.4}
    linked = [w.stream.link(memory_for(w.stream, 0x7F12_0000_0000), known) for w in made]
    patchers: list[Patcher] = [PythonPatcher(linked)]
    if compiled:
        patchers.append(CompiledPatcher(linked, compile_here))
    for _ in range(3):
        values = random_values(rng)
        for patcher in patchers:
            patcher({name: values[name] for name in patcher.names})
            for w, one in zip(made, linked):
                addresses = {name: m.address for name, m in one.memory.items()}
                want = w.expected(one.memory, values | known | addresses)
                for name, data in want.items():
                    assert bytes(one.memory[name].view) == data, (type(patcher), name)


@pytest.mark.parametrize("seed", range(40))
def test_python_patcher_writes_what_words_mean(seed: int):
    check_patchers(seed, compiled=False)


@pytest.mark.parametrize("seed", range(8))
def test_both_patchers_write_what_words_mean(seed: int):
    check_patchers(seed, compiled=True)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_many_streams(part: int):
    for seed in range(1000 + part * 40, 1040 + part * 40):
        check_patchers(seed, compiled=True)


def test_values_are_taken_modulo_two_to_the_64():
    stream = encode(queue(("T",), "Q", [packet(variable("a"), variable("b"))]), Encoder(PatternMatcher([]), 64))
    linked = stream.link(memory_for(stream))
    PythonPatcher([linked])({"a": -1, "b": (1 << 64) + 5})
    assert bytes(linked.memory["commands"].view) == b"\xff" * 8 + (5).to_bytes(8, "little")


def test_nothing_left_to_write():
    stream = encode(queue(("T",), "Q", [packet(1, 2)]), Encoder(PatternMatcher([]), 32))
    linked = stream.link(memory_for(stream))
    assert linked.variables == () and linked.patches == ()
    assert calls(lambda: PythonPatcher([linked])({})) < 30

    def never(sink: UOp):
        raise AssertionError("there is nothing to compile")
    CompiledPatcher([linked], never)({})
    assert bytes(linked.memory["commands"].view) == bytes([1, 0, 0, 0, 2, 0, 0, 0])


def test_a_value_that_is_missing_is_named():
    stream = encode(queue(("T",), "Q", [packet(variable("a"), variable("b"))]), Encoder(PatternMatcher([]), 64))
    with pytest.raises(DeviceError, match=r"needs values for 'b', got only \['a'\]"):
        PythonPatcher([stream.link(memory_for(stream))])({"a": 1})


def test_work_of_a_submission_does_not_grow_with_the_stream():
    def work(packets: int) -> int:
        made = [packet(variable(f"in{i % 8}") + i, 1) for i in range(packets)]
        stream = encode(queue(("T",), "Q", made), Encoder(PatternMatcher([]), 64))
        patcher = PythonPatcher([stream.link(memory_for(stream))])
        return calls(lambda: patcher({f"in{i}": i for i in range(8)}))
    assert work(500) == work(50) < 20


def test_no_host_device(monkeypatch: pytest.MonkeyPatch):
    from tinyhost.env import Context
    stream = encode(queue(("T",), "Q", [packet(variable("a"))]), Encoder(PatternMatcher([]), 64))
    linked = stream.link(memory_for(stream))
    with Context(TINYHOST_PLUGINS=""), pytest.raises(DeviceNotFound) as e:
        CompiledPatcher([linked], compile_here)
    assert "pip install tinyhost-cpu" in str(e.value) and "HCQ2=0" in str(e.value)


# *** rules ***
def _copy(ctx: Encoding, x: UOp) -> UOp:
    dest, src, nbytes = x.src
    return packet(0xC0 << 24, low(dest), high(dest), low(src), high(src), nbytes)


def _execute(ctx: Encoding, x: UOp) -> UOp | None:
    if isinstance(x.arg, str):
        return None
    scalars = x.arg.buffers + x.arg.globals + x.arg.locals
    at = ctx.arguments([*x.src[:x.arg.buffers]], 64)
    ctx.arguments(x.src[scalars:], 32, 4)
    return packet(0xE0 << 24, low(at), high(at), *x.src[x.arg.buffers:scalars])


RULES = PatternMatcher([
    (UPat(Ops.INS, arg="copy", name="x"), _copy),
    (UPat(Ops.INS, arg="signal", name="x"), lambda ctx, x: several([barrier(), write(x.src[0], x.src[1])])),
    (UPat(Ops.INS, arg="barrier"), lambda ctx: packet(0xB0 << 24 | ctx.commands_at)),
    (UPat(Ops.INS, arg="write", name="x"), lambda ctx, x: packet(0xA0 << 24, low(x.src[0]), x.src[1])),
    (UPat(Ops.INS, arg="wait"), lambda: several([])),
    (UPat(Ops.INS, name="x"), _execute),
])


def words_of(stream: Stream, region: str = "commands") -> list[int]:
    memory = memory_for(stream, 0x7000_0000_0000)
    stream.link(memory)
    return [int(x) for x in memory[region].mmio(32)[:]]


def test_rules_may_make_several_packets_or_none():
    commands = [wait(0x1000, 1), copy(0x1_2345_6789, 0x2_0000_0010, 64), signal(0x1000, 7)]
    words = words_of(encode(queue(("T",), "Q", commands), Encoder(RULES)))
    assert words == [0xC0000000, 0x23456789, 1, 0x10, 2, 64, 0xB0000006, 0xA0000000, 0x1000, 7]


def test_arguments_of_kernels_have_addresses():
    made = [execute(None, [0x1_0000_0040, 0x80], [4, 1, 1], [32], [5]), execute(None, [0xC0], [1, 1, 1], [1], [])]  # type: ignore[arg-type]
    stream = encode(queue(("T",), "Q", made), Encoder(RULES))
    at = 0x7000_0000_0000 + (1 << 20)
    assert words_of(stream) == [0xE0000000, at & 0xFFFFFFFF, at >> 32, 4, 1, 1, 32,
                                0xE0000000, (at & 0xFFFFFFFF) + 24, at >> 32, 1, 1, 1, 1]
    assert words_of(stream, "arguments") == [0x40, 1, 0x80, 0, 5, 0, 0xC0, 0]


def test_a_command_without_a_rule_is_named():
    encoder = Encoder(PatternMatcher([(UPat(Ops.INS, arg="copy"), lambda: packet(1))]))
    with pytest.raises(CompileError, match=r"no packets for the command barrier of queue \(\('T',\), 'Q'\): its enc"):
        encode(queue(("T",), "Q", [barrier()]), encoder)


def test_rules_that_never_settle_are_reported():
    grow = PatternMatcher([(UPat(Ops.INS, arg="write", name="x"), lambda x: write(x.src[0], x.src[1] + 1))])
    with pytest.raises(CompileError, match="the command write .* more than 1000 rewrites"):
        encode(queue(("T",), "Q", [write(1, 2)]), Encoder(grow))


@pytest.mark.parametrize("value, fits", [(0xFFFFFFFF, True), (-1, True), (-(1 << 31), True), (1 << 32, False),
                                         (-(1 << 31) - 1, False)])
def test_numbers_must_fit_their_word(value: int, fits: bool):
    q = queue(("T",), "Q", [packet(value)])
    if fits:
        assert words_of(encode(q, Encoder(RULES))) == [value & 0xFFFFFFFF]
    else:
        with pytest.raises(ValueError, match=r"does not fit a word of 32 bits: split it into low\(x\) and high\(x\)"):
            encode(q, Encoder(RULES))


def test_memory_must_be_large_enough_and_aligned():
    stream = encode(queue(("T",), "Q", [packet(1, 2, 3)]), Encoder(RULES, align=256))
    with pytest.raises(ValueError, match="'commands' needs 12 bytes of memory, there are none"):
        stream.link({})
    with pytest.raises(ValueError, match="needs 12 bytes of memory, there are 8 bytes"):
        stream.link({"commands": host_memory(8, 0)})
    with pytest.raises(ValueError, match="at a multiple of 256 bytes, not at 0x40"):
        stream.link({"commands": host_memory(12, 0x40)})


def test_encoding_a_thousand_commands_looks_at_each_once():
    def work(n: int) -> int:
        made = [copy(variable("a") + i, i, 64) for i in range(n)]
        return calls(lambda: encode(queue(("T",), "Q", made), Encoder(RULES)))
    work(1)
    few, many = work(100), work(1000)
    assert many < 11 * few and many < 100 * 1000
