"""What a running history shows: who is at work, what is finished, whose lanes others have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.live import Live
from specs.history.journal import Journal
from specs.vocabulary import Kind, Outcome

LANE = {"group": "g", "topic": "t", "broker": "b0", "queue_id": 0}


@pytest.fixture
def journal(tmp_path: Path) -> Journal:
    return Journal(tmp_path, "clients")


def deliver(journal: Journal, client: str, message: str) -> object:
    call = object()
    journal.begin(call, Kind.DELIVER, {**LANE, "client_id": client, "message_id": message})
    return call


def test_a_listener_is_at_work_between_begin_and_end(journal: Journal, tmp_path: Path) -> None:
    live = Live(tmp_path)
    call = deliver(journal, "c1", "m1")
    live.look()
    assert (live.is_at_work("c1"), live.is_at_work("c2"), live.finished_by("c1")) == (
        True,
        False,
        0,
    )
    journal.end(call, Outcome.SUCCESS)
    live.look()
    assert (live.is_at_work("c1"), live.finished_by("c1"), live.finished_by("")) == (False, 1, 1)


def test_a_failed_call_finishes_nothing(journal: Journal, tmp_path: Path) -> None:
    live = Live(tmp_path)
    journal.end(deliver(journal, "c1", "m1"), Outcome.SUSPEND)
    live.look()
    assert (live.finished_by("c1"), live.is_at_work("c1")) == (0, False)


def test_the_dead_are_not_at_work(journal: Journal, tmp_path: Path) -> None:
    live = Live(tmp_path)
    deliver(journal, "c1", "m1")
    journal.note(Kind.CRASH, Outcome.OK, {"client_id": "c1"})
    live.look()
    assert not live.is_at_work("c1")
    deliver(journal, "c1", "m1")
    live.look()
    assert live.is_at_work("c1")


def test_lanes_are_taken_over_when_another_has_delivered_each(
    journal: Journal, tmp_path: Path
) -> None:
    live = Live(tmp_path)
    deliver(journal, "c1", "m1")
    since = journal_time(tmp_path)
    live.look()
    assert not live.is_taken_over("c1", since)
    deliver(journal, "c2", "m1")
    live.look()
    assert live.is_taken_over("c1", since)


def test_a_retry_topic_has_nothing_for_its_next_owner(journal: Journal, tmp_path: Path) -> None:
    live = Live(tmp_path)
    retried = {**LANE, "topic": "%RETRY%g", "client_id": "c1", "message_id": "m0"}
    journal.end(deliver(journal, "c1", "m1"), Outcome.SUCCESS)
    journal.begin("again", Kind.DELIVER, retried)
    since = journal_time(tmp_path)
    deliver(journal, "c2", "m1")
    live.look()
    assert live.is_taken_over("c1", since)


def test_all_is_caught_up_when_what_was_acknowledged_is_finished_or_given_up(
    journal: Journal, tmp_path: Path
) -> None:
    live = Live(tmp_path)
    for message in ("m1", "m2"):
        journal.note(Kind.SEND, Outcome.OK, {"message_id": message})
    journal.end(deliver(journal, "c1", "m1"), Outcome.SUCCESS)
    live.look()
    assert not live.is_caught_up
    journal.note(Kind.DEAD_LETTER, Outcome.OK, {"message_id": "m2"})
    live.look()
    assert live.is_caught_up
    journal.begin("open", Kind.SEND, {"message_id": "m3"})
    live.look()
    assert not live.is_caught_up


def test_a_line_that_is_being_written_waits_for_the_next_look(tmp_path: Path) -> None:
    journal = Journal(tmp_path, "clients")
    live = Live(tmp_path)
    path = tmp_path / "journal" / "clients.0.jsonl"
    whole = path.read_bytes()
    line = b'{"e":"note","t":5,"kind":"join","outcome":"ok","fields":{"client_id":"c1"}}\n'
    path.write_bytes(whole + line[:20])
    live.look()
    assert live.joins_of("c1") == 0
    path.write_bytes(whole + line)
    live.look()
    assert live.joins_of("c1") == 1
    journal.close()


def journal_time(folder: Path) -> int:
    """A moment after all that was written, and before all that will be."""
    lines = (folder / "journal" / "clients.0.jsonl").read_text().splitlines()
    return int(json.loads(lines[-1])["t"]) + 1
