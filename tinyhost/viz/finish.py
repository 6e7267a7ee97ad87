"""The end of a recording: its trace is written, plugins get its events, and sums are printed if asked for.

A trace that cannot be written where PROFILE_PATH says goes to the folder of temporary files: the run is over, and its
measurements must not be lost. ``Profiling`` is the same for a block.
"""
from __future__ import annotations

import contextlib
import itertools
import json
import os
import sys
import tempfile

from tinyhost.env import PROFILE, PROFILE_PATH
from tinyhost.errors import ProfileError
from tinyhost.events import ProfileEvent
from tinyhost.files import atomic_file
from tinyhost.plugin.hooks import hooks
from tinyhost.profiling import Recording, recorded_in, recording
from tinyhost.viz.summary import summary
from tinyhost.viz.trace import header, trace_events


def write_trace(recording: Recording, path: str | os.PathLike[str]) -> None:
    """Write the trace of a recording to ``path``, whole or not at all.

    Raises:
        ProfileError: it cannot be written there.
    """
    encode = json.JSONEncoder(allow_nan=False, separators=(",", ":")).encode
    try:
        with atomic_file(path, durable=False) as f:
            os.chmod(f.fileno(), 0o600)  # names of kernels and of the program's ranges are nobody else's business
            f.write(encode(header(recording))[:-1].encode() + b',"traceEvents":[')
            # in parts: as plain data all events would take several times the recording's memory
            events, separator = trace_events(recording), "\n"
            while part := list(itertools.islice(events, 1000)):
                f.write((separator + encode(part)[1:-1]).encode())
                separator = ",\n"
            f.write(b"\n]}\n")
    except OSError as e:
        raise ProfileError(f"cannot write the profile to {os.fspath(path)}: {e.strerror or e}; set PROFILE_PATH to a "
                           "file in a writable folder") from e


def finish(recording: Recording) -> None:
    """Write the process's trace and say where it is; at exit, so a path that cannot be used is a line of text."""
    path = PROFILE_PATH.value
    if path:
        try:
            write_trace(recording, path)
        except ProfileError as e:
            print(f"tinyhost: {e}", file=sys.stderr)
            path = ""
    if not path:
        # a folder of our own: others can neither read the file nor lead its name elsewhere
        path = os.path.join(tempfile.mkdtemp(prefix="tinyhost-profile-"), "trace.json")
        write_trace(recording, path)
    if PROFILE.value >= 2:
        try:
            print(summary(recording.events), flush=True)
        except BrokenPipeError:  # nobody reads on; the trace is written, and the rest is still to be done
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    dropped = f" ({recording.dropped} older records were dropped)" if recording.dropped else ""
    print(f"tinyhost: profile written to {path}{dropped}; open it at https://ui.perfetto.dev", file=sys.stderr)
    hooks().call("tinyhost_profile", events=recording.events)


class Profiling(contextlib.ContextDecorator):
    """Record a block: ``with Profiling() as p: ...``, then ``print(p.summary())``.

    What is recorded is what this thread does, and what devices do for it. Inside of another recording, that one gets
    the events too.

    Args:
        path: file for the trace, None for none.
        enabled: False makes the block an ordinary one.
        show: print the sums at the end.

    Raises:
        ProfileError: at the end of the block, if the trace cannot be written.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None, enabled: bool = True, show: bool = False) -> None:
        self.path, self.enabled, self.show = path, enabled, show
        self.recording = Recording()
        self._block = contextlib.ExitStack()

    def _recreate_cm(self) -> Profiling:
        # each call of a decorated function is a recording of its own
        return Profiling(self.path, self.enabled, self.show)

    @property
    def events(self) -> list[ProfileEvent]:
        """What was recorded."""
        return self.recording.events

    def summary(self, rows: int = 20) -> str:
        """Tables of kernels and of phases of the host."""
        return summary(self.events, rows)

    def __enter__(self) -> Profiling:
        if self.enabled:
            self.recording.clear()
            self._outer = recording() if PROFILE.value else None
            self._block.enter_context(recorded_in(self.recording))
        return self

    def __exit__(self, *exc: object) -> None:
        self._block.close()
        if not self.enabled:
            return
        if self._outer is not None:
            self._outer.extend(self.recording)
        if self.show:
            print(self.summary())
        if self.path is not None:
            write_trace(self.recording, self.path)
        if self._outer is None:
            hooks().call("tinyhost_profile", events=self.events)
