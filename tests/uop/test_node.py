"""Interning, derived properties, deep graphs, pickling: what every other floor takes for granted."""
from __future__ import annotations

import copy
import gc
import math
import pickle
import threading

import numpy as np
import pytest

from tinyhost.dtype import ConstFloat, Invalid, dtypes
from tinyhost.ops import AddrSpace, AxisType, Ops
from tinyhost.uop import ParamArg, UOp, graph_rewrite
from tinyhost.uop.node import interned_count


def chain(depth: int) -> UOp:
    u = UOp.variable("i", 0, 10)
    for i in range(depth):
        u = UOp(Ops.ADD, (u, UOp.const(i % 7)))
    return u


class TestInterning:
    def test_equal_nodes_are_one(self):
        assert UOp.const(3) is UOp(Ops.CONST, (), 3)
        assert UOp.const(3) + UOp.variable("i", 0, 4) is UOp.const(3) + UOp.variable("i", 0, 4)

    def test_type_of_literal_is_part_of_identity(self):
        assert len({UOp.const(x) for x in (1, 1.0, True)}) == 3
        assert UOp.const(0) is not UOp.const(False)

    def test_floats_intern_by_value_and_sign(self):
        assert UOp.const(math.nan) is UOp.const(float("nan"))
        assert UOp.const(0.0) is not UOp.const(-0.0)
        assert type(UOp.const(1.5).arg) is ConstFloat

    def test_numpy_scalars_become_python_numbers(self):
        assert UOp.const(np.int64(3)) is UOp.const(3)
        assert UOp.const(np.float32(1.5)) is UOp.const(1.5)
        assert UOp.const(np.bool_(True)) is UOp.const(True)

    def test_tag_separates(self):
        assert UOp.const(1).rtag("x") is not UOp.const(1)
        assert UOp.const(1).rtag("x").rtag(None) is UOp.const(1)

    def test_dead_nodes_leave_the_table(self):
        gc.collect()
        before = interned_count()
        u = UOp.const(123456789) + UOp.const(987654321)
        assert interned_count() > before
        del u
        gc.collect()
        assert interned_count() <= before

    def test_eight_threads_intern_the_same_nodes(self):
        """Every thread builds the same 125,000 nodes; all see the same identities."""
        results: list[list[int]] = [[] for _ in range(8)]
        keep: list[list[UOp]] = [[] for _ in range(8)]
        start = threading.Barrier(8)

        def work(k: int) -> None:
            start.wait()
            var = UOp.variable("t", 0, 100)
            nodes = [UOp(Ops.ADD, (UOp(Ops.MUL, (var, UOp(Ops.CONST, (), i))), UOp(Ops.CONST, (), -i)))
                     for i in range(20_000)]
            keep[k] = nodes
            results[k] = [id(n) for n in nodes]
        threads = [threading.Thread(target=work, args=(k,)) for k in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert all(r == results[0] for r in results[1:])

    def test_threads_that_build_and_drop(self):
        """Nodes die and are built again in other threads; identity still means equality while they live."""
        wrong: list[str] = []

        def work() -> None:
            for i in range(20_000):
                a = UOp(Ops.CONST, (), i % 50 + 10_000_000)
                b = UOp(Ops.CONST, (), i % 50 + 10_000_000)
                if a is not b:
                    wrong.append(f"{i}")
        threads = [threading.Thread(target=work) for _ in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert not wrong

    def test_copies_are_the_node(self):
        u = chain(10)
        assert copy.copy(u) is u and copy.deepcopy(u) is u and copy.deepcopy([u])[0] is u


class TestDtype:
    def test_literals(self):
        assert [UOp.const(x).dtype for x in (1, 1.0, True, Invalid)] == \
            [dtypes.weakint, dtypes.weakfloat, dtypes.bool, dtypes.bool]

    def test_strong_literal_is_a_cast(self):
        c = UOp.const(3, dtypes.int32)
        assert c.op is Ops.CAST and c.src[0].op is Ops.CONST and c.dtype is dtypes.int32 and c.const_value == 3

    def test_where_needs_a_bool(self):
        with pytest.raises(TypeError, match="where cond must be bool, got dtypes.weakint"):
            _ = UOp(Ops.WHERE, (UOp.const(1), UOp.const(1), UOp.const(2))).dtype

    def test_shift_needs_ints(self):
        with pytest.raises(TypeError, match="shift operands must be int"):
            _ = UOp(Ops.SHL, (UOp.const(1.0), UOp.const(2))).dtype

    def test_no_dtype(self):
        with pytest.raises(RuntimeError, match="no dtype for Ops.WAIT with arg None"):
            _ = UOp(Ops.WAIT).dtype

    def test_call_of_an_address_returns_its_dtype(self):
        address = UOp.const(4096, dtypes.uint64)
        assert address.call(ret_dtype=dtypes.int32).dtype is dtypes.int32
        assert UOp.sink().call().dtype is dtypes.void


class TestShape:
    def test_storage(self):
        assert UOp.param(0, dtypes.float32, (3, 4)).shape == (3, 4)
        assert UOp.param(0, dtypes.float32).shape == ()
        assert UOp(Ops.PARAM, (), ParamArg(0, dtypes.float32, 4 * 2 * 4, image=(4, 2))).shape == (4, 2, 4)
        assert UOp.placeholder((4,), dtypes.float32, 0, AddrSpace.REG).arg.size == 4

    def test_symbolic_view(self):
        n = UOp.variable("n", 1, 8)
        p = UOp.param(0, dtypes.float32, (n, 4))
        assert p.shape == (n, 4) and p.base.arg.size == 32 and p.max_shape == (8, 4)

    def test_broadcast_is_right_aligned(self):
        a, b = UOp.param(0, dtypes.float32, (3, 1)), UOp.param(1, dtypes.float32, (4,))
        assert UOp(Ops.ADD, (a, b)).shape == (3, 4)

    def test_broadcast_failure(self):
        a, b = UOp.param(0, dtypes.float32, (3,)), UOp.param(1, dtypes.float32, (4,))
        with pytest.raises(IndexError, match=r"cannot broadcast \(3,\) and \(4,\): axis -1 is 3 and 4"):
            _ = UOp(Ops.ADD, (a, b)).shape

    def test_reshape_failure(self):
        with pytest.raises(ValueError, match=r"can't reshape \(6,\) to \(4,\): 6 and 4 elements"):
            _ = UOp(Ops.RESHAPE, (UOp.param(0, dtypes.float32, (6,)), UOp.const(4))).shape

    def test_bitcast_changes_the_last_axis(self):
        assert UOp.param(0, dtypes.float32, (3, 4)).bitcast(dtypes.uint8).shape == (3, 16)
        with pytest.raises(RuntimeError, match="unsupported size in bitcast"):
            _ = UOp.param(0, dtypes.uint8, (3, 3)).bitcast(dtypes.uint32).shape

    def test_no_shape(self):
        with pytest.raises(RuntimeError, match="Ops.SINK has no shape"):
            _ = UOp.sink().shape

    def test_index(self):
        p = UOp.param(0, dtypes.float32, (3, 4, 5))
        assert p.index(1).shape == (4, 5) and p.index(UOp.range(3, 0), 2).shape == (5,)


class TestRanges:
    def test_open_and_ended(self):
        r, s = UOp.range(4, 0), UOp.range(8, 1, AxisType.REDUCE)
        value = (r * 8 + s).cast(dtypes.float32)
        assert list(value.ranges) == [r, s]
        assert list(value.reduce(s, arg=Ops.ADD).ranges) == [r]
        store = UOp.param(0, dtypes.float32, 4).index(r).store(value.reduce(s, arg=Ops.ADD))
        assert not store.end(r).ranges

    def test_after_ends_what_its_deps_end(self):
        r = UOp.range(4, 0)
        buf = UOp.placeholder((4,), dtypes.float32, 0, AddrSpace.REG)
        assert not buf.after(buf.index(r).store(1.0).end(r)).ranges


class TestDeep:
    DEPTH = 100_000

    def test_everything_at_depth(self):
        u = chain(self.DEPTH)
        assert u.dtype is dtypes.weakint and u.shape == () and u.vmin >= 0
        assert len(u.key) == 32 and len(u.toposort()) > self.DEPTH
        assert pickle.loads(pickle.dumps(u)) is u
        assert repr(u).count("Ops.ADD") == self.DEPTH
        v = u.substitute({UOp.variable("i", 0, 10): UOp.const(5)})
        assert v.op is Ops.ADD and v is not u
        del u, v
        gc.collect()

    def test_key_does_not_depend_on_construction(self):
        import subprocess
        import sys
        code = ("from tinyhost.uop import UOp, Ops\n{}x = UOp.variable('i', 0, 10)\n"
                "print((x * 3 + 4.5).key.hex())")
        keys = {subprocess.run([sys.executable, "-c", code.format(first)], capture_output=True, check=True).stdout
                for first in ("", "y = UOp.const(77) + 1\n")}
        assert len(keys) == 1


class TestVariables:
    def test_bind(self):
        v = UOp.variable("n", 1, 10)
        b = v.bind(3)
        assert b.is_bound_var and b.unbind() == (v, 3) and b.op is Ops.AFTER
        with pytest.raises(AssertionError, match=r"bind 11 not in range \[1, 10\] of variable 'n'"):
            v.bind(11)
        with pytest.raises(AssertionError, match="no multiple of 4"):
            UOp.variable("m", 4, 16, multiple_of=4).bind(5)

    def test_unbind_all(self):
        v = UOp.variable("n", 1, 10)
        free, vals = (v.bind(3) * 2).unbind_all()
        assert free is v * 2 and vals == {v: 3}

    def test_sym_infer(self):
        v = UOp.variable("n", 1, 10)
        assert (v * 3 + 1).sym_infer({"n": 4}) == 13
        with pytest.raises(RuntimeError, match="no value for variable 'n'"):
            (v * 3).sym_infer({})


class TestNumbers:
    def test_decided(self):
        assert int(UOp.const(3) + 4) == 7 and bool(UOp.const(3) < 4) and float(UOp.const(1.5)) == 1.5

    def test_undecided(self):
        with pytest.raises(ValueError, match="is not decided"):
            bool(UOp.variable("i", 0, 10) < 5)
        with pytest.raises(AssertionError):
            int(UOp.const(1.5))


class TestErrors:
    def test_replace(self):
        with pytest.raises(TypeError, match=r"unused kwargs in replace \['dtype'\]"):
            UOp.const(1).replace(dtype=dtypes.int32)

    def test_storage_needs_size_and_dtype(self):
        with pytest.raises(TypeError, match="new_buffer size must be a concrete int"):
            UOp.new_buffer("NPY", UOp.variable("n", 1, 4), dtypes.int32)
        with pytest.raises(RuntimeError, match="cannot create storage for weak dtype"):
            UOp.new_buffer("NPY", 4, dtypes.weakint)
        with pytest.raises(RuntimeError, match="cannot create param for weak dtype"):
            UOp.param(0, dtypes.weakfloat, (3,))

    def test_rewrite_survives_a_deep_graph(self):
        from tinyhost.uop import PatternMatcher, UPat
        pm = PatternMatcher([(UPat(Ops.CONST, arg=6), lambda: UOp.const(60))])
        u = graph_rewrite(chain(50_000), pm)
        assert not any(n.op is Ops.CONST and n.arg == 6 for n in u.toposort())
