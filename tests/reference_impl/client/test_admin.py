"""An operator's calls: looking messages up and resetting a group, on our cluster and on released Apache brokers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from conformance.parts import jars
from conformance.parts.apache import ApacheCluster
from conformance.parts.java import find_java
from reference_impl.client import (
    Admin,
    ConcurrentConsumer,
    Message,
    OrderlyConsumer,
    Producer,
    PullConsumer,
    Queue,
    Refused,
    Tuning,
    Unanswered,
    UsageError,
    recorded,
)
from reference_impl.core.broker import BrokerConfig
from reference_impl.shell.cluster import LocalCluster
from reference_impl.shell.server import address_of, take_port
from specs.history.row import Row
from specs.history.store import open_history
from specs.vocabulary import Kind, Outcome

QUICK = Tuning(
    rebalance_interval_ms=500,
    rebalance_min_ms=100,
    heartbeat_ms=500,
    route_retry_ms=100,
    persist_first_ms=100,
    persist_interval_ms=100,
    long_poll_ms=500,
    reset_wait_ms=300,
)
DIALECTS = ("5.x", "4.9")
FILED_S = 30.0
FIRST = Queue("orders", "b0", 0)
SECOND = Queue("orders", "b0", 1)
VERSIONS = [
    pytest.param(
        version,
        marks=[
            pytest.mark.apache,
            *([] if version == "4.9.7" else [pytest.mark.long]),
            pytest.mark.skipif(
                not jars.present(version) or find_java() is None,
                reason=f"needs Java and the jars of RocketMQ {version}; `make setup` gets them",
            ),
        ],
    )
    for version in jars.DEFAULT
]
"""The other release in the long tests: test_client.py drives that one in every run of the tests."""


async def wait_until(condition: Callable[[], bool], deadline_s: float = 60.0) -> None:
    """TimeoutError when the condition does not hold in time."""
    async with asyncio.timeout(deadline_s):
        while not condition():
            await asyncio.sleep(0.01)


async def filed(admin: Admin, topic: str, key: str) -> list[Message]:
    """The messages of a key, as soon as the broker has filed one."""
    async with asyncio.timeout(FILED_S):
        while not (found := await admin.by_key(topic, key)):
            await asyncio.sleep(0.05)
    return found


async def look_up(namesrv: str) -> None:
    """By a user's key, by both ids; in a window, and up to a number."""
    async with Producer(namesrv) as producer, Admin(namesrv) as admin:
        sent = [
            await producer.send("bills", f"{n}", keys=[f"bill-{n}", "all"], queue=n % 2)
            for n in range(4)
        ]
        assert [message.text for message in await filed(admin, "bills", "bill-3")] == ["3"]
        found = await admin.by_key("bills", "all")
        assert [message.text for message in found] == ["0", "1", "2", "3"]
        assert [(message.queue.queue_id, message.offset) for message in found] == [
            (0, 0),
            (1, 0),
            (0, 1),
            (1, 1),
        ]
        assert [message.text for message in await admin.by_key("bills", "all", at_most=3)] == [
            "1",
            "2",
            "3",
        ]
        assert await admin.by_key("bills", "bill") == []
        later = datetime.fromtimestamp(found[-1].stored_ms / 1000, UTC) + timedelta(seconds=10)
        before = datetime.fromtimestamp(found[0].stored_ms / 1000, UTC) - timedelta(seconds=10)
        assert await admin.by_key("bills", "all", since=later) == []
        assert await admin.by_key("bills", "all", until=before) == []
        assert len(await admin.by_key("bills", "all", since=before, until=later)) == 4
        for name in (sent[1].message_id, sent[1].offset_id):
            message = await admin.by_id("bills", name or "")
            assert message is not None
            assert (message.text, message.offset_id) == ("1", sent[1].offset_id)
        assert await admin.by_id("bills", "no such id") is None
        lies_at = sent[1].offset_id or ""
        beside = "2" if lies_at.endswith("1") else "1"
        assert await admin.by_id("bills", lies_at[:-1] + beside) is None


async def reset_at_rest(namesrv: str, folder: Path) -> None:
    """A group that nobody is online in: to offsets by name, to the first and the last message, to a time."""
    async with Producer(namesrv) as producer:
        for number in range(6):
            await producer.send("orders", f"{number}", queue=number % 2)

    async def next_texts() -> list[str]:
        """What the group gets now."""
        got: list[str] = []
        reader = PullConsumer(namesrv, group="audit", topics="orders", start="first", **QUICK)
        async with reader as consumer:
            while (batch := await consumer.next(timeout_s=8.0 if not got else 1.5)) is not None:
                got += [message.text for message in batch]
            consumer.done()
        return sorted(got)

    assert await next_texts() == ["0", "1", "2", "3", "4", "5"]
    with recorded(folder / "resets") as journal:
        async with Admin(namesrv, recorder=journal) as admin:
            assert await admin.reset("audit", "orders", to={FIRST: 1, SECOND: 2}) == {
                FIRST: 1,
                SECOND: 2,
            }
            assert await next_texts() == ["2", "4", "5"]
            assert set((await admin.reset("audit", "orders", to="first")).values()) == {0}
            assert await next_texts() == ["0", "1", "2", "3", "4", "5"]
            long_ago = datetime.now(UTC) - timedelta(hours=1)
            assert set((await admin.reset("audit", "orders", to=long_ago)).values()) == {0}
            last = await admin.reset("audit", "orders", to="last")
            assert (last[FIRST], last[SECOND]) == (3, 3)
            with pytest.raises(UsageError, match="no queue of orders"):
                await admin.reset("audit", "orders", to={Queue("orders", "b0", 99): 1})
    rows = [row for row in open_history(folder / "resets").rows() if row.kind is Kind.RESET]
    assert {row.outcome for row in rows} == {Outcome.OK}
    assert values_of(rows, FIRST) == [1, 0, 0, 3]
    assert values_of(rows, SECOND) == [2, 0, 0, 3]
    assert {row.group for row in rows} == {"audit"}


def values_of(rows: list[Row], queue: Queue) -> list[int | None]:
    return [row.value for row in rows if (row.topic, row.broker, row.queue_id) == queue]


async def reset_at_work(namesrv: str, folder: Path, *, tells: bool) -> None:
    """Members that are online go back to the first message. tells: the broker leaves the reset to them."""
    got: list[str] = []

    def listen(message: Message) -> None:
        got.append(message.text)

    with recorded(folder / "work") as journal:
        async with (
            Producer(namesrv) as producer,
            Admin(namesrv) as admin,
            OrderlyConsumer(
                namesrv,
                group="billing",
                topics="work",
                listener=listen,
                start="first",
                recorder=journal,
                **QUICK,
            ),
            ConcurrentConsumer(
                namesrv, group="fast", topics="work", listener=listen, start="first", **QUICK
            ),
        ):
            for number in range(8):
                await producer.send("work", f"{number}", key=f"k{number}")
            await wait_until(lambda: len(got) == 16)
            for group in ("billing", "fast"):
                if tells:
                    with pytest.raises(UsageError, match="has members online"):
                        await admin.reset(group, "work", to={Queue("work", "b0", 0): 0})
                async with asyncio.timeout(
                    FILED_S
                ):  # a member reports its first offsets after a moment
                    while True:
                        try:
                            moved = await admin.reset(group, "work", to="first")
                            break
                        except Refused:
                            await asyncio.sleep(0.2)
                assert list(moved.values()) == [0, 0, 0, 0]
            await wait_until(lambda: len(got) >= 32)
    assert {text: got.count(text) for text in got} == {f"{number}": 4 for number in range(8)}
    rows = list(open_history(folder / "work").rows())
    told = [row for row in rows if row.kind is Kind.RESET]
    assert [row.value for row in told] == ([0, 0, 0, 0] if tells else [])


@pytest.mark.parametrize("dialect", DIALECTS)
def test_messages_are_found_by_key_and_by_id(dialect: str) -> None:
    async def go() -> None:
        async with LocalCluster(BrokerConfig(dialect=dialect)) as cluster:
            await look_up(cluster.namesrv)

    asyncio.run(go())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_group_at_rest_is_reset(dialect: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with LocalCluster(
            BrokerConfig(dialect=dialect), topics=("orders",), queues=2
        ) as cluster:
            await reset_at_rest(cluster.namesrv, tmp_path)

    asyncio.run(go())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_group_at_work_is_reset(dialect: str, tmp_path: Path) -> None:
    async def go() -> None:
        async with LocalCluster(
            BrokerConfig(dialect=dialect), topics=("work",), queues=4
        ) as cluster:
            await reset_at_work(cluster.namesrv, tmp_path, tells=dialect == "4.9")

    asyncio.run(go())


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_reset_ahead_skips_what_a_member_is_stuck_at(dialect: str) -> None:
    got: list[str] = []

    def listen(message: Message) -> bool:
        got.append(message.text)
        return message.text == "after"

    async def go() -> None:
        async with (
            LocalCluster(BrokerConfig(dialect=dialect), topics=("work",), queues=1) as cluster,
            Producer(cluster.namesrv) as producer,
            Admin(cluster.namesrv) as admin,
        ):
            for number in range(3):
                await producer.send("work", f"{number}")
            async with OrderlyConsumer(
                cluster.namesrv,
                group="stuck",
                topics="work",
                listener=listen,
                start="first",
                suspend_ms=50,
                **QUICK,
            ):
                await wait_until(lambda: len(got) >= 2)
                while True:  # a member reports its first offset after a moment
                    try:
                        moved = await admin.reset("stuck", "work", to="last")
                        break
                    except Refused:
                        await asyncio.sleep(0.05)
                assert list(moved.values()) == [3]
                await producer.send("work", "after")
                await wait_until(lambda: "after" in got)

    asyncio.run(go())
    assert set(got) == {"0", "after"}


@pytest.mark.long
@pytest.mark.parametrize("version", VERSIONS)
def test_the_same_calls_work_on_apaches_brokers(version: str, tmp_path: Path) -> None:
    async def go(cluster: ApacheCluster) -> None:
        await look_up(cluster.namesrv)
        await reset_at_rest(cluster.namesrv, tmp_path)
        await reset_at_work(cluster.namesrv, tmp_path, tells=version.startswith("4."))

    with ApacheCluster(version, workdir=tmp_path / "cluster") as cluster:
        for topic, queues in (("bills", 2), ("orders", 2), ("work", 4)):
            cluster.create_topic(
                topic, queues
            )  # a 4.9 broker may forget to tell that it makes topics on demand
        asyncio.run(go(cluster))


def test_what_can_not_be_meant_is_said_before_anything_is_asked() -> None:
    async def go() -> None:
        with pytest.raises(UsageError, match="not started"):
            await Admin("127.0.0.1:1").by_id("orders", "x")
        async with Admin("127.0.0.1:1") as admin:
            for at_most in (0, 65):
                with pytest.raises(UsageError, match="1 to 64"):
                    await admin.by_key("orders", "k", at_most=at_most)
            for key in ("", "two words"):
                with pytest.raises(UsageError, match="is no key"):
                    await admin.by_key("orders", key)
            with pytest.raises(UsageError, match="no id"):
                await admin.by_id("orders", "")
            with pytest.raises(UsageError, match="no name of a group"):
                await admin.reset("", "orders", to="first")

    asyncio.run(go())


def test_the_errors_say_whose_fault_it_was() -> None:
    async def go() -> None:
        held = take_port()
        nobody = address_of(held)
        held.close()
        async with Admin(nobody, timeout_s=2) as admin:
            with pytest.raises(Unanswered) as silent:
                await admin.by_id("orders", "x")
            assert not silent.value.maybe_done
        async with (
            LocalCluster(BrokerConfig(), topics=("orders",)) as cluster,
            Admin(cluster.namesrv) as admin,
        ):
            with pytest.raises(Refused, match="find nowhere: code 17"):
                await admin.by_key("nowhere", "k")
            with pytest.raises(Refused, match=r"26 .SUBSCRIPTION_GROUP_NOT_EXIST.*strangers"):
                await admin.reset("strangers", "orders", to="first")
            with pytest.raises(UsageError, match="not to 'middle'"):
                await admin.reset("strangers", "orders", to="middle")  # type: ignore[arg-type]

    asyncio.run(go())
