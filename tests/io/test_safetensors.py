"""safetensors files: every dtype, the reference implementation both ways, shards, hostile files."""
from __future__ import annotations

import json
import os
import stat
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from tests.io.fuzzing import fuzz, holds
from tinyhost import Tensor, dtypes
from tinyhost.errors import DTypeError
from tinyhost.io.safetensors import SAFE_DTYPES, safe_load, safe_load_metadata, safe_save


# *** files ***
def sample(dtype: Any, shape: tuple[int, ...]) -> Tensor:
    rng = np.random.default_rng(5)
    if dtype is dtypes.bool:
        return Tensor(rng.integers(0, 2, shape).astype(bool))
    if dtype.is_int:
        return Tensor(rng.integers(max(dtype.min, -2**31), min(dtype.max, 2**31 - 1), shape)).cast(dtype)
    return Tensor(rng.standard_normal(shape).astype(np.float32)).cast(dtype)


@pytest.mark.parametrize("name", SAFE_DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3, 5), (2, 0, 3)])
def test_round_trip(tmp_path: Path, name: str, shape: tuple[int, ...]):
    t = sample(SAFE_DTYPES[name], shape).realize()
    safe_save({"x": t, "y": t}, tmp_path / "f")
    back = safe_load(tmp_path / "f")
    assert list(back) == ["x", "y"]
    for u in back.values():
        assert u.dtype is t.dtype and u.shape == shape and u.device.startswith("DISK:")
        assert bytes(u.data()) == bytes(t.data())
        assert u.to(None).realize().float().tolist() == t.float().tolist()


TORCH_TYPES = {
    "BOOL": torch.bool,
    "I8": torch.int8,
    "U8": torch.uint8,
    "I16": torch.int16,
    "I32": torch.int32,
    "I64": torch.int64,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "F32": torch.float32,
    "F64": torch.float64,
    "F8_E4M3": torch.float8_e4m3fn,
    "F8_E5M2": torch.float8_e5m2,
}


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_the_reference_implementation_reads_ours(tmp_path: Path, name: str):
    odd = Tensor([1, 2, 3], dtype=dtypes.uint8)
    ours = {"a": sample(SAFE_DTYPES[name], (4, 3)), "odd": odd, "none": Tensor.zeros(0, 2)}
    safe_save(ours, tmp_path / "f", metadata={"made by": "a test", "n": 3})
    theirs = safetensors.torch.load_file(tmp_path / "f")
    assert theirs["a"].dtype is TORCH_TYPES[name] and theirs["none"].shape == (0, 2)
    assert theirs["a"].double().tolist() == ours["a"].cast(dtypes.float64).tolist()
    with safetensors.safe_open(tmp_path / "f", "pt") as f:
        assert f.metadata() == {"made by": "a test", "n": "3"}


@pytest.mark.parametrize("name", TORCH_TYPES)
def test_ours_reads_the_reference_implementation(tmp_path: Path, name: str):
    values = torch.arange(-6, 6, dtype=torch.float32).reshape(3, 4).to(TORCH_TYPES[name])
    theirs = {"b.weight": values, "flag": torch.tensor(True), "none": torch.zeros(0, 3)}
    safetensors.torch.save_file(theirs, tmp_path / "f", metadata={"k": "v"})
    ours = safe_load(tmp_path / "f")
    assert ours.keys() == theirs.keys() and ours["none"].shape == (0, 3) and ours["flag"].to(None).item() is True
    assert ours["b.weight"].to(None).cast(dtypes.float64).tolist() == values.double().tolist()
    assert safe_load_metadata(tmp_path / "f")[2]["__metadata__"] == {"k": "v"}


def test_unsigned_integers_with_the_numpy_reference(tmp_path: Path):
    values = {n: np.array([0, 1, np.iinfo(n).max], n) for n in ("uint16", "uint32", "uint64")}
    safetensors.numpy.save_file(values, tmp_path / "f")
    ours = {k: t.to(None).tolist() for k, t in safe_load(tmp_path / "f").items()}
    assert ours == {k: v.tolist() for k, v in values.items()}


def test_views_of_loaded_tensors(tmp_path: Path):
    x = np.arange(24, dtype=np.float32).reshape(4, 6)
    safe_save({"x": Tensor(x)}, tmp_path / "f")
    t = safe_load(tmp_path / "f")["x"]
    assert (t[1:3].numpy() == x[1:3]).all() and (t[:, 2].numpy() == x[:, 2]).all() and (t.T.numpy() == x.T).all()
    assert (t[2].to(None) + 1).tolist() == (x[2] + 1).tolist()
    t.realize()
    assert t.device.startswith("DISK:")


def test_a_file_that_is_replaced_is_read_anew(tmp_path: Path):
    safe_save({"x": Tensor([1, 2])}, tmp_path / "f")
    old = safe_load(tmp_path / "f")["x"]
    assert old.tolist() == [1, 2]
    safe_save({"x": Tensor([3, 4])}, tmp_path / "f")
    assert safe_load(tmp_path / "f")["x"].tolist() == [3, 4] and old.tolist() == [1, 2]


def test_saving_over_the_file_that_is_being_read(tmp_path: Path):
    safe_save({"x": Tensor([1, 2]), "y": Tensor([5.0])}, tmp_path / "f")
    loaded = safe_load(tmp_path / "f")
    safe_save({"y": loaded["x"], "z": loaded["y"]}, tmp_path / "f")
    assert {k: t.tolist() for k, t in safe_load(tmp_path / "f").items()} == {"y": [1, 2], "z": [5.0]}


def test_writing_is_whole_or_not_at_all(tmp_path: Path):
    target = tmp_path / "f"
    safe_save({"x": Tensor([1, 2])}, target)
    before = target.read_bytes()

    class Failing(Tensor):
        def data(self) -> memoryview:
            raise OSError("disk on fire")
    with pytest.raises(OSError, match="disk on fire"):
        safe_save({"a": Tensor([1]), "b": Failing([1])}, target)
    with pytest.raises(DTypeError, match="safetensors has no name for dtype .*weakint of 'b': cast it first"):
        safe_save({"a": Tensor([1]), "b": Tensor(3)}, target)
    with pytest.raises(ValueError, match="a safetensors entry is named by text other than '__metadata__', got "
                                         "'__metadata__'"):
        safe_save({"__metadata__": Tensor([1])}, target)
    assert target.read_bytes() == before and os.listdir(tmp_path) == ["f"]


def test_file_modes_and_links(tmp_path: Path):
    safe_save({"x": Tensor([1])}, tmp_path / "new")
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666 & ~umask
    (tmp_path / "new").chmod(0o640)
    (tmp_path / "link").symlink_to(tmp_path / "new")
    safe_save({"x": Tensor([2])}, tmp_path / "link")
    assert (tmp_path / "link").is_symlink() and stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o640
    assert safe_load(tmp_path / "new")["x"].tolist() == [2]
    with pytest.raises(FileNotFoundError):
        safe_save({"x": Tensor([1])}, tmp_path / "no" / "such" / "folder")


# *** hostile files ***
def file_of(header: Any, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if length is None else length) + text + data


def entry(dtype: Any = "F32", shape: Any = (2,), offsets: Any = (0, 8)) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": offsets}


HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f as safetensors file: 0 bytes, the length of the header alone takes 8"),
    "short": (b"1234567", "f as safetensors file: 7 bytes"),
    "header longer than the file": (
        file_of({}, length=100),
        "a header of 100 bytes does not fit a file of 10 bytes: truncated",
    ),
    "header length of 2**64-1": (
        file_of({}, length=2**64 - 1),
        "a header of 18446744073709551615 bytes does not fit",
    ),
    "no header": (file_of(b""), "the header is malformed: Expecting value"),
    "no JSON": (file_of(b"{'a': 1}"), "the header is malformed: "),
    "no UTF-8": (file_of(b'{"\xff\xfe": 1}'), "the header is malformed: 'utf-8' codec can't decode byte 0xff"),
    "a list": (file_of([1, 2]), "the header is malformed: a list, not an object"),
    "a number": (file_of(b"12345678"), "the header is malformed: a int, not an object"),
    "deep nesting": (file_of(b"[" * 100_000 + b"]" * 100_000), "more than its 0 entries could"),
    "deep nesting with padding": (
        file_of(b'{"a":' * 3000 + b"1" + b"}" * 3000 + b" " * 99_000),
        "the header is malformed: maximum",
    ),
    "many lists": (file_of(b"[" + b"[]," * 100_000 + b"[]]"), "more than its 0 entries could"),
    "many numbers": (file_of(b"[" + b"0," * 100_000 + b"0]"), "more than its 0 entries could"),
    "huge number": (file_of(b'{"a": ' + b"9" * 10_000 + b"}"), "the header is malformed: Exceeds the limit"),
    "name twice": (
        file_of(
            b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"x",
        ),
        "the header is malformed: the name 'a' stands twice",
    ),
    "metadata no object": (file_of({"__metadata__": 3}), "the header is malformed: __metadata__ is no object of text"),
    "entry no object": (file_of({"a": 1}), "entry 'a' needs dtype, shape and data_offsets, got 1"),
    "entry incomplete": (
        file_of({"a": {"dtype": "F32", "shape": []}}),
        "entry 'a' needs dtype, shape and data_offsets",
    ),
    "unknown dtype": (
        file_of({"a": entry("F33")}, bytes(8)),
        "entry 'a' has dtype 'F33', which is not supported; supported: BF16, BOOL, F16",
    ),
    "dtype that does not exist here": (
        file_of({"a": entry("F8_E8M0", (8,))}, bytes(8)),
        "entry 'a' has dtype 'F8_E8M0', which is not supported: no such dtype exists here, convert it; supported: BF16",
    ),
    "half a byte": (file_of({"a": entry("F4", (16,))}, bytes(8)), "dtype 'F4', .* no such dtype exists here"),
    "six bits": (file_of({"a": entry("F6_E2M3", (8,), (0, 6))}, bytes(6)), "dtype 'F6_E2M3', .* no such dtype"),
    "complex": (file_of({"a": entry("C64", (1,))}, bytes(8)), "dtype 'C64', .* no such dtype exists here"),
    "metadata no text": (file_of({"__metadata__": {"a": 1}}), "__metadata__ is no object of text"),
    "too many entries": (file_of(b"{" + b'"data_offsets":0,' * (2**17 + 1) + b"}"), "131073 entries, at most 131072"),
    "values of hidden names": (file_of(b"{" + b",".join(b'"%d":0' % i for i in range(50_000)) + b"}"),
                               "holds some 50000 values, more than its 0 entries could"),
    "dtype no text": (file_of({"a": entry([])}, bytes(8)), r"entry 'a' has dtype \[\], which is not supported"),
    "shape no list": (
        file_of({"a": entry(shape=2)}, bytes(8)),
        "entry 'a' has shape 2: expected a list of sizes",
    ),
    "negative size": (
        file_of({"a": entry(shape=(-2,))}, bytes(8)),
        r"entry 'a' has shape \[-2\]: expected a list of sizes",
    ),
    "two negative sizes": (file_of({"a": entry(shape=(-2, -1))}, bytes(8)), "expected a list of sizes"),
    "size no int": (file_of({"a": entry(shape=(2.0,))}, bytes(8)), r"has shape \[2.0\]: expected a list of sizes"),
    "size true": (file_of({"a": entry(shape=(True, 2))}, bytes(8)), "expected a list of sizes"),
    "size too large": (file_of({"a": entry(shape=(2**63, 0), offsets=(0, 0))}), "expected a list of sizes"),
    "no elements, but strides": (file_of({"a": entry(shape=(2**40, 0, 2**40), offsets=(0, 0))}), "a list of sizes"),
    "offsets no pair": (
        file_of({"a": entry(offsets=(0, 4, 8))}, bytes(8)),
        r"has data_offsets \[0, 4, 8\]: expected \[start, stop\]",
    ),
    "offsets no ints": (file_of({"a": entry(offsets=(0, "8"))}, bytes(8)), r"expected \[start, stop\]"),
    "negative offset": (
        file_of({"a": entry(offsets=(-8, 0))}, bytes(8)),
        r"'a': bytes -8 to 0 do not hold \[2\] of dtypes.float \(8 bytes\) in 8 "
        "bytes of data: the file is truncated or damaged",
    ),
    "offset out of range": (
        file_of({"a": entry(offsets=(8, 16))}, bytes(8)),
        "bytes 8 to 16 do not hold .* in 8 bytes of data",
    ),
    "offsets reversed": (file_of({"a": entry(offsets=(8, 0))}, bytes(8)), "bytes 8 to 0 do not hold"),
    "offset of 2**70": (file_of({"a": entry(offsets=(2**70, 2**70 + 8))}, bytes(8)), "do not hold"),
    "too many bytes": (
        file_of({"a": entry(offsets=(0, 12))}, bytes(12)),
        r"bytes 0 to 12 do not hold \[2\] of dtypes.float \(8 bytes\)",
    ),
    "product that overflows": (file_of({"a": entry(shape=(2**32, 2**32, 4), offsets=(0, 0))}), "do not hold"),
    "overlap": (
        file_of({"a": entry(), "b": entry(offsets=(4, 12))}, bytes(12)),
        "entry 'b' overlaps the one before it: it starts at byte 4, not 8",
    ),
    "gap": (
        file_of({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)),
        "'b' leaves a gap after the one before it: it starts at byte 12",
    ),
    "trailing data": (
        file_of({"a": entry()}, bytes(9)),
        "the entries end at byte 8 of 9: the header does not belong to the data",
    ),
    "truncated": (file_of({"a": entry()}, bytes(7)), "in 7 bytes of data: the file is truncated or damaged"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_file(tmp_path: Path, name: str):
    content, text = HOSTILE[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=text):
        safe_load(tmp_path / "f")


def test_header_of_a_gigabyte_is_not_read(tmp_path: Path):
    with open(tmp_path / "f", "wb") as f:
        f.write(struct.pack("<Q", 1 << 30))
        f.truncate((1 << 30) + 8)  # sparse
    with pytest.raises(ValueError, match="a header of 1073741824 bytes does not fit"):
        safe_load(tmp_path / "f")


def test_a_file_that_shrinks_while_it_is_used(tmp_path: Path):
    safe_save({"x": Tensor.arange(1000).contiguous()}, tmp_path / "f")
    t = safe_load(tmp_path / "f")["x"]
    os.truncate(tmp_path / "f", 200)
    with pytest.raises(ValueError, match="has 200 bytes, .* are needed: the file is truncated, or shrank while it was "
                                         "in use"):
        t.numpy()


# *** shards ***
def sharded(folder: Path, **index: Any) -> Path:
    """Three tensors in two files, and their index."""
    first, second = "m-00001-of-00002.safetensors", "m-00002-of-00002.safetensors"
    safe_save({"a": Tensor([1.0, 2.0]), "b": Tensor([[3]], dtype=dtypes.uint8)}, folder / first)
    safe_save({"c": Tensor([4, 5, 6])}, folder / second)
    where = {"a": first, "c": second, "b": first}
    path = folder / "model.safetensors.index.json"
    path.write_text(json.dumps({"metadata": {"total_size": 21}, "weight_map": where, **index}))
    return path


def test_a_model_in_shards(tmp_path: Path):
    path = sharded(tmp_path)
    for fn in (path, str(path), tmp_path):
        loaded = safe_load(fn)
        assert {k: t.tolist() for k, t in loaded.items()} == {"a": [1, 2], "c": [4, 5, 6], "b": [[3]]}
        assert all(t.device.startswith("DISK:") for t in loaded.values())


@pytest.mark.soak
def test_shards_of_a_reference_writer(tmp_path: Path):
    transformers = pytest.importorskip("transformers", reason="writes a model in shards: pip install transformers")
    config = transformers.BertConfig(vocab_size=50, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=32)
    model = transformers.BertModel(config)
    model.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1
    loaded = safe_load(tmp_path)
    theirs = model.state_dict()
    assert loaded.keys() == theirs.keys()
    assert all((loaded[k].numpy() == v.numpy()).all() for k, v in theirs.items())


def test_a_folder_of_one_file(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match=r"has neither model.safetensors.index.json nor model.safetensors: name "
                                                r"the file to load, it has \['other.safetensors'\]"):
        safe_save({"a": Tensor([1])}, tmp_path / "other.safetensors")
        safe_load(tmp_path)
    safe_save({"a": Tensor([2])}, tmp_path / "model.safetensors")
    assert safe_load(tmp_path)["a"].tolist() == [2]


INDEXES: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no map": ({"weight_map": 3}, ValueError, "the index has no weight_map of names to files"),
    "a number": ({"weight_map": {"a": 3}}, ValueError, "the index has no weight_map of names to files"),
    "a path": ({"weight_map": {"a": "../m-00001-of-00002.safetensors"}}, ValueError, "the shard "
               "'../m-00001-of-00002.safetensors' is no name of a file beside the index"),
    "an absolute path": ({"weight_map": {"a": "/etc/passwd"}}, ValueError, "'/etc/passwd' is no name of a file"),
    "a long name": ({"weight_map": {"a": "x" * 5000}}, ValueError, "is no name of a file beside the index"),
    "half a character": ({"weight_map": {"a": "\ud800"}}, FileNotFoundError, "there is no file"),
    "the folder": ({"weight_map": {"a": ".."}}, ValueError, "the shard '..' is no name of a file"),
    "missing shard": ({"weight_map": {"a": "none.safetensors"}}, FileNotFoundError, "names the shard "
                      "'none.safetensors', there is no file .*none.safetensors: get all shards"),
    "missing entry": ({"weight_map": {"x": "m-00002-of-00002.safetensors"}}, ValueError, "1 entries are not in their "
                      "shards: 'x' in m-00002-of-00002.safetensors: index and shards are of different models"),
    "another file": ({"weight_map": {"x": "model.safetensors.index.json"}}, ValueError, "as safetensors file: a header "
                     "of .* bytes does not fit"),
}


@pytest.mark.parametrize("name", INDEXES)
def test_hostile_index(tmp_path: Path, name: str):
    index, kind, text = INDEXES[name]
    with pytest.raises(kind, match=text):
        safe_load(sharded(tmp_path, **index))


def test_an_index_that_is_no_index(tmp_path: Path):
    for content, text in ((b"", "safetensors index: the header is malformed"), (b"[1]", "a list, not an object"),
                          (b'{"weight_map": {"a": "b", "a": "c"}}', "the name 'a' stands twice")):
        (tmp_path / "x.index.json").write_bytes(content)
        with pytest.raises(ValueError, match=text):
            safe_load(tmp_path / "x.index.json")


def test_data_that_are_not_aligned(tmp_path: Path):
    """A header of any length, as other writers make it."""
    x = np.arange(6, dtype=np.float64).reshape(2, 3)
    text = json.dumps({"b": entry("U8", (1,), (0, 1)), "x": entry("F64", (2, 3), (1, 49))}).encode()
    for pad in range(8):
        raw = file_of(text + b" " * pad, b"\7" + x.tobytes())
        (tmp_path / f"f{pad}").write_bytes(raw)
        t = safe_load(tmp_path / f"f{pad}")["x"]
        assert (t.numpy() == x).all() and (t[1].to(None) + 1).tolist() == (x[1] + 1).tolist()
        assert safe_load(Tensor(raw))["x"].tolist() == x.tolist()


# *** mutations ***
def good_file(folder: Path) -> bytes:
    source = {"a": sample(dtypes.float32, (3, 4)), "b.c": sample(dtypes.int64, (5,)),
              "h": sample(dtypes.bfloat16, (2, 2)), "z": Tensor.zeros(0, 3)}
    safe_save(source, folder / "good", metadata={"note": "x"})
    return (folder / "good").read_bytes()


def mutations(folder: Path, count: int) -> int:
    """Each is an error or gives tensors of the file's own bytes."""
    good = good_file(folder)
    end = 8 + int.from_bytes(good[:8], "little")
    return fuzz(safe_load, good, [(0, 12), (8, end)], folder, 11, count)


def index_mutations(folder: Path, count: int) -> int:
    path = sharded(folder)
    good = path.read_bytes()

    def load(mutated: Path) -> Any:
        mutated.replace(folder / "mutated.index.json")
        return safe_load(folder / "mutated.index.json")
    content = b"".join(p.read_bytes() for p in sorted(folder.glob("*.safetensors")))
    return fuzz(load, good, [(0, len(good))], folder, 12, count, check=lambda _, t: holds(content, t),
                errors=(ValueError, FileNotFoundError))


@pytest.mark.fuzz
def test_300_mutations(tmp_path: Path):
    assert 5 < mutations(tmp_path, 300) < 250
    assert 0 < index_mutations(tmp_path, 300) < 250  # most changes spoil JSON or a name


@pytest.mark.soak
def test_10000_mutations(tmp_path: Path):
    assert mutations(tmp_path, 10_000) > 100 and index_mutations(tmp_path, 10_000) > 50
