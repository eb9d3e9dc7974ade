"""The client library on real sockets: our own cluster, and released Apache brokers."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from random import Random
from typing import Any

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from reference_impl.client import (
    DEAD_LETTER_NOW,
    Batch,
    BlockingProducer,
    BroadcastConsumer,
    ConcurrentConsumer,
    KeyOrderedConsumer,
    Message,
    NotReachable,
    OrderlyConsumer,
    Outgoing,
    Producer,
    PullConsumer,
    Queue,
    Result,
    SendRefused,
    SendUnknown,
    Suspend,
    Tuning,
    UsageError,
    allocation,
    by_hash,
    by_random,
    recorded,
)
from reference_impl.client.identity import MessageIds
from reference_impl.core.broker import BrokerConfig
from reference_impl.core.io import Send
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.shell.clock import WallClock
from reference_impl.shell.cluster import LocalCluster
from reference_impl.shell.server import address_of, take_port
from specs.history.store import open_history
from specs.vocabulary import Kind, Level, Outcome, dead_letter_topic

QUICK = Tuning(
    client_lease_ms=1_500,
    lock_first_ms=100,
    lock_interval_ms=500,
    rebalance_interval_ms=500,
    rebalance_min_ms=100,
    rebalance_retry_ms=100,
    pull_retry_ms=200,
    heartbeat_ms=500,
    route_poll_ms=500,
    route_retry_ms=100,
    persist_first_ms=200,
    persist_interval_ms=200,
    long_poll_ms=2_000,
    send_back_retry_ms=200,
)
LEVELS = BrokerConfig(delay_levels="1s 1s 1s 1s", register_ms=500)
VERSIONS = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            *([] if version == "5.4.0" else [pytest.mark.long]),
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]
"""The other release in the long tests: test_admin.py drives that one in every run of the tests."""


@asynccontextmanager
async def orders(queues: int = 4, names: tuple[str, ...] = ("b0",)) -> AsyncIterator[LocalCluster]:
    async with LocalCluster(LEVELS, topics=("orders",), queues=queues, names=names) as cluster:
        yield cluster


async def wait_until(condition: Callable[[], bool], deadline_s: float = 30.0) -> None:
    """TimeoutError when the condition does not hold in time."""
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.005)


class Inbox:
    """A listener that keeps what it got. returns: what to answer or raise, call by call, then None."""

    def __init__(self, *returns: Any) -> None:
        self.got: list[Any] = []
        self._returns = list(returns)

    def __call__(self, message: Any) -> Any:
        self.got.append(message)
        answer = self._returns.pop(0) if self._returns else None
        if isinstance(answer, Exception) and not (
            isinstance(answer, Suspend) and len(self.got) % 2
        ):
            raise answer
        return answer

    @property
    def texts(self) -> list[str]:
        return [message.text for message in self.got]

    async def has(self, count: int) -> None:
        await wait_until(lambda: len(self.got) >= count)


# ---------------------------------------------------------------- sending


def test_a_message_arrives_with_all_that_was_said_about_it() -> None:
    async def go() -> None:
        inbox = Inbox()
        async with orders() as cluster, Producer(cluster.namesrv) as producer:
            sent = await producer.send(
                "orders",
                "süß",
                key="customer-7",
                tags="paid",
                keys=["o-1", "o-2"],
                properties={"shop": "7"},
            )
            async with OrderlyConsumer(
                cluster.namesrv,
                group="billing",
                topics="orders",
                listener=inbox,
                start="first",
                **QUICK,
            ):
                await inbox.has(1)
        (message,) = inbox.got
        assert isinstance(message, Message)
        assert (message.topic, message.text, message.key, message.tags) == (
            "orders",
            "süß",
            "customer-7",
            "paid",
        )
        assert (message.keys, message.properties["shop"]) == (("o-1", "o-2"), "7")
        assert (message.queue, message.offset, message.id) == (
            sent.queue,
            sent.offset,
            sent.message_id,
        )
        assert (message.offset_id, message.attempt) == (sent.offset_id, 1)
        assert sent.is_safe
        assert 0 <= message.stored_ms - message.born_ms < 60_000

    asyncio.run(go())


def test_a_key_has_one_queue_and_no_key_takes_turns() -> None:
    async def go() -> None:
        async with orders() as cluster, Producer(cluster.namesrv) as producer:
            keyed = {
                (await producer.send("orders", b"x", key="k")).queue.queue_id for _ in range(5)
            }
            turns = {(await producer.send("orders", b"x")).queue.queue_id for _ in range(4)}
            fixed = {
                (await producer.send("orders", b"x", queue=3)).queue.queue_id for _ in range(3)
            }
            chosen = {
                (await producer.send("orders", b"x", selector=by_random(Random(7)))).queue.queue_id
                for _ in range(3)
            }
            same = await producer.send("orders", b"x", key="k", selector=by_hash)
        assert (len(keyed), turns, fixed, len(chosen)) == (1, {0, 1, 2, 3}, {3}, 1)
        assert {same.queue.queue_id} == keyed

    asyncio.run(go())


def test_submitted_messages_of_one_queue_lie_in_the_order_of_the_calls() -> None:
    async def go() -> None:
        async with orders() as cluster, Producer(cluster.namesrv) as producer:
            tasks = [producer.submit("orders", f"{number}", key="k") for number in range(50)]
            results = await asyncio.gather(*tasks)
        assert [result.offset for result in results] == list(range(50))

    asyncio.run(go())


def test_a_batch_is_contiguous_in_one_queue_and_oneway_arrives_as_well() -> None:
    async def go() -> None:
        inbox = Inbox()
        async with orders() as cluster, Producer(cluster.namesrv) as producer:
            sent = await producer.send_batch(
                "orders", ["a", b"b", Outgoing("c", tags="t", keys=["o"])], key="k"
            )
            told = await producer.send_oneway("orders", "d", key="k")
            async with OrderlyConsumer(
                cluster.namesrv,
                group="billing",
                topics="orders",
                listener=inbox,
                start="first",
                **QUICK,
            ):
                await inbox.has(4)
        assert inbox.texts == ["a", "b", "c", "d"]
        assert [message.offset for message in inbox.got] == [0, 1, 2, 3]
        assert {message.queue for message in inbox.got} == {sent.queue, told.queue}
        assert (sent.offset, told.offset, told.offset_id) == (0, None, "")
        assert (inbox.got[2].tags, inbox.got[2].keys) == ("t", ("o",))
        assert {message.key for message in inbox.got} == {"k"}

    asyncio.run(go())


def test_a_large_body_travels_compressed_and_arrives_as_it_was() -> None:
    async def go() -> None:
        inbox = Inbox()
        body = b"0123456789" * 100_000
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            for size in (4095, 4096, len(body)):
                await producer.send("orders", body[:size])
            stored = cluster.stores["b0"].queue("orders", 0)
            flags = [stored.get(offset).sys_flag & 1 for offset in range(3)]
            sizes = [len(stored.get(offset).body) for offset in range(3)]
            async with ConcurrentConsumer(
                cluster.namesrv, group="g", topics="orders", listener=inbox, start="first", **QUICK
            ):
                await inbox.has(3)
        assert flags == [0, 1, 1]
        assert sizes[0] == 4095
        assert sizes[2] < 10_000
        assert sorted(len(message.body) for message in inbox.got) == [4095, 4096, len(body)]
        assert all(message.body == body[: len(message.body)] for message in inbox.got)

    asyncio.run(go())


def test_a_topic_that_does_not_exist_is_made_by_its_first_message() -> None:
    async def go() -> None:
        async with LocalCluster(LEVELS) as cluster:
            async with Producer(cluster.namesrv) as producer:
                sent = [await producer.send("fresh", b"x", key=str(number)) for number in range(8)]
            assert {result.queue.queue_id for result in sent} == {0, 1, 2, 3}
            async with Producer(cluster.namesrv, create_topics=False) as producer:
                with pytest.raises(NotReachable, match="create it first"):
                    await producer.send("never", b"x")

    asyncio.run(go())


def test_what_a_caller_does_wrong_is_said_before_anything_is_sent() -> None:
    async def go() -> None:
        async with orders() as cluster, Producer(cluster.namesrv) as producer:
            wrong: list[tuple[str, dict[str, Any]]] = [
                ("needs a body", {"body": b""}),
                ("bytes are allowed|are allowed", {"body": b"x" * (4 * 1024 * 1024 + 1)}),
                ("bytes or text", {"body": 7}),
                ("no name of a topic", {"topic": "or ders"}),
                ("separators", {"key": "a\x01b"}),
                ("meaning of its own", {"properties": {"UNIQ_KEY": "x"}}),
                ("one word", {"keys": ["a b"]}),
                ("sequence of words", {"keys": "word"}),
                ("are allowed", {"properties": {"long": "x" * 40_000}}),
                ("not both", {"queue": 1, "selector": by_hash}),
                ("no queue 9", {"queue": 9}),
                ("half a surrogate", {"body": "\ud800"}),
                ("half a surrogate", {"key": "\ud800"}),
                (
                    "selector raised ZeroDivisionError",
                    {"selector": lambda key, queues: queues[1 // 0]},
                ),
                (
                    "none of the topic's queues",
                    {"selector": lambda key, queues: Queue("orders", "b9", 0)},
                ),
            ]
            for words, arguments in wrong:
                with pytest.raises(UsageError, match=words):
                    await producer.send(**{"topic": "orders", "body": b"x", **arguments})
            with pytest.raises(UsageError, match="at least one message"):
                await producer.send_batch("orders", [])
            with pytest.raises(UsageError, match="send it in parts"):
                await producer.send_batch("orders", [b"x" * 3_000_000] * 2)
            assert (await producer.send("orders", b"still well")).is_safe
        for address in ("", "here", "h:x", []):
            with pytest.raises(UsageError):
                Producer(address)
        with pytest.raises(UsageError, match="is stopped"):
            await producer.send("orders", b"x")
        with pytest.raises(UsageError, match="not started"):
            await Producer("127.0.0.1:1").send("orders", b"x")

    asyncio.run(go())


def test_each_way_to_fail_has_its_own_error() -> None:
    async def go() -> None:
        nobody = take_port()
        async with Producer(address_of(nobody), timeout_s=0.5) as producer:
            with pytest.raises(NotReachable) as never:
                await producer.send("orders", b"x")
            assert not never.value.maybe_stored
        nobody.close()
        async with (
            orders(queues=1) as cluster,
            Producer(cluster.namesrv, timeout_s=0.3, retries=0) as producer,
        ):
            await producer.send("orders", b"x")
            cluster.stores["b0"].is_full = True
            with pytest.raises(SendRefused, match="disk is full") as refused:
                await producer.send("orders", b"x")
            assert (refused.value.code, refused.value.maybe_stored) == (14, False)
            cluster.stores["b0"].is_full = False
            core = cluster.bodies["b0"].core
            answer = core.handle
            core.handle = lambda now_ms, event: []  # type: ignore[method-assign]
            with pytest.raises(SendUnknown) as unknown:
                await producer.send("orders", b"x", key="k")
            core.handle = answer  # type: ignore[method-assign]
            assert unknown.value.maybe_stored

    asyncio.run(go())


def test_a_slow_or_failing_broker_is_left_alone_for_a_while() -> None:
    async def go() -> None:
        async with (
            orders(names=("b0", "b1")) as cluster,
            Producer(cluster.namesrv, avoid_faults=True) as producer,
        ):
            before = {(await producer.send("orders", b"x")).queue.broker for _ in range(8)}
            await cluster.crash("b1")
            during = [(await producer.send("orders", b"x")).queue.broker for _ in range(8)]
            await cluster.restart("b1")
            after = [(await producer.send("orders", b"x")).queue.broker for _ in range(8)]
        assert (before, set(during), set(after)) == ({"b0", "b1"}, {"b0"}, {"b0"})

    asyncio.run(go())


def test_a_program_without_an_event_loop_sends_as_well() -> None:
    ready, finished = threading.Event(), threading.Event()
    address: list[str] = []

    def serve() -> None:
        async def go() -> None:
            async with orders() as cluster:
                address.append(cluster.namesrv)
                ready.set()
                await asyncio.to_thread(finished.wait)

        asyncio.run(go())

    server = threading.Thread(target=serve)
    server.start()
    assert ready.wait(30)
    try:
        with BlockingProducer(address[0]) as producer:
            assert producer.send("orders", b"x", key="k").offset == 0
            assert producer.send_batch("orders", ["y", "z"], key="k").offset == 1
            assert producer.send_oneway("orders", "w").offset is None
        with pytest.raises(UsageError, match="not started"):
            producer.send("orders", b"x")
    finally:
        finished.set()
        server.join()


def test_message_ids_tell_the_time_as_javas_do() -> None:
    """The tools of Apache reckon the moment from the last twelve digits: ms since the month began, and a counter."""
    ids = MessageIds()
    now = datetime(2025, 3, 17, 12, 30, tzinfo=UTC).astimezone()
    first = now.replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    made = [ids.new(round(now.timestamp() * 1000)) for _ in range(3)]
    assert {len(each) for each in made} == {32}
    assert len(set(made)) == 3
    assert {int(each[20:28], 16) for each in made} == {round((now - first).total_seconds() * 1000)}


# ---------------------------------------------------------------- receiving


@pytest.mark.parametrize("kind", [OrderlyConsumer, KeyOrderedConsumer, ConcurrentConsumer])
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_listener_says_decides_whether_the_message_comes_again(
    kind: Any, is_async: bool, caplog: Any
) -> None:
    """False, Suspend returned, Suspend raised, an exception: again, with a number; None and True are success."""

    async def go() -> None:
        inbox = Inbox(
            False, Suspend(ms=20), Suspend(ms=20), ValueError("a bug of the listener's"), None, True
        )

        async def listen(message: Message) -> Any:
            return inbox(message)

        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            await producer.send("orders", "a", key="k")
            async with kind(
                cluster.namesrv,
                group="billing",
                topics="orders",
                listener=listen if is_async else inbox,
                start="first",
                suspend_ms=20,
                **QUICK,
            ):
                await inbox.has(5)
                await producer.send("orders", "b", key="k")
                await inbox.has(6)
        assert inbox.texts == ["a"] * 5 + ["b"]
        assert [message.attempt for message in inbox.got] == [1, 2, 3, 4, 5, 1]
        assert len({message.id for message in inbox.got[:5]}) == 1
        assert {message.topic for message in inbox.got} == {"orders"}

    with caplog.at_level(logging.ERROR, "inorder.client"):
        asyncio.run(go())
    assert sum("ValueError" in (record.exc_text or "") for record in caplog.records) == 1


def test_a_listener_that_answers_nonsense_is_told_in_the_log(caplog: Any) -> None:
    async def go() -> None:
        async def late() -> None:
            pass

        inbox = Inbox("yes", Result.COMMIT, late(), None)
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            await producer.send("orders", "a")
            async with OrderlyConsumer(
                cluster.namesrv,
                group="g",
                topics="orders",
                listener=inbox,
                start="first",
                suspend_ms=20,
                **QUICK,
            ):
                await inbox.has(4)

    asyncio.run(go())
    words = " ".join(record.exc_text or "" for record in caplog.records)
    assert "'yes'" in words
    assert "only with auto_commit=False" in words
    assert "make the listener itself an async function" in words


def test_manual_commits_finish_what_came_before_and_a_rollback_repeats_it() -> None:
    async def go() -> None:
        inbox = Inbox(None, Result.ROLLBACK, None, None, Result.COMMIT)
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            for text in ("a", "b", "c"):
                await producer.send("orders", text, queue=0)
            async with OrderlyConsumer(
                cluster.namesrv,
                group="g",
                topics="orders",
                listener=inbox,
                start="first",
                suspend_ms=20,
                auto_commit=False,
                **QUICK,
            ):
                await inbox.has(5)
            again = Inbox()
            await producer.send("orders", "d", queue=0)
            async with OrderlyConsumer(
                cluster.namesrv, group="g", topics="orders", listener=again, start="first", **QUICK
            ):
                await again.has(1)
        assert inbox.texts == ["a", "b", "a", "b", "c"]
        assert again.texts == ["d"]

    asyncio.run(go())


def test_a_batch_listener_gets_messages_of_one_queue() -> None:
    async def go() -> None:
        inbox = Inbox()
        async with orders(queues=2) as cluster, Producer(cluster.namesrv) as producer:
            for number in range(12):
                await producer.send("orders", str(number), queue=number % 2)
            async with OrderlyConsumer(
                cluster.namesrv,
                group="g",
                topics="orders",
                batch_listener=inbox,
                batch=4,
                start="first",
                **QUICK,
            ):
                await wait_until(lambda: sum(map(len, inbox.got)) == 12)
        assert all(isinstance(batch, Batch) and len(batch) <= 4 for batch in inbox.got)
        got = defaultdict(list)
        for batch in inbox.got:
            assert {message.queue for message in batch} == {batch.queue}
            got[batch.queue.queue_id] += [message.text for message in batch]
        assert got == {0: ["0", "2", "4", "6", "8", "10"], 1: ["1", "3", "5", "7", "9", "11"]}

    asyncio.run(go())


def test_a_listener_gets_the_tags_that_were_asked_for() -> None:
    async def go() -> None:
        inbox = Inbox()
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            for tags in ("red", "green", "blue", None):
                await producer.send("orders", tags or "none", tags=tags)
            async with OrderlyConsumer(
                cluster.namesrv,
                group="g",
                topics={"orders": "red || blue"},
                listener=inbox,
                start="first",
                **QUICK,
            ):
                await inbox.has(2)
        assert inbox.texts == ["red", "blue"]

    asyncio.run(go())


def test_a_moment_may_be_the_start() -> None:
    """The topic is not young any more, so that the broker does not answer 0 for what nobody has stored."""

    async def go() -> None:
        inbox = Inbox()
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            for text in ("before", "at", "after"):
                sent = await producer.send("orders", text)
                stored = cluster.stores["b0"].queue("orders", 0).get(sent.offset or 0)
                await wait_until(lambda stored=stored: WallClock().now_ms() > stored.store_ms)
            broker = cluster.bodies["b0"].core
            answer = broker.handle

            def not_found(now_ms: int, event: Any) -> Any:
                command = getattr(event, "command", None)
                if command is not None and command.code == RequestCode.QUERY_CONSUMER_OFFSET:
                    return [Send(event.conn, command.reply(ResponseCode.QUERY_NOT_FOUND))]
                return answer(now_ms, event)

            broker.handle = not_found  # type: ignore[method-assign]
            moment = datetime.fromtimestamp(
                cluster.stores["b0"].queue("orders", 0).get(1).store_ms / 1000, tz=UTC
            )
            async with OrderlyConsumer(
                cluster.namesrv, group="g", topics="orders", listener=inbox, start=moment, **QUICK
            ):
                await inbox.has(2)
        assert inbox.texts == ["at", "after"]

    asyncio.run(go())


def test_a_concurrent_listener_may_give_a_message_up_at_once() -> None:
    async def go() -> None:
        inbox = Inbox(Suspend(delay_level=DEAD_LETTER_NOW))
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            await producer.send("orders", "a", key="k")
            async with ConcurrentConsumer(
                cluster.namesrv, group="g", topics="orders", listener=inbox, start="first", **QUICK
            ):
                dead = cluster.stores["b0"]
                await wait_until(lambda: dead.queue(dead_letter_topic("g"), 0).get(0) is not None)
            assert dead.queue(dead_letter_topic("g"), 0).get(0).body == b"a"

    asyncio.run(go())


def test_two_members_share_the_queues_by_any_of_the_six_strategies() -> None:
    fixed = [Queue("orders", "east@b0", number) for number in (0, 3)]
    ways: list[tuple[Any, Any]] = [
        ("AVG", "AVG"),
        ("CIRCLE", allocation.by_circle),
        ("CONSISTENT_HASH", allocation.consistent_hash),
        (
            allocation.by_config(fixed),
            allocation.by_config([Queue("orders", "east@b0", n) for n in (1, 2)]),
        ),
        (allocation.by_machine_room(["east"]),) * 2,
        (allocation.nearby(allocation.averagely, lambda queue: "east", lambda member: "east"),) * 2,
    ]

    async def go() -> None:
        async with orders(names=("east@b0",)) as cluster:
            for number, (one, two) in enumerate(ways):
                group = f"g{number}"
                shared: dict[str, Any] = {
                    "group": group,
                    "topics": "orders",
                    "listener": Inbox(),
                    **QUICK,
                }
                async with (
                    OrderlyConsumer(cluster.namesrv, share_by=one, client_id="a", **shared) as a,
                    OrderlyConsumer(cluster.namesrv, share_by=two, client_id="b", **shared) as b,
                ):
                    await wait_until(lambda a=a, b=b: len(a.queues) + len(b.queues) == 4)
                    await wait_until(
                        lambda a=a, b=b: {*a.queues, *b.queues} == set(a.queues) ^ set(b.queues)
                    )
                    assert {queue.queue_id for queue in (*a.queues, *b.queues)} == {0, 1, 2, 3}
                    assert a.queues or one == "CONSISTENT_HASH"

    asyncio.run(go())


def test_a_shutdown_waits_for_the_running_call_and_stores_its_offset() -> None:
    async def go() -> None:
        began, may_end = threading.Event(), threading.Event()
        got: list[str] = []

        def slow(message: Message) -> None:
            began.set()
            assert may_end.wait(30)
            got.append(message.text)

        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            await producer.send("orders", "a")
            consumer = OrderlyConsumer(
                cluster.namesrv, group="g", topics="orders", listener=slow, start="first", **QUICK
            )
            await consumer.start()
            await asyncio.to_thread(began.wait, 30)
            stopping = asyncio.create_task(consumer.stop())
            await asyncio.sleep(0)
            assert not stopping.done()
            may_end.set()
            await stopping
            inbox = Inbox()
            await producer.send("orders", "b")
            async with OrderlyConsumer(
                cluster.namesrv, group="g", topics="orders", listener=inbox, start="first", **QUICK
            ):
                await inbox.has(1)
        assert (got, inbox.texts) == (["a"], ["b"])

    asyncio.run(go())


def test_waiting_for_queues_ends_when_there_are_some_or_with_a_reason() -> None:
    async def go() -> None:
        async with orders() as cluster:
            shared: dict[str, Any] = {"group": "g", "listener": Inbox(), **QUICK}
            async with OrderlyConsumer(cluster.namesrv, topics="orders", **shared) as consumer:
                await consumer.ready()
                assert {queue.topic for queue in consumer.queues} == {"orders"}
            async with OrderlyConsumer(cluster.namesrv, topics="nowhere", **shared) as consumer:
                with pytest.raises(TimeoutError, match="is the topic created"):
                    await consumer.ready(0.2)

    asyncio.run(go())


def test_what_makes_no_consumer_is_said_at_once() -> None:
    def none(message: object) -> None: ...

    wrong: list[tuple[str, dict[str, Any]]] = [
        ("needs a listener", {}),
        ("not both", {"listener": none, "batch_listener": none}),
        ("batch goes with", {"listener": none, "batch": 4}),
        ("at least one topic", {"listener": none, "topics": []}),
        ("no name of a group", {"listener": none, "group": "a b"}),
        ("unknown strategy", {"listener": none, "share_by": "ALL"}),
        ("consume_from", {"listener": none, "start": "middle"}),
        ("at least one thread", {"listener": none, "threads": 0}),
    ]
    for words, arguments in wrong:
        with pytest.raises(UsageError, match=words):
            OrderlyConsumer(
                **{"name_servers": "127.0.0.1:1", "group": "g", "topics": "orders", **arguments}
            )


# ---------------------------------------------------------------- broadcast


def test_a_broadcast_consumer_goes_on_where_its_own_file_says(tmp_path: Path) -> None:
    async def go() -> None:
        first, second, other = Inbox(), Inbox(), Inbox()
        mine, theirs = tmp_path / "deep" / "mine.json", tmp_path / "theirs.json"
        shared: dict[str, Any] = {"group": "g", "topics": "orders", "start": "first", **QUICK}
        async with orders(queues=2) as cluster, Producer(cluster.namesrv) as producer:
            await producer.send("orders", "a")
            async with (
                BroadcastConsumer(cluster.namesrv, offsets=mine, listener=first, **shared),
                BroadcastConsumer(cluster.namesrv, offsets=theirs, listener=other, **shared),
            ):
                await first.has(1)
                await other.has(1)
                with pytest.raises(UsageError, match="in use"):
                    await BroadcastConsumer(
                        cluster.namesrv, offsets=mine, listener=first, **shared
                    ).start()
            await producer.send("orders", "b")
            async with BroadcastConsumer(cluster.namesrv, offsets=mine, listener=second, **shared):
                await second.has(1)
        assert (first.texts, other.texts, second.texts) == (["a"], ["a"], ["b"])
        rows = json.loads(mine.read_text())["offsets"]
        assert sorted(row["offset"] for row in rows) == [1, 1]

    asyncio.run(go())


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no file of offsets"),
        ("[]", "is no file of offsets"),
        ('{"format": "inorder/offsets/v2"}', "newer"),
        (
            '{"format": "inorder/offsets/v1", "group": "h", "offsets": []}',
            "belongs to the group 'h'",
        ),
        (
            '{"format": "inorder/offsets/v1", "group": "g", "offsets": [{}]}',
            "is no file of offsets",
        ),
    ],
)
def test_a_file_of_offsets_that_is_none_is_said(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "offsets.json"
    path.write_text(text)

    async def go() -> None:
        consumer = BroadcastConsumer(
            "127.0.0.1:1", group="g", topics="orders", offsets=path, listener=Inbox()
        )
        with pytest.raises(UsageError, match=words):
            await consumer.start()

    asyncio.run(go())


# ---------------------------------------------------------------- pull


def test_batches_are_asked_for_and_finished_by_asking_for_the_next() -> None:
    async def go() -> None:
        shared: dict[str, Any] = {"group": "audit", "topics": "orders", "start": "first", **QUICK}
        got: list[str] = []
        async with orders(queues=1) as cluster, Producer(cluster.namesrv) as producer:
            for number in range(6):
                await producer.send("orders", str(number))
            async with PullConsumer(cluster.namesrv, batch=2, **shared) as consumer:
                async for batch in consumer:
                    got += [message.text for message in batch]
                    if "3" in got:
                        break
                # The second batch was not finished: neither was another one asked for, nor `done` said.
            async with PullConsumer(cluster.namesrv, batch=3, **shared) as consumer:
                again = await consumer.next(10)
                assert again is not None
                assert [message.text for message in again] == ["2", "3", "4"]
                consumer.again()
                repeated = await consumer.next(10)
                assert repeated is not None
                assert [message.attempt for message in repeated] == [2, 2, 2]
                rest = await consumer.next(10)
                assert rest is not None
                assert [message.text for message in rest] == ["5"]
                consumer.done()
                assert await consumer.next(0.1) is None
            await producer.send("orders", "6")
            async with PullConsumer(cluster.namesrv, **shared) as consumer:
                last = await consumer.next(10)
                assert last is not None
                assert [message.text for message in last] == ["6"]
        assert got == ["0", "1", "2", "3"]

    asyncio.run(go())


def test_stopping_ends_an_iteration_that_waits() -> None:
    async def go() -> None:
        async with orders() as cluster:
            consumer = PullConsumer(cluster.namesrv, group="g", topics="orders", **QUICK)
            await consumer.start()
            await consumer.ready()

            async def read() -> int:
                return sum([len(batch) async for batch in consumer])

            reading = asyncio.create_task(read())
            await asyncio.sleep(0)
            await consumer.stop()
            assert await reading == 0

    asyncio.run(go())


# ---------------------------------------------------------------- a history


def test_what_clients_did_can_be_written_down_as_a_history(tmp_path: Path) -> None:
    async def go() -> None:
        inbox = Inbox()
        async with orders() as cluster:
            with recorded(tmp_path / "mine") as journal:
                async with Producer(cluster.namesrv, recorder=journal) as producer:
                    for number in range(3):
                        await producer.send("orders", str(number), key="k")
                shared: dict[str, Any] = {
                    "topics": "orders",
                    "start": "first",
                    "recorder": journal,
                    **QUICK,
                }
                async with OrderlyConsumer(cluster.namesrv, group="g", listener=inbox, **shared):
                    await inbox.has(3)

    asyncio.run(go())
    history = open_history(tmp_path / "mine")
    counts = Counter((row.kind, row.outcome) for row in history.rows())
    assert counts[Kind.SEND, Outcome.OK] == 3
    assert counts[Kind.DELIVER, Outcome.SUCCESS] == 3
    assert counts[Kind.LEAVE, Outcome.OK] == 2
    declared = (history.info.records or {})[Level.CLIENT]
    assert {row.kind for row in history.rows()} <= set(declared)
    with pytest.raises(UsageError, match="a history already"), recorded(tmp_path / "mine"):
        pass


# ---------------------------------------------------------------- the same against Apache


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_calls_drive_a_cluster_of_apaches(version: str, tmp_path: Path) -> None:
    with ApacheCluster(version, workdir=tmp_path / "cluster") as cluster:
        cluster.create_topic("orders", queues=2)

        async def go() -> None:
            big = "big " * 5_000
            shared: dict[str, Any] = {"topics": "orders", "start": "first", **QUICK}
            async with Producer(cluster.namesrv) as producer:
                sent = await producer.send(
                    "orders", "a", key="k", tags="t", keys=["o-1"], properties={"shop": "7"}
                )
                await producer.send_batch("orders", ["b", "c"], key="k")
                await producer.send("orders", big, key="k")
                await producer.send_oneway("orders", "d", key="k")
                if not version.startswith(
                    "4."
                ):  # a 4.9 broker may forget to tell that it makes topics on demand
                    made = await producer.send("made-by-sending", b"x")
                    assert made.queue.topic == "made-by-sending"
                orderly, concurrent, keyed, all_of_it = (
                    Inbox(Suspend(ms=20)),
                    Inbox(),
                    Inbox(False),
                    Inbox(),
                )
                pulled: list[str] = []
                async with (
                    OrderlyConsumer(cluster.namesrv, group="orderly", listener=orderly, **shared),
                    ConcurrentConsumer(
                        cluster.namesrv, group="concurrent", listener=concurrent, **shared
                    ),
                    KeyOrderedConsumer(
                        cluster.namesrv, group="keyed", listener=keyed, suspend_ms=20, **shared
                    ),
                    BroadcastConsumer(
                        cluster.namesrv,
                        group="cast",
                        listener=all_of_it,
                        offsets=tmp_path / "o.json",
                        **shared,
                    ),
                    PullConsumer(cluster.namesrv, group="pull", **shared) as puller,
                ):
                    async for batch in puller:
                        pulled += [message.text for message in batch]
                        if len(pulled) == 5:
                            break
                    await asyncio.gather(
                        orderly.has(6), concurrent.has(5), keyed.has(6), all_of_it.has(5)
                    )
            five = ["a", "b", "c", big, "d"]
            assert orderly.texts == ["a", *five]
            assert keyed.texts == ["a", *five]
            assert sorted(concurrent.texts) == sorted(five)
            assert sorted(all_of_it.texts) == sorted(five)
            assert pulled == five
            first = orderly.got[0]
            assert (first.id, first.offset_id, first.queue) == (
                sent.message_id,
                sent.offset_id,
                sent.queue,
            )
            assert (first.tags, first.keys, first.properties["shop"]) == ("t", ("o-1",), "7")

        asyncio.run(go())
