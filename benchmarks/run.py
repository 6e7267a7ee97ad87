"""Every benchmark in turn, each in its own process: `make bench`, or some: `python benchmarks/run.py kernels`."""
from __future__ import annotations

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LIBRARY = {"run", "rounds"}


def main() -> None:
    every = sorted(p.stem for p in HERE.glob("*.py") if p.stem not in LIBRARY)
    chosen = sys.argv[1:] or every
    unknown = sorted(set(chosen) - set(every))
    if unknown:
        sys.exit(f"no benchmark named {', '.join(unknown)}: there are {', '.join(every)}")
    env = {"DEV": "CPU", **os.environ}
    failed = []
    for name in chosen:
        print(f"=== {name}", flush=True)
        if subprocess.run([sys.executable, str(HERE / f"{name}.py")], env=env, check=False).returncode:
            failed.append(name)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
