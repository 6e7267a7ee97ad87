"""Traces: valid by the format's rules, and the same sums as the counters, for eager runs, replays and graphs."""
from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.profile.schema import check, load, tracks_of
from tinyhost import GlobalCounters, Tensor, TinyJit, Variable
from tinyhost.env import Context
from tinyhost.events import (
    ProfileGraphEntry,
    ProfileGraphEvent,
    ProfileKernelEvent,
    ProfileMemoryEvent,
    TracingKey,
    kernels_of,
)
from tinyhost.profiling import (
    Recording,
    clock_offset,
    cpu_profile,
    profile_marker,
    record_device,
    record_kernels,
    recorded_in,
)
from tinyhost.viz import Profiling, trace_of, write_trace
from tinyhost.viz.trace import apart, nested


def written(recording, tmp_path):
    path = tmp_path / "trace.json"
    write_trace(recording, path)
    trace = load(path.read_bytes())
    check(trace)
    return trace


def launches(trace):
    return [e for e in trace["traceEvents"] if e["ph"] == "X" and e["cat"] in ("kernel", "copy") and e["pid"] > 1]


def eager():
    a, b = Tensor.rand(32, 32, device="CPU").realize(), Tensor.rand(32, 32, device="CPU").realize()
    (a @ b).relu().sum().realize()
    Tensor([1, 2, 3], device="CPU").to("CPU:1").realize()


@TinyJit
def step(x):
    return (x @ x).relu().sum().realize()


def replayed():
    for _ in range(4):
        step(Tensor.rand(16, 16, device="CPU").realize())


def replayed_on_two_devices():
    """Copies, kernels on each device, and sizes that change from call to call."""
    jit = TinyJit(lambda x, w: ((x * 2).to("CPU:1").contiguous() + 1).realize())
    x = Tensor.rand(16, 4, device="CPU").realize()
    for n in (3, 5, 7, 16, 1):
        jit(x[:Variable("n", 1, 16).bind(n)].contiguous().realize(), x)


def replayed_without_graphs():
    with Context(JIT=2):
        replayed()


@pytest.mark.parametrize("program", [eager, replayed, replayed_on_two_devices, replayed_without_graphs])
def test_sums_are_those_of_the_counters(program, tmp_path):
    GlobalCounters.reset()
    with Profiling() as p:
        program()
    trace = written(p.recording, tmp_path)
    found = launches(trace)
    assert len(found) == GlobalCounters.kernel_count > 0
    assert sum(e["args"]["bytes"] for e in found) == GlobalCounters.global_mem > 0
    assert sum(e["args"]["flops"] for e in found) == GlobalCounters.global_ops > 0


def test_what_stands_in_a_trace(tmp_path):
    with Context(SCACHE=0, CCACHE=0, CACHELEVEL=0), Profiling() as p, cpu_profile("mine"):
        (Tensor.rand(8, 8, device="CPU").realize() + 41).realize()
        profile_marker("here", key=7, loss=0.5)
        Tensor([1, 2, 3], device="CPU").to("CPU:1").realize()
        held = Tensor.empty(1000, device="CPU").realize()
        (held + 1).realize()
    trace = written(p.recording, tmp_path)
    tracks = tracks_of(trace)
    host = tracks["host"]["MainThread"]
    assert {e["cat"] for e in host} >= {"schedule", "user", "copy"}
    mine = next(e for e in host if e["name"] == "mine")
    assert all(mine["ts"] <= e["ts"] and e["ts"] + e["dur"] <= mine["ts"] + mine["dur"] for e in host)
    kernel = next(e for e in tracks["CPU"]["kernels"] if e["cat"] == "kernel")
    assert set(kernel["args"]) == {"global size", "bytes", "flops", "GFLOP/s", "GB/s"}
    assert len(kernel["args"]["global size"]) == 3
    assert any(e["cat"] == "copy" and e["name"].endswith("CPU:1 <- CPU") for e in tracks["CPU:1"]["kernels"])
    marker = next(e for e in trace["traceEvents"] if e["ph"] == "i" and e["cat"] == "marker")
    assert marker["name"] == "here" and {k: float(v) for k, v in marker["args"].items()} == {"loss": 0.5, "key": 7}
    counters = [e for e in trace["traceEvents"] if e["ph"] == "C"]
    assert {e["name"] for e in counters} == {"allocated"} and all(set(e["args"]) == {"bytes"} for e in counters)
    assert [e for e in trace["traceEvents"] if e.get("cat") == "program" and e["name"].startswith("load ")]
    assert "dropped" not in trace["otherData"]


def test_rates_are_those_of_the_event(tmp_path):
    own = Recording()
    own.add(ProfileKernelEvent("ACME", "k", 1000, 3000, (2, 3, 4), ops=8000, nbytes=5000))
    own.add(ProfileKernelEvent("ACME", "moment", 4000, 4000, (1, 1, 1), ops=8, nbytes=4))
    own.add(ProfileMemoryEvent("ACME", 12, 500))
    trace = written(own, tmp_path)
    k, moment = launches(trace)
    assert float(k["ts"]) == 0.5 and float(k["dur"]) == 2  # microseconds after the first event
    assert json.loads(json.dumps(k["args"], default=float)) == {
        "global size": [2, 3, 4], "bytes": 5000, "flops": 8000, "GFLOP/s": 4.0, "GB/s": 2.5}
    assert "GB/s" not in moment["args"] and moment["dur"] == 0


def test_a_range_that_belongs_to_something(tmp_path):
    own = Recording()
    with recorded_in(own), cpu_profile(TracingKey("lower", keys=("k1", 2), ret="E_4")):
        pass
    found = next(e for e in written(own, tmp_path)["traceEvents"] if e["ph"] == "X")
    assert found["name"] == "lower" and found["args"] == {"keys": ["k1", 2], "result": "E_4"}


def test_replayed_kernels_lie_inside_of_their_call(tmp_path):
    """Host and device are measured with one clock, and each replay's kernels ended before it returned."""
    x = Tensor.rand(64, 64, device="CPU").realize()
    jit = TinyJit(lambda x: ((x @ x).relu().realize() + 1).sum(0).realize())
    jit(x)
    jit(x)
    with Profiling() as p:
        for _ in range(3):
            jit(x)
    tracks = tracks_of(written(p.recording, tmp_path))
    calls = [(e["ts"], e["ts"] + e["dur"]) for e in tracks["host"]["MainThread"] if e["cat"] == "TinyJit"]
    kernels = [e for e in tracks["CPU"]["kernels"] if e["cat"] == "kernel"]
    inside = [[e["name"] for e in kernels if a <= e["ts"] and e["ts"] + e["dur"] <= b] for a, b in calls]
    assert len(inside) == 3 and len(inside[0]) >= 2 and inside[0] == inside[1] == inside[2]
    assert sum(map(len, inside)) == len(kernels)


# *** graphs ***
ENTRIES = [ProfileGraphEntry("ACME", "\x1b[31ma\x1b[0m", (4, 1, 1), 100, 64),
           ProfileGraphEntry("ACME", "b", (1, 1, 1), 10, 8),
           ProfileGraphEntry("ACME:1", "copy 8", nbytes=8, is_copy=True)]


def graph(*sigs, clock=""):
    own = Recording()
    with recorded_in(own):
        record_kernels(ENTRIES, sigs, clock)
    return own


def test_kernels_of_a_graph(tmp_path):
    own = graph((0, 0, 1000, 2000), (0, 1, 1100, 1900), (1, 1, 1900, 2500), (0, 2, 1050, 1300), (2, 0, 2600, 2700))
    k = kernels_of(own.events)
    assert [(x.device, x.name, x.st, x.en, x.ops, x.nbytes, x.is_copy, len(x.parts)) for x in k] == [
        ("ACME", "a", 1000, 2000, 100, 64, False, 3), ("ACME", "b", 1900, 2500, 10, 8, False, 1),
        ("ACME:1", "copy 8", 2600, 2700, 0, 8, True, 1)]
    tracks = tracks_of(written(own, tmp_path))
    # a and b overlap, so they cannot stand on one track
    assert [e["name"] for e in tracks["ACME"]["kernels"]] == ["a"]
    assert [e["name"] for e in tracks["ACME"]["kernels (1)"]] == ["b"]
    assert {n: [e["name"] for e in t] for n, t in tracks["ACME"].items() if n.startswith("worker")} == {
        "worker 0": ["a"], "worker 1": ["a", "b"], "worker 2": ["a"]}


def test_a_launch_that_did_not_run_is_no_kernel():
    assert [k.name for k in kernels_of(graph((1, 0, 10, 20)).events)] == ["b"]


def test_a_clock_of_its_own(tmp_path):
    own = graph((0, 0, 10, 30), (1, 1, 30, 60), clock="ACME")
    own.add(ProfileKernelEvent("ACME", "eager", 5_000_000, 5_000_010))  # in the host's clock
    with recorded_in(own):
        record_device("ACME", 5_000_000 - 10, driver="1.2")
    found = {k.name: (k.st, k.en, k.parts) for k in kernels_of(own.events)}
    assert found == {"a": (5_000_000, 5_000_020, ((0, 5_000_000, 5_000_020),)),
                     "b": (5_000_020, 5_000_050, ((1, 5_000_020, 5_000_050),)), "eager": (5_000_000, 5_000_010, ())}
    assert written(own, tmp_path)["otherData"]["devices"] == {"ACME": {"driver": "1.2"}}


def test_the_offset_is_the_median_of_readings(monkeypatch):
    host = iter(range(0, 10_000, 100))
    monkeypatch.setattr("tinyhost.profiling.perf_counter_ns", lambda: next(host))
    # the host reads 0, 100, 200, ...: the middle of reading n is 200 n + 50; one reading took far too long
    device = iter([50 - 7, 250 - 7, 450 - 100_000, 650 - 7, 850 - 7])
    assert clock_offset(lambda: next(device), samples=5) == 7


# *** tracks ***
SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda p: (p[0], p[0] + p[1])), max_size=30)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(SPANS)
def test_any_spans_make_a_valid_trace(spans):
    own = Recording()
    for i, (start, end) in enumerate(spans):
        own.add(ProfileKernelEvent("ACME", f"k{i}", start, end, parts=((i % 2, start, end),)))
    trace = load(json.dumps(trace_of(own)))
    check(trace)
    assert len(launches(trace)) == len(spans)
    for lanes in (nested(spans), apart(spans)):
        assert sorted(set(lanes)) == list(range(len(set(lanes))))


@settings(max_examples=200, deadline=None, derandomize=True)
@given(SPANS)
def test_launches_of_a_track_do_not_overlap(spans):
    for lane in set(lanes := apart(spans)):
        own = sorted(s for s, n in zip(spans, lanes) if n == lane)
        assert all(a[1] <= b[0] for a, b in zip(own, own[1:]))
    # as few tracks as there are launches at one moment
    assert len(set(lanes)) <= max((sum(a <= x < b or x == a for a, b in spans) for x, _ in spans), default=0)


def test_values_that_json_cannot_hold(tmp_path):
    own = Recording()
    with recorded_in(own), cpu_profile("odd") as event:
        event.args |= {"nan": float("nan"), "inf": float("-inf"), "set": {1}, "nested": [{2: (3, None)}]}
    found = next(e for e in written(own, tmp_path)["traceEvents"] if e["ph"] == "X")
    assert found["args"] == {"nan": "nan", "inf": "-inf", "set": "{1}", "nested": [{"2": [3, None]}]}


def test_an_empty_recording(tmp_path):
    assert [e["ph"] for e in written(Recording(), tmp_path)["traceEvents"]] == ["M"]


def test_the_file_is_the_data(tmp_path):
    with Profiling() as p:
        eager()
    trace = written(p.recording, tmp_path)
    assert trace == load(json.dumps(trace_of(p.recording)))


@pytest.mark.parametrize("fault", [
    lambda t: t["traceEvents"][-1].pop("dur"), lambda t: t["traceEvents"][-1].update(dur=-1),
    lambda t: t["traceEvents"][-1].update(ph="Z"), lambda t: t["traceEvents"][-1].update(color="red"),
    lambda t: t.update(more=1), lambda t: t["traceEvents"][-1].update(pid="1"),
    lambda t: t["traceEvents"].append({**t["traceEvents"][-1], "ts": t["traceEvents"][-1]["ts"] - 1})])
def test_the_check_finds_faults(fault):
    own = Recording()
    own.add(ProfileKernelEvent("ACME", "k", 1000, 2000))
    own.add(ProfileGraphEvent(ENTRIES, ((0, 0, 3000, 9000),)))
    trace = trace_of(own)
    check(load(json.dumps(trace)))
    trace["traceEvents"].sort(key=lambda e: e["ph"] == "X")
    assert trace["traceEvents"][-1]["ph"] == "X"
    fault(trace)
    with pytest.raises((AssertionError, KeyError)):
        check(load(json.dumps(trace)))
