"""Every benchmark in turn, each in its own process, then the report: `make bench`; some: `benchmarks/run.py kernels`.

Records of all benchmarks are gathered in one file; a run of all of them ends with docs/performance.md and its charts
(`report.py`), a run of some with the tables only.
"""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = {"run", "rounds", "records", "peers", "report", "charts", "networks", "torch_models"}


def main() -> None:
    every = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in LIBRARY)
    chosen = sys.argv[1:] or every
    unknown = sorted(set(chosen) - set(every))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}: there are {', '.join(every)}")
    failed = []
    with tempfile.TemporaryDirectory() as folder:
        records = pathlib.Path(folder) / "records.jsonl"
        env = {"DEV": "CPU", "BENCH_RECORDS": str(records), **os.environ}
        for name in chosen:
            print(f"=== {name}", flush=True)
            if subprocess.run([sys.executable, str(HERE / f"{name}.py")], env=env, check=False).returncode:
                failed.append(name)
        kept = pathlib.Path(env["BENCH_RECORDS"])
        if not sys.argv[1:] and kept.exists():
            subprocess.run([sys.executable, str(HERE / "report.py"), str(kept)], check=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
