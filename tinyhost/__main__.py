"""``python -m tinyhost``: the same as the command ``tinyhost``."""
import sys

from tinyhost.cli import main

if __name__ == "__main__":
    sys.exit(main())
