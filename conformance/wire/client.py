"""A raw protocol client whose every request is a row of the history (level `wire`).

Nothing is retried and nothing is hidden: a request without an answer has outcome unknown.
"""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

from conformance.answers import ASK_AGAIN_S, NotTold, Told, ask_again
from conformance.waiting import wait_until
from reference_impl.protocol.bodies import (
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    decode_consumer_ids,
    decode_lock_answer,
)
from reference_impl.protocol.codes import STORED, RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    PULL_SUBSCRIPTION,
    ConsumerGroupHeader,
    CreateTopicHeader,
    GetMaxOffsetHeader,
    OffsetResponse,
    PullHeader,
    PullResponse,
    QueryConsumerOffsetHeader,
    SendHeader,
    SendResponse,
    UnregisterClientHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_KEYS,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_UNIQ_KEY,
    StoredMessage,
    decode_all,
    own_properties,
    pack_properties,
)
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import UNREACHABLE, RequestFailed
from specs.errors import TargetMisbehaved
from specs.history.clock import RecorderClock, host_clock
from specs.history.hashes import props_hash
from specs.history.journal import Journal
from specs.vocabulary import (
    DLQ_PREFIX,
    RETRY_PREFIX,
    Kind,
    Lane,
    Level,
    Outcome,
    Queue,
    retry_topic,
)

PRODUCER_GROUP = "inorder-wire"
DRAIN_GROUP = "inorder-drain"
"""Who reads queues to their end."""
TIMEOUT_S = 5.0
UNANSWERED = frozenset({None, ResponseCode.SYSTEM_BUSY, ResponseCode.FLOW_CONTROL})
"""Codes (None: nothing came back) after which a question may be asked again."""
Shown: TypeAlias = Callable[[StoredMessage], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came back, and when. code None: nothing came back (see `reason`)."""

    code: int | None
    begun_us: int
    ended_us: int
    ext: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    remark: str = ""
    reason: str = ""

    @property
    def is_told(self) -> bool:
        """Is it an answer to the question? A broker that is busy has not looked at it."""
        return self.code not in UNANSWERED

    @property
    def outcome(self) -> Outcome:
        if self.code is None:
            return Outcome.REFUSED if self.reason == UNREACHABLE else Outcome.UNKNOWN
        return Outcome.OK if self.code in STORED else Outcome.REFUSED


class WireClient:
    """One client: its id, its own connection, and the journal that all clients of the run share."""

    _numbers = itertools.count(1)

    def __init__(self, client_id: str, broker: str, broker_name: str, journal: Journal) -> None:
        self.client_id = client_id
        self.broker = broker
        self.broker_name = broker_name
        self._journal = journal
        self._clock: RecorderClock = host_clock()
        self._link = SyncClient()
        self._made_from: dict[
            str, str
        ] = {}  # the broker's id of a message that was read → its producer's

    def close(self) -> None:
        """Close the connection, as a client does that dies: no unlock, no unregister."""
        self._link.close()

    def pushes(self, timeout_s: float, count: int) -> list[Command]:
        """The broker's own requests (change notices), waited for."""
        return self._link.listen(self.broker, timeout_s, count)

    def hears_of(self, group: str, timeout_s: float) -> bool:
        """Does a change notice of the group arrive in time? Late ones of other groups are passed over."""
        deadline_us = self._clock.monotonic_us() + int(timeout_s * 1_000_000)
        while (left_us := deadline_us - self._clock.monotonic_us()) > 0:
            commands = self.pushes(left_us / 1_000_000, 1)
            if any(command.ext.get("consumerGroup") == group for command in commands):
                return True
            if not commands:
                break
        return False

    # ------------------------------------------------------------------ locks

    def lock(self, group: str, queues: Sequence[Queue]) -> tuple[Answer, frozenset[Queue] | None]:
        """Ask for lanes. Returns the answer and the granted queues (None without an answer)."""
        body = LockBatch(group, self.client_id, tuple(queues)).encode()
        operation = self._begin(Kind.LOCK, {"group": group}, [queue._asdict() for queue in queues])
        answer = self._ask(RequestCode.LOCK_BATCH_MQ, {}, body)
        granted = decode_lock_answer(answer.body) if answer.code == ResponseCode.SUCCESS else None
        rows = [
            {
                "outcome": Outcome.UNKNOWN
                if granted is None
                else Outcome.OK
                if queue in granted
                else Outcome.REFUSED
            }
            for queue in queues
        ]
        self._end(operation, answer, rows=rows)
        return answer, granted

    def unlock(self, group: str, queues: Sequence[Queue]) -> Answer:
        body = LockBatch(group, self.client_id, tuple(queues)).encode()
        operation = self._begin(
            Kind.UNLOCK, {"group": group}, [queue._asdict() for queue in queues]
        )
        return self._end(operation, self._ask(RequestCode.UNLOCK_BATCH_MQ, {}, body))

    def unregister(self, group: str) -> Answer:
        """Leave the group, as a client does at the end of its shutdown. No row: a LEAVE is the whole shutdown."""
        header = UnregisterClientHeader(self.client_id, consumer_group=group)
        return self._ask(RequestCode.UNREGISTER_CLIENT, header.to_ext())

    # ------------------------------------------------------------------ messages

    def create_topic(self, topic: str, queues: int, attributes: str | None = None) -> Answer:
        header = CreateTopicHeader(topic, queues, queues, attributes=attributes)
        code = RequestCode.UPDATE_AND_CREATE_TOPIC
        return self._answered(partial(self._ask, code, header.to_ext()))

    def create_group(self, settings: Mapping[str, Any]) -> Answer:
        """Make a group, or change it. settings: by their names in Apache's SubscriptionGroupConfig."""
        body = json.dumps(settings).encode()
        return self._ask(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, {}, body)

    def send(
        self,
        queue: Queue,
        message_id: str,
        key: str | None = None,
        key_seq: int | None = None,
        keys: str = "",
    ) -> Answer:
        """Send one message to one queue; its body is its id. keys: by which it can be looked up, besides its id."""
        properties = {PROPERTY_UNIQ_KEY: message_id} | ({PROPERTY_KEYS: keys} if keys else {})
        if key is not None:
            properties[PROPERTY_SHARDING_KEY] = key
        body = message_id.encode()
        operation = self._begin(
            Kind.SEND,
            {
                **queue._asdict(),
                "message_id": message_id,
                "sharding_key": key,
                "key_seq": key_seq,
                "attempt": 1,
                "body_hash": zlib.crc32(body),
                "props_hash": props_hash({}),
            },
        )
        answer = self._send(queue.topic, queue.queue_id, properties, body)
        fields: dict[str, Any] = {}
        if answer.outcome is Outcome.OK:
            fields["queue_offset"] = self.offset_of(answer)
        return self._end(operation, answer, fields)

    @staticmethod
    def offset_of(answer: Answer) -> int:
        """The queue offset that a broker gave a message."""
        return SendResponse.from_ext(answer.ext).queue_offset

    def give_up(
        self, lane: Lane, offset: int, message_id: str, key: str, times: int, limit: int
    ) -> Answer:
        """Send a message's copy to the group's retry topic, its tries exhausted, as an orderly consumer does."""
        operation = self._begin(
            Kind.DEAD_LETTER,
            {
                **lane._asdict(),
                "queue_offset": offset,
                "message_id": message_id,
                "reconsume_times": limit,
                "attempt": 1,
            },
        )
        answer = self._send_to_retry(lane, message_id, times, limit, delay_level=3 + limit, key=key)
        return self._end(operation, answer)

    def try_again(self, lane: Lane, message_id: str, times: int, limit: int) -> Answer:
        """Send a message of its own to the group's retry topic, with tries left."""
        topic = retry_topic(lane.group)
        operation = self._begin(
            Kind.SEND,
            {
                "topic": topic,
                "broker": lane.broker,
                "queue_id": 0,
                "message_id": message_id,
                "attempt": 1,
                "reconsume_times": times,
                "body_hash": zlib.crc32(message_id.encode()),
            },
        )
        return self._end(operation, self._send_to_retry(lane, message_id, times, limit))

    def _send_to_retry(
        self,
        lane: Lane,
        message_id: str,
        times: int,
        limit: int,
        delay_level: int | None = None,
        key: str | None = None,
    ) -> Answer:
        """Send to `%RETRY%group` with the retry counters in the header."""
        properties = {
            PROPERTY_UNIQ_KEY: message_id,
            PROPERTY_ORIGIN_MESSAGE_ID: message_id,
            PROPERTY_RETRY_TOPIC: lane.topic,
        }
        if delay_level is not None:
            properties[PROPERTY_DELAY] = str(delay_level)
        if key is not None:
            properties[PROPERTY_SHARDING_KEY] = key
        return self._send(retry_topic(lane.group), 0, properties, message_id.encode(), times, limit)

    def _send(
        self,
        topic: str,
        queue_id: int,
        properties: Mapping[str, str],
        body: bytes,
        times: int = 0,
        limit: int | None = None,
    ) -> Answer:
        header = SendHeader(
            producer_group=PRODUCER_GROUP,
            topic=topic,
            queue_id=queue_id,
            born_timestamp=self._clock.wall_us() // 1000,
            properties=pack_properties(properties),
            reconsume_times=times,
            max_reconsume_times=limit,
        )
        return self._ask(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)

    def pull(
        self, group: str, queue: Queue, offset: int, count: int = 32
    ) -> tuple[Answer, list[StoredMessage], PullResponse | None]:
        """One pull without waiting. Returns the answer, the messages and the answer's header."""
        operation = self._begin(
            Kind.PULL, {"group": group, **queue._asdict(), "queue_offset": offset}
        )
        header = PullHeader(
            consumer_group=group,
            topic=queue.topic,
            queue_id=queue.queue_id,
            queue_offset=offset,
            max_msg_nums=count,
            sys_flag=PULL_SUBSCRIPTION,
            subscription="*",
            expression_type="TAG",
        )
        answer = self._ask(RequestCode.PULL_MESSAGE, header.to_ext())
        found = decode_all(answer.body) if answer.code == ResponseCode.SUCCESS else []
        response = PullResponse.from_ext(answer.ext) if "nextBeginOffset" in answer.ext else None
        self._end(operation, answer, {"value": response.next_begin_offset if response else None})
        return answer, found, response

    def max_offset(self, queue: Queue) -> Told[int]:
        """The queue's end; None where the broker says that it does not know the topic. Most say 0 of such a one."""
        header = GetMaxOffsetHeader(queue.topic, queue.queue_id)
        answer = self._ask(RequestCode.GET_MAX_OFFSET, header.to_ext())
        asked = f"where {queue} ends"
        return self._offset_told(answer, ResponseCode.TOPIC_NOT_EXIST, asked)

    def _offset_told(self, answer: Answer, none: ResponseCode, asked: str) -> Told[int]:
        """What an answer says of an offset. none: the code that says that there is none."""
        if answer.code == ResponseCode.SUCCESS:
            return OffsetResponse.from_ext(answer.ext).offset
        return None if answer.code == none else self._untold(answer, asked)

    def _untold(self, answer: Answer, asked: str) -> NotTold:
        came = f"code {answer.code} {answer.remark}".strip() if answer.code else answer.reason
        return NotTold(f"the broker {self.broker_name} did not say {asked} ({came})")

    def read(self, queue: Queue, group: str | None = None) -> Told[int]:
        """Read a queue from its start to its end and record every message, then the marker of the drain.

        Returns how many messages there were. Where the broker does not say the end, or gives less, the marker's outcome
        is unknown. group: whose retry or dead-letter topic it is.
        """
        common = {**queue._asdict(), "group": group}
        marker = self._begin(Kind.READ, common)
        offset, seen = 0, 0
        end = ask_again(lambda: self.max_offset(queue))
        upto = end if isinstance(end, int) else 0
        for fields in self.messages(queue, upto, group):
            self._journal.note(Kind.READ, Outcome.OK, {**common, **self._client(), **fields})
            offset = fields["queue_offset"] + 1
            seen += 1
        if isinstance(end, NotTold):
            self._journal.end(marker, Outcome.UNKNOWN, {"value": offset})
            return end
        if offset < upto:
            self._journal.end(marker, Outcome.UNKNOWN, {"value": offset})
            return NotTold(cut_short(queue, upto, offset))
        self._journal.end(marker, Outcome.OK, {"value": offset})
        return seen

    def messages(
        self, queue: Queue, upto: int, group: str | None = None, shown: Shown | None = None
    ) -> Iterator[dict[str, Any]]:
        """The messages of a queue from its start up to `upto`, as columns of READ rows.

        group: whose retry or dead-letter topic it is. shown: a message as columns, where it is not `read_fields`. Ends
        early where the broker gives no more.
        """
        offset = 0
        while offset < upto:
            header = _reading(queue, offset, group)
            answer = self._answered(partial(self._ask, RequestCode.PULL_MESSAGE, header.to_ext()))
            if answer.code != ResponseCode.SUCCESS:
                return
            for message in decode_all(answer.body):
                fields = (shown or read_fields)(message)
                if message.message_id is not None:
                    self._made_from[message.offset_id] = message.message_id
                fields["origin_id"] = self._made_from.get(
                    fields["origin_id"] or "", fields["origin_id"]
                )
                yield fields
                offset = message.queue_offset + 1

    @staticmethod
    def _answered(request: Callable[[], Answer]) -> Answer:
        """The answer to a request that may be made again; it is, for a while, until the broker is there for it."""
        last: list[Answer] = []

        def is_answered() -> bool:
            last[:] = [request()]
            return last[0].is_told

        wait_until(is_answered, ASK_AGAIN_S)
        return last[0]

    # ------------------------------------------------------------------ offsets and members

    def commit(self, lane: Lane, value: int) -> Answer:
        operation = self._begin(Kind.COMMIT, {**lane._asdict(), "value": value})
        header = UpdateConsumerOffsetHeader(lane.group, lane.topic, lane.queue_id, value)
        return self._end(operation, self._ask(RequestCode.UPDATE_CONSUMER_OFFSET, header.to_ext()))

    def fetch(self, lane: Lane) -> tuple[Answer, Told[int]]:
        """The stored offset; None where the broker says that there is none."""
        operation = self._begin(Kind.FETCH_OFFSET, lane._asdict())
        header = QueryConsumerOffsetHeader(lane.group, lane.topic, lane.queue_id)
        answer = self._ask(RequestCode.QUERY_CONSUMER_OFFSET, header.to_ext())
        told = self._offset_told(answer, ResponseCode.QUERY_NOT_FOUND, f"what is stored of {lane}")
        if not isinstance(told, NotTold):
            self._end(operation, answer, {"value": -1 if told is None else told})
        else:
            self._end(operation, answer)
        return answer, told

    def stored(self, lane: Lane) -> Told[int]:
        """As `fetch`, and no row tells of it: the word of a witness, not an event of the run.

        A broker that knows how to says the plain truth of a young queue too, of which nothing is stored.
        """
        header = QueryConsumerOffsetHeader(lane.group, lane.topic, lane.queue_id, False)
        answer = self._ask(RequestCode.QUERY_CONSUMER_OFFSET, header.to_ext())
        return self._offset_told(answer, ResponseCode.QUERY_NOT_FOUND, f"what is stored of {lane}")

    def heartbeat(self, group: str, topic: str) -> Answer:
        """Join (or stay in) a group on this connection."""
        subscriptions = (Subscription.of(topic), Subscription.of(retry_topic(group)))
        consumer = ConsumerData(group, subscriptions=subscriptions)
        body = Heartbeat(self.client_id, consumers=(consumer,)).encode()
        return self._ask(RequestCode.HEART_BEAT, {}, body)

    def answers(self) -> bool:
        """Does the broker answer a question of no consequence?"""
        return self._ask(RequestCode.GET_BROKER_RUNTIME_INFO, {}).is_told

    def members(self, group: str) -> tuple[Answer, list[str]]:
        operation = self._begin(Kind.MEMBER, {"group": group})
        answer = self._ask(
            RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group).to_ext()
        )
        ids = (
            sorted(decode_consumer_ids(answer.body)) if answer.code == ResponseCode.SUCCESS else []
        )
        self._end(operation, answer, {"view": ",".join(ids)})
        return answer, ids

    def living(self, group: str) -> Told[list[str]]:
        """As `members`, and no row tells of it. None where the broker says that the group has no member.

        It says that by SYSTEM_ERROR.
        """
        header = ConsumerGroupHeader(group).to_ext()
        answer = self._ask(RequestCode.GET_CONSUMER_LIST_BY_GROUP, header)
        if answer.code == ResponseCode.SUCCESS:
            return decode_consumer_ids(answer.body)
        if answer.code == ResponseCode.SYSTEM_ERROR:
            return None
        return self._untold(answer, f"who is in the group {group}")

    def pulled(self, queue: Queue) -> Answer:
        """How a pull of nobody's group is answered; no row tells of it."""
        return self._ask(RequestCode.PULL_MESSAGE, _reading(queue, 0).to_ext())

    def ask_unknown(self) -> Answer:
        """A request code that no broker knows."""
        return self._ask(31_999, {})

    # ------------------------------------------------------------------ plumbing

    def _client(self) -> dict[str, Any]:
        return {"client_id": self.client_id}

    def _begin(
        self, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        operation = next(self._numbers)
        self._journal.begin(operation, kind, {**self._client(), **fields}, rows)
        return operation

    def _end(
        self,
        operation: int,
        answer: Answer,
        fields: Mapping[str, Any] | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> Answer:
        kept = {name: value for name, value in (fields or {}).items() if value is not None}
        self._journal.end(operation, answer.outcome, {"code": answer.code, **kept}, rows)
        return answer

    def _ask(self, code: int, ext: Mapping[str, str], body: bytes = b"") -> Answer:
        begun = self._clock.monotonic_us()
        try:
            answer = self._link.call(self.broker, Command(code, ext=ext, body=body), TIMEOUT_S)
        except RequestFailed as error:
            if error.reason == UNREACHABLE:
                raise TargetMisbehaved(
                    f"The broker at {self.broker} is gone: nobody listens there."
                ) from error
            return Answer(None, begun, self._clock.monotonic_us(), reason=error.reason)
        return Answer(
            answer.code,
            begun,
            self._clock.monotonic_us(),
            answer.ext,
            answer.body,
            answer.remark or "",
        )


def _reading(queue: Queue, offset: int, group: str | None = None) -> PullHeader:
    return PullHeader(
        consumer_group=group or DRAIN_GROUP,
        topic=queue.topic,
        queue_id=queue.queue_id,
        queue_offset=offset,
        sys_flag=PULL_SUBSCRIPTION,
        subscription="*",
        expression_type="TAG",
    )


def cut_short(queue: Queue, end: int, upto: int) -> str:
    """Why a reading was not whole."""
    return f"{queue} ends at {end}, and can be read up to {upto} only"


def read_fields(message: StoredMessage) -> dict[str, Any]:
    """A stored message as the columns of a READ row; wall_us is when the broker stored it."""
    copy = message.topic.startswith((DLQ_PREFIX, RETRY_PREFIX))
    return {
        "topic": message.topic,
        "queue_id": message.queue_id,
        "queue_offset": message.queue_offset,
        "message_id": message.message_id,
        "origin_id": message.origin_id if copy else None,
        "sharding_key": message.sharding_key,
        "reconsume_times": message.reconsume_times,
        "body_hash": zlib.crc32(message.body),
        "props_hash": props_hash(own_properties(message.properties)),
        "tags": message.tags,
        "delay_level": message.delay_level,
        "wall_us": message.store_ms * 1000,
        "view": message.properties.get(PROPERTY_RETRY_TOPIC) if copy else None,
    }


WIRE_LEVEL = {"level": Level.WIRE}
