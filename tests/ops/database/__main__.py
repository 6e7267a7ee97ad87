"""Writes docs/ops.md: ``python -m tests.ops.database``."""
from __future__ import annotations

from .page import PAGE, page

if __name__ == "__main__":
    PAGE.write_text(page())
    print(f"wrote {PAGE}")
