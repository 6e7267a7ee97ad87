"""The op database covers the public surface, and docs/ops.md is what it prints."""
from __future__ import annotations

from collections import Counter

from tinyhost.tensor import Tensor

from .database import CASES
from .database.page import PAGE, page

# public methods that take or give tensors, by group; each needs a case or a reason below
SURFACE = """
empty empty_like invalids full full_like zeros zeros_like ones ones_like const const_like arange linspace eye tril triu
from_blob from_url rand rand_like randn randn_like randint normal uniform scaled_uniform glorot_uniform kaiming_uniform
kaiming_normal randperm multinomial random_bits manual_seed
reshape view permute transpose expand flip shrink shrink_to pad pad_to flatten unflatten squeeze unsqueeze split chunk
repeat repeat_interleave diagonal diag roll unfold meshgrid rearrange cat stack gather scatter scatter_reduce
masked_select nonzero one_hot interpolate __getitem__ __setitem__
neg add sub mul div fmod mod pow maximum minimum copysign logaddexp where masked_fill bitwise_and bitwise_or bitwise_xor
bitwise_not lshift rshift reciprocal trunc floor ceil round sqrt rsqrt sin cos tan asin acos atan sinh cosh tanh asinh
acosh atanh exp exp2 log log2 log10 square clamp clip isnan isinf isfinite isclose sign abs relu relu6 leaky_relu elu
celu selu gelu quick_gelu silu swish mish softplus softsign hardswish hardsigmoid hardtanh sigmoid logsigmoid erf lerp
logical_not eq ne usum uprod detach contiguous contiguous_backward cast bitcast float half int bool bfloat16 double long
short threefry
sum prod max min any all mean std var var_mean std_mean normalize logsumexp softmax log_softmax softmin cumsum cumprod
cummax cummin logcumsumexp argmax argmin sort argsort topk allclose dot matmul einsum linear sequential conv2d
conv_transpose2d avg_pool2d max_pool2d max_unpool2d layernorm batchnorm dropout scaled_dot_product_attention
binary_crossentropy binary_crossentropy_logits sparse_categorical_crossentropy cross_entropy nll_loss qr svd
newton_schulz keccak hash nbytes image_dot image_conv2d
""".split()

WITHOUT_CASE = {
    **dict.fromkeys(("empty", "empty_like", "invalids"), "its values are not defined"),
    **dict.fromkeys(("rand", "rand_like", "randn", "randn_like", "randint", "normal", "uniform", "scaled_uniform",
                     "glorot_uniform", "kaiming_uniform", "kaiming_normal", "randperm", "multinomial", "random_bits",
                     "manual_seed"), "random: tests/tensor/test_random.py"),
    **dict.fromkeys(("const", "const_like"), "makes nodes, not results: tests/uop"),
    "nbytes": "a number: tests/tensor",
    "from_blob": "memory of others: tests/interop",
    "from_url": "files: tests/io",
    **dict.fromkeys(("masked_select", "nonzero"), "the shape depends on the data: tests/tensor/test_items.py"),
    "__setitem__": "writes: tests/tensor/test_items.py",
}


def test_every_public_op_has_a_case() -> None:
    covered = {c.op for c in CASES}
    aliases = {"__getitem__": "getitem", "view": "reshape"}
    missing = [n for n in SURFACE if not {n, aliases.get(n, n)} & covered and n not in WITHOUT_CASE]
    assert not missing, f"no case in tests/ops/database for {missing}"


def test_reasons_are_for_ops_without_cases() -> None:
    assert set(WITHOUT_CASE) <= set(SURFACE)


def test_the_surface_exists() -> None:
    assert [n for n in SURFACE if not hasattr(Tensor, n)] == []
    assert [n for n, k in Counter(SURFACE).items() if k > 1] == []


def test_there_are_enough_cases() -> None:
    assert len(CASES) >= 400
    assert not [c.name for c in CASES if not c.family or c.family == "case"]


def test_the_page_is_current() -> None:
    assert PAGE.read_text() == page(), "run `python -m tests.ops.database`"
