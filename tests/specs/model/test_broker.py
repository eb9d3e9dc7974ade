"""The abstract broker: one step at a time, forks where nobody can know, and says what would have been right."""

from __future__ import annotations

import pytest

from specs.model.broker import (
    Answer,
    Beat,
    Commit,
    CreateTopic,
    Fetch,
    Lock,
    Members,
    Oracle,
    Pull,
    Pushed,
    Request,
    Rules,
    Search,
    Seen,
    Send,
    SendBack,
    State,
    Unlock,
)
from specs.vocabulary import Queue

LANE = Queue("orders", "b0", 0)


def broker(*requests: Request, version: str = "5.x", **numbers: int) -> State:
    """A state after these requests, one each millisecond from 1 on."""
    state = State(Rules.of(version, **numbers))
    for at_ms, request in enumerate((CreateTopic("orders", 2), *requests)):
        ((_, state),) = state.handle("c", at_ms, request, at_ms)
    return state


def answer(state: State, request: Request, at_ms: int = 100) -> Answer | None:
    ((seen, _),) = state.handle("c", 99, request, at_ms)
    return seen.answer


@pytest.mark.parametrize(("at_ms", "granted"), [(61, False), (62, True)])
def test_a_lease_lives_up_to_and_with_its_limit(at_ms: int, granted: bool) -> None:
    state = broker(Lock("g", "alice", (LANE,)), lease_ms=60)
    found = answer(state, Lock("g", "bob", (LANE,)), at_ms)
    assert found == Answer(0, frozenset({LANE} if granted else ()))


def test_only_the_owner_frees_a_lane() -> None:
    state = broker(Lock("g", "alice", (LANE,)), Unlock("g", "bob", (LANE,)))
    assert answer(state, Lock("g", "bob", (LANE,))) == Answer(0, frozenset())
    state = broker(Lock("g", "alice", (LANE,)), Unlock("g", "alice", (LANE,)))
    assert answer(state, Lock("g", "bob", (LANE,))) == Answer(0, frozenset({LANE}))


@pytest.mark.parametrize(
    ("version", "times", "locked", "topic"),
    [
        ("5.x", 2, False, "%RETRY%g"),
        ("5.x", 3, False, "%DLQ%g"),
        ("5.x", 0, True, "%DLQ%g"),
        ("4.9", 1, True, "%RETRY%g"),
        ("4.9", 2, False, "%DLQ%g"),
    ],
)
def test_what_goes_to_the_dead_letters(version: str, times: int, locked: bool, topic: str) -> None:
    leases = [Lock("g", "alice", (LANE,))] if locked else []
    state = broker(*leases, Send("%RETRY%g", 0, "m", times=times, limit=2), version=version)
    assert [queue for queue, log in state.logs.items() if log] == [(topic, 0)]


@pytest.mark.parametrize(("version", "found"), [("5.x", Answer(22)), ("4.9", Answer(0, 0))])
def test_nothing_stored_for_an_empty_queue(version: str, found: Answer) -> None:
    assert answer(broker(version=version), Fetch("g", "orders", 0)) == found


def test_nothing_stored_for_a_queue_that_lost_its_first_message() -> None:
    state = broker(Send("orders", 0, "a"), Send("orders", 0, "b"))
    assert answer(state, Fetch("g", "orders", 0)) == Answer(0, 0)
    state.trim(("orders", 0), 1)
    assert answer(state, Fetch("g", "orders", 0)) == Answer(22)


@pytest.mark.parametrize(
    ("offset", "code", "following"), [(0, 21, 1), (1, 0, 3), (3, 19, 3), (4, 21, 3)]
)
def test_where_a_pull_begins_decides_its_answer(offset: int, code: int, following: int) -> None:
    state = broker(*(Send("orders", 0, name) for name in "abc"))
    state.trim(("orders", 0), 1)
    found = answer(state, Pull("g", "orders", 0, offset))
    assert found is not None
    assert isinstance(found.value, tuple)
    assert (found.code, found.value[0]) == (code, following)


@pytest.mark.parametrize(
    ("at_ms", "upper", "found"), [(1, False, 0), (2, False, 1), (9, False, 2), (1, True, 0)]
)
def test_an_offset_by_time(at_ms: int, upper: bool, found: int) -> None:
    state = broker(Send("orders", 0, "a"), Send("orders", 0, "b"))
    assert answer(state, Search("orders", 0, at_ms, upper)) == Answer(0, found)


def test_a_message_sent_back_comes_after_its_level_with_its_counter() -> None:
    state = broker(Send("orders", 0, "a"), SendBack("g", "orders", 0, 0, level=1), delay_ms=(50,))
    assert state.next_ms() == 52
    ((_, later),) = state.due(52)
    ((message,),) = (log for (topic, _), log in later.logs.items() if topic == "%RETRY%g")
    assert (message.id, message.times, message.origin, message.stored_ms) == ("a", 1, "a", 52)


def test_a_parked_pull_may_be_answered_with_the_first_of_two_that_are_due_together_or_with_both() -> (
    None
):
    state = State(Rules(delay_ms=(50,)), topics={"orders": 1})
    for number in (1, 2):
        ((_, state),) = state.handle("p", number, Send("orders", 0, f"m{number}", level=1), 10)
    ((seen, state),) = state.handle("c", 3, Pull("g", "orders", 0, 0, wait_ms=500), 20)
    assert seen.answer is None
    following = [seen.pushed[0].answer.value[0] for seen, _ in state.due(60)]  # type: ignore[index,union-attr]
    assert sorted(set(following)) == [1, 2]


def test_a_new_member_is_announced_to_all_and_a_silent_one_is_dropped() -> None:
    oracle = Oracle(Rules(channel_expiry_ms=20, channel_scan_ms=10), 0)
    beat = Beat("alice", (("g", frozenset({"orders"})),))
    assert oracle.ask("a", 1, beat, 5, Seen(Answer(0), (Pushed("a", "g"),))) is None
    assert oracle.next_ms() == 30
    assert oracle.due(30, Seen()) is None
    assert oracle.ask("a", 2, Members("g"), 31, Seen(Answer(1))) is None


def test_a_request_without_an_answer_forks_and_an_answer_tells() -> None:
    oracle = Oracle(
        Rules(empty_queue_is_zero=True, unknown_group_commit_code=0, unknown_topic_commit_code=0), 0
    )
    assert oracle.ask("a", 1, Commit("g", "orders", 0, 7), 1, Seen(), answered=False) is None
    assert len(oracle.states) == 2
    wrong = oracle.ask("a", 2, Fetch("g", "orders", 0), 2, Seen(Answer(0, 5)))
    assert "seen was code 0 5, allowed code 0 0 or code 0 7" in str(wrong)
    assert oracle.ask("a", 3, Fetch("g", "orders", 0), 2, Seen(Answer(0, 7))) is None
    assert len(oracle.states) == 1


@pytest.mark.parametrize(("at_ms", "left"), [(9, {3, 5, None}), (40, {5}), (22, {3, 5})])
def test_a_crash_loses_at_most_one_interval_of_commits(at_ms: int, left: set[int | None]) -> None:
    oracle = Oracle(Rules(persist_first_ms=10, persist_ms=10, unknown_group_commit_code=0), 0)
    oracle.ask("a", 0, CreateTopic("orders", 1), 0, Seen(Answer(0)))
    oracle.ask("a", 1, Commit("g", "orders", 0, 3), 4, Seen(Answer(0)))
    oracle.ask("a", 2, Commit("g", "orders", 0, 5), 8 if at_ms < 10 else 20, Seen(Answer(0)))
    oracle.crash(at_ms)
    assert {state.offsets.get(("g", "orders", 0)) for state in oracle.states} == left
