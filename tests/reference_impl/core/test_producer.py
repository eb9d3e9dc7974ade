"""A producer on a scripted cluster."""

from __future__ import annotations

import zlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference_impl.core.io import (
    Answered,
    Begin,
    CancelTimer,
    End,
    Failed,
    Input,
    Note,
    Oneway,
    Request,
    SendDone,
    SendMessage,
    SetTimer,
    Shutdown,
    Start,
    Stopped,
    TimerFired,
)
from reference_impl.core.producer import Producer, ProducerConfig, writable_queues
from reference_impl.protocol.bodies import BrokerData, Heartbeat, QueueData, TopicRoute, java_hash
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import SendHeader, SendResponse
from reference_impl.protocol.message import decode_batch
from specs.errors import UsageError
from specs.vocabulary import Kind, Outcome, Queue

T0 = 1_700_000_000_000
SEND = RequestCode.SEND_MESSAGE_V2
SEND_BATCH = RequestCode.SEND_BATCH_MESSAGE
ROUTE = RequestCode.GET_ROUTEINFO_BY_TOPIC


def route(*brokers: tuple[str, int], order_conf: str | None = None, perm: int = 6) -> TopicRoute:
    """Brokers with their numbers of queues, in the order given."""
    return TopicRoute(
        tuple(QueueData(name, count, count, perm) for name, count in brokers),
        tuple(BrokerData("c", name, {0: f"{name}:1"}) for name, _ in brokers),
        order_conf,
    )


class Bench:
    """A producer `p1`; sends stay open, everything else is answered at once."""

    def __init__(self, topic_route: TopicRoute | None = None, **config: Any) -> None:
        self.route = topic_route or route(("b1", 2), ("b0", 2))
        self.producer = Producer(ProducerConfig("p1", "pg", ("ns1", "ns2"), **config))
        self.effects: list[Any] = []
        self.open: list[Request] = []
        self.hold: set[int] = set()
        self.now = T0

    def give(self, input: Input) -> list[Any]:
        at = len(self.effects)
        inputs = [input]
        while inputs:
            for effect in self.producer.handle(self.now, inputs.pop(0)):
                self.effects.append(effect)
                if isinstance(effect, Request):
                    if effect.command.code in (SEND, SEND_BATCH, *self.hold):
                        self.open.append(effect)
                    else:
                        inputs.append(Answered(effect.token, self.answer(effect.command)))
        return self.effects[at:]

    def answer(self, command: Command) -> Command:
        if command.code == ROUTE and command.ext["topic"] != "t":
            return Command(ResponseCode.TOPIC_NOT_EXIST, flag=1)
        return Command(0, body=self.route.encode() if command.code == ROUTE else b"", flag=1)

    def send(
        self, key: str | None = None, token: object = 1, topic: str = "t", **more: Any
    ) -> list[Any]:
        return self.give(SendMessage(token, topic, b"body", key, **more))

    def stored(self, code: int = 0, queue_id: int = 1, offset: int = 7) -> list[Any]:
        request = self.open.pop(0)
        ext = SendResponse("0" * 32, queue_id, offset).to_ext()
        return self.give(Answered(request.token, Command(code, ext, flag=1)))

    def refused(self, code: int) -> list[Any]:
        return self.give(Answered(self.open.pop(0).token, Command(code, flag=1, remark="no")))

    def failed(self, reason: str) -> list[Any]:
        return self.give(Failed(self.open.pop(0).token, reason))

    @property
    def headers(self) -> list[SendHeader]:
        sends = [e for e in self.effects if isinstance(e, Request) and e.command.code == SEND]
        return [SendHeader.from_ext_v2(e.command.ext) for e in sends]

    @property
    def addresses(self) -> list[str]:
        return [
            e.address for e in self.effects if isinstance(e, Request) and e.command.code == SEND
        ]

    @property
    def done(self) -> list[SendDone]:
        return [e for e in self.effects if isinstance(e, SendDone)]

    def begun(self) -> list[dict[str, Any]]:
        return [
            dict(e.fields) for e in self.effects if isinstance(e, Begin) and e.kind is Kind.SEND
        ]

    def ended(self) -> list[tuple[Outcome, dict[str, Any]]]:
        return [(e.outcome, dict(e.fields)) for e in self.effects if isinstance(e, End)]


@pytest.fixture
def bench() -> Bench:
    made = Bench(topics=("t",))
    made.give(Start())
    return made


def test_one_send_from_begin_to_end(bench: Bench) -> None:
    bench.send("k", key_seq=3, tags="a", message_id="m1")
    fields = {
        "client_id": "p1",
        "topic": "t",
        "broker": "b1",
        "queue_id": 1,
        "message_id": "m1",
        "sharding_key": "k",
        "key_seq": 3,
        "attempt": 1,
        "body_hash": zlib.crc32(b"body"),
        "props_hash": 0,
        "tags": "a",
        "view": "java-hash b0/0 b0/1 b1/0 b1/1",
        "delay_level": None,
        "detail": None,
    }
    assert java_hash("k") % 4 == 3
    assert bench.begun() == [fields]
    assert bench.addresses == ["b1:1"]
    (header,) = bench.headers
    assert (header.producer_group, header.topic, header.queue_id, header.born_timestamp) == (
        "pg",
        "t",
        1,
        T0,
    )
    assert header.property_map == {
        "UNIQ_KEY": "m1",
        "__SHARDINGKEY": "k",
        "TAGS": "a",
        "KEY_SEQ": "3",
    }
    effects = bench.stored(queue_id=1, offset=9)
    assert bench.ended() == [(Outcome.OK, {"code": 0, "queue_id": 1, "queue_offset": 9})]
    assert effects[-1] == SendDone(1, Outcome.OK, 0, 1, 9, "m1", "b1", "0" * 32)


def test_a_delayed_message_asks_for_its_level(bench: Bench) -> None:
    bench.send("k", delay_level=4)
    (header,) = bench.headers
    assert (header.property_map["DELAY"], bench.begun()[0]["delay_level"]) == ("4", 4)


def test_start_registers_and_says_so(bench: Bench) -> None:
    assert bench.effects[0] == Note(Kind.JOIN, Outcome.OK, {"client_id": "p1"})
    beats = [
        e
        for e in bench.effects
        if isinstance(e, Request) and e.command.code == RequestCode.HEART_BEAT
    ]
    assert [e.address for e in beats] == ["b0:1", "b1:1"]
    assert Heartbeat.decode(beats[0].command.body).producers == ("pg",)
    assert sorted(e.token[0] for e in bench.effects if isinstance(e, SetTimer)) == [
        "heartbeat",
        "routes",
    ]
    bench.give(TimerFired(("heartbeat",)))
    bench.give(TimerFired(("routes",)))
    beats = [
        e
        for e in bench.effects
        if isinstance(e, Request) and e.command.code == RequestCode.HEART_BEAT
    ]
    assert len(beats) == 4


@given(st.text(), st.integers(1, 17))
def test_a_key_always_finds_a_queue_and_always_the_same(key: str, count: int) -> None:
    """The remainder's sign is dropped: never a negative place, and Java's own place for ordinary keys."""
    queues = [Queue("t", "b", number) for number in range(count)]
    remainder = abs(java_hash(key)) % count
    assert Producer(ProducerConfig("p", "g", ("ns",))).select(key, queues).queue_id == remainder


@pytest.mark.parametrize(
    ("count", "queue_id"), [(1, 0), (2, 0), (3, 2), (4, 0), (5, 3), (6, 2), (7, 2), (8, 0)]
)
def test_the_smallest_hash(count: int, queue_id: int) -> None:
    """`polygenelubricants` hashes to -2147483648, whose absolute value Java can't hold."""
    assert java_hash("polygenelubricants") == -(2**31)
    queues = [Queue("t", "b", number) for number in range(count)]
    assert (
        Producer(ProducerConfig("p", "g", ("ns",))).select("polygenelubricants", queues).queue_id
        == queue_id
    )


def test_queues_are_sorted_whatever_the_route_says() -> None:
    found = writable_queues("t", route(("b1", 1), ("b0", 2)))
    assert found == [Queue("t", "b0", 0), Queue("t", "b0", 1), Queue("t", "b1", 0)]


def test_read_only_queues_and_brokers_without_a_master_are_left_out() -> None:
    assert writable_queues("t", route(("b0", 2), perm=4)) == []
    slave = TopicRoute((QueueData("b0", 1, 1),), (BrokerData("c", "b0", {1: "b0:2"}),))
    assert writable_queues("t", slave) == []


def test_an_order_configuration_is_the_list() -> None:
    found = writable_queues("t", route(("b0", 9), order_conf="b2:1;b0:2; bad"))
    assert found == [Queue("t", "b2", 0), Queue("t", "b0", 0), Queue("t", "b0", 1)]


def test_without_a_key_the_queues_take_turns(bench: Bench) -> None:
    for _ in range(5):
        bench.send()
    assert [(h["broker"], h["queue_id"]) for h in bench.begun()] == [
        ("b0", 0),
        ("b0", 1),
        ("b1", 0),
        ("b1", 1),
        ("b0", 0),
    ]


def test_without_a_key_a_failure_is_tried_elsewhere_twice(bench: Bench) -> None:
    bench.send(message_id="m")
    bench.failed("closed")
    bench.refused(1)
    bench.failed("unreachable")
    assert [(f["broker"], f["attempt"], f["message_id"]) for f in bench.begun()] == [
        ("b0", 1, "m"),
        ("b1", 2, "m"),
        ("b0", 3, "m"),
    ]
    assert [outcome for outcome, _ in bench.ended()] == [
        Outcome.UNKNOWN,
        Outcome.REFUSED,
        Outcome.REFUSED,
    ]
    assert bench.done == [
        SendDone(1, Outcome.REFUSED, None, None, None, "m", "b0", None, "unreachable", True)
    ]


def test_a_busy_broker_is_left_for_another(bench: Bench) -> None:
    bench.send()
    bench.refused(2)
    assert [fields["broker"] for fields in bench.begun()] == ["b0", "b1"]
    assert bench.done == []


def test_where_a_key_chose_the_busy_broker_the_send_ends(bench: Bench) -> None:
    bench.send("k")
    bench.refused(2)
    assert len(bench.begun()) == 1
    assert [done.code for done in bench.done] == [2]


@pytest.mark.parametrize("reason", ["closed", "unreachable", "timeout"])
def test_with_a_key_there_is_one_try(bench: Bench, reason: str) -> None:
    bench.send("k")
    bench.failed(reason)
    outcome = Outcome.REFUSED if reason == "unreachable" else Outcome.UNKNOWN
    assert [d.outcome for d in bench.done] == [outcome]
    assert bench.ended() == [(outcome, {"detail": reason})]


def test_after_a_timeout_there_is_no_second_try(bench: Bench) -> None:
    bench.send()
    bench.failed("timeout")
    assert [d.outcome for d in bench.done] == [Outcome.UNKNOWN]


def test_a_final_refusal_is_not_tried_again(bench: Bench) -> None:
    bench.send()
    bench.refused(13)
    assert bench.done[0].outcome is Outcome.REFUSED
    assert bench.done[0].code == 13


@pytest.mark.parametrize("code", [10, 11, 12])
def test_stored_with_less_safety_is_ok(bench: Bench, code: int) -> None:
    bench.send("k")
    bench.stored(code)
    assert (bench.done[0].outcome, bench.done[0].code) == (Outcome.OK, code)


def test_a_garbled_answer_is_unknown(bench: Bench) -> None:
    bench.send("k")
    bench.give(Answered(bench.open.pop().token, Command(0, {"msgId": "x"}, flag=1)))
    assert bench.done[0].outcome is Outcome.UNKNOWN


def test_sends_wait_for_the_route_in_their_order() -> None:
    bench = Bench()
    bench.hold.add(ROUTE)
    bench.give(Start())
    bench.send("k", token=1)
    bench.send("k", token=2)
    assert len(bench.open) == 1
    bench.hold.clear()
    asked = bench.open.pop()
    bench.give(Answered(asked.token, bench.answer(asked.command)))
    assert [f["message_id"][-1] for f in bench.begun()] == ["1", "2"]


def test_a_topic_that_nobody_knows_is_refused(bench: Bench) -> None:
    bench.send("k", topic="nowhere")
    assert [d.outcome for d in bench.done] == [Outcome.REFUSED]
    assert bench.ended() == [(Outcome.REFUSED, {"detail": "no route"})]


def test_the_second_name_server_is_asked() -> None:
    bench = Bench(topics=("t",))
    bench.hold.add(ROUTE)
    bench.give(Start())
    bench.failed("unreachable")
    assert bench.open[0].address == "ns2"


def test_ids_are_unique_over_restarts(bench: Bench) -> None:
    bench.send("k")
    bench.send("k")
    other = Bench(topics=("t",))
    other.now = T0 + 5
    other.give(Start())
    other.send("k")
    ids = [f["message_id"] for f in bench.begun() + other.begun()]
    assert len(set(ids)) == 3


def test_shutdown_waits_for_open_sends(bench: Bench) -> None:
    bench.send("k")
    assert not any(isinstance(e, Stopped) for e in bench.give(Shutdown()))
    refused = bench.send("k", token=2)
    assert [e.outcome for e in refused if isinstance(e, SendDone)] == [Outcome.REFUSED]
    effects = bench.stored()
    assert [e.command.code for e in effects if isinstance(e, Request)] == [
        RequestCode.UNREGISTER_CLIENT
    ] * 2
    assert [e.token[0] for e in effects if isinstance(e, CancelTimer)] == ["routes", "heartbeat"]
    assert isinstance(effects[-1], Stopped)
    assert bench.send("k") == []


def test_shutdown_without_any_broker() -> None:
    bench = Bench()
    bench.give(Start())
    effects = bench.give(Shutdown())
    assert [type(e) for e in effects] == [Begin, CancelTimer, CancelTimer, End, Stopped]


def test_a_batch_is_one_request_and_its_answer_names_the_first_place(bench: Bench) -> None:
    """Its messages go to one queue, each with its id and properties; the others' places are not told."""
    more = tuple(SendMessage(n, "t", f"b{n}".encode(), tags="red") for n in (2, 3))
    effects = bench.send(more=more)
    request = next(
        e
        for e in effects
        if isinstance(e, Request) and e.command.code == RequestCode.SEND_BATCH_MESSAGE
    )
    begun = next(e for e in effects if isinstance(e, Begin) and e.kind is Kind.SEND)
    parts = decode_batch(request.command.body)
    assert SendHeader.from_ext_v2(request.command.ext).batch
    assert [part.body for part in parts] == [b"body", b"b2", b"b3"]
    assert [part.properties.get("TAGS") for part in parts] == [None, "red", "red"]
    assert [row["message_id"] for row in begun.rows] == [
        part.properties["UNIQ_KEY"] for part in parts
    ]
    assert [(row["value"], row["queue_id"], row["attempt"]) for row in begun.rows] == [
        (0, 0, 1),
        (1, 0, 1),
        (2, 0, 1),
    ]
    answer = Command(0, SendResponse("0" * 32, 0, 7).to_ext(), flag=1)
    end = next(e for e in bench.give(Answered(request.token, answer)) if isinstance(e, End))
    assert (dict(end.fields), list(end.rows)) == (
        {"code": 0, "queue_id": 0},
        [{"queue_offset": 7}, {}, {}],
    )


# ---------------------------------------------------------------- what is switched on by name


def asked_for_routes(bench: Bench) -> list[tuple[str, str]]:
    """(name server, topic) of each question."""
    return [
        (effect.address, effect.command.ext["topic"])
        for effect in bench.effects
        if isinstance(effect, Request) and effect.command.code == ROUTE
    ]


def answer_routes(
    bench: Bench, answers: dict[tuple[str, str], Command | str]
) -> list[tuple[str, str]]:
    """Sends to topic `n` while each question is answered as told (a word: why there is no answer)."""
    inputs: list[Input] = [SendMessage(1, "n", b"body")]
    while inputs:
        for effect in bench.producer.handle(bench.now, inputs.pop(0)):
            bench.effects.append(effect)
            if isinstance(effect, Request) and effect.command.code == ROUTE:
                answer = answers[effect.address, effect.command.ext["topic"]]
                got = (
                    Failed(effect.token, answer)
                    if isinstance(answer, str)
                    else Answered(effect.token, answer)
                )
                inputs.append(got)
    return asked_for_routes(bench)


UNKNOWN = Command(ResponseCode.TOPIC_NOT_EXIST, flag=1)


def test_the_name_server_that_answered_is_asked_first_the_next_time() -> None:
    bench = Bench()
    found = Command(0, body=route(("b0", 2)).encode(), flag=1)
    assert answer_routes(bench, {("ns1", "n"): "timeout", ("ns2", "n"): found}) == [
        ("ns1", "n"),
        ("ns2", "n"),
    ]
    bench.effects.clear()
    bench.give(TimerFired(("routes",)))
    assert asked_for_routes(bench) == [("ns2", "n"), ("ns1", "n")]  # the bench knows no such topic


def test_a_topic_that_one_name_server_does_not_know_is_asked_of_the_next() -> None:
    bench = Bench()
    found = Command(0, body=route(("b0", 2)).encode(), flag=1)
    assert answer_routes(bench, {("ns1", "n"): UNKNOWN, ("ns2", "n"): found}) == [
        ("ns1", "n"),
        ("ns2", "n"),
    ]
    assert bench.producer.queues["n"] == [Queue("n", "b0", 0), Queue("n", "b0", 1)]


def test_a_topic_that_nobody_knows_is_sent_to_the_brokers_that_make_topics() -> None:
    """With as many queues as the template has, four at most; and only to those brokers that let it be inherited."""
    template = route(("b0", 8), ("b1", 2), perm=7)
    bench = Bench(auto_create=True)
    answers: dict[tuple[str, str], Command | str] = {(ns, "n"): UNKNOWN for ns in ("ns1", "ns2")}
    answers["ns1", "TBW102"] = UNKNOWN
    answers["ns2", "TBW102"] = Command(0, body=template.encode(), flag=1)
    assert answer_routes(bench, answers) == [
        ("ns1", "n"),
        ("ns2", "n"),
        ("ns1", "TBW102"),
        ("ns2", "TBW102"),
    ]
    assert [(queue.broker, queue.queue_id) for queue in bench.producer.queues["n"]] == [
        *(("b0", number) for number in range(4)),
        *(("b1", number) for number in range(2)),
    ]
    bench.effects.clear()
    closed = Bench(auto_create=True)
    answers["ns2", "TBW102"] = Command(0, body=route(("b0", 8)).encode(), flag=1)
    answer_routes(closed, answers)
    assert [(done.outcome, done.reason) for done in closed.done] == [(Outcome.REFUSED, "no route")]


def test_a_oneway_send_ends_when_it_is_handed_over(bench: Bench) -> None:
    effects = bench.send("k", oneway=True)
    begin, oneway, end, done = effects
    assert isinstance(begin, Begin)
    assert isinstance(oneway, Oneway)
    assert oneway.command.is_oneway
    assert (end.outcome, done.outcome, done.queue_id) == (
        Outcome.SENT,
        Outcome.SENT,
        begin.fields["queue_id"],
    )
    assert bench.open == []


def test_a_selector_decides_once_and_may_say_that_there_is_none(bench: Bench) -> None:
    bench.send("k", selector=lambda key, queues: queues[-1])
    assert bench.headers[0].queue_id == 1
    bench.refused(1)
    assert [done.outcome for done in bench.done] == [Outcome.REFUSED]
    assert bench.begun()[0]["view"] is None

    def none(key: str | None, queues: object) -> Queue:
        raise UsageError("none of them will do")

    bench.send("k", selector=none, token=2)
    assert [(done.outcome, done.reason) for done in bench.done[1:]] == [
        (Outcome.REFUSED, "none of them will do")
    ]


def test_a_large_body_is_compressed_and_says_so() -> None:
    bench = Bench(topics=("t",), compress_over_bytes=4)
    bench.give(Start())
    bench.send()
    (command,) = [request.command for request in bench.open]
    assert (SendHeader.from_ext_v2(command.ext).sys_flag, zlib.decompress(command.body)) == (
        1,
        b"body",
    )
    assert bench.begun()[0]["body_hash"] == zlib.crc32(b"body")


def test_a_slow_broker_is_avoided_until_its_time_is_over() -> None:
    bench = Bench(topics=("t",), avoid_faults=True)
    bench.give(Start())
    bench.send()
    slow = bench.addresses[-1]
    bench.now += 600
    bench.stored()
    for token in range(2, 6):
        bench.send(token=token)
        bench.stored()
    assert slow not in bench.addresses[1:]
    bench.now += 2_000
    for token in range(6, 10):
        bench.send(token=token)
        bench.stored()
    assert slow in bench.addresses[5:]


def test_a_failure_before_the_last_word_leaves_a_doubt(bench: Bench) -> None:
    bench.send()
    bench.failed("closed")
    bench.stored()
    assert [(done.outcome, done.doubt) for done in bench.done] == [(Outcome.OK, False)]
    bench.send(token=2)
    bench.failed("closed")
    bench.refused(1)
    bench.refused(13)
    assert [(done.outcome, done.code, done.doubt) for done in bench.done[1:]] == [
        (Outcome.REFUSED, 13, True)
    ]
