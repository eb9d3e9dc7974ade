"""Each consumer mutant beside the correct consumer: one scene in which only the bug can make the difference.

That a judge sees the difference in a whole cluster's history is another test's affair.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from reference_impl.core.consumer import ConsumerConfig, consumer_class
from reference_impl.mutants import Mutant, all_mutants, load
from reference_impl.protocol.codes import RequestCode, ResponseCode
from specs.vocabulary import Kind, Outcome, Queue

LANE = Queue("t", "b0", 0)
LOCK, SEND, QUERY = (
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.QUERY_CONSUMER_OFFSET,
)
MEMBERS = RequestCode.GET_CONSUMER_LIST_BY_GROUP

Make = Callable[..., Any]
"""Builds a bench with the consumer class under test."""


def with_messages(make: Make, count: int = 3, **config: Any) -> Any:
    b = make(**config).start()
    b.append(count)
    return b


def call_under_an_old_grant(make: Make) -> object:
    b = with_messages(make)
    b.hold.add(LOCK)
    b.advance(30_001)
    b.returns()
    return b.offsets


def call_after_an_error(make: Make) -> object:
    b = with_messages(make)
    b.hold.add(LOCK)
    b.advance(30_001)
    b.refuse_held(LOCK, ResponseCode.SYSTEM_BUSY)
    b.returns()
    return b.offsets


def call_after_a_refusal(make: Make) -> object:
    b = with_messages(make)
    b.refused = {LANE}
    b.advance(1_000)
    b.returns()
    return b.offsets


def locks_before_the_first_call(make: Make) -> object:
    return len(with_messages(make).of(Kind.LOCK))


def unlocks_while_a_call_runs(make: Make) -> object:
    b = with_messages(make)
    b.take_away()
    return len(b.unlocked)


def calls_after_the_release(make: Make) -> object:
    b = with_messages(make)
    b.take_away()
    b.returns()
    return b.offsets


def pause_after(asked_ms: int) -> Callable[[Make], object]:
    def scene(make: Make) -> object:
        b = with_messages(make)
        b.returns(Outcome.SUSPEND, suspend_ms=asked_ms)
        return b.timer("resubmit")

    return scene


def counters(make: Make) -> object:
    b = with_messages(make)
    b.returns(Outcome.SUSPEND)
    b.advance(1_000)
    return [seen.rows[0]["reconsume_times"] for seen in b.of(Kind.DELIVER)]


def deliveries_until_given_up(make: Make) -> object:
    b = with_messages(make, max_reconsume_times=2)
    while b.offsets == [0] and len(b.of(Kind.DELIVER)) < 10:
        b.returns(Outcome.SUSPEND)
        b.advance(1_000)
    return len(b.of(Kind.DELIVER)) - 1


def next_call_after(outcome: Outcome) -> Callable[[Make], object]:
    def scene(make: Make) -> object:
        b = with_messages(make)
        b.returns(outcome)
        b.advance(1_000)
        return b.offsets

    return scene


def calls_at_once(make: Make) -> object:
    b = with_messages(make, 2)
    b.append(1)
    return len(b.calls)


def deliveries_of_finished_messages(make: Make) -> object:
    b = make()
    b.append(2)
    b.start()
    b.returns()
    b.returns()
    b.advance(1_000)
    return [seen.rows[0]["queue_offset"] for seen in b.of(Kind.DELIVER)]


def fetched_together(make: Make) -> object:
    b = make()
    b.append(2)
    b.start()
    b.returns()
    b.advance(1_000)
    return len(b.of(Kind.DELIVER))


def commits_during_a_call(make: Make) -> object:
    b = with_messages(make, 1)
    b.advance(10_000)
    return b.commits()


def commits_while_suspended(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns(Outcome.SUSPEND, suspend_ms=30_000)
    b.advance(10_000)
    return b.commits()


def commit_of_a_batch(make: Make) -> object:
    b = with_messages(make, 3, batch=3)
    b.returns()
    b.advance(10_000)
    return b.commits()


def commits_after_the_release(make: Make) -> object:
    b = with_messages(make)
    b.returns()
    b.returns()
    b.returns()
    b.take_away()
    told = len(b.commits())
    b.advance(15_000)
    return len(b.commits()) - told


def commits_after_a_manual_success(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns(Outcome.SUCCESS, manual=True)
    b.advance(10_000)
    return b.commits()


def commits_of_a_call_that_outlives_its_lane(make: Make) -> object:
    b = with_messages(make, 1)
    b.take_away()
    b.returns()
    b.advance(10_000)
    return b.commits()


def stored_after_a_correction(make: Make) -> object:
    b = make()
    b.min_offset[LANE] = 3
    b.append(2)
    b.stored[LANE] = 1
    b.start()
    return b.stored[LANE]


def lanes_added_without_an_answer(make: Make) -> object:
    b = make()
    b.hold.add(QUERY)
    b.start()
    b.fail_held(QUERY)
    b.advance(100)
    return len(b.of(Kind.ADD))


def call_of_a_lane_that_was_idle(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.append(1)
    b.advance(1_000)
    return b.offsets


def call_of_a_first_message(make: Make) -> object:
    b = make().start()
    b.append(1)
    b.advance(1_000)
    return b.offsets


def pulls_after_one_in_vain(make: Make) -> object:
    b = make().start()
    b.append(0)  # whoever waits is answered, with nothing
    b.advance(1_000)
    return len([seen for seen in b.of(Kind.PULL) if seen.fields["topic"] == LANE.topic])


def lanes_added_when_a_queue_comes(make: Make) -> object:
    b = make().start()
    b.advance(1_000)
    b.queues = {"t": 2}
    b.advance(60_000)
    return len([seen for seen in b.of(Kind.ADD) if seen.fields["topic"] == LANE.topic])


def lanes_added_when_a_queue_comes_back(make: Make) -> object:
    b = make(queues=2)
    b.start()
    for count in (1, 2):
        b.advance(60_000)
        b.queues = {"t": count}
    b.advance(60_000)
    return len([seen for seen in b.of(Kind.ADD) if seen.fields["topic"] == LANE.topic])


def lanes_added_beside_a_refused_one(make: Make) -> object:
    b = make(queues=2)
    b.refused = {Queue("t", "b0", 1)}
    b.start()
    b.advance(5_000)
    return len([seen for seen in b.of(Kind.ADD) if seen.fields["topic"] == "t"])


def drops_after_nobody_named_the_members(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.hold.add(MEMBERS)
    b.advance(20_000)
    b.fail_held(MEMBERS)
    b.hold.clear()
    b.take_away()
    return len(b.of(Kind.DROP))


def call_after_the_cap(make: Make) -> object:
    b = with_messages(make, continuous_ms=1_000)
    b.advance(1_001)
    b.returns()
    return b.offsets


def calls_of_a_lane_beside_a_suspended_one(make: Make) -> object:
    b = with_messages(make, queues=2)
    b.returns(Outcome.SUSPEND, suspend_ms=5_000)
    b.append(1, queue_id=1)
    return [call.lane.queue.queue_id for call in b.calls]


def calls_of_a_lane_whose_thread_another_one_had(make: Make) -> object:
    b = with_messages(make, queues=2, threads=1)
    b.returns(Outcome.SUSPEND, suspend_ms=5_000)
    b.append(1, queue_id=1)
    return [call.lane.queue.queue_id for call in b.calls]


def lane_that_is_called_when_a_thread_is_free(make: Make) -> object:
    b = with_messages(make, queues=3, threads=1)
    b.append(1, queue_id=1)
    b.append(1, queue_id=2)
    b.returns(Outcome.SUSPEND, suspend_ms=5_000)
    return [call.lane.queue.queue_id for call in b.calls]


def order_of_the_shutdown(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.shut_down()
    b.advance(1_000)
    return [seen.kind for seen in b.seen if seen.kind in (Kind.COMMIT, Kind.UNLOCK)][-2:]


def commits_go_back(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.append(1)
    b.returns()
    b.advance(10_000)
    b.append(1)
    values = b.commits()
    return values != sorted(values)


def start_after_a_failed_query(make: Make) -> object:
    b = make(consume_from="last")
    b.append(5)
    b.stored[LANE] = 2
    b.hold.add(QUERY)
    b.start()
    b.answer_held(QUERY, keep=True)
    b.fail_held(QUERY)
    b.advance(3_000)
    return b.of(Kind.PULL)[0].fields["queue_offset"]


def start_from_the_first_after_a_failed_query(make: Make) -> object:
    b = make(consume_from="first")
    b.append(5)
    b.stored[LANE] = 2
    b.hold.add(QUERY)
    b.start()
    b.answer_held(QUERY, keep=True)
    b.fail_held(QUERY)
    b.advance(3_000)
    return b.of(Kind.PULL)[0].fields["queue_offset"]


def start_from_the_first_after_an_error(make: Make) -> object:
    b = make(consume_from="first")
    b.append(5)
    b.stored[LANE] = 2
    b.hold.add(QUERY)
    b.start()
    b.refuse_held(QUERY, ResponseCode.SYSTEM_BUSY)
    b.advance(5_000)
    return [seen.fields["value"] for seen in b.of(Kind.ADD) if seen.fields["topic"] == LANE.topic]


def start_at_a_handover(make: Make) -> object:
    b = make()
    b.append(5)
    b.stored[LANE] = 2
    b.start()
    return b.of(Kind.PULL)[0].fields["queue_offset"]


def start_by_time_where_an_offset_is_stored(make: Make) -> object:
    b = make(consume_from="timestamp")
    b.append(5)
    b.stored[LANE] = 3
    b.start()
    b.advance(1_000)
    return [seen.fields["value"] for seen in b.of(Kind.ADD) if seen.fields["topic"] == LANE.topic]


def time_that_a_start_asks_for(make: Make) -> object:
    b = make(consume_from="timestamp")
    b.append(5)
    b.hold.add(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP)
    b.start()
    b.advance(1_000)
    return int(b.held[0].command.ext["timestamp"]) > b.now


def copies_of_two_exhausted_messages(make: Make) -> object:
    b = with_messages(make, max_reconsume_times=0)
    b.returns(Outcome.SUSPEND)
    b.returns(Outcome.SUSPEND)
    return len(b.sent)


def offsets_after_a_manual_rollback(make: Make) -> object:
    b = with_messages(make)
    b.returns(Outcome.ROLLBACK, manual=True)
    b.advance(1_000)
    return b.offsets


def commits_after(outcome: Outcome) -> Callable[[Make], object]:
    def scene(make: Make) -> object:
        b = with_messages(make, 1)
        b.returns(outcome)
        b.advance(10_000)
        return b.commits()

    return scene


def call_after_a_failed_dead_letter(make: Make) -> object:
    b = with_messages(make, max_reconsume_times=0)
    b.hold.add(SEND)
    b.returns(Outcome.SUSPEND)
    b.fail_held(SEND)
    b.advance(1_000)
    return b.offsets


def calls_after_a_suspended_batch(make: Make) -> object:
    b = with_messages(make, batch=3)
    b.returns(Outcome.SUSPEND)
    b.advance(1_000)
    return [row["queue_offset"] for row in b.of(Kind.DELIVER)[-1].rows]


def counter_of_a_lane_that_came_back(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns(Outcome.SUSPEND, suspend_ms=30_000)
    b.take_away()
    b.advance(2_000)
    b.members = ["c1"]
    b.notify()
    b.advance(20_000)
    return b.of(Kind.DELIVER)[-1].rows[0]["reconsume_times"]


def copies_after_twenty_tries(make: Make) -> object:
    b = with_messages(make, 1)
    for _ in range(20):
        if b.calls:
            b.returns(Outcome.SUSPEND, suspend_ms=10)
            b.advance(10)
    return len(b.sent)


def call_after_a_dead_letter(make: Make) -> object:
    b = with_messages(make, 2, max_reconsume_times=0)
    b.returns(Outcome.SUSPEND)
    b.advance(1_000)
    return b.offsets


def dead_letters_of_a_batch(make: Make) -> object:
    b = with_messages(make, 1, max_reconsume_times=1, batch=2)
    b.returns(Outcome.SUSPEND)
    b.append(1)
    b.advance(1_000)
    b.returns(Outcome.SUSPEND)
    b.advance(1_000)
    b.returns(Outcome.SUSPEND)
    return [seen.fields["queue_offset"] for seen in b.of(Kind.DEAD_LETTER)]


def calls_after_a_dead_letter(make: Make) -> object:
    b = with_messages(make, 1, max_reconsume_times=0)
    b.returns(Outcome.SUSPEND)
    b.advance(1_000)
    return len(b.calls)


def commits_while_the_dead_letter_is_on_its_way(make: Make) -> object:
    b = with_messages(make, 1, max_reconsume_times=0)
    b.hold.add(SEND)
    b.returns(Outcome.SUSPEND)
    b.advance(10_000)
    return b.commits()


def calls_of_a_lane_that_was_dropped_while_suspended(make: Make) -> object:
    b = with_messages(make)
    b.returns(Outcome.SUSPEND, suspend_ms=5_000)
    b.take_away()
    b.advance(5_000)
    return b.offsets


def last_of_a_lane_that_came_back(make: Make) -> object:
    b = with_messages(make)
    b.take_away()
    b.returns()
    b.members = ["c1"]
    b.notify()
    b.advance(20_000)
    return [seen.kind for seen in b.seen if seen.kind in (Kind.ADD, Kind.UNLOCK)][-1]


def unlocks_while_a_long_call_runs(make: Make) -> object:
    b = with_messages(make)
    b.take_away()
    b.advance(20_000)
    return len(b.unlocked)


def commit_of_a_lane_that_came_back(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.take_away()
    b.stored[LANE] = 0  # as an operator, or another client, has left it
    b.members = ["c1"]
    b.notify()
    b.advance(10_000)
    return b.commits()[-1]


def order_of_a_handover(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.take_away()
    b.advance(1_000)
    return [seen.kind for seen in b.seen if seen.kind in (Kind.COMMIT, Kind.UNLOCK)][-2:]


def commits_at_a_handover(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.take_away()
    return b.commits()


def calls_after_a_shutdown(make: Make) -> object:
    b = with_messages(make)
    b.shut_down()
    b.returns()
    return b.offsets


def first_of_three(make: Make) -> object:
    b = make()
    b.append(3)
    b.start()
    return b.offsets


def calls_under_a_fresh_grant(make: Make) -> object:
    return with_messages(make).offsets


def name_of_the_client(make: Make) -> object:
    b = make(consume_from="first").start()
    return (
        b.of(Kind.LOCK)[0].fields["client_id"] if b.of(Kind.LOCK) else b.consumer.config.client_id
    )


def locks_in_a_minute(make: Make) -> object:
    b = make().start()
    before = len(b.of(Kind.LOCK))
    b.advance(60_000)
    return len(b.of(Kind.LOCK)) - before


def lanes_added_after_a_refusal(make: Make) -> object:
    b = make()
    b.refused = {LANE}
    b.start()
    b.advance(5_000)
    b.refused = set()
    b.advance(20_000)
    return len([seen for seen in b.of(Kind.ADD) if seen.fields["topic"] == LANE.topic])


def unlocks_after_the_call(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.take_away()
    b.advance(1_000)
    return len(b.of(Kind.UNLOCK))


def unlocks_of_a_shutdown(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.shut_down()
    return len(b.of(Kind.UNLOCK))


def unlocks_of_a_shutdown_during_a_call(make: Make) -> object:
    b = with_messages(make, 1)
    b.shut_down()
    return len(b.of(Kind.UNLOCK))


# ---------------------------------------------------------------- calls side by side

BACK = RequestCode.CONSUMER_SEND_MSG_BACK


def leases_asked_for(make: Make) -> object:
    return len(make().start().requests(LOCK))


def stored_at_the_broker(make: Make) -> object:
    b = with_messages(make, 1)
    b.returns()
    b.advance(10_000)
    return b.stored


def begins_where_it_was(make: Make) -> object:
    b = make()
    b.consumer.file[LANE] = 2
    return [seen.fields["value"] for seen in b.start().of(Kind.ADD)]


def stored_while_the_first_runs(make: Make) -> object:
    b = with_messages(make, 2)
    b.returns(at=1)
    b.advance(10_000)
    return b.stored[LANE]


def stored_after_a_refused_send_back(make: Make) -> object:
    b = with_messages(make, 2)
    b.codes[BACK] = [ResponseCode.SYSTEM_ERROR]
    b.returns(Outcome.SUSPEND)
    b.returns()
    b.advance(10_000)
    return b.stored.get(LANE)


def calls_of_one_key_at_once(make: Make) -> object:
    b = make()
    b.append(2, __SHARDINGKEY="k")
    return len(b.start().calls)


def calls_beside_a_failed_one(make: Make) -> object:
    b = make()
    for key in ("k1", "k2", "k4"):
        b.append(1, __SHARDINGKEY=key)
    b.start()
    b.returns(Outcome.SUSPEND)
    return [call.messages[0].queue_offset for call in b.calls]


def offsets_after_a_failure(make: Make) -> object:
    b = make()
    b.append(2, __SHARDINGKEY="k")
    b.start().returns(Outcome.SUSPEND)
    b.advance(1_000)
    return b.offsets


def deliveries_of_other_tags(make: Make) -> object:
    b = make(topics={"t": "Aa"})
    b.append(1, TAGS="Aa")
    b.append(1, TAGS="BB")
    b.start()
    b.returns()
    return b.offsets


def share_of_three_queues(members: list[str]) -> Callable[[Make], object]:
    def scene(make: Make) -> object:
        b = make(queues=3)
        b.members = members
        b.start()
        return b.of(Kind.ASSIGN)[0].fields["detail"]

    return scene


SUSPENDED = next_call_after(Outcome.SUSPEND)

SCENES: dict[str, tuple[Callable[[Make], object], object, object]] = {
    # mutant: (scene, what the correct consumer does, what the mutant does)
    "guard-ignores-expiry": (call_under_an_old_grant, [], [1]),
    "refused-lease-still-consumes": (call_after_a_refusal, [], [1]),
    "lane-added-without-lease": (locks_before_the_first_call, 1, 0),
    "unlock-while-listener-runs": (unlocks_while_a_call_runs, 0, 1),
    "leases-from-nobody": (locks_before_the_first_call, 1, 0),
    "fetched-and-forgotten": (fetched_together, 2, 1),
    "dropped-lane-goes-on": (calls_after_the_release, [], [1]),
    "suspend-default-forgotten": (pause_after(-1), [1_000], [0]),
    "suspend-ignored": (pause_after(500), [500], [0]),
    "retry-not-counted": (counters, [0, 1], [0, 0]),
    "one-delivery-too-many": (deliveries_until_given_up, 3, 4),
    "given-up-too-early": (deliveries_until_given_up, 3, 2),
    "suspend-moves-on": (SUSPENDED, [0], [1]),
    "throw-taken-for-success": (next_call_after(Outcome.THREW), [0], [1]),
    "two-tasks-per-lane": (calls_at_once, 1, 2),
    "two-pullers": (deliveries_of_finished_messages, [0, 1], [0, 1, 0]),
    "commit-covers-running-call": (commits_during_a_call, [], [1]),
    "commit-though-suspended": (commits_while_suspended, [], [1]),
    "turn-never-ends": (call_after_the_cap, [], [1]),
    "suspension-stops-all-lanes": (calls_of_a_lane_beside_a_suspended_one, [1], []),
    "suspended-lane-keeps-its-thread": (calls_of_a_lane_whose_thread_another_one_had, [1], []),
    "last-in-line-is-first": (lane_that_is_called_when_a_thread_is_free, [1], [2]),
    "lane-stands-still": (call_of_a_lane_that_was_idle, [1], []),
    "idle-lane-looked-at-later": (call_of_a_first_message, [0], []),
    "pulled-later-when-nothing-came": (pulls_after_one_in_vain, 2, 1),
    "later-queues-never-seen": (lanes_added_when_a_queue_comes, 2, 1),
    "queue-gone-once-is-gone": (lanes_added_when_a_queue_comes_back, 3, 2),
    "granted-but-left-with-the-refused": (lanes_added_beside_a_refused_one, 1, 0),
    "rebalance-dies-of-an-error": (drops_after_nobody_named_the_members, 1, 0),
    "failed-query-taken-for-missing": (lanes_added_without_an_answer, 0, 1),
    "manual-success-committed": (commits_after_a_manual_success, [], [1]),
    "dropped-lane-reports-on": (commits_of_a_call_that_outlives_its_lane, [], [1]),
    "first-of-batch-committed": (commit_of_a_batch, [3], [1]),
    "commit-one-too-far": (commit_of_a_batch, [3], [4]),
    "stale-commit-after-release": (commits_after_the_release, 0, 2),
    "shutdown-persists-last": (
        order_of_the_shutdown,
        [Kind.COMMIT, Kind.UNLOCK],
        [Kind.UNLOCK, Kind.COMMIT],
    ),
    "corrected-offset-reported-over": (stored_after_a_correction, 3, 1),
    "pull-commits-old-offset": (commits_go_back, False, True),
    "error-taken-for-not-found": (start_after_a_failed_query, 2, 5),
    "error-taken-for-zero": (start_from_the_first_after_a_failed_query, 2, 0),
    "time-asked-in-another-unit": (time_that_a_start_asks_for, False, True),
    "time-wins-over-what-is-stored": (start_by_time_where_an_offset_is_stored, [3], [2]),
    "starts-at-end": (start_at_a_handover, 2, 5),
    "dead-letter-sent-twice": (copies_of_two_exhausted_messages, 2, 4),
    "dead-letter-skipped": (copies_of_two_exhausted_messages, 2, 1),
    "guard-inverted": (calls_under_a_fresh_grant, [0], []),
    "guard-locked-or-fresh": (call_after_a_refusal, [], [1]),
    "refusal-ignored": (call_after_a_refusal, [], [1]),
    "loop-without-guard": (call_under_an_old_grant, [], [1]),
    "dropped-lane-retried": (calls_of_a_lane_that_was_dropped_while_suspended, [], [0]),
    "delayed-unlock": (last_of_a_lane_that_came_back, Kind.ADD, Kind.UNLOCK),
    "refused-lane-given-up": (lanes_added_after_a_refusal, 1, 0),
    "renewal-forgotten": (locks_in_a_minute, 3, 0),
    "handover-keeps-lease": (unlocks_after_the_call, 1, 0),
    "shutdown-keeps-leases": (unlocks_of_a_shutdown, 1, 0),
    "shutdown-waits-for-nobody": (unlocks_of_a_shutdown_during_a_call, 0, 1),
    "forced-unlock": (unlocks_while_a_long_call_runs, 0, 1),
    "shutdown-leaves-tasks": (calls_after_a_shutdown, [], [1]),
    "same-client-id": (name_of_the_client, "c1", "g@1"),
    "rollback-forgotten": (offsets_after_a_manual_rollback, [0], [1]),
    "commit-result-ignored": (commits_after(Outcome.COMMIT), [1], []),
    "never-given-up": (deliveries_until_given_up, 3, 9),
    "given-up-at-once": (deliveries_until_given_up, 3, 1),
    "suspend-not-clamped": (pause_after(9), [10], [9]),
    "dead-letter-failure-ignored": (call_after_a_failed_dead_letter, [0], [1]),
    "committed-before-the-dead-letter": (commits_while_the_dead_letter_is_on_its_way, [], [1]),
    "offset-of-an-earlier-life": (commit_of_a_lane_that_came_back, 0, 1),
    "handover-persists-last": (
        order_of_a_handover,
        [Kind.COMMIT, Kind.UNLOCK],
        [Kind.UNLOCK, Kind.COMMIT],
    ),
    "suspended-batch-back-in-part": (calls_after_a_suspended_batch, [0, 1, 2], [2]),
    "counter-survives-the-lane": (counter_of_a_lane_that_came_back, 0, 1),
    "no-limit-means-sixteen": (copies_after_twenty_tries, 0, 1),
    "no-limit-compared-as-number": (copies_after_twenty_tries, 0, 1),
    "retried-every-five-seconds": (pause_after(500), [500], [5_000]),
    "given-up-lane-stands-still": (call_after_a_dead_letter, [1], []),
    "given-up-with-its-batch-again": (dead_letters_of_a_batch, [0, 1], [0, 0, 1]),
    "given-up-but-kept": (calls_after_a_dead_letter, 0, 1),
    "handover-reports-nothing": (commits_at_a_handover, [1], []),
    "tags-not-compared": (deliveries_of_other_tags, [], [1]),
    "shares-overlap": (share_of_three_queues(["c0", "c1"]), "b0/2", "b0/1"),
    "remainder-left-out": (share_of_three_queues(["c1", "c2"]), "b0/0 b0/1", "b0/0"),
    "queues-sorted-downwards": (share_of_three_queues(["c0", "c1"]), "b0/2", "b0/0"),
    "newest-first": (first_of_three, [0], [2]),
    "not-fifo-at-first": (first_of_three, [0], [2]),
    "broadcast-takes-leases": (leases_asked_for, 0, 1),
    "broadcast-commits-to-the-broker": (stored_at_the_broker, {}, {LANE: 1}),
    "broadcast-forgets-its-file": (begins_where_it_was, [2], [0]),
    "highest-finished-committed": (stored_while_the_first_runs, 0, 2),
    "send-back-failure-ignored": (stored_after_a_refused_send_back, 0, 2),
    "key-held-back-by-another": (calls_beside_a_failed_one, [1, 2], [2]),
    "key-not-looked-at": (calls_of_one_key_at_once, 1, 2),
    "lock-error-is-a-grant": (call_after_an_error, [], [1]),
    "offset-error-is-nothing-stored": (start_from_the_first_after_an_error, [2], [0]),
    "key-goes-on-without-the-failed": (offsets_after_a_failure, [0], [1]),
}


def test_every_consumer_mutant_has_a_scene() -> None:
    assert {mutant.name for mutant in all_mutants() if mutant.consumer} == set(SCENES)


@pytest.mark.parametrize("name", sorted(SCENES))
def test_the_mutant_differs_from_the_correct_consumer_there(bench: Make, name: str) -> None:
    scene, correct, mutated = SCENES[name]
    mutant = load(name)
    mode = mode_of(mutant)
    usual = consumer_class(ConsumerConfig("c", "g", {}, ("ns",), **mode))
    assert scene(lambda **config: bench(usual, **mode, **config)) == correct
    assert scene(lambda **config: bench(mutant.consumer, **mode, **config)) == mutated


def mode_of(mutant: Mutant) -> dict[str, str]:
    """What the mutant says of how its group consumes."""
    mode = {"mode": mutant.config.get("mode", "orderly")}
    return mode | {"message_model": mutant.config.get("message_model", "clustering").upper()}
