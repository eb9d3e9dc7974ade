"""A client's choice of a queue, held against the table, without a server."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.drivers import java
from conformance.parts.doctor import why_not
from inorder.evidence.track_record.by_table import choose_with_java
from inorder.evidence.track_record.entries import entry
from specs.errors import UsageError
from specs.verdicts.verdict import ClauseVerdict


def needs(version: str) -> None:
    for part in ("java", "maven"):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        java.classes(version)
    except UsageError as error:
        pytest.skip(str(error))


def test_a_target_that_is_no_client_alone() -> None:
    with pytest.raises(UsageError, match="no Java client alone"):
        choose_with_java("rocketmq-local:5.4.0", "", "ORD-6", [1], Path(), lambda _: None)


@pytest.mark.long
@pytest.mark.apache
def test_the_smallest_hash(tmp_path: Path) -> None:
    """Red and green of B-17: the release that has no queue for it, and the next one."""
    found = entry("B-17")
    assert found is not None
    for target, expected in (
        (found.red, ClauseVerdict.REFUTED),
        (found.green, ClauseVerdict.UPHELD),
    ):
        needs(target.partition(":")[2])
        (seen,) = choose_with_java(
            target, found.profile, found.judged_by, [1], tmp_path / target, lambda _: None
        )
        assert (seen.verdict, seen.opportunities > 40) == (expected, True)
        assert (seen.violations, "smallest hash" in seen.explanation) == (
            (9, True) if seen.violations else (0, False)
        )
