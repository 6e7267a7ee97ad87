"""Random sequences of Opts on fixed kernels: whatever is accepted must give the right values."""
from __future__ import annotations

import contextlib
import random

import pytest

from tests.codegen import kernels as K
from tests.codegen.reference import check, renderer
from tinyhost.codegen.kernel import Kernel, product_of
from tinyhost.codegen.merge import merge_ranges
from tinyhost.codegen.nests import one_closer_each
from tinyhost.codegen.opt import apply_opt
from tinyhost.codegen.program import prepared
from tinyhost.device.builtin.python import PythonRenderer
from tinyhost.dtype import dtypes
from tinyhost.errors import KernelOptError
from tinyhost.ops import Ops
from tinyhost.target import Target
from tinyhost.uop import KernelInfo, Opt
from tinyhost.uop import OptOps as O

CASES = {
    "add": K.add(60),
    "matmul": K.matmul(6, 12, 20),
    "odd matmul": K.matmul(7, 13, 11),
    "transposed": K.matmul(6, 8, 24, transposed=True),
    "row": K.row_reduce(6, 40),
    "odd row": K.row_reduce(5, 37, Ops.MAX),
    "column": K.column_reduce(12, 20),
    "softmax": K.softmax(4, 24),
    "conv": K.conv(1, 2, 6, 6, 4, 3, 1),
    "conv input gradient": K.conv_input_gradient(1, 4, 6, 4, 3),
    "conv weight gradient": K.conv_weight_gradient(2, 2, 6, 4, 3),
    "ints": K.row_reduce(6, 24, Ops.ADD, dtypes.int32),
}
TARGETS = ["PYTHON:gpu", "PYTHON:x86-64-v3", "PYTHON:x86-64-v4"]


def sums(k: Kernel, side: int) -> tuple[tuple[int, ...], ...]:
    """Groups of axes that move one operand of the products by the same step."""
    product = next((p for u in k.reduces if (p := product_of(u)) is not None), None)
    if product is None:
        return ()
    inside = product.src[side].toposort()
    terms = next((a.linear.terms for a in k.accesses if a.node in inside), {})
    groups: dict[int, list[int]] = {}
    for i, a in enumerate(k.sorted_axes):
        if terms.get(a.root):
            groups.setdefault(abs(terms[a.root]), []).append(i)
    return tuple(tuple(g) for _, g in sorted(groups.items(), reverse=True))


ACTIONS = (O.UPCAST, O.UNROLL, O.LANE, O.LOCAL, O.GROUP, O.GROUPTOP, O.PADTO, O.REORDER, O.STAGE, O.SWAP, O.MERGE)


def random_opt(rng: random.Random, k: Kernel, actions: tuple[O, ...] = ACTIONS) -> Opt:
    op = rng.choice(actions)
    axes = k.sorted_axes
    axis = rng.randrange(len(axes)) if axes else 0
    if op in (O.UNROLL, O.GROUP, O.GROUPTOP):
        axis = rng.randrange(max(1, len(k.reduce_axes)))
    if op is O.REORDER:
        loops = [i for i, a in enumerate(axes) if a.kind.name in ("WEAK", "LOOP", "GLOBAL", "REDUCE", "THREAD")]
        return Opt(op, None, tuple(rng.sample(loops, len(loops))))
    if op is O.STAGE:
        numbers = rng.sample(range(len(axes)), rng.randint(1, len(axes)))
        side = rng.randrange(2)
        return rng.choice([Opt(op, side, tuple(numbers)), Opt(op, 2, ()), Opt(op, side, sums(k, side))])
    if op is O.MERGE:
        outputs = [i for i, a in enumerate(axes) if not a.reduce] or [0]
        outer, inner = rng.choice(outputs), rng.choice(outputs)
        steps = [w.stride(k.moved_by(axes[outer].root)) for w in k.windows] or [rng.randrange(1, 20)]
        return Opt(op, outer, (inner, rng.choice(steps) or 1))
    if op is O.SWAP:
        return Opt(op, axis, rng.randrange(max(1, len(axes))))
    return Opt(op, axis, rng.choice([0, 2, 3, 4, 5, 8, 16]))


def accepted(rng: random.Random, sink, r, tries: int) -> tuple[Opt, ...]:
    """A random sequence that the optimiser takes."""
    k = prepared(sink, r)
    if rng.random() < 0.3:  # windows need their axes as they are
        _try(k, Opt(O.STAGE, side := rng.randrange(2), sums(k, side)))
        for _ in range(rng.randint(1, 20)):
            _try(k, random_opt(rng, k, (O.MERGE,)))
    for _ in range(tries):
        _try(k, random_opt(rng, k))
    return tuple(k.applied)


def _try(k: Kernel, opt: Opt) -> None:
    with contextlib.suppress(KernelOptError):
        apply_opt(k, opt)


def one(seed: int) -> None:
    rng = random.Random(seed)
    name = rng.choice(list(CASES))
    sink, bufs = CASES[name]
    target = rng.choice(TARGETS)
    r = PythonRenderer(Target("PYTHON", "LINEAR", target.partition(":")[2]))
    opts = accepted(rng, sink, r, rng.randint(1, 12))
    try:
        check(sink.replace(arg=KernelInfo(opts_to_apply=opts)), bufs, target)
    except Exception as e:
        raise AssertionError(f"seed {seed}: {name} on {target} with {opts}: {e}") from e


@pytest.mark.parametrize("block", range(6))
def test_accepted_opts_keep_the_values(block):
    for seed in range(block * 25, block * 25 + 25):
        one(seed)


@pytest.mark.soak
def test_many_accepted_opts_keep_the_values():
    for seed in range(1000, 6000):
        one(seed)


@pytest.mark.parametrize("target", TARGETS[1:])
@pytest.mark.parametrize(
    "extra", [(), (Opt(O.LANE, 3, 4),), (Opt(O.UPCAST, 2, 2),), (Opt(O.LANE, 3, 4), Opt(O.UPCAST, 1, 2))], ids=str
)
def test_a_padded_copy_of_an_image(extra, target):
    sink, bufs = K.conv(2, 3, 8, 9, 6, 3, 1)
    r = PythonRenderer(Target("PYTHON", "LINEAR", target.partition(":")[2]))
    k = Kernel(merge_ranges(one_closer_each(sink)), r)
    for o in extra:
        apply_opt(k, o)
    number = {a.root.arg[0]: k.number(a) for a in reversed(k.sorted_axes)}
    window = Opt(O.STAGE, 0, ((number[4],), (number[2], number[5]), (number[3], number[6])))
    p = check(sink.replace(arg=KernelInfo(opts_to_apply=(*extra, window))), bufs, target)
    assert p.arg.scratch == 3 * 10 * 11 * 4
    gated = [u for u in p.src[1].src if u.op is Ops.LOAD and len(u.src) == 3]
    assert all(u.ranges and all(r.arg[0] > 6 for r in u.ranges if r.arg[0] != 0) for u in gated), (
        "only packing has gates"
    )


def test_reorder_and_stage_reach_compiled_code():
    rng = random.Random(7)
    r = renderer("x86-64-v3")
    for name in ("matmul", "conv", "transposed", "softmax"):
        sink, bufs = CASES[name]
        for _ in range(3):
            opts = accepted(rng, sink, r, 10)
            check(sink.replace(arg=KernelInfo(opts_to_apply=opts)), bufs, "x86-64-v3")
