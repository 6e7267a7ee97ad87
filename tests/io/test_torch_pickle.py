"""Checkpoints of torch: all three formats against torch itself, every dtype, strides, refusals, hostile files."""
from __future__ import annotations

import io
import os
import pickle
import struct
import sys
import tarfile
import zipfile
from collections import Counter, OrderedDict, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.io.fuzzing import fuzz, raw_bytes
from tinyhost import Tensor, dtypes, nn
from tinyhost.io import torch_load
from tinyhost.nn import state

FORMATS: dict[str, dict[str, Any]] = {"zip": {}, "zip, protocol 4": {"pickle_protocol": 4},
                                      "zip, protocol 5": {"pickle_protocol": 5},
                                      "pickle": {"_use_new_zipfile_serialization": False},
                                      "pickle, protocol 4": {"_use_new_zipfile_serialization": False,
                                                             "pickle_protocol": 4}}
DTYPES = ["float64", "float32", "float16", "bfloat16", "bool", "uint8", "int8", "int16", "int32", "int64", "uint16",
          "uint32", "uint64",
          "float8_e4m3fn", "float8_e5m2", "float8_e4m3fnuz", "float8_e5m2fnuz"]


def assert_same(ours: Any, theirs: Any, where: str = "") -> None:
    """Tensors by value, dtype and shape; containers by type and content."""
    if isinstance(theirs, torch.Tensor):
        assert tuple(ours.shape) == tuple(theirs.shape), where
        assert ours.dtype is getattr(dtypes, {"float8_e4m3fn": "fp8e4m3", "float8_e5m2": "fp8e5m2",
                                              "float8_e4m3fnuz": "fp8e4m3fnuz",
                                              "float8_e5m2fnuz": "fp8e5m2fnuz"}.get(n := str(theirs.dtype)[6:],
                                                  n)), where
        raw = theirs.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes()
        assert raw_bytes(ours) == raw, where
    elif isinstance(theirs, dict):
        assert isinstance(ours, dict) and list(ours) == list(theirs), where
        for k in theirs:
            assert_same(ours[k], theirs[k], f"{where}.{k}")
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is (tuple if isinstance(theirs, tuple) else list) and len(ours) == len(theirs), where
        for i, (a, b) in enumerate(zip(ours, theirs)):
            assert_same(a, b, f"{where}.{i}")
    else:
        assert type(ours) is type(theirs) and ours == theirs, where


def saved(path: Path, obj: Any, **kwargs: Any) -> Path:
    torch.save(obj, path, **kwargs)
    return path


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_dtype(tmp_path: Path, kind: str, dtype: str):
    x = {"x": torch.arange(12).to(torch.float32).to(getattr(torch, dtype)).reshape(3, 4)}
    loaded = torch_load(saved(tmp_path / "f", x, **FORMATS[kind]))
    assert_same(loaded, x)
    assert loaded["x"].device.startswith("DISK:")


@pytest.mark.parametrize("kind", FORMATS)
def test_strides(tmp_path: Path, kind: str):
    base = torch.arange(120.0).reshape(4, 5, 6)
    lazy = {"transposed": base[0].T, "permuted": base.permute(2, 0, 1), "slice": base[1:3], "row": base[2, 3],
            "scalar": base[1, 2, 3],
            "unit": base[:, :1].permute(1, 2, 0)[:, :1], "channels last": base[None].repeat(2, 1, 1,
                1).to(memory_format=torch.channels_last),
            "empty": torch.zeros(0, 3), "empty slice": base[4:], "one": torch.tensor(2.5)}
    gathered = {"step": base[:, ::2], "columns": base[..., 1:3], "columns, transposed": base[:, 1:3, 2:5].permute(2, 1,
        0),
                "expanded": base[0, :1].expand(7, 6), "all one": torch.tensor(3.0).expand(2, 2),
                "windows": base.as_strided((4, 3), (2, 1), 5),
                "diagonal": base[0].diagonal()}
    loaded = torch_load(saved(tmp_path / "f", {**lazy, **gathered}, **FORMATS[kind]))
    assert_same(loaded, {**lazy, **gathered})
    kept = {k for k, t in loaded.items() if t.device.startswith("DISK:")}
    assert set(lazy) - {"unit"} <= kept and not kept & (gathered.keys() - {"unit"})


@pytest.mark.parametrize("kind", FORMATS)
def test_containers_and_plain_values(tmp_path: Path, kind: str):
    shared = torch.ones(3)
    obj = {"list": [1, -2, 2**40, -(2**70), 0.5, None, True, False, "text \u00e9", b"raw \xff", ()], 3: (shared,
        [shared, {}]),
           "ordered": OrderedDict(b=torch.zeros(2), a=1), "set": {1, "a"}, "size": torch.Size([2, 3]),
           "long": list(range(2000)),
           "parameter": torch.nn.Parameter(torch.ones(2)), (1, "k"): "tuple key", "big": "x" * 70_000}
    assert_same(torch_load(saved(tmp_path / "f", obj, **FORMATS[kind])), {**obj, "size": (2, 3)})


def test_names_that_stand_for_values(tmp_path: Path):
    obj = {"dtype": torch.bfloat16, "device": torch.device("cuda", 1), "scalars": [np.float64(0.1), np.float32(0.5),
        np.int64(-3), np.bool_(True)],
           "counter": Counter("aab"), "factory": defaultdict(int, a=1)}
    loaded = torch_load(saved(tmp_path / "f", obj))
    assert loaded == {"dtype": dtypes.bfloat16, "device": "cuda:1", "scalars": [0.1, 0.5, -3, True], "counter": {"a": 2,
        "b": 1},
                      "factory": {"a": 1}}


def test_a_module_is_loaded_into_ours(tmp_path: Path):
    theirs = torch.nn.Linear(3, 2)
    ours = nn.Linear(3, 2)
    nn.state.load_state_dict(ours, torch_load(saved(tmp_path / "f", theirs.state_dict())), verbose=False)
    x = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
    np.testing.assert_allclose(ours(Tensor(x)).numpy(), theirs(torch.from_numpy(x)).detach().numpy(), rtol=1e-5,
                               atol=1e-6)


def test_optimizer_state(tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    opt = torch.optim.Adam(net.parameters())
    net(torch.randn(4, 2)).sum().backward()
    opt.step()
    obj = {"model": net.state_dict(), "opt": opt.state_dict(), "epoch": 3}
    assert_same(torch_load(saved(tmp_path / "f", obj)), obj)


def test_a_tensor_of_bytes_and_the_public_names(tmp_path: Path):
    x = {"x": torch.arange(6).reshape(2, 3).T}
    raw = saved(tmp_path / "f", x).read_bytes()
    assert_same(torch_load(Tensor(raw)), x)
    assert_same(state.torch_load(str(tmp_path / "f")), x)
    assert_same(state.torch_load(Tensor(tmp_path / "f")), x)
    names = state.zip_extract(tmp_path / "f")
    assert "f/data/0" in names and bytes(names["f/data/0"].data()) == struct.pack("<6q", *range(6))
    with pytest.raises(TypeError, match=r"torch checkpoint needs the bytes of a file: a tensor of dtypes.uint8 with "
                                        r"one axis, got .*int"):
        torch_load(Tensor([1, 2]))


def test_a_checkpoint_that_was_zipped_again(tmp_path: Path):
    x = {"x": torch.arange(100)}
    with zipfile.ZipFile(saved(tmp_path / "f", x)) as z, zipfile.ZipFile(tmp_path / "g", "w",
        zipfile.ZIP_DEFLATED) as out:
        for name in z.namelist():
            out.writestr(name, z.read(name))
    assert_same(torch_load(tmp_path / "g"), x)


# *** tar, as torch wrote it before 0.1.10 ***
class _OldPickler(pickle.Pickler):
    def __init__(self, f: Any, ids: dict[int, int]) -> None:
        super().__init__(f, 2)
        self.ids = ids

    def persistent_id(self, obj: Any) -> Any:
        return self.ids.get(id(obj)) if isinstance(obj, torch.Tensor) else None


def old_tar(path: Path, obj: dict[str, torch.Tensor]) -> Path:
    storages, tensors, main, ids = io.BytesIO(), io.BytesIO(), io.BytesIO(), {id(t): 100 + i for i,
        t in enumerate(obj.values())}
    storages.write(pickle.dumps(len(obj), 2))
    tensors.write(pickle.dumps(len(obj), 2))
    for i, t in enumerate(obj.values()):
        storages.write(pickle.dumps((i, "cpu", torch.FloatStorage), 2))
        raw = bytes(t.untyped_storage())
        storages.write(struct.pack("<q", len(raw) // 4) + raw)
        tensors.write(pickle.dumps((100 + i, i, torch.FloatTensor), 2))
        tensors.write(struct.pack(f"<ii{2 * t.dim() + 1}q", t.dim(), 0, *t.shape, *t.stride(), t.storage_offset()))
    storages.write(pickle.dumps([], 2))
    _OldPickler(main, ids).dump(obj)
    with tarfile.open(path, "w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in (("sys_info", b""), ("pickle", main.getvalue()), ("storages", storages.getvalue()),
                              ("tensors", tensors.getvalue())):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return path


def test_tar_checkpoint(tmp_path: Path):
    x = {"a": torch.arange(6.0).reshape(2, 3), "t": torch.arange(6.0).reshape(2, 3).T, "s": torch.arange(8.0)[::2],
         "o": torch.arange(4.0)[1:]}
    old_tar(tmp_path / "f", x)
    theirs = torch.load(tmp_path / "f", weights_only=False)  # the file is what torch takes for one
    assert all(torch.equal(theirs[k], v) for k, v in x.items())
    loaded = torch_load(tmp_path / "f")
    assert_same(loaded, x)
    assert loaded["t"].device.startswith("DISK:")


# *** TorchScript ***
class Inner(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lin = torch.nn.Linear(2, 3)
        self.register_buffer("shift", torch.arange(3.0))
        self.sizes = [1, 2, 3]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lin(x) + self.shift * self.sizes[0]


@pytest.mark.filterwarnings("ignore:.torch.jit")
def test_weights_of_a_scripted_module(tmp_path: Path):
    outer = torch.nn.Sequential(Inner(), torch.nn.ReLU(), torch.nn.BatchNorm1d(3))
    torch.jit.save(torch.jit.script(outer), tmp_path / "f")
    assert_same(torch_load(tmp_path / "f"), dict(outer.state_dict()))


def test_code_of_an_archive_is_only_known_where_it_lies(tmp_path: Path):
    raw = b"\x80\x02c__torch__\nNet\n)\x81}(X\x01\0\0\0wK\x05ub."
    with pytest.raises(ValueError, match="the global '__torch__.Net' is not allowed"):
        torch_load(checkpoint(tmp_path / "f", raw))
    assert torch_load(checkpoint(tmp_path / "g", raw, **{"constants.pkl": b"\x80\x02)."})) == {}
    with pytest.raises(ValueError, match="the state of a scripted object is a tuple, made by code that is not run"):
        torch_load(checkpoint(tmp_path / "h", b"\x80\x02c__torch__\nNet\n)\x81)b.", **{"constants.pkl": b"."}))
    with pytest.raises(ValueError, match="the global 'posix.system' is not allowed"):
        torch_load(checkpoint(tmp_path / "i", pickle.dumps(Evil(), 2), **{"constants.pkl": b"."}))


# *** nothing runs ***
class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/should-not-exist",)


def checkpoint(path: Path, raw: bytes, storages: dict[str, bytes] | None = None, **more: bytes) -> Path:
    """A zip checkpoint of a given pickle."""
    with zipfile.ZipFile(path, "w") as z:
        z.writestr("m/data.pkl", raw)
        for k, v in (storages or {}).items():
            z.writestr(f"m/data/{k}", v)
        for k, v in more.items():
            z.writestr(f"m/{k}", v)
    return path


STORAGE = b"(X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\0" b"0X\x03\0\0\0cpuK\x04tQ"


def rebuilt(offset: bytes = b"K\0", size: bytes = b"K\x02\x85", stride: bytes = b"K\x01\x85",
            storage: bytes = STORAGE) -> bytes:
    """A call of _rebuild_tensor_v2."""
    return b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(" + storage + offset + size + stride + b"\x89NtR."


REFUSED: dict[str, tuple[bytes, str]] = {
    "system": (pickle.dumps(Evil(), 2), r"f as torch checkpoint: pickle at byte \d+: the global 'posix.system' is not "
                                        r"allowed: code of a checkpoint "
                                        "is never run, only tensors and plain containers, numbers and text are read. "
                                        "Save a state dict instead"),
    "system, protocol 4": (pickle.dumps(Evil(), 4), "the global 'posix.system' is not allowed"),
    "eval": (b"c__builtin__\neval\n(X\x01\0\0\0" b"1tR.", "the global '__builtin__.eval' is not allowed"),
    "getattr": (b"cbuiltins\ngetattr\n.", "the global 'builtins.getattr' is not allowed"),
    "dotted": (b"\x80\x04\x8c\x05torch\x8c\x10_utils.os.system\x93.", "the global 'torch._utils.os.system' is not "
               "allowed"),
    "inst": (b"(ios\nsystem\n.", "opcode b'i' is not read here: it makes instances of old classes"),
    "obj": (b"(cos\nsystem\no.", "the global 'os.system' is not allowed"),
    "registry": (b"\x82\x01.", "opcode b'.x82' is not read here: it names code of a registry"),
    "unknown opcode": (b"\xff.", "opcode b'.xff' is not read here: there is none of that number"),
    "attributes": (b"}}b.", "attributes of a dict are set: only plain values can be read"),
    "calling a dict": (b"})R.", "a dict is called, it is no function that this reader knows"),
    "calling a class": (b"ctorch\nTensor\n)R.", "torch.Tensor is called, it is no function that this reader knows"),
    "returning a function": (b"ccollections\nOrderedDict\n.", "the global collections.OrderedDict stands where a value "
                                                              "is expected"),
    "a function in a list": (b"]ccollections\nOrderedDict\na.", "the global collections.OrderedDict stands where a "
                                                                "value is expected"),
    "arguments no tuple": (b"ccollections\nOrderedDict\n]R.", "collections.OrderedDict is called with a list, not a "
                                                              "tuple"),
    "arguments too many": (b"ccollections\nOrderedDict\nNNN\x87R.", "collections.OrderedDict: .*positional argument"),
    "empty": (b"", "a pickle takes 1 bytes from byte .*, the data ends at byte .*: it is truncated or damaged"),
    "no value": (b".", "a value is needed where there is none"),
    "values left over": (b"NN.", "it ends with 1 values left over"),
    "no mark": (b"Nt.", "a mark is needed where there is none"),
    "memo": (b"h\x05.", "memo 5 is read before it is written"),
    "text longer than the file": (b"X\xff\xff\xff\x7fabc.", "text of a pickle takes 2147483647 bytes from byte"),
    "bytes longer than the file": (b"\x8e" + b"\xff" * 8 + b".", "bytes of a pickle takes 18446744073709551615 bytes"),
    "number longer than the file": (b"\x8b\xff\xff\xff\x7f1.", "a number of a pickle takes 2147483647 bytes"),
    "frame longer than the file": (b"\x80\x04\x95\xff\xff\xff\xff\0\0\0\0N.",
                                   "a frame of 4294967295 bytes, 2 are left"),
    "protocol": (b"\x80\x09N.", "protocol 9: 0 to 5 can be read"),
    "no number": (b"Ixyz\n.", "'xyz' is no number"),
    "line without end": (b"I123", "a line of a pickle at byte .* does not end"),
    "no UTF-8": (b"X\x01\0\0\0\xff.", "text that is no UTF-8"),
    "odd items": (b"}(Nu.", "a key without a value"),
    "key": (b"}]Ns.", "a list as the key of a dict: text, numbers, and tuples of these can be keys"),
    "deep key": (b"})\x85" + b"2\x86" * 100 + b"Ns.", "a tuple as the key of a dict"),
    "append to a dict": (b"}Na.", "values are appended into a dict: only a list takes that"),
    "persistent id": (b"NQ.", "a persistent id that is no storage"),
    "text id": (b"Pabc\n.", "a persistent id that is no storage"),
    "storage without a file": (rebuilt(storage=STORAGE.replace(b"X\x01\0\0\0" b"0", b"X\x01\0\0\0" b"9")),
                               "storage '9' has no file m/data/9 in the archive"),
    "storage too short": (rebuilt(storage=STORAGE.replace(b"K\x04", b"K\x05")), "storage '0' needs 20 bytes, its file "
                          "m/data/0 has 16: truncated"),
    "storage of a huge size": (rebuilt(storage=STORAGE.replace(b"K\x04", b"\x8a\x08" + b"\xff" * 7 + b"\x1f")),
                               "whose size is no number"),
    "tensor outside": (rebuilt(b"K\x03"), r"a tensor of size \(2,\), strides \(1,\), offset 3 does not lie in storage "
                                          r"'0' of 4 elements"),
    "size outside": (rebuilt(size=b"K\x05\x85"), r"a tensor of size \(5,\), strides \(1,\), offset 0 does not lie in "
                                                 r"storage"),
    "huge size": (rebuilt(size=b"\x8a\x07" + b"\xff" * 6 + b"\x7f\x85"), "does not lie in storage"),
    "too many repeats": (rebuilt(size=b"(" + b"\x8a\x06\0\0\0\0\0\x01" * 2 + b"t", stride=b"K\0K\0\x86"),
                         r"a tensor of size \(1099511627776, 1099511627776\) has more elements than can be addressed"),
    "no elements, but strides": (rebuilt(size=b"(" + b"\x8a\x06\0\0\0\0\0\x01" * 2 + b"K\0t",
                                         stride=b"K\0K\0K\0\x87"), "has more elements than can be addressed"),
    "negative offset": (rebuilt(b"J\xff\xff\xff\xff"), "storage_offset must be a tuple of at most 64 sizes"),
    "negative stride": (rebuilt(stride=b"J\xff\xff\xff\xff\x85"), "stride must be a tuple of at most 64 sizes"),
    "size no tuple": (rebuilt(size=b"K\x02"), "size must be a tuple"),
    "size of floats": (rebuilt(size=b"G\x40\0\0\0\0\0\0\0\x85"), "size must be a tuple"),
    "strides of another length": (rebuilt(stride=b")"), "their lengths differ"),
    "no storage": (rebuilt(storage=b"N"), "a tensor is made of a NoneType, not a storage"),
    "complex": (rebuilt(storage=STORAGE.replace(b"FloatStorage", b"ComplexFloatStorage")),
                "a torch.ComplexFloatStorage has elements of a dtype that does "
                "not exist here: convert the tensor before saving"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_pickle(tmp_path: Path, name: str):
    raw, text = REFUSED[name]
    with pytest.raises(ValueError, match=text):
        torch_load(checkpoint(tmp_path / "f", raw, {"0": bytes(16)}))
    assert not os.path.exists("/tmp/should-not-exist")


GADGETS = [
    "os.system", "posix.system", "nt.system", "subprocess.Popen", "builtins.exec", "builtins.eval",
    "builtins.__import__", "builtins.open", "builtins.compile", "__builtin__.apply", "runpy._run_code", "pty.spawn",
    "webbrowser.open", "shutil.rmtree", "pickle.loads", "_pickle.loads", "marshal.loads", "dill._dill._load_type",
    "types.FunctionType", "types.CodeType", "operator.attrgetter", "operator.methodcaller", "functools.partial",
    "importlib.import_module", "copyreg._reconstructor", "copyreg.__newobj__", "ctypes.CDLL",
    "socket.create_connection", "code.interact", "timeit.timeit", "cProfile.run", "bdb.Bdb", "pdb.Pdb",
    "asyncio.create_subprocess_shell", "torch.load", "torch.hub.load", "torch.jit.load", "torch.ops.load_library",
    "torch.storage._load_from_bytes", "torch._utils._rebuild_wrapper_subclass",
    "torch.fx.graph_module.reduce_graph_module", "torch.utils.cpp_extension.load_inline",
    "torch.serialization.load", "numpy.load", "numpy.f2py.compile", "numpy.testing._private.utils.runstring",
    "collections.OrderedDict.__init__", "collections.namedtuple", "torch._utils._rebuild_tensor_v2.__globals__",
    "tinyhost.io.torch_load", "tinyhost.helpers.fetch"]


def calls(name: str) -> Iterator[bytes]:
    """Ways to name a function, to call it, and to have it called by what is set."""
    module, _, attribute = name.rpartition(".")
    argument = b"X\x04\0\0\0true\x85"
    plain = b"c" + module.encode() + b"\n" + attribute.encode() + b"\n"
    stacked = b"".join(b"\x8c" + bytes([len(t)]) + t.encode() for t in (module, attribute)) + b"\x93"
    for function in (plain, stacked):
        yield b"\x80\x04" + function + argument + b"R."
        yield b"\x80\x04" + function + argument + b"\x81."
        yield b"\x80\x04" + function + argument + b"}\x92."
        yield b"\x80\x04]" + function + b"a."
        yield b"\x80\x04ccollections\nOrderedDict\n)R}X\x0a\0\0\0__reduce__" + function + b"sb."
        yield b"\x80\x04ccollections\ndefaultdict\n" + function + b"\x85R."
        yield b"\x80\x04" + function + b"Q."
        yield b"\x80\x04ctorch._tensor\n_rebuild_from_type_v2\n(" + function + b"ctorch\nTensor\n" + argument + b"NtR."
    yield b"(X\x04\0\0\0truei" + module.encode() + b"\n" + attribute.encode() + b"\n."
    yield b"(" + plain + b"X\x04\0\0\0trueo."


@pytest.mark.parametrize("name", GADGETS)
def test_gadgets_are_refused_and_not_imported(tmp_path: Path, name: str):
    before = set(sys.modules)
    for i, raw in enumerate(calls(name)):
        legacy = b"".join(pickle.dumps(x, 2) for x in (0x1950A86A20F9469CFC6C, 1001, {"little_endian": True}))
        (tmp_path / "legacy").write_bytes(legacy + raw)
        tar = old_tar(tmp_path / "tar", {"a": torch.ones(1)})
        with tarfile.open(tar, "a") as t:  # of a name that stands twice the last one counts
            info = tarfile.TarInfo("pickle")
            info.size = len(raw)
            t.addfile(info, io.BytesIO(raw))
        script = checkpoint(tmp_path / "script", raw, **{"constants.pkl": b"\x80\x02)."})
        for path in (checkpoint(tmp_path / "zip", raw), tmp_path / "legacy", tar, script):
            with pytest.raises(ValueError, match="is not allowed|is not read here"):
                torch_load(path)
        assert i < 20
    assert name.partition(".")[0] not in {m.partition(".")[0] for m in set(sys.modules) - before}


def test_the_handmade_checkpoint_is_good(tmp_path: Path):
    assert torch_load(checkpoint(tmp_path / "f", rebuilt(), {"0": struct.pack("<4f", 1, 2, 3, 4)})).tolist() == [1, 2]


def test_why_a_known_name_is_refused(tmp_path: Path):
    with pytest.raises(ValueError, match="'torch._utils._rebuild_sparse_tensor' is not allowed: a sparse tensor, save "
                                         "it after"):
        torch_load(saved(tmp_path / "f", torch.ones(2, 2).to_sparse()))
    with pytest.raises(ValueError, match="_reconstruct' is not allowed: a numpy array, save it as a tensor"):
        torch_load(saved(tmp_path / "f", {"x": np.ones(2)}))


def test_huge_tensors_of_few_bytes_are_only_views(tmp_path: Path):
    raw = rebuilt(size=b"\x8a\x06\0\0\0\0\0\x01\x85", stride=b"K\0\x85")
    assert torch_load(checkpoint(tmp_path / "f", raw, {"0": bytes(16)})).shape == (2**40,)


def test_deep_nesting_of_lists(tmp_path: Path):
    loaded = torch_load(checkpoint(tmp_path / "f", b"]" * 100_000 + b"a" * 99_999 + b"."))
    depth = 0
    while loaded:
        loaded, depth = loaded[0], depth + 1
    assert depth == 99_999


FILES: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "f as torch checkpoint: 0 bytes that begin with b'': neither a zip archive, nor a pickle, nor a tar "
                   "archive"),
    "text": (b"hello", "5 bytes that begin with b'hello': neither"),
    "text, long": (b"hello" * 200, "the tar header at byte 0 .*damaged"),
    "another pickle": (pickle.dumps([1], 2), "it does not begin with the magic number of torch checkpoints"),
    "magic number only": (pickle.dumps(0x1950A86A20F9469CFC6C, 2), "a pickle takes 1 bytes"),
    "version": (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1002, 2), "version 1002 of the format: 1001 can "
                "be read"),
    "big-endian": (pickle.dumps(0x1950A86A20F9469CFC6C, 2) + pickle.dumps(1001, 2)
                   + pickle.dumps({"little_endian": False}, 2),
                   "it was not written on a little-endian system"),
}


@pytest.mark.parametrize("name", FILES)
def test_hostile_file(tmp_path: Path, name: str):
    content, text = FILES[name]
    (tmp_path / "f").write_bytes(content)
    with pytest.raises(ValueError, match=text):
        torch_load(tmp_path / "f")


def test_other_archives(tmp_path: Path):
    with pytest.raises(ValueError, match="its byte order is b'big': only little-endian checkpoints can be read"):
        torch_load(checkpoint(tmp_path / "f", b"N.", byteorder=b"big"))
    with zipfile.ZipFile(tmp_path / "g", "w") as z:
        z.writestr("a.txt", "x")
    with pytest.raises(ValueError, match=r"it holds 0 files data.pkl, a checkpoint has one; it has \['a.txt'\]"):
        torch_load(tmp_path / "g")
    with tarfile.open(tmp_path / "t", "w"):
        pass
    with pytest.raises(ValueError,
                       match=r"a tar archive without \['pickle', 'storages', 'tensors'\]: not a checkpoint"):
        torch_load(tmp_path / "t")
    with pytest.raises(FileNotFoundError, match="there is no file .*none"):
        torch_load(tmp_path / "none")
    with pytest.raises(IsADirectoryError, match="torch checkpoint needs a file, .* is a folder"):
        torch_load(tmp_path)


@pytest.mark.parametrize("kind", ["zip", "pickle", "tar"])
def test_truncated_anywhere(tmp_path: Path, kind: str):
    x = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.arange(3.0)}
    path = old_tar(tmp_path / "f", x) if kind == "tar" else saved(tmp_path / "f", x, **FORMATS[kind])
    good = path.read_bytes()
    end = len(good.rstrip(b"\0")) if kind == "tar" else len(good)
    for n in range(0, end, 7):
        (tmp_path / "cut").write_bytes(good[:n])
        with pytest.raises(ValueError):
            torch_load(tmp_path / "cut")


def good_file(kind: str, path: Path) -> tuple[bytes, list[tuple[int, int]]]:
    """A checkpoint and the ranges of its headers."""
    x = {"a": torch.arange(6.0).reshape(2, 3), "t": torch.arange(100.0, 112.0).reshape(3, 4).T, "s": torch.arange(200.0,
        208.0)[::2],
         "n": torch.ones(2)}
    if kind == "tar":
        raw = old_tar(path, x).read_bytes()
        return raw, [(512, 1024 + 512 * 2), (1024, 3000), (3000, 4600)]
    y: Any = {**x, "half": torch.arange(300, 304).half(), "list": [1, "a", (2.5, None)],
              "o": OrderedDict(k=torch.arange(5))}
    raw = saved(path, y, **FORMATS[kind]).read_bytes()
    start = raw.index(b"\x80\x02")
    return raw, [(start, start + 900)] + ([(len(raw) - 900, len(raw))] if kind == "zip" else [])


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", ["zip", "pickle", "tar"])
def test_300_mutations(tmp_path: Path, kind: str):
    good, hot = good_file(kind, tmp_path / "f")
    assert 3 < fuzz(torch_load, good, hot, tmp_path, 5, 300) < 290


@pytest.mark.soak
@pytest.mark.parametrize("kind", ["zip", "pickle", "tar"])
def test_10000_mutations(tmp_path: Path, kind: str):
    good, hot = good_file(kind, tmp_path / "f")
    assert fuzz(torch_load, good, hot, tmp_path, 6, 10_000) > 100
