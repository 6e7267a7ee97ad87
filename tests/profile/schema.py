"""A strict check of Chrome JSON traces, written from "Trace Event Format" and from nothing of ours.

Sections of docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU: "JSON Object Format", "Event
Descriptions", and one for each phase used here. What the document does not list is refused.
"""
from __future__ import annotations

import json
from decimal import Decimal

COMMON = {"name": str, "cat": str, "ph": str, "ts": Decimal, "pid": int, "tid": int}
PHASES = {  # phase -> (required fields, optional ones)
    "X": ({**COMMON, "dur": Decimal}, {"args": dict, "tts": Decimal, "tdur": Decimal, "id": int, "sf": int}),
    "B": (COMMON, {"args": dict}),
    "E": ({k: COMMON[k] for k in ("ph", "ts", "pid", "tid")}, {"name": str, "cat": str, "args": dict}),
    "i": ({**COMMON, "s": str}, {"args": dict}),
    "C": ({**COMMON, "args": dict}, {"id": int}),
    "M": ({"name": str, "ph": str, "pid": int, "args": dict}, {"tid": int, "ts": Decimal, "cat": str}),
}
METADATA = {"process_name": ("name", str), "process_labels": ("labels", str), "process_sort_index": ("sort_index", int),
            "thread_name": ("name", str), "thread_sort_index": ("sort_index", int)}
TOP = {"traceEvents": list, "displayTimeUnit": str, "systemTraceEvents": str, "otherData": dict, "stackFrames": dict,
       "samples": list}


def load(text: bytes | str) -> dict:
    """The trace, numbers with a point as exact decimals; duplicate keys, NaN and Infinity are refused."""
    def pairs(items):
        keys = [k for k, _ in items]
        assert len(set(keys)) == len(keys), f"a key stands twice: {keys}"
        return dict(items)

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")
    return json.loads(text, parse_float=Decimal, parse_constant=refuse, object_pairs_hook=pairs)


def check(trace: dict) -> None:
    """Fields, their types, and what the phases ask of them."""
    assert isinstance(trace["traceEvents"], list)
    for key, value in trace.items():
        assert key in TOP and isinstance(value, TOP[key]), f"top level field {key}"
    assert trace.get("displayTimeUnit", "ms") in ("ms", "ns")
    for event in trace["traceEvents"]:
        check_event(event)
    names = [(e["pid"], e["name"] if e["name"].startswith("process") else (e["name"], e.get("tid")))
             for e in trace["traceEvents"] if e["ph"] == "M"]
    assert len(set(names)) == len(names), "a process or thread is named twice"
    check_nesting(trace)
    check_counters(trace)


def check_event(event: dict) -> None:
    assert event.get("ph") in PHASES, f"phase of {event}"
    required, optional = PHASES[event["ph"]]
    for field in required:
        assert field in event, f"{field} is missing: {event}"
    for field, value in event.items():
        kind = required.get(field, optional.get(field))
        assert kind is not None, f"{field} is no field of phase {event['ph']}: {event}"
        kinds = (Decimal, int) if kind is Decimal else (kind,)
        assert isinstance(value, kinds) and not isinstance(value, bool), f"{field} is {value!r}: {event}"
    assert event.get("ts", 0) >= 0 and event.get("dur", 0) >= 0, f"time: {event}"
    if event["ph"] == "i":
        assert event["s"] in ("g", "p", "t"), f"scope: {event}"
    if event["ph"] == "C":
        assert event["args"] and all(isinstance(v, (int, Decimal)) for v in event["args"].values()), f"counter: {event}"
    if event["ph"] == "M":
        field, kind = METADATA[event["name"]]
        assert list(event["args"]) == [field] and isinstance(event["args"][field], kind), f"metadata: {event}"


def check_nesting(trace: dict) -> None:
    """Complete events of one track contain each other or are apart ("Complete Events", "Duration Events")."""
    tracks: dict[tuple[int, int], list] = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            tracks.setdefault((e["pid"], e["tid"]), []).append((e["ts"], -e["dur"], e["name"]))
    for track, events in tracks.items():
        ends: list = []
        for ts, dur, name in sorted(events):
            while ends and ends[-1] <= ts:
                ends.pop()
            assert not ends or ts - dur <= ends[-1], f"{name} at {ts} of track {track} cuts across another"
            ends.append(ts - dur)


def check_counters(trace: dict) -> None:
    """Samples of one counter come in order of time."""
    last: dict[tuple[int, str], Decimal] = {}
    for e in trace["traceEvents"]:
        if e["ph"] == "C":
            key = e["pid"], e["name"]
            assert e["ts"] >= last.get(key, 0), f"counter goes back in time: {e}"
            last[key] = e["ts"]


def tracks_of(trace: dict) -> dict[str, dict[str, list]]:
    """Process name -> thread name -> its complete events."""
    process = {e["pid"]: e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "process_name"}
    thread = {(e["pid"], e["tid"]): e["args"]["name"] for e in trace["traceEvents"] if e["name"] == "thread_name"}
    out: dict[str, dict[str, list]] = {name: {} for name in process.values()}
    for e in trace["traceEvents"]:
        if e["ph"] == "X":
            out[process[e["pid"]]].setdefault(thread[e["pid"], e["tid"]], []).append(e)
    return out
