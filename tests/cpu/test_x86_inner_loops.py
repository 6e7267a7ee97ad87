"""The machine code of innermost loops, read line by line: register tiles of matrix products, tails, streams."""

from __future__ import annotations

import re

import numpy as np
import pytest
from x86_machine import (
    add,
    assemble,
    at,
    at_level,
    call,
    const,
    i32,
    listing,
    load,
    loop,
    mul,
    param,
    renderer,
    scalar,
    store,
    widest,
)

from tinyhost.codegen.linearize import linearize
from tinyhost.dtype import dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp

f32 = dtypes.float32
V3, V4 = "x86-64-v3", "x86-64-v4"


def matrix_tile(rows: int, cols: int, lanes: int, steps: int, packed: bool) -> UOp:
    """out[rows, cols * lanes] = a[rows, steps] @ b[steps, cols * lanes]; ``packed``: a is [steps, rows]."""
    width = cols * lanes
    out, a, b = param(0, f32, rows * width), param(1, f32, rows * steps), param(2, f32, steps * width)
    r = loop(steps, 0, AxisType.REDUCE)
    tile = [[UOp(Ops.BUFFER, (), ParamArg(cols * x + y, f32, lanes, addrspace=AddrSpace.REG)) for y in range(cols)]
            for x in range(rows)]
    zeros = UOp(Ops.STACK, (const(0.0, f32),) * lanes)
    inside = {t: UOp(Ops.AFTER, (t, store(t, 0, zeros, lanes), r)) for row in tile for t in row}
    columns = [load(b, add(mul(r, width), i32(lanes * y)) if y else mul(r, width), lanes) for y in range(cols)]
    updates = []
    for x in range(rows):
        index = add(mul(r, rows), i32(x)) if packed else add(r, i32(x * steps))
        left = load(a, index)
        for y in range(cols):
            t = inside[tile[x][y]]
            total = UOp(Ops.MULACC, (left, columns[y], load(t, 0, lanes)))
            updates.append(UOp(Ops.STORE, (at(t, 0, lanes), total)))
    done = UOp(Ops.END, (UOp(Ops.GROUP, tuple(updates)), r))
    stores = [
        store(out, x * width + lanes * y, load(UOp(Ops.AFTER, (tile[x][y], done)), 0, lanes), lanes)
        for x in range(rows)
        for y in range(cols)
    ]
    return UOp(Ops.GROUP, tuple(stores))


def innermost(text: str) -> list[str]:
    """The lines of the only loop of a listing, the jump included."""
    lines = [line.strip() for line in text.splitlines()]
    label = next(i for i, line in enumerate(lines) if line.endswith(":"))
    return lines[label + 1 : next(i for i, line in enumerate(lines) if line == f"jl {lines[label][:-1]}") + 1]


def body_of(*effects: UOp) -> list[str]:
    return innermost(renderer().listing(linearize(UOp(Ops.SINK, effects))))


def count(body: list[str], pattern: str) -> int:
    return sum(bool(re.match(pattern, line)) for line in body)


TILES = [(V3, 6, 2, 8), (V3, 4, 3, 8), (V4, 6, 2, 8), (V4, 8, 2, 16), (V4, 12, 2, 16), (V4, 14, 2, 16), (V4, 5, 4, 16)]


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("level,rows,cols,lanes", TILES, indirect=["level"])
def test_a_register_tile_is_multiply_adds_and_loads(level: str, rows: int, cols: int, lanes: int, packed: bool) -> None:
    """One FMA per accumulator, one load per vector and scalar, at most two registers that count: nothing else."""
    steps = 24
    effect = matrix_tile(rows, cols, lanes, steps, packed)
    body = body_of(effect)
    fmas = count(body, r"vfmadd231ps [xyz]mm\d+, [xyz]mm\d+, [xyz]mm\d+$")
    assert fmas == rows * cols
    assert count(body, r"vbroadcastss") == rows and count(body, r"vmovups [yz]mm\d+, [yz]mmword ptr \[r") == cols
    assert not any("[rsp" in line for line in body), "no spill, no fill"
    counting = body[fmas + rows + cols :]
    assert 3 <= len(counting) <= 4 and all(line.split()[0] in ("add", "cmp", "jl") for line in counting)
    rng = np.random.default_rng(rows)
    a = rng.integers(-9, 9, (rows, steps)).astype(np.float32)
    b = rng.integers(-9, 9, (steps, cols * lanes)).astype(np.float32)
    got = np.zeros((rows, cols * lanes), np.float32)
    call(assemble(effect), [got, np.ascontiguousarray(a.T if packed else a), b])
    assert (got == a @ b).all()


@pytest.mark.parametrize("rows", [8, 28])
def test_one_column_broadcasts_in_the_multiply_add(rows: int) -> None:
    """With one vector column each scalar has one reader: it is the memory operand."""
    with at_level(V4):
        body = body_of(matrix_tile(rows, 1, 16, 16, True))
    assert count(body, r"vfmadd231ps zmm\d+, zmm\d+, dword bcst \[r|vfmadd231ps zmm\d+, zmm\d+, .*1to16") == rows
    assert count(body, "vbroadcastss") == 0 and len(body) <= rows + 1 + 4


def test_a_tile_of_one_row_reads_its_vectors_in_the_multiply_add() -> None:
    with at_level(V4):
        body = body_of(matrix_tile(1, 8, 16, 16, False))
    assert count(body, r"vfmadd231ps zmm\d+, zmm\d+, zmmword ptr") == 8 and count(body, "vbroadcastss") == 1


@pytest.mark.parametrize("level", [V3, V4], indirect=True)
def test_a_loop_over_vectors_counts_one_register(level: str) -> None:
    """c = a + b: the loop counts bytes, and nothing but that."""
    lanes = widest() // 4
    out, a, b, r = param(0, f32, 64 * lanes), param(1, f32, 64 * lanes), param(2, f32, 64 * lanes), loop(64, 0)
    i = mul(r, lanes)
    body = body_of(UOp(Ops.END, (store(out, i, load(a, i, lanes) + load(b, i, lanes), lanes), r)))
    assert [line.split()[0] for line in body] == ["vmovups", "vaddps", "vmovups", "add", "cmp", "jl"]
    assert body[-2] == f"cmp {body[-3].split()[1]} {hex(64 * widest())}"


@pytest.mark.parametrize("level", [V3, V4], indirect=True)
@pytest.mark.parametrize("n", [0, 1, 7])
def test_a_bound_from_outside_is_scaled_once(level: str, n: int) -> None:
    lanes = widest() // 4
    out, count_of, r = param(0, f32, 8 * lanes), scalar("n", 0, 8, 1), None
    r = loop(count_of, 0)
    effect = UOp(Ops.END, (store(out, mul(r, lanes), UOp(Ops.STACK, (const(2.0, f32),) * lanes), lanes), r))
    text = renderer().listing(linearize(UOp(Ops.SINK, (effect,))))
    assert [line.split()[0] for line in innermost(text)] == ["vmovups", "add", "cmp", "jl"]
    x = np.zeros(8 * lanes, np.float32)
    call(assemble(effect), [x], [n])
    assert (x[: n * lanes] == 2).all() and not x[n * lanes :].any()


def test_a_counter_that_is_read_is_kept() -> None:
    out, r = param(0, dtypes.int32, 64), loop(8, 0)
    effect = UOp(Ops.END, (store(out, mul(r, 5), r), r))
    for level in (V3, V4):
        with at_level(level):
            assert [line.split()[0] for line in body_of(effect)] == ["mov", "add", "add", "cmp", "jl"]
            x = np.full(64, -1, np.int32)
            call(assemble(effect), [x])
            assert x[:40:5].tolist() == list(range(8))


def test_a_tail_is_one_masked_instruction_of_each_kind() -> None:
    """Lanes behind a limit: a comparison, a masked load with zeros, a masked store."""
    out, src, n, r = param(0, f32, 64), param(1, f32, 64), scalar("n", 0, 64, 2), loop(4, 0)
    start = mul(r, 16)
    lanes = UOp(Ops.STACK, tuple(i32(i) for i in range(16)))
    inside = UOp(Ops.ADD, (start, lanes)) < n
    zeros = UOp(Ops.STACK, (const(0.0, f32),) * 16)
    effect = UOp(Ops.END, (store(out, start, load(src, start, 16, zeros, inside) * const(2.0, f32), 16, inside), r))
    with at_level(V4):
        body = body_of(effect)
        assert count(body, r"vpcmpd k1") == 1 and count(body, "kmov") == 0
        assert count(body, r"vmovups zmm\d+\{k1\}\{z\}, zmmword") == 1
        assert count(body, r"vmovups zmmword ptr \[.*\]\{k1\}, zmm") == 1
        x, y = np.arange(64, dtype=np.float32), np.full(64, -1, np.float32)
        call(assemble(effect), [y, x], [37])
    assert y.tolist() == (x[:37] * 2).tolist() + [-1] * 27


@pytest.mark.parametrize("level", [V3, V4], indirect=True)
def test_the_head_of_an_innermost_loop_is_aligned(level: str) -> None:
    text = listing(assemble(matrix_tile(4, 2, widest() // 4, 8, False)))
    target = int(next(line for line in text.splitlines() if " jl " in line).split()[-1].rstrip("h"), 16)
    assert target % 32 == 0
