"""Jobs in threads that start at once; what one of them raises, the test raises."""
from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


def together(*jobs: Callable[[], Any]) -> None:
    """Run jobs in threads; the first error is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(jobs))

    def guarded(job: Callable[[], Any]) -> None:
        try:
            start.wait()
            job()
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=guarded, args=(j,)) for j in jobs]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    if errors:
        raise errors[0]
