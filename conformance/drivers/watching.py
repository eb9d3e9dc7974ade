"""What our own broker sees of a client that does not tell its requests: rows of a history, level `wire`.

`Watch.core(broker)` stands around a broker's core and writes down each request of a consumer when it arrives and
each answer when it leaves: LOCK, UNLOCK, FETCH_OFFSET, COMMIT (also those that a pull carries), PULL, MEMBER, and the
copies of given-up messages, sent or asked for (DEAD_LETTER). The broker's answers stay what they are. Whoever has not
said by a heartbeat, or in a lock's body, that it is one of the watched clients is not written down.

The times are the broker's: a request arrives later than it was sent, and an answer leaves earlier than it arrives.
So an interval here lies within the one that the client would tell, on the same clock (one host). What a client does
*because* of an answer still comes after it, and what it asks *because* of something it did still comes after that.
Only a limit that a client measures from an answer's arrival seems longer here, by the answer's way: a driven client
is therefore given a lease limit shorter by `ANSWER_WAY_MS` than the one that it is judged by.

A commit of what the broker's last answer to a pull named as the place to go on (PULL_OFFSET_MOVED) is its correction,
and says so (`detail=corrected`): the client has finished nothing up to there.

`complete` adds afterwards what a broker can't know: which incarnation of its lane a client's request belongs to, as
the driver told by `added` and `dropped`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reference_impl.core import io
from reference_impl.core.consumer.offsets import CORRECTED
from reference_impl.protocol.bodies import (
    Heartbeat,
    LockBatch,
    decode_consumer_ids,
    decode_lock_answer,
)
from reference_impl.protocol.codes import STORED, RequestCode, ResponseCode
from reference_impl.protocol.command import Command
from reference_impl.protocol.errors import ProtocolError
from reference_impl.protocol.headers import (
    PULL_COMMIT,
    ConsumerGroupHeader,
    OffsetResponse,
    PullHeader,
    PullResponse,
    QueryConsumerOffsetHeader,
    SendBackHeader,
    SendHeader,
    SendResponse,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_UNIQ_KEY,
)
from reference_impl.shell.body import Core
from specs.history.journal import Journal
from specs.history.row import Row
from specs.vocabulary import RETRY_PREFIX, Kind, Lane, Outcome

ANSWER_WAY_MS = 200
"""How long the way of an answer from the broker to the client's own clock may take, where it matters."""
WATCHED = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.FETCH_OFFSET,
        Kind.COMMIT,
        Kind.PULL,
        Kind.MEMBER,
        Kind.DEAD_LETTER,
    }
)
"""The kinds that are written down of every watched client, whenever they happen."""
FIRST_DELAY_LEVEL = 3
"""A given-up message's copy asks for the delay level 3 + its retries (docs/sources.md#dead-letters)."""
_READS = frozenset(
    {
        ResponseCode.SUCCESS,
        ResponseCode.PULL_NOT_FOUND,
        ResponseCode.PULL_RETRY_IMMEDIATELY,
        ResponseCode.PULL_OFFSET_MOVED,
    }
)

_End: TypeAlias = tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""How an operation ended: its outcome, its columns, and those of each of its rows."""
_Place: TypeAlias = tuple[str, tuple[Any, ...]]
"""A client and a lane."""
_How: TypeAlias = Callable[[Command | None], _End]
"""What an answer says (None: the request was one way)."""


@dataclass(frozen=True, slots=True)
class _Ending:
    """An open operation of the journal (0: none, only something to remember)."""

    number: int
    how: _How


@dataclass(frozen=True, slots=True)
class _Asked:
    endings: tuple[_Ending, ...]


def _plain(answer: Command | None) -> _End:
    if answer is None:
        return Outcome.SENT, {}, ()
    return (
        (Outcome.OK if answer.code == ResponseCode.SUCCESS else Outcome.REFUSED),
        {"code": answer.code},
        (),
    )


def _fetched(answer: Command | None) -> _End:
    if answer is not None and answer.code == ResponseCode.SUCCESS:
        return (
            Outcome.OK,
            {"code": answer.code, "value": OffsetResponse.from_ext(answer.ext).offset},
            (),
        )
    if answer is not None and answer.code == ResponseCode.QUERY_NOT_FOUND:
        return Outcome.REFUSED, {"code": answer.code, "value": -1}, ()
    return _plain(answer)


def _pulled(answer: Command | None) -> _End:
    if answer is None or answer.code not in _READS:
        return _plain(answer)
    moved = answer.code == ResponseCode.PULL_OFFSET_MOVED
    value = PullResponse.from_ext(answer.ext).next_begin_offset
    return (Outcome.REFUSED if moved else Outcome.OK), {"code": answer.code, "value": value}, ()


def _carried(answer: Command | None) -> _End:
    """A commit that came with a pull: the broker took it if it read."""
    taken = answer is not None and answer.code in _READS
    return (Outcome.OK, {"code": ResponseCode.SUCCESS}, ()) if taken else _plain(answer)


class Watch:
    """Writes one run's requests into a journal. broker: its name. names: client id in the protocol → in the plan.

    Thread-safe as far as the journal is; each core is driven by one thread.
    """

    def __init__(self, journal: Journal, names: Mapping[str, str]) -> None:
        self.clients: dict[str, str] = {}
        """process (a connection of the broker) → the client behind it, once it has said who it is."""
        self.names = names
        self._journal = journal
        self._numbers = 0
        self._lock = threading.Lock()

    def core(self, broker: str, core: Core) -> WatchedCore:
        return WatchedCore(broker, core, self)

    # ------------------------------------------------------------ for the cores

    def named(self, process: str, client_id: str) -> str | None:
        """The connection belongs to that client. Its name in the plan, None for one that is none of the plan's."""
        name = self.names.get(client_id)
        if name is not None:
            self.clients[process] = name
        return name

    def begin(
        self, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]] = ()
    ) -> int:
        with self._lock:
            self._numbers += 1
            number = self._numbers
        self._journal.begin(number, kind, fields, rows)
        return number

    def end(
        self,
        number: int,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        self._journal.end(number, outcome, {k: v for k, v in fields.items() if v is not None}, rows)


class WatchedCore:
    """A broker's core with somebody who writes down what passes."""

    def __init__(self, broker: str, core: Core, watch: Watch) -> None:
        self.broker = broker
        self.core = core
        self._watch = watch
        self._open: dict[tuple[io.ConnId, int], _Asked] = {}
        self._births: dict[str, tuple[int, int]] = {}  # message id → its queue and offset
        self._tries: dict[tuple[str, str], int] = {}  # group and message id → copies sent so far
        self._moved: dict[
            tuple[str, Lane], int
        ] = {}  # a client and a lane → where its last pull was sent to

    def handle(self, now_ms: int, event: io.Input, /) -> Iterable[io.Effect]:
        if isinstance(event, io.Received) and not event.command.is_response:
            self._arrives(event.conn, event.command)
        effects = list(self.core.handle(now_ms, event))
        for effect in effects:
            if isinstance(effect, io.Send) and effect.command.is_response:
                self._answered(effect.conn, effect.command)
        if isinstance(event, io.Received) and event.command.is_oneway:
            self._answered(event.conn, None, event.command.opaque)
        return effects

    def _process(self, conn: io.ConnId) -> str:
        return f"{self.broker}#{id(self)}:{conn}"

    def _arrives(self, conn: io.ConnId, command: Command) -> None:
        try:
            asked = self._read(self._process(conn), command)
        except ProtocolError:
            return  # what can't be read is refused, and changes nothing
        if asked is not None:
            self._open[(conn, command.opaque)] = asked

    def _answered(self, conn: io.ConnId, answer: Command | None, opaque: int | None = None) -> None:
        asked = self._open.pop((conn, answer.opaque if answer is not None else opaque or 0), None)
        if asked is None:
            return
        for ending in asked.endings:
            outcome, fields, rows = ending.how(answer)
            if ending.number:
                self._watch.end(ending.number, outcome, fields, rows)

    # ------------------------------------------------------------ requests

    def _read(self, process: str, command: Command) -> _Asked | None:
        match command.code:
            case RequestCode.HEART_BEAT:
                self._watch.named(process, Heartbeat.decode(command.body).client_id)
                return None
            case RequestCode.LOCK_BATCH_MQ | RequestCode.UNLOCK_BATCH_MQ:
                return self._lease(process, command)
            case RequestCode.QUERY_CONSUMER_OFFSET:
                query = QueryConsumerOffsetHeader.from_ext(command.ext)
                lane = self._lane(query.consumer_group, query.topic, query.queue_id)
                return self._one(process, Kind.FETCH_OFFSET, lane, _fetched)
            case RequestCode.UPDATE_CONSUMER_OFFSET:
                update = UpdateConsumerOffsetHeader.from_ext(command.ext)
                if update.queue_id is None or update.commit_offset is None:
                    return None
                lane = self._lane(update.consumer_group, update.topic, update.queue_id)
                return self._one(
                    process, Kind.COMMIT, self._commit(process, lane, update.commit_offset), _plain
                )
            case RequestCode.PULL_MESSAGE:
                return self._pull(process, PullHeader.from_ext(command.ext))
            case RequestCode.GET_CONSUMER_LIST_BY_GROUP:
                group = ConsumerGroupHeader.from_ext(command.ext).consumer_group
                return self._one(process, Kind.MEMBER, {"group": group}, self._members)
            case RequestCode.SEND_MESSAGE:
                return self._send(process, SendHeader.from_ext(command.ext))
            case RequestCode.SEND_MESSAGE_V2:
                return self._send(process, SendHeader.from_ext_v2(command.ext))
            case RequestCode.CONSUMER_SEND_MSG_BACK:
                return self._send_back(process, SendBackHeader.from_ext(command.ext))
            case _:
                return None

    def _lane(self, group: str, topic: str, queue_id: int | None) -> dict[str, Any]:
        return {"group": group, "topic": topic, "broker": self.broker, "queue_id": queue_id}

    def _one(self, process: str, kind: Kind, fields: Mapping[str, Any], how: _How) -> _Asked | None:
        """One request, one row; None for who is not watched."""
        client = self._watch.clients.get(process)
        if client is None:
            return None
        number = self._watch.begin(kind, {"process": process, "client_id": client, **fields})
        return _Asked((_Ending(number, how),))

    def _lease(self, process: str, command: Command) -> _Asked | None:
        asked = LockBatch.decode(command.body)
        client = self._watch.named(process, asked.client_id)
        if client is None:
            return None
        kind = Kind.LOCK if command.code == RequestCode.LOCK_BATCH_MQ else Kind.UNLOCK
        fields = {"process": process, "client_id": client, "group": asked.consumer_group}
        number = self._watch.begin(kind, fields, [queue._asdict() for queue in asked.queues])

        def granted(answer: Command | None) -> _End:
            if answer is None or answer.code != ResponseCode.SUCCESS:
                return Outcome.UNKNOWN, {"code": None if answer is None else answer.code}, ()
            given = decode_lock_answer(answer.body)
            rows = [
                {"outcome": Outcome.OK if queue in given else Outcome.REFUSED}
                for queue in asked.queues
            ]
            return Outcome.OK, {"code": answer.code}, rows

        return _Asked((_Ending(number, granted if kind is Kind.LOCK else _plain),))

    def _pull(self, process: str, header: PullHeader) -> _Asked | None:
        lane = self._lane(header.consumer_group, header.topic, header.queue_id)

        def pulled(answer: Command | None) -> _End:
            if answer is not None and answer.code == ResponseCode.PULL_OFFSET_MOVED:
                told = PullResponse.from_ext(answer.ext).next_begin_offset
                self._moved[self._watch.clients[process], Lane(**lane)] = told
            return _pulled(answer)

        pull = self._one(process, Kind.PULL, {**lane, "queue_offset": header.queue_offset}, pulled)
        if pull is None or not header.sys_flag & PULL_COMMIT:
            return pull
        carried = {**self._commit(process, lane, header.commit_offset), "view": "pull"}
        commit = self._one(process, Kind.COMMIT, carried, _carried)
        return pull if commit is None else _Asked((*pull.endings, *commit.endings))

    def _commit(self, process: str, lane: Mapping[str, Any], value: int) -> dict[str, Any]:
        """A commit's columns. Once it goes beyond the place to which the client was sent, that is over."""
        place = (self._watch.clients.get(process, ""), Lane(**lane))
        moved = self._moved.get(place)
        if moved is not None and value > moved:
            del self._moved[place]
        return {**lane, "value": value, **({"detail": CORRECTED} if value == moved else {})}

    def _send(self, process: str, header: SendHeader) -> _Asked | None:
        """A copy for the retry topic is a row; of any other message its place is kept, for when it is given up."""
        properties = header.property_map
        message_id = properties.get(PROPERTY_UNIQ_KEY)
        if message_id is None:
            return None
        if not header.topic.startswith(RETRY_PREFIX):
            return _Asked((_Ending(0, self._place_of(message_id)),))
        group = header.topic.removeprefix(RETRY_PREFIX)
        attempt = self._tries[(group, message_id)] = self._tries.get((group, message_id), 0) + 1
        queue_id, offset = self._births.get(message_id, (None, None))
        level = properties.get(PROPERTY_DELAY, "")
        fields = {
            "group": group,
            "topic": properties.get(PROPERTY_RETRY_TOPIC),
            "broker": self.broker,
            "queue_id": queue_id,
            "queue_offset": offset,
            "message_id": message_id,
            "sharding_key": properties.get(PROPERTY_SHARDING_KEY),
            "reconsume_times": int(level) - FIRST_DELAY_LEVEL
            if level.isdigit()
            else header.reconsume_times,
            "attempt": attempt,
        }

        def ended(answer: Command | None) -> _End:
            if answer is not None and answer.code in STORED:
                return Outcome.OK, {"code": answer.code}, ()
            return _plain(answer)

        return self._one(process, Kind.DEAD_LETTER, fields, ended)

    def _send_back(self, process: str, header: SendBackHeader) -> _Asked | None:
        """The Go client's way to give a message up: it asks the broker for the copy, which is to be a dead letter.

        It names the message by the id that its producer gave it.
        """
        message_id = header.origin_msg_id
        if header.delay_level >= 0 or message_id is None:
            return None
        key = (header.group, message_id)
        attempt = self._tries[key] = self._tries.get(key, 0) + 1
        queue_id, offset = self._births.get(message_id, (None, None))
        fields = {
            **self._lane(header.group, header.origin_topic or "", queue_id),
            "queue_offset": offset,
            "message_id": message_id,
            "attempt": attempt,
        }
        return self._one(process, Kind.DEAD_LETTER, fields, _plain)

    def _place_of(self, message_id: str) -> _How:
        def stored(answer: Command | None) -> _End:
            if answer is not None and answer.code in STORED:
                response = SendResponse.from_ext(answer.ext)
                self._births[message_id] = (response.queue_id, response.queue_offset)
            return _plain(answer)

        return stored

    def _members(self, answer: Command | None) -> _End:
        if answer is None or answer.code != ResponseCode.SUCCESS:
            return _plain(answer)
        ids = sorted(self._watch.names.get(each, each) for each in decode_consumer_ids(answer.body))
        return Outcome.OK, {"code": answer.code, "view": ",".join(ids)}, ()


def complete(rows: Iterable[Row]) -> list[Row]:
    """The rows (by seq_begin) with the incarnation and the start that a broker's record can't know.

    A request of a client for a lane belongs to the work on it that the client has begun (ADD) and not left (DROP):
    it asks for a lane's messages and reports its offset only meanwhile, and what it sends last, maybe just after it has
    told of its end, arrives before it begins anew. That a lock for the lane came first tells nothing: the round of
    locks that was under way still names it. Where the stored offset was looked up before the work began, the answer is
    where it begins: the client makes nothing else of it.
    """
    at_work: dict[_Place, str] = {}
    left: dict[_Place, str] = {}
    looked: dict[_Place, Row] = {}
    found: list[Row] = []
    for row in rows:
        if row.kind in (Kind.CRASH, Kind.JOIN):  # who was killed has told no end of its work
            for known in (at_work, left, looked):
                for place in [each for each in known if each[0] == row.client_id]:
                    del known[place]
        if row.client_id is None or row.queue_id is None or row.group is None:
            found.append(row)
            continue
        place = (row.client_id, tuple(row.lane))
        match row.kind:
            case Kind.ADD:
                at_work[place] = row.incarnation or ""
                look = looked.pop(place, None)
                answered = (
                    look is not None and look.seq_end is not None and look.seq_end < row.seq_begin
                )
                if look is not None and answered and look.outcome is Outcome.OK:
                    row = row._replace(value=look.value)
            case Kind.DROP:
                left[place] = at_work.pop(place, "")
            case Kind.FETCH_OFFSET if place not in at_work:
                looked[place] = row
            case _:
                pass
        if row.incarnation is None and row.kind in BY_INCARNATION and place in at_work:
            row = row._replace(incarnation=at_work[place])
        elif row.incarnation is None and row.kind in LAST_WORDS and left.get(place):
            row = row._replace(incarnation=left[place])
        found.append(row)
    return found


LAST_WORDS = frozenset({Kind.COMMIT, Kind.DEAD_LETTER})
"""What a client may still send of work that it has told the end of."""
BY_INCARNATION = frozenset(
    {Kind.LOCK, Kind.UNLOCK, Kind.PULL, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.DEAD_LETTER}
)
