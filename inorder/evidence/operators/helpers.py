"""What lies with the tests of the kernels: drawn histories, recordings, both engines asked alike. A checkout has it."""

from __future__ import annotations

import runpy
from typing import Any

from inorder.evidence.operators.pools import source_of

TESTS = "tests/spark_checkers"


def helper(name: str) -> dict[str, Any]:
    """The names of a helper's file, run anew: what it imports is what is loaded by then."""
    root = source_of("spark_checkers").parents[1]
    return runpy.run_path(str(root / TESTS / f"{name}.py"))
