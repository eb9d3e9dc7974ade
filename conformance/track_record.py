"""`python -m conformance.track_record`, as pages of before the track record had moved say how to do an entry again."""

from __future__ import annotations

import runpy

if __name__ == "__main__":  # by its name: nothing here may import what lies above this package
    runpy.run_module("inorder.evidence.track_record", run_name="__main__", alter_sys=True)
