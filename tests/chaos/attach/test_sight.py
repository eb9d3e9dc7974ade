"""Who passed the tap, and how far everybody is, as a run of attached chaos asks it."""

from __future__ import annotations

from pathlib import Path

import pytest

from chaos.attach.sight import Met, Sight
from specs.vocabulary import Kind, Outcome

SILENT_US = 1_000
PLACE = {"group": "billing", "topic": "orders", "broker": "b0", "queue_id": 0}


@pytest.fixture
def sight(tmp_path: Path) -> Sight:
    found = Sight(tmp_path, SILENT_US)
    found.met += [Met(0, "c1", "10.0.0.1"), Met(0, "c2", "10.0.0.2")]
    return found


def pulls(sight: Sight, client: str, at_us: int, offset: int = 0) -> None:
    fields = {**PLACE, "client_id": client, "queue_offset": offset}
    sight.begins(("pull", at_us), Kind.PULL, at_us, fields)


def commits(sight: Sight, client: str, at_us: int, value: int) -> None:
    fields = {**PLACE, "client_id": client, "value": value}
    sight.begins(("commit", at_us), Kind.COMMIT, at_us, fields)


def lists(sight: Sight, at_us: int, members: str) -> None:
    """c1 asks who belongs to the group."""
    sight.begins(("list", at_us), Kind.MEMBER, at_us, {"client_id": "c1", "group": "billing"})
    sight.ends(("list", at_us), Outcome.OK, {"view": members})


def test_who_is_named_and_was_never_heard_of_goes_around(sight: Sight) -> None:
    lists(sight, 10, "c1,c2,c3")
    assert sight.around() == ["c3 of the group billing"]
    assert sight.around(since_us=11) == []


def test_who_is_still_named_long_after_its_last_word_goes_around(sight: Sight) -> None:
    """A dead member would be forgotten by then."""
    pulls(sight, "c2", 100)
    lists(sight, 100 + SILENT_US, "c1,c2")
    assert sight.around() == []
    lists(sight, 101 + SILENT_US, "c1,c2")
    assert sight.around() == ["c2 of the group billing"]


def test_who_is_silent_and_named_no_more_does_not(sight: Sight) -> None:
    pulls(sight, "c2", 100)
    lists(sight, 5 * SILENT_US, "c1")
    pulls(sight, "c2", 6 * SILENT_US)
    lists(sight, 6 * SILENT_US + 1, "c1,c2")
    assert sight.around() == []


def test_it_is_known_how_far_all_lanes_are(sight: Sight) -> None:
    pulls(sight, "c1", 1, offset=5)
    assert sight.is_drained  # nothing was committed here, and nothing is owed
    commits(sight, "c1", 2, value=3)
    assert not sight.is_drained
    before = sight.progress
    commits(sight, "c1", 3, value=5)
    assert sight.progress > before
    assert sight.is_drained
