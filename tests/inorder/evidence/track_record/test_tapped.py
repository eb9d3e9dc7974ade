"""Scenes with Java clients behind the tap: on our own cluster, and (long) as the track record plays them."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.drivers import java
from conformance.parts.doctor import why_not
from conformance.tap.faults import parse_rule
from inorder.evidence.track_record import scenes
from inorder.evidence.track_record.__main__ import reproduce
from inorder.evidence.track_record.entries import ENTRIES, Entry
from inorder.evidence.track_record.tapped import Played
from specs.errors import TargetMisbehaved, UsageError
from specs.verdicts.verdict import ClauseVerdict

SCENES = [each for each in ENTRIES if isinstance(each.trial, Played)]


def needs(*parts: str) -> None:
    for part in ("java", "maven", *parts):
        if (reason := why_not(part)) is not None:
            pytest.skip(reason)
    try:
        java.classes("5.4.0")
    except UsageError as error:
        pytest.skip(str(error))


@pytest.mark.long
@pytest.mark.apache
def test_an_error_in_the_second_look_up_on_our_cluster(tmp_path: Path) -> None:
    """Client 5.4.0 asks again, so that the start is right; and a fault that met nothing is no success."""
    needs()
    target = "reference+java:5.4.0"
    trial = Played(
        scenes.a_member_starts_where_another_stopped,
        rules=(parse_rule("QUERY_CONSUMER_OFFSET#2@c1=answer:1"),),
    )
    (seen,) = trial(target, "rocketmq-5-orderly", "CMT-8", [1], tmp_path, lambda _: None)
    assert (seen.verdict, seen.opportunities > 0) == (ClauseVerdict.UPHELD, True)
    idle = Played(
        scenes.a_member_starts_where_another_stopped, rules=(parse_rule("SEND_BATCH_MESSAGE=lose"),)
    )
    with pytest.raises(TargetMisbehaved, match="met no request"):
        idle(target, "rocketmq-5-orderly", "CMT-8", [2], tmp_path, lambda _: None)


@pytest.mark.apache
@pytest.mark.long
@pytest.mark.parametrize("entry", SCENES, ids=lambda each: each.id)
def test_red_and_green(entry: Entry, tmp_path: Path) -> None:
    versions = {side.partition(":")[2].partition("+")[0] for side in (entry.red, entry.green)}
    needs(*(f"rocketmq-{version}" for version in versions))
    assert reproduce(entry, 1, tmp_path, lambda _: None).reproduced
