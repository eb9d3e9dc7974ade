"""An operator on real sockets: messages by key, a group's lag, and a reset that a commit in flight can't undo."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reference_impl.core.broker import BrokerConfig
from reference_impl.protocol import headers as h
from reference_impl.protocol.bodies import (
    ConsumerData,
    ConsumeStats,
    Heartbeat,
    Subscription,
    decode_reset_offsets,
    decode_topic_stats,
)
from reference_impl.protocol.codes import RequestCode as Ask
from reference_impl.protocol.codes import ResponseCode as Code
from reference_impl.protocol.command import Command
from reference_impl.protocol.message import decode_all, pack_properties
from reference_impl.shell.client import SyncClient
from reference_impl.shell.cluster import ThreadedCluster
from specs.vocabulary import Queue

FIRST = Queue("orders", "b0", 0)


@pytest.fixture
def broker() -> Iterator[str]:
    with ThreadedCluster(BrokerConfig(), topics=("orders",)) as running:
        yield running.brokers["b0"]


@pytest.fixture
def client() -> Iterator[SyncClient]:
    with SyncClient() as one:
        yield one


def test_inquiry_and_reset(broker: str, client: SyncClient) -> None:
    member = ConsumerData("billing", subscriptions=(Subscription.of("orders"),))
    client.call(broker, Command(Ask.HEART_BEAT, body=Heartbeat("alice", (), (member,)).encode()))
    for number in range(3):
        properties = pack_properties({"UNIQ_KEY": f"m{number}", "KEYS": f"order-{number} all"})
        header = h.SendHeader("P", "orders", 0, 1, properties=properties)
        assert (
            client.call(
                broker, Command(Ask.SEND_MESSAGE_V2, header.to_ext_v2(), b"%d" % number)
            ).code
            == 0
        )

    by_key = h.QueryMessageHeader("orders", "order-1", 10, 0, 2**62)
    found = client.call(broker, Command(Ask.QUERY_MESSAGE, by_key.to_ext()))
    assert [message.body for message in decode_all(found.body)] == [b"1"]
    by_id = h.ViewMessageHeader(decode_all(found.body)[0].physical_offset)
    assert (
        decode_all(client.call(broker, Command(Ask.VIEW_MESSAGE_BY_ID, by_id.to_ext())).body)[
            0
        ].body
        == b"1"
    )
    spans = client.call(
        broker, Command(Ask.GET_TOPIC_STATS_INFO, h.TopicStatsHeader("orders").to_ext())
    )
    assert decode_topic_stats(spans.body)[FIRST].end == 3

    def commit(value: int) -> int:
        header = h.UpdateConsumerOffsetHeader("billing", "orders", 0, value)
        return client.call(broker, Command(Ask.UPDATE_CONSUMER_OFFSET, header.to_ext())).code

    def lag() -> int:
        answer = client.call(
            broker,
            Command(Ask.GET_CONSUME_STATS, h.ConsumeStatsHeader("billing", "orders").to_ext()),
        )
        return ConsumeStats.decode(answer.body).lags[FIRST].lag

    def pull(offset: int) -> Command:
        header = h.PullHeader(
            "billing", "orders", 0, offset, 32, h.PULL_SUBSCRIPTION, subscription="*"
        )
        return client.call(broker, Command(Ask.PULL_MESSAGE, header.to_ext()))

    assert (commit(2), lag()) == (0, 1)
    moved = h.ResetOffsetHeader("orders", "billing", -1, queue_id=0, offset=1)
    answer = client.call(broker, Command(Ask.INVOKE_BROKER_TO_RESET_OFFSET, moved.to_ext()))
    assert decode_reset_offsets(answer.body) == {FIRST: 1}
    assert (commit(3), lag()) == (0, 2)
    told = pull(3)
    assert (told.code, told.ext["nextBeginOffset"]) == (Code.PULL_OFFSET_MOVED, "1")
    assert len(decode_all(pull(1).body)) == 2
    assert (commit(3), lag()) == (0, 0)
