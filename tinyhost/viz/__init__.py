"""What a run leaves to look at: traces for Perfetto, sums as text."""
from __future__ import annotations

from tinyhost.viz.finish import Profiling as Profiling
from tinyhost.viz.finish import write_trace as write_trace
from tinyhost.viz.summary import summary as summary
from tinyhost.viz.trace import trace_of as trace_of

__all__ = ["Profiling", "summary", "trace_of", "write_trace"]
