"""What a driver tells, as rows of a history at level `client`.

The rows carry the driver's own times. Where a delivery names the client's work on its lane by a number, that is its
incarnation; of a driver that can't tell it is one process's work on one lane, and then a run that is to be judged by
clauses about incarnations must have one consumer in a group, which keeps its lanes from start to stop.

`added` and `dropped` become rows (ADD, DROP) unless somebody else, as a tap, tells them.

Where a coordinator hands the lanes out, nobody asks for a lease and yet each lane has one owner at a time: being given
a lane is then a grant (LOCK), having it taken or giving it back is an UNLOCK, and each commit that was accepted proves
that the client was still a member, so that it is a grant anew.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specs.clauses.rows import OFFSET_MOVED
from specs.history.clock import RecorderClock, host_clock
from specs.history.hashes import props_hash
from specs.history.journal import Journal
from specs.vocabulary import Kind, Lane, Outcome

SUSPEND_LEAST_MS = 10
SUSPEND_MOST_MS = 30_000
TOLD_BY: Mapping[str, Kind] = {
    "delivered": Kind.DELIVER,
    "sent": Kind.SEND,
    "assigned": Kind.ASSIGN,
    "added": Kind.ADD,
    "dropped": Kind.DROP,
    "committed": Kind.COMMIT,
    "looked_up": Kind.FETCH_OFFSET,
    "gave_up": Kind.DEAD_LETTER,
    "locked": Kind.LOCK,
    "unlocked": Kind.UNLOCK,
    "moved": Kind.PULL,
    "received": Kind.RECEIVE,
    "acked": Kind.ACK,
    "released": Kind.RELEASE,
}
"""Which event of a driver tells of which kind of row. Of its pulls a driver tells what no answer of a message is."""
ANSWERED = {
    "committing": "committed",
    "looking_up": "looked_up",
    "locking": "locked",
    "receiving": "received",
    "acking": "acked",
}
"""The event of a request → that of its answer."""
NUMBERED = {
    Kind.COMMIT: "commit",
    Kind.FETCH_OFFSET: "look",
    Kind.LOCK: "lock",
    Kind.RECEIVE: "receive",
    Kind.ACK: "ack",
}
"""By what number of theirs the two belong together."""
OF_WORK = frozenset({Kind.COMMIT, Kind.FETCH_OFFSET})
"""Of these requests each belongs to the client's work on its lane; a lease is the client's, whatever its work."""
LEASED = ("queue_offset", "lease_id", "reconsume_times", "lease_until_us")
"""What is told of a message that is leased, each where it is known."""
LANE = ("topic", "broker", "queue_id")
OF_LANES = frozenset({"added", "dropped"})
IDLE = frozenset({"locking", "locked", "receiving"})
"""What a client tells for ever that has nothing to do: it waits for a lane, or for a message."""
HASH_SELECTOR = "java-hash"
"""How a send says that the hash of its key chose the queue: as our own producer says it (docs/history.md)."""


def told_by(events: Iterable[str]) -> frozenset[Kind]:
    """The kinds of rows that a driver tells which announces these events, or that can't happen."""
    told = frozenset(TOLD_BY[event] for event in events if event in TOLD_BY)
    return told | {Kind.RENEW} if Kind.RECEIVE in told else told


def shown_properties(message: Mapping[str, Any]) -> int | None:
    """The hash of the properties that a driver shows of a message; None where it tells none."""
    found = message.get("properties")
    return None if found is None else props_hash(found)


class DriverRecorder:
    """Takes a driver's events; `on_event` is called by one thread, the other methods by another.

    suspend_ms: the consumer's default, which the listener's -1 stands for. life: the how-manieth process of this
    client it is. names: client id in the protocol → in the plan. lanes: whether ADD and DROP are to be rows.
    incarnation_of: who else watches the client, and names its present incarnation on a lane. handed_out: whether a
    coordinator hands the lanes out.
    """

    def __init__(
        self,
        folder: Path,
        client: str,
        group: str,
        *,
        suspend_ms: int,
        life: int = 1,
        names: Mapping[str, str] | None = None,
        lanes: bool = False,
        handed_out: bool = False,
        incarnation_of: Callable[[str, Lane], str] | None = None,
    ) -> None:
        host = host_clock()
        self._now_us = host.monotonic_us()
        # Lines ascend, so the event at hand is what the clock says.
        clock = RecorderClock(
            host.name,
            lambda: self._now_us,
            lambda: host.wall_us() - host.monotonic_us() + self._now_us,
        )
        self._journal = Journal(folder, client, clock=clock, common={"client_id": client})
        self._sends = Journal(folder, f"{client}-sends", common={"client_id": client})
        self._client = client
        self._group = group
        self._suspend_ms = suspend_ms
        self._life = life
        self._names = names or {}
        self._lanes = lanes
        self._handed_out = handed_out
        self._incarnation_of = incarnation_of
        self._attempts: dict[tuple[Any, ...], int] = {}
        self._shown: dict[tuple[Any, ...], Mapping[str, Any]] = {}  # the last row of each place
        self._batches: dict[int, int] = {}
        self._transactions: dict[int, tuple[Mapping[str, Any], Mapping[int, str]]] = {}
        self._changed = threading.Condition()
        self.told = 0  # events that are not `IDLE`
        self.deliveries: list[Mapping[str, Any]] = []
        self.results: dict[int, Mapping[str, Any]] = {}
        self.sent: dict[int, Mapping[str, Any]] = {}

        self._takes: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
            "delivered": self._delivered,
            "finished": self._finished,
            "added": self._added,
            "dropped": self._dropped,
            "committing": self._asks,
            "committed": self._is_answered,
            "looking_up": self._asks,
            "looked_up": self._is_answered,
            "locking": self._asks,
            "locked": self._is_answered,
            "unlocked": self._unlocked,
            "moved": self._moved,
            "assigned": self._assigned,
            "ending": self._ends,
            "ended": self._has_ended,
            "gave_up": self._gave_up,
            "sent": self._sent,
            "receiving": self._asks,
            "received": self._is_answered,
            "acking": self._asks,
            "acked": self._is_answered,
            "released": self._released,
            "put_back": self._put_back,
        }

    def close(self) -> None:
        self._journal.close()
        self._sends.close()

    def dies(self) -> None:
        """Nobody knows what it did after its last word: for whoever judges, it died then."""
        self._journal.note(Kind.CRASH, Outcome.OK, {"group": self._group})

    def sending(
        self, number: int, fields: Mapping[str, Any], batch: Sequence[Mapping[str, Any]] = ()
    ) -> None:
        """A send is about to be asked for, by the number that its event will carry. batch: the columns of each.

        A message without a key is tried again by the client itself, and nobody tells how often.
        """
        rows = [{**each, "value": place} for place, each in enumerate(batch)]
        self._batches[number] = len(rows)
        attempt = 1 if fields.get("sharding_key") is not None else None
        self._sends.begin(number, Kind.SEND, {**fields, "attempt": attempt}, rows)

    def ends(self, number: int, fields: Mapping[str, Any], sends: Mapping[int, str]) -> None:
        """A transaction is about to be asked for, whose end will carry the number.

        fields: of the end's rows. sends: its messages, by the numbers of their sends.
        """
        self._transactions[number] = fields, sends

    def wait_for_sends(self, count: int, deadline_s: float) -> bool:
        with self._changed:
            return self._changed.wait_for(lambda: len(self.sent) >= count, deadline_s)

    def wait_for_results(self, count: int, deadline_s: float) -> bool:
        """Wait until that many listener calls have finished."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self.results) >= count, deadline_s)

    def wait_for(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        """Wait until a condition on what was told holds; it is asked after every event."""
        with self._changed:
            return self._changed.wait_for(condition, deadline_s)

    def on_event(self, event: Mapping[str, Any]) -> None:
        """Take an event down; those of lanes, unless somebody else tells of them."""
        name = event["event"]
        if name in self._takes and (self._lanes or name not in OF_LANES):
            if name != "sent":  # a send's times are those at which it was asked for, and answered
                self._now_us = event["at_us"]
            self._takes[name](event)
        self.told += name not in IDLE and not _is_in_vain(event)
        with self._changed:
            match name:
                case "delivered":
                    self.deliveries.append(event)
                case "finished":
                    self.results[event["call"]] = event
                case "sent":
                    self.sent[event["id"]] = event
            self._changed.notify_all()

    def _delivered(self, event: Mapping[str, Any]) -> None:
        rows = self._rows(event)
        self._journal.begin(event["call"], Kind.DELIVER, {"group": self._group}, rows)

    def _finished(self, event: Mapping[str, Any]) -> None:
        self._journal.end(event["call"], Outcome(event["outcome"]), self._ended(event))

    def _lane(self, event: Mapping[str, Any]) -> dict[str, Any]:
        return {"group": self._group, **{name: event[name] for name in LANE}}

    def _added(self, event: Mapping[str, Any]) -> None:
        fields = self._lane(event)
        if self._handed_out:
            self._journal.note(Kind.LOCK, Outcome.OK, fields)
        begins = {"value": event["value"]} if event.get("value", -1) >= 0 else {}
        work = self._work({name: event[name] for name in LANE}, event["incarnation"])
        self._journal.note(Kind.ADD, Outcome.OK, {**fields, **begins, "incarnation": work})

    def _dropped(self, event: Mapping[str, Any]) -> None:
        fields = self._lane(event)
        work = self._work({name: event[name] for name in LANE}, event["incarnation"])
        self._journal.note(Kind.DROP, Outcome.OK, {**fields, "incarnation": work})
        if self._handed_out:
            self._journal.note(Kind.UNLOCK, Outcome.OK, fields)

    def _asks(self, event: Mapping[str, Any]) -> None:
        kind = TOLD_BY[ANSWERED[event["event"]]]
        fields = {**self._lane(event), **_leased(event), "value": event.get("value")}
        number = event[NUMBERED[kind]]
        if kind in OF_WORK:
            fields["incarnation"] = self._incarnation(event, event.get("incarnation"))
        if self._handed_out and kind is Kind.COMMIT:
            self._journal.begin((Kind.LOCK, number), Kind.LOCK, self._lane(event))
        self._journal.begin((kind, number), kind, fields)

    def _is_answered(self, event: Mapping[str, Any]) -> None:
        kind = TOLD_BY[event["event"]]
        told = {**_leased(event), **({"value": event["value"]} if "value" in event else {})}
        number = event[NUMBERED[kind]]
        # A message that was handed out is told once it is there.
        self._journal.end((kind, number), Outcome(event.get("outcome", Outcome.OK)), told)
        if self._handed_out and kind is Kind.COMMIT:
            # A commit that was not accepted says nothing of who owns the lane.
            proven = Outcome.OK if event["outcome"] == "ok" else Outcome.UNKNOWN
            self._journal.end((Kind.LOCK, number), proven)

    def _unlocked(self, event: Mapping[str, Any]) -> None:
        self._journal.note(Kind.UNLOCK, Outcome.OK, self._lane(event))

    def _released(self, event: Mapping[str, Any]) -> None:
        fields = {**self._lane(event), **_leased(event)}
        if event.get("suspend_ms", -1) >= 0:
            fields["suspend_ms"] = event["suspend_ms"]
        if event.get("release"):
            self._journal.begin((Kind.RELEASE, event["release"]), Kind.RELEASE, fields)
        else:
            self._journal.note(Kind.RELEASE, Outcome.SENT, fields)

    def _put_back(self, event: Mapping[str, Any]) -> None:
        self._journal.end((Kind.RELEASE, event["release"]), Outcome(event["outcome"]), {})

    def _moved(self, event: Mapping[str, Any]) -> None:
        fields = {name: event[name] for name in ("queue_offset", "value")}
        fields["incarnation"] = self._incarnation(event, event.get("incarnation"))
        told = {**self._lane(event), **fields, "code": OFFSET_MOVED}
        self._journal.note(Kind.PULL, Outcome.OK, told)

    def _assigned(self, event: Mapping[str, Any]) -> None:
        members = " ".join(self._names.get(member, member) for member in event["members"])
        fields = {
            "group": self._group,
            "topic": event["topic"],
            "value": len(event["share"]),
            "view": f"{members} | {' '.join(event['queues'])}",
            "detail": " ".join(event["share"]),
        }
        self._journal.note(Kind.ASSIGN, Outcome.OK, fields)

    def _gave_up(self, event: Mapping[str, Any]) -> None:
        self._journal.note(Kind.DEAD_LETTER, Outcome.OK, self._given_up(event))

    def _ends(self, event: Mapping[str, Any]) -> None:
        """A transaction's end: a row for each message, which names the queue that the answer to its send has named."""
        fields, sends = self._transactions.pop(event["id"])
        rows = []
        for number, message in sends.items():
            answer = self.sent.get(number, {})
            place = {name: answer[name] for name in ("broker", "queue_id") if name in answer}
            rows.append({"message_id": message, **place})
        self._journal.begin((Kind.END_TRANSACTION, event["id"]), Kind.END_TRANSACTION, fields, rows)

    def _has_ended(self, event: Mapping[str, Any]) -> None:
        self._journal.end((Kind.END_TRANSACTION, event["id"]), Outcome(event["outcome"]), {})

    def _sent(self, event: Mapping[str, Any]) -> None:
        kept = ("broker", "queue_id", "queue_offset", "code")
        fields = {name: event[name] for name in kept if name in event}
        if event.get("choices"):
            fields["view"] = " ".join([HASH_SELECTOR, *event["choices"]])
        size = self._batches.pop(event["id"], 0)
        place = {"queue_offset": fields.pop("queue_offset", None)} if size else {}
        rows = [place, *({} for _ in range(size - 1))] if size else []
        self._sends.end(event["id"], Outcome(event["outcome"]), fields, rows)

    def _rows(self, event: Mapping[str, Any]) -> list[dict[str, Any]]:
        rows = []
        for message in event["messages"]:
            lane = {name: message[name] for name in ("topic", "broker", "queue_id")}
            place = (*lane.values(), message["queue_offset"])
            self._attempts[place] = self._attempts.get(place, 0) + 1
            seq = message.get("key_seq")
            row = {
                **lane,
                "incarnation": self._incarnation(lane, message.get("incarnation")),
                "queue_offset": message["queue_offset"],
                "message_id": message["message_id"],
                "sharding_key": message.get("key"),
                "key_seq": int(seq) if seq else None,
                "reconsume_times": message["reconsume_times"],
                "attempt": self._attempts[place],
                "body_hash": zlib.crc32(message["body"].encode()),
                "tags": message.get("tags"),
                "props_hash": shown_properties(message),
            }
            self._shown[place] = row
            rows.append(row)
        return rows

    def _given_up(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """The columns of the message. It belongs to the work that it was last delivered to, if no other is named."""
        lane = {name: event[name] for name in ("topic", "broker", "queue_id")}
        offset, number = event["queue_offset"], event.get("incarnation")
        last = self._shown.get((*lane.values(), offset), {})
        kept = ("incarnation", "sharding_key", "key_seq", "reconsume_times")
        columns = {name: last[name] for name in kept if name in last}
        if number is not None or not columns:
            columns["incarnation"] = self._incarnation(lane, number)
        message = {"queue_offset": offset, "message_id": event["message_id"], "attempt": 1}
        return {"group": self._group, **lane, **message, **columns}

    def _incarnation(self, lane: Mapping[str, Any], number: int | None) -> str:
        lane = {name: lane[name] for name in LANE}
        if self._incarnation_of is not None:
            return self._incarnation_of(self._client, Lane(self._group, **lane))
        return self._work(lane, number)

    def _work(self, lane: Mapping[str, Any], number: int | None) -> str:
        """The name of an incarnation: of the numbered one, or of this process's work on the lane."""
        if number is None:
            return f"{self._client}.{self._life}/{'/'.join(map(str, lane.values()))}"
        return f"{self._client}.{self._life}#{number}"

    def _ended(self, event: Mapping[str, Any]) -> dict[str, Any]:
        asked = event["suspend_ms"]
        wait = self._suspend_ms if asked == -1 else asked
        fields: dict[str, Any] = {"commit_mode": "manual" if event["manual"] else "auto"}
        if event["outcome"] in ("suspend", "null", "threw", "rollback"):
            fields["suspend_ms"] = min(max(wait, SUSPEND_LEAST_MS), SUSPEND_MOST_MS)
        return fields


def _is_in_vain(event: Mapping[str, Any]) -> bool:
    """Does a client tell that it was handed nothing?"""
    outcome: str = event.get("outcome", Outcome.OK)
    return event["event"] == "received" and outcome != Outcome.OK


def _leased(event: Mapping[str, Any]) -> dict[str, Any]:
    told = {name: event[name] for name in LEASED if name in event}
    return told if event.get("key") is None else {**told, "sharding_key": event["key"]}
