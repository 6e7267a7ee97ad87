"""``python -m tinyhost.uop.spec`` prints ``docs/spec.md``."""
from tinyhost.uop.spec.document import text

if __name__ == "__main__":
    print(text(), end="")
