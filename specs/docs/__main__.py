"""Write the generated documents into the repository that this package lies in."""

from __future__ import annotations

import sys
from pathlib import Path

from specs.docs import write_all

ROOT = Path(__file__).resolve().parents[2]

if __name__ == "__main__":
    written = write_all(ROOT)
    sys.stdout.write("".join(f"wrote {path}\n" for path in written) or "nothing was stale\n")
