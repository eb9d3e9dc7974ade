"""What `python -m conformance.parts.PART` prints: a line for each part that is there now."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from specs.errors import InorderError


def tell(parts: Iterable[str]) -> int:
    """Prints each line as its part is there; an exit code. What can't be had is one sentence on stderr."""
    try:
        for line in parts:
            sys.stdout.write(f"{line}\n")
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0
