"""Until when a request may arrive, whatever stood in its way; and whom a fault's detail means."""

from __future__ import annotations

import pytest

from specs.clauses.links import FOR_EVER_US, HoldUps, Sending, arrives_until, hold_up, is_disturbed
from specs.history.text import parse_history
from specs.vocabulary import Kind

S = 1_000_000
BOUND_US = 3 * S
UNLOCK = Sending("alice.2", "b0", Kind.UNLOCK, 1 * S)


def latest(line: str, sending: Sending = UNLOCK) -> int:
    """Until when, in seconds, a request of 1 s may arrive that would arrive by 4 s, given a line of the notation."""
    _info, rows = parse_history(line)
    found = hold_up(rows[0])
    until_us = arrives_until(sending, 4 * S, () if found is None else (found,), BOUND_US, 0)
    return until_us // S


def detail(words: str, span: str = "0s..10s", outcome: str = "ok") -> str:
    return f"{span} rig suffers - detail='{words}' {outcome}"


@pytest.mark.parametrize(
    "words",
    [
        "partition alice b0",
        "partition b0 alice",
        "partition alice.2 b0",
        "hold alice",
        "isolated b0",
        "partition of alice",
        "network partition between alice and b0",
        "partition alice,carol b0",
        "latency",
    ],
)
def test_a_fault_of_the_requests_link_may_hold_it_until_the_bound_after_its_end(words: str) -> None:
    assert latest(detail(words)) == 13


@pytest.mark.parametrize(
    "words",
    [
        "partition bob b0",
        "partition alice b1",
        "partition alic b0",
        "network partition between bob and b0",
        "cut alice b0",
        "lose alice b0 50",
        "disk_full b0",
        "kill_consumer",
        "LOCK_BATCH_MQ=delay:9000 met alice",
        "UNLOCK_BATCH_MQ=delay:9000 met bob",
        "UNLOCK_BATCH_MQ=lose met alice",
        "UNLOCK_BATCH_MQ=delay-answer:9000 met alice",
    ],
)
def test_a_fault_of_another_link_or_one_that_holds_nothing_back_changes_nothing(words: str) -> None:
    assert latest(detail(words)) == 4


def test_a_fault_that_says_by_how_much_holds_no_longer() -> None:
    assert latest(detail("delay alice b0 2000")) == 6
    assert latest(detail("UNLOCK_BATCH_MQ#1@alice=delay:5000 met alice orders b0 3", "999ms")) == 9


def test_only_what_overlaps_the_request_on_its_way_holds_it_up() -> None:
    assert latest(detail("hold alice b0", "0s..900ms")) == 4
    assert latest(detail("hold alice b0", "5s..10s")) == 4
    assert latest(detail("hold alice b0", "4s..10s")) == 13


def test_that_no_effect_of_a_fault_was_seen_does_not_say_that_it_had_none() -> None:
    assert latest(detail("hold alice b0", "0s..10s", "refused")) == 13


def test_who_stands_still_sends_and_reads_later() -> None:
    assert latest("2s..10s alice.2 pauses -") == 13
    assert latest("2s..10s b0 pauses b0") == 13
    assert latest("2s..10s bob pauses -") == 4


def test_what_never_ends_may_hold_a_request_for_ever() -> None:
    assert latest(detail("partition alice b0", "0s..", "ok")) == FOR_EVER_US // S


def test_one_fault_may_follow_another() -> None:
    lines = [detail("hold alice b0", "2s..10s"), detail("hold alice b0", "12s..20s")]
    found = [hold_up(row) for row in parse_history("\n".join(lines))[1]]
    assert arrives_until(UNLOCK, 4 * S, [each for each in found if each], BOUND_US, 0) == 23 * S


@pytest.mark.parametrize(
    ("line", "disturbed"),
    [
        (detail("cut alice b0", "2s..3s"), True),
        (detail("lose alice b0", "2s..3s"), True),
        (detail("cut alice b0", "5s..6s"), False),
        (detail("cut bob b0", "2s..3s"), False),
        ("2s..3s b0 pauses b0", True),
    ],
)
def test_whatever_happens_to_its_link_disturbs_a_request(line: str, disturbed: bool) -> None:
    found = hold_up(parse_history(line)[1][0])
    assert is_disturbed(UNLOCK, 4 * S, () if found is None else (found,), BOUND_US, 0) is disturbed


def test_what_is_over_long_since_is_not_looked_at_again() -> None:
    """Only the tail that may matter, and never what begins later; a long one keeps those after it."""
    lines = [detail("hold alice b0", f"{at}s..{at + 1}s") for at in (0, 10, 20, 30)]
    known = HoldUps()
    for row in parse_history("\n".join(lines))[1]:
        known.take(row)
    everything = known.since(0, FOR_EVER_US)
    assert [each.since_us // S for each in everything] == [0, 10, 20, 30]
    assert [each.since_us // S for each in known.since(20 * S, everything[2].seq)] == [20]
    assert known.since(40 * S, FOR_EVER_US) == []
    known.clear()
    assert list(known.since(0, FOR_EVER_US)) == []
