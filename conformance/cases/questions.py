"""The requests of raw clients: how each is made, how its answer reads, what of it is recorded."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace

from conformance.cases.hand import Question, Reading
from reference_impl.core.io import Address
from reference_impl.protocol.bodies import (
    ConsumerData,
    Heartbeat,
    LockBatch,
    Subscription,
    SubscriptionGroup,
    decode_consumer_ids,
    decode_lock_answer,
    decode_reset_offsets,
)
from reference_impl.protocol.codes import STORED, RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.headers import (
    PULL_COMMIT,
    PULL_SUBSCRIPTION,
    PULL_SUSPEND,
    ConsumerGroupHeader,
    GetMaxOffsetHeader,
    GetMinOffsetHeader,
    OffsetResponse,
    PullHeader,
    PullResponse,
    QueryConsumerOffsetHeader,
    ResetOffsetHeader,
    SearchOffsetHeader,
    SendBackHeader,
    SendHeader,
    SendResponse,
    UnregisterClientHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_UNIQ_KEY,
    StoredMessage,
    decode_all,
    pack_properties,
)
from specs.vocabulary import Kind, Outcome, Queue, retry_topic

PRODUCER_GROUP = "producers"
FIRST_RETRY_LEVEL = 3


def refused(answer: Command) -> Reading:
    """An answer that is no yes: its code, by number and name."""
    try:
        name = ResponseCode(answer.code).name
    except ValueError:
        name = "an unknown code"
    return Reading(f"refused {answer.code} {name}")


def yes(answer: Command) -> Reading:
    return Reading("ok") if answer.code == ResponseCode.SUCCESS else refused(answer)


# ---------------------------------------------------------------- leases


def lock(address: Address, group: str, client_id: str, queues: Sequence[Queue]) -> Question:
    """`granted` and the queues that were: by number, where all that were asked for are of one topic and broker."""

    def read(answer: Command) -> Reading:
        if answer.code != ResponseCode.SUCCESS:
            return refused(answer)
        granted = decode_lock_answer(answer.body)
        rows = [
            {"outcome": Outcome.OK if queue in granted else Outcome.REFUSED} for queue in queues
        ]
        return Reading(f"granted {_named(granted, queues)}", rows=rows)

    command = Command(
        RequestCode.LOCK_BATCH_MQ, body=LockBatch(group, client_id, tuple(queues)).encode()
    )
    return _of_lanes(Kind.LOCK, Question(address, command, read), group, client_id, queues)


def unlock(address: Address, group: str, client_id: str, queues: Sequence[Queue]) -> Question:
    command = Command(
        RequestCode.UNLOCK_BATCH_MQ, body=LockBatch(group, client_id, tuple(queues)).encode()
    )
    return _of_lanes(Kind.UNLOCK, Question(address, command, yes), group, client_id, queues)


def _of_lanes(
    kind: Kind, question: Question, group: str, client_id: str, queues: Sequence[Queue]
) -> Question:
    """Recorded with a row for each lane; not at all where there is none."""
    if not queues:
        return question
    fields = {"group": group, "client_id": client_id}
    return replace(question, kind=kind, fields=fields, rows=[queue._asdict() for queue in queues])


def _named(granted: frozenset[Queue], asked: Sequence[Queue]) -> str:
    if not granted:
        return "none"
    alike = len({(queue.topic, queue.broker) for queue in asked}) == 1
    return " ".join(str(queue.queue_id) if alike else str(queue) for queue in sorted(granted))


# ---------------------------------------------------------------- members


def join(address: Address, group: str, client_id: str, topics: Sequence[str]) -> Question:
    """A heartbeat of a consumer of the group."""
    subscriptions = tuple(Subscription.of(topic) for topic in (*topics, retry_topic(group)))
    body = Heartbeat(
        client_id, consumers=(ConsumerData(group, subscriptions=subscriptions),)
    ).encode()
    return Question(address, Command(RequestCode.HEART_BEAT, body=body), yes)


def leave(address: Address, group: str, client_id: str) -> Question:
    ext = UnregisterClientHeader(client_id, consumer_group=group).to_ext()
    return Question(address, Command(RequestCode.UNREGISTER_CLIENT, ext), yes)


def members(address: Address, group: str) -> Question:
    """The ids as the broker lists them, in its order."""

    def read(answer: Command) -> Reading:
        if answer.code != ResponseCode.SUCCESS:
            return refused(answer)
        ids = decode_consumer_ids(answer.body)
        return Reading(" ".join(ids), {"view": ",".join(sorted(ids))})

    command = Command(RequestCode.GET_CONSUMER_LIST_BY_GROUP, ConsumerGroupHeader(group).to_ext())
    return Question(address, command, read, Kind.MEMBER, {"group": group})


def change_group(address: Address, group: SubscriptionGroup) -> Question:
    return Question(
        address, Command(RequestCode.UPDATE_AND_CREATE_SUBSCRIPTIONGROUP, body=group.encode()), yes
    )


# ---------------------------------------------------------------- messages


def send(
    address: Address,
    queue: Queue,
    message_id: str | None,
    *,
    properties: Mapping[str, str],
    times: int | None = None,
    limit: int | None = None,
    now_ms: int,
    attempt: int = 1,
) -> Question:
    """One message whose body is its id, if it has one.

    times, limit: the retry counter and its limit, for a retry topic. attempt: how often it was sent, this time
    included.
    """

    def read(answer: Command) -> Reading:
        if answer.code not in STORED:
            return refused(answer)
        stored = SendResponse.from_ext(answer.ext)
        given = (
            f" as {stored.transaction_id}" if message_id is None and stored.transaction_id else ""
        )
        return Reading(
            f"stored at {stored.queue_offset}{given}", {"queue_offset": stored.queue_offset}
        )

    body = (message_id or "nameless").encode()
    name = {} if message_id is None else {PROPERTY_UNIQ_KEY: message_id}
    header = SendHeader(
        PRODUCER_GROUP,
        queue.topic,
        queue.queue_id,
        now_ms,
        properties=pack_properties({**name, **properties}),
        reconsume_times=times,
        max_reconsume_times=limit,
    )
    fields = {
        **queue._asdict(),
        "message_id": message_id,
        "sharding_key": properties.get(PROPERTY_SHARDING_KEY),
        "reconsume_times": times,
        "attempt": attempt,
        "delay_level": int(properties[PROPERTY_DELAY]) if PROPERTY_DELAY in properties else None,
        "body_hash": zlib.crc32(body),
        "tags": properties.get(PROPERTY_TAGS),
    }
    command = Command(RequestCode.SEND_MESSAGE_V2, header.to_ext_v2(), body)
    return Question(address, command, read, Kind.SEND, fields)


def give_up(
    address: Address, group: str, queue: Queue, message_id: str, times: int, limit: int, now_ms: int
) -> Question:
    """A copy of an exhausted message goes to the group's retry topic, as an orderly consumer sends it."""
    properties = properties_of(None, None, FIRST_RETRY_LEVEL + limit, message_id, queue.topic)
    retry = Queue(retry_topic(group), queue.broker, 0)
    asked = send(
        address, retry, message_id, properties=properties, times=times, limit=limit, now_ms=now_ms
    )
    fields = {
        "group": group,
        **queue._asdict(),
        "message_id": message_id,
        "reconsume_times": limit,
        "attempt": 1,
    }

    def read(answer: Command) -> Reading:
        return replace(asked.read(answer), fields={})

    return replace(asked, kind=Kind.DEAD_LETTER, fields=fields, read=read)


def properties_of(
    key: str | None,
    tag: str | None,
    level: int | None,
    origin: str | None,
    origin_topic: str | None,
) -> dict[str, str]:
    """The properties of a message that has what is given."""
    found = {
        PROPERTY_SHARDING_KEY: key,
        PROPERTY_TAGS: tag,
        PROPERTY_DELAY: None if level is None else str(level),
        PROPERTY_ORIGIN_MESSAGE_ID: origin,
        PROPERTY_RETRY_TOPIC: origin_topic,
    }
    return {name: value for name, value in found.items() if value is not None}


def send_back(
    address: Address, group: str, message: StoredMessage, level: int, limit: int | None
) -> Question:
    """A concurrent consumer returns a message."""
    header = SendBackHeader(
        message.physical_offset,
        group,
        level,
        message.message_id,
        message.topic,
        max_reconsume_times=limit,
    )
    return Question(address, Command(RequestCode.CONSUMER_SEND_MSG_BACK, header.to_ext()), yes)


def pull(
    address: Address,
    group: str,
    queue: Queue,
    offset: int,
    *,
    count: int,
    wait_ms: int,
    commit: int | None,
    tag: str | None,
) -> Question:
    """One pull. wait_ms: how long it may be parked, 0 for not at all. commit: the offset that travels with it."""
    flags = (
        PULL_SUBSCRIPTION
        | (PULL_SUSPEND if wait_ms else 0)
        | (0 if commit is None else PULL_COMMIT)
    )
    header = PullHeader(
        group,
        queue.topic,
        queue.queue_id,
        offset,
        max_msg_nums=count,
        sys_flag=flags,
        commit_offset=commit or 0,
        suspend_timeout_millis=wait_ms,
        subscription=tag or "*",
        expression_type="TAG",
    )
    fields = {"group": group, **queue._asdict(), "queue_offset": offset}
    command = Command(RequestCode.PULL_MESSAGE, header.to_ext())
    along = None if commit is None else {"queue_offset": None, "value": commit, "view": "pull"}
    return Question(address, command, _read_pull, Kind.PULL, fields, along=along)


def _read_pull(answer: Command) -> Reading:
    words = {
        ResponseCode.SUCCESS: "found",
        ResponseCode.PULL_NOT_FOUND: "nothing new",
        ResponseCode.PULL_RETRY_IMMEDIATELY: "nothing wanted",
        ResponseCode.PULL_OFFSET_MOVED: "moved",
    }
    if answer.code not in words:
        return refused(answer)
    word = words[ResponseCode(answer.code)]
    following = PullResponse.from_ext(answer.ext).next_begin_offset
    if answer.code == ResponseCode.SUCCESS:
        word += "".join(f" {message.message_id}" for message in decode_all(answer.body))
    return Reading(f"{word}, next {following}", {"value": following})


# ---------------------------------------------------------------- offsets


def commit(address: Address, group: str, queue: Queue, value: int | None) -> Question:
    """value: None leaves the field out."""
    ext = UpdateConsumerOffsetHeader(group, queue.topic, queue.queue_id, value).to_ext()
    fields = {"group": group, **queue._asdict(), "value": value}
    return Question(
        address, Command(RequestCode.UPDATE_CONSUMER_OFFSET, ext), yes, Kind.COMMIT, fields
    )


def fetch(address: Address, group: str, queue: Queue, zero: bool | None) -> Question:
    """zero: whether 0 may stand for an offset that is missing; None leaves the flag out, which means yes."""

    def read(answer: Command) -> Reading:
        if answer.code == ResponseCode.QUERY_NOT_FOUND:
            return Reading("not found", {"value": -1})
        if answer.code != ResponseCode.SUCCESS:
            return refused(answer)
        offset = OffsetResponse.from_ext(answer.ext).offset
        return Reading(f"offset {offset}", {"value": offset})

    ext = QueryConsumerOffsetHeader(group, queue.topic, queue.queue_id, zero).to_ext()
    fields = {"group": group, **queue._asdict()}
    return Question(
        address, Command(RequestCode.QUERY_CONSUMER_OFFSET, ext), read, Kind.FETCH_OFFSET, fields
    )


def reset(
    address: Address, group: str, queue: Queue, offset: int | None, moment_ms: int = -1
) -> Question:
    """moment_ms: since the epoch, -1 for the end; it counts where no offset is named."""

    def read(answer: Command) -> Reading:
        if answer.code != ResponseCode.SUCCESS:
            return refused(answer)
        moved = decode_reset_offsets(answer.body)[queue]
        return Reading(f"reset to {moved}", {"value": moved})

    header = ResetOffsetHeader(
        queue.topic, group, moment_ms, queue_id=queue.queue_id, offset=offset
    )
    fields = {"group": group, **queue._asdict(), "value": offset}
    command = Command(RequestCode.INVOKE_BROKER_TO_RESET_OFFSET, header.to_ext())
    return Question(address, command, read, Kind.RESET, fields)


def end_of(address: Address, queue: Queue) -> Question:
    ext = GetMaxOffsetHeader(queue.topic, queue.queue_id).to_ext()
    return Question(address, Command(RequestCode.GET_MAX_OFFSET, ext), _read_offset)


def start_of(address: Address, queue: Queue) -> Question:
    ext = GetMinOffsetHeader(queue.topic, queue.queue_id).to_ext()
    return Question(address, Command(RequestCode.GET_MIN_OFFSET, ext), _read_offset)


def search(address: Address, queue: Queue, moment_ms: int) -> Question:
    """moment_ms: since the epoch."""
    ext = SearchOffsetHeader(queue.topic, queue.queue_id, moment_ms).to_ext()
    return Question(address, Command(RequestCode.SEARCH_OFFSET_BY_TIMESTAMP, ext), _read_offset)


def _read_offset(answer: Command) -> Reading:
    if answer.code != ResponseCode.SUCCESS:
        return refused(answer)
    return Reading(f"offset {OffsetResponse.from_ext(answer.ext).offset}")


def anything(address: Address, code: int) -> Question:
    """A request with nothing in it."""
    return Question(address, Command(code), yes)
