"""A queue whose messages are leased one by one, as one group sees it: sans-io, the clock is handed in.

    receive(now, member)            the lowest unfinished message that nobody has, under a lease of its own: a receipt,
                                    its end, and how often the message was handed out before
    ack, release, renew(receipt)    by whoever has the receipt; refused once the lease is over, and nothing changes

A lease is over when it was acknowledged or released, or when its time has come. Then the message is the lowest
unfinished one again, and comes first. One that was released with a pause waits for it, and so does all that lies
behind. While a member has a message of a key, the others of that key are handed to nobody else: they are passed by. At
most `outstanding` messages are under lease at once: with one of them the queue is a FIFO like a message group of SQS,
with more like a Key_Shared subscription of Pulsar.

A message that was handed out once more often than the limit is given up when its last lease is over: `given_up` has it,
and the floor passes it. The floor is the offset below which every message is finished.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

NO_LIMIT = -1


class State(Enum):
    """Of one message."""

    READY = "it may be handed out"
    LEASED = "somebody has it"
    DONE = "somebody has acknowledged it"
    GIVEN_UP = "it was handed out as often as it may be"


@dataclass(slots=True)
class Entry:
    """until_ms: the end of its lease; while READY the end of its pause. times: hand-outs so far. receipt: the last."""

    key: str | None = None
    state: State = State.READY
    until_ms: int = 0
    times: int = 0
    receipt: str = ""
    member: str = ""


@dataclass(frozen=True, slots=True)
class HandOut:
    """A message that was handed out. times: hand-outs before this one. until_ms: the end of its lease."""

    offset: int
    receipt: str
    times: int
    until_ms: int


class LeasedQueue:
    """lease_ms: how long a lease lasts. limit: redeliveries before a message is given up, NO_LIMIT for as many as it
    takes."""

    def __init__(self, lease_ms: int, limit: int = NO_LIMIT, outstanding: int = 1) -> None:
        self.lease_ms, self.limit, self.outstanding = lease_ms, limit, outstanding
        self.entries: list[Entry] = []
        self.given_up: list[int] = []
        self.floor = 0
        self._receipts: dict[str, int] = {}

    def append(self, key: str | None = None) -> int:
        """One more message, of a key or of none; its offset."""
        self.entries.append(Entry(key))
        return len(self.entries) - 1

    def receive(self, now_ms: int, member: str) -> HandOut | None:
        """The next message for a member; None while as many as may be are under lease, and where there is none."""
        self.expire(now_ms)
        for offset in range(self.floor, len(self.entries)):
            entry = self.entries[offset]
            if self.is_free(entry, now_ms, member) and self._may_hold(entry, member):
                return self._hand_out(offset, now_ms, member)
            if self.blocks(entry, now_ms):
                break
        return None

    def blocks(self, entry: Entry, now_ms: int) -> bool:
        """Has whatever lies behind this message to wait for it?"""
        return entry.state is State.READY and entry.until_ms > now_ms

    def is_free(self, entry: Entry, now_ms: int, member: str) -> bool:
        """May the message be handed to this member?"""
        return entry.state is State.READY and entry.until_ms <= now_ms

    def key_is_anothers(self, wanted: Entry, member: str) -> bool:
        """Has somebody else a message of this one's key?"""
        return wanted.key is not None and any(
            each.key == wanted.key and each.state is State.LEASED and each.member != member
            for each in self.entries[self.floor :]
            if each is not wanted
        )

    def ack(self, now_ms: int, receipt: str) -> bool:
        """The message is finished. False: the lease is over, and nothing changed."""
        self.expire(now_ms)
        entry = self.held_under(receipt)
        if entry is None:
            return False
        entry.state = State.DONE
        self.advance()
        return True

    def release(self, now_ms: int, receipt: str, pause_ms: int = 0) -> bool:
        """The message comes again, after the pause. False: the lease is over, and nothing changed."""
        self.expire(now_ms)
        entry = self.held_under(receipt)
        if entry is None:
            return False
        self.put_back(entry, now_ms + pause_ms)
        return True

    def renew(self, now_ms: int, receipt: str) -> int | None:
        """The lease counts from now; its new end. None: it is over."""
        self.expire(now_ms)
        entry = self.held_under(receipt)
        if entry is None:
            return None
        entry.until_ms = now_ms + self.lease_ms
        return entry.until_ms

    def held_under(self, receipt: str) -> Entry | None:
        """The message that somebody holds under this receipt."""
        entry = self.entries[self._receipts[receipt]] if receipt in self._receipts else None
        if entry is None or entry.state is not State.LEASED or entry.receipt != receipt:
            return None
        return entry

    def expire(self, now_ms: int) -> None:
        """Take back what nobody acknowledged in time."""
        for entry in self.entries[self.floor :]:
            if entry.state is State.LEASED and entry.until_ms <= now_ms:
                self.put_back(entry, now_ms)
        self.advance()

    def put_back(self, entry: Entry, until_ms: int) -> None:
        """No lease holds the message any more: it comes again then, or was handed out as often as it may be."""
        used_up = self.limit != NO_LIMIT and entry.times > self.limit
        entry.state, entry.until_ms = State.READY, until_ms
        if used_up:
            entry.state = State.GIVEN_UP
            self.given_up.append(self._receipts[entry.receipt])
            self.advance()

    def advance(self) -> None:
        """The floor follows."""
        entries = self.entries
        while self.floor < len(entries) and entries[self.floor].state in (
            State.DONE,
            State.GIVEN_UP,
        ):
            self.floor += 1

    def times_told(self, entry: Entry) -> int:
        """How often the message was handed out before, as the member is told."""
        return entry.times

    def _may_hold(self, wanted: Entry, member: str) -> bool:
        """Is the message's key nobody else's, and are fewer of the others under lease than may be?"""
        if self.key_is_anothers(wanted, member):
            return False
        others = (each for each in self.entries[self.floor :] if each is not wanted)
        return sum(each.state is State.LEASED for each in others) < self.outstanding

    def _hand_out(self, offset: int, now_ms: int, member: str) -> HandOut:
        entry = self.entries[offset]
        times = self.times_told(entry)
        entry.times += 1
        entry.state, entry.until_ms, entry.member = State.LEASED, now_ms + self.lease_ms, member
        entry.receipt = f"{offset}-{entry.times}"
        self._receipts[entry.receipt] = offset
        return HandOut(offset, entry.receipt, times, entry.until_ms)
