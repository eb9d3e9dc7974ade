"""One session of the wire machine against one broker: the model, the tallies of the wire rules, the journal.

Every example of the machine gets topics and groups of its own (a world), so a broker never has to be restarted;
all examples share one history, which the clauses judge at the end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.answers import NotTold, Told, ask_until
from conformance.waiting import pass_time
from conformance.wire.client import Answer, WireClient
from reference_impl.protocol.codes import ResponseCode
from reference_impl.sim.cluster import RETRIES_MS
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.model import broker as model
from specs.model.broker import Allowed, Oracle, Request, Span, State
from specs.model.rules import RULES
from specs.plan.config import Config
from specs.verdicts.online import OnlineFindings, RuleTally
from specs.vocabulary import Lane, Outcome, Queue, dead_letter_topic, retry_topic

QUEUES = 4
CLIENTS = ("alice", "bob", "carol")
NOTICE_DEADLINE_S = 2.0
INDEX_DEADLINE_S = 2.0
MEMBERS_DEADLINE_S = 3.0


def forgotten_ms(config: Config) -> int:
    """By then a broker has forgotten a member that it heard nothing of: it looks once in a while who is silent."""
    return config.channel_expiry_ms + min(10_000, config.channel_expiry_ms // 4)


def patience_ms(config: Config) -> int:
    """Until nothing can happen any more that waits for something: a dead member is forgotten, the living are members
    again, a rebalance, a lease that nobody renews, a pull that is never answered, and the retries in between."""
    asked_ms = config.heartbeat_ms + config.rebalance_ms + config.broker_lease_ms
    return forgotten_ms(config) + asked_ms + max(2 * config.long_poll_ms, 3_000) + RETRIES_MS


@dataclass(slots=True)
class Counted:
    """One wire rule while it is asked: how often it was at stake and what broke it first."""

    opportunities: int = 0
    violations: int = 0
    first: str = ""


@dataclass
class Session:
    """What lasts from example to example.

    wire: the profile's [wire] table. lease_known: the broker's lease time is ours to choose,
    so that waiting for its end is possible.
    """

    broker: str
    broker_name: str
    journal: Journal
    config: Config
    wire: Mapping[str, Any]
    prefix: str
    lease_known: bool = True
    tallies: dict[str, Counted] = field(default_factory=lambda: {rule: Counted() for rule in RULES})
    to_drain: list[tuple[Queue, str | None]] = field(default_factory=list)
    worlds: int = 0
    untold: list[str] = field(default_factory=list)
    """What the reading was not told."""

    def check(self, rule: str, holds: bool, explanation: str) -> None:
        """Count one opportunity of a rule; a broken one is data, and the run goes on."""
        tally = self.tallies[rule]
        tally.opportunities += 1
        if not holds:
            tally.violations += 1
            tally.first = tally.first or explanation

    def client(self, client_id: str) -> WireClient:
        return WireClient(client_id, self.broker, self.broker_name, self.journal)

    def world(self) -> World:
        self.worlds += 1
        return World(self, f"{self.prefix}{self.worlds}")

    def found(self) -> OnlineFindings:
        """What was judged until now, as it is kept in a run's folder."""
        rules = (
            RuleTally(rule, tally.opportunities, tally.violations, tally.first)
            for rule, tally in self.tallies.items()
        )
        return OnlineFindings(tuple(rules), dict(self.wire))

    def drain_when_settled(self) -> int:
        """Drain after the bound for dead letters has passed twice: what waits for a delay level shows up too."""
        pass_time(self.config.dead_letter_bound_ms * 2 / 1000)
        return self.drain()

    def drain(self) -> int:
        """Read every queue that was written to, to its end; returns the number of messages."""
        seen = 0
        with_client = self.client("drain")
        try:
            # Copies name the broker's id of what they were made from; who made it is known once that was read.
            for queue, group in sorted(self.to_drain, key=lambda item: item[1] is not None):
                found = with_client.read(queue, group)
                if isinstance(found, NotTold):
                    self.untold.append(found.why)
                else:
                    seen += found or 0
        finally:
            with_client.close()
        return seen


class Asked(NamedTuple):
    """A lock request that was answered. free: what had to be granted. held: what another certainly held.

    Without an answer nothing is known, and all three are empty.
    """

    granted: frozenset[Queue]
    free: frozenset[Queue]
    held: frozenset[Queue]


class World:
    """The topics, groups and clients of one example, with the abstract broker beside them.

    Each request is told to it with what came of it, and says what would have been right; the rule that such an answer
    puts at stake stands beside the request.
    """

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.topic = f"{name}-orders"
        self.groups = (f"{name}-billing", f"{name}-audit")
        self.clients: dict[str, WireClient] = {}
        self.broker = Oracle(rules_of(session), 0)
        self._beats_us: dict[tuple[str, str], int] = {}  # by client and group
        self._messages = 0
        self._drained: set[str] = set()
        self._sent: dict[int, tuple[int, str]] = {}
        """The newest message of each queue that has an offset, and that one."""
        made = self.client("alice").create_topic(self.topic, QUEUES)
        assert made.code == ResponseCode.SUCCESS, (
            f"the broker did not make topic {self.topic}: {made}"
        )
        self._told(self.client("alice"), made, model.CreateTopic(self.topic, QUEUES), _any)
        for queue_id in range(QUEUES):
            session.to_drain.append((self.queue(queue_id), None))
        for group in self.groups:  # a commit needs its group
            self.join("alice", group)

    def close(self) -> None:
        for client in self.clients.values():
            client.close()

    def client(self, client_id: str) -> WireClient:
        """The client's present connection."""
        found = self.clients.get(client_id)
        if found is None:
            found = self.clients[client_id] = self.session.client(f"{self.name}-{client_id}")
        return found

    def queue(self, queue_id: int) -> Queue:
        return Queue(self.topic, self.session.broker_name, queue_id)

    def lane(self, group: str, queue_id: int) -> Lane:
        return Lane(group, self.topic, self.session.broker_name, queue_id)

    def key_of(self, queue_id: int) -> str:
        """The sharding key of a queue's messages."""
        return f"{self.name}-k{queue_id}"

    def end(self, queue_id: int) -> int | None:
        """The queue's end, where all that may have happened agrees on it; None for a queue that is not there."""
        if queue_id >= QUEUES:
            return None
        return self.broker.agreed(lambda state: state.end((self.topic, queue_id)))

    def settle(self, who: str, queue_id: int) -> int | None:
        """Wait until the broker shows what it has acknowledged in a queue, and return the queue's end.

        A broker indexes messages a moment after it has acknowledged them; only when a deadline has passed is a
        message that does not show a broken rule (WIR-22). None when the end is not certain, or not told.
        """
        end = self.end(queue_id)
        if end is None:
            return None
        client, queue = self.client(who), self.queue(queue_id)
        found = ask_until(
            lambda said: said == end, lambda: client.max_offset(queue), INDEX_DEADLINE_S
        )
        if isinstance(found, NotTold):
            return None
        right = found == end
        self.session.check("WIR-22", right, f"{queue} ends at {end}, the broker says {found}")
        return end if right else None

    def _told(
        self,
        client: WireClient,
        answer: Answer,
        request: Request,
        is_right: Callable[[model.Answer], bool] | None,
        otherwise: Callable[[State], Any] = lambda state: None,
    ) -> Allowed:
        """What would have been right; see `Oracle.told`."""
        span = Span.of_us(answer.begun_us, answer.ended_us)
        return self.broker.told(client.client_id, request, span, is_right, otherwise)

    # ------------------------------------------------------------------ requests, each beside its rule

    def lock(self, who: str, group: str, queue_ids: list[int]) -> None:
        self.lock_queues(who, group, [self.queue(queue_id) for queue_id in queue_ids])

    def lock_queues(self, who: str, group: str, queues: list[Queue]) -> Asked:
        """Ask for leases, of whatever topic and broker name."""
        check = self.session.check
        client = self.client(who)
        answer, granted = client.lock(group, queues)
        request = model.Lock(group, client.client_id, tuple(queues))
        if granted is None:
            self._told(client, answer, request, None)
            if answer.is_told:
                text = f"a lock request was answered with code {answer.code}: {answer.remark}"
                check("WIR-1", False, text)
            return Asked(frozenset(), frozenset(), frozenset())
        asked, span = set(queues), Span.of_us(answer.begun_us, answer.ended_us)
        text = f"{who} asked for {sorted(asked)} and was granted {sorted(granted)}"
        check("WIR-1", granted <= asked, text)
        allowed = self._told(
            client,
            answer,
            request,
            lambda right: right.value == granted & asked,
            lambda state: state.granted(request, granted & asked, span),
        )
        subsets = [_queues(right) for right in allowed.answers]
        free = frozenset(queue for queue in queues if all(queue in each for each in subsets))
        held = frozenset(queue for queue in queues if not any(queue in each for each in subsets))
        for queue in queues:
            lane = Lane(group, *queue)
            if queue in free:
                text = f"{client.client_id} was refused {lane}, which was free, its own or expired"
                check("WIR-2", queue in granted, text)
            if queue in held:
                text = f"{client.client_id} was granted {lane}, which another holds"
                check("WIR-3", queue not in granted, text)
        if free and held:
            right = free <= granted and not granted & held
            text = f"was granted {sorted(granted)} of {group}; free were {sorted(free)}, held {sorted(held)}"
            check("WIR-23", right, f"{client.client_id} {text}")
        return Asked(granted, free, held)

    def unlock(self, who: str, group: str, queue_ids: list[int]) -> None:
        self.unlock_queues(who, group, [self.queue(queue_id) for queue_id in queue_ids])

    def unlock_queues(self, who: str, group: str, queues: list[Queue]) -> None:
        client = self.client(who)
        answer = client.unlock(group, queues)
        request = model.Unlock(group, client.client_id, tuple(queues))
        allowed = self._told(client, answer, request, _any if answer.code == 0 else None)
        if answer.is_told:
            text = f"an unlock was answered with code {answer.code}"
            self.session.check("WIR-4", answer.code in _codes(allowed), text)

    def neighbours(self, who: str, other: str, queue_id: int) -> None:
        """While one client holds a lane, another locks and frees the lanes that differ from it in one part."""
        queue = self.queue(queue_id)
        group, other_group = self.groups
        asker = self.client(other).client_id
        mine = Lane(group, *queue)
        beside = (
            (other_group, queue),
            (group, queue._replace(topic=f"{self.name}-bills")),
            (group, queue._replace(broker=f"{queue.broker}-beside")),
            (group, queue._replace(queue_id=(queue_id + 1) % QUEUES)),
        )
        self.lock_queues(who, group, [queue])
        for its_group, its_queue in beside:
            asked = self.lock_queues(other, its_group, [its_queue])
            if asked.free:
                text = f"{asker} was refused {Lane(its_group, *its_queue)}, which nobody held, while {who} held {mine}"
                self.session.check("WIR-24", bool(asked.granted), text)
            self.unlock_queues(other, its_group, [its_queue])
        asked = self.lock_queues(other, group, [queue])
        if asked.held:
            self.session.check(
                "WIR-24", not asked.granted, f"{mine}, held by {who}, was freed with another lane"
            )

    def send(self, who: str, queue_id: int) -> None:
        client = self.client(who)
        self._messages += 1
        message_id = f"{self.name}-m{self._messages}"
        queue = self.queue(queue_id)
        answer = client.send(queue, message_id, key=self.key_of(queue_id), key_seq=self._messages)
        offset = client.offset_of(answer) if answer.outcome is Outcome.OK else None
        is_there = queue_id < QUEUES
        allowed = self._told(
            client,
            answer,
            model.Send(self.topic, queue_id, message_id),
            None if offset is None else lambda right: right.value == (queue_id, offset),
            lambda state: (
                state.stored_at((self.topic, queue_id), offset, message_id)
                if is_there and offset is not None
                else None
            ),
        )
        if not is_there:
            self._check_code(
                "WIR-6",
                "queue_out_of_range_code",
                answer,
                allowed,
                f"a send to {self._beyond(queue_id)}",
            )
        elif offset is not None:
            self._sent[queue_id] = (offset, message_id)
            ends = sorted(_offset(right) for right in allowed.answers)
            text = f"{message_id} got offset {offset} of {queue}; the next one was {ends}"
            self.session.check("WIR-5", offset in ends, text)

    def _beyond(self, queue_id: int) -> str:
        return f"queue {queue_id} of {QUEUES}"

    def _check_code(
        self, rule: str, dialect: str, answer: Answer, allowed: Allowed, what: str
    ) -> None:
        """Is the code the one of the version? Nothing is said where the profile leaves it open."""
        right = allowed.one
        if answer.is_told and right is not None and dialect in self.session.wire:
            text = f"{what} was answered with {answer.code}, expected {right.code}"
            self.session.check(rule, answer.code == right.code, text)

    def pull(self, who: str, group: str, queue_id: int, offset: int) -> None:
        is_there = queue_id < QUEUES
        if is_there and self.settle(who, queue_id) is None:
            return
        client = self.client(who)
        answer, found, response = client.pull(group, self.queue(queue_id), offset)
        if not answer.is_told:
            return
        got = tuple((message.queue_offset, message.message_id) for message in found)
        following = response.next_begin_offset if response else None
        allowed = self._told(
            client,
            answer,
            model.Pull(group, self.topic, queue_id, offset),
            lambda right: _is_pulled(right, answer.code, got),
        )
        if not is_there:
            self._check_code(
                "WIR-10",
                "queue_out_of_range_code",
                answer,
                allowed,
                f"a pull of {self._beyond(queue_id)}",
            )
            return
        end = self.end(queue_id)
        where = f"a pull of {self.queue(queue_id)} at {offset} (end {end})"
        codes = _codes(allowed)
        if codes == {model.OK}:
            right = any(_is_pulled(each, answer.code, got) for each in allowed.answers)
            text = f"{where} was answered with code {answer.code} and {list(got)}"
            self.session.check("WIR-7", right, text)
        elif codes == {model.FOUND_NOTHING}:
            text = f"{where} was answered with {answer.code}"
            self.session.check("WIR-8", answer.code in codes, text)
        elif codes == {model.MOVED}:
            right = answer.code in codes and following == end
            text = f"{where} was answered with {answer.code} {answer.remark!r} and next offset {following}"
            self.session.check("WIR-9", right, text)

    def pull_unknown_topic(self, who: str, group: str) -> None:
        client, topic = self.client(who), f"{self.name}-nowhere"
        answer, _, _ = client.pull(group, Queue(topic, self.session.broker_name, 0), 0)
        allowed = self._told(client, answer, model.Pull(group, topic, 0, 0), None)
        if answer.is_told:
            text = f"a pull of an unknown topic was answered with {answer.code}"
            self.session.check("WIR-11", answer.code in _codes(allowed), text)

    def commit(self, who: str, group: str, queue_id: int, value: int) -> None:
        lane, client = self.lane(group, queue_id), self.client(who)
        answer = client.commit(lane, value)
        request = model.Commit(group, self.topic, queue_id, value)
        allowed = self._told(client, answer, request, _any if answer.code == 0 else None)
        if answer.code is not None:
            text = f"commit {value} of {lane} was answered with {answer.code}"
            self.session.check("WIR-12", answer.code in _codes(allowed), text)

    def fetch(self, who: str, group: str, queue_id: int) -> None:
        lane = self.lane(group, queue_id)
        key = (group, self.topic, queue_id)
        stored = {state.offsets.get(key) for state in self.broker.states}
        end = self.end(queue_id)
        if stored == {None} and end and self.settle(who, queue_id) is None:
            return  # until its first message is indexed a queue is an empty one
        client = self.client(who)
        answer, told = client.fetch(lane)
        if not answer.is_told:
            return
        value = None if isinstance(told, NotTold) else told  # another code than these is no offset
        is_open = end == 0 and "empty_queue_offset_query" not in self.session.wire
        allowed = self._told(
            client,
            answer,
            model.Fetch(*key),
            None if is_open else lambda right: (right.code, right.value) == (answer.code, value),
        )
        right = any(each.value == value for each in allowed.answers)
        if None not in stored:
            known = sorted(each for each in stored if each is not None)
            text = f"a fetch of {lane} answered {value} (code {answer.code}); committed was {known}"
            self.session.check("WIR-13", right, text)
        elif stored != {None} or end is None:
            return
        elif end:
            text = f"a fetch of {lane}, nothing stored, answered {value} (code {answer.code})"
            self.session.check("WIR-14", right, text)
        elif not is_open:
            got = (
                "not_found" if answer.code == model.NOT_STORED else "zero" if value == 0 else value
            )
            expected = self.session.wire["empty_queue_offset_query"]
            text = (
                f"a fetch of the empty {lane}, nothing stored, answered {got}, expected {expected}"
            )
            self.session.check("WIR-15", got == expected, text)

    def commit_unknown(self, who: str, *, topic: bool) -> None:
        """Commit for a group, or to a topic, that does not exist."""
        known, unknown = self.lane(self.groups[0], 0), f"{self.name}-nobody"
        lane = known._replace(topic=unknown) if topic else known._replace(group=unknown)
        dialect = "commit_unknown_topic_code" if topic else "commit_unknown_group_code"
        client = self.client(who)
        answer = client.commit(lane, 1)
        request = model.Commit(lane.group, lane.topic, lane.queue_id, 1)
        allowed = self._told(client, answer, request, _any if answer.code == 0 else None)
        what = f"a commit of an unknown {'topic' if topic else 'group'}"
        self._check_code("WIR-17" if topic else "WIR-16", dialect, answer, allowed, what)

    def join(self, who: str, group: str) -> None:
        """A heartbeat; when it makes a new member, every member is to hear of it."""
        self._disconnect_the_silent()
        client = self.client(who)
        for member in self.clients.values():
            member.pushes(0.0, 1)  # what is left of earlier notices
        answer = client.heartbeat(group, self.topic)
        self._beats_us[who, group] = answer.begun_us
        request = model.Beat(client.client_id, ((group, frozenset({self.topic})),))
        allowed = self._told(client, answer, request, _any if answer.code == 0 else None)
        if answer.code != 0:
            return
        for member in [each for each in self.clients.values() if each.client_id in allowed.told]:
            heard = member.hears_of(group, NOTICE_DEADLINE_S)
            if not heard and not member.answers():
                continue
            # A broker that stood still has the same time once it answers.
            heard = heard or member.hears_of(group, NOTICE_DEADLINE_S)
            self.session.check(
                "WIR-19", heard, f"{member.client_id} was not told that {who} joined {group}"
            )

    def disconnect(self, who: str) -> None:
        """The client's connection is gone; its locks stay, its memberships go."""
        client = self.clients.pop(who, None)
        if client is not None:
            self.broker.gone(client.client_id)
            client.close()

    def _disconnect_the_silent(self) -> None:
        """Who has sent no heartbeat for so long that the broker may soon forget it goes by itself.

        On a host that is busy an example takes longer than a broker waits for a member.
        """
        long_ago_us = host_clock().monotonic_us() - self.session.config.channel_expiry_ms * 500
        silent = {who for (who, _), beat_us in self._beats_us.items() if beat_us < long_ago_us}
        self._beats_us = {key: us for key, us in self._beats_us.items() if key[0] not in silent}
        for who in sorted(silent):
            self.disconnect(who)

    def list_members(self, who: str, group: str) -> None:
        """Ask for the member list until it is as the model says, or the deadline is over.

        A broker learns of a closed connection a moment later.
        """
        self._disconnect_the_silent()
        client = self.client(who)
        now = Span(0, 0)
        allowed = self.broker.told(client.client_id, model.Members(group), now, None)
        expected = [(each.code, list(_members(each))) for each in allowed.answers]

        def listed() -> Told[tuple[int | None, list[str]]]:
            answer, ids = client.members(group)
            return (answer.code, ids) if answer.is_told else NotTold(f"{group} was not listed")

        seen = ask_until(lambda said: said in expected, listed, MEMBERS_DEADLINE_S)
        if isinstance(seen, NotTold) or seen is None:
            return
        connected = " or ".join(str(ids) for _, ids in expected)
        text = f"{group}: code {seen[0]}, members {seen[1]}, connected are {connected}"
        self.session.check("WIR-18", seen in expected, text)

    def give_up(self, who: str, group: str, limit: int) -> None:
        """Send an existing message's copy to the retry topic with its tries exhausted."""
        fresh = [
            (*self._sent[queue_id], queue_id)
            for queue_id in sorted(self._sent)
            if self._sent[queue_id][1] not in self._drained
        ]
        if not fresh:
            return
        offset, message_id, queue_id = fresh[0]
        self._drained.add(message_id)
        # One more than the limit, as clients from 5.1.1 on count it; 4.9 compares with >= and takes it too.
        self.client(who).give_up(
            self.lane(group, queue_id), offset, message_id, self.key_of(queue_id), limit + 1, limit
        )
        self._drain_dead_letters(group)

    def retry_under_lock(self, who: str, group: str) -> None:
        """Send to the retry topic with tries left, and see where it lands."""
        client = self.client(who)
        if "retry_send_diverts_under_live_lock" not in self.session.wire:
            return
        places = {
            "dead letters": Queue(dead_letter_topic(group), self.session.broker_name, 0),
            "retry topic": Queue(retry_topic(group), self.session.broker_name, 0),
        }

        def ends() -> Told[dict[str, int]]:
            found = {}
            for where, queue in places.items():
                end = client.max_offset(queue)
                if isinstance(end, NotTold):
                    return end
                found[where] = end or 0
            return found

        before = ends()
        if isinstance(before, NotTold) or before is None:
            return
        was = dict(before)
        self._messages += 1
        message_id = f"{self.name}-r{self._messages}"
        self._drain_dead_letters(group)
        answer = client.try_again(self.lane(group, 0), message_id, 1, 5)
        if answer.code != 0:
            return
        span = Span.of_us(answer.begun_us, answer.ended_us)
        is_locked = all(state.surely_has_live_lock(group, span) for state in self.broker.states)
        self._told(
            client, answer, model.Send(retry_topic(group), 0, message_id, times=1, limit=5), _any
        )

        def grown(now: dict[str, int] | None) -> list[str]:
            return [where for where, end in (now or {}).items() if end > was[where]]

        after = ask_until(lambda now: bool(grown(now)), ends, INDEX_DEADLINE_S)
        if isinstance(after, NotTold):
            return
        where = (*grown(after), "nowhere")[0]
        if is_locked:
            wanted = self.broker.agreed(
                lambda state: next(
                    (
                        place
                        for place, queue in places.items()
                        if _lies_in(state, queue, message_id)
                    ),
                    None,
                )
            )
            text = f"a send to the retry topic of {group} under a living lock went to {where}, expected {wanted}"
            self.session.check("WIR-20", where == wanted, text)

    def _drain_dead_letters(self, group: str) -> None:
        entry = (Queue(dead_letter_topic(group), self.session.broker_name, 0), group)
        if entry not in self.session.to_drain:
            self.session.to_drain.append(entry)

    def ask_unknown(self, who: str) -> None:
        client = self.client(who)
        answer = client.ask_unknown()
        allowed = self._told(client, answer, model.Unknown(0), None)
        if answer.is_told:
            text = f"an unknown request was answered with {answer.code}"
            self.session.check("WIR-21", answer.code in _codes(allowed), text)


def rules_of(session: Session) -> model.Rules:
    """What the broker was started with, and what the profile's [wire] table says that its version answers."""
    wire = session.wire
    told = {
        "bad_queue_code": wire.get("queue_out_of_range_code"),
        "unknown_group_commit_code": wire.get("commit_unknown_group_code"),
        "unknown_topic_commit_code": wire.get("commit_unknown_topic_code"),
        "live_lock_diverts": wire.get("retry_send_diverts_under_live_lock"),
    }
    return model.Rules(
        lease_ms=session.config.broker_lease_ms,
        lease_known=session.lease_known,
        empty_queue_is_zero=wire.get("empty_queue_offset_query") == "zero",
        **{name: value for name, value in told.items() if value is not None},
    )


def _any(_: model.Answer) -> bool:
    """The request happened, whatever its answer says besides."""
    return True


def _codes(allowed: Allowed) -> set[int]:
    return {each.code for each in allowed.answers}


def _queues(right: model.Answer) -> frozenset[Queue]:
    """The granted subset of a lock's right answer."""
    assert isinstance(right.value, frozenset)
    return right.value


def _offset(right: model.Answer) -> int:
    """Where a right answer to a send puts the message."""
    assert isinstance(right.value, tuple)
    return int(right.value[1])


def _members(right: model.Answer) -> tuple[str, ...]:
    """Whom a right answer lists."""
    return right.value if isinstance(right.value, tuple) else ()


def _is_pulled(
    right: model.Answer, code: int | None, got: tuple[tuple[int, str | None], ...]
) -> bool:
    """Is this what a right answer to a pull holds, or the begin of it?"""
    if right.code != code or not isinstance(right.value, tuple):
        return right.code == code
    lies = tuple((offset, message.id) for offset, message in right.value[3])
    return got == lies[: len(got)] and bool(got) == bool(lies)


def _lies_in(state: State, queue: Queue, message_id: str) -> bool:
    return any(each.id == message_id for each in state.logs.get((queue.topic, queue.queue_id), ()))
