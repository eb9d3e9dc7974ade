"""One incarnation of a lane at an orderly consumer, seen from outside, in the plainest words.

It is told what the consumer can know (messages that a pull brought, grants, results of the listener, dead letters
that were acknowledged) and says of everything that the consumer does what is wrong with it, or nothing. Offsets
are kept in sorted lists, one fact a field; nothing here is fast. Times are ms of the client's clock.

| result | auto mode | manual mode |
|---|---|---|
| SUCCESS | all taken are finished | nothing moves |
| COMMIT | all taken are finished | all taken are finished |
| ROLLBACK | all taken are finished | all taken come again, after the suspend time |
| SUSPEND, null, throw | the batch comes again, after the suspend time | the same |
| the same, all of the batch given up | all taken are finished | nothing moves |

(docs/sources.md#orderly-loop, docs/sources.md#client-leases)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from specs.vocabulary import LISTENER_SUSPENDS, Outcome

NOTHING = -1
SUSPEND_MS_MIN, SUSPEND_MS_MAX = 10, 30_000
IN_LINE_AGAIN_MS = 10
"""A thread that has been in one lane for long turns to the others and comes back after so many ms."""
RELOCK_MS = 4_200
"""A lane that found itself without a lease: asks for one, waits for the answer, or for the next try."""


@dataclass(slots=True)
class OrderlyLane:
    """batch: messages per call at most. limit: of retries, None for none. lease_ms, suspend_ms: the client's own.

    pending, taken: offsets held. counted: retries that this incarnation counted. carried: those that a message
    brought along. running: the batch of the call that runs. giving_up: what is being sent to the dead letters.
    given_up: of this batch, what arrived there. handed_on: what arrived there and is still held, for its batch's sake.
    stored: what is to be reported as consumed; told: what was reported last.
    asked_ms: when it last asked for its lease.
    """

    name: str
    batch: int
    limit: int | None
    lease_ms: int
    suspend_ms: int
    start: int
    granted_ms: int
    asked_ms: int
    locked: bool = True
    pending: list[int] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    counted: dict[int, int] = field(default_factory=dict)
    carried: dict[int, int] = field(default_factory=dict)
    running: tuple[int, ...] | None = None
    giving_up: list[int] = field(default_factory=list)
    given_up: set[int] = field(default_factory=set)
    handed_on: set[int] = field(default_factory=set)
    result: tuple[Outcome, bool, int] | None = None
    next_pull: int | None = None
    pulling: bool = False
    not_before_ms: int = 0
    stored: int = NOTHING
    told: int = NOTHING
    unsaved_ms: int | None = None
    dropped: bool = False
    unlocked: bool = False
    ready_ms: int | None = None
    late_until_ms: int = 0

    # ------------------------------------------------------------ what it is told

    def granted(self, at_ms: int, granted: bool) -> None:
        """An answer about its lease. None at all changes nothing."""
        if not self.dropped:
            self.locked = granted
            if granted:
                self.granted_ms = at_ms

    def has_lease(self, at_ms: int) -> bool:
        return self.locked and at_ms - self.granted_ms <= self.lease_ms

    def pulled(self, messages: Iterable[tuple[int, int]], next_offset: int, at_ms: int) -> None:
        """A pull brought these (offset, carried retries), and the next one asks there."""
        self.pulling = False
        if self.dropped:
            return
        self.next_pull = next_offset
        found = False
        for offset, carried in messages:
            found = True
            if offset not in self.pending and offset not in self.taken:
                self.pending.append(offset)
                self.carried[offset] = carried
        self.pending.sort()
        if not found and not self.pending and not self.taken and next_offset > self.stored:
            self._store(next_offset, at_ms)

    def moved(self, next_offset: int, at_ms: int) -> None:
        """The broker says that the lane goes on there."""
        self.pulling = False
        if not self.dropped:
            self._store(next_offset, at_ms)

    def anchored(self, stored: int) -> None:
        """The second look-up, before the first pull; NOTHING where nothing is stored."""
        if stored != NOTHING:
            self.start = self.stored = self.told = stored
        self.next_pull = self.start

    def _store(self, value: int, at_ms: int) -> None:
        if not self.dropped and value != self.stored:
            self.stored, self.unsaved_ms = value, at_ms

    def times(self, offset: int) -> int:
        return self.carried.get(offset, 0) + self.counted.get(offset, 0)

    def returned(self, outcome: Outcome, manual: bool, suspend_ms: int, at_ms: int) -> None:
        """The listener ended its call. What is exhausted now has to be given up first."""
        assert self.running is not None
        self.result, self.given_up = (
            (outcome, manual, suspend_ms),
            self.handed_on & set(self.running),
        )
        if outcome in LISTENER_SUSPENDS and self.limit is not None:
            exhausted = (offset for offset in self.running if self.times(offset) >= self.limit)
            self.giving_up = [offset for offset in exhausted if offset not in self.handed_on]
        if not self.giving_up:
            self._conclude(at_ms)

    def gave_up(self, offset: int, acknowledged: bool, at_ms: int) -> None:
        """One message's dead letter came to its end, after all its tries."""
        if acknowledged:
            self.given_up.add(offset)
            self.handed_on.add(offset)
        self.giving_up.remove(offset)
        if not self.giving_up:
            self._conclude(at_ms)

    def _conclude(self, at_ms: int) -> None:
        """The table of this file."""
        assert self.running is not None
        assert self.result is not None
        batch, (outcome, manual, suspend_ms) = self.running, self.result
        self.running = self.result = None
        asked = self.suspend_ms if suspend_ms == -1 else suspend_ms
        pause_ms = max(SUSPEND_MS_MIN, min(asked, SUSPEND_MS_MAX))
        kept = [offset for offset in batch if offset not in self.given_up]
        if outcome in LISTENER_SUSPENDS and kept:
            for offset in kept:
                self.counted[offset] = self.counted.get(offset, 0) + 1
            self._again(batch, at_ms + pause_ms)
        elif outcome is Outcome.ROLLBACK and manual:
            self.handed_on.difference_update(self.taken)
            self._again(tuple(self.taken), at_ms + pause_ms)
        elif not manual or outcome is Outcome.COMMIT:
            self._store(max(self.taken) + 1, at_ms)
            self.handed_on.difference_update(self.taken)
            self.taken.clear()

    def _again(self, offsets: Sequence[int], not_before_ms: int) -> None:
        self.not_before_ms = not_before_ms
        self.taken = [offset for offset in self.taken if offset not in offsets]
        self.pending = sorted([*self.pending, *offsets])

    # ------------------------------------------------------------ what it does, and what is wrong with that

    def begins(self, offsets: Sequence[int], at_ms: int) -> str:
        """A call of the listener begins."""
        expected = self.pending[: self.batch]
        if self.dropped:
            return f"a call of {self.name} begins after the lane was dropped"
        if self.running is not None:
            return f"a call of {self.name} with {list(offsets)} begins while {list(self.running)} is not over"
        if at_ms < self.not_before_ms:
            return f"a call of {self.name} begins {self.not_before_ms - at_ms} ms before the suspend time is over"
        if not self.locked:
            return f"a call of {self.name} begins without a lease"
        if not self.has_lease(at_ms):
            return f"a call of {self.name} begins under a grant that is {at_ms - self.granted_ms} ms old"
        if list(offsets) != expected:
            return f"a call of {self.name} has {list(offsets)}, expected were {expected}"
        self.running = tuple(offsets)
        self.pending = self.pending[len(offsets) :]
        self.taken = sorted([*self.taken, *offsets])
        self.ready_ms = None
        return ""

    def gives_up(self, offset: int, times: int) -> str:
        """A dead letter is sent, with that retry counter."""
        if not self.giving_up or offset != self.giving_up[0]:
            return f"{self.name} gives up {offset}, expected was {self.giving_up[:1] or 'nothing'}"
        if times != self.times(offset) + 1:
            return f"{self.name} gives up {offset} with counter {times}, expected {self.times(offset) + 1}"
        return ""

    def commits(self, value: int) -> str:
        """Its offset is reported."""
        if self.dropped:
            return f"{self.name} reports {value} after the lane was dropped"
        if value != self.stored:
            return f"{self.name} reports {value} as consumed, expected {self.stored}"
        self.told, self.unsaved_ms = value, None
        return ""

    def pulls(self, offset: int, at_ms: int) -> str:
        if self.dropped:
            return f"{self.name} is pulled after it was dropped"
        if self.pulling:
            return f"{self.name} is pulled at {offset} while another pull is open"
        if not self.locked:
            return f"{self.name} is pulled without a lease"
        if offset != self.next_pull:
            return f"{self.name} is pulled at {offset}, expected {self.next_pull}"
        self.pulling = True
        return ""

    def drops(self) -> str:
        """The incarnation ends; what was consumed has been reported by then."""
        self.dropped = True
        if self.stored not in (NOTHING, self.told):
            return f"{self.name} is dropped with {self.stored} consumed, of which {self.told} was reported"
        return ""

    def unlocks(self) -> str:
        """Its lease is given back."""
        if not self.dropped:
            return f"the lease of {self.name} is given back while the lane is in use"
        if self.running is not None:
            return f"the lease of {self.name} is given back while a call with {list(self.running)} runs"
        self.unlocked = True
        return ""

    # ------------------------------------------------------------ what it owes

    def looks(self, at_ms: int, has_thread: bool) -> None:
        """See whether a call could begin now. Without a lease the lane waits for one, also when it holds nothing."""
        idle = self.running is None and at_ms >= self.not_before_ms and not self.dropped
        if idle and not self.has_lease(at_ms):
            self.ready_ms, self.late_until_ms = None, at_ms + RELOCK_MS
        elif not idle or not self.pending or not has_thread:
            self.ready_ms = None
        elif self.ready_ms is None:
            self.ready_ms = at_ms

    def owes(self, at_ms: int, persist_ms: int, renew_ms: int) -> str:
        """What should have been done before time goes on.

        persist_ms: within which offsets are reported. renew_ms: after which the lease is asked for again.
        """
        if self.dropped:
            late = self.running is None and not self.unlocked
            return f"{self.name} was dropped and is at rest, and keeps its lease" if late else ""
        if self.ready_ms is not None and at_ms > max(
            self.ready_ms + IN_LINE_AGAIN_MS, self.late_until_ms
        ):
            waits_ms = at_ms - self.ready_ms
            return f"no call of {self.name} begins, though {self.pending[: self.batch]} waits for {waits_ms} ms"
        if self.unsaved_ms is not None and at_ms - self.unsaved_ms > persist_ms:
            return f"{self.name} does not report {self.stored} for more than {persist_ms} ms"
        if at_ms - self.asked_ms > renew_ms:
            return f"the lease of {self.name} was last asked for {at_ms - self.asked_ms} ms ago"
        return ""


def start_of(consume_from: str, is_retry_topic: bool, stored: int, end: int, by_time: int) -> int:
    """The start matrix: where a lane begins. stored: NOTHING where the broker says that there is nothing."""
    if stored != NOTHING:
        return stored
    if consume_from == "first":
        return 0
    if consume_from == "last":
        return 0 if is_retry_topic else end
    return end if is_retry_topic else by_time
