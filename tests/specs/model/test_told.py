"""The abstract broker, watched by a client on a network: spans of time, requests without answers, and wrong ones."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from specs.model.broker import (
    Allowed,
    Answer,
    Beat,
    Commit,
    CreateTopic,
    Fetch,
    Lock,
    Members,
    Oracle,
    Request,
    Rules,
    Send,
    Span,
    State,
    Unlock,
)
from specs.model.rules import RULES
from specs.vocabulary import Lane, Queue

QUEUE = Queue("orders", "b0", 0)
LANE = Lane("billing", *QUEUE)
LIMIT = 60_000
FREE, OWN, OTHERS = None, "alice", "bob"
NOW = Span(0, 0)
YES, NO = frozenset({QUEUE}), frozenset[Queue]()


class Watched:
    """An oracle beside which a test plays the broker."""

    def __init__(self, *, known: bool = True) -> None:
        self.oracle = Oracle(Rules(lease_ms=LIMIT, lease_known=known), 0)
        self.tell(CreateTopic("orders", 2), Answer(0))
        self.tell(Beat("shop", (("billing", frozenset({"orders"})),)), Answer(0))

    def tell(
        self,
        request: Request,
        answer: Answer | None,
        at: Span = NOW,
        otherwise: Callable[[State], object] = lambda state: None,
        conn: str = "c",
    ) -> Allowed:
        """answer: None where none came."""
        is_right = None if answer is None else lambda right: right == answer
        return self.oracle.told(conn, request, at, is_right, otherwise)

    def lock(self, client: str, at: Span, granted: bool | None) -> Allowed:
        request = Lock("billing", client, (QUEUE,))
        answer = None if granted is None else Answer(0, YES if granted else NO)
        return self.tell(
            request, answer, at, lambda state: state.granted(request, YES if granted else NO, at)
        )

    def unlock(self, client: str, *, answered: bool = True) -> None:
        self.tell(Unlock("billing", client, (QUEUE,)), Answer(0) if answered else None)

    def may_lock(self, client: str, at: Span) -> set[bool]:
        """What a client that asks now may be answered."""
        asked = self.tell(Lock("billing", client, (QUEUE,)), None, at)
        return {answer.value == YES for answer in asked.answers}


def held_by(holder: str | None, *, known: bool = True) -> Watched:
    made = Watched(known=known)
    if holder is not None:
        made.lock(holder, Span(0, 0), True)
    return made


@pytest.mark.parametrize(
    ("holder", "now_ms", "may"),
    [
        (FREE, 0, {True}),
        (OWN, LIMIT, {True}),
        (OWN, LIMIT + 1, {True}),
        (OTHERS, LIMIT, {False}),
        (OTHERS, LIMIT + 1, {True}),
    ],
)
def test_a_row_of_the_lock_table(holder: str | None, now_ms: int, may: set[bool]) -> None:
    """Expired means strictly older than the limit."""
    assert held_by(holder).may_lock("alice", Span(now_ms, now_ms)) == may


def test_only_the_owner_unlocks() -> None:
    """A stranger's unlock frees nothing, the owner's does at any age."""
    made = held_by("bob")
    made.unlock("alice")
    assert made.oracle.states[0].locks[LANE][0] == "bob"
    made.unlock("bob")
    assert made.may_lock("alice", Span(1, 1)) == {True}


def test_an_unanswered_lock_leaves_both_answers_open() -> None:
    """Nobody can say whether it happened."""
    made = held_by(FREE)
    made.lock("bob", Span(0, 10), None)
    assert made.may_lock("alice", Span(20, 30)) == {True, False}


def test_an_unanswered_unlock_leaves_both_answers_open() -> None:
    made = held_by("bob")
    made.unlock("bob", answered=False)
    assert made.may_lock("alice", Span(20, 30)) == {True, False}


def test_an_answer_removes_the_states_that_it_contradicts() -> None:
    """After a refusal the unanswered request is known to have happened."""
    made = held_by(FREE)
    made.lock("bob", Span(0, 10), None)
    made.lock("alice", Span(20, 30), False)
    assert made.may_lock("carol", Span(40, 40)) == {False}


def test_a_request_across_the_end_of_a_lease_may_be_answered_either_way() -> None:
    """The broker looks at its clock somewhere between the request's begin and its end."""
    assert held_by("bob").may_lock("alice", Span(LIMIT - 5, LIMIT + 5)) == {True, False}


def test_a_grant_across_a_span_is_as_old_as_its_begin_or_its_end() -> None:
    made = Watched()
    made.lock("bob", Span(0, 100), True)
    ends = (LIMIT, LIMIT + 1, LIMIT + 100, LIMIT + 101)
    may = {at: held.may_lock("alice", Span(at, at)) for at in ends for held in [_again(made)]}
    both = {True, False}
    assert may == dict(zip(ends, ({False}, both, both, {True}), strict=True))


def _again(made: Watched) -> Watched:
    other = Watched()
    other.oracle.states = [state.copy() for state in made.oracle.states]
    return other


def test_a_span_that_was_measured_in_microseconds_lies_in_whole_milliseconds_around_it() -> None:
    assert (Span.of_us(1_001, 1_999), Span.of_us(2_000, 3_000)) == (Span(1, 2), Span(2, 3))


def test_a_renewal_makes_the_lease_young_again() -> None:
    made = held_by("bob")
    made.lock("bob", Span(40_000, 40_000), True)
    assert made.may_lock("alice", Span(LIMIT + 1, LIMIT + 1)) == {False}


def test_a_living_lock_is_about_the_group_only() -> None:
    (state,) = held_by("bob").oracle.states
    now, later = Span(LIMIT, LIMIT), Span(LIMIT - 1, LIMIT + 1)
    assert state.surely_has_live_lock("billing", now)
    assert not state.surely_has_live_lock("audit", now)
    assert not state.surely_has_live_lock("billing", later)


@pytest.mark.parametrize("now_ms", [1, LIMIT + 1])
def test_where_the_limit_is_a_guess_time_decides_nothing(now_ms: int) -> None:
    """Another's lease may live or be over at any age; its owner and who frees it are known all the same."""
    now = Span(now_ms, now_ms)
    assert held_by("bob", known=False).may_lock("alice", now) == {True, False}
    assert held_by("bob", known=False).may_lock("bob", now) == {True}
    freed = held_by("bob", known=False)
    freed.unlock("bob")
    assert freed.may_lock("alice", now) == {True}


def test_where_a_send_under_a_lock_goes_is_open_while_the_lease_may_be_over() -> None:
    """In each past the lease lived or did not, and so the message lies in one place or the other."""
    made = held_by("bob")
    made.tell(Send("%RETRY%billing", 0, "m", limit=5), None, Span(LIMIT - 1, LIMIT + 1))
    places = {
        topic for state in made.oracle.states for (topic, _), log in state.logs.items() if log
    }
    assert places == {"%RETRY%billing", "%DLQ%billing"}


def test_a_broker_that_answers_wrongly_is_followed() -> None:
    """The next answer is held against what it said, and not against what it should have said."""
    made = held_by("bob")
    assert made.lock("alice", Span(1, 1), True).answers == (Answer(0, NO),)
    assert made.may_lock("bob", Span(2, 2)) == {False}


# ------------------------------------------------------------------------------------ offsets, queues, members


def test_a_fetch_answers_the_last_commit_whatever_its_size() -> None:
    made = Watched()
    for value in (9, 3):
        made.tell(Commit("billing", "orders", 0, value), Answer(0))
    assert made.tell(Fetch("billing", "orders", 0), None).one == Answer(0, 3)


def test_an_unanswered_commit_may_or_may_not_have_been_stored() -> None:
    made = Watched()
    made.tell(Commit("billing", "orders", 0, 9), None)
    may = made.tell(Fetch("billing", "orders", 0), None)
    assert (set(may.answers), may.one) == ({Answer(0, 9), Answer(22)}, None)
    made.tell(Fetch("billing", "orders", 0), Answer(0, 9))
    assert len(made.oracle.states) == 1


def send(made: Watched, message: str, offset: int | None) -> bool:
    """Was the offset one that was allowed?"""
    answer = None if offset is None else Answer(0, (0, offset))
    allowed = made.tell(
        Send("orders", 0, message),
        answer,
        otherwise=lambda state: state.stored_at(("orders", 0), offset or 0, message),
    )
    return answer in allowed.answers


def test_offsets_are_dense_and_a_lost_send_leaves_one_more_possibility() -> None:
    def end(state: State) -> int:
        return state.end(("orders", 0))

    made = Watched()
    assert send(made, "a", 0)
    assert not send(made, "b", 2)
    assert send(made, "c", 3)
    send(made, "d", None)
    assert made.oracle.agreed(end) is None
    assert send(made, "e", 5)
    assert made.oracle.agreed(end) == 6
    found = made.oracle.states[0].at(("orders", 0), 4)
    assert found is not None
    assert found.id == "d"


def test_an_offset_that_was_given_twice_takes_the_place_of_what_lay_there() -> None:
    made = Watched()
    for message, offset in (("a", 0), ("b", 1), ("c", 0)):
        send(made, message, offset)
    (state,) = made.oracle.states
    assert [message.id for message in state.logs["orders", 0]] == ["c"]


def test_a_member_is_a_connection_and_leaves_with_it() -> None:
    made = Watched()
    beat = Beat("alice", (("billing", frozenset({"orders"})),))
    assert made.tell(beat, Answer(0), conn="first").told == {"c", "first"}
    assert made.tell(beat, Answer(0), conn="first").told == set()
    made.tell(beat, Answer(0), conn="second")
    made.oracle.gone("first")
    listed = made.tell(Members("billing"), None).one
    assert listed == Answer(0, ("alice", "shop"))


# ------------------------------------------------------------------------------------ the rules


def test_every_rule_has_a_sentence_and_a_source() -> None:
    for rule in RULES.values():
        assert rule.statement.endswith(".")
        assert rule.source.startswith("docs/sources.md#")
