"""State dicts and safetensors files: names, loading, every dtype, the reference implementation, hostile files."""
from __future__ import annotations

import json
import os
import random
import resource
import stat
import struct
import subprocess
import sys
from collections import OrderedDict, namedtuple
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import safetensors.torch
import torch

from tinyhost import Context, Tensor, TinyJit, dtypes, nn
from tinyhost.errors import DTypeError, ShapeError
from tinyhost.nn.state import (
    SAFE_DTYPES,
    get_parameters,
    get_state_dict,
    load_state_dict,
    safe_load,
    safe_load_metadata,
    safe_save,
)


class Block:
    def __init__(self) -> None:
        self.lin = nn.Linear(2, 3)
        self.gain = Tensor.ones(3)


class Net:
    def __init__(self) -> None:
        self.blocks = [Block(), Block()]
        self.pair = (Tensor.zeros(1), nn.BatchNorm(2))
        self.table = {"a": Tensor.zeros(2), 7: OrderedDict(b=Tensor.zeros(1))}
        self.point = namedtuple("Point", "x y")(Tensor.zeros(1), 3)
        self.act = lambda x: x.relu()
        self.kind = Tensor
        self.me = self

    @TinyJit
    def run(self, x: Tensor) -> Tensor:
        return self.blocks[0].lin(x)


NAMES = [
    "blocks.0.gain",
    "blocks.0.lin.bias",
    "blocks.0.lin.weight",
    "blocks.1.gain",
    "blocks.1.lin.bias",
    "blocks.1.lin.weight",
    "pair.0",
    "pair.1.bias",
    "pair.1.num_batches_tracked",
    "pair.1.running_mean",
    "pair.1.running_var",
    "pair.1.weight",
    "point.x",
    "table.7.b",
    "table.a",
]


def test_names():
    net = Net()
    assert sorted(get_state_dict(net)) == NAMES
    assert get_state_dict(net)["blocks.1.lin.weight"] is net.blocks[1].lin.weight
    assert sorted(get_state_dict(net, prefix="model")) == [f"model.{n}" for n in NAMES]
    assert len(get_parameters(net)) == len(NAMES)
    assert get_state_dict(Tensor.ones(1)).keys() == {""}
    for _ in range(3):
        net.run(Tensor.ones(1, 2).realize())
    assert sorted(get_state_dict(net)) == NAMES  # a captured method holds no parameters of the model


def test_names_of_a_deep_chain():
    node: Any = Tensor.ones(1)
    for _ in range(5000):
        node = [node]
    assert list(get_state_dict(node)) == [".".join(["0"] * 5000)]


def test_load_state_dict():
    net, other = Net(), Net()
    rng = np.random.default_rng(0)
    values = {k: rng.standard_normal(t.shape) for k, t in get_state_dict(other).items()}
    given = {k: Tensor(v.astype(np.float64)) for k, v in values.items()}
    old_dtypes = {k: t.dtype for k, t in get_state_dict(net).items()}
    loaded = load_state_dict(net, given)
    assert [id(t) for t in loaded] == [id(t) for t in get_state_dict(net).values()]
    for k, t in get_state_dict(net).items():
        assert t.dtype is old_dtypes[k]
        np.testing.assert_allclose(t.numpy(), values[k].astype(t.numpy().dtype), rtol=1e-6)
    assert net.blocks[0].lin.weight.is_param


def test_loading_realizes_or_not():
    lin = nn.Linear(2, 2)
    state = {"weight": Tensor.ones(2, 2) + 1, "bias": Tensor.zeros(2) + 1}
    load_state_dict(lin, dict(state), realize=False)
    assert not lin.weight.uop.is_realized and lin.weight.tolist() == [[2.0, 2.0], [2.0, 2.0]]
    load_state_dict(lin, consumed := dict(state), consume=True)
    assert lin.weight.uop.is_realized and not consumed


def test_missing_names():
    lin = nn.Linear(2, 2)
    before = lin.bias.numpy()
    with pytest.raises(KeyError, match=r"state_dict has no \['bias'\]; it has \['extra', 'weight'\]: load with "
                                       "strict=False"):
        load_state_dict(lin, {"weight": Tensor.ones(2, 2), "extra": Tensor.ones(1)})
    assert not (lin.weight.numpy() == 1).all()
    load_state_dict(lin, {"weight": Tensor.ones(2, 2)}, strict=False)
    assert (lin.weight.numpy() == 1).all() and (lin.bias.numpy() == before).all()


def test_wrong_shape_changes_nothing():
    lin = nn.Linear(2, 3)
    before = lin.weight.numpy()
    text = r"Shape mismatch in layer `bias`: Expected shape \(3,\), but found \(2,\) in state dict."
    with pytest.raises(ShapeError, match=text):
        load_state_dict(lin, {"weight": Tensor.ones(3, 2), "bias": Tensor.ones(2)})
    assert (lin.weight.numpy() == before).all()


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
    "empty": (b"", "not a safetensors file: 0 bytes, the header length alone takes 8"),
    "short": (b"1234567", "not a safetensors file: 7 bytes"),
    "header longer than the file": (
        file_of({}, length=100),
        "safetensors header of 100 bytes does not fit a file of 10 bytes: truncated",
    ),
    "header length of 2**64-1": (
        file_of({}, length=2**64 - 1),
        "safetensors header of 18446744073709551615 bytes does not fit",
    ),
    "no header": (file_of(b""), "safetensors header is malformed: Expecting value"),
    "no JSON": (file_of(b"{'a': 1}"), "safetensors header is malformed: "),
    "no UTF-8": (file_of(b'{"\xff\xfe": 1}'), "safetensors header is malformed: 'utf-8' codec can't decode byte 0xff"),
    "a list": (file_of([1, 2]), "safetensors header is malformed: a list, not an object"),
    "a number": (file_of(b"12345678"), "safetensors header is malformed: a int, not an object"),
    "deep nesting": (file_of(b"[" * 100_000 + b"]" * 100_000), "holds more lists than entries could"),
    "deep nesting with padding": (
        file_of(b'{"a":' * 3000 + b"1" + b"}" * 3000 + b" " * 99_000),
        "safetensors header is malformed: maximum",
    ),
    "many lists": (file_of(b"[" + b"[]," * 100_000 + b"[]]"), "holds more lists than entries could"),
    "many numbers": (file_of(b"[" + b"0," * 100_000 + b"0]"), "holds more lists than entries could"),
    "huge number": (file_of(b'{"a": ' + b"9" * 10_000 + b"}"), "safetensors header is malformed: Exceeds the limit"),
    "name twice": (
        file_of(
            b'{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}',
            b"x",
        ),
        "safetensors header is malformed: the name 'a' stands twice",
    ),
    "metadata no object": (file_of({"__metadata__": 3}), "safetensors header is malformed: __metadata__ is no object"),
    "entry no object": (file_of({"a": 1}), "safetensors entry 'a' needs dtype, shape and data_offsets, got 1"),
    "entry incomplete": (
        file_of({"a": {"dtype": "F32", "shape": []}}),
        "safetensors entry 'a' needs dtype, shape and data_offsets",
    ),
    "unknown dtype": (
        file_of({"a": entry("F33")}, bytes(8)),
        r"safetensors entry 'a' has unknown dtype 'F33': known are \['BF16', 'BOOL'",
    ),
    "dtype no text": (file_of({"a": entry([])}, bytes(8)), r"safetensors entry 'a' has unknown dtype \[\]"),
    "shape no list": (
        file_of({"a": entry(shape=2)}, bytes(8)),
        "safetensors entry 'a' has shape 2: expected a list of sizes",
    ),
    "negative size": (
        file_of({"a": entry(shape=(-2,))}, bytes(8)),
        r"safetensors entry 'a' has shape \[-2\]: expected a list of sizes",
    ),
    "two negative sizes": (file_of({"a": entry(shape=(-2, -1))}, bytes(8)), "expected a list of sizes"),
    "size no int": (file_of({"a": entry(shape=(2.0,))}, bytes(8)), r"has shape \[2.0\]: expected a list of sizes"),
    "size true": (file_of({"a": entry(shape=(True, 2))}, bytes(8)), "expected a list of sizes"),
    "size too large": (file_of({"a": entry(shape=(2**63, 0), offsets=(0, 0))}), "expected a list of sizes"),
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
        "safetensors entry 'b' overlaps the one before it: it starts at byte 4, not 8",
    ),
    "gap": (
        file_of({"a": entry(), "b": entry(offsets=(12, 20))}, bytes(20)),
        "'b' leaves a gap after the one before it: it starts at byte 12",
    ),
    "trailing data": (
        file_of({"a": entry()}, bytes(9)),
        "safetensors entries end at byte 8 of 9: the header does not belong to the data",
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
    with pytest.raises(ValueError, match="safetensors header of 1073741824 bytes does not fit"):
        safe_load(tmp_path / "f")


@pytest.mark.parametrize("filling", [b"[],", b"0,", b'"",', b"{},", b"1e9,"])
def test_header_of_many_values_takes_no_memory(tmp_path: Path, filling: bytes):
    (tmp_path / "f").write_bytes(file_of(b"[" + filling * (30_000_000 // len(filling)) + b"0]"))
    code = (
        "import sys, resource; from tinyhost.nn.state import safe_load; b = "
        "resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "try: safe_load(sys.argv[1])\nexcept ValueError: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - b)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "f")], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 150_000  # KiB; the text itself is 30 MB, copied a few times


def test_a_file_that_shrinks_while_it_is_used(tmp_path: Path):
    safe_save({"x": Tensor.arange(1000).contiguous()}, tmp_path / "f")
    t = safe_load(tmp_path / "f")["x"]
    os.truncate(tmp_path / "f", 200)
    with pytest.raises(ValueError, match="has 200 bytes, .* are needed: the file is truncated, or shrank while it was "
                                         "in use"):
        t.numpy()


def mutate(rng: random.Random, content: bytes) -> bytes:
    out = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(6)
        at = rng.randrange(len(out)) if rng.random() < 0.3 else rng.randrange(min(len(out), 300))
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at:at + rng.randint(1, 20)]
        elif kind == 3:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        elif kind == 4:
            out[at:at + 1] = str(rng.choice([-1, 0, 1, 2**31, 2**63, 2**64])).encode()
        else:
            out[:8] = struct.pack("<Q", rng.choice([0, 1, 7, len(out), 2**31, 2**63, rng.randrange(400)]))
    return bytes(out)


def test_300_mutations(tmp_path: Path):
    """Each is an error or gives tensors of the file's own bytes; none crashes or takes memory."""
    source = {"a": sample(dtypes.float32, (3, 4)), "b.c": sample(dtypes.int64, (5,)),
              "h": sample(dtypes.bfloat16, (2, 2)), "z": Tensor.zeros(0, 3)}
    safe_save(source, tmp_path / "good", metadata={"note": "x"})
    good, rng = (tmp_path / "good").read_bytes(), random.Random(11)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    accepted = 0
    for i in range(300):
        content = mutate(rng, good)
        path = tmp_path / f"m{i}"
        path.write_bytes(content)
        try:
            loaded = safe_load(path)
        except ValueError:
            continue
        accepted += 1
        start = 8 + int.from_bytes(content[:8], "little")
        header = json.loads(content[8:start])
        for name, t in loaded.items():
            lo, hi = header[name]["data_offsets"]
            assert bytes(t.data()) == content[start + lo:start + hi], f"mutation {i}, {name}"
    assert 5 < accepted < 250
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 100_000  # KiB


def test_loading_needs_no_jit_and_no_training():
    with Context(TRAINING=1, JIT=0):
        lin = nn.Linear(1, 1)
        load_state_dict(lin, {"weight": Tensor([[3.0]]), "bias": Tensor([4.0])})
        assert lin(Tensor([[2.0]])).tolist() == [[10.0]]
