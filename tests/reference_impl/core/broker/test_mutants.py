"""Each broker mutant does what its bug says, on one short exchange in which the correct broker does not.

That a cluster's history gives it away is the kill matrix's matter.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from reference_impl import mutants
from reference_impl.core.broker import Broker
from reference_impl.core.broker.config import NEXT
from reference_impl.core.broker.log import FlushMode
from reference_impl.protocol.bodies import Heartbeat
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.headers import SendBackHeader, SendHeader
from reference_impl.protocol.message import BatchPart, decode_all, encode_batch
from specs.errors import UsageError

LIMIT_MS = 60_000


def give_up(wire: Any, message: str = "m1") -> None:
    """A consumer with a live lock gives the message up after three retries."""
    wire.lock("alice", 0)
    wire.send(b"m", properties={"UNIQ_KEY": message})
    properties = {
        "UNIQ_KEY": f"{message}-copy",
        "ORIGIN_MESSAGE_ID": message,
        "RETRY_TOPIC": "orders",
        "DELAY": "6",
    }
    answer = wire.send(
        b"m",
        topic="%RETRY%billing",
        properties=properties,
        reconsume_times=4,
        max_reconsume_times=3,
    )
    assert answer.code == 0
    wire.topic("%DLQ%billing", 1)


def stranger_asks(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 0)


def stranger_unlocks(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.unlock("bob", 0)
    return wire.lock("carol", 0)


def stranger_asks_after_a_renewal(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.pass_ms(LIMIT_MS)
    wire.lock("alice", 0)
    wire.pass_ms(1)
    return wire.lock("bob", 0)


def third_asks_after_a_takeover(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.pass_ms(LIMIT_MS + 1)
    assert wire.lock("bob", 0) == [0]
    return wire.lock("carol", 0)


def stranger_asks_after_the_limit(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.pass_ms(LIMIT_MS + 1)
    return wire.lock("bob", 0)


def stranger_asks_at_the_limit(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.pass_ms(LIMIT_MS)
    return wire.lock("bob", 0)


def owner_asks_again(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("alice", 0)


def stranger_asks_all_the_time(wire: Any) -> Any:
    wire.lock("alice", 0)
    for _ in range(3):
        assert wire.lock("bob", 0) == []
        wire.pass_ms(LIMIT_MS // 3 + 1)
    return wire.lock("bob", 0)


def another_group_asks(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 0, group="shipping")


def another_queue_is_asked_for(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 1)


def a_batch_is_free_in_part(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 0, 1)


def owner_disconnects(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.lock("alice", 0)
    wire.close("c1")
    return wire.lock("bob", 0)


def dead_letters(wire: Any) -> Any:
    give_up(wire)
    return [message.origin_id for message in wire.messages("%DLQ%billing")]


def order_of_two_dead_letters(wire: Any) -> Any:
    give_up(wire)
    give_up(wire, "n1")
    return [message.origin_id for message in wire.messages("%DLQ%billing")]


def messages_after_giving_up(wire: Any) -> Any:
    give_up(wire)
    return [message.message_id for message in wire.messages("orders")]


def ten_sends(wire: Any) -> Any:
    return [int(wire.send().ext["queueOffset"]) for _ in range(10)], len(wire.messages("orders"))


def offset_asked_for_twice_at_each_of_two_handovers(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1)
    answers = []
    for _ in range(2):
        answers.append((wire.fetch()[0], wire.fetch()[0]))
        wire.pass_ms(10_000)
    return answers


def first_commits_of_two_queues(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1, queue_id=0)
    wire.commit(1, queue_id=1)
    return wire.fetch()


def fetch_right_after_a_commit(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1)
    return wire.fetch()


def fetch_after_a_reset_and_a_commit(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.reset(0, queue_id=0)
    wire.commit(1)
    return wire.fetch()


def fetch_after_a_crash(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.pass_ms(12_000)
    wire.commit(1)
    wire.pass_ms(6_000)
    wire.boot()
    return wire.fetch()


def fetch_after_an_upgrade(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1)
    wire.pass_ms(12_000)
    wire.config = replace(wire.config, release=NEXT)
    wire.boot()
    return wire.fetch()


def fetch_of_a_reset_group_after_a_crash(wire: Any) -> Any:
    wire.join("alice", "c1")
    for _ in range(3):
        wire.send()
    wire.commit(3)
    wire.pass_ms(12_000)
    wire.reset(1, queue_id=0)
    wire.pass_ms(6_000)
    wire.boot()
    return wire.fetch()


def fetch_of_a_young_queue(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    return wire.fetch()


def pull_beyond_the_end(wire: Any) -> Any:
    for _ in range(3):
        wire.send()
    return wire.pull(5).ext["nextBeginOffset"]


def another_topic_is_asked_for(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 0, topic="bills")


def another_brokers_queue_is_asked_for(wire: Any) -> Any:
    wire.lock("alice", 0)
    return wire.lock("bob", 0, broker="b1")


def old_owner_asks_after_a_takeover(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.pass_ms(LIMIT_MS + 1)
    assert wire.lock("bob", 0) == [0]
    return wire.lock("alice", 0)


def owner_unlocks(wire: Any) -> Any:
    wire.lock("alice", 0)
    wire.unlock("alice", 0)
    return wire.lock("bob", 0)


def two_free_queues_are_asked_for(wire: Any) -> Any:
    return wire.lock("alice", 0, 1)


def fetch_after_an_empty_pull(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.send()
    wire.commit(1)
    wire.pull(1)
    return wire.fetch()


def members_after_a_disconnect(wire: Any) -> Any:
    wire.join("alice", "c1")
    wire.join("bob", "c2")
    wire.close("c1")
    return wire.broker.parts.members.client_ids("billing")


def messages_sent_to_a_full_disk(wire: Any) -> Any:
    wire.store.is_full = True
    return wire.send().code, len(wire.messages("orders"))


def sent_and_not_yet_synced(wire: Any) -> Any:
    """Is the send answered before its sync has ended?"""
    wire.store.flush = FlushMode.SYNC
    return (
        wire.ask(RequestCode.SEND_MESSAGE_V2, SendHeader("P", "orders", 0, 1).to_ext_v2(), b"m")
        in wire.answers
    )


def bodies_of_ten_sends(wire: Any) -> Any:
    for number in range(10):
        wire.send(f"body {number}".encode())
    return [message.body for message in wire.messages("orders")]


def delayed_message_before_its_time(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "2"})
    wire.pass_ms(4_999)
    return len(wire.messages("orders"))


def level_of_a_delayed_message(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "2"})
    wire.pass_ms(5_000)
    return [message.delay_level for message in wire.messages("orders")]


def properties_of_a_delayed_message(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "2", "shop": "7"})
    wire.pass_ms(5_000)
    return [message.properties.get("shop") for message in wire.messages("orders")]


def delayed_message_after_a_restart(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "2"})
    wire.boot()
    return len(wire.messages("orders"))


def returned_at_once(wire: Any) -> Any:
    wire.send()
    header = SendBackHeader(0, "billing", 1)
    assert wire.call(RequestCode.CONSUMER_SEND_MSG_BACK, header).code == 0
    return len(wire.messages("%RETRY%billing"))


def returned_in_the_end(wire: Any) -> Any:
    returned_at_once(wire)
    wire.pass_ms(1_000)
    return [message.reconsume_times for message in wire.messages("%RETRY%billing")]


def two_of_a_batch_and_one_more(wire: Any) -> Any:
    parts = [BatchPart(b"a"), BatchPart(b"b")]
    header = SendHeader("P", "orders", 0, 0, batch=True)
    wire.call(RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), encode_batch(parts))
    wire.send(b"c")
    return [message.body for message in wire.messages("orders")]


def two_batches(wire: Any) -> Any:
    header = SendHeader("P", "orders", 0, 0, batch=True)
    for bodies in ((b"a", b"b"), (b"c", b"d")):
        parts = [BatchPart(body) for body in bodies]
        wire.call(RequestCode.SEND_BATCH_MESSAGE, header.to_ext_v2(), encode_batch(parts))
    return [message.body for message in wire.messages("orders")]


def pull_of_the_second_tag(wire: Any) -> Any:
    wire.join("alice", "c1", subscription="red || blue")
    wire.send(b"r", properties={"TAGS": "red"})
    wire.send(b"b", properties={"TAGS": "blue"})
    return len(decode_all(wire.pull(0, sys_flag=0).body))


def half_message_before_its_end(wire: Any) -> Any:
    wire.send_half()
    return len(wire.messages("orders"))


def half_messages_after_their_commits(wire: Any) -> Any:
    for name in ("m1", "m2"):
        wire.end_half(wire.send_half(name), 8)
    return len(wire.messages("orders"))


def half_message_of_the_second_queue(wire: Any) -> Any:
    wire.topic()
    properties = {"UNIQ_KEY": "m1", "TRAN_MSG": "true", "PGROUP": "shop"}
    wire.end_half(wire.send(queue_id=1, properties=properties, sys_flag=4), 8)
    return len(wire.messages("orders", 1))


def delayed_message_of_the_second_queue(wire: Any) -> Any:
    wire.topic()
    wire.send(queue_id=1, properties={"DELAY": "1"})
    wire.pass_ms(1_000)
    return len(wire.messages("orders", 1))


def delayed_message_long_after_a_restart(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "2"})
    wire.boot()
    wire.pass_ms(60_000)
    return len(wire.messages("orders"))


def delayed_message_that_came_before_a_restart(wire: Any) -> Any:
    wire.send(b"m", properties={"DELAY": "1"})
    wire.pass_ms(2_000)
    wire.boot()
    wire.pass_ms(60_000)
    return len(wire.messages("orders"))


def order_of_two_delayed_messages(wire: Any) -> Any:
    for body in (b"first", b"second"):
        wire.send(body, properties={"DELAY": "1"})
        wire.pass_ms(20)
    wire.pass_ms(60_000)
    return [message.body for message in wire.messages("orders")]


def half_message_after_its_rollback(wire: Any) -> Any:
    wire.end_half(wire.send_half(), 12)
    return len(wire.messages("orders"))


def half_message_that_nobody_ends(wire: Any) -> Any:
    wire.call(RequestCode.HEART_BEAT, body=Heartbeat("p", ("shop",)).encode())
    wire.send_half()
    for _ in range(20):
        wire.call(RequestCode.HEART_BEAT, body=Heartbeat("p", ("shop",)).encode())
        wire.pass_ms(30_000)
    return len(wire.questions())


def topic_of_a_half_message_that_nobody_ends(wire: Any) -> Any:
    half_message_that_nobody_ends(wire)
    return len(wire.messages("orders"))


def questions_about_a_half_message_after_its_commit(wire: Any) -> Any:
    wire.call(RequestCode.HEART_BEAT, body=Heartbeat("p", ("shop",)).encode())
    wire.end_half(wire.send_half(), 8)
    for _ in range(4):
        wire.call(RequestCode.HEART_BEAT, body=Heartbeat("p", ("shop",)).encode())
        wire.pass_ms(30_000)
    return len(wire.questions())


def two_who_wait_for_a_message(wire: Any) -> Any:
    waiting = [wire.park(0), wire.park(0, conn="c2")]
    wire.send(b"m")
    return [opaque in wire.answers for opaque in waiting]


def beginning_of_a_queue_after_a_removal(wire: Any) -> Any:
    for _ in range(4):
        wire.send()
        wire.pass_ms(1_000)
    wire.broker.retention.remove(wire.now_ms - 3_000, [])
    return wire.pull(0).ext["nextBeginOffset"]


SHOWN_BY: dict[str, Callable[[Any], Any]] = {
    "acknowledged-before-the-sync": sent_and_not_yet_synced,
    "acknowledged-send-dropped": ten_sends,
    "batch-all-or-nothing": a_batch_is_free_in_part,
    "batch-answers-what-was-asked": a_batch_is_free_in_part,
    "fetch-reads-the-disk": fetch_right_after_a_commit,
    "young-topic-not-found": fetch_of_a_young_queue,
    "offsets-left-behind": fetch_after_an_upgrade,
    "offsets-written-once": fetch_after_a_crash,
    "reset-only-in-memory": fetch_of_a_reset_group_after_a_crash,
    "reset-written-with-the-next-commit": fetch_of_a_reset_group_after_a_crash,
    "reset-overwritten-by-a-commit": fetch_after_a_reset_and_a_commit,
    "commit-race-loses-first": first_commits_of_two_queues,
    "asked-for-ever": half_message_that_nobody_ends,
    "half-message-visible": half_message_before_its_end,
    "rollback-taken-for-commit": half_message_after_its_rollback,
    "commit-notes-and-moves-nothing": half_messages_after_their_commits,
    "committed-to-the-first-queue": half_message_of_the_second_queue,
    "commit-leaves-it-open": questions_about_a_half_message_after_its_commit,
    "given-up-half-is-committed": topic_of_a_half_message_that_nobody_ends,
    "unasked-commit-drops": half_messages_after_their_commits,
    "delayed-again-after-a-restart": delayed_message_that_came_before_a_restart,
    "delayed-forgotten-at-a-restart": delayed_message_long_after_a_restart,
    "delayed-newest-first": order_of_two_delayed_messages,
    "delayed-to-the-first-queue": delayed_message_of_the_second_queue,
    "delayed-waits-for-the-next": delayed_message_long_after_a_restart,
    "stored-twice-at-once": ten_sends,
    "dead-letter-lost": dead_letters,
    "delay-of-the-level-below": delayed_message_before_its_time,
    "level-lost-on-release": level_of_a_delayed_message,
    "property-lost-on-release": properties_of_a_delayed_message,
    "restart-releases-what-waits": delayed_message_after_a_restart,
    "dead-letter-loses-its-origin": dead_letters,
    "dead-letters-swapped": order_of_two_dead_letters,
    "dead-letter-returns-as-new": messages_after_giving_up,
    "dead-letter-stored-twice": dead_letters,
    "dead-letter-waits-for-delay-level": dead_letters,
    "error-answered-as-not-found": offset_asked_for_twice_at_each_of_two_handovers,
    "exhausted-circles-through-retry-topic": dead_letters,
    "expired-at-the-limit": stranger_asks_at_the_limit,
    "expired-not-freed": stranger_asks_after_the_limit,
    "expiry-ignored": stranger_asks,
    "key-without-broker-name": another_brokers_queue_is_asked_for,
    "key-without-group": another_group_asks,
    "key-without-queue-id": another_queue_is_asked_for,
    "lease-freed-at-disconnect": owner_disconnects,
    "offset-overflow-to-min": pull_beyond_the_end,
    "own-lock-refused-when-asked-again": owner_asks_again,
    "refusal-refreshes-owner": stranger_asks_all_the_time,
    "renewal-does-not-refresh": stranger_asks_after_a_renewal,
    "takeover-keeps-old-timestamp": third_asks_after_a_takeover,
    "unlock-ignores-owner": stranger_unlocks,
    "batch-answer-loses-grants": two_free_queues_are_asked_for,
    "key-without-topic": another_topic_is_asked_for,
    "takeover-keeps-old-owner": old_owner_asks_after_a_takeover,
    "unlock-frees-nothing": owner_unlocks,
    "dead-letter-of-another-group": dead_letters,
    "empty-read-commits-zero": fetch_after_an_empty_pull,
    "offset-given-twice": ten_sends,
    "offset-skipped": ten_sends,
    "later-send-stored-first": ten_sends,
    "refused-though-stored": messages_sent_to_a_full_disk,
    "batch-begins-with-the-last-one": two_batches,
    "batch-taken-apart": two_of_a_batch_and_one_more,
    "first-tag-only": pull_of_the_second_tag,
    "body-of-another": bodies_of_ten_sends,
    "gone-member-listed": members_after_a_disconnect,
    "send-back-not-counted": returned_in_the_end,
    "send-back-without-delay": returned_at_once,
    "retention-takes-one-more": beginning_of_a_queue_after_a_removal,
    "only-the-first-waiter-woken": two_who_wait_for_a_message,
    "woken-one-message-late": two_who_wait_for_a_message,
}
EVERY_MUTANT = mutants.every_mutant()


def test_every_broker_mutant_is_shown() -> None:
    assert {mutant.name for mutant in EVERY_MUTANT if mutant.broker is not Broker} == set(SHOWN_BY)


@pytest.mark.parametrize("name", sorted(SHOWN_BY))
def test_the_bug_shows(make_wire: Any, name: str) -> None:
    """The mutant answers otherwise than the correct broker, which answers the same twice."""
    exchange = SHOWN_BY[name]
    correct = exchange(make_wire())
    assert exchange(make_wire()) == correct
    assert exchange(make_wire(broker_class=mutants.load(name).broker)) != correct


@pytest.mark.parametrize("mutant", EVERY_MUTANT, ids=lambda mutant: mutant.name)
def test_every_mutant_says_what_it_is(mutant: mutants.Mutant) -> None:
    """A name that is a file's, a bug, a source, a clause, and a docstring."""
    assert re.fullmatch(r"[a-z]+(-[a-z0-9]+)*", mutant.name)
    assert mutants.load(mutant.name) is mutant
    assert re.fullmatch(r"[A-Z]{3}-\d+", mutant.killed_by)
    assert mutant.bug
    assert mutant.source
    assert mutant.doc
    assert (
        mutant.broker is not Broker
        or mutant.consumer
        or mutant.producer
        or mutant.queue
        or mutant.is_of_a_group
    )


def test_an_unknown_mutant_is_a_wrong_use() -> None:
    with pytest.raises(UsageError, match="there is no mutant nonsense"):
        mutants.load("nonsense")
