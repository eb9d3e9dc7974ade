"""One incarnation of a lane where calls run side by side, seen from outside, in the plainest words.

For the concurrent and the key-ordered consumer. Like `orderly_lane` it is told what the consumer can know, and says
of everything that the consumer does what is wrong with it, or nothing; at each moment it says what is owed.
Times are ms of the client's clock.

| result | concurrent | key-ordered |
|---|---|---|
| SUCCESS, COMMIT, ROLLBACK | the batch is finished | the batch is finished, the key's next may begin |
| SUSPEND, null, throw | each message is sent back, one after the other | those retried often enough are given up |
| sent back or given up, acknowledged | that message is finished | that message is finished |
| the rest of the batch | comes again here after a while, counted | comes again first of its key, after a pause |
| any, the lane dropped by then | nothing | nothing |

What is stored as consumed is the smallest offset that is not finished.
(docs/sources.md#concurrent-loop, docs/sources.md#key-order)
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from specs.model.orderly_lane import NOTHING, SUSPEND_MS_MAX, SUSPEND_MS_MIN
from specs.vocabulary import LISTENER_SUSPENDS, Outcome


@dataclass(slots=True)
class RunningCall:
    """owed: what is to be sent away before its thread is free. gone: of these, what was acknowledged."""

    offsets: tuple[int, ...]
    key: str | None
    owed: list[int] = field(default_factory=list)
    gone: set[int] = field(default_factory=set)
    pause_ms: int = 0
    is_over: bool = False


@dataclass(slots=True)
class SideBySideLane:
    """by_key: messages of one sharding key are kept in order. batch: messages per call at most.

    limit: retries after which a keyed message is given up. again_ms: after which what could not be sent back is
    tried here. threshold, span_max: with more messages than that, or further apart, it must not be pulled.
    apart: batches that wait for nobody, each with the moment before which it may not begin. lines: by key, what
    waits for its turn. resting: by key, the moment before which it may not go on.
    """

    name: str
    by_key: bool
    batch: int
    limit: int
    suspend_ms: int
    again_ms: int
    threshold: int
    span_max: int
    start: int
    stored: int = NOTHING
    told: int = NOTHING
    held: set[int] = field(default_factory=set)
    highest: int = NOTHING
    keys: dict[int, str | None] = field(default_factory=dict)
    carried: dict[int, int] = field(default_factory=dict)
    counted: dict[int, int] = field(default_factory=dict)
    apart: list[tuple[tuple[int, ...], int]] = field(default_factory=list)
    lines: dict[str, list[int]] = field(default_factory=dict)
    resting: dict[str, int] = field(default_factory=dict)
    calls: list[RunningCall] = field(default_factory=list)
    next_pull: int = 0
    pulling: bool = False
    unsaved_ms: int | None = None
    ready_ms: int | None = None
    dropped: bool = False

    def __post_init__(self) -> None:
        self.next_pull, self.told = self.start, self.stored

    # ------------------------------------------------------------ what it is told

    def pulled(
        self, messages: Iterable[tuple[int, int, str | None]], next_offset: int, at_ms: int
    ) -> None:
        """A pull brought these (offset, carried retries, sharding key), and the next one asks there."""
        self.pulling = False
        if self.dropped:
            return
        self.next_pull = next_offset
        brought = sorted(messages)
        fresh = [each for each in brought if each[0] not in self.held]
        for offset, carried, key in fresh:
            self.held.add(offset)
            self.highest = max(self.highest, offset)
            self.carried[offset], self.keys[offset] = carried, key if self.by_key else None
        if self.by_key:
            for offset, _, key in fresh:
                if key is None:
                    self.apart.append(((offset,), 0))
                else:
                    self.lines.setdefault(key, []).append(offset)
        else:
            offsets = [offset for offset, _, _ in fresh]
            self.apart += [
                (tuple(offsets[at : at + self.batch]), 0)
                for at in range(0, len(offsets), self.batch)
            ]
        if not brought and not self.held and next_offset > self.stored:
            self._store(next_offset, at_ms)

    def moved(self, next_offset: int, at_ms: int) -> None:
        """The broker says that the lane goes on there."""
        self.pulling = False
        self._store(next_offset, at_ms)

    def returned(
        self, offsets: Sequence[int], outcome: Outcome, suspend_ms: int, at_ms: int
    ) -> None:
        """The listener ended a call."""
        call = next(
            call for call in self.calls if call.offsets == tuple(offsets) and not call.is_over
        )
        call.is_over = True
        if self.dropped:
            self.calls.remove(call)
        elif outcome not in LISTENER_SUSPENDS:
            self.calls.remove(call)
            self._finish(call.offsets, at_ms)
        else:
            asked = self.suspend_ms if suspend_ms == -1 else suspend_ms
            call.pause_ms = (
                max(SUSPEND_MS_MIN, min(asked, SUSPEND_MS_MAX)) if self.by_key else self.again_ms
            )
            call.owed = [
                each for each in offsets if not self.by_key or self.times(each) >= self.limit
            ]
            if not call.owed:
                self._conclude(call, at_ms)

    def sent_away(self, offset: int, acknowledged: bool, at_ms: int) -> None:
        """A message's way back to the broker, or to the dead letters, came to its end, after all its tries."""
        call = self._owing(offset)
        assert call is not None
        call.owed.remove(offset)
        if acknowledged:
            call.gone.add(offset)
            if not self.by_key:
                self._finish([offset], at_ms)
        if not call.owed:
            self._conclude(call, at_ms)

    def times(self, offset: int) -> int:
        return self.carried.get(offset, 0) + self.counted.get(offset, 0)

    def _owing(self, offset: int) -> RunningCall | None:
        return next((call for call in self.calls if call.owed and call.owed[0] == offset), None)

    def _conclude(self, call: RunningCall, at_ms: int) -> None:
        """All that was to be sent away has come to its end: its thread is free, what is left comes again."""
        self.calls.remove(call)
        if self.by_key:
            self._finish([offset for offset in call.offsets if offset in call.gone], at_ms)
        kept = tuple(offset for offset in call.offsets if offset not in call.gone)
        for offset in kept:
            self.counted[offset] = self.counted.get(offset, 0) + 1
        if kept and call.key is not None:
            self.lines[call.key] = [*kept, *self.lines.get(call.key, [])]
            self.resting[call.key] = at_ms + call.pause_ms
        elif kept:
            self.apart.append((kept, at_ms + call.pause_ms))

    def _finish(self, offsets: Iterable[int], at_ms: int) -> None:
        for offset in offsets:
            self.held.discard(offset)
            self.counted.pop(offset, None)
        if self.highest != NOTHING:
            self._store(min(self.held) if self.held else self.highest + 1, at_ms)

    def _store(self, value: int, at_ms: int) -> None:
        if not self.dropped and value != self.stored:
            self.stored, self.unsaved_ms = value, at_ms

    # ------------------------------------------------------------ what it does, and what is wrong with that

    def begins(self, offsets: Sequence[int], at_ms: int) -> str:
        """A call of the listener begins."""
        if self.dropped:
            return f"a call of {self.name} begins after the lane was dropped"
        key = self.keys.get(offsets[0]) if self.by_key else None
        wrong = (
            self._begins_apart(tuple(offsets), at_ms)
            if key is None
            else self._begins_line(key, offsets, at_ms)
        )
        if not wrong:
            self.calls.append(RunningCall(tuple(offsets), key))
            self.ready_ms = None
        return wrong

    def _begins_apart(self, offsets: tuple[int, ...], at_ms: int) -> str:
        for waiting in self.apart:
            if waiting[0] == offsets and waiting[1] <= at_ms:
                self.apart.remove(waiting)
                return ""
        expected = [list(waiting) for waiting, since_ms in self.apart if since_ms <= at_ms]
        return f"a call of {self.name} has {list(offsets)}, expected was one of {expected}"

    def _begins_line(self, key: str, offsets: Sequence[int], at_ms: int) -> str:
        running = next((call for call in self.calls if call.key == key), None)
        if running is not None:
            return (
                f"a call of {self.name} with {list(offsets)} of key {key} begins while {list(running.offsets)} of it"
                f" is not over"
            )
        if at_ms < self.resting.get(key, 0):
            early_ms = self.resting[key] - at_ms
            return f"a call of {self.name} for key {key} begins {early_ms} ms before the suspend time is over"
        line = self.lines.get(key, [])
        if list(offsets) != line[: self.batch]:
            return f"a call of {self.name} for key {key} has {list(offsets)}, expected were {line[: self.batch]}"
        self.lines[key] = line[len(offsets) :]
        return ""

    def sends_away(self, offset: int) -> str:
        """A message is sent back, or given up."""
        owed = [call.owed[0] for call in self.calls if call.owed]
        return (
            "" if offset in owed else f"{self.name} sends {offset} away, expected was one of {owed}"
        )

    def commits(self, value: int) -> str:
        """Its offset is reported."""
        if self.dropped:
            return f"{self.name} reports {value} after the lane was dropped"
        if value != self.stored:
            return f"{self.name} reports {value} as consumed, expected {self.stored}"
        self.told, self.unsaved_ms = value, None
        return ""

    def pulls(self, offset: int) -> str:
        if self.dropped:
            return f"{self.name} is pulled after it was dropped"
        if self.pulling:
            return f"{self.name} is pulled at {offset} while another pull is open"
        if len(self.held) > self.threshold:
            return f"{self.name} is pulled while it holds {len(self.held)} messages"
        if self.held and max(self.held) - min(self.held) > self.span_max:
            return f"{self.name} is pulled while it holds {min(self.held)} to {max(self.held)}"
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

    # ------------------------------------------------------------ what it owes

    def ready(self, at_ms: int) -> list[list[int]]:
        """The calls that may begin now, if there is a thread."""
        apart = [list(offsets) for offsets, since_ms in self.apart if since_ms <= at_ms]
        at_work = {call.key for call in self.calls}
        return apart + [
            line[: self.batch]
            for key, line in self.lines.items()
            if line and key not in at_work and self.resting.get(key, 0) <= at_ms
        ]

    def looks(self, at_ms: int, has_thread: bool) -> None:
        """See whether a call could begin now."""
        if self.dropped or not has_thread or not self.ready(at_ms):
            self.ready_ms = None
        elif self.ready_ms is None:
            self.ready_ms = at_ms

    def owes(self, at_ms: int, persist_ms: int) -> str:
        """What should have been done before time goes on. persist_ms: within which offsets are reported."""
        if self.dropped:
            return ""
        if self.ready_ms is not None and at_ms > self.ready_ms:
            waits = self.ready(at_ms)
            return f"no call of {self.name} begins, though one of {waits} could for {at_ms - self.ready_ms} ms"
        if self.unsaved_ms is not None and at_ms - self.unsaved_ms > persist_ms:
            return f"{self.name} does not report {self.stored} for more than {persist_ms} ms"
        return ""
