"""The reference device: linear programs written by hand, run by the interpreter."""
import pickle

import numpy as np
import pytest

from tinyhost.device.base import TinyELF
from tinyhost.device.builtin.interpreter import PythonProgram, parse
from tinyhost.device.builtin.python import ARCHES, PythonRenderer, capabilities
from tinyhost.dtype import Invalid, dtypes
from tinyhost.errors import CompileError, TargetError
from tinyhost.target import Target
from tinyhost.uop import AddrSpace, AxisType, KernelInfo, Ops, UOp
from tinyhost.uop.info import ParamArg
from tinyhost.uop.semantics import cast_np, from_storage_np, to_storage_np

INT, FLOAT = dtypes.int32, dtypes.float32


def storage(slot, dtype, size, space=AddrSpace.GLOBAL):
    return UOp(Ops.PARAM if space is AddrSpace.GLOBAL else Ops.BUFFER, (), ParamArg(slot, dtype, size, addrspace=space))


def scalar(name, dtype=INT):
    return UOp(Ops.PARAM, (), ParamArg(-1, dtype, None, (0, 100), None, name, AddrSpace.ALU))


def const(v, dtype=INT):
    return UOp.const(v, dtype)


def index(base, i):
    return UOp(Ops.INDEX, (base, i if isinstance(i, UOp) else const(i)))


def vector(base, i, lanes):
    return UOp(Ops.SHRINK, (base, i if isinstance(i, UOp) else const(i), UOp.const(lanes)))


def load(place, *alt_gate):
    return UOp(Ops.LOAD, (place, *alt_gate))


def store(place, value, *gate):
    return UOp(Ops.STORE, (place, value, *gate))


def special(name, size):
    return UOp(Ops.SPECIAL, (const(size),), name)


def loop(size, number=0):
    return UOp(Ops.RANGE, (size if isinstance(size, UOp) else const(size),), (number, AxisType.REDUCE))


def alu(op, *src):
    return UOp(op, src)


def program(*effects, arch="", order=None):
    """The program whose nodes are those under ``effects``, in topological order unless ``order`` gives it."""
    sink = UOp(Ops.SINK, effects, KernelInfo(name="k"))
    uops = list(sink.toposort()) if order is None else [*order, sink]
    renderer = PythonRenderer(Target("PYTHON", "LINEAR", arch))
    lib = renderer.compiler.compile(renderer.render(uops))
    params = sorted({u for u in uops if u.op is Ops.PARAM}, key=lambda u: (u.arg.addrspace.value, u.arg.slot))
    signature = tuple((u.arg.name, u.arg.slot, u.arg.dtype, u.arg.shape) for u in params)
    return PythonProgram(None, TinyELF(lib, "k", renderer.target, signature))


def run(prog, *arrays, **kwargs):
    prog(*[a.view(np.uint8) for a in arrays], **kwargs)


# *** grid ***
def test_elementwise_over_a_grid():
    out, a, b = (storage(i, FLOAT, 100) for i in range(3))
    g = special("gidx0", 100)
    prog = program(store(index(out, g), alu(Ops.ADD, load(index(a, g)), load(index(b, g)))))
    x, y, z = np.arange(100, dtype=np.float32), np.ones(100, np.float32), np.zeros(100, np.float32)
    run(prog, z, x, y, global_size=(100, 1, 1))
    assert (z == x + 1).all()


def test_three_dimensions_and_slices(monkeypatch):
    monkeypatch.setattr("tinyhost.device.builtin.interpreter.SLICE", 16)
    out = storage(0, INT, 4 * 5 * 6)
    gx, gy, lz = special("gidx0", 4), special("gidx1", 5), special("lidx2", 6)
    at = alu(Ops.ADD, alu(Ops.ADD, gx, alu(Ops.MUL, gy, const(4))), alu(Ops.MUL, lz, const(20)))
    prog = program(store(index(out, at), alu(Ops.ADD, at, const(1))), arch="gpu")
    z = np.zeros(120, np.int32)
    run(prog, z, global_size=(4, 5, 1), local_size=(1, 1, 6))
    assert z.tolist() == list(range(1, 121))


def test_global_index_without_locals():
    out, i = storage(0, INT, 12), special("idx0", 12)
    z = np.zeros(12, np.int32)
    run(program(store(index(out, i), i)), z, global_size=(12, 1, 1))
    assert z.tolist() == list(range(12))


def test_scalars_and_threads():
    out, n, core = storage(0, INT, 4), scalar("n"), scalar("core_id")
    prog = program(store(index(out, core), alu(Ops.MUL, core, n)))
    names = [name for name, _, _, _ in prog.elf.signature if name]
    z = np.zeros(4, np.int32)
    run(prog, z, global_size=(4, 1, 1), vals=tuple(7 if name == "n" else None for name in names))
    assert z.tolist() == [0, 7, 14, 21]


# *** loops, registers, local storage ***
def sum_loop(out, a, n, at=None):
    """Sum of a[0:n] through a register."""
    acc = storage(0, FLOAT, 1, AddrSpace.REG)
    zero = store(index(acc, 0), const(0.0, FLOAT))
    r = loop(n)
    total = index(UOp(Ops.AFTER, (acc, zero, r)), 0)
    step = store(index(acc, 0), alu(Ops.ADD, load(total), load(index(a, r))))
    end = UOp(Ops.END, (step, r))
    return store(index(out, const(0) if at is None else at), load(index(UOp(Ops.AFTER, (acc, end)), 0)))


def test_reduction():
    out, a = storage(0, FLOAT, 1), storage(1, FLOAT, 10)
    z, x = np.zeros(1, np.float32), np.arange(10, dtype=np.float32)
    run(program(sum_loop(out, a, 10), arch="x86-64-v3"), z, x)
    assert z[0] == 45


def test_an_empty_loop_does_not_run():
    out, a = storage(0, FLOAT, 1), storage(1, FLOAT, 10)
    z, x = np.ones(1, np.float32), np.arange(10, dtype=np.float32)
    run(program(sum_loop(out, a, 0)), z, x)
    assert z[0] == 0


def test_loop_length_that_depends_on_the_work_item():
    out, a = storage(0, FLOAT, 5), storage(1, FLOAT, 4)
    g = special("gidx0", 5)
    z, x = np.full(5, -1, np.float32), np.arange(1, 5, dtype=np.float32)
    run(program(sum_loop(out, a, g, g)), z, x, global_size=(5, 1, 1))
    assert z.tolist() == [0, 1, 3, 6, 10]


def test_endless_loop_until_its_condition_fails():
    out, acc, g = storage(0, INT, 6), storage(0, INT, 1, AddrSpace.REG), special("gidx0", 6)
    first = store(index(acc, 0), const(1))
    r = UOp(Ops.RANGE, (UOp(Ops.NOOP),), (0, AxisType.WEAK))
    doubled = alu(Ops.MUL, load(index(UOp(Ops.AFTER, (acc, first, r)), 0)), const(2))
    step = store(index(acc, 0), doubled)
    end = UOp(Ops.END, (step, r, alu(Ops.CMPLT, doubled, alu(Ops.MUL, g, const(10)))))
    z = np.zeros(6, np.int32)
    run(program(store(index(out, g), load(index(UOp(Ops.AFTER, (acc, end)), 0)))), z, global_size=(6, 1, 1))
    assert z.tolist() == [2, 16, 32, 32, 64, 64]


def reverse_through_local(size, gated=False):
    out, a, tmp = storage(0, INT, 3 * size), storage(1, INT, 3 * size), storage(0, INT, size, AddrSpace.LOCAL)
    g, i = special("gidx0", 3), special("lidx0", size)
    at = alu(Ops.ADD, alu(Ops.MUL, g, const(size)), i)
    gate = alu(Ops.CMPLT, i, const(2))
    write = store(index(tmp, i), load(index(a, at)))
    read = load(index(UOp(Ops.AFTER, (tmp, UOp(Ops.BARRIER, (write,)))), alu(Ops.SUB, const(size - 1), i)))
    final = store(index(out, at), read)
    if not gated:
        return program(final, arch="gpu")
    # the barrier stands inside an IF
    branch = UOp(Ops.IF, (gate, index(out, at)))
    order = list(UOp(Ops.SINK, (final,)).toposort())[:-1]
    at_write = order.index(write)
    order[at_write:at_write] = [u for u in branch.toposort() if u not in order]
    return program(final, arch="gpu", order=[*order, UOp(Ops.ENDIF, (branch,))])


def test_local_storage_and_barrier():
    x, z = np.arange(24, dtype=np.int32), np.zeros(24, np.int32)
    run(reverse_through_local(8), z, x, global_size=(3, 1, 1), local_size=(8, 1, 1))
    assert z.reshape(3, 8).tolist() == x.reshape(3, 8)[:, ::-1].tolist()


def test_a_barrier_that_a_part_of_the_workgroup_skips():
    x, z = np.arange(24, dtype=np.int32), np.zeros(24, np.int32)
    with pytest.raises(RuntimeError, match="kernel k: only a part of a workgroup reaches a barrier"):
        run(reverse_through_local(8, gated=True), z, x, global_size=(3, 1, 1), local_size=(8, 1, 1))


def test_if():
    out, g = storage(0, INT, 8), special("gidx0", 8)
    place, gate = index(out, g), alu(Ops.CMPLT, g, const(3))
    branch = UOp(Ops.IF, (gate, place))
    write = store(place, alu(Ops.ADD, g, const(10)))
    order = [*branch.toposort(), *(u for u in write.toposort() if u not in branch.toposort())]
    z = np.zeros(8, np.int32)
    prog = program(write, order=[*order, UOp(Ops.ENDIF, (branch,))])
    run(prog, z, global_size=(8, 1, 1))
    assert z.tolist() == [10, 11, 12, 0, 0, 0, 0, 0]


# *** vectors ***
def test_vectors():
    out, a = storage(0, FLOAT, 16), storage(1, FLOAT, 16)
    r = loop(2)
    at = alu(Ops.MUL, r, const(8))
    v = load(vector(a, at, 8))
    value = alu(Ops.MULACC, v, const(2.0, FLOAT), alu(Ops.MAX, v, const(4.0, FLOAT)))
    prog = program(UOp(Ops.END, (store(vector(out, at, 8), value), r)), arch="x86-64-v3")
    x, z = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    run(prog, z, x)
    assert (z == 2 * x + np.maximum(x, 4)).all()


def test_masked_vectors_stop_at_the_end():
    out, a = storage(0, FLOAT, 5), storage(1, FLOAT, 5)
    lane = UOp(Ops.STACK, tuple(const(i) for i in range(8)))
    gate = alu(Ops.CMPLT, lane, const(5))
    value = load(vector(a, 0, 8), const(100.0, FLOAT), gate)
    total = index(value, UOp.const(7))
    prog = program(store(vector(out, 0, 8), alu(Ops.ADD, value, total), gate), arch="x86-64-v4")
    x, z = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    run(prog, z, x)
    assert z.tolist() == [100, 101, 102, 103, 104]


def test_shuffles_and_stacks():
    out, a = storage(0, INT, 8), storage(1, INT, 4)
    v = load(vector(a, 0, 4))
    swapped = UOp(Ops.INDEX, (v, UOp(Ops.STACK, tuple(UOp.const(i) for i in (3, 2, 1, 0)))))
    parts = UOp(Ops.STACK, tuple(index(v, UOp.const(i)) if i else const(9) for i in range(4)))
    z = np.zeros(8, np.int32)
    run(program(store(vector(out, 0, 4), swapped), store(vector(out, 4, 4), parts), arch="x86-64-v3"), z,
        np.array([1, 2, 3, 4], np.int32))
    assert z.tolist() == [4, 3, 2, 1, 9, 2, 3, 4]


def test_gathers_over_the_grid():
    out, a, idx = storage(0, FLOAT, 6), storage(1, FLOAT, 3), storage(2, INT, 6)
    g = special("gidx0", 6)
    at = load(index(idx, g))
    inside = alu(Ops.AND, alu(Ops.CMPLT, const(-1), at), alu(Ops.CMPLT, at, const(3)))
    z = np.full(6, -1, np.float32)
    run(program(store(index(out, g), load(index(a, at), const(0.0, FLOAT), inside))), z,
        np.array([5, 6, 7], np.float32), np.array([2, -1, 0, 3, 1, 99], np.int32), global_size=(6, 1, 1))
    assert z.tolist() == [7, 0, 5, 0, 6, 0]


# *** dtypes ***
@pytest.mark.parametrize("dt", [*dtypes.fp8s, dtypes.bfloat16, dtypes.float16])
def test_narrow_floats(dt):
    out, a = storage(0, dt, 50), storage(1, dt, 50)
    g = special("gidx0", 50)
    x = load(index(a, g))
    prog = program(store(index(out, g), alu(Ops.ADD, alu(Ops.MUL, x, x), UOp.const(0.1, dt))))
    values = from_storage_np(np.arange(60, 110).astype(np.uint8 if dt.itemsize == 1 else np.uint16) if dt.fmt is None
                             else np.arange(50, dtype=np.float16) / 7, dt)
    raw = to_storage_np(values, dt)
    z = np.zeros_like(raw)
    run(prog, z, raw, global_size=(50, 1, 1))
    rounded = lambda v: cast_np(v, FLOAT, dt)
    tenth = rounded(np.full(1, 0.1, np.float32))
    square = rounded(values.astype(np.float32) ** 2)
    want = rounded(square.astype(np.float32) + tenth)
    assert np.array_equal(from_storage_np(z, dt), want, equal_nan=True)


def test_bools_casts_and_bitcasts():
    out, a = storage(0, dtypes.bool, 4), storage(1, FLOAT, 4)
    bits = storage(2, dtypes.uint32, 4)
    g = special("gidx0", 4)
    x = load(index(a, g))
    prog = program(store(index(out, g), UOp(Ops.CAST, (x,), dtypes.bool)),
                   store(index(bits, g), UOp(Ops.BITCAST, (x,), dtypes.uint32)))
    b, u, x = np.zeros(4, np.bool_), np.zeros(4, np.uint32), np.array([0, 1, np.nan, -0.0], np.float32)
    run(prog, b, x, u, global_size=(4, 1, 1))
    assert b.tolist() == [False, True, True, False] and u.tolist() == x.view(np.uint32).tolist()


def test_bare_literals_take_the_type_of_their_neighbours():
    out, a = storage(0, dtypes.uint8, 3), storage(1, dtypes.uint8, 3)
    g = special("gidx0", 3)
    x = load(index(a, g))
    value = UOp(Ops.WHERE, (alu(Ops.CMPLT, x, UOp.const(100)), alu(Ops.ADD, x, UOp.const(200)), UOp.const(1)))
    z = np.zeros(3, np.uint8)
    run(program(store(index(out, g), value)), z, np.array([50, 99, 100], np.uint8), global_size=(3, 1, 1))
    assert z.tolist() == [250, 43, 1]


def test_integer_division_is_total():
    out, a, b = (storage(i, INT, 3) for i in range(3))
    g = special("gidx0", 3)
    z = np.ones(3, np.int32)
    run(program(store(index(out, g), alu(Ops.CDIV, load(index(a, g)), load(index(b, g))))), z,
        np.array([5, -(2**31), 7], np.int32), np.array([0, -1, -2], np.int32), global_size=(3, 1, 1))
    assert z.tolist() == [0, -(2**31), -3]


# *** errors ***
def test_out_of_range_accesses_name_kernel_storage_and_index():
    out, a, g = storage(0, FLOAT, 10), storage(1, FLOAT, 10), special("gidx0", 10)
    z, x = np.zeros(10, np.float32), np.zeros(10, np.float32)
    where = r"kernel k: load from data1 at index 10, outside its 10 elements \(work item .*gidx0=8"
    with pytest.raises(IndexError, match=where):
        run(program(store(index(out, g), load(index(a, alu(Ops.ADD, g, const(2)))))), z, x, global_size=(10, 1, 1))
    with pytest.raises(IndexError, match=r"kernel k: store to data0 at index -1"):
        run(program(store(index(out, alu(Ops.SUB, g, const(1))), const(1.0, FLOAT))), z, global_size=(10, 1, 1))
    with pytest.raises(IndexError, match=r"load from data1 at index 10"):
        run(program(store(vector(out, 0, 8), load(vector(a, 4, 8))), arch="x86-64-v3"), z, x)


def test_gated_accesses_may_be_out_of_range():
    out, g = storage(0, FLOAT, 3), special("gidx0", 9)
    z = np.zeros(3, np.float32)
    run(program(store(index(out, g), const(1.0, FLOAT), alu(Ops.CMPLT, g, const(3)))), z, global_size=(9, 1, 1))
    assert z.tolist() == [1, 1, 1]


def test_wrong_arguments():
    out, g = storage(0, FLOAT, 10), special("gidx0", 10)
    prog = program(store(index(out, g), const(1.0, FLOAT)))
    with pytest.raises(TypeError, match="kernel k takes 1 buffers and 0 scalars, got 0 and 0"):
        prog()
    with pytest.raises(ValueError, match="buffer 0 has 8 bytes, but the kernel's 10 elements of dtypes.float take 40"):
        run(prog, np.zeros(2, np.float32))


def test_what_is_no_program():
    renderer = PythonRenderer(Target("PYTHON", "LINEAR"))
    with pytest.raises(CompileError, match="no program for PYTHON: line 2 is no instruction: 'nonsense'"):
        renderer.compiler.compile("kernel k\nnonsense\n")
    with pytest.raises(ValueError, match="program text starts with 'kernel NAME', got 'x'"):
        parse("x\n")
    out = storage(0, FLOAT, 1)
    with pytest.raises(ValueError, match="a linear program has no Invalid"):
        program(store(index(out, 0), UOp.const(Invalid)))
    with pytest.raises(ValueError, match=r"PYTHON cannot run Ops\.RESHAPE"):
        program(store(index(out, 0), UOp(Ops.RESHAPE, (const(1.0, FLOAT), UOp(Ops.STACK)))))


# *** targets ***
def test_arches_are_data():
    assert capabilities(Target("PYTHON")).grid and not capabilities(Target("PYTHON")).locals
    gpu = capabilities(Target("PYTHON", "LINEAR", "gpu"))
    assert gpu.locals and gpu.shared_bytes and gpu.max_kernel_buffers == 8 and not gpu.buffer_views
    widths = {a: capabilities(Target("PYTHON", "", a)).vector_bytes for a in ARCHES}
    assert widths == {"": 0, "gpu": 0, "gpu32": 0, "x86-64-v2": 16, "x86-64-v3": 32, "x86-64-v4": 64}
    assert not capabilities(Target("PYTHON", "", "x86-64-v3")).grid
    with pytest.raises(TargetError, match="PYTHON has no arch 'z80': use one of gpu, gpu32, x86-64-v2, .*, or none"):
        capabilities(Target("PYTHON", "", "z80"))


def test_renderers_pickle_as_their_target():
    for arch in ARCHES:
        renderer = pickle.loads(pickle.dumps(PythonRenderer(Target("PYTHON", "LINEAR", arch))))
        assert renderer.target.arch == arch and renderer.caps is ARCHES[arch][0]


def test_text_is_the_program():
    out, g = storage(0, FLOAT, 2), special("gidx0", 2)
    renderer = PythonRenderer(Target("PYTHON", "LINEAR"))
    sink = UOp(Ops.SINK, (store(index(out, g), UOp(Ops.CAST, (g,), FLOAT)),), KernelInfo(name="E_2"))
    text = renderer.render(list(sink.toposort()))
    assert text == ("kernel E_2\n%1 = storage float global 0 2\n%2 = special int gidx0\n%3 = cast int float %2\n"
                    "%4 = store float %1 %2 1 %3\n")
    lib = renderer.compiler.compile(text)
    assert renderer.compiler.disassemble(lib) == text


def test_vectors_are_no_wider_than_the_level_allows():
    out, a = storage(0, dtypes.float64, 8), storage(1, dtypes.float64, 8)
    value = alu(Ops.ADD, load(vector(a, 0, 8)), UOp.const(1.0, dtypes.float64))
    with pytest.raises(ValueError, match="Ops.LOAD has 8 lanes of dtypes.double, but a vector has 32 bytes"):
        program(store(vector(out, 0, 8), value), arch="x86-64-v3")
    x, z = np.arange(8, dtype=np.float64), np.zeros(8)
    run(program(store(vector(out, 0, 8), value), arch="x86-64-v4"), z, x)
    assert (z == x + 1).all()
