"""A trial against a released broker: the rule tells the release that has the bug from the one that has not."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts.doctor import why_not
from inorder.evidence.track_record.on_the_wire import ask_over_the_wire
from specs.verdicts.verdict import ClauseVerdict


@pytest.mark.long
@pytest.mark.apache
@pytest.mark.parametrize("version", ["4.9.7", "5.4.0"])
def test_the_dead_letter_delay(version: str, tmp_path: Path) -> None:
    """That the mended release keeps the clause, every run of the tests sees in test_conform_wire.py."""
    for part in ("java", f"rocketmq-{version}"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    seen = ask_over_the_wire(
        f"rocketmq-local:{version}", "rocketmq-5-orderly", "DLQ-7", [1], tmp_path, lambda _: None
    )
    expected = ClauseVerdict.REFUTED if version == "4.9.7" else ClauseVerdict.UPHELD
    assert [each.verdict for each in seen] == [expected]
    assert version != "4.9.7" or len(seen[0].witness) <= 10
