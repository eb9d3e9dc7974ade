"""The abstract offset table, queue and membership: what may be answered, and what silence leaves open."""

from __future__ import annotations

from specs.model.membership import Membership
from specs.model.offset_table import NOTHING, OffsetTable
from specs.model.queue_log import QueueLog
from specs.model.rules import RULES
from specs.vocabulary import Lane

LANE = Lane("billing", "orders", "b0", 0)


def test_a_fetch_answers_the_last_commit_whatever_its_size() -> None:
    table = OffsetTable()
    table.commit(LANE, 9, answered=True)
    table.commit(LANE, 3, answered=True)
    assert table.fetched(LANE, 3)
    assert not table.fetched(LANE, 9)


def test_an_unanswered_commit_may_or_may_not_have_been_stored() -> None:
    table = OffsetTable()
    table.commit(LANE, 9, answered=False)
    assert table.values(LANE) == {NOTHING, 9}


def test_offsets_are_dense_and_a_lost_send_leaves_one_more_possibility() -> None:
    log = QueueLog()
    assert log.sent("a", 0)
    assert not log.sent("b", 2)
    assert log.sent("c", 3)
    assert log.sent("d", None)
    assert log.end is None
    assert log.sent("e", 5)
    assert log.end == 6


def test_a_member_is_a_connection_and_leaves_with_it() -> None:
    members = Membership()
    assert members.heartbeat("billing", "first", "alice")
    assert not members.heartbeat("billing", "first", "alice")
    assert members.heartbeat("billing", "second", "alice")
    assert members.listed("billing") == ["alice", "alice"]
    members.gone("first")
    assert members.listed("billing") == ["alice"]


def test_every_rule_has_a_sentence_and_a_source() -> None:
    for rule in RULES.values():
        assert rule.statement.endswith(".")
        assert rule.source.startswith("docs/sources.md#")
