"""What may keep a request from arriving in time: faults of its link, and pauses of its sender or its broker.

A one-way request is applied within `delay_bound_ms` or never, and so is one that was not answered. That holds for a
link at work. Bytes that a partition held back arrive when it heals, perhaps in a connection that its client has given
up long since; a process that stood still sends and reads when it goes on. So whoever asks until when a request may
still be applied asks here (`RunContext.may_arrive_until`), and whoever takes for granted that it was applied asks
whether anything stood in its way (`RunContext.is_disturbed`).

Who is meant: a fault's row says so in its detail, after what it is: `partition alice b0`, `hold alice b0`. Two names
are the ends of one link; one name is everything to and from it; none is everybody. A fault of which no effect was
seen (refused) counts like any other: what it kept back may be a request that nobody waits for, which shows nowhere. A
fault that breaks or loses (`cut`, `lose`) holds nothing back, but disturbs. One with a
number (`delay alice b0 500`) makes each frame so many ms later; any other may hold frames until it ends.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

from specs.faults import FAULTS
from specs.history.row import Row
from specs.plan.fault import Requests
from specs.vocabulary import Kind

MS = 1000
FOR_EVER_US = 1 << 60
"""The end of what never ends: later than every time."""


def _words(requests: Requests) -> frozenset[str]:
    """The first words of the details of faults that do this to requests."""
    return frozenset(
        name for fault in FAULTS.values() if fault.requests is requests for name in fault.names
    )


_BREAKS = frozenset(verb for verb, fault in FAULTS.items() if fault.requests is Requests.LOSES)
"""Faults of a link that hold nothing back: what they let pass arrives in time.

A link of real sockets that went down goes by another name and is none of them: what it let pass lies in buffers."""
_LATER = _words(Requests.LATER)
"""Faults whose number is by how many ms a frame is later, at most."""
_NO_LINK = _words(Requests.SPARES)
"""Faults of a process. Its pause is in a row of its own, and nothing of a dead one arrives any more."""
_FILLING = frozenset(
    {"between", "and", "of", "from", "to", "the", "with", "link", "network", "client", "broker"}
)
_TAP = re.compile(
    r"(?P<code>[A-Z_0-9]+)\S*=(?P<action>lose-answer|lose|delay-answer|delay|answer)(:(?P<number>\d+))?"
    r"(?: met (?P<client>\S+))?"
)
_KIND_OF = {
    "LOCK_BATCH_MQ": Kind.LOCK,
    "UNLOCK_BATCH_MQ": Kind.UNLOCK,
    "UPDATE_CONSUMER_OFFSET": Kind.COMMIT,
    "QUERY_CONSUMER_OFFSET": Kind.FETCH_OFFSET,
    "PULL_MESSAGE": Kind.PULL,
    "SEND_MESSAGE": Kind.SEND,
    "SEND_MESSAGE_V2": Kind.SEND,
    "CONSUMER_SEND_MSG_BACK": Kind.SEND_BACK,
}


@dataclass(frozen=True, slots=True)
class HoldUp:
    """What stood in the way of requests, from `since_us` until `until_us`.

    seq: of its row. names: whom it concerns, nobody for everybody; as_link: two ends of one link. broker: the only
    one that it concerns. kind: of the requests, None for all. later_us: how much later a frame may be; None where it
    may be held until the end. holds: False where nothing is held back.
    """

    seq: int
    since_us: int
    until_us: int
    names: frozenset[str] = frozenset()
    broker: str | None = None
    kind: Kind | None = None
    later_us: int | None = None
    holds: bool = True

    @property
    def as_link(self) -> bool:
        return len(self.names) == 2

    def concerns(self, client: str, broker: str, kind: Kind) -> bool:
        """Does it concern a client's request of this kind to a broker?"""
        if self.broker not in (None, broker) or self.kind not in (None, kind):
            return False
        mine = any(_is_name_of(name, client) for name in self.names)
        if self.as_link:
            return mine and broker in self.names
        return not self.names or mine or self.names == {broker}


def hold_up(row: Row) -> HoldUp | None:
    """What a PAUSE or a FAULT row tells of links; None where it tells nothing of them."""
    until_us = FOR_EVER_US if row.ended_us is None else row.ended_us
    if row.kind is Kind.PAUSE:
        if row.broker and row.client_id in (None, row.broker):
            return HoldUp(row.seq_begin, row.started_us, until_us, broker=row.broker)
        return (
            HoldUp(row.seq_begin, row.started_us, until_us, frozenset({row.client_id}))
            if row.client_id
            else None
        )
    if row.kind is not Kind.FAULT:
        return None
    tap = _TAP.match(row.detail or "")
    if tap is not None:
        return _of_a_tap(row, tap, until_us)
    words = [word for word in re.split(r"[\s,;|/]+|<?->", row.detail or "") if word]
    what, rest = (words[0].lower(), words[1:]) if words else ("", [])
    if what in _NO_LINK:
        return None
    numbers = [int(word) for word in rest if word.isdigit()]
    later_us = numbers[-1] * MS if numbers and what in _LATER else None
    names = frozenset(word for word in rest if not word.isdigit() and word.lower() not in _FILLING)
    broker = row.broker if not names else None
    return HoldUp(
        row.seq_begin, row.started_us, until_us, names, broker, None, later_us, what not in _BREAKS
    )


def _of_a_tap(row: Row, rule: re.Match[str], until_us: int) -> HoldUp:
    """A tap's own fault: an instant row as it meets a request, which it may pass on later."""
    later_us = int(rule["number"]) * MS if rule["action"] == "delay" else 0
    return HoldUp(
        row.seq_begin,
        row.started_us,
        max(until_us, row.started_us + later_us) if until_us < FOR_EVER_US else until_us,
        frozenset({rule["client"]}) if rule["client"] else frozenset(),
        kind=_KIND_OF.get(rule["code"]),
        later_us=later_us,
        holds=bool(later_us),
    )


@lru_cache(maxsize=4096)
def _is_name_of(name: str, client: str) -> bool:
    """A client goes by its id, or by what its id begins with: `alice`, of alice.2 or alice@4711."""
    return client == name or (client.startswith(name) and client[len(name)] in ".@#")


@dataclass(frozen=True, slots=True)
class Sending:
    """A request on its way: whose, to whom, of what kind, and when it was sent."""

    client: str
    broker: str
    kind: Kind
    since_us: int


class HoldUps:
    """What stood in the way of requests so far, in the order of the begins; asked for by when it was over."""

    __slots__ = ("_all", "_seqs", "_until")

    def __init__(self) -> None:
        self._all: list[HoldUp] = []
        self._seqs: list[int] = []
        self._until: list[int] = []  # when the last one of those so far was over

    def take(self, row: Row) -> None:
        """Remember what a PAUSE or FAULT row tells, if it tells anything."""
        found = hold_up(row)
        if found is not None:
            self._all.append(found)
            self._seqs.append(found.seq)
            self._until.append(max(found.until_us, self._until[-1] if self._until else 0))

    def since(self, at_us: int, seq: int) -> Sequence[HoldUp]:
        """Those that had begun by `seq`, without the first ones that were all over before that time."""
        if not self._all:
            return ()
        return self._all[bisect_left(self._until, at_us) : bisect_right(self._seqs, seq)]

    def clear(self) -> None:
        for known in (self._all, self._seqs, self._until):
            known.clear()


def arrives_until(
    sending: Sending,
    until_us: int,
    hold_ups: Iterable[HoldUp],
    delay_bound_us: int,
    clock_bound_us: int,
) -> int:
    """The last moment at which a request may arrive that would arrive by `until_us` over a link at work, in µs.

    hold_ups: in the order of their begins. What was held back arrives within the delay bound of the end.
    """
    for each in hold_ups:
        overlaps = (
            each.since_us - clock_bound_us <= until_us
            and each.until_us + clock_bound_us >= sending.since_us
        )
        if each.holds and overlaps and each.concerns(sending.client, sending.broker, sending.kind):
            later = (
                until_us + each.later_us
                if each.later_us is not None
                else each.until_us + delay_bound_us
            )
            until_us = min(max(until_us, later), FOR_EVER_US)
    return until_us


def is_disturbed(
    sending: Sending,
    until_us: int,
    hold_ups: Iterable[HoldUp],
    delay_bound_us: int,
    clock_bound_us: int,
) -> bool:
    """Did anything stand in the way of a request until then, or end so short before that its link may suffer yet?"""
    least = sending.since_us - delay_bound_us - clock_bound_us
    return any(
        each.since_us - clock_bound_us <= until_us
        and each.until_us >= least
        and each.concerns(sending.client, sending.broker, sending.kind)
        for each in hold_ups
    )
