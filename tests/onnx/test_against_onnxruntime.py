"""Operators with options that the package's node cases leave out, and of older opsets, against onnxruntime."""
# ruff: noqa: E402  what needs the onnx package is imported after the check for it
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")
ort = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: it computes what is expected")

from onnx import helper

from tests.onnx.conformance import result_of
from tests.onnx.models import TREES, model, node, value
from tinyhost.io.onnx import OnnxRunner

rng = np.random.default_rng(7)


def f(*shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def u8(*shape: int) -> np.ndarray:
    return rng.integers(0, 255, shape).astype(np.uint8)


def i64(*values: Any) -> np.ndarray:
    return np.array(values, np.int64)


CASES: list[Any] = []


def case(op: str, inputs: list[Any], opset: int = 21, outputs: int = 1, name: str = "", constants: str = "",
         domain: str = "", version: int = 1, rtol: float = 1e-4, **attributes: Any) -> None:
    """A call of an operator; ``constants`` numbers the inputs that are initializers."""
    label = f"{op}-{opset if not domain else version}" + (f"-{name}" if name else "")
    inputs = [None if v is None else np.asarray(v) for v in inputs]
    CASES.append(pytest.param(op, inputs, opset, outputs, constants, domain, version, rtol, attributes, id=label))


@pytest.fixture(scope="module", autouse=True)
def quiet() -> None:
    ort.set_default_logger_severity(4)


def check(op: str, inputs: list[Any], opset: int, outputs: int, constants: str, domain: str, version: int, rtol: float,
          attributes: dict[str, Any]) -> None:
    fixed = {int(c) for c in constants.split()}
    names = ["" if v is None else f"x{i}" for i, v in enumerate(inputs)]
    given = {n: v for i, (n, v) in enumerate(zip(names, inputs)) if v is not None and i not in fixed}
    infos = [value(n, v.shape, helper.np_dtype_to_tensor_dtype(v.dtype)) for n, v in given.items()]
    outs = [f"y{i}" for i in range(outputs)]
    m = model([node(op, " ".join(n or "-" for n in names), " ".join(outs), domain=domain, **attributes)], infos,
              [helper.make_empty_tensor_value_info(o) for o in outs], opset=opset, opsets={domain: version} if domain
              else {}, constants={names[i]: inputs[i] for i in fixed})
    m.ir_version = 8
    options = ort.SessionOptions()
    options.log_severity_level = 4
    want = ort.InferenceSession(m.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(None, given)
    got = [result_of(v) for v in OnnxRunner(m)(given).values()]
    for g, w in zip(got, want, strict=True):
        assert g.shape == w.shape and g.dtype == w.dtype, f"{g.dtype}{g.shape}, not {w.dtype}{w.shape}"
        if w.dtype == object:
            assert g.tolist() == w.tolist()
        else:
            np.testing.assert_allclose(g.astype(np.float64), w.astype(np.float64), rtol=rtol, atol=2e-5)


# *** convolution ***
x4 = f(2, 4, 9, 8)
case("Conv", [x4, f(6, 2, 3, 2), f(6)], group=2, strides=[2, 1], dilations=[1, 2], pads=[1, 0, 2, 1])
case("Conv", [x4, f(4, 1, 3, 3)], group=4, auto_pad="SAME_UPPER", strides=[2, 3], name="depthwise")
case("Conv", [x4, f(5, 4, 2, 2)], auto_pad="SAME_LOWER", name="lower")
case("Conv", [x4, f(5, 4, 2, 2)], auto_pad="VALID", opset=7)
case("Conv", [f(1, 2, 11), f(3, 2, 4)], strides=[3], pads=[2, 1], name="1d")
case("Conv", [f(1, 2, 5, 6, 4), f(3, 2, 2, 3, 2), f(3)], pads=[1, 1, 0, 0, 1, 1], name="3d")
case("ConvTranspose", [x4, f(4, 3, 3, 2), f(6)], group=2, strides=[2, 3], pads=[1, 0, 0, 1], output_padding=[1, 2])
case("ConvTranspose", [f(1, 2, 5), f(2, 3, 4)], strides=[2], dilations=[2], name="1d")
case("ConvTranspose", [x4, f(4, 3, 3, 3)], strides=[2, 2], auto_pad="SAME_UPPER", name="upper")
case("ConvTranspose", [x4, f(4, 3, 2, 2)], strides=[3, 2], output_shape=[27, 15], name="shape")
case("ConvTranspose", [f(1, 2, 3, 4, 3), f(2, 2, 2, 2, 2)], strides=[1, 2, 1], name="3d")
case("ConvInteger", [u8(1, 2, 6, 6), u8(3, 2, 3, 3), np.uint8(100), np.array([1, 2, 3], np.uint8)[:1].reshape(())],
     pads=[1, 1, 1, 1])
case("QLinearConv", [u8(1, 2, 6, 6), np.float32(0.05), np.uint8(120), u8(4, 1, 3, 3),
                     np.array([0.1, 0.02, 0.03, 0.2], np.float32), np.array([9, 99, 199, 0], np.uint8),
                     np.float32(2.5), np.uint8(110), np.arange(4).astype(np.int32) * 100], group=2,
     constants="1 2 3 4 5 6 7 8")

# *** pooling ***
for ceil in (0, 1):
    case("MaxPool", [x4], kernel_shape=[3, 2], strides=[2, 3], pads=[1, 0, 1, 1], ceil_mode=ceil, name=f"ceil{ceil}")
    for include in (0, 1):
        case("AveragePool", [x4], kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1], ceil_mode=ceil,
             count_include_pad=include, name=f"ceil{ceil}-pad{include}", opset=19)
case("MaxPool", [x4], kernel_shape=[3, 2], dilations=[2, 3], outputs=2, name="indices")
case("MaxPool", [x4], kernel_shape=[2, 2], auto_pad="SAME_LOWER", strides=[2, 2], outputs=2, name="lower-indices")
case("MaxPool", [f(1, 2, 6, 5, 4)], kernel_shape=[2, 2, 2], storage_order=1, outputs=2, name="columns")
case("MaxPool", [rng.integers(-9, 9, (1, 2, 7)).astype(np.int8)], kernel_shape=[3], pads=[1, 1], name="int8", opset=12)
case("AveragePool", [x4], kernel_shape=[2, 3], auto_pad="SAME_UPPER", opset=7)
case("AveragePool", [x4], kernel_shape=[2, 2], dilations=[2, 2], opset=19, name="dilated")
case("LpPool", [x4], kernel_shape=[2, 2], p=3, pads=[1, 0, 0, 1], opset=18)
case("GlobalLpPool", [x4], p=3)
case("GlobalMaxPool", [x4])
case("MaxRoiPool", [x4, np.array([[0, 1, 1, 6, 7], [1, 0, 0, 3, 3], [0, 2, 2, 2, 2]], np.float32)],
     pooled_shape=[3, 2], spatial_scale=1.0)

# *** normalisation ***
case("BatchNormalization", [x4, f(4), f(4), f(4), np.abs(f(4))], opset=9, epsilon=1e-3)
case("LRN", [x4], size=3, alpha=0.01, bias=2.0)
case("LayerNormalization", [x4, f(9, 8), f(9, 8)], axis=2, outputs=3)
case("InstanceNormalization", [x4, f(4), f(4)])
case("MeanVarianceNormalization", [x4], axes=[0, 2], rtol=1e-3)
case("LpNormalization", [x4], p=1, axis=1)

# *** recurrent ***
def gates(count: int, directions: int = 1, hidden: int = 3, width: int = 4) -> list[np.ndarray]:
    return [f(directions, count * hidden, width), f(directions, count * hidden, hidden),
            f(directions, 2 * count * hidden)]


lens = np.array([5, 2], np.int32)
for way, d in (("forward", 1), ("reverse", 1), ("bidirectional", 2)):
    case("LSTM", [f(5, 2, 4), *gates(4, d), lens, f(d, 2, 3), f(d, 2, 3), f(d, 9)], hidden_size=3, direction=way,
         outputs=3, name=way, opset=14)
    case("GRU", [f(5, 2, 4), *gates(3, d), lens, f(d, 2, 3)], hidden_size=3, direction=way, outputs=2, name=way,
         opset=14)
    case("RNN", [f(5, 2, 4), *gates(1, d), lens, f(d, 2, 3)], hidden_size=3, direction=way, outputs=2, name=way,
         opset=14, activations=["Relu"] * d)
case("GRU", [f(5, 2, 4), *gates(3)], hidden_size=3, linear_before_reset=1, outputs=2, name="linear", opset=14)
case("LSTM", [f(5, 2, 4), *gates(4)], hidden_size=3, outputs=3, name="options", opset=14, clip=0.5,
     activations=["HardSigmoid", "Softsign", "Tanh"], activation_alpha=[0.25], activation_beta=[0.4])
case("LSTM", [f(20, 1, 4), *gates(4)], hidden_size=3, outputs=3, name="long", opset=14)

# *** shapes and indices ***
case("Slice", [x4, i64(8, -1, 100), i64(-100, -6, 0), i64(2, 3, 0), i64(-3, -2, -1)], opset=13)
case("Slice", [x4], opset=9, starts=[1, -3], ends=[100, -1], axes=[0, 2])
case("Split", [f(7, 3)], opset=18, num_outputs=3, outputs=3, name="uneven")
case("Split", [f(6, 3)], opset=11, split=[1, 5], outputs=2)
case("Squeeze", [f(1, 3, 1, 2)], opset=11, axes=[0, -2])
case("Pad", [x4, i64(1, 0, -1, 2, 0, 0, 2, -3)], opset=13)
case("Pad", [x4, i64(2, 3, 4, 1), None, i64(2, -1)], opset=19, mode="reflect", constants="1 3")
case("Pad", [x4, i64(2, 3, 4, 11), None, i64(2, -1)], opset=19, mode="edge", constants="1 3", name="edge")
case("Pad", [x4, i64(2, 3, 4, 1), None, i64(2, -1)], opset=19, mode="wrap", constants="1 3", name="wrap")
case("Pad", [f(2, 3)], opset=2, pads=[0, 1, 2, 1], value=3.0)
case("Gather", [x4, np.array([[-1, 0], [3, 3]])], axis=1)
case("GatherElements", [f(3, 4), np.array([[-1, 0], [2, -3]])], axis=0)
case("GatherND", [f(2, 3, 4, 5), np.array([[[0, -1], [2, 3]], [[1, 1], [-3, 0]]])], batch_dims=1)
for how in ("none", "add", "mul", "max", "min"):
    case("ScatterElements", [f(3, 4), np.array([[1, 0, 2, -1]]), f(1, 4)], opset=18, reduction=how, name=how)
    case("ScatterND", [f(4, 3), np.array([[1], [-1]]), f(2, 3)], opset=18, reduction=how, name=how)
case("OneHot", [np.array([[1, -1], [9, 0]]), i64(4), np.array([2, 5], np.float32)], axis=1, constants="1")
case("Compress", [f(3, 4), np.array([True, False, True])], axis=1)
case("ReverseSequence", [f(4, 3, 2), i64(4, 1, 2)], time_axis=0, batch_axis=1)
case("DepthToSpace", [f(2, 8, 3, 2)], blocksize=2, mode="CRD", opset=11)
case("Trilu", [f(4, 6), np.array(-2)], upper=0, constants="1")
case("EyeLike", [f(3, 5)], k=-1, dtype=11)
case("Einsum", [f(2, 3, 4), f(2, 4, 5)], equation="bij, bjk -> bik")
case("Einsum", [f(3, 3)], equation="ii->i", name="diagonal")
case("Unique", [np.array([3, 1, 3, 2, 1])], outputs=4, sorted=0)
case("Unique", [np.array([[1, 2], [1, 2], [0, 5]])], outputs=4, axis=0, name="rows")
case("NonZero", [np.array([[0, 1], [2, 0]])])
case("CumSum", [f(3, 4), np.array(-1)], exclusive=1, reverse=1)
case("Expand", [f(3, 1), i64(2, 1, 5)])

# *** numbers ***
ints = rng.integers(-20, 20, (3, 5)).astype(np.int32)
divisors = np.array([3, -4, 7, -1, 5], np.int32)
case("Div", [ints, divisors])
case("Mod", [ints, divisors])
case("Mod", [ints, divisors], fmod=1, name="fmod")
case("Mod", [f(3, 5), f(5)], fmod=1, name="float")
case("Pow", [np.abs(f(4)), np.array([2, 3, 0, 1], np.int64)], opset=15)
case("Pow", [ints, np.array([0, 1, 2, 3, 1], np.int32)], opset=15, name="int")
case("Clip", [f(9), np.float32(0.5), np.float32(-0.5)], name="crossed", constants="1 2")
case("Clip", [ints, np.int32(-3), np.int32(4)], opset=12, name="int")
case("Round", [np.array([-2.5, -0.5, 0.5, 1.5, 2.5, np.nan], np.float32)])
case("Sign", [ints])
case("ReduceMean", [ints], axes=[1], opset=13, name="int")
case("ReduceLogSumExp", [f(3, 4) * 50], axes=[1], opset=13)
case("ReduceMin", [u8(3, 4)], axes=[0], opset=13, keepdims=0)
case("ReduceSum", [f(2, 3), i64()], noop_with_empty_axes=1, opset=13, name="noop")
case("ArgMin", [np.array([[2, 1, 1], [3, 3, 0]], np.float32)], axis=1, select_last_index=1, keepdims=0)
case("TopK", [f(3, 9), i64(4)], axis=1, largest=0, outputs=2)
case("TopK", [f(3, 9)], opset=9, k=2, axis=0, outputs=2)
case("Softmax", [f(2, 3, 4)], opset=11, axis=1)
case("Hardmax", [f(2, 3, 4)], opset=13, axis=1)
case("Det", [f(2, 4, 4)])
case("IsInf", [np.array([1, np.inf, -np.inf, np.nan], np.float32)], detect_positive=0)
case("PRelu", [x4, f(4, 1, 1)])
case("Gemm", [f(4, 3), f(5, 4), f(5)], transA=1, transB=1, alpha=0.5, beta=2.0)
case("Add", [x4, f(9)[:4].reshape(4, 1, 1)], opset=7)
case("Shrink", [f(9)], bias=0.5, lambd=0.4)
case("Cast", [np.array([-1.7, 0.2, 3.9], np.float32)], to=3)
case("Cast", [np.array(["1.5", "-2", "inf"], object)], to=1, name="text")

# *** pictures ***
for mode in ("half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"):
    for kind in ("nearest", "linear", "cubic"):
        case("Resize", [f(1, 2, 5, 6), None, None, i64(1, 2, 8, 4)], opset=13, mode=kind, constants="3",
             coordinate_transformation_mode=mode, name=f"{kind}-{mode}")
case("Resize", [f(1, 2, 8, 9), None, np.array([1, 1, 0.6, 0.4], np.float32)], opset=18, mode="linear", antialias=1,
     constants="2", name="antialias")
case("Resize", [f(1, 2, 5, 6), np.array([0, 0, 0.2, 0.1, 1, 1, 0.9, 1.2], np.float32), None, i64(1, 2, 4, 7)],
     opset=13, mode="linear", coordinate_transformation_mode="tf_crop_and_resize", constants="1 3", name="crop",
     extrapolation_value=9.0)
case("Upsample", [f(1, 2, 3, 4), np.array([1, 1, 2, 3], np.float32)], opset=9, mode="nearest", constants="1")
case("Upsample", [f(1, 2, 3, 4)], opset=7, mode="linear", scales=[1.0, 1.0, 2.0, 2.0])
for kind in ("bilinear", "nearest", "bicubic"):
    for pad in ("zeros", "border", "reflection"):
        grid = rng.uniform(-1.4, 1.4, (1, 4, 3, 2)).astype(np.float32)
        case("GridSample", [f(1, 2, 5, 6), grid], opset=16, mode=kind, padding_mode=pad,
             align_corners=int(pad == "border"), name=f"{kind}-{pad}")

rois = np.array([[0.5, 1, 6.5, 7], [2, 2, 3, 9]], np.float32)
for how in ("avg", "max"):
    case("RoiAlign", [x4, rois, i64(0, 1)], opset=16, mode=how, output_height=3, output_width=2, sampling_ratio=2,
         spatial_scale=0.8, name=how)
case("RoiAlign", [x4, rois, i64(0, 1)], opset=10, output_height=2, output_width=3)
boxes = np.array([[[0, 0, 1, 1], [0, 0.1, 1, 1.1], [0, -0.1, 1, 0.9], [0, 10, 1, 11]]], np.float32)
case("NonMaxSuppression", [boxes, rng.random((1, 2, 4)).astype(np.float32), i64(3), np.array([0.5], np.float32),
                           np.array([0.1], np.float32)])

# *** quantisation ***
case("QuantizeLinear", [f(3, 4) * 50, np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 5, 128], np.uint8)], axis=0)
case("QuantizeLinear", [f(4, 6) * 9, np.abs(f(4, 2)) + 0.1], axis=1, block_size=3, output_dtype=3, name="blocked")
case("DequantizeLinear", [u8(3, 4), np.array([0.1, 0.2, 0.3], np.float32), np.array([1, 5, 128], np.uint8)], axis=0)
case("DynamicQuantizeLinear", [f(3, 4)], outputs=3)
case("MatMulInteger", [u8(3, 4), u8(4, 2), np.array([1, 2, 3], np.uint8)[:1].reshape(()), np.uint8(7)])
case("QLinearMatMul", [u8(3, 4), np.float32(0.1), np.uint8(99), u8(4, 2), np.float32(0.2), np.uint8(130),
                       np.float32(5.0), np.uint8(100)])

# *** text ***
case("TfIdfVectorizer", [np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8]], np.int64)], max_gram_length=2, mode="TF",
     max_skip_count=5, min_gram_length=1, ngram_counts=[0, 4], ngram_indexes=[0, 1, 2, 3, 4, 5, 6],
     pool_int64s=[2, 3, 5, 4, 5, 6, 7, 8, 6, 7])
case("LabelEncoder", [np.array(["a", "b", "q"], object)], domain="ai.onnx.ml", version=2, keys_strings=["a", "b"],
     values_int64s=[3, 4], default_int64=-7)
case("Scaler", [f(3, 2)], domain="ai.onnx.ml", offset=[1.0, 2.0], scale=[0.5, 3.0])
for how in ("MAX", "L1", "L2"):
    case("Normalizer", [np.abs(f(3, 4))], domain="ai.onnx.ml", norm=how, name=how)
case("Imputer", [np.array([[1, np.nan], [np.nan, 2]], np.float32)], domain="ai.onnx.ml",
     replaced_value_float=float("nan"), imputed_value_floats=[7.0, 8.0])
case("Imputer", [i64([1, -1], [-1, 2])], domain="ai.onnx.ml", replaced_value_int64=-1, imputed_value_int64s=[5, 6],
     name="int")
case("FeatureVectorizer", [f(3, 2), f(3, 1)], domain="ai.onnx.ml", inputdimensions=[2, 1])
case("OneHotEncoder", [np.array(["b", "z", "a"], object)], domain="ai.onnx.ml", cats_strings=["a", "b"])
case("LinearRegressor", [f(4, 3)], domain="ai.onnx.ml", coefficients=f(6).tolist(), intercepts=[1.0, -1.0], targets=2)
for how in ("NONE", "SOFTMAX", "LOGISTIC"):
    case("LinearClassifier", [f(5, 3)], domain="ai.onnx.ml", coefficients=f(9).tolist(), intercepts=f(3).tolist(),
         classlabels_ints=[4, 5, 6], post_transform=how, outputs=2, name=how)
points = np.vstack([f(12, 2), np.array([[np.nan, 0.0], [0.1, np.nan]], np.float32)])
for how in ("SUM", "AVERAGE", "MIN", "MAX"):
    case("TreeEnsembleRegressor", [points], domain="ai.onnx.ml", aggregate_function=how, n_targets=2, **TREES,
         target_treeids=[0, 0, 0, 0, 1, 1, 1], target_nodeids=[2, 3, 4, 4, 1, 2, 2], target_ids=[0, 0, 0, 1, 1, 0, 1],
         target_weights=[1.0, 2.0, 3.0, -1.0, 0.5, 4.0, -2.0], name=how)
case("TreeEnsembleClassifier", [points], domain="ai.onnx.ml", **TREES, class_treeids=[0, 0, 0, 1, 1, 1],
     class_nodeids=[2, 3, 4, 1, 2, 2], class_ids=[0, 1, 2, 2, 0, 1], class_weights=[1.0, 2.0, 3.0, 2.5, 0.5, 4.0],
     classlabels_strings=["a", "b", "c"], outputs=2, post_transform="SOFTMAX")
case("ArrayFeatureExtractor", [f(3, 4), i64(2, 0)], domain="ai.onnx.ml")


@pytest.mark.parametrize("op, inputs, opset, outputs, constants, domain, version, rtol, attributes", CASES)
def test_operator(op: str, inputs: list[Any], opset: int, outputs: int, constants: str, domain: str, version: int,
                  rtol: float, attributes: dict[str, Any]):
    check(op, inputs, opset, outputs, constants, domain, version, rtol, attributes)
