"""Models that break the rules of the format, and damaged files: an error that says what is wrong, and no hang."""
# ruff: noqa: E402  what needs the onnx package is imported after the check for it
from __future__ import annotations

import random
import resource
import time
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the onnx package is not installed: pip install 'tinyhost[onnx]'")

from onnx import TensorProto, helper

from tests.io.fuzzing import mutate
from tests.onnx.models import TREES, F, model, node, value
from tests.onnx.test_runner import counting_loop, doubled
from tinyhost import Tensor
from tinyhost.io.onnx import OnnxError, OnnxRunner, OnnxUnsupported


# *** rules of the format ***
def graph_of(*nodes: Any, outputs: list[Any] | None = None, **more: Any) -> Any:
    return model(list(nodes), ["x"], outputs or ["y"], **more)


def deep(levels: int) -> Any:
    inner = helper.make_graph([node("Identity", "x", "y")], "g", [], [value("y")])
    for i in range(levels):
        outer = helper.make_node("If", ["c"], [f"y{i}"], then_branch=inner, else_branch=inner if i == 0 else
                                 helper.make_graph([node("Identity", "x", f"e{i}")], "e", [], [value(f"e{i}")]))
        inner = helper.make_graph([outer], f"g{i}", [], [value(f"y{i}")])
    return inner


def calling(name: str, callee: str, times: int = 1) -> Any:
    body = [node(callee, "a" if i == 0 else f"t{i - 1}", f"t{i}", domain="mine") for i in range(times)]
    return helper.make_function("mine", name, ["a"], [f"t{times - 1}"], body, [helper.make_opsetid("mine", 1)])


@pytest.mark.parametrize("build, text", [
    (lambda: graph_of(node("Add", "x q", "y")), "reads 'q', but no input, initializer or node gives it"),
    (lambda: graph_of(node("Add", "x b", "a"), node("Add", "x a", "b"), node("Neg", "b", "y")),
     "reads 'b', but only node '' .Add., which does not come before it, gives it: the nodes are not in order, or go "
     "round in a circle"),
    (lambda: graph_of(node("Neg", "y", "y")), "reads 'y'"),
    (lambda: graph_of(node("Neg", "x", "x"), outputs=["x"]), "gives 'x', which exists already"),
    (lambda: graph_of(node("Neg", "x", "a")), "has output 'y', which no node gives"),
    (lambda: model([node("Neg", "x", "y")], ["x", "x"], ["y"]), "names an input twice"),
    (lambda: graph_of(node("Neg", "x x", "y")), "has 2 inputs, it takes at most 1"),
    (lambda: graph_of(node("Add", "x", "y")), "needs its first 2 inputs"),
    (lambda: graph_of(node("Add", "- x", "y")), "needs its first 2 inputs"),
    (lambda: graph_of(node("Concat", "x x", "y", nonsense=1)), r"attributes \['nonsense'\] are not supported"),
    (lambda: graph_of(node("LRN", "x", "y")), r"lacks its attributes \['size'\]"),
    (lambda: graph_of(node("Neg", "x", "y"), opset=1000), "needs opset 1000, the installed onnx package knows 1 to"),
    (lambda: graph_of(node("F", "x", "y", domain="mine"), functions=[calling("F", "G"), calling("G", "F")],
                      opsets={"mine": 1}), "the functions F, G call themselves"),
    (lambda: graph_of(node("F30", "x", "y", domain="mine"), opsets={"mine": 1}, functions=[
        calling("F0", "F0x"), helper.make_function("mine", "F0x", ["a"], ["b"], [node("Neg", "a", "b")],
                                                   [helper.make_opsetid("", 21)]),
        *(calling(f"F{i}", f"F{i - 1}", 2) for i in range(1, 31))]), "expands to more than 1000000 nodes"),
    (lambda: graph_of(node("F80", "x", "y", domain="mine"), opsets={"mine": 1}, functions=[
        helper.make_function("mine", "F0", ["a"], ["b"], [node("Neg", "a", "b")], [helper.make_opsetid("", 21)]),
        *(calling(f"F{i}", f"F{i - 1}") for i in range(1, 81))]), "call each other more than 64 deep"),
    (lambda: graph_of(node("Neg", "x", "y", domain="other")), "imports no opset of domain 'other'"),
])
def test_broken_graphs(build: Any, text: str):
    with pytest.raises(OnnxError, match=text):
        OnnxRunner(build())


def test_deep_nesting():
    m = model([helper.make_node("If", ["c"], ["y"], then_branch=deep(20), else_branch=deep(20))],
              ["x", value("c", [], TensorProto.BOOL)], ["y"])
    assert OnnxRunner(m)({"x": np.ones(2, np.float32), "c": np.array(True)})["y"].tolist() == [1, 1]


def test_unknown_operators_are_listed_together():
    m = graph_of(node("Nonsense", "x", "a", name="first"), node("Nonsense", "a", "b"), node("Gradient", "b", "y",
                 domain="ai.onnx.preview.training"), opsets={"ai.onnx.preview.training": 1})
    with pytest.raises(OnnxUnsupported) as error:
        OnnxRunner(m)
    text = str(error.value)
    assert "Nonsense (domain 'ai.onnx', opset 21, and the onnx package has no such operator): 2 nodes, first 'first'" \
        in text and "Gradient (domain 'ai.onnx.preview.training', opset 1" in text


def test_a_failing_node_is_named():
    m = graph_of(node("MatMul", "x w", "y", name="product"), constants={"w": np.ones((3, 2), np.float32)})
    with pytest.raises(OnnxError, match=r"node 'product' \(MatMul, domain 'ai.onnx', opset 21\) with inputs x: "
                                        r"float\[2, 5\], w: float\[3, 2\]: .*5 and 3"):
        OnnxRunner(m)({"x": np.ones((2, 5), np.float32)})


@pytest.mark.parametrize("change, text", [
    (lambda t: t.dims.extend([7]), "needs 28 elements, its data does not hold them"),
    (lambda t: t.dims.__setitem__(0, -4), "negative extent"),
    (lambda t: setattr(t, "data_type", 77), "element type 77 is not known"),
    (lambda t: setattr(t, "data_type", 0), "has no element type"),
    (lambda t: setattr(t, "raw_data", b"abc"), "does not hold them"),
    (lambda t: t.segment.CopyFrom(TensorProto.Segment(begin=0, end=1)), "stored in segments"),
])
def test_broken_tensors(change: Any, text: str):
    m = graph_of(node("Add", "x w", "y"), constants={"w": np.ones(4, np.float32)})
    change(m.graph.initializer[0])
    with pytest.raises(OnnxError, match=text):
        OnnxRunner(m)


@pytest.mark.parametrize("nodes", [
    [node("Pad", "x p", "y", mode="reflect")], [node("Resize", "x - - p", "y")],
    [node("DFT", "x n", "y")], [node("Split", "x", "y", num_outputs=1 << 60)], [node("Tile", "x p", "y")]],
    ids=lambda n: n[0].op_type)
def test_huge_requests_are_refused_quickly(nodes: list[Any]):
    m = graph_of(*nodes, constants={"p": np.array([1 << 40, 1 << 40]), "n": np.array(1 << 40)})
    start = time.monotonic()
    with pytest.raises(OnnxError):
        OnnxRunner(m)({"x": np.ones((4,), np.float32)})
    assert time.monotonic() - start < 2


# *** damaged files ***
def seeds() -> list[bytes]:
    """Models with convolutions, shapes, control flow, functions, strings, narrow types, trees and attention."""
    conv = model([node("Conv", "x w b", "c", pads=[1, 1, 1, 1], strides=[2, 2]), node("Relu", "c", "r"),
                  node("MaxPool", "r", "p", kernel_shape=[2, 2]), node("Shape", "p", "s"), node("Gather", "s i", "n"),
                  node("Unsqueeze", "n i1", "u"), node("Concat", "u m", "t", axis=0), node("Reshape", "p t", "f"),
                  node("Softmax", "f", "y")], [value("x", ["n", 2, 8, 8])], ["y"],
                 {"w": np.ones((3, 2, 3, 3), np.float32), "b": np.zeros(3, np.float32), "i": np.array(0),
                  "i1": np.array([0]), "m": np.array([-1])})
    lstm = model([node("LSTM", "x w r", "y h", hidden_size=2), node("Resize", "y - s", "z"),
                  node("Slice", "z a e", "q"), node("Pad", "q p", "o")], [value("x", [3, 1, 4])], ["o"],
                 {"w": np.ones((1, 8, 4), np.float32), "r": np.ones((1, 8, 2), np.float32), "a": np.array([0]),
                  "s": np.array([1, 1, 2, 2], np.float32), "e": np.array([2]), "p": np.zeros(8, np.int64)})
    narrow = model([node("Cast", "x", "c", to=TensorProto.INT4), node("DequantizeLinear", "c s", "d"),
                    node("TopK", "d k", "v j"), node("GatherElements", "d j", "y")], [value("x", [2, 4])], ["y"],
                   {"s": np.array(0.5, np.float32), "k": np.array([2])})
    text = model([node("StringSplit", "x", "y n", delimiter=" "), node("CumSum", "n a", "c"),
                  node("Range", "b c2 b1", "r"), node("ConstantOfShape", "r", "o")],
                 [value("x", [2], TensorProto.STRING)], [value("o", None, F)],
                 {"a": np.array(0), "b": np.array(1), "c2": np.array(4), "b1": np.array(1)})
    function = model([node("Doubled", "x", "y", domain="mine", slope=0.5)], [value("x", [2])], ["y"],
                     functions=[doubled()], opsets={"mine": 1})
    trees = model([node("TreeEnsembleRegressor", "x", "t", domain="ai.onnx.ml", **TREES, target_treeids=[0, 0, 1],
                        target_nodeids=[2, 3, 1], target_ids=[0, 0, 0], target_weights=[1.0, 2.0, 3.0])],
                  [value("x", [4, 2])], ["t"], opsets={"ai.onnx.ml": 3})
    heads = model([node("Attention", "x x x", "a k v", q_num_heads=2, kv_num_heads=2, is_causal=1),
                   node("Transpose", "a", "b", perm=[0, 2, 1]), node("STFT", "s step - size", "f"),
                   node("NonZero", "b", "z"), node("GridSample", "k g", "y", mode="cubic")], [value("x", [1, 3, 4])],
                  ["b", "f", "z", "y"], {"s": np.ones((1, 16, 1), np.float32), "step": np.array(4),
                                         "size": np.array(8), "g": np.zeros((1, 2, 2, 2), np.float32)}, opset=23)
    models = (conv, lstm, narrow, text, function, counting_loop(5), trees, heads)
    return [m.SerializeToString() for m in models]


def inputs_of(runner: OnnxRunner) -> dict[str, Any]:
    """Small inputs of the declared types."""
    kinds = {"tensor(int64)": np.int64, "tensor(bool)": np.bool_, "tensor(double)": np.float64}
    out = {}
    for name, info in runner.graph_inputs.items():
        shape = [d if isinstance(d, int) else 1 for d in info.shape or ()]
        if np.prod(shape, dtype=np.float64) > 10_000:
            raise OnnxError("too large to try")
        out[name] = np.full(shape, "a b", object) if info.type == "tensor(string)" else \
            np.ones(shape, kinds.get(info.type, np.float32))
    return out


def attempt(content: bytes) -> bool:
    """Whether a mutation loads and runs; what it computes is read if that is little work."""
    try:
        runner = OnnxRunner(content, loop_limit=50)
        names = [n for node in runner._graph.nodes for n in node.outputs if n]
        found = runner(inputs_of(runner), outputs=names)
        tensors = [v for v in found.values() if isinstance(v, Tensor)]
        if all(v.numel() < 1_000_000 and max(v.shape, default=0) < 1_000_000 for v in tensors):
            for name in runner.graph_outputs:
                if isinstance(found.get(name), Tensor):
                    found[name].numpy()
    except (OnnxError, MemoryError):
        return False
    return True


def fuzz(seed: int, count: int) -> int:
    rng, good, accepted = random.Random(seed), seeds(), 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        content = mutate(rng, good[i % len(good)], [])
        start = time.monotonic()
        accepted += attempt(content)
        assert time.monotonic() - start < 20, f"seed {seed}, mutation {i}: slow"
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak
    assert grown < 1 << 20, f"seed {seed}: {grown >> 10} MiB more"
    return accepted


def test_seeds_are_good():
    assert all(map(attempt, seeds()))


@pytest.mark.parametrize("cut", range(0, 100, 7))
def test_truncated(cut: int):
    for raw in seeds():
        attempt(raw[:len(raw) * cut // 100])


@pytest.mark.fuzz
def test_mutations():
    assert 0 < fuzz(1, 180) < 180


@pytest.mark.soak
@pytest.mark.parametrize("part", range(20))
def test_many_mutations(part: int):
    assert 0 < fuzz(100 + part, 500) < 500
