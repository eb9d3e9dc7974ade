"""What the frames between a client and a broker say, as rows of a history at level `tap`.

Requests begin when they reach the tap and end when their answer does, before either is passed on: so the time that a
row covers includes all that the broker did. An answer that the client never gets is none: the row stays open.

What is not in a frame is inferred, by the client's own rules, and only from frames that were seen:

- whose a connection is, from the last heartbeat, lock or unlock on it; before the first, of who is at work on the
  lane and has lost its connection, if that can only be one. Nobody's pulls leave no row;
- ADD, the begin of an incarnation, when the client has been told where it starts: by the answer to its look-up of
  the stored offset, where one is stored, else by the answer to its question for the queue's end or for a time; and
  at the latest before its first pull. An UNLOCK, or the client's unregistering, ends the incarnation, though what
  it asked for meanwhile may follow. Whoever has pulled and looks the stored offset up again begins anew: so a lane
  is found to have been dropped that nobody unlocked. The unlock that follows late, as those of clients up to 5.1 do,
  is then the earlier incarnation's;
- DROP, when a client unregisters from the group, of each lane that it worked on and that nobody else was granted
  since: whoever leaves has no use for it. A lane that a client drops while it stays is not told;
- a send to the group's retry topic that names an origin is a DEAD_LETTER (orderly consumers send nothing else
  there); its lane and offset are those at which the client was given the message;
- a commit of what the last pull's answer named as the place to go on (PULL_OFFSET_MOVED) says what the broker
  corrected, and not what was finished (`detail=corrected`);
- the delay level of a message that is sent back with none: the broker takes 3 and what it has counted;
- a broker's death, by the proxy (see `lives`). Rows that name a broker have its `broker_epoch`, counted from 1.

Not recorded: batch sends, half messages and their ends, resets.
"""

from __future__ import annotations

import itertools
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reference_impl.core.consumer.dead_letters import FIRST_DELAY_LEVEL
from reference_impl.core.consumer.offsets import CORRECTED
from reference_impl.core.consumer.pulling import READ_CODES
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
    GetMaxOffsetHeader,
    OffsetResponse,
    PullHeader,
    PullResponse,
    QueryConsumerOffsetHeader,
    SearchOffsetHeader,
    SendBackHeader,
    SendHeader,
    SendResponse,
    UnregisterClientHeader,
    UpdateConsumerOffsetHeader,
)
from reference_impl.protocol.message import (
    PROPERTY_DELAY,
    PROPERTY_KEY_SEQ,
    PROPERTY_ORIGIN_MESSAGE_ID,
    PROPERTY_RETRY_TOPIC,
    PROPERTY_SHARDING_KEY,
    PROPERTY_TAGS,
    PROPERTY_TRANSACTION_PREPARED,
    PROPERTY_UNIQ_KEY,
    SYS_COMPRESSED,
    StoredMessage,
    decode_all,
)
from specs.history.clock import RecorderClock, host_clock
from specs.history.journal import Journal
from specs.vocabulary import RETRY_PREFIX, Kind, Lane, Level, Outcome

RECORDS: Mapping[str, tuple[str, ...]] = {
    Level.TAP: (
        Kind.LOCK, Kind.UNLOCK, Kind.PULL, Kind.COMMIT, Kind.FETCH_OFFSET, Kind.SEND, Kind.SEND_BACK, Kind.DEAD_LETTER,
        Kind.MEMBER, Kind.ADD, Kind.FAULT, Kind.CLOCK_STEP,
    ),
}  # fmt: skip
"""The kinds that a tap writes down whenever they happen to a client that it sees, for `RunInfo.records`. Not DROP,
which it sees of clients that leave only, nor CRASH, which it sees of brokers only: their deaths are in the epochs."""
STEP_US = 100_000
"""A wall clock that moves this much against the monotonic one, from one frame to the next, was set."""
REMEMBERED_MAX = 100_000
"""Messages whose place is remembered, of all clients: the oldest is forgotten first."""

Place = tuple[str, str, int]
Answered = Callable[[Command], None]


@dataclass(slots=True)
class _Link:
    """One client's connection to one broker. who: its id in the protocol; before it is known, its address."""

    broker: str
    who: str
    is_named: bool = False
    waiting: dict[int, list[Answered]] = field(default_factory=dict)


@dataclass(slots=True)
class _Work:
    """A client on a lane. number: of its latest incarnation, 0 before the first. added: is it still at work?
    told_nothing: its last look-up before said that nothing is stored. mine: it was the last to work here, and has not
    left. over: it has given the lane back, or left, and has not asked for it since. start: where it began. pulled: it
    has asked for messages since. leased: it was granted the lane's lease, and has not given it back. unlocks_late: the
    earlier incarnation that has not given the lane back. moved_to: where its last pull was sent to."""

    number: int = 0
    added: bool = False
    told_nothing: bool = False
    mine: bool = False
    over: bool = False
    start: int = -1
    pulled: bool = False
    leased: bool = False
    unlocks_late: str | None = None
    moved_to: int | None = None


@dataclass(frozen=True, slots=True)
class _Seen:
    """A message as a client was given it."""

    place: Place
    offset: int
    message_id: str | None
    reconsume_times: int


class TapRecorder:
    """Takes the frames of all connections, in the order in which they pass. One thread only.

    name_of: a client's id in the protocol → its name in the rows. skip: kinds that somebody else records. clock: this
    machine's; when its wall clock is set, that is a row. met: is told a client's id and the address from which it has
    connected, of each connection once it is known whose it is.
    """

    def __init__(
        self,
        journal: Journal,
        *,
        name_of: Callable[[str], str] = lambda client_id: client_id,
        skip: frozenset[Kind] = frozenset(),
        clock: RecorderClock | None = None,
        met: Callable[[str, str], object] | None = None,
    ) -> None:
        self._clock = clock or host_clock()
        self._met = met
        self._ahead_us = self._clock.wall_us() - self._clock.monotonic_us()
        self.unreadable = (
            0  # frames of a known kind that could not be read: they pass, and leave no row
        )
        self._journal = journal
        self._name_of = name_of
        self._skip = skip
        self._numbers = itertools.count(1)
        self._links: dict[int, _Link] = {}
        self._works: dict[tuple[str, Lane], _Work] = {}
        self._seen: OrderedDict[tuple[str, str], _Seen] = OrderedDict()
        self._tries: dict[tuple[str, str], int] = {}
        self._epochs: dict[str, int] = {}
        self._ids: dict[str, str] = {}  # a client's name in the rows → its id in the protocol
        self._readers: Mapping[int, Callable[[_Link, Command], None]] = {
            RequestCode.HEART_BEAT: self._heartbeat,
            RequestCode.UNREGISTER_CLIENT: self._unregister,
            RequestCode.LOCK_BATCH_MQ: self._lock,
            RequestCode.UNLOCK_BATCH_MQ: self._unlock,
            RequestCode.PULL_MESSAGE: self._pull,
            RequestCode.QUERY_CONSUMER_OFFSET: self._fetch,
            RequestCode.UPDATE_CONSUMER_OFFSET: self._commit,
            RequestCode.GET_MAX_OFFSET: self._end_asked,
            RequestCode.SEARCH_OFFSET_BY_TIMESTAMP: self._time_asked,
            RequestCode.GET_CONSUMER_LIST_BY_GROUP: self._members,
            RequestCode.SEND_MESSAGE: self._send,
            RequestCode.SEND_MESSAGE_V2: self._send,
            RequestCode.CONSUMER_SEND_MSG_BACK: self._send_back,
        }

    def incarnation(self, client: str, lane: Lane) -> str:
        """The name of a client's present incarnation on a lane, as its rows have it. Any thread may ask."""
        work = self._works.get((client, lane))
        return _incarnation(client, lane, 0 if work is None else work.number)

    # ------------------------------------------------------------------ connections

    def opened(self, number: int, peer: str, broker: str) -> None:
        """A client has connected to a broker."""
        self._links[number] = _Link(broker, peer)

    def closed(self, number: int) -> None:
        """The connection is gone: what has no answer never gets one."""
        self._links.pop(number, None)

    def crashed(self, broker: str) -> None:
        """The broker has died; who connects to it from now on finds another process of it."""
        fields = {"process": broker, "broker": broker, "broker_epoch": self._epoch(broker)}
        self._journal.note(Kind.CRASH, Outcome.OK, {"level": Level.TAP, **fields})
        self._epochs[broker] = self._epoch(broker) + 1

    def client_of(self, number: int) -> str:
        """The name of the client on a connection, or its address as long as it is not known."""
        return self._name_of(self._links[number].who)

    def asked(self, number: int, command: Command) -> None:
        """A request of the client's."""
        self._watch_clock()
        reader = self._readers.get(command.code)
        if reader is not None:
            try:
                reader(self._links[number], command)
            except ProtocolError:
                self.unreadable += 1

    def answered(self, number: int, command: Command) -> None:
        """An answer that the client is about to get."""
        self._watch_clock()
        link = self._links.get(number)
        for end in () if link is None else link.waiting.pop(command.opaque, ()):
            end(command)

    def _watch_clock(self) -> None:
        ahead_us = self._clock.wall_us() - self._clock.monotonic_us()
        moved_us, self._ahead_us = ahead_us - self._ahead_us, ahead_us
        if abs(moved_us) >= STEP_US:
            self._journal.note(
                Kind.CLOCK_STEP, Outcome.OK, {"level": Level.TAP, "value": moved_us // 1000}
            )

    def fault(self, detail: str, *, effective: bool) -> None:
        """The tap did something to a frame, or (not effective) never had the occasion."""
        self._journal.note(
            Kind.FAULT,
            Outcome.OK if effective else Outcome.REFUSED,
            {"level": Level.TAP, "detail": detail},
        )

    # ------------------------------------------------------------------ leases

    def _lock(self, link: _Link, command: Command) -> None:
        batch = LockBatch.decode(command.body)
        self._name(link, batch.client_id)
        asked = sorted(batch.queues)
        client = self._name_of(link.who)
        for queue in asked:
            if (work := self._works.get((client, Lane(batch.consumer_group, *queue)))) is not None:
                work.over = False

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            if answer.code != ResponseCode.SUCCESS:
                return Outcome.REFUSED, {}, ()
            granted = decode_lock_answer(answer.body)
            for queue in granted:
                self._work(client, Lane(batch.consumer_group, *queue)).leased = True
            for (who, lane), work in self._works.items():
                if who != client and lane.group == batch.consumer_group and lane.queue in granted:
                    work.mine = work.leased = False
            return (
                Outcome.OK,
                {},
                [{"outcome": Outcome.OK if q in granted else Outcome.REFUSED} for q in asked],
            )

        if asked:
            rows = [queue._asdict() for queue in asked]
            self._begin(link, command, Kind.LOCK, {"group": batch.consumer_group}, rows, end)

    def _unlock(self, link: _Link, command: Command) -> None:
        batch = LockBatch.decode(command.body)
        self._name(link, batch.client_id)
        client, rows = self._name_of(link.who), []
        works: list[_Work] = []
        for queue in sorted(batch.queues):
            lane = Lane(batch.consumer_group, *queue)
            work = self._work(client, lane)
            if work.unlocks_late is None:
                works.append(work)
            name = work.unlocks_late or _incarnation(client, lane, work.number)
            work.unlocks_late, work.leased = None, False
            rows.append({**queue._asdict(), "incarnation": name})
        if rows:
            self._begin(link, command, Kind.UNLOCK, {"group": batch.consumer_group}, rows, _plainly)
        for work in works:
            _gone(work)

    # ------------------------------------------------------------------ offsets

    def _fetch(self, link: _Link, command: Command) -> None:
        header = QueryConsumerOffsetHeader.from_ext(command.ext)
        lane = Lane(
            header.consumer_group, header.topic, header.broker_name or link.broker, header.queue_id
        )
        self._is_known(link, lane)
        client = self._name_of(link.who)
        work = self._work(client, lane)
        work.told_nothing = False
        if work.added and work.pulled:  # it dropped the lane unseen, and begins anew
            work.unlocks_late = _incarnation(client, lane, work.number) if work.leased else None
            work.added = False

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            if answer.code == ResponseCode.SUCCESS:
                return Outcome.OK, {"value": OffsetResponse.from_ext(answer.ext).offset}, ()
            missing = answer.code == ResponseCode.QUERY_NOT_FOUND
            return Outcome.REFUSED, {"value": -1} if missing else {}, ()

        def then(answer: Command) -> None:
            if (work.pulled and work.added) or not link.is_named:
                return  # it began meanwhile, or is nobody's
            if answer.code == ResponseCode.SUCCESS:
                start = OffsetResponse.from_ext(answer.ext).offset
                if start >= 0:
                    if not (
                        work.added and work.start == start
                    ):  # orderly consumers of 5.x ask twice
                        self._add(client, lane, start)
                    return
            work.told_nothing = not work.added and answer.code in (
                ResponseCode.SUCCESS,
                ResponseCode.QUERY_NOT_FOUND,
            )

        name = {"incarnation": _incarnation(client, lane, work.number)} if work.added else {}
        self._begin(link, command, Kind.FETCH_OFFSET, {**lane._asdict(), **name}, (), end, then)

    def _end_asked(self, link: _Link, command: Command) -> None:
        header = GetMaxOffsetHeader.from_ext(command.ext)
        self._start_asked(
            link, command, (header.topic, header.broker_name or link.broker, header.queue_id)
        )

    def _time_asked(self, link: _Link, command: Command) -> None:
        header = SearchOffsetHeader.from_ext(command.ext)
        self._start_asked(
            link, command, (header.topic, header.broker_name or link.broker, header.queue_id)
        )

    def _start_asked(self, link: _Link, command: Command, place: Place) -> None:
        """A question for a queue's end or for a time fixes the start of who was just told that nothing is stored."""
        client = self._name_of(link.who)
        lanes = [
            lane for (who, lane), work in self._works.items() if who == client and lane[1:] == place
        ]
        waiting = [lane for lane in lanes if self._work(client, lane).told_nothing]

        def then(answer: Command) -> None:
            if answer.code == ResponseCode.SUCCESS:
                for lane in waiting:
                    if not self._work(client, lane).added:
                        self._add(client, lane, OffsetResponse.from_ext(answer.ext).offset)

        if len(waiting) == 1:  # of two groups of one client nobody can tell which of them asked
            link.waiting.setdefault(command.opaque, []).append(self._guarded(then))

    def _commit(self, link: _Link, command: Command) -> None:
        header = UpdateConsumerOffsetHeader.from_ext(command.ext)
        if header.queue_id is None or header.commit_offset is None:
            return
        lane = Lane(
            header.consumer_group, header.topic, header.broker_name or link.broker, header.queue_id
        )
        self._is_known(link, lane)
        self._begin(
            link,
            command,
            Kind.COMMIT,
            self._commit_of(link, lane, header.commit_offset),
            (),
            _plainly,
        )

    def _pull(self, link: _Link, command: Command) -> None:
        header = PullHeader.from_ext(command.ext)
        lane = Lane(
            header.consumer_group, header.topic, header.broker_name or link.broker, header.queue_id
        )
        if not self._is_known(link, lane):
            return  # a pull of nobody begins no work
        client = self._name_of(link.who)
        work = self._work(client, lane)
        if not (work.added or work.over):  # a pull that follows the unlock is the old incarnation's
            self._add(client, lane, header.queue_offset)
        work.pulled = work.pulled or not work.over
        row = self._row_of(link, lane)

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            if answer.code not in READ_CODES:
                return Outcome.REFUSED, {}, ()
            outcome = (
                Outcome.REFUSED if answer.code == ResponseCode.PULL_OFFSET_MOVED else Outcome.OK
            )
            return outcome, {"value": PullResponse.from_ext(answer.ext).next_begin_offset}, ()

        def then(answer: Command) -> None:
            if answer.code == ResponseCode.PULL_OFFSET_MOVED:
                work.moved_to = PullResponse.from_ext(answer.ext).next_begin_offset
            if answer.code == ResponseCode.SUCCESS:
                for message in decode_all(answer.body):
                    self._remember(client, lane, message)

        def committed(
            answer: Command,
        ) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            taken = answer.code in READ_CODES
            return Outcome.OK if taken else Outcome.REFUSED, {"code": 0} if taken else {}, ()

        self._begin(
            link, command, Kind.PULL, {**row, "queue_offset": header.queue_offset}, (), end, then
        )
        if header.sys_flag & PULL_COMMIT and header.commit_offset > 0:
            fields = {**self._commit_of(link, lane, header.commit_offset), "view": "pull"}
            self._begin(link, command, Kind.COMMIT, fields, (), committed)

    # ------------------------------------------------------------------ messages

    def _send(self, link: _Link, command: Command) -> None:
        letters = command.code == RequestCode.SEND_MESSAGE_V2
        header = (
            SendHeader.from_ext_v2(command.ext) if letters else SendHeader.from_ext(command.ext)
        )
        properties = header.property_map
        message_id = properties.get(PROPERTY_UNIQ_KEY)
        if header.batch or PROPERTY_TRANSACTION_PREPARED in properties:
            return
        broker = header.broker_name or link.broker
        if header.topic.startswith(RETRY_PREFIX) and PROPERTY_ORIGIN_MESSAGE_ID in properties:
            self._give_up(link, command, header, properties)
            return
        client = self._name_of(link.who)
        number = properties.get(PROPERTY_KEY_SEQ, "")
        delay = properties.get(PROPERTY_DELAY, "")
        fields = {
            "topic": header.topic,
            "broker": broker,
            "queue_id": header.queue_id,
            "message_id": message_id,
            "sharding_key": properties.get(PROPERTY_SHARDING_KEY),
            "key_seq": int(number) if number.isdigit() else None,
            "tags": properties.get(PROPERTY_TAGS),
            "delay_level": int(delay) if delay.isdigit() else None,
            "body_hash": None if header.sys_flag & SYS_COMPRESSED else zlib.crc32(command.body),
            "attempt": self._attempt(client, message_id or ""),
        }

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            if answer.code not in STORED:
                return Outcome.REFUSED, {}, ()
            told = SendResponse.from_ext(answer.ext)
            return Outcome.OK, {"queue_id": told.queue_id, "queue_offset": told.queue_offset}, ()

        def then(answer: Command) -> None:
            if answer.code in STORED:  # nothing is remembered of what went well
                self._tries.pop((client, message_id or ""), None)

        self._begin(link, command, Kind.SEND, fields, (), end, then)

    def _give_up(
        self, link: _Link, command: Command, header: SendHeader, properties: Mapping[str, str]
    ) -> None:
        client, message_id = self._name_of(link.who), properties.get(PROPERTY_UNIQ_KEY, "")
        group = header.topic[len(RETRY_PREFIX) :]
        seen = self._seen.get((f"{client} {group}", message_id))
        topic = properties.get(PROPERTY_RETRY_TOPIC)
        place: dict[str, Any] = {"topic": topic, "broker": link.broker}
        if seen is not None:
            lane = Lane(group, *seen.place)
            place = {**self._row_of(link, lane), "queue_offset": seen.offset}
        fields = {
            "group": group,
            **place,
            "message_id": message_id,
            "reconsume_times": header.max_reconsume_times if seen is None else seen.reconsume_times,
            "attempt": self._attempt(client, f"{group} {message_id}"),
        }

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            return Outcome.OK if answer.code in STORED else Outcome.REFUSED, {}, ()

        def then(answer: Command) -> None:
            if answer.code in STORED:  # given up again it would be a first try again
                self._tries.pop((client, f"{group} {message_id}"), None)

        self._begin(link, command, Kind.DEAD_LETTER, fields, (), end, then)

    def _send_back(self, link: _Link, command: Command) -> None:
        header = SendBackHeader.from_ext(command.ext)
        client = self._name_of(link.who)
        seen = self._seen.get((f"{client} {header.group}", f"at {link.broker} {header.offset}"))
        if seen is not None:
            fields = {
                **self._row_of(link, Lane(header.group, *seen.place)),
                "queue_offset": seen.offset,
                "message_id": seen.message_id,
                "reconsume_times": seen.reconsume_times,
                "delay_level": header.delay_level or FIRST_DELAY_LEVEL + seen.reconsume_times,
            }
            self._begin(link, command, Kind.SEND_BACK, fields, (), _plainly)

    def _attempt(self, client: str, message_id: str) -> int:
        key = (client, message_id)
        self._tries[key] = self._tries.get(key, 0) + 1
        return self._tries[key]

    def _remember(self, client: str, lane: Lane, message: StoredMessage) -> None:
        seen = _Seen(lane[1:], message.queue_offset, message.message_id, message.reconsume_times)
        whose = f"{client} {lane.group}"
        for name in (message.message_id or "", f"at {lane.broker} {message.physical_offset}"):
            self._seen[whose, name] = seen
            self._seen.move_to_end((whose, name))
        while len(self._seen) > REMEMBERED_MAX:
            self._seen.popitem(last=False)

    # ------------------------------------------------------------------ members

    def _heartbeat(self, link: _Link, command: Command) -> None:
        self._name(link, Heartbeat.decode(command.body).client_id)

    def _unregister(self, link: _Link, command: Command) -> None:
        header = UnregisterClientHeader.from_ext(command.ext)
        client = self._name_of(header.client_id)
        its_own = [(lane, work) for (who, lane), work in self._works.items() if who == client]
        for lane, work in sorted(
            its_own, key=lambda item: item[0]
        ):  # by name: whose turn came first is chance
            if header.consumer_group in (None, lane.group):
                _gone(work)
                self._left(client, lane, work)

    def _members(self, link: _Link, command: Command) -> None:
        group = ConsumerGroupHeader.from_ext(command.ext).consumer_group

        def end(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
            if answer.code != ResponseCode.SUCCESS:
                return Outcome.REFUSED, {}, ()
            names = sorted(self._name_of(each) for each in decode_consumer_ids(answer.body))
            return Outcome.OK, {"view": ",".join(names)}, ()

        self._begin(link, command, Kind.MEMBER, {"group": group}, (), end)

    # ------------------------------------------------------------------ plumbing

    def _name(self, link: _Link, client_id: str) -> None:
        if self._met is not None and not link.is_named:
            self._met(client_id, link.who)
        link.who, link.is_named = client_id, True
        self._ids[self._name_of(client_id)] = client_id

    def _is_known(self, link: _Link, lane: Lane) -> bool:
        """Whose connection is it? Who is at work on the lane and has lost its own may ask before it says its name."""
        if not link.is_named:
            at_work = {
                self._ids.get(who, who)
                for (who, of), work in self._works.items()
                if of == lane and work.added
            }
            here = {
                other.who
                for other in self._links.values()
                if other.is_named and other.broker == link.broker
            }
            missing = sorted(at_work - here)
            if len(missing) == 1:
                self._name(link, missing[0])
        return link.is_named

    def _work(self, client: str, lane: Lane) -> _Work:
        return self._works.setdefault((client, lane), _Work())

    def _row_of(self, link: _Link, lane: Lane) -> dict[str, Any]:
        return {**lane._asdict(), "incarnation": self.incarnation(self._name_of(link.who), lane)}

    def _commit_of(self, link: _Link, lane: Lane, value: int) -> dict[str, Any]:
        """A commit's columns."""
        work = self._work(self._name_of(link.who), lane)
        if work.moved_to is not None and value > work.moved_to:
            work.moved_to = None
        corrected = {"detail": CORRECTED} if value == work.moved_to else {}
        return {**self._row_of(link, lane), "value": value, **corrected}

    def _epoch(self, broker: str) -> int:
        return self._epochs.get(broker, 1)

    def _epoch_of(
        self, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> dict[str, Any]:
        """The epoch of the broker that a row names, if it names one."""
        named = [each["broker"] for each in (*rows, fields) if each.get("broker") is not None]
        return {"broker_epoch": self._epoch(named[0])} if named else {}

    def _add(self, client: str, lane: Lane, start: int) -> None:
        work = self._work(client, lane)
        work.added, work.told_nothing, work.mine, work.over = True, False, True, False
        work.start, work.pulled, work.moved_to = start, False, None
        work.number += 1
        if Kind.ADD not in self._skip:
            name = _incarnation(client, lane, work.number)
            fields = {**lane._asdict(), "client_id": client, "incarnation": name, "value": start}
            self._journal.note(
                Kind.ADD, Outcome.OK, {"level": Level.TAP, **fields, **self._epoch_of(fields, ())}
            )

    def _left(self, client: str, lane: Lane, work: _Work) -> None:
        """Whoever leaves the group drops what it had."""
        if work.mine and Kind.DROP not in self._skip:
            name = _incarnation(client, lane, work.number)
            fields = {**lane._asdict(), "client_id": client, "incarnation": name}
            self._journal.note(
                Kind.DROP, Outcome.OK, {"level": Level.TAP, **fields, **self._epoch_of(fields, ())}
            )
        work.mine = False

    def _begin(
        self,
        link: _Link,
        command: Command,
        kind: Kind,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
        end: Callable[[Command], tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]],
        then: Answered | None = None,
    ) -> None:
        """A request's rows, with what ends them. then: what else the answer says, known after their end."""
        waiting = link.waiting.setdefault(command.opaque, []) if not command.is_oneway else []
        if kind not in self._skip:
            operation = next(self._numbers)
            common = {
                "client_id": self._name_of(link.who),
                "level": Level.TAP,
                **self._epoch_of(fields, rows),
            }
            self._journal.begin(operation, kind, {**common, **fields}, rows)
            if command.is_oneway:
                self._journal.end(operation, Outcome.SENT)

            def finish(answer: Command) -> None:
                try:
                    outcome, more, each = end(answer)
                except ProtocolError:
                    self.unreadable += 1
                    outcome, more, each = Outcome.UNKNOWN, {}, ()
                self._journal.end(operation, outcome, {"code": answer.code, **more}, each)

            waiting.append(finish)
        if then is not None:
            waiting.append(self._guarded(then))

    def _guarded(self, then: Answered) -> Answered:
        def guarded(answer: Command) -> None:
            try:
                then(answer)
            except ProtocolError:
                self.unreadable += 1

        return guarded


def _plainly(answer: Command) -> tuple[Outcome, Mapping[str, Any], Sequence[Mapping[str, Any]]]:
    return (Outcome.OK if answer.code == ResponseCode.SUCCESS else Outcome.REFUSED), {}, ()


def _gone(work: _Work) -> None:
    """The incarnation is over; the next one gets a name of its own, and until then what comes is this one's."""
    work.added = work.told_nothing = False
    work.over = True


def _incarnation(client: str, lane: Lane, number: int) -> str:
    """As the driver's recorder names it; a client that comes back to a lane counts on."""
    name = f"{client}/{lane.topic}/{lane.broker}/{lane.queue_id}"
    return name if number <= 1 else f"{name}#{number}"
