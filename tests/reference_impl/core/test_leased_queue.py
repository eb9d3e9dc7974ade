"""A queue whose messages are leased one by one: who has a message, until when, and where the floor is."""

from __future__ import annotations

from reference_impl.core.leased_queue import HandOut, LeasedQueue

LEASE_MS = 100


def queue(messages: int, *, limit: int = -1, outstanding: int = 1) -> LeasedQueue:
    made = LeasedQueue(LEASE_MS, limit, outstanding)
    for _ in range(messages):
        made.append()
    return made


def test_the_lowest_unfinished_message_is_handed_out_and_nothing_beside_it() -> None:
    """Until it is acknowledged; then the next one is."""
    leased = queue(2)
    assert leased.receive(0, "alice") == HandOut(0, "0-1", 0, LEASE_MS)
    assert leased.receive(1, "bob") is None
    assert leased.ack(2, "0-1")
    assert leased.receive(3, "bob") == HandOut(1, "1-1", 0, 3 + LEASE_MS)
    assert leased.floor == 1


def test_a_lease_ends_in_time_and_what_is_asked_under_it_then_changes_nothing() -> None:
    """The next holder's is another one, with the count of hand-outs."""
    leased = queue(1)
    leased.receive(0, "alice")
    assert leased.receive(LEASE_MS - 1, "bob") is None
    assert leased.receive(LEASE_MS, "bob") == HandOut(0, "0-2", 1, 2 * LEASE_MS)
    assert not leased.ack(LEASE_MS + 1, "0-1")
    assert not leased.release(LEASE_MS + 1, "0-1")
    assert leased.renew(LEASE_MS + 1, "0-1") is None
    assert leased.receive(LEASE_MS + 2, "carol") is None
    assert leased.ack(LEASE_MS + 3, "0-2")


def test_a_renewed_lease_counts_anew() -> None:
    leased = queue(1)
    leased.receive(0, "alice")
    assert leased.renew(60, "0-1") == 60 + LEASE_MS
    assert leased.receive(LEASE_MS, "bob") is None
    assert leased.receive(60 + LEASE_MS, "bob") == HandOut(0, "0-2", 1, 60 + 2 * LEASE_MS)


def test_what_was_put_back_with_a_pause_holds_back_what_lies_behind_it() -> None:
    leased = queue(2)
    leased.receive(0, "alice")
    assert leased.release(1, "0-1", pause_ms=50)
    assert leased.receive(50, "bob") is None
    assert leased.receive(51, "bob") == HandOut(0, "0-2", 1, 51 + LEASE_MS)


def test_a_message_that_was_handed_out_once_more_than_the_limit_is_given_up() -> None:
    leased = queue(2, limit=1)
    for turn in range(2):
        handed = leased.receive(turn, "alice")
        assert handed is not None
        assert handed.offset == 0
        leased.release(turn, handed.receipt)
    assert leased.given_up == [0]
    assert leased.floor == 1
    assert leased.receive(5, "alice") == HandOut(1, "1-1", 0, 5 + LEASE_MS)


def test_the_floor_is_the_first_unfinished_message_whatever_was_acknowledged_behind_it() -> None:
    leased = queue(3, outstanding=3)
    for _ in range(3):
        leased.receive(0, "alice")
    leased.ack(1, "2-1")
    leased.ack(1, "1-1")
    assert leased.floor == 0
    leased.ack(2, "0-1")
    assert leased.floor == 3
