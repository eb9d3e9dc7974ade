"""A whole broker, seen from outside: for each request the answers that are allowed now.

A `State` is one possible past: what the log holds, who holds which lease, which offsets are stored, who is a
member. `handle(request, at_ms)` gives every way in which it may go on, each with what is seen of it: the answer,
and what other connections are sent. Mostly there is one way; where the broker is free to choose there are more.

An `Oracle` keeps every state that is still possible. A request without an answer may or may not have happened, so
it forks them; an answer removes those that would have given another. When none is left, the broker broke a rule.

Requests are named tuples, and so the program that a machine wrote can be read aloud. Times are whole ms of the
broker's clock. What a rule rests on is in docs/sources.md; `Rules` has what differs between versions.

Two watch a broker by it. A core's machine hands in the time, and so knows the moment of each request (`Oracle.ask`). A
raw client on a network knows that a request took effect between its begin and its end (`Span`, `Oracle.told`): a lease
that may have run out in between forks the states as well. It follows a broker that answers wrongly, and goes on.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Lane, Queue, dead_letter_topic, retry_topic

WANTED_QUEUES = 4
"""How many queues a producer asks for, for a topic that its send makes."""
SENT_FIRST_LEVEL = 3
"""The delay level of a message that is sent back for the first time without naming one."""


T = TypeVar("T")


class Span(NamedTuple):
    """Not before `begun` and not after `ended`, in ms; a moment that is known has both equal."""

    begun: int
    ended: int

    @classmethod
    def of_us(cls, begun_us: int, ended_us: int) -> Span:
        """Of a request that a client measured in µs, in whole ms around it."""
        return cls(begun_us // 1000, -(-ended_us // 1000))


@dataclass(frozen=True, slots=True)
class Rules:
    """What a broker is started with, and what its version answers. Times in ms.

    lease_known: the lease time is no guess; else no lease certainly lives, and none has certainly run out.
    pull_messages_max: what one pull is given, however many it asks for.
    default_queues: of a topic that is made by a send, at most. retry_max: a group's limit where it sets none.
    dead_beyond_limit: an exhausted message has a counter above the limit (else: at it).
    """

    lease_ms: int = 60_000
    lease_known: bool = True
    persist_first_ms: int = 10_000
    persist_ms: int = 5_000
    channel_expiry_ms: int = 120_000
    channel_scan_ms: int = 10_000
    delay_ms: tuple[int, ...] = (1_000, 5_000, 10_000)
    pull_messages_max: int = 32
    default_queues: int = 8
    retry_max: int = 16
    bad_queue_code: int = 29
    unknown_group_commit_code: int = 26
    unknown_topic_commit_code: int = 17
    empty_queue_is_zero: bool = False
    zero_flag_is_read: bool = True
    dead_beyond_limit: bool = True
    live_lock_diverts: bool = True
    dead_letters_at_once: bool = True
    server_side_reset: bool = True

    @classmethod
    def of(cls, version: str, **numbers: Any) -> Rules:
        """The rules of one line, "4.9" or "5.x" (docs/sources.md#versions)."""
        if version == "5.x":
            return cls(**numbers)
        older = {
            "bad_queue_code": 1,
            "unknown_group_commit_code": 0,
            "unknown_topic_commit_code": 0,
            "empty_queue_is_zero": True,
            "zero_flag_is_read": False,
            "dead_beyond_limit": False,
            "live_lock_diverts": False,
            "dead_letters_at_once": False,
            "server_side_reset": False,
        }
        return cls(**{**older, **numbers})


# ---------------------------------------------------------------- requests


class Lock(NamedTuple):
    group: str
    client: str
    queues: tuple[Queue, ...]


class Unlock(NamedTuple):
    group: str
    client: str
    queues: tuple[Queue, ...]


class CreateTopic(NamedTuple):
    topic: str
    queues: int


class CreateGroup(NamedTuple):
    group: str
    retry_max: int


class Send(NamedTuple):
    """level: delay level, 0 for none. times, limit: retry counter and limit, for a retry topic."""

    topic: str
    queue_id: int
    message: str
    tag: str | None = None
    level: int = 0
    times: int = 0
    limit: int | None = None
    origin: str | None = None


class SendBatch(NamedTuple):
    topic: str
    queue_id: int
    messages: tuple[str, ...]


class SendBack(NamedTuple):
    """A consumer returns the message at that place of a queue. level: below 0 to the dead letters, 0 the usual."""

    group: str
    topic: str
    queue_id: int
    offset: int
    level: int = 0
    limit: int | None = None


class Pull(NamedTuple):
    """commit: an offset that travels along. wait_ms: how long it may be parked at the queue's end."""

    group: str
    topic: str
    queue_id: int
    offset: int
    most: int = 32
    tags: frozenset[str] | None = None
    commit: int | None = None
    wait_ms: int = 0


class Fetch(NamedTuple):
    """zero: False asks not to put 0 for a missing offset (5.x)."""

    group: str
    topic: str
    queue_id: int
    zero: bool | None = None


class Commit(NamedTuple):
    group: str
    topic: str
    queue_id: int
    value: int


class DeleteGroup(NamedTuple):
    """An operator deletes a group: its settings, and its offsets where that is asked for."""

    group: str
    with_offsets: bool


class Reset(NamedTuple):
    """An operator moves the offset: to one that is named, else to a time's first message (below 0: to the end).

    A broker that leaves it to its clients moves all queues of the topic, by the time alone; ahead only by force.
    """

    group: str
    topic: str
    queue_id: int
    offset: int | None = None
    at_ms: int = -1
    force: bool = False


class MaxOffset(NamedTuple):
    topic: str
    queue_id: int


class MinOffset(NamedTuple):
    topic: str
    queue_id: int


class Search(NamedTuple):
    """The first message stored at that time or later; upper: the last one not after it."""

    topic: str
    queue_id: int
    at_ms: int
    upper: bool = False


class View(NamedTuple):
    """The message at that place of a queue, asked for by the id that the broker gave it."""

    topic: str
    queue_id: int
    offset: int


class Beat(NamedTuple):
    """A heartbeat of a client that consumes in these groups, each with its topics."""

    client: str
    groups: tuple[tuple[str, frozenset[str]], ...]


class Unregister(NamedTuple):
    client: str
    group: str


class Members(NamedTuple):
    group: str


class Unknown(NamedTuple):
    """A request code that no broker knows."""

    code: int


Request = (
    Lock | Unlock | CreateTopic | CreateGroup | DeleteGroup | Send | SendBatch | SendBack | Pull | Fetch | Commit
    | Reset | MaxOffset | MinOffset | Search | View | Beat | Unregister | Members | Unknown
)  # fmt: skip


# ---------------------------------------------------------------- what is seen


class Answer(NamedTuple):
    """value: what the answer says besides its code, by request; see the methods of `State`."""

    code: int
    value: Hashable = None


class Pushed(NamedTuple):
    """Sent to a connection that did not just ask. answer: to a parked pull.

    about: of what has no answer: the group, for a change notice; (group, topic, offsets by queue), for a reset.
    """

    conn: str
    about: Hashable
    answer: Answer | None = None


class Seen(NamedTuple):
    """What one step shows. answer: None when the request is parked, or nothing was asked."""

    answer: Answer | None = None
    pushed: tuple[Pushed, ...] = ()


class Message(NamedTuple):
    """As a pull shows it. origin: the message that it is a copy of."""

    id: str
    tag: str | None
    times: int
    origin: str | None
    stored_ms: int


class Delayed(NamedTuple):
    due_ms: int
    level: int
    queue: tuple[str, int]
    message: Message


class Hold(NamedTuple):
    conn: str
    number: int
    until_ms: int
    pull: Pull


OK, FAILED, NOT_SUPPORTED, FULL = 0, 1, 3, 14
NO_TOPIC, FOUND_NOTHING, NO_MATCH, MOVED, NOT_STORED, NO_GROUP = 17, 19, 20, 21, 22, 26
NOT_ONLINE = 206
Offsets = dict[tuple[str, str, int], int]


@dataclass(slots=True)
class State:
    """One possible past of a broker. offsets: by group, topic, queue. saved: what a crash may leave of them. resets:
    where an operator's word stands until the group pulls.

    logs: by topic and queue, the messages from offset `starts` on. members: by group, connection → (client, heard).
    """

    rules: Rules
    topics: dict[str, int] = field(default_factory=dict)
    groups: dict[str, int] = field(default_factory=dict)
    locks: dict[Lane, tuple[str, Span]] = field(default_factory=dict)
    offsets: Offsets = field(default_factory=dict)
    saved: list[tuple[int, Offsets]] = field(default_factory=list)
    logs: dict[tuple[str, int], list[Message]] = field(default_factory=dict)
    starts: dict[tuple[str, int], int] = field(default_factory=dict)
    delayed: list[Delayed] = field(default_factory=list)
    members: dict[str, dict[str, tuple[str, int]]] = field(default_factory=dict)
    topics_of: dict[str, frozenset[str]] = field(default_factory=dict)
    holds: list[Hold] = field(default_factory=list)
    booted_ms: int = 0
    is_up: bool = True
    is_full: bool = False
    resets: frozenset[tuple[str, str, int]] = frozenset()
    pushed: list[Pushed] = field(default_factory=list)

    def copy(self) -> State:
        return State(
            self.rules,
            dict(self.topics),
            dict(self.groups),
            dict(self.locks),
            dict(self.offsets),
            list(self.saved),
            {queue: list(log) for queue, log in self.logs.items()},
            dict(self.starts),
            list(self.delayed),
            {group: dict(members) for group, members in self.members.items()},
            dict(self.topics_of),
            list(self.holds),
            self.booted_ms,
            self.is_up,
            self.is_full,
            self.resets,
            list(self.pushed),
        )

    # ------------------------------------------------------------ one step

    def handle(
        self, conn: str, number: int, request: Request, at: int | Span
    ) -> Iterator[tuple[Seen, State]]:
        """Every way in which the broker may take the request; the state itself is left alone.

        number: of the request, by which the answer to a parked pull is known later. at: its moment in ms, or the span
        in which that lies.
        """
        span = at if isinstance(at, Span) else Span(at, at)
        for gone in self._that_may_be_over(request, span):
            for queue_choice in self._choices(request):
                after = self.copy()
                for lane in gone:
                    del after.locks[lane]
                answer = after._answer(conn, number, queue_choice, span)
                yield Seen(answer, after._flush()), after

    def _that_may_be_over(self, request: Request, span: Span) -> Iterator[tuple[Lane, ...]]:
        """Of the leases that decide the answer those that may have run out by then, in every combination.

        One that ran out is as good as none, for good; any other of them lives, as far as this request is concerned.
        """
        match request:
            case Lock(group, client, queues):
                lanes = [Lane(group, *queue) for queue in queues]
                lanes = [lane for lane in lanes if self.locks.get(lane, (client,))[0] != client]
            case Send(topic) if self.rules.live_lock_diverts and topic.startswith(RETRY_PREFIX):
                group = topic.removeprefix(RETRY_PREFIX)
                lanes = [lane for lane in self.locks if lane.group == group]
            case _:
                lanes = []
        held = ((lane, self.locks[lane][1]) for lane in lanes)
        open_ones = [
            lane
            for lane, since in held
            if not (self._is_over(since, span) or self._lives(since, span))
        ]
        for many in range(len(open_ones) + 1):
            yield from itertools.combinations(open_ones, many)

    def _is_over(self, since: Span, span: Span) -> bool:
        """Is the lease certainly older than the limit?"""
        return self.rules.lease_known and span.begun - since.ended > self.rules.lease_ms

    def _lives(self, since: Span, span: Span) -> bool:
        """Is it certainly not?"""
        return self.rules.lease_known and span.ended - since.begun <= self.rules.lease_ms

    def _choices(self, request: Request) -> Iterable[Request]:
        """A send may leave the queue to the broker."""
        if isinstance(request, Send) and request.queue_id < 0:
            queues = self.topics.get(request.topic, self._made)
            return [request._replace(queue_id=number) for number in range(queues)]
        return (request,)

    def _flush(self) -> tuple[Pushed, ...]:
        pushed, self.pushed = tuple(sorted(self.pushed, key=repr)), []
        return pushed

    def _answer(self, conn: str, number: int, request: Request, span: Span) -> Answer | None:
        at_ms = span.ended
        match request:
            case Lock():
                return self.lock(request, span)
            case Unlock():
                return self.unlock(request)
            case CreateTopic():
                self.topics[request.topic] = request.queues
                return Answer(OK)
            case CreateGroup():
                self.groups[request.group] = request.retry_max
                return Answer(OK)
            case DeleteGroup():
                return self.delete_group(request, at_ms)
            case Send():
                return self.send(request, span)
            case SendBatch():
                return self.send_batch(request, at_ms)
            case SendBack():
                return self.send_back(request, at_ms)
            case Pull():
                return self.pull(conn, number, request, at_ms)
            case Fetch():
                return self.fetch(request)
            case Commit():
                return self.commit(request, at_ms)
            case Reset():
                return self.reset(request, at_ms)
            case MaxOffset(topic, queue_id):
                return Answer(OK, self.end((topic, queue_id)))
            case MinOffset(topic, queue_id):
                return Answer(OK, self.starts.get((topic, queue_id), 0))
            case Search():
                return self.search(request)
            case View(topic, queue_id, offset):
                found = self.at((topic, queue_id), offset)
                return Answer(OK, found) if found else Answer(FAILED)
            case Beat():
                return self.beat(conn, request, at_ms)
            case Unregister():
                return self.unregister(conn, request)
            case Members(group):
                listed = tuple(sorted(client for client, _ in self.members.get(group, {}).values()))
                return Answer(OK, listed) if listed else Answer(FAILED)
            case Unknown():
                return Answer(NOT_SUPPORTED)

    # ------------------------------------------------------------ leases

    def is_free(self, lane: Lane, client: str, span: Span) -> bool:
        """Absent, the asker's own, or strictly older than the limit."""
        held = self.locks.get(lane)
        return held is None or held[0] == client or self._is_over(held[1], span)

    def lock(self, request: Lock, span: Span) -> Answer:
        """value: the granted subset of what was asked for."""
        granted = set()
        for queue in request.queues:
            lane = Lane(request.group, *queue)
            if self.is_free(lane, request.client, span):
                self.locks[lane] = (request.client, span)
                granted.add(queue)
        return Answer(OK, frozenset(granted))

    def unlock(self, request: Unlock) -> Answer:
        """Success, whoever asks; only the owner's lease goes, whatever its age."""
        for queue in request.queues:
            lane = Lane(request.group, *queue)
            if lane in self.locks and self.locks[lane][0] == request.client:
                del self.locks[lane]
        return Answer(OK)

    def granted(self, request: Lock, queues: Iterable[Queue], span: Span) -> None:
        """These are the client's now, whatever the rules say."""
        for queue in queues:
            self.locks[Lane(request.group, *queue)] = (request.client, span)

    def has_live_lock(self, group: str, span: Span) -> bool:
        return any(
            lane.group == group and not self._is_over(since, span)
            for lane, (_, since) in self.locks.items()
        )

    def surely_has_live_lock(self, group: str, span: Span) -> bool:
        """Does a lease of the group live throughout the span?"""
        return any(
            lane.group == group and self._lives(since, span)
            for lane, (_, since) in self.locks.items()
        )

    # ------------------------------------------------------------ the log

    def end(self, queue: tuple[str, int]) -> int:
        """The offset of the next message."""
        return self.starts.get(queue, 0) + len(self.logs.get(queue, ()))

    def at(self, queue: tuple[str, int], offset: int) -> Message | None:
        place = offset - self.starts.get(queue, 0)
        log = self.logs.get(queue, [])
        return log[place] if 0 <= place < len(log) else None

    def stored_at(self, queue: tuple[str, int], offset: int, message: str) -> None:
        """It lies there, and the next one gets the offset behind it, whatever the rules say."""
        log, start = self.logs.setdefault(queue, []), self.starts.get(queue, 0)
        del log[max(0, offset - start) :]
        log += [Message("", None, 0, None, 0)] * (offset - start - len(log))
        log.append(Message(message, None, 0, None, 0))

    def send(self, request: Send, span: Span) -> Answer:
        """value: queue and offset; for a delayed message nothing, since it lies elsewhere until its time.

        A full disk takes nothing; what waits for its time has its place already.
        """
        topic, at_ms = request.topic, span.ended
        if topic not in self.topics:
            if topic.startswith(DLQ_PREFIX):
                return Answer(NO_TOPIC)
            self.topics[topic] = self._made
        if request.queue_id >= self.topics[topic]:
            return Answer(self.rules.bad_queue_code)
        if self.is_full:
            return Answer(FULL)
        level, queue = request.level, (topic, request.queue_id)
        if topic.startswith(RETRY_PREFIX):
            group = topic.removeprefix(RETRY_PREFIX)
            self.groups.setdefault(group, self.rules.retry_max)
            limit = self.groups[group] if request.limit is None else request.limit
            if self.is_dead(group, request.times, limit, span):
                queue = (dead_letter_topic(group), 0)
                level = 0 if self.rules.dead_letters_at_once else level
                self.topics.setdefault(queue[0], 1)
        message = Message(request.message, request.tag, request.times, request.origin, at_ms)
        offset = self.store(queue, message, level, at_ms)
        return Answer(OK, None if offset is None else (queue[1], offset))

    @property
    def _made(self) -> int:
        """How many queues a topic has that a send makes."""
        return min(WANTED_QUEUES, self.rules.default_queues)

    def is_dead(self, group: str, times: int, limit: int, span: Span) -> bool:
        """Whether what is sent to the group's retry topic goes to its dead letters."""
        exhausted = times > limit if self.rules.dead_beyond_limit else times >= limit
        return exhausted or (self.rules.live_lock_diverts and self.has_live_lock(group, span))

    def store(self, queue: tuple[str, int], message: Message, level: int, at_ms: int) -> int | None:
        """The offset; None when the message first waits for its time."""
        if level > 0:
            level = min(level, len(self.rules.delay_ms))
            self.delayed.append(
                Delayed(at_ms + self.rules.delay_ms[level - 1], level, queue, message)
            )
            return None
        offset = self._append(queue, message, at_ms)
        self._wake(queue)
        return offset

    def _append(self, queue: tuple[str, int], message: Message, at_ms: int) -> int:
        self.logs.setdefault(queue, []).append(message._replace(stored_ms=at_ms))
        return self.end(queue) - 1

    def send_batch(self, request: SendBatch, at_ms: int) -> Answer:
        """value: queue and the first offset; the others follow without a gap."""
        if request.queue_id >= self.topics.setdefault(request.topic, self._made):
            return Answer(self.rules.bad_queue_code)
        if self.is_full:
            return Answer(FULL)
        queue = (request.topic, request.queue_id)
        first = self.end(queue)
        for name in request.messages:
            self.logs.setdefault(queue, []).append(Message(name, None, 0, None, at_ms))
        self._wake(queue)
        return Answer(OK, (request.queue_id, first))

    def send_back(self, request: SendBack, at_ms: int) -> Answer:
        """A copy, counted up by one: to the retry topic after its level, or to the dead letters at the limit."""
        found = self.at((request.topic, request.queue_id), request.offset)
        group_limit = self.groups.setdefault(request.group, self.rules.retry_max)
        self.topics.setdefault(retry_topic(request.group), 1)
        if found is None or self.is_full:
            return Answer(FAILED)
        limit = group_limit if request.limit is None else request.limit
        copy = found._replace(times=found.times + 1, origin=found.origin or found.id)
        if found.times >= limit or request.level < 0:
            queue, level = (dead_letter_topic(request.group), 0), 0
            self.topics.setdefault(queue[0], 1)
        else:
            queue, level = (
                (retry_topic(request.group), 0),
                request.level or SENT_FIRST_LEVEL + found.times,
            )
        self.store(queue, copy, level, at_ms)
        return Answer(OK)

    def pull(self, conn: str, number: int, request: Pull, at_ms: int) -> Answer | None:
        """value: (next offset, queue's start, queue's end, messages with their offsets)."""
        if request.topic not in self.topics:
            self.groups.setdefault(request.group, self.rules.retry_max)
            return Answer(NO_TOPIC)
        self.groups.setdefault(request.group, self.rules.retry_max)
        if not 0 <= request.queue_id < self.topics[request.topic]:
            return Answer(self.rules.bad_queue_code)
        if request.commit is not None:
            self._put((request.group, request.topic, request.queue_id), request.commit, at_ms)
        answer = self.take_reset(request) or self.read(request)
        if answer.code == FOUND_NOTHING and request.wait_ms > 0:
            self.holds.append(Hold(conn, number, at_ms + request.wait_ms, request))
            return None
        return answer

    def read(self, request: Pull) -> Answer:
        queue = (request.topic, request.queue_id)
        start, end = self.starts.get(queue, 0), self.end(queue)
        if request.offset < start:
            return Answer(MOVED, (start, start, end, ()))
        if request.offset >= end:
            return Answer(FOUND_NOTHING if request.offset == end else MOVED, (end, start, end, ()))
        found: list[tuple[int, Message]] = []
        offset = request.offset
        most = min(request.most, self.rules.pull_messages_max)
        while offset < end and len(found) < most:
            message = self.logs[queue][offset - start]
            if request.tags is None or message.tag in request.tags:
                found.append((offset, message))
            offset += 1
        return Answer(OK if found else NO_MATCH, (offset, start, end, tuple(found)))

    def _wake(self, queue: tuple[str, int]) -> None:
        """Parked pulls that the queue's new messages satisfy are answered."""
        for hold in [hold for hold in self.holds if (hold.pull.topic, hold.pull.queue_id) == queue]:
            answer = self.read(hold.pull)
            if answer.code not in (FOUND_NOTHING, NO_MATCH):
                self.holds.remove(hold)
                self.pushed.append(
                    Pushed(hold.conn, hold.number, self.take_reset(hold.pull) or answer)
                )

    def search(self, request: Search) -> Answer:
        """value: the offset; without such a message the end (upper: the start)."""
        queue = (request.topic, request.queue_id)
        start, log = self.starts.get(queue, 0), self.logs.get(queue, [])
        if request.upper:
            before = sum(
                1 for _ in itertools.takewhile(lambda m: m.stored_ms <= request.at_ms, log)
            )
            return Answer(OK, max(start, start + before - 1))
        return Answer(OK, self._first_since(queue, request.at_ms))

    def _first_since(self, queue: tuple[str, int], at_ms: int) -> int:
        log = self.logs.get(queue, [])
        before = sum(1 for _ in itertools.takewhile(lambda message: message.stored_ms < at_ms, log))
        return self.starts.get(queue, 0) + before

    def trim(self, queue: tuple[str, int], start: int) -> None:
        """Retention: messages below `start` are no longer kept."""
        gone = max(0, min(start, self.end(queue)) - self.starts.get(queue, 0))
        if gone:
            del self.logs[queue][:gone]
            self.starts[queue] = self.starts.get(queue, 0) + gone

    # ------------------------------------------------------------ offsets

    def fetch(self, request: Fetch) -> Answer:
        """value: the offset. Nothing stored: 0 while the queue holds its first message, else 'not found'."""
        stored = self.offsets.get(request[:3], -1)
        if stored >= 0:
            return Answer(OK, stored)
        if self.rules.zero_flag_is_read and request.zero is False:
            return Answer(NOT_STORED)
        queue = (request.topic, request.queue_id)
        if self.end(queue) == 0:
            return Answer(OK, 0) if self.rules.empty_queue_is_zero else Answer(NOT_STORED)
        return Answer(OK, 0) if self.starts.get(queue, 0) == 0 else Answer(NOT_STORED)

    def commit(self, request: Commit, at_ms: int) -> Answer:
        """Taken as it is, from anybody: not compared, not fenced. While a reset stands it changes nothing."""
        if request.group not in self.groups and self.rules.unknown_group_commit_code:
            return Answer(self.rules.unknown_group_commit_code)
        if request.topic not in self.topics and self.rules.unknown_topic_commit_code:
            return Answer(self.rules.unknown_topic_commit_code)
        self._put(request[:3], request.value, at_ms)
        return Answer(OK)

    def _put(self, lane: tuple[str, str, int], value: int, at_ms: int) -> None:
        if lane not in self.resets:
            self._keep(at_ms)
            self.offsets[lane] = value

    def delete_group(self, request: DeleteGroup, at_ms: int) -> Answer:
        """What is stored for others stays, and so do the group's offsets unless they are to go."""
        self.groups.pop(request.group, None)
        if request.with_offsets:
            self._keep(at_ms)
            gone = {lane for lane in self.offsets if lane[0] == request.group}
            self.offsets = {lane: at for lane, at in self.offsets.items() if lane not in gone}
            self.resets -= gone
        return Answer(OK)

    def reset(self, request: Reset, at_ms: int) -> Answer:
        """value: the new offset, from the queue's start to one beyond its end. It stands until the group pulls."""
        if not self.rules.server_side_reset:
            return self._tell_to_reset(request)
        if request.topic not in self.topics:
            return Answer(NO_TOPIC)
        if request.group not in self.groups:
            return Answer(NO_GROUP)
        queue, value = (request.topic, request.queue_id), request.offset
        if value is None or value == -1:
            value = (
                self.end(queue) if request.at_ms < 0 else self._first_since(queue, request.at_ms)
            )
        elif not self.starts.get(queue, 0) <= value <= self.end(queue) + 1:
            return Answer(FAILED)
        self._keep(at_ms)
        self.offsets[request[:3]] = value
        self.resets |= {request[:3]}
        return Answer(OK, value)

    def _tell_to_reset(self, request: Reset) -> Answer:
        """value: the new offset of every queue, which every member is told too. Nothing is stored."""
        if request.topic not in self.topics:
            return Answer(FAILED)
        told = []
        for queue_id in range(self.topics[request.topic]):
            fetched = self.offsets.get((request.group, request.topic, queue_id), -1)
            if fetched < 0:
                return Answer(FAILED)
            queue = (request.topic, queue_id)
            value = (
                self.end(queue) if request.at_ms < 0 else self._first_since(queue, request.at_ms)
            )
            told.append(value if request.force else min(value, fetched))
        members = self.members.get(request.group, {})
        if not members:
            return Answer(NOT_ONLINE)
        self.pushed += [
            Pushed(conn, (request.group, request.topic, tuple(told))) for conn in members
        ]
        return Answer(OK, tuple(told))

    def take_reset(self, request: Pull) -> Answer | None:
        """The reset that stands is the answer to a pull, and stands no longer; None where there is none."""
        lane = (request.group, request.topic, request.queue_id)
        if lane not in self.resets:
            return None
        self.resets -= {lane}
        queue = (request.topic, request.queue_id)
        return Answer(MOVED, (self.offsets[lane], self.starts.get(queue, 0), self.end(queue), ()))

    def _keep(self, at_ms: int) -> None:
        """The offsets are about to change: until now they were these."""
        self.saved.append((at_ms, dict(self.offsets)))

    def crash(self, at_ms: int) -> Iterator[State]:
        """What a crash may leave: log, topics, groups and delayed messages, and offsets as old as one interval.

        No lease, no member and no parked pull survives it. In its first seconds a broker writes nothing.
        """
        age_ms = at_ms - self.booted_ms
        lost_ms = age_ms if age_ms <= self.rules.persist_first_ms else self.rules.persist_ms
        kept = [offsets for until_ms, offsets in self.saved if until_ms >= at_ms - lost_ms]
        for offsets in _distinct([*kept, self.offsets]):
            after = self.copy()
            after.offsets, after.saved = dict(offsets), []
            after.locks, after.members, after.topics_of, after.holds = {}, {}, {}, []
            after.resets = frozenset()
            after.is_up = False
            yield after

    # ------------------------------------------------------------ members

    def beat(self, conn: str, request: Beat, at_ms: int) -> Answer:
        """A new member, or other topics: every connection of the group is told, the new one too."""
        for group, topics in request.groups:
            self.groups.setdefault(group, self.rules.retry_max)
            self.topics.setdefault(retry_topic(group), 1)
            members = self.members.setdefault(group, {})
            changed = (
                conn not in members
                or members[conn][0] != request.client
                or self.topics_of.get(group) != topics
            )
            members[conn] = (request.client, at_ms)
            self.topics_of[group] = topics
            if changed:
                self._tell(group)
        return Answer(OK)

    def unregister(self, conn: str, request: Unregister) -> Answer:
        if self.members.get(request.group, {}).get(conn, ("", 0))[0] == request.client:
            self._leave(request.group, conn)
        return Answer(OK)

    def _leave(self, group: str, conn: str) -> None:
        del self.members[group][conn]
        if not self.members[group]:
            del self.members[group]
            self.topics_of.pop(group, None)
        self._tell(group)

    def _tell(self, group: str) -> None:
        self.pushed += [Pushed(conn, group) for conn in self.members.get(group, {})]

    def closed(self, conn: str) -> Iterator[tuple[Seen, State]]:
        """A connection is gone: its memberships and parked pulls with it, its leases not."""
        after = self.copy()
        after._close(conn)
        yield Seen(None, after._flush()), after

    def _close(self, conn: str) -> None:
        self.holds = [hold for hold in self.holds if hold.conn != conn]
        for group in [group for group, members in self.members.items() if conn in members]:
            self._leave(group, conn)

    # ------------------------------------------------------------ time

    def next_ms(self) -> int | None:
        """When something happens by itself next; None when nothing will."""
        times = [hold.until_ms for hold in self.holds] + [each.due_ms for each in self.delayed]
        if self.members:
            silent_ms = (
                min(self._heard().values()) + self.rules.channel_expiry_ms + 1 - self.booted_ms
            )
            scans = -(-silent_ms // self.rules.channel_scan_ms)
            times.append(self.booted_ms + scans * self.rules.channel_scan_ms)
        return min(times) if times and self.is_up else None

    def due(self, at_ms: int) -> Iterator[tuple[Seen, State]]:
        """What happens by itself at that moment.

        Messages of different levels that are due together come in any order, and a parked pull may be answered with
        the first of them or with all.
        """
        due = [each for each in self.delayed if each.due_ms <= at_ms]
        for groups in _gathered(due):
            after = self.copy()
            after.delayed = [each for each in self.delayed if each.due_ms > at_ms]
            for group in groups:
                for each in group:
                    after._append(each.queue, each.message, at_ms)
                for queue in dict.fromkeys(each.queue for each in group):
                    after._wake(queue)
            for hold in [hold for hold in after.holds if hold.until_ms <= at_ms]:
                after.holds.remove(hold)
                answer = after.take_reset(hold.pull) or after.read(hold.pull)
                after.pushed.append(Pushed(hold.conn, hold.number, answer))
            if (
                at_ms > self.booted_ms
                and (at_ms - self.booted_ms) % self.rules.channel_scan_ms == 0
            ):
                after._scan(at_ms)
            yield Seen(None, after._flush()), after

    def _heard(self) -> dict[str, int]:
        """When each connection of a member was last heard of, in any group."""
        heard: dict[str, int] = {}
        for members in self.members.values():
            for conn, (_, heard_ms) in members.items():
                heard[conn] = max(heard_ms, heard.get(conn, heard_ms))
        return heard

    def _scan(self, at_ms: int) -> None:
        for conn, heard_ms in self._heard().items():
            if at_ms - heard_ms > self.rules.channel_expiry_ms:
                self._close(conn)

    def boot(self, at_ms: int) -> None:
        self.booted_ms, self.is_up = at_ms, True

    def key(self) -> Hashable:
        """Equal for states that nobody can tell apart, now or later."""
        return repr(
            (
                sorted(self.topics.items()),
                sorted(self.groups.items()),
                sorted(self.locks.items()),
                sorted(self.offsets.items()),
                sorted((queue, log) for queue, log in self.logs.items() if log),
                sorted(self.starts.items()),
                self.delayed,
                sorted((group, sorted(members.items())) for group, members in self.members.items()),
                sorted((group, sorted(topics)) for group, topics in self.topics_of.items()),
                self.holds,
                self.saved,
                sorted(self.resets),
            )
        )


def _distinct(offsets: list[Offsets]) -> list[Offsets]:
    found: list[Offsets] = []
    for each in offsets:
        if each not in found:
            found.append(each)
    return found


def _gathered(due: list[Delayed]) -> Iterator[tuple[tuple[Delayed, ...], ...]]:
    """In every order, the groups that come at once: each alone, those of one level in a row, or all."""
    for order in _interleaved(due):
        alone = tuple((each,) for each in order)
        by_level = tuple(
            tuple(group) for _, group in itertools.groupby(order, key=lambda each: each.level)
        )
        yield from dict.fromkeys((alone, by_level, (order,) if order else ()))


def _interleaved(due: list[Delayed]) -> Iterator[tuple[Delayed, ...]]:
    """Every order that keeps each level's own."""
    if len({each.level for each in due}) <= 1:
        yield tuple(due)
        return
    for order in itertools.permutations(due):
        levels: dict[int, list[Delayed]] = {}
        for each in order:
            levels.setdefault(each.level, []).append(each)
        if all(
            each == [other for other in due if other.level == level]
            for level, each in levels.items()
        ):
            yield order


# ---------------------------------------------------------------- the oracle


@dataclass(slots=True)
class Wrong:
    """No possible past explains what was seen. allowed: what would have been right."""

    asked: str
    seen: Seen
    allowed: tuple[Seen, ...]

    def __str__(self) -> str:
        right = " or ".join(sorted({_words(each) for each in self.allowed}))
        return f"{self.asked}: seen was {_words(self.seen)}, allowed {right}"


def _words(seen: Seen) -> str:
    words = "no answer" if seen.answer is None else f"code {seen.answer.code}"
    if seen.answer is not None and seen.answer.value is not None:
        value = seen.answer.value
        words += f" {sorted(value) if isinstance(value, frozenset) else value}"
    pushes = [
        f"{p.conn} is told of {p.about}" + (f" {p.answer}" if p.answer else "") for p in seen.pushed
    ]
    return "; ".join([words, *pushes])


class Allowed(NamedTuple):
    """What would have been right. told: the connections that may hear of it."""

    answers: tuple[Answer, ...]
    told: frozenset[str]

    @property
    def one(self) -> Answer | None:
        """The one right answer; None where several are."""
        return self.answers[0] if len(self.answers) == 1 else None


class Oracle:
    """All possible pasts of one broker."""

    def __init__(self, rules: Rules, at_ms: int) -> None:
        self.states = [State(rules, booted_ms=at_ms)]

    def ask(
        self,
        conn: str,
        number: int,
        request: Request,
        at: int | Span,
        seen: Seen,
        *,
        answered: bool = True,
    ) -> Wrong | None:
        """Take in a request and what came of it. answered: False when nobody knows whether it happened."""
        ways = [way for state in self.states for way in state.handle(conn, number, request, at)]
        if not answered:
            ways = [(Seen(None, each.pushed), after) for each, after in ways]
            ways += [(Seen(), state.copy()) for state in self.states]
            seen = Seen(None, seen.pushed)
        return self._follow(f"{conn} asks {request}", ways, seen)

    def told(
        self,
        conn: str,
        request: Request,
        at: Span,
        is_right: Callable[[Answer], bool] | None,
        otherwise: Callable[[State], Any] = lambda state: None,
    ) -> Allowed:
        """Take in a request of which a client on a network was told the answer; returns what would have been right.

        is_right: whether an allowed answer is the one that came; None where none came, or one that says nothing of
        what happened. otherwise: what then holds of each state all the same, where no allowed answer came.
        """
        ways = [way for state in self.states for way in state.handle(conn, 0, request, at)]
        answers = dict.fromkeys(seen.answer for seen, _ in ways if seen.answer is not None)
        told = frozenset(pushed.conn for seen, _ in ways for pushed in seen.pushed)
        if is_right is None:
            after = [state for _, state in ways] + [state.copy() for state in self.states]
        else:
            after = [s for seen, s in ways if seen.answer is not None and is_right(seen.answer)]
        if not after:
            for state in self.states:
                otherwise(state)
            after = self.states
        self._keep(after)
        return Allowed(tuple(answers), told)

    def gone(self, conn: str) -> None:
        """A connection was closed; who hears of it was not watched."""
        self._keep([after for state in self.states for _, after in state.closed(conn)])

    def agreed(self, what: Callable[[State], T]) -> T | None:
        """What is true in all pasts; None where they differ."""
        found = [what(state) for state in self.states]
        return found[0] if all(each == found[0] for each in found) else None

    def _keep(self, states: Sequence[State]) -> None:
        """Those that anybody can tell apart."""
        several = len(states) > 1  # a key costs as much as a state is large
        self.states = list({s.key(): s for s in states}.values()) if several else list(states)

    def closed(self, conn: str, seen: Seen) -> Wrong | None:
        ways = [way for state in self.states for way in state.closed(conn)]
        return self._follow(f"{conn} is closed", ways, seen)

    def next_ms(self) -> int | None:
        """The next moment at which something may happen by itself."""
        times = [at_ms for state in self.states if (at_ms := state.next_ms()) is not None]
        return min(times, default=None)

    def due(self, at_ms: int, seen: Seen) -> Wrong | None:
        ways = [way for state in self.states for way in state.due(at_ms)]
        return self._follow(f"at {at_ms} ms", ways, seen)

    def crash(self, at_ms: int) -> None:
        after = {after.key(): after for state in self.states for after in state.crash(at_ms)}
        self.states = list(after.values())

    def boot(self, at_ms: int, seen: Seen) -> Wrong | None:
        for state in self.states:
            state.boot(at_ms)
        return self.due(at_ms, seen)

    def trim(self, queue: tuple[str, int], start: int) -> None:
        for state in self.states:
            state.trim(queue, start)

    def fill(self, is_full: bool) -> None:
        """The disk is full, or has room again."""
        for state in self.states:
            state.is_full = is_full

    def _follow(self, asked: str, ways: list[tuple[Seen, State]], seen: Seen) -> Wrong | None:
        kept: Mapping[Hashable, State] = {
            after.key(): after for each, after in ways if each == seen
        }
        if not kept:
            return Wrong(asked, seen, tuple(dict.fromkeys(each for each, _ in ways)))
        self.states = list(kept.values())
        return None
