"""Matrix factorisations and hashes.

Factors are unique up to signs only, so a case compares what they must hold: the product, orthogonality, and where torch
agrees on signs the factors themselves.
"""
from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
import torch

from tinyhost.tensor import Tensor

from .case import Input, by_numpy, case

_BOUND = {"atol": 2e-5, "grad_atol": 1e-3, "grad_rtol": 1e-3}
_SHAPES = ((5, 3), (3, 5), (1, 4), (4, 1), (1, 1), (2, 3, 3))


def _product(*factors: Any) -> Any:
    out = factors[0]
    for f in factors[1:]:
        out = out @ f
    return out


def _gram(q: Any) -> Any:
    return q.transpose(-2, -1) @ q


def _identity(x: torch.Tensor, n: int) -> torch.Tensor:
    return torch.eye(n, dtype=x.dtype).expand(*x.shape[:-2], n, n)


def _middle(u: Any, s: Any, vt: Any) -> Any:
    """u diag(s) vt with whichever columns and rows take part."""
    n = s.shape[-1]
    return (u[..., :n] * s.unsqueeze(-2)) @ vt[..., :n, :]


def _polar(x: torch.Tensor) -> torch.Tensor:
    u, _, vt = torch.linalg.svd(x, full_matrices=False)
    return u @ vt


for _shape in _SHAPES:
    case(f"qr {_shape}", lambda x: (_product(*x.qr()), _gram(x.qr()[0])), _shape, note=f"product, Q^T Q, {_shape}",
         ref=lambda x: (x * 1, _identity(x, x.shape[-2])), grad=False, dtypes=("float32", "float64"), **_BOUND)
    case(f"qr_triangle {_shape}", lambda x: x.qr()[1].abs(), _shape, grad=False, note=f"|R|, {_shape}",
         ref=lambda x: torch.linalg.qr(x, "complete")[1].abs(), **_BOUND)
    case(f"svd {_shape}", lambda x: _middle(*x.svd()), _shape, ref=lambda x: x * 1, grad=False,
         dtypes=("float32", "float64"), note=f"product, {_shape}", **_BOUND)
    case(f"svd_values {_shape}", lambda x: x.svd()[1], _shape, ref=torch.linalg.svdvals, grad=False,
         note=f"singular values, {_shape}", **_BOUND)
    case(f"svd_orthogonal {_shape}", lambda x: (_gram(x.svd()[0]), _gram(x.svd()[2])), _shape, grad=False,
         ref=lambda x: (_identity(x, x.shape[-2]), _identity(x, x.shape[-1])), note=f"U^T U and V V^T, {_shape}",
         **_BOUND)
    case(f"svd_thin {_shape}", lambda x: (_product(x.svd(False)[0] * x.svd(False)[1].unsqueeze(-2), x.svd(False)[2])),
         _shape, ref=lambda x: x * 1, grad=False, note=f"full_matrices=False, {_shape}", **_BOUND)
_DEFICIENT = Input(data=[[1.0, 2.0, 3.0], [2.0, 4.0, 6.0], [1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
_REPEATED = Input(data=[[2.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 2.0], [0.0, 0.0, 0.0]])
_ZEROS = Input(data=np.zeros((4, 3)))
for _name, _input in {"deficient": _DEFICIENT, "repeated": _REPEATED, "zeros": _ZEROS}.items():
    case(f"qr_{_name}", lambda x: (_product(*x.qr()), _gram(x.qr()[0])), _input, grad=False,
         ref=lambda x: (x * 1, _identity(x, x.shape[-2])), **_BOUND)
    case(f"svd_{_name}", lambda x: (_middle(*x.svd()), x.svd()[1], _gram(x.svd()[0]), _gram(x.svd()[2])), _input,
         ref=lambda x: (x * 1, torch.linalg.svdvals(x), _identity(x, x.shape[-2]), _identity(x, x.shape[-1])),
         grad=False,
         **_BOUND)
    case(f"svd_thin_{_name}", lambda x: (_middle(*x.svd(False)), _gram(x.svd(False)[0])), _input, grad=False,
         ref=lambda x: (x * 1, _identity(x, x.shape[-1])), **_BOUND)
case("qr_gradient", lambda x: _product(*x.qr()), (4, 3), ref=lambda x: x * 1, note="gradient of the product", **_BOUND)
case("qr_gradient_triangle", lambda x: x.qr()[1].square().sum(0), (4, 3), note="gradient of R^2",
     ref=lambda x: torch.linalg.qr(x)[1].square().sum(0), **_BOUND)
case("svd_gradient_factors", lambda x: (x.svd(False)[0] @ x.svd(False)[2], _middle(*x.svd())), (4, 3),
     ref=lambda x: (_polar(x), x * 1), note="gradient of the factors", **_BOUND)
case("svd_gradient_wide", lambda x: (x.svd(False)[0] @ x.svd(False)[2], x.svd()[1]), (2, 3, 4),
     ref=lambda x: (_polar(x), torch.linalg.svdvals(x)), note="gradient of the factors of wide matrices", **_BOUND)
case("svd_gradient_repeated", lambda x: x.svd()[1].sum(), _REPEATED, grad=False,
     ref=lambda x: torch.linalg.svdvals(x).sum(),
     **_BOUND)
case("svd_gradient_values", lambda x: x.svd()[1], (4, 3), ref=torch.linalg.svdvals, note="gradient of the values",
     **_BOUND)


def _newton_schulz(x: torch.Tensor, steps: int, params: tuple[float, ...]) -> torch.Tensor:
    g = x / (x.square().sum((-2, -1), keepdim=True).sqrt() + 1e-7)
    g = g.mT if x.shape[-2] > x.shape[-1] else g
    for _ in range(steps):
        a = g @ g.mT
        g = params[0] * g + params[1] * a @ g + params[2] * a @ a @ g
    return g.mT if x.shape[-2] > x.shape[-1] else g


for _shape in ((4, 3), (3, 4), (2, 3, 5)):
    case(f"newton_schulz {_shape}", lambda x: x.newton_schulz(3, (2, -1.5, 0.5)), _shape, atol=1e-4, grad_atol=1e-3,
         grad_rtol=1e-3, ref=lambda x: _newton_schulz(x, 3, (2, -1.5, 0.5)), note=str(_shape))
case("newton_schulz_none", lambda x: x.newton_schulz(0, (2, -1.5, 0.5)), (3, 4),
     ref=lambda x: _newton_schulz(x, 0, (2, -1.5, 0.5)), note="no step")


# *** hashes ***
def _digests(name: str, size: int | None = None) -> Any:
    def rows(x: np.ndarray) -> np.ndarray:
        flat = x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1])
        made = [hashlib.new(name, bytes(row)) for row in flat]
        out = [np.frombuffer(h.digest(size) if size else h.digest(), np.uint8) for h in made]
        return np.stack(out).reshape(*x.shape[:-1], -1)
    return by_numpy(rows)


for _name in ("sha3_224", "sha3_256", "sha3_384", "sha3_512"):
    case(f"keccak_{_name}", lambda x, n=_name: x.keccak(n), Input((3, 20), "uint8", 0, 256), ref=_digests(_name),
         note=_name,
         slow=True)
case("keccak_shake_128", lambda x: x.keccak("shake_128"), Input((2, 20), "uint8", 0, 256),
     ref=_digests("shake_128", 16),
     slow=True)
case("keccak_shake_256", lambda x: x.keccak("shake_256"), Input((2, 20), "uint8", 0, 256),
     ref=_digests("shake_256", 32),
     slow=True)
for _length in (0, 135, 136, 300):
    case(f"keccak_length {_length}", lambda x: x.keccak(), Input((1, _length), "uint8", 0, 256),
         ref=_digests("sha3_256"),
         note=f"{_length} bytes", slow=True)
case("keccak_batch", lambda x: x.keccak(), Input((2, 3, 10), "uint8", 0, 256), ref=_digests("sha3_256"))
case("hash", lambda x: x.hash(), Input((20,), "uint8", 0, 256),
     ref=by_numpy(lambda x: np.frombuffer(hashlib.shake_128(np.uint64(20).tobytes() + bytes(x)).digest(16), np.uint8)))
case("hash_of_floats", lambda x: x.hash(), Input(data=[1.0, 2.0]), grad=False, ref=by_numpy(
    lambda x: np.frombuffer(hashlib.shake_128(np.uint64(8).tobytes() + x.tobytes()).digest(16), np.uint8)))
case("threefry", lambda x, k: Tensor.threefry(x, k), Input(dtype="uint64", data=[0]), Input(dtype="uint64", data=[0]),
     ref=by_numpy(lambda x, k: np.array([0x99BA4EFE6B200159], np.uint64)), note="Random123's vector of zeros")
