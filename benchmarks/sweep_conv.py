"""Every convolution of ResNet-50, MobileNet-V2 and the network of examples/train_mnist.py beside torch's.

    DEV=CPU python benchmarks/sweep_conv.py [--rounds 7] [--only TEXT] [--pass forward|input|weight]

Three passes: forward, the gradient of the input, the gradient of the weights. Prints each ratio (torch's time over
ours) and geometric means, for each network and for each pass. Batches: 1 forward and 8 backward, the MNIST network 128.
"""
from __future__ import annotations

import argparse
from dataclasses import dataclass

from rounds import fair_numpy, medians

fair_numpy()

import numpy as np  # noqa: E402
from peers import Run, arrays, captured, torch_module  # noqa: E402
from records import OURS, Record, geometric_mean, show  # noqa: E402

from tinyhost import Tensor  # noqa: E402

GROUP = "convolutions"
PASSES = ("forward", "input", "weight")


@dataclass(frozen=True)
class Conv:
    """One layer: channels in and out, kernel, image size, stride, groups; padding keeps the size unless ``valid``."""

    net: str
    cin: int
    cout: int
    kernel: int
    size: int
    stride: int = 1
    groups: int = 1
    valid: bool = False
    batch: int = 0

    def __str__(self) -> str:
        extra = (f" s{self.stride}" if self.stride > 1 else "") + (" depthwise" if self.groups > 1 else "")
        return f"{self.net} {self.cin}->{self.cout} {self.kernel}x{self.kernel}{extra} @{self.size}"

    @property
    def padding(self) -> int:
        """Zeros around the image."""
        return 0 if self.valid else self.kernel // 2

    @property
    def out(self) -> int:
        """Rows and columns of the result."""
        return (self.size + 2 * self.padding - self.kernel) // self.stride + 1


def _resnet50() -> list[Conv]:
    net = "ResNet-50"
    found = [Conv(net, 3, 64, 7, 224, 2)]
    for before, width, size, stride in ((64, 64, 56, 1), (256, 128, 56, 2), (512, 256, 28, 2), (1024, 512, 14, 2)):
        after = size // stride
        found += [Conv(net, before, width, 1, size), Conv(net, width, width, 3, size, stride),
                  Conv(net, width, 4 * width, 1, after), Conv(net, before, 4 * width, 1, size, stride),
                  Conv(net, 4 * width, width, 1, after), Conv(net, width, width, 3, after)]
    return found


def _mobilenet_v2() -> list[Conv]:
    net = "MobileNet-V2"
    found = [Conv(net, 3, 32, 3, 224, 2), Conv(net, 32, 32, 3, 112, 1, 32), Conv(net, 32, 16, 1, 112)]
    before, size = 16, 112
    for width, repeats, stride in ((24, 2, 2), (32, 3, 2), (64, 4, 2), (96, 3, 1), (160, 3, 2), (320, 1, 1)):
        for i in range(repeats):
            step, inner = stride if i == 0 else 1, 6 * before
            found += [Conv(net, before, inner, 1, size), Conv(net, inner, inner, 3, size, step, inner),
                      Conv(net, inner, width, 1, size // step)]
            before, size = width, size // step
    return [*found, Conv(net, 320, 1280, 1, 7)]


LAYERS = list(dict.fromkeys([
    *_resnet50(), *_mobilenet_v2(),
    *(Conv("MNIST", cin, cout, k, size, valid=True, batch=128)
      for cin, cout, k, size in ((1, 32, 5, 28), (32, 32, 5, 24), (32, 64, 3, 10), (64, 64, 3, 8)))]))


def measure(layer: Conv, which: str, rounds: int) -> Record:
    """One pass of one layer."""
    torch = torch_module()
    batch = layer.batch or (1 if which == "forward" else 8)
    x, w, g = arrays((batch, layer.cin, layer.size, layer.size),
                     (layer.cout, layer.cin // layer.groups, layer.kernel, layer.kernel),
                     (batch, layer.cout, layer.out, layer.out))
    tx, tw, tg = (torch.from_numpy(v) for v in (x, w, g))

    def forward(x: Tensor, w: Tensor) -> Tensor:
        return x.conv2d(w, groups=layer.groups, stride=layer.stride, padding=layer.padding)
    runs: dict[str, Run]
    if which == "forward":
        runs = {OURS: captured(forward, x, w),
                "torch": lambda: torch.nn.functional.conv2d(tx, tw, None, layer.stride, layer.padding, 1, layer.groups)}
    else:
        def gradient(x: Tensor, w: Tensor, g: Tensor) -> Tensor:
            x, w = x.detach(), w.detach()
            found: list[Tensor] = forward(x, w).gradient(x if which == "input" else w, gradient=g)
            return found[0]
        mask = [which == "input", which == "weight", False]

        def torchs() -> object:
            with torch.no_grad():
                return torch.ops.aten.convolution_backward(
                    tg, tx, tw, None, [layer.stride] * 2, [layer.padding] * 2, [1, 1], False, [0, 0], layer.groups,
                    mask)
        runs = {OURS: captured(gradient, x, w, g), "torch": torchs}
    flops = 2.0 * batch * layer.cout * layer.out**2 * layer.cin // layer.groups * layer.kernel**2
    theirs = runs["torch"]()
    theirs = theirs if which == "forward" else theirs[PASSES.index(which) - 1]
    error = np.abs(runs[OURS]().numpy() - theirs.numpy()).max() / np.abs(theirs.numpy()).max()
    assert error < 1e-4, f"{layer}, {which}: {error}"
    return Record(f"{GROUP}, {which}", str(layer), medians(runs, rounds), flops, 4.0 * (x.size + w.size + g.size),
                  share=0.7, rounds=rounds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="", help="layers whose printed form holds this text")
    parser.add_argument("--pass", dest="passes", choices=PASSES, action="append", help="one pass; all by default")
    args = parser.parse_args()
    ratios: dict[tuple[str, str], dict[str, float]] = {}
    for which in args.passes or PASSES:
        for layer in LAYERS:
            if args.only in str(layer):
                record = measure(layer, which, args.rounds)
                show(record)
                ratios.setdefault((which, layer.net), {})[str(layer)] = record.ratio or 0.0
    print("\ngeometric means of torch's time over ours (goal >= 0.7)")
    for (which, net), found in ratios.items():
        print(f"  {which:8s} {net:14s} {geometric_mean(found.values()):6.3f}  ({len(found)} layers)")
    every = [r for found in ratios.values() for r in found.values()]
    print(f"  all {len(every)}: {geometric_mean(every):.3f}")


if __name__ == "__main__":
    main()
