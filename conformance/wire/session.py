"""One session of the wire machine against one broker: the model, the tallies of the wire rules, the journal.

Every example of the machine gets topics and groups of its own (a world), so a broker never has to be restarted;
all examples share one history, which the clauses judge at the end.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from conformance.waiting import pass_time, wait_until
from conformance.wire.client import Answer, WireClient
from reference_impl.protocol.codes import ResponseCode
from reference_impl.sim.cluster import RETRIES_MS
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.model.lock_table import LockTable
from specs.model.membership import Membership
from specs.model.offset_table import NOTHING, OffsetTable
from specs.model.queue_log import QueueLog
from specs.model.rules import RULES
from specs.plan.config import Config
from specs.verdicts.online import OnlineFindings, RuleTally
from specs.vocabulary import Lane, Outcome, Queue, dead_letter_topic, retry_topic

QUEUES = 4
CLIENTS = ("alice", "bob", "carol")
NOTICE_DEADLINE_S = 2.0
INDEX_DEADLINE_S = 2.0


def patience_ms(config: Config) -> int:
    """Until nothing can happen any more that waits for something: a dead member is forgotten, the living are members
    again, a rebalance, a lease that nobody renews, a pull that is never answered, and the retries in between."""
    forgotten_ms = config.channel_expiry_ms + min(10_000, config.channel_expiry_ms // 4)
    asked_ms = config.heartbeat_ms + config.rebalance_ms + config.broker_lease_ms
    return forgotten_ms + asked_ms + max(2 * config.long_poll_ms, 3_000) + RETRIES_MS


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
                end = with_client.max_offset(queue)
                if end is not None:
                    seen += with_client.read(queue, end, group)
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
    """The topics, groups and clients of one example, with the model beside them."""

    def __init__(self, session: Session, name: str) -> None:
        self.session = session
        self.name = name
        self.topic = f"{name}-orders"
        self.groups = (f"{name}-billing", f"{name}-audit")
        self.clients: dict[str, WireClient] = {}
        self.locks = LockTable(session.config.broker_lease_ms * 1000, known=session.lease_known)
        self.offsets = OffsetTable()
        self.logs = {queue_id: QueueLog() for queue_id in range(QUEUES)}
        self.members = Membership()
        self._beats_us: dict[tuple[str, str], int] = {}  # by client and group
        self.last_answer_us = 0
        self._messages = 0
        self._drained: set[str] = set()
        made = self.client("alice").create_topic(self.topic, QUEUES)
        assert made.code == ResponseCode.SUCCESS, (
            f"the broker did not make topic {self.topic}: {made}"
        )
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

    def settle(self, who: str, queue_id: int) -> int | None:
        """Wait until the broker shows what it has acknowledged in a queue, and return the queue's end.

        A broker indexes messages a moment after it has acknowledged them; only when a deadline has passed is a
        message that does not show a broken rule (WIR-22). None when the end is not certain.
        """
        end = self.logs[queue_id].end
        if end is None:
            return None
        found: list[int | None] = []

        def shown() -> bool:
            found[:] = [self.client(who).max_offset(self.queue(queue_id))]
            return found[0] == end

        right = wait_until(shown, INDEX_DEADLINE_S)
        self.session.check(
            "WIR-22", right, f"{self.queue(queue_id)} ends at {end}, the broker says {found[0]}"
        )
        return end if right else None

    def _took(self, answer: Answer) -> Answer:
        self.last_answer_us = answer.ended_us
        return answer

    # ------------------------------------------------------------------ requests, each beside its rule

    def lock(self, who: str, group: str, queue_ids: list[int]) -> None:
        self.lock_queues(who, group, [self.queue(queue_id) for queue_id in queue_ids])

    def lock_queues(self, who: str, group: str, queues: list[Queue]) -> Asked:
        """Ask for leases, of whatever topic and broker name."""
        check = self.session.check
        client = self.client(who)
        answer, granted = client.lock(group, queues)
        self._took(answer)
        if granted is not None:
            asked = set(queues)
            check(
                "WIR-1",
                granted <= asked,
                f"{who} asked for {sorted(asked)} and was granted {sorted(granted)}",
            )
        elif answer.code is not None:
            check(
                "WIR-1",
                False,
                f"a lock request was answered with code {answer.code}: {answer.remark}",
            )
        free: set[Queue] = set()
        held: set[Queue] = set()
        for queue in queues:
            lane = Lane(group, *queue)
            given = None if granted is None else queue in granted
            if given is not None and self.locks.must_grant(lane, client.client_id, answer.begun_us):
                check(
                    "WIR-2",
                    given,
                    f"{client.client_id} was refused {lane}, which was free, its own or expired",
                )
                free.add(queue)
            if given is not None and self.locks.must_refuse(
                lane, client.client_id, answer.ended_us
            ):
                check(
                    "WIR-3",
                    not given,
                    f"{client.client_id} was granted {lane}, which another holds",
                )
                held.add(queue)
            self.locks.lock(lane, client.client_id, answer.begun_us, answer.ended_us, given)
        found = Asked(granted or frozenset(), frozenset(free), frozenset(held))
        if free and held:
            right = found.free <= found.granted and not found.granted & found.held
            text = f"was granted {sorted(found.granted)} of {group}; free were {sorted(free)}, held {sorted(held)}"
            check("WIR-23", right, f"{client.client_id} {text}")
        return found

    def unlock(self, who: str, group: str, queue_ids: list[int]) -> None:
        self.unlock_queues(who, group, [self.queue(queue_id) for queue_id in queue_ids])

    def unlock_queues(self, who: str, group: str, queues: list[Queue]) -> None:
        client = self.client(who)
        answer = self._took(client.unlock(group, queues))
        if answer.code is not None:
            self.session.check(
                "WIR-4", answer.code == 0, f"an unlock was answered with code {answer.code}"
            )
        for queue in queues:
            self.locks.unlock(Lane(group, *queue), client.client_id, answer.code == 0)

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
        known = queue_id in self.logs
        answer = self._took(
            client.send(queue, message_id, key=self.key_of(queue_id), key_seq=self._messages)
        )
        if not known:
            code = self.session.wire.get("queue_out_of_range_code")
            if answer.code is not None and code is not None:
                text = f"a send to queue {queue_id} of {QUEUES} was answered with {answer.code}, expected {code}"
                self.session.check("WIR-6", answer.code == code, text)
            return
        offset = client.offset_of(answer) if answer.outcome is Outcome.OK else None
        before = sorted(self.logs[queue_id].ends)
        dense = self.logs[queue_id].sent(message_id, offset)
        if offset is not None:
            text = f"{message_id} got offset {offset} of {queue}; the next one was {before}"
            self.session.check("WIR-5", dense, text)

    def pull(self, who: str, group: str, queue_id: int, offset: int) -> None:
        check = self.session.check
        if queue_id in self.logs and self.settle(who, queue_id) is None:
            return
        answer, found, response = self.client(who).pull(group, self.queue(queue_id), offset)
        self._took(answer)
        if answer.code is None:
            return
        if queue_id not in self.logs:
            code = self.session.wire.get("queue_out_of_range_code")
            if code is not None:
                text = f"a pull of queue {queue_id} of {QUEUES} was answered with {answer.code}, expected {code}"
                check("WIR-10", answer.code == code, text)
            return
        log = self.logs[queue_id]
        if log.end is None:
            return
        where = f"a pull of {self.queue(queue_id)} at {offset} (end {log.end})"
        if offset < log.end:
            right = bool(found) and all(
                message.queue_offset == offset + place
                and log.ids.get(offset + place) == message.message_id
                for place, message in enumerate(found)
            )
            got = [(message.queue_offset, message.message_id) for message in found]
            check("WIR-7", right, f"{where} was answered with code {answer.code} and {got}")
        elif offset == log.end:
            check(
                "WIR-8",
                answer.code == ResponseCode.PULL_NOT_FOUND,
                f"{where} was answered with {answer.code}",
            )
        else:
            moved = answer.code == ResponseCode.PULL_OFFSET_MOVED and response is not None
            right = moved and response is not None and response.next_begin_offset == log.end
            to = response.next_begin_offset if response else None
            check(
                "WIR-9",
                right,
                f"{where} was answered with {answer.code} {answer.remark!r} and next offset {to}",
            )

    def pull_unknown_topic(self, who: str, group: str) -> None:
        queue = Queue(f"{self.name}-nowhere", self.session.broker_name, 0)
        answer, _, _ = self.client(who).pull(group, queue, 0)
        if answer.code is not None:
            right = answer.code == ResponseCode.TOPIC_NOT_EXIST
            self.session.check(
                "WIR-11", right, f"a pull of an unknown topic was answered with {answer.code}"
            )

    def commit(self, who: str, group: str, queue_id: int, value: int) -> None:
        lane = self.lane(group, queue_id)
        answer = self._took(self.client(who).commit(lane, value))
        self.offsets.commit(lane, value, answer.code == 0)
        if answer.code is not None:
            self.session.check(
                "WIR-12",
                answer.code == 0,
                f"commit {value} of {lane} was answered with {answer.code}",
            )

    def fetch(self, who: str, group: str, queue_id: int) -> None:
        check = self.session.check
        lane = self.lane(group, queue_id)
        allowed = self.offsets.values(lane)
        if allowed == {NOTHING} and self.logs[queue_id].end and self.settle(who, queue_id) is None:
            return  # until its first message is indexed a queue is an empty one
        answer, value = self.client(who).fetch(lane)
        self._took(answer)
        if answer.code is None:
            return
        if NOTHING not in allowed:
            text = f"a fetch of {lane} answered {value} (code {answer.code}); committed was {sorted(allowed)}"
            check("WIR-13", value in allowed, text)
            return
        if allowed != {NOTHING}:
            return
        end = self.logs[queue_id].end
        if end:
            check(
                "WIR-14",
                value == 0,
                f"a fetch of {lane}, nothing stored, answered {value} (code {answer.code})",
            )
        elif (
            end == 0 and (expected := self.session.wire.get("empty_queue_offset_query")) is not None
        ):
            got = (
                "not_found"
                if answer.code == ResponseCode.QUERY_NOT_FOUND
                else "zero"
                if value == 0
                else value
            )
            text = (
                f"a fetch of the empty {lane}, nothing stored, answered {got}, expected {expected}"
            )
            check("WIR-15", got == expected, text)

    def commit_unknown(self, who: str, *, topic: bool) -> None:
        """Commit for a group, or to a topic, that does not exist."""
        known, unknown = self.lane(self.groups[0], 0), f"{self.name}-nobody"
        lane = known._replace(topic=unknown) if topic else known._replace(group=unknown)
        name = "commit_unknown_topic_code" if topic else "commit_unknown_group_code"
        answer = self.client(who).commit(lane, 1)
        expected = self.session.wire.get(name)
        if answer.code is not None and expected is not None:
            text = f"a commit of an unknown {'topic' if topic else 'group'} was answered with {answer.code}"
            rule = "WIR-17" if topic else "WIR-16"
            self.session.check(rule, answer.code == expected, f"{text}, expected {expected}")

    def join(self, who: str, group: str) -> None:
        """A heartbeat; when it makes a new member, every member is to hear of it."""
        self._disconnect_the_silent()
        client = self.client(who)
        everybody = [
            self.client(name)
            for name in CLIENTS
            if name != who and f"{self.name}-{name}" in self.members.members.get(group, {})
        ]
        for member in [client, *everybody]:
            member.pushes(0.0, 1)  # what is left of earlier notices
        answer = client.heartbeat(group, self.topic)
        self._beats_us[who, group] = answer.begun_us
        new = self.members.heartbeat(group, client.client_id, client.client_id)
        if answer.code != 0 or not new:
            return
        for member in [client, *everybody]:
            heard = member.hears_of(group, NOTICE_DEADLINE_S)
            self.session.check(
                "WIR-19", heard, f"{member.client_id} was not told that {who} joined {group}"
            )

    def disconnect(self, who: str) -> None:
        """The client's connection is gone; its locks stay, its memberships go."""
        client = self.clients.pop(who, None)
        if client is not None:
            self.members.gone(client.client_id)
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
        seen: list[Any] = [None, []]

        def as_expected() -> bool:
            answer, ids = client.members(group)
            seen[0], seen[1] = answer.code, ids
            expected = self.members.listed(group)
            return ids == expected and (
                answer.code == 0 if expected else answer.code == ResponseCode.SYSTEM_ERROR
            )

        right = wait_until(as_expected)
        text = f"{group}: code {seen[0]}, members {seen[1]}, connected are {self.members.listed(group)}"
        self.session.check("WIR-18", right, text)

    def give_up(self, who: str, group: str, limit: int) -> None:
        """Send an existing message's copy to the retry topic with its tries exhausted."""
        newest = [
            (*max(log.ids.items()), queue_id) for queue_id, log in self.logs.items() if log.ids
        ]
        fresh = [entry for entry in newest if entry[1] not in self._drained]
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
        expected = self.session.wire.get("retry_send_diverts_under_live_lock")
        if expected is None:
            return
        dead = Queue(dead_letter_topic(group), self.session.broker_name, 0)
        retry = Queue(retry_topic(group), self.session.broker_name, 0)
        before = (client.max_offset(dead) or 0, client.max_offset(retry) or 0)
        self._messages += 1
        lane = self.lane(group, 0)
        self._drain_dead_letters(group)
        answer = client.try_again(lane, f"{self.name}-r{self._messages}", 1, 5)
        if answer.code != 0:
            return
        ends: list[tuple[int, int]] = []

        def landed() -> bool:
            ends[:] = [(client.max_offset(dead) or 0, client.max_offset(retry) or 0)]
            return ends[0] != before

        wait_until(landed, INDEX_DEADLINE_S)
        where = (
            "dead letters"
            if ends[0][0] > before[0]
            else "retry topic"
            if ends[0][1] > before[1]
            else "nowhere"
        )
        if self.locks.certainly_locked(group, answer.ended_us):
            wanted = "dead letters" if expected else "retry topic"
            text = f"a send to the retry topic of {group} under a living lock went to {where}, expected {wanted}"
            self.session.check("WIR-20", where == wanted, text)

    def _drain_dead_letters(self, group: str) -> None:
        entry = (Queue(dead_letter_topic(group), self.session.broker_name, 0), group)
        if entry not in self.session.to_drain:
            self.session.to_drain.append(entry)

    def ask_unknown(self, who: str) -> None:
        answer = self.client(who).ask_unknown()
        if answer.code is not None:
            right = answer.code == ResponseCode.REQUEST_CODE_NOT_SUPPORTED
            self.session.check(
                "WIR-21", right, f"an unknown request was answered with {answer.code}"
            )
