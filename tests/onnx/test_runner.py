"""OnnxRunner: inputs, outputs, shapes, types, subgraphs, functions, external data, constants, what realizes."""
# ruff: noqa: E402  what needs the onnx package is imported after the check for it
from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")

from onnx import TensorProto, helper, numpy_helper

from tests.onnx.models import F, I, model, node, value
from tinyhost import GlobalCounters, Tensor, TinyJit, dtypes
from tinyhost.engine import program
from tinyhost.errors import DTypeError
from tinyhost.io.onnx import OnnxError, OnnxModelError, OnnxNodeError, OnnxRunner, onnx_load


def ones(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)


# *** where a model comes from ***
@pytest.fixture
def adder():
    return model([node("Add", "x y", "z")], ["x", "y"], ["z"])


def test_sources(adder, tmp_path: Path):
    raw = adder.SerializeToString()
    path = tmp_path / "m.onnx"
    path.write_bytes(raw)
    for source in (adder, raw, bytearray(raw), memoryview(raw), path, str(path), Tensor(raw), Tensor(path)):
        assert OnnxRunner(source)({"x": ones(2), "y": ones(2)})["z"].tolist() == [2, 2], type(source)
    assert onnx_load(path)[1] == str(tmp_path)


def test_source_errors(tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="no file"):
        OnnxRunner(tmp_path / "none.onnx")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        OnnxRunner(tmp_path)
    with pytest.raises(DTypeError, match="row of dtypes.uint8"):
        OnnxRunner(Tensor([1.0]))
    with pytest.raises(OnnxModelError, match="truncated or damaged"):
        OnnxRunner(b"\xff\xff\xff\xff")
    with pytest.raises(OnnxModelError, match="holds no graph"):
        OnnxRunner(b"")


def test_missing_package_is_named():
    code = ("import sys; sys.modules['onnx'] = None; import tinyhost.io.onnx as o\n"
            "try: o.OnnxRunner\n"
            "except ImportError as e: print(type(e).__name__, e)")
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.startswith("OnnxPackageMissing") and "pip install 'tinyhost[onnx]'" in out


def test_import_loads_nothing():
    code = "import sys, tinyhost.io, tinyhost.io.onnx; print('onnx' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout.strip() == "False"


# *** inputs ***
def test_declared_types():
    m = model([node("Identity", "x", "y")], [value("x", ["batch", 3, None])], [value("y", ["batch", 3, None])])
    r = OnnxRunner(m)
    info = r.graph_inputs["x"]
    assert (info.type, info.shape, str(info)) == ("tensor(float)", ("batch", 3, None), "tensor(float)[batch, 3, ?]")
    assert list(r.graph_outputs) == ["y"] and r.opsets == {"": 21}
    for shape in ((1, 3, 4), (7, 3, 2)):
        assert r({"x": ones(*shape)})["y"].shape == shape


@pytest.mark.parametrize("given, text", [
    ({}, r"inputs \[.x., .y.\] are missing: the model takes x \(tensor\(float\)\[n, 2\]\), y"),
    ({"x": ones(1, 2), "y": ones(1, 2), "q": ones(1)}, r"no inputs \['q'\]"),
    ({"x": ones(1, 2).astype(np.float64), "y": ones(1, 2)}, r"'x' is double\[1, 2\], the model declares tensor.float."),
    ({"x": ones(1, 3), "y": ones(1, 2)}, "3 is not 2"),
    ({"x": ones(2), "y": ones(1, 2)}, "number of axes"),
    ({"x": ones(1, 2), "y": ones(4, 2)}, "but n is 1 in another input"),
    ({"x": object(), "y": ones(1, 2)}, "of type object: give a Tensor or a numpy array"),
])
def test_input_errors(given, text):
    m = model([node("Add", "x y", "z")], [value("x", ["n", 2]), value("y", ["n", 2])], ["z"])
    with pytest.raises(OnnxError, match=text):
        OnnxRunner(m)(given)


def test_unknown_extents_may_differ():
    m = model([node("Identity", "x", "y")], [value("x", ["?", "?", -1, None])], ["y"])
    assert OnnxRunner(m)({"x": ones(1, 2, 3, 4)})["y"].shape == (1, 2, 3, 4)


def test_python_numbers_and_tensors_are_inputs():
    m = model([node("Add", "x y", "z")], [value("x", []), value("y", [2])], ["z"])
    assert OnnxRunner(m)({"x": 1.5, "y": Tensor([1.0, 2.0])})["z"].tolist() == [2.5, 3.5]


def test_initializers_may_be_replaced():
    m = model([node("Add", "x w", "z")], ["x", value("w", [1])], ["z"], {"w": ones(1)})
    r = OnnxRunner(m)
    assert list(r.graph_inputs) == ["x"]
    assert r({"x": ones(1)})["z"].tolist() == [2]
    assert r({"x": ones(1), "w": ones(1) * 5})["z"].tolist() == [6]


def test_the_caller_may_change_its_arrays(adder):
    x, k = ones(3), np.array([2], np.int64)
    m = model([node("Tile", "x k", "y")], ["x", value("k", [1], I)], ["y"])
    out = OnnxRunner(m)({"x": x, "k": k})["y"]
    k[0] = 9
    assert out.shape == (6,)


def test_results_share_no_writes_with_model_or_input():
    m = model([node("Identity", "x", "y"), node("Identity", "w", "z")], ["x"], ["y", "z"], {"w": ones(2000)})
    r, x = OnnxRunner(m), Tensor(ones(3)).realize()
    for _ in range(2):
        found = r({"x": x})
        assert found["y"].tolist() == [1, 1, 1] and found["z"].numpy().sum() == 2000
        found["y"].assign(Tensor([5.0, 5, 5])).realize()
        found["z"].assign(found["z"] * 3).realize()
    assert x.tolist() == [1, 1, 1]


def test_intermediate_values():
    m = model([node("Relu", "x", "a"), node("Neg", "a", "b"), node("Neg", "b", "c")], ["x"], ["c"])
    r = OnnxRunner(m)
    found = r({"x": ones(2)}, outputs=["a", "b"])
    assert {k: v.tolist() for k, v in found.items()} == {"a": [1, 1], "b": [-1, -1]}
    with pytest.raises(OnnxError, match=r"gives no values \['q'\]"):
        r({"x": ones(2)}, outputs=["q"])


# *** types are strict ***
def test_no_promotion():
    m = model([node("Add", "x y", "z")], ["x", value("y", None, TensorProto.DOUBLE)], ["z"])
    with pytest.raises(OnnxNodeError, match=r"(?s)Add, domain 'ai.onnx', opset 21.*x: float\[1\], y: double\[1\].*"
                                            "promotes nothing: insert a Cast"):
        OnnxRunner(m)({"x": ones(1), "y": ones(1).astype(np.float64)})


def test_type_that_an_operator_does_not_take():
    m = model([node("Sin", "x", "y")], [value("x", None, I)], [value("y", None, I)])
    with pytest.raises(OnnxNodeError, match=r"input 'input' is tensor\(int64\), allowed are"):
        OnnxRunner(m)({"x": np.ones((2, 2), np.int64)})


@pytest.mark.parametrize("op, given, dtype", [
    ("ArgMax", ones(2, 2), dtypes.int64), ("Shape", ones(2, 2), dtypes.int64), ("Equal", ones(2, 2), dtypes.bool),
    ("ReduceSum", np.ones((2, 2), np.int32), dtypes.int32), ("Sqrt", ones(2, 2).astype(np.float16), dtypes.float16)])
def test_result_types(op, given, dtype):
    names = "x x" if op == "Equal" else "x"
    kind = helper.np_dtype_to_tensor_dtype(given.dtype)
    m = model([node(op, names, "y")], [value("x", None, kind)], [value("y", None, F)])
    assert OnnxRunner(m)({"x": given})["y"].dtype is dtype


@pytest.mark.parametrize("kind, text", [(TensorProto.INT4, "int4"), (TensorProto.FLOAT8E4M3FN, "float8_e4m3fn"),
                                        (TensorProto.BFLOAT16, "bfloat16")])
def test_narrow_types_pass_through(kind: int, text: str):
    m = model([node("Cast", "x", "a", to=kind), node("Transpose", "a", "y")], ["x"], [value("y", None, kind)])
    y = OnnxRunner(m)({"x": np.arange(6, dtype=np.float32).reshape(2, 3)})["y"]
    got = y if isinstance(y, np.ndarray) else y.float().numpy()
    assert got.astype(np.float32).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not isinstance(y, np.ndarray) or y.dtype.name == text


# *** shapes ***
@pytest.mark.parametrize("shape, target, allowzero, want", [
    ((2, 3), [3, 2], 0, (3, 2)), ((2, 3), [0, -1], 0, (2, 3)), ((2, 3, 4), [0, 0, 2, 2], 0, (2, 3, 2, 2)),
    ((0, 3), [0, 3], 1, (0, 3)), ((0, 3), [3, 0], 1, (3, 0)), ((0, 3), [-1, 3], 0, (0, 3)), ((), [1, 1], 0, (1, 1)),
    ((0, 4), [4, 0], 1, (4, 0)), ((1,), [], 0, ())])
def test_reshape(shape, target, allowzero, want):
    m = model([node("Reshape", "x s", "y", allowzero=allowzero)], ["x"], ["y"], {"s": np.array(target, np.int64)})
    assert OnnxRunner(m)({"x": np.zeros(shape, np.float32)})["y"].shape == want


@pytest.mark.parametrize("shape, target, allowzero, text", [
    ((2, 3), [4, 2], 0, "6 elements"), ((2, 3), [-1, -1], 0, "at most one"), ((2,), [1, 0], 0, "keeps an extent"),
    ((2, 3), [-1, 4], 0, "do not fill -1"), ((0, 3), [-1, 0], 1, "do not fill -1"), ((2, 3), [0, 3], 1, "0 elements")])
def test_reshape_errors(shape, target, allowzero, text):
    m = model([node("Reshape", "x s", "y", allowzero=allowzero)], ["x"], ["y"], {"s": np.array(target, np.int64)})
    with pytest.raises(OnnxNodeError, match=text):
        OnnxRunner(m)({"x": np.zeros(shape, np.float32)})


def test_shape_arithmetic_runs_no_kernel():
    nodes = [node("Shape", "x", "s"), node("Gather", "s zero", "b"), node("Unsqueeze", "b zero1", "b1"),
             node("Mul", "b1 two", "m"), node("Concat", "m minus", "t", axis=0), node("Reshape", "x t", "y")]
    m = model(nodes, ["x"], ["y"], {"zero": np.array(0), "zero1": np.array([0]), "two": np.array([2]),
                                    "minus": np.array([-1])})
    r = OnnxRunner(m)
    x = Tensor(ones(3, 4)).realize()
    before = GlobalCounters.kernel_count
    y = r({"x": x})["y"]
    assert y.shape == (6, 2) and GlobalCounters.kernel_count == before


def test_results_are_lazy(adder):
    x = Tensor(ones(4)).realize()
    r = OnnxRunner(adder)
    before = GlobalCounters.kernel_count
    z = r({"x": x, "y": x})["z"]
    assert GlobalCounters.kernel_count == before and not z.uop.is_realized
    assert z.tolist() == [2] * 4


def test_gradients_flow_through(adder):
    m = model([node("Mul", "x x", "a"), node("ReduceSum", "a", "y", keepdims=0)], ["x"], ["y"])
    x = Tensor([1.0, 2.0, 3.0])
    (g,) = OnnxRunner(m)({"x": x})["y"].gradient(x)
    assert g.tolist() == [2, 4, 6]


def test_in_a_captured_function():
    m = model([node("MatMul", "x w", "y")], ["x"], ["y"], {"w": np.arange(6, dtype=np.float32).reshape(3, 2)})
    r = OnnxRunner(m)
    run = TinyJit(lambda x: r({"x": x})["y"].realize())
    for i in range(4):
        x = Tensor(ones(2, 3) * i).realize()
        assert run(x).tolist() == [[6 * i, 9 * i]] * 2


def test_on_another_device():
    w, r, b = (np.full(s, 0.1, np.float32) for s in ((1, 8, 3), (1, 8, 2), (1, 16)))
    nodes = [node("LSTM", "x w r b", "y h c", hidden_size=2), node("Shape", "y", "s"),
             node("ConstantOfShape", "s", "zero"), node("Add", "y zero", "z")]
    m = model(nodes, [value("x", ["t", 1, 3])], ["z"], {"w": w, "r": r, "b": b})
    x = np.random.default_rng(0).standard_normal((4, 1, 3)).astype(np.float32)
    there, here = OnnxRunner(m, device="CPU:1")({"x": Tensor(x)})["z"], OnnxRunner(m)({"x": x})["z"]
    assert there.device == "CPU:1" and np.allclose(there.numpy(), here.numpy())


def test_repr(adder):
    assert repr(OnnxRunner(adder)) == "<OnnxRunner (x: tensor(float), y: tensor(float)) -> (z: tensor(float)), 1 nodes>"


# *** control ***
def branch(name: str, op: str) -> object:
    return helper.make_graph([helper.make_node(op, ["x"], [name])], name, [], [value(name)])


def test_if_reads_outer_values():
    nodes = [node("ReduceSum", "x", "s", keepdims=0), node("Greater", "s zero", "c"),
             helper.make_node("If", ["c"], ["y"], then_branch=branch("a", "Neg"), else_branch=branch("b", "Abs"))]
    r = OnnxRunner(model(nodes, ["x"], ["y"], {"zero": np.array(0, np.float32)}))
    assert r({"x": ones(2)})["y"].tolist() == [-1, -1]
    assert r({"x": -ones(2)})["y"].tolist() == [1, 1]


def counting_loop(until: float) -> object:
    body = helper.make_graph(
        [node("Add", "v x", "w"), node("Less", "w until", "go"), node("Identity", "w", "seen")], "body",
        [value("i", [], I), value("c", [], TensorProto.BOOL), value("v", [])],
        [value("go", [], TensorProto.BOOL), value("w", []), value("seen", [])])
    return model([helper.make_node("Loop", ["n", "", "v0"], ["last", "all"], body=body)],
                 [value("n", [], I), value("x", [])], ["last", "all"],
                 {"until": np.array(until, np.float32), "v0": np.array(0, np.float32)})


@pytest.mark.parametrize("limit, until, steps", [(3, 100, 3), (100, 5, 5), (40, 1e9, 40), (0, 5, 0)])
def test_loop(limit: int, until: float, steps: int):
    found = OnnxRunner(counting_loop(until))({"n": np.array(limit), "x": np.array(1, np.float32)})
    assert found["last"].item() == steps and found["all"].tolist() == [float(i + 1) for i in range(steps)]


def test_endless_loop_ends():
    r = OnnxRunner(counting_loop(1e9), loop_limit=20)
    with pytest.raises(OnnxNodeError, match="did not end in 20 steps: give OnnxRunner a larger loop_limit"):
        r({"n": np.array(10**9), "x": np.array(1, np.float32)})


def test_steps_of_a_loop_share_their_kernels():
    body = helper.make_graph([node("Gather", "table i", "r"), node("Mul", "v half", "h"), node("Add", "h r", "w")],
                             "body", [value("i", [], I), value("c", [], TensorProto.BOOL), value("v", [])],
                             [value("c", [], TensorProto.BOOL), value("w", [])])
    m = model([helper.make_node("Loop", ["n", "", "v0"], ["last"], body=body)],
              [value("n", [], I), value("table", [40])], ["last"],
              {"half": np.array(0.5, np.float32), "v0": np.array(0, np.float32)})
    table = np.arange(40, dtype=np.float32)
    want = np.float32(0)
    for v in table:
        want = want * np.float32(0.5) + v
    before = program.counters.compiled
    assert OnnxRunner(m)({"n": np.array(40), "table": table})["last"].item() == want
    assert program.counters.compiled - before < 6


@pytest.mark.parametrize("axis, back", [(0, 0), (1, 1)])
def test_long_scan(axis: int, back: int):
    body = helper.make_graph([node("Mul", "s half", "h"), node("Add", "h x", "t"), node("Identity", "t", "o")], "body",
                             [value("s", [2]), value("x", [2])], [value("t", [2]), value("o", [2])])
    scan = helper.make_node("Scan", ["s0", "xs"], ["last", "all"], body=body, num_scan_inputs=1, scan_input_axes=[axis],
                            scan_input_directions=[back], scan_output_directions=[back])
    shape = [30, 2] if axis == 0 else [2, 30]
    m = model([scan], [value("s0", [2]), value("xs", shape)], ["last", "all"], {"half": np.array(0.5, np.float32)})
    xs = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    before = program.counters.compiled
    found = OnnxRunner(m)({"s0": np.zeros(2, np.float32), "xs": xs})
    steps, state = [], np.zeros(2, np.float32)
    for x in (np.moveaxis(xs, axis, 0)[::-1] if back else np.moveaxis(xs, axis, 0)):
        state = state * np.float32(0.5) + x
        steps.append(state)
    want = np.stack(steps[::-1] if back else steps)
    assert np.allclose(found["last"].numpy(), state, atol=1e-6) and np.allclose(found["all"].numpy(), want, atol=1e-6)
    assert program.counters.compiled - before < 8


# *** functions ***
def doubled() -> object:
    body = [helper.make_node("Constant", [], ["two"], value=numpy_helper.from_array(np.array(2, np.float32))),
            helper.make_node("Mul", ["a", "two"], ["m"]), helper.make_node("LeakyRelu", ["m"], ["b"])]
    body[2].attribute.append(onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT))
    return helper.make_function("mine", "Doubled", ["a"], ["b"], body, [helper.make_opsetid("", 21)], ["slope"])


def test_model_functions():
    m = model([node("Doubled", "x", "y", domain="mine", slope=0.5), node("Doubled", "y", "z", domain="mine")], ["x"],
              ["z"], functions=[doubled()], opsets={"mine": 1})
    assert OnnxRunner(m)({"x": -ones(1)})["z"].tolist() == pytest.approx([-0.02])  # -1 -> -1 -> -2 * 0.01


# *** data outside ***
def external(tmp_path: Path, location: str, offset: int = 0, length: int | None = None, size: int = 16) -> Path:
    t = TensorProto(name="w", data_type=F, dims=[4], data_location=TensorProto.EXTERNAL)
    entries = {"location": location, "offset": str(offset)} | ({} if length is None else {"length": str(length)})
    for key, text in entries.items():
        t.external_data.add(key=key, value=text)
    m = model([node("Add", "x w", "y")], ["x"], ["y"])
    m.graph.initializer.append(t)
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    (folder / "w.bin").write_bytes(np.arange(size // 4, dtype=np.float32).tobytes())
    (tmp_path / "outside.bin").write_bytes(bytes(16))
    path = folder / "m.onnx"
    path.write_bytes(m.SerializeToString())
    return path


def test_external_data(tmp_path: Path):
    path = external(tmp_path, "w.bin", 8, 16, size=32)
    assert OnnxRunner(path)({"x": ones(4)})["y"].tolist() == [3, 4, 5, 6]
    with pytest.raises(OnnxModelError, match="came without a folder: load it from a path"):
        OnnxRunner(path.read_bytes())


@pytest.mark.parametrize("location, offset, length, text", [
    ("../outside.bin", 0, None, "refused"), ("/etc/hostname", 0, None, "refused"), ("", 0, None, "refused"),
    ("none.bin", 0, None, "no such file"), ("w.bin", 4, None, "16 bytes from byte 4 of a file of 16"),
    ("w.bin", -4, None, "from byte -4"), ("w.bin", 0, 12, "stated as 12 bytes"), ("w.bin", 0, 1 << 62, "stated as")])
def test_external_data_refused(tmp_path: Path, location: str, offset: int, length: int | None, text: str):
    with pytest.raises(OnnxModelError, match=text):
        OnnxRunner(external(tmp_path, location, offset, length))


def test_external_data_behind_a_link_refused(tmp_path: Path):
    path = external(tmp_path, "link.bin")
    (path.parent / "link.bin").symlink_to(tmp_path / "outside.bin")
    with pytest.raises(OnnxModelError, match="refused"):
        OnnxRunner(path)


@pytest.mark.parametrize("array", [
    np.arange(5, dtype=np.int32), np.array([True, False]), np.arange(4, dtype=np.float16), np.array(3.5, np.float64),
    np.zeros((0, 3), np.float32), np.arange(3, dtype=np.uint64)], ids=lambda a: a.dtype.name)
def test_constants(array: np.ndarray):
    kind = helper.np_dtype_to_tensor_dtype(array.dtype)
    m = model([node("Identity", "w", "y")], [], [value("y", None, kind)], {"w": array})
    y = OnnxRunner(m)()["y"].numpy()
    assert y.dtype == array.dtype and y.shape == array.shape and (y == array).all()


def test_strings():
    m = model([node("StringConcat", "x w", "y")], [value("x", None, TensorProto.STRING)],
              [value("y", None, TensorProto.STRING)], {"w": np.array(["!"], object)})
    assert OnnxRunner(m)({"x": np.array(["a", "b"])})["y"].tolist() == ["a!", "b!"]
