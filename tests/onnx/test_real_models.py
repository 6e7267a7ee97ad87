"""Models that people use, against onnxruntime: text detection, recognition and direction, speech, file types."""
# ruff: noqa: E402  what needs the onnx package is imported after the check for it
from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: it computes what is expected")

from tinyhost import Tensor, TinyJit
from tinyhost.io.onnx import OnnxRunner


def file_of(package: str, pattern: str) -> Path:
    """A file that an installed package brings."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed: it brings the model")
    found = sorted(Path(spec.submodule_search_locations[0]).rglob(pattern))
    if not found:
        pytest.skip(f"{package} has no {pattern}")
    return found[0]


def noise(seed: int, *shape: int, scale: float = 1.0) -> np.ndarray:
    return (np.random.default_rng(seed).standard_normal(shape) * scale).astype(np.float32)


def reference(path: Path) -> Any:
    options = ort.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    return ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def check(path: Path, calls: list[dict[str, np.ndarray]], atol: float) -> None:
    """Every output of every call is within ``atol``, and 1e-3 relative to values above it."""
    runner, session = OnnxRunner(path), reference(path)
    for inputs in calls:
        want = session.run(None, inputs)
        got = runner(inputs)
        assert [o.name for o in session.get_outputs()] == list(got)
        for (name, value), expected in zip(got.items(), want, strict=True):
            assert value.shape == expected.shape
            np.testing.assert_allclose(value.numpy(), expected, rtol=1e-3, atol=atol, err_msg=name)


# *** images: rapidocr-onnxruntime ***
def ocr(kind: str) -> Path:
    return file_of("rapidocr_onnxruntime", f"*{kind}_infer.onnx")


@pytest.mark.slow
@pytest.mark.parametrize("kind, shape", [("cls", (1, 3, 48, 192)), ("det", (1, 3, 64, 32))])
def test_ocr(kind: str, shape: tuple[int, ...]):
    check(ocr(kind), [{"x": noise(0, *shape)}], 1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("kind, shapes", [
    ("cls", [(3, 3, 48, 192)]), ("det", [(1, 3, 320, 224), (2, 3, 160, 96)]),
    ("rec", [(1, 3, 48, 96), (2, 3, 48, 320), (3, 3, 48, 160)])])
def test_ocr_other_shapes(kind: str, shapes: list[tuple[int, ...]]):
    check(ocr(kind), [{"x": noise(i, *shape)} for i, shape in enumerate(shapes)], 1e-5)


@pytest.mark.soak
def test_captured_model():
    path = ocr("cls")
    runner, session = OnnxRunner(path), reference(path)
    run = TinyJit(lambda x: [v.realize() for v in runner({"x": x}).values()])
    for seed in range(4):
        x = noise(seed, 1, 3, 48, 192)
        (got,) = run(Tensor(x).realize())
        np.testing.assert_allclose(got.numpy(), session.run(None, {"x": x})[0], rtol=1e-3, atol=1e-5)


# *** speech: silero-vad ***
def speech(batch: int, samples: int) -> dict[str, np.ndarray]:
    return {"input": noise(batch, batch, samples, scale=0.1), "state": noise(1, 2, batch, 128)}


def test_speech_at_both_rates():
    calls = [speech(1, 576) | {"sr": np.array(16000)}, speech(2, 288) | {"sr": np.array(8000)}]
    check(file_of("silero_vad", "silero_vad.onnx"), calls, 1e-5)


@pytest.mark.soak
@pytest.mark.parametrize("name, calls", [
    ("silero_vad_op18_ifless", [speech(1, 576) | {"sr": np.array(16000)}, speech(2, 288) | {"sr": np.array(8000)}]),
    ("silero_vad_16k_op15", [speech(1, 576) | {"sr": np.array(16000)}, speech(3, 576) | {"sr": np.array(16000)}]),
    ("silero_vad_half", [speech(1, 576), speech(4, 576)]), ("silero_vad_openvino_16k", [speech(1, 576)]),
])
def test_speech_other_exports(name: str, calls: list[dict[str, np.ndarray]]):
    check(file_of("silero_vad", f"{name}.onnx"), calls, 1e-5)


@pytest.mark.parametrize("length", [5, pytest.param(40, marks=pytest.mark.slow)])
def test_speech_sequence(length: int):
    inputs = {"input": noise(0, length, 576, scale=0.1), "h": noise(1, 1, 1, 128), "c": noise(2, 1, 1, 128)}
    check(file_of("silero_vad", "silero_vad_16k_sequence.onnx"), [inputs], 2e-5)


def test_speech_state_carries():
    """A stream of windows, each fed with the state before it."""
    path = file_of("silero_vad", "silero_vad.onnx")
    runner, session = OnnxRunner(path), reference(path)
    ours: Any = np.zeros((2, 1, 128), np.float32)
    theirs = ours
    for step in range(4):
        window = noise(step, 1, 576, scale=0.2)
        got = runner({"input": window, "state": ours, "sr": np.array(16000)})
        p, theirs = session.run(None, {"input": window, "state": theirs, "sr": np.array(16000)})
        ours = got["stateN"]
        np.testing.assert_allclose(got["output"].numpy(), p, atol=1e-5)
    np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-3, atol=1e-4)


# *** file types: magika ***
def test_file_types():
    content = np.random.default_rng(0).integers(0, 257, (1, 2048)).astype(np.int32)
    check(file_of("magika", "*.onnx"), [{"bytes": content}], 1e-5)


@pytest.mark.soak
def test_file_types_in_batches():
    calls = [{"bytes": np.random.default_rng(n).integers(0, 257, (n, 2048)).astype(np.int32)} for n in (2, 5)]
    check(file_of("magika", "*.onnx"), calls, 1e-5)


# *** models that the onnx package brings ***
def onnx_data() -> Path:
    spec = importlib.util.find_spec("onnx")
    assert spec is not None and spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "backend" / "test" / "data"


def with_random_weights(path: Path) -> Any:
    """A network whose weights are one number each, with random ones instead."""
    import onnx
    from onnx import numpy_helper
    m, rng = onnx.load(path), np.random.default_rng(0)
    shapes = {t.name: numpy_helper.to_array(t) for t in m.graph.initializer}
    kept = []
    for n in m.graph.node:
        if n.op_type != "ConstantOfShape" or n.input[0] not in shapes:
            kept.append(n)
            continue
        shape = tuple(shapes[n.input[0]].tolist())
        spread = np.sqrt(2 / max(1, np.prod(shape[1:])))
        new = rng.uniform(0.5, 1.5, shape) if len(shape) == 1 else rng.standard_normal(shape) * spread
        m.graph.initializer.append(numpy_helper.from_array(new.astype(np.float32), n.output[0]))
    del m.graph.node[:]
    m.graph.node.extend(kept)
    return m


LONG = ("bvlc_alexnet", "densenet121", "inception_v1", "inception_v2", "resnet50", "vgg19", "zfnet512")


@pytest.mark.parametrize("name", ["shufflenet", "squeezenet", *(pytest.param(n, marks=pytest.mark.soak) for n in LONG)])
def test_networks(name: str):
    """The layers of well-known networks: old opsets, group convolutions, shuffles, long chains of Concat."""
    path = onnx_data() / "light" / f"light_{name}.onnx"
    if not path.exists():
        pytest.skip("this onnx package does not bring the light networks")
    m = with_random_weights(path)
    runner = OnnxRunner(m)
    ((entry, info),) = runner.graph_inputs.items()
    x = noise(0, *(d if isinstance(d, int) else 1 for d in info.shape or ()))
    options = ort.SessionOptions()
    options.log_severity_level = 4
    session = ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {entry: x})
    (got,) = runner({entry: x}).values()
    assert np.ptp(want) > 1e-3  # it says something
    np.testing.assert_allclose(got.numpy(), want, rtol=1e-3, atol=1e-3 * float(np.abs(want).max()))


def light_models() -> list[str]:
    data = onnx_data()
    return sorted(str(p.parent.relative_to(data)) for folder in ("simple", "pytorch-operator", "pytorch-converted")
                  for p in (data / folder).rglob("model.onnx"))


UNSUPPORTED = {"simple/test_gradient_of_add": "Gradient", "simple/test_gradient_of_add_and_mul": "Gradient"}


def check_light(name: str) -> None:
    import onnx

    from tests.onnx.conformance import array_of, assert_close, result_of
    folder = onnx_data() / name
    if name in UNSUPPORTED:
        with pytest.raises(NotImplementedError, match=UNSUPPORTED[name]):
            OnnxRunner(folder / "model.onnx")
        return
    runner = OnnxRunner(folder / "model.onnx")
    model = onnx.load(folder / "model.onnx")
    infos = [v for v in model.graph.input if v.name in runner.graph_inputs]
    for data in sorted(folder.glob("test_data_set_*")):
        def read(path: Path, info: Any) -> Any:
            if info.type.WhichOneof("value") == "sequence_type":
                return [array_of(t) for t in onnx.SequenceProto.FromString(path.read_bytes()).tensor_values]
            return array_of(onnx.TensorProto.FromString(path.read_bytes()))
        given = {v.name: read(data / f"input_{i}.pb", v) for i, v in enumerate(infos)}
        found = runner(given)
        for i, info in enumerate(model.graph.output):
            assert_close(result_of(found[info.name]), read(data / f"output_{i}.pb", info), 1e-3, 1e-5, name)


@pytest.mark.parametrize("part", range(4))
def test_light_models(part: int):
    for name in light_models()[part * 3::24]:
        check_light(name)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(12))
def test_all_light_models(part: int):
    wrong = []
    for name in light_models()[part::12]:
        try:
            check_light(name)
        except Exception as error:
            wrong.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    assert not wrong, "\n".join(wrong)
