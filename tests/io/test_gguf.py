"""GGUF models: the package gguf as the reference for files and for blocks, values worked out by hand, hostile files."""
from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.io.fuzzing import fuzz, holds
from tinyhost import Tensor, dtypes
from tinyhost.io import gguf_load
from tinyhost.io.ggml import GGML_TYPES, dequantize
from tinyhost.io.ggml_grids import GRIDS

# where the float16 scales of a block lie, so that random blocks have scales of a usual size
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "IQ4_NL": [0], "MXFP4": [],
          "NVFP4": [], "Q1_0": [0], "Q2_K": [80, 82], "Q3_K": [108], "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208],
          "Q8_K": [], "IQ4_XS": [0], "IQ2_XXS": [0], "IQ2_XS": [0], "IQ2_S": [0], "IQ3_XXS": [0], "IQ3_S": [0],
          "IQ1_S": [0], "IQ1_M": [], "TQ1_0": [52], "TQ2_0": [64]}
QUANTISED = {t.name: number for number, t in GGML_TYPES.items() if t.read is not None}
REASON = "the reference dequantisers and the writer are in the package gguf: pip install gguf"


def blocks(name: str, count: int) -> np.ndarray:
    """Random blocks, uint8 of (count, bytes)."""
    rng, kind = np.random.default_rng(QUANTISED[name]), GGML_TYPES[QUANTISED[name]]
    raw = rng.integers(0, 256, (count, kind.bytes), dtype=np.uint8)
    for at in SCALES[name]:
        raw[:, at:at + 2] = rng.uniform(-1, 1, count).astype(np.float16).view(np.uint8).reshape(count, 2)
    if name == "MXFP4":
        raw[:, 0] = np.resize([0, 1, 2, 100, 126, 127, 128, 200, 250], count)
    if name == "Q8_K":
        raw[:, 0:4] = rng.uniform(-1, 1, count).astype(np.float32).view(np.uint8).reshape(count, 4)
    if name == "IQ1_M":  # its scale lies in the highest four bits of four words
        d, words = rng.uniform(-1, 1, count).astype(np.float16).view(np.uint16), raw[:, 48:56].copy().view(np.uint16)
        for i in range(4):
            words[:, i] = (words[:, i] & 0xFFF) | (((d >> (4 * i)) & 15) << 12)
        raw[:, 48:56] = words.view(np.uint8)
    return raw


def test_every_type_has_its_block_size():
    gguf = pytest.importorskip("gguf", reason=REASON)
    for number, (elements, size) in gguf.constants.GGML_QUANT_SIZES.items():
        kind = GGML_TYPES[int(number)]
        assert kind.name == number.name and (kind.name == "Q8_1" or (kind.elements, kind.bytes) == (elements, size))


@pytest.mark.parametrize("name", GRIDS)
def test_grids_against_the_reference(name: str):
    gguf = pytest.importorskip("gguf", reason=REASON)
    theirs = getattr(gguf.quants, "IQ1_S" if name == "IQ1" else name)
    theirs.init_grid()
    points = np.frombuffer(GRIDS[name].table(), np.int8).reshape(-1, GRIDS[name].digits)
    assert points.shape == theirs.grid_shape and (points == theirs.grid.reshape(theirs.grid_shape)).all()


@pytest.mark.parametrize("name", sorted(QUANTISED.keys() - {"Q1_0", "Q8_K"}))  # these two are worked out by hand below
def test_blocks_against_the_reference(name: str):
    gguf = pytest.importorskip("gguf", reason=REASON)
    kind, raw = GGML_TYPES[QUANTISED[name]], blocks(name, 40)
    want = gguf.quants.dequantize(raw, gguf.GGMLQuantizationType(QUANTISED[name]))
    got = dequantize(Tensor(raw.reshape(-1)), kind, (40, kind.elements))
    assert got.dtype is dtypes.float32
    # a fused multiply-add rounds once where numpy rounds twice
    np.testing.assert_allclose(got.numpy(), want, rtol=2e-7, atol=2e-7 * np.abs(want[np.isfinite(want)]).max()
                               if "K" in name else 0)


def test_a_product_with_quantised_weights():
    kind, raw, x = GGML_TYPES[QUANTISED["Q4_K"]], blocks("Q4_K", 8), np.random.default_rng(0).standard_normal((3, 256))
    weights = dequantize(Tensor(raw.reshape(-1)), kind, (8, 256))
    want = x @ weights.numpy().astype(np.float64).T
    np.testing.assert_allclose((Tensor(x.astype(np.float32)) @ weights.T).numpy(), want, rtol=1e-5, atol=1e-3)


@pytest.mark.parametrize("name", ["Q4_K", "IQ2_S", "IQ4_NL", "TQ1_0", "NVFP4"])
def test_blocks_on_another_device(name: str):
    kind, raw = GGML_TYPES[QUANTISED[name]], blocks(name, 2)
    got = dequantize(Tensor(raw.reshape(-1), device="PYTHON"), kind, (2, kind.elements))
    assert got.device == "PYTHON"
    np.testing.assert_allclose(got.numpy(), dequantize(Tensor(raw.reshape(-1)), kind, (2, kind.elements)).numpy(),
                               rtol=1e-6)


def half(x: float) -> bytes:
    return struct.pack("<e", x)


BY_HAND: dict[str, tuple[bytes, list[float]]] = {
    "Q4_0": (half(0.5) + bytes([0x1F] * 16), [3.5] * 16 + [-3.5] * 16),
    "Q4_1": (half(0.5) + half(10) + bytes([0x1F] * 16), [17.5] * 16 + [10.5] * 16),
    "Q5_0": (half(2) + b"\1\0\1\0" + bytes([0x21] * 16), [2] + [-30] * 15 + [4] + [-28] * 15),
    "Q5_1": (half(2) + half(-1) + b"\1\0\1\0" + bytes([0x21] * 16), [33] + [1] * 15 + [35] + [3] * 15),
    "Q8_0": (half(0.25) + bytes([4, 0xFC] * 16), [1, -1] * 16),
    "IQ4_NL": (half(1) + bytes([0x0F] * 16), [113] * 16 + [-127] * 16),
    "MXFP4": (bytes([128]) + bytes([0x97] * 16), [12] * 16 + [-1] * 16),
    "Q6_K": (bytes([0x21] * 128) + bytes([0b11100100] * 64) + bytes([1] * 15 + [0xFF]) + half(2),
             [2 * q for half_ in range(2) for q in [-31] * 32 + [-15] * 32 + [2] * 32 + [18] * 32][:-16] + [-36] * 16),
    "Q1_0": (half(0.5) + bytes([0b101]) + bytes(14) + b"\x80", [0.5, -0.5, 0.5] + [-0.5] * 124 + [0.5]),
    "Q8_K": (struct.pack("<f", 0.25) + bytes([4, 0xFC] * 128) + b"\x77" * 32, [1, -1] * 128),
    "NVFP4": (bytes([0x38, 0x7F, 0x01, 0xC0]) + bytes([0x97] * 32),
              ([6] * 8 + [-0.5] * 8) + [0] * 16 + [12 / 1024] * 8 + [-1 / 1024] * 8 + [12] * 8 + [-1] * 8),
    "Q4_K": (half(1) + half(0.5) + bytes([1] * 4 + [2] * 4 + [0x31] * 4) + bytes([0x21] * 128),
             [0] * 32 + [1] * 32 + [0] * 32 + [1] * 32 + [1 - 1.5] * 32 + [2 - 1.5] * 32 + [1 - 1.5] * 32
             + [2 - 1.5] * 32),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_blocks_by_hand(name: str):
    raw, want = BY_HAND[name]
    kind = GGML_TYPES[QUANTISED[name]]
    assert dequantize(Tensor(raw * 2), kind, (2, kind.elements)).tolist() == [want, want]


def test_a_file_of_the_reference_writer(tmp_path: Path):
    gguf = pytest.importorskip("gguf", reason=REASON)
    writer = gguf.GGUFWriter(tmp_path / "f.gguf", "llama")
    meta: dict[str, Any] = {"u8": 7, "i32": -5, "f32": 0.5, "flag": True, "text": "caf\u00e9", "tokens": ["a", "",
        "\u2581b"], "ints": [1, -2, 3],
                            "floats": [0.5, 2.5], "flags": [True, False]}
    writer.add_uint8("u8", 7)
    writer.add_int32("i32", -5)
    writer.add_float32("f32", 0.5)
    writer.add_bool("flag", True)
    writer.add_string("text", meta["text"])
    for key in ("tokens", "ints", "floats", "flags"):
        writer.add_array(key, meta[key])
    plain = {"f32": np.arange(6, dtype=np.float32).reshape(2, 3), "f16": np.arange(6, dtype=np.float16).reshape(1, 2,
        3),
             "i8": np.arange(-3, 3, dtype=np.int8), "i16": np.arange(4, dtype=np.int16), "i32": np.arange(4,
                 dtype=np.int32),
             "i64": np.arange(4, dtype=np.int64), "f64": np.arange(4, dtype=np.float64)}
    for name, x in plain.items():
        writer.add_tensor(name, x)
    weights = np.random.default_rng(0).standard_normal((4, 512)).astype(np.float32)
    coded = {k: gguf.quants.quantize(weights, getattr(gguf.GGMLQuantizationType, k)) for k in ("Q4_0", "Q8_0", "BF16",
        "Q5_1")}
    for name, raw in coded.items():
        writer.add_tensor(name, raw, raw_dtype=getattr(gguf.GGMLQuantizationType, name))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    metadata, tensors = gguf_load(tmp_path / "f.gguf")
    assert metadata == {"general.architecture": "llama", **meta}
    assert list(tensors) == [*plain, *coded]
    for name, x in plain.items():
        assert tensors[name].device.startswith("DISK:") and tensors[name].numpy().dtype == x.dtype
        assert (tensors[name].numpy() == x).all()
    for name, raw in coded.items():
        want = gguf.quants.dequantize(raw, getattr(gguf.GGMLQuantizationType, name))
        assert tensors[name].shape == (4, 512) and (tensors[name].to(None).numpy() == want).all()
    assert tensors["BF16"].dtype is dtypes.bfloat16 and tensors["BF16"].device.startswith("DISK:")


# *** files by hand ***
def text(s: str | bytes) -> bytes:
    raw = s if isinstance(s, bytes) else s.encode()
    return struct.pack("<Q", len(raw)) + raw


def entry(key: str, kind: int, value: bytes) -> bytes:
    return text(key) + struct.pack("<I", kind) + value


def described(name: str = "w", dims: tuple[int, ...] = (32,), kind: int = 0, offset: int = 0) -> bytes:
    return text(name) + struct.pack(f"<I{len(dims)}QIQ", len(dims), *dims, kind, offset)


def file_of(meta: list[bytes] = [], tensors: list[bytes] = [], data: bytes = b"", version: int = 3,
            magic: bytes = b"GGUF",
            counts: tuple[int, int] | None = None, alignment: int = 32) -> bytes:
    n, m = counts or (len(tensors), len(meta))
    head = magic + struct.pack("<IQQ", version, n, m) + b"".join(meta) + b"".join(tensors)
    return head + bytes(-len(head) % alignment) + data


def test_types_of_metadata_and_versions(tmp_path: Path):
    nested = struct.pack("<IQ", 9, 2) + struct.pack("<IQ2B", 0, 2, 1, 2) + struct.pack("<IQ", 8, 1) + text("x")
    meta = [entry("a", 0, b"\xff"), entry("b", 1, b"\xff"), entry("c", 2, b"\xff\xff"), entry("d", 3, b"\xff\xff"),
            entry("e", 4, b"\xff" * 4),
            entry("f", 5, b"\xff" * 4), entry("g", 6, struct.pack("<f", 0.5)), entry("h", 7, b"\1"), entry("i", 8,
                text(b"\xe2\x96")),
            entry("j", 9, nested), entry("k", 10, b"\xff" * 8), entry("l", 11, b"\xff" * 8), entry("m", 12,
                struct.pack("<d", 0.1)),
            entry("general.alignment", 4, struct.pack("<I", 64))]
    want = {"a": 255, "b": -1, "c": 65535, "d": -1, "e": 2**32 - 1, "f": -1, "g": 0.5, "h": True, "i": "\udce2\udc96",
            "j": [[1, 2], ["x"]],
            "k": 2**64 - 1, "l": -1, "m": 0.1, "general.alignment": 64}
    data = bytes(range(128)) + bytes(range(64))
    for version in (2, 3):
        raw = file_of(meta, [described("x", (16, 2)), described("s", (), 24, 128), described("z", (0, 4), 2, 128)],
                      data, version, alignment=64)
        (tmp_path / "f").write_bytes(raw)
        metadata, tensors = gguf_load(tmp_path / "f")
        assert metadata == want
        assert tensors["x"].shape == (2, 16) and bytes(tensors["x"].data()) == data[:128]
        assert tensors["s"].item() == 0 and tensors["z"].shape == (4, 0)
        assert gguf_load(Tensor(raw))[0] == want


def part(i: int, n: int = 3, name: str | None = None, total: int | None = None) -> bytes:
    """Part ``i`` of ``n`` of a model."""
    meta = [entry("split.no", 2, struct.pack("<H", i)), entry("split.count", 2, struct.pack("<H", n)),
            entry("who", 0, bytes([i]))]
    if total is not None:
        meta.append(entry("split.tensors.count", 5, struct.pack("<i", total)))
    return file_of(meta, [described(name or f"w{i}", (2,))], struct.pack("<2f", i, i))


def test_a_model_in_parts(tmp_path: Path):
    first, last = tmp_path / "m-00001-of-00003.gguf", tmp_path / "m-00003-of-00003.gguf"
    for i in range(3):
        (tmp_path / f"m-{i + 1:05}-of-00003.gguf").write_bytes(part(i, total=3))
    metadata, tensors = gguf_load(first)
    assert metadata["who"] == 0
    assert {k: t.tolist() for k, t in tensors.items()} == {"w0": [0, 0], "w1": [1, 1], "w2": [2, 2]}
    assert list(gguf_load(str(tmp_path / "m-00002-of-00003.gguf"))[1]) == ["w1"]
    for raw, message in ((part(2, name="w1"), r"m-00003-of-00003.gguf as GGUF model: \['w1'\] are in an earlier part"),
                         (part(1), r"it says it is part 1 \(from 0\) of 3, not part 2 of 3: parts of different models"),
                         (part(2, 4), r"it says it is part 2 \(from 0\) of 4, not part 2 of 3"),
                         (file_of(), r"it says it is part None \(from 0\) of None, not part 2 of 3")):
        last.write_bytes(raw)
        with pytest.raises(ValueError, match=message):
            gguf_load(first)
    last.unlink()
    with pytest.raises(FileNotFoundError, match="there is no file .*m-00003-of-00003.gguf"):
        gguf_load(first)
    last.write_bytes(part(2))
    first.write_bytes(part(0, total=4))
    with pytest.raises(ValueError, match="its 3 parts hold 3 tensors, 4 are stated: parts of different models"):
        gguf_load(first)
    (tmp_path / "other.gguf").write_bytes(part(0))
    with pytest.raises(ValueError, match="is the first of 3 parts but is not named so: name the parts "
                                         "<model>-00001-of-00003.gguf"):
        gguf_load(tmp_path / "other.gguf")
    (tmp_path / "other.gguf").write_bytes(file_of([entry("split.no", 2, bytes(2)), entry("split.count", 8, text("x"))]))
    with pytest.raises(ValueError, match="is the first of x parts but is not named so"):
        gguf_load(tmp_path / "other.gguf")


DATA = bytes(128)
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f as GGUF model: the magic number takes 4 bytes from byte 0, the data ends at byte 0"),
    "magic": (file_of(magic=b"GGML"), "it begins with b'GGML', not b'GGUF': not a GGUF model"),
    "version 1": (file_of(version=1), "version 1 of the format: little-endian files of versions 2 and 3 can be read"),
    "big-endian": (file_of(version=3 << 24), "it is big-endian: little-endian files of versions 2 and 3"),
    "tensor count": (file_of(counts=(2**63, 0)), "9223372036854775808 tensors of 24 bytes or more do not fit the"),
    "metadata count": (file_of(counts=(0, 2**40)), "1099511627776 metadata entries of 13 bytes or more do not fit"),
    "key longer than the file": (file_of([struct.pack("<Q", 2**62) + b"abcde"]), "a metadata key at byte 24 takes "
                                 "4611686018427387904 bytes: .* at most 65535 are read"),
    "key no UTF-8": (file_of([text(b"\xff") + b"\0\0\0\0\0"]), "a metadata key at byte 24 is no UTF-8"),
    "key twice": (file_of([entry("a", 0, b"\1")] * 2), "the metadata key 'a' stands twice"),
    "value type": (file_of([entry("a", 13, b"\1")]), "metadata 'a' before byte .* has type 13: 0 to 12 are known"),
    "item type": (file_of([entry("a", 9, struct.pack("<IQ", 99, 1) + bytes(99))]), "metadata 'a' before byte .* has "
                  "type 99"),
    "item count": (file_of([entry("a", 9, struct.pack("<IQ", 10, 2**61))]), "2305843009213693952 items of metadata 'a' "
                   "of 8 bytes or more do not"),
    "text count": (file_of([entry("a", 9, struct.pack("<IQ", 8, 2**20))]), "1048576 items of metadata 'a' of 8 bytes "
                   "or more do not fit"),
    "nesting": (file_of([entry("a", 9, struct.pack("<IQ", 9, 1) * 50)]), "metadata 'a' nests arrays more than 4 deep"),
    "bool": (file_of([entry("a", 7, b"\2")]), "metadata 'a' before byte .* is a bool other than 0 and 1"),
    "alignment": (file_of([entry("general.alignment", 4, bytes(4))]), "general.alignment is 0: a number of bytes up to "
                  "1048576 is expected"),
    "alignment, text": (file_of([entry("general.alignment", 8, text("x"))]), "general.alignment is x: a number of "
                        "bytes"),
    "axes": (file_of([], [text("w") + struct.pack("<I", 9) + bytes(99)]), "tensor 'w' has 9 axes, at most 8 can be"),
    "unknown type": (file_of([], [described(kind=77)], DATA), "tensor 'w' has ggml type 77, which is not supported; "
                                                              "supported: BF16, F16, .*, Q8_0, Q8_K, TQ1_0, TQ2_0$"),
    "type not read": (file_of([], [described(kind=9)], DATA), r"tensor 'w' has ggml type 9 \(Q8_1\), which is not "
                                                              "supported; supported: BF16"),
    "rows": (file_of([], [described(dims=(48,), kind=2)], DATA), "tensor 'w' of type Q4_0 has rows of 48 elements: "
                                                                 "they are made of blocks of 32"),
    "scalar block": (file_of([], [described(dims=(), kind=2)], DATA), "tensor 'w' of type Q4_0 has rows of 1 elements"),
    "truncated": (file_of([], [described()], DATA[:127]), r"tensor 'w' of type F32 and shape \(32,\) takes 128 bytes "
                                                          r"from byte 64, the file has 191"),
    "huge shape": (file_of([], [described(dims=(2**40, 2**40))], DATA), "takes 4835703278458516698824704 bytes from "
                   "byte"),
    "shape beyond 2**63": (file_of([], [described(dims=(0, 2**63))], DATA), "tensor 'w' has shape "
                           ".9223372036854775808, 0.: damaged"),
    "no elements, but strides": (file_of([], [described(dims=(0, 2**40, 2**40))], DATA), "tensor 'w' has shape "
                                 ".1099511627776, 1099511627776, 0.: damaged"),
    "offset": (file_of([], [described(offset=2**60)], DATA), "takes 128 bytes from byte 1152921504606847040, the file "
                                                             "has"),
    "offset not aligned": (file_of([], [described(offset=1)], DATA), "tensor 'w' begins at offset 1, no multiple of "
                                                                     "the alignment 32"),
    "name twice": (file_of([], [described()] * 2, DATA), "the tensor name 'w' stands twice"),
    "overlap": (file_of([], [described("a"), described("b", offset=64)], DATA * 2), "tensor 'b' at offset 64 shares "
                "bytes with the one before it"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(tmp_path: Path, name: str):
    content, message = HOSTILE[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        gguf_load(tmp_path / "f")


def good_file() -> tuple[bytes, int]:
    """A file of several types, and where its header ends."""
    rng, parts, infos, offset = np.random.default_rng(0), [], [], 0
    kinds = [("x", 0, (8, 2), rng.bytes(64)), ("h", 30, (16,), rng.bytes(32)), ("i", 26, (2, 2, 2), rng.bytes(32))]
    kinds += [(n, QUANTISED[n], (GGML_TYPES[QUANTISED[n]].elements, 2), blocks(n, 2).tobytes()) for n in ("Q4_0",
        "Q8_0", "Q4_K", "MXFP4", "IQ2_S", "IQ1_M")]
    for name, kind, dims, raw in kinds:
        infos.append(described(name, dims, kind, offset))
        parts.append(raw + bytes(-len(raw) % 32))
        offset += len(parts[-1])
    meta = [entry("a", 8, text("hello")), entry("n", 9, struct.pack("<IQ3i", 5, 3, 1, 2, 3)), entry("t", 9,
        struct.pack("<IQ", 8, 2) + text("x") * 2)]
    raw = file_of(meta, infos, b"".join(parts))
    return raw, len(raw) - offset


def checked(content: bytes, t: Tensor) -> bool:
    """Views of the file hold its bytes; blocks are computed without an error."""
    return holds(content, t) if t.device.startswith("DISK:") else t.numpy().size == t.numel()


def mutations(folder: Path, count: int) -> None:
    raw, end = good_file()
    assert fuzz(lambda p: gguf_load(p)[1], raw, [(0, end)], folder, 9, count, check=checked) > count // 50


@pytest.mark.fuzz
def test_300_mutations(tmp_path: Path):
    mutations(tmp_path, 300)


@pytest.mark.soak
def test_10000_mutations(tmp_path: Path):
    mutations(tmp_path, 10_000)


def test_truncated_anywhere(tmp_path: Path):
    raw, _ = good_file()
    for n in range(0, len(raw) - 32, 13):
        (tmp_path / "f").write_bytes(raw[:n])
        with pytest.raises(ValueError):
            gguf_load(tmp_path / "f")
