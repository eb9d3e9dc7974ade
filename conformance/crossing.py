"""`python -m conformance.crossing`, as runs of before the matrix had moved say how to do them again."""

from __future__ import annotations

import runpy

if __name__ == "__main__":  # by its name: nothing here may import what lies above this package
    runpy.run_module("inorder.evidence.interop", run_name="__main__", alter_sys=True)
