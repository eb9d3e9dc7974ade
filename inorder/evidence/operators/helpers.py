"""What lies with the tests: recordings, and both ways to judge rows. A checkout has it."""

from __future__ import annotations

import runpy
import sys
from typing import Any

from inorder.evidence.operators.pools import source_of

TESTS = "tests/spark_checkers"


def helper(name: str) -> dict[str, Any]:
    """The names of a helper's file, run anew: what it imports is what is loaded by then."""
    folder = str(source_of("spark_checkers").parents[1] / TESTS)
    if folder not in sys.path:  # one helper imports another
        sys.path.append(folder)
    return runpy.run_path(f"{folder}/{name}.py")
