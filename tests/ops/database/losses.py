"""Losses in every reduction and with every weight."""
from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F

from tinyhost.tensor import Tensor

from .case import FLOATS, Input, case, ints

REDUCTIONS = ("mean", "sum", "none")
_P = Input((3, 4), low=0.1, high=0.9)
_T = Input((3, 4), low=0, high=1)
_CLASSES = ints([0, 4, 2, 2])

for _r in REDUCTIONS:
    case(f"binary_crossentropy_{_r}", lambda x, y, r=_r: x.binary_crossentropy(y, r), _P, _T, note=_r,
         ref=lambda x, y, r=_r: F.binary_cross_entropy(x, y.detach(), reduction=r) + _of_target(x, y, r))
    case(f"binary_crossentropy_logits_{_r}", lambda x, y, r=_r: x.binary_crossentropy_logits(y, r), (3, 4), _T, note=_r,
         ref=lambda x, y, r=_r: F.binary_cross_entropy_with_logits(x, y, reduction=r))
    case(f"cross_entropy_{_r}", lambda x, y, r=_r: x.cross_entropy(y, r), (4, 5), _CLASSES, note=_r,
         ref=lambda x, y, r=_r: F.cross_entropy(x, y.long(), reduction=r))
    case(f"cross_entropy_smooth_{_r}", lambda x, y, r=_r: x.cross_entropy(y, r, 0.2), (4, 5, 2),
         Input((4, 2), "int32", 0, 5), note=f"smoothed, {_r}",
         ref=lambda x, y, r=_r: F.cross_entropy(x, y.long(), label_smoothing=0.2, reduction=r))
    case(f"cross_entropy_probabilities_{_r}", lambda x, y, r=_r: x.cross_entropy(y, r), (4, 5),
         Input((4, 5), low=0, high=1),
         note=f"probabilities, {_r}", ref=lambda x, y, r=_r: F.cross_entropy(x, y, reduction=r), atol=1e-5)
    case(f"cross_entropy_probabilities_smooth_{_r}", lambda x, y, r=_r: x.cross_entropy(y, r, 0.3), (4, 5, 2),
         Input((4, 5, 2), low=0, high=1), note=f"smoothed probabilities, {_r}",
         ref=lambda x, y, r=_r: F.cross_entropy(x, y, reduction=r, label_smoothing=0.3), atol=1e-5)
    case(f"sparse_categorical_crossentropy_{_r}",
         lambda x, y, r=_r: x.sparse_categorical_crossentropy(y, reduction=r), (4, 5), ints([0, -1, 2, 2]),
         note=f"-1 ignored, {_r}", ref=lambda x, y, r=_r: F.cross_entropy(x, y.long(), ignore_index=-1, reduction=r))
    case(f"sparse_categorical_crossentropy_smooth_{_r}",
         lambda x, y, r=_r: x.sparse_categorical_crossentropy(y, 2, 0.1, r), (4, 5), _CLASSES,
         note=f"smoothed, a class ignored, {_r}",
         ref=lambda x, y, r=_r: F.cross_entropy(x, y.long(), ignore_index=2, label_smoothing=0.1, reduction=r))
    case(f"nll_loss_{_r}", lambda x, y, r=_r: x.log_softmax(1).nll_loss(y, reduction=r), (4, 5), _CLASSES, note=_r,
         ref=lambda x, y, r=_r: F.nll_loss(x.log_softmax(1), y.long(), reduction=r))
    case(f"nll_loss_weighted_{_r}",
         lambda x, y, w, r=_r: x.log_softmax(1).nll_loss(y, w.detach(), ignore_index=1, reduction=r), (4, 5, 2),
         Input((4, 2), "int32", 0, 5), Input((5,), low=0.5), note=f"weights, a class ignored, {_r}",
         ref=lambda x, y, w, r=_r: F.nll_loss(x.log_softmax(1), y.long(), w.detach(), ignore_index=1, reduction=r))


def _of_target(x: Any, y: Any, reduction: str) -> Any:
    """Nothing, with the gradient that the target has: torch's own function refuses one."""
    loss = y * (torch.log1p(-x.detach()) - torch.log(x.detach()))
    out = {"mean": loss.mean, "sum": loss.sum}.get(reduction, lambda: loss)()
    return out - out.detach()


case("binary_crossentropy_certain", lambda x, y: x.binary_crossentropy(y), Input(data=[0.0, 1.0, 1.0]),
     Input(data=[0.0, 1.0, 0.0]), ref=F.binary_cross_entropy, grad=False, note="probabilities 0 and 1")
case("binary_crossentropy_logits_far", lambda x, y: x.binary_crossentropy_logits(y, "none"),
     Input(data=[500.0, -500.0, 500.0, -500.0]), Input(data=[1.0, 0.0, 0.0, 1.0]), note="logits of 500",
     ref=lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none"), grad=False)
case("binary_crossentropy_logits_weighted",
     lambda x, y: x.binary_crossentropy_logits(y, pos_weight=Tensor([2.0, 3, 4, 5], device=x.device)), (3, 4), _T,
     note="pos_weight", ref=lambda x, y: F.binary_cross_entropy_with_logits(x, y,
                                                                            pos_weight=torch.tensor([2.0, 3, 4, 5])))
case("cross_entropy", lambda x, y: x.cross_entropy(y), (4, 5), _CLASSES, dtypes=FLOATS,
     ref=lambda x, y: F.cross_entropy(x, y.long()))
case("cross_entropy_one_sample", lambda x, y: x.cross_entropy(y), (5,), ints(3),
     ref=lambda x, y: F.cross_entropy(x, y.long()))
case("cross_entropy_far", lambda x, y: x.cross_entropy(y), Input((4, 5), low=-500, high=500), _CLASSES,
     ref=lambda x, y: F.cross_entropy(x, y.long()), note="logits of 500")
for _dtype in ("uint8", "int8", "int16", "int64"):
    case(f"cross_entropy_{_dtype}", lambda x, y: x.cross_entropy(y), (4, 200), ints([0, 4, 2, 120], dtype=_dtype),
         ref=lambda x, y: F.cross_entropy(x, y.long()), note=f"classes in {_dtype}")
    case(f"sparse_categorical_crossentropy_{_dtype}", lambda x, y: x.sparse_categorical_crossentropy(y), (4, 200),
         ints([0, 4, 2, 120], dtype=_dtype), ref=lambda x, y: F.cross_entropy(x, y.long()), note=f"classes in {_dtype}")
    case(f"nll_loss_{_dtype}", lambda x, y: x.nll_loss(y), (4, 200), ints([0, 4, 2, 120], dtype=_dtype),
         ref=lambda x, y: F.nll_loss(x, y.long()), note=f"classes in {_dtype}")
case("nll_loss_1d", lambda x, y: x.nll_loss(y), (5,), ints(3), ref=lambda x, y: F.nll_loss(x, y.long()))
case("nll_loss_all_ignored", lambda x, y: x.nll_loss(y, ignore_index=1), (2, 3), ints([1, 1]), grad=False,
     ref=lambda x, y: F.nll_loss(x, y.long(), ignore_index=1), note="everything ignored: NaN")
case("sparse_categorical_crossentropy_3d", lambda x, y: x.sparse_categorical_crossentropy(y), (2, 3, 5),
     ints([[0, 4, 2], [-1, 1, 1]]),
     ref=lambda x, y: F.cross_entropy(x.flatten(0, 1), y.long().flatten(), ignore_index=-1))
