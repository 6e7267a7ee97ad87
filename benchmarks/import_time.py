"""What `from tinyhost import Tensor` costs beyond `import numpy`, and a first realization in a fresh process.

Child processes alternate between the cases, so that a busy machine slows all of them alike; CPU time of the child is
taken inside it, without start and end of the interpreter. Prints medians in milliseconds. Bytecode is written to a
folder of its own first, as an installed wheel has it. Usage: python benchmarks/import_time.py [rounds]
"""
from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile

CASES = {
    "import numpy": "import numpy",
    "from tinyhost import Tensor": "from tinyhost import Tensor",
    "Tensor([1]).realize(), warm cache": "from tinyhost import Tensor; Tensor([1]).realize()",
    "(Tensor([1]) + 1).tolist(), warm cache": "from tinyhost import Tensor; (Tensor([1]) + 1).tolist()",
}
CHILD = "import time; c, w = time.process_time(), time.perf_counter(); {code}; " \
        "print(time.process_time() - c, time.perf_counter() - w)"


def measure(code: str, env: dict[str, str]) -> tuple[float, float]:
    """(CPU, wall) milliseconds of ``code`` in a fresh process."""
    command = [sys.executable, "-c", CHILD.format(code=code)]
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    cpu, wall = map(float, done.stdout.split()[-2:])
    return cpu * 1e3, wall * 1e3


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o700)
        env = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
        env |= {"PYTHONPYCACHEPREFIX": f"{folder}/bytecode", "CACHEDIR": f"{folder}/cache"}
        for code in CASES.values():
            measure(code, env)
        taken: dict[str, list[tuple[float, float]]] = {name: [] for name in CASES}
        for _ in range(rounds):
            for name, code in CASES.items():
                taken[name].append(measure(code, env))
    base = statistics.median(cpu for cpu, _ in taken["import numpy"])
    print(f"{'':40s} {'cpu ms':>8s} {'wall ms':>8s} {'cpu beyond numpy':>17s}")
    for name, times in taken.items():
        cpu, wall = (statistics.median(t[i] for t in times) for i in (0, 1))
        print(f"{name:40s} {cpu:8.1f} {wall:8.1f} {cpu - base:17.1f}")


if __name__ == "__main__":
    main()
