"""What our broker sees of a client, as rows of a history."""

from __future__ import annotations

from pathlib import Path

from conformance.drivers.watching import Watch, WatchedCore, complete
from reference_impl.core.broker import Broker, BrokerConfig, BrokerStore
from reference_impl.core.io import Opened, Received
from reference_impl.protocol.bodies import ConsumerData, Heartbeat, LockBatch, Subscription
from reference_impl.protocol.codes import RequestCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import (
    PULL_COMMIT,
    CreateTopicHeader,
    PullHeader,
    QueryConsumerOffsetHeader,
    SendBackHeader,
    SendHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import pack_properties
from specs.history.journal import Journal
from specs.history.row import Row
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import compact_journal
from specs.history.text import parse_history
from specs.vocabulary import Kind, Level, Outcome, Queue

NOW_MS = 1_700_000_000_000
QUEUE = Queue("orders", "b0", 0)


class Desk:
    """A watched broker core, and clients that ask it by frames."""

    def __init__(self, folder: Path) -> None:
        write_runinfo(folder, RunInfo(run="r"))
        self.folder = folder
        self.journal = Journal(folder, "broker", common={"level": Level.WIRE})
        watch = Watch(self.journal, {"127.0.0.1@c1": "c1", "127.0.0.1@c2": "c2"})
        self.core: WatchedCore = watch.core("b0", Broker(BrokerConfig(name="b0"), BrokerStore()))
        self.opaque = 0
        self.ask(9, RequestCode.UPDATE_AND_CREATE_TOPIC, CreateTopicHeader("orders", 1, 1).to_ext())

    def ask(
        self, conn: int, code: int, ext: object = None, body: bytes = b"", flag: int = 0
    ) -> None:
        self.opaque += 1
        command = Command(code, ext=ext or {}, body=body, opaque=self.opaque, flag=flag)  # type: ignore[arg-type]
        list(self.core.handle(NOW_MS, Received(conn, command)))

    def joins(self, conn: int, client: str) -> None:
        list(self.core.handle(NOW_MS, Opened(conn, "127.0.0.1:1")))
        consumer = ConsumerData(
            "billing", subscriptions=(Subscription.of("orders"), Subscription.of("%RETRY%billing"))
        )
        self.ask(
            conn, RequestCode.HEART_BEAT, body=Heartbeat(client, consumers=(consumer,)).encode()
        )

    def locks(self, conn: int, client: str, code: int = RequestCode.LOCK_BATCH_MQ) -> None:
        self.ask(conn, code, body=LockBatch("billing", client, (QUEUE,)).encode())

    def sends(self, conn: int, topic: str, message: str, delay: int | None = None) -> None:
        properties = {"UNIQ_KEY": message, "RETRY_TOPIC": "orders"}
        if delay is not None:
            properties["DELAY"] = str(delay)
        header = SendHeader("shops", topic, 0, NOW_MS, properties=pack_properties(properties))
        self.ask(conn, RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), message.encode())

    def rows(self) -> list[Row]:
        self.journal.close()
        return list(compact_journal(self.folder).rows())


def test_each_request_of_a_watched_client_is_a_row(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.joins(1, "127.0.0.1@c1")
    desk.joins(2, "127.0.0.1@c2")
    desk.locks(1, "127.0.0.1@c1")
    desk.locks(2, "127.0.0.1@c2")
    desk.sends(1, "orders", "m1")
    desk.sends(1, "orders", "m2")
    desk.ask(
        1,
        RequestCode.QUERY_CONSUMER_OFFSET,
        QueryConsumerOffsetHeader("billing", "orders", 0).to_ext(),
    )
    pull = PullHeader("billing", "orders", 0, 1, sys_flag=PULL_COMMIT, commit_offset=1)
    desk.ask(1, RequestCode.PULL_MESSAGE, pull.to_ext())
    commit = UpdateConsumerOffsetHeader("billing", "orders", 0, 2)
    desk.ask(1, RequestCode.UPDATE_CONSUMER_OFFSET, commit.to_ext(), flag=FLAG_ONEWAY)
    desk.sends(1, "%RETRY%billing", "m2", delay=5)
    desk.locks(1, "127.0.0.1@c1", RequestCode.UNLOCK_BATCH_MQ)
    rows = desk.rows()
    assert {row.level for row in rows} == {Level.WIRE}
    assert [
        (row.kind, row.client_id, row.outcome, row.queue_offset, row.value, row.view)
        for row in rows
    ] == [
        (Kind.LOCK, "c1", Outcome.OK, None, None, None),
        (Kind.LOCK, "c2", Outcome.REFUSED, None, None, None),
        (Kind.FETCH_OFFSET, "c1", Outcome.OK, None, 0, None),
        (Kind.PULL, "c1", Outcome.OK, 1, 2, None),
        (Kind.COMMIT, "c1", Outcome.OK, None, 1, "pull"),
        (Kind.COMMIT, "c1", Outcome.SENT, None, 2, None),
        (Kind.DEAD_LETTER, "c1", Outcome.OK, 1, None, None),
        (Kind.UNLOCK, "c1", Outcome.OK, None, None, None),
    ]
    given_up = rows[6]
    assert (tuple(given_up.lane), given_up.message_id, given_up.reconsume_times, given_up.attempt) == (
        ("billing", "orders", "b0", 0), "m2", 2, 1,
    )  # fmt: skip


def test_what_a_client_asks_to_be_put_away_is_given_up(tmp_path: Path) -> None:
    """Below delay level 0 a send-back is a dead letter at once; any other is a retry, which nobody here asks for."""
    desk = Desk(tmp_path)
    desk.joins(1, "127.0.0.1@c1")
    desk.sends(1, "orders", "m1")
    for level in (3, -1):
        back = SendBackHeader(0, "billing", level, origin_msg_id="m1", origin_topic="orders")
        desk.ask(1, RequestCode.CONSUMER_SEND_MSG_BACK, back.to_ext())
    (row,) = desk.rows()
    assert (row.kind, row.client_id, row.outcome) == (Kind.DEAD_LETTER, "c1", Outcome.OK)
    assert (tuple(row.lane), row.queue_offset, row.message_id, row.attempt) == (
        ("billing", "orders", "b0", 0), 0, "m1", 1,
    )  # fmt: skip


def test_who_is_none_of_the_plans_clients_is_not_written_down(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.ask(
        3,
        RequestCode.QUERY_CONSUMER_OFFSET,
        QueryConsumerOffsetHeader("billing", "orders", 0).to_ext(),
    )
    desk.locks(3, "127.0.0.1@stranger")
    desk.ask(3, RequestCode.PULL_MESSAGE, {"queueId": "no number"})
    assert desk.rows() == []


def test_a_request_belongs_to_the_work_that_its_client_has_begun() -> None:
    _, rows = parse_history(
        """
        0ms..1ms   c1  fetches  billing/orders/b0/3   value=17 ok
        2ms        c1  adds     billing/orders/b0/3   inc=1
        3ms        c1  commits  billing/orders/b0/3   value=18 sent
        4ms        c2  commits  billing/orders/b0/3   value=18 sent
        5ms        c1  drops    billing/orders/b0/3   inc=1
        6ms        c1  locks    billing/orders/b0/3   ok
        7ms        c1  commits  billing/orders/b0/3   value=18 sent
        8ms        c1  adds     billing/orders/b0/3   inc=2
        9ms        c1  crashes  -
        10ms..11ms c1  locks    billing/orders/b0/3   ok
        """
    )
    bare = [
        row if row.kind in (Kind.ADD, Kind.DROP) else row._replace(incarnation=None) for row in rows
    ]
    first, second = bare[1].incarnation, bare[7].incarnation
    assert first != second
    found = complete(bare)
    # What was sent just after the end was told still belongs to it, whatever round of locks was under way.
    assert [row.incarnation for row in found if row.kind is Kind.COMMIT] == [first, None, first]
    assert [row.value for row in found if row.kind is Kind.ADD] == [17, None]
    assert found[-1].incarnation is None  # the process that had begun the work is dead


def test_a_commit_of_where_a_pull_was_sent_to_is_a_correction(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.joins(1, "127.0.0.1@c1")
    desk.sends(1, "orders", "m1")

    def commit(value: int) -> None:
        header = UpdateConsumerOffsetHeader("billing", "orders", 0, value)
        desk.ask(1, RequestCode.UPDATE_CONSUMER_OFFSET, header.to_ext())

    def pull(offset: int, committed: int) -> None:
        header = PullHeader(
            "billing", "orders", 0, offset, sys_flag=PULL_COMMIT, commit_offset=committed
        )
        desk.ask(1, RequestCode.PULL_MESSAGE, header.to_ext())

    commit(1)
    pull(9, 0)  # beyond the end: sent to 1
    commit(1)
    pull(1, 1)
    desk.sends(1, "orders", "m2")
    commit(2)
    commit(1)
    commits = [(row.value, row.view, row.detail) for row in desk.rows() if row.kind is Kind.COMMIT]
    assert commits == [
        (1, None, None),
        (0, "pull", None),
        (1, None, "corrected"),
        (1, "pull", "corrected"),
        (2, None, None),
        (1, None, None),
    ]
