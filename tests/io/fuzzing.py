"""Mutations of a good file, and what a loader may do with them: an error of its own, or tensors of the file's bytes."""
from __future__ import annotations

import itertools
import random
import resource
import struct
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tinyhost import Tensor, dtypes

NUMBERS = [0, 1, 7, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63, 2**64 - 1]


def mutate(rng: random.Random, content: bytes, hot: list[tuple[int, int]]) -> bytes:
    """One to four changes, most of them inside the ``hot`` ranges, where headers lie."""
    out = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        lo, hi = rng.choice(hot) if hot and rng.random() < 0.75 else (0, len(out))
        at = rng.randrange(min(lo, len(out) - 1), max(min(hi, len(out)), min(lo, len(out) - 1) + 1))
        kind = rng.randrange(8)
        if kind == 0:
            out[at] = rng.randrange(256)
        elif kind == 1:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del out[at:at + rng.randint(1, 20)]
        elif kind == 3:
            out[at:at] = bytes(rng.randrange(256) for _ in range(rng.randint(1, 8)))
        elif kind == 4:
            raw = struct.pack("<Q", rng.choice(NUMBERS))[:rng.choice([1, 2, 4, 8])]
            out[at:at + len(raw)] = raw
        elif kind == 5:
            start = rng.randrange(len(out))
            piece = out[start:start + rng.randint(1, 40)]
            out[at:at + rng.choice([0, len(piece)])] = piece
        elif kind == 6 and rng.random() < 0.3:
            del out[rng.randrange(len(out)):]
        else:
            out[at] = (out[at] + rng.choice([-1, 1])) % 256
        if not out:
            return b""
    return bytes(out)


def tensors_in(x: Any) -> Iterator[Tensor]:
    stack, seen = [x], set()
    while stack:
        v = stack.pop()
        if isinstance(v, Tensor):
            yield v
        elif isinstance(v, (list, tuple, dict)) and id(v) not in seen:
            seen.add(id(v))
            stack.extend(v.values() if isinstance(v, dict) else v)


def raw_bytes(t: Tensor) -> bytes:
    """The elements as they lie in memory."""
    return bytes(t.to(None).contiguous().reshape(-1).bitcast(dtypes.uint8).data()) if t.numel() else b""


def holds(content: bytes, t: Tensor) -> bool:
    """Whether the elements of ``t``, axes in some order, stand in the file in a row; if gathered, each element."""
    if not t.device.startswith("DISK"):
        raw, item = raw_bytes(t), t.dtype.itemsize
        return all(raw[i:i + item] in content for i in range(0, len(raw), item))
    return any(raw_bytes(t.permute(order)) in content for order in itertools.permutations(range(len(t.shape))))


def fuzz(load: Callable[[Path], Any], good: bytes, hot: list[tuple[int, int]], folder: Path, seed: int, count: int,
         check: Callable[[bytes, Tensor], bool] = holds, errors: tuple[type[Exception], ...] = (ValueError,
             TypeError)) -> int:
    """Load ``count`` mutations; returns how many loaded. Each takes little time and memory."""
    rng, accepted, path = random.Random(seed), 0, folder / "mutated"
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for i in range(count):
        content = mutate(rng, good, hot)
        path.unlink(missing_ok=True)
        path.write_bytes(content)
        start = time.process_time()
        try:
            loaded = load(path)
        except errors as e:
            assert str(e), f"mutation {i}: an error without text"
            continue
        finally:
            assert time.process_time() - start < 5, f"mutation {i} took long"
        accepted += 1
        for t in tensors_in(loaded):
            if t.numel() <= 100_000:
                assert check(content, t), f"mutation {i}: {t}"
    # KiB; kernels of gathers and caches take some of it
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak < 300_000 * (1 + count // 3000)
    return accepted
