"""A trial with the Java client at work, here on our own cluster: the clause judges what the driver told."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.drivers import java
from conformance.parts.doctor import why_not
from inorder.evidence.track_record.with_java import consume_with_java
from specs.errors import UsageError
from specs.verdicts.verdict import ClauseVerdict


@pytest.mark.long
@pytest.mark.apache
def test_what_is_given_up_reaches_our_dead_letters(tmp_path: Path) -> None:
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        java.classes("5.4.0")
    except UsageError as error:
        pytest.skip(str(error))
    (seen,) = consume_with_java(
        "reference+java:5.4.0", "rocketmq-5-orderly", "DLQ-1", [1], tmp_path, lambda _: None
    )
    assert (seen.verdict, seen.opportunities) == (ClauseVerdict.UPHELD, 1)
