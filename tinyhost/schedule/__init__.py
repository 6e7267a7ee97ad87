"""From a tensor graph to kernels: what is computed together, what gets storage, in which order it runs.

``create_linear`` takes a SINK of effects and the capabilities of devices; it gives a LINEAR of CALLs. Nothing is
compiled and nothing runs here; no device is opened. ``docs/scheduling.md`` tells how fusion is decided.
"""
from tinyhost.schedule.driver import create_linear

__all__ = ["create_linear"]
