"""When a message is safe, and who hears of it before.

A store in memory has nothing to flush, and none of this happens. Else:

| flush | an answer leaves | a sync begins |
|---|---|---|
| SYNC | when everything that was stored before it is safe | as soon as something is not, one at a time |
| ASYNC | at once | every flush_ms |

With SYNC no word leaves the broker that a crash could make untrue: answers of any kind wait, and pushes, and pulls
that another's message woke. One sync is for all that came in together or while the last one ran (group commit).
An answer to a send that has waited for `flush_timeout_ms`, or whose sync failed, leaves as FLUSH_DISK_TIMEOUT: the
message is stored, and nobody knows whether it is safe.
What waits is bounded: where too many do, or one has for too long, further sends are refused before they are stored.
Source: docs/sources.md#store (CommitLog.GroupCommitService, FlushRealTimeService).
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace

from reference_impl.core.broker.log import FlushMode
from reference_impl.core.broker.parts import OVERLOAD, REJECTED, Parts, Refused
from reference_impl.core.io import Effect, Flush, Flushed, Input, Received, Send, SetTimer
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import Command

FLUSH_TIMER = "flush"
LATE_TIMER = "flush late"
_SENDS = frozenset(
    {RequestCode.SEND_MESSAGE, RequestCode.SEND_MESSAGE_V2, RequestCode.SEND_BATCH_MESSAGE}
)


@dataclass(frozen=True, slots=True)
class Held:
    """What waits until the log is safe up to `end`. stored: it says that a message is."""

    end: int
    until_ms: int
    send: Send
    stored: bool


class Flushing:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._held: deque[Held] = deque()
        self._is_running = False

    def start(self, out: list[Effect]) -> None:
        if self._parts.store.flush is FlushMode.ASYNC:
            out.append(SetTimer(FLUSH_TIMER, self._parts.store.flush_ms))

    def in_turn(self, out: list[Effect]) -> None:
        """With ASYNC: the interval is over."""
        store = self._parts.store
        if store.end > store.synced:
            self._begin(out)
        out.append(SetTimer(FLUSH_TIMER, store.flush_ms))

    def stop(self, out: list[Effect]) -> None:
        """At a shutdown in good order: nothing stays unsafe."""
        if self._parts.store.flush is not None and self._parts.store.end > self._parts.store.synced:
            self._begin(out)

    def check_backlog(self, now_ms: int) -> None:
        """Raises Refused where a further send would wait behind too many others, or behind a disk that stands still."""
        config = self._parts.config
        if len(self._held) >= config.waiting_sends_max:
            raise Refused(ResponseCode.SYSTEM_BUSY, OVERLOAD)
        if (
            self._held
            and now_ms - (self._held[0].until_ms - config.flush_timeout_ms) > config.stalled_ms
        ):
            raise Refused(ResponseCode.SYSTEM_BUSY, REJECTED)

    def ended(self, result: Flushed, out: list[Effect]) -> None:
        self._is_running = False
        store = self._parts.store
        if result.error is not None:
            store.fail(result.error)
            while self._held:
                out.append(late(self._held.popleft()))
            return
        store.synced_to(result.end)
        while self._held and self._held[0].end <= store.synced:
            out.append(self._held.popleft().send)

    def hold(self, now_ms: int, event: Input, out: list[Effect]) -> list[Effect]:
        """The effects of one step without those that have to wait; the others as they are."""
        store = self._parts.store
        if store.flush is not FlushMode.SYNC or store.end <= store.synced or store.is_full:
            return out
        waiting = (
            [] if isinstance(event, Flushed) else [effect for effect in out if must_wait(effect)]
        )
        if waiting:
            out = [effect for effect in out if not must_wait(effect)]
            if not self._held:
                out.append(SetTimer(LATE_TIMER, self._parts.config.flush_timeout_ms))
            until_ms = now_ms + self._parts.config.flush_timeout_ms
            self._held.extend(
                Held(store.end, until_ms, send, says_stored(event, send.command))
                for send in waiting
                if isinstance(send, Send)
            )
        self._begin(out)
        return out

    def let_go_of_late(self, now_ms: int, out: list[Effect]) -> None:
        """The timer fired: what has waited too long leaves as what it is."""
        while self._held and self._held[0].until_ms <= now_ms:
            out.append(late(self._held.popleft()))
        if self._held:
            out.append(SetTimer(LATE_TIMER, max(1, self._held[0].until_ms - now_ms)))

    def _begin(self, out: list[Effect]) -> None:
        if not self._is_running and not self._parts.store.is_full:
            self._is_running = True
            out.append(Flush(self._parts.store.begin_sync))


def must_wait(effect: Effect) -> bool:
    """Does it say anything that a crash could make untrue? Who is told to come later is told so at once."""
    return isinstance(effect, Send) and effect.command.code != ResponseCode.SYSTEM_BUSY


def says_stored(event: Input, answer: Command) -> bool:
    """Is it the answer to this very send, and does it say that the message is stored?"""
    return (
        isinstance(event, Received)
        and answer.is_response
        and event.command.code in _SENDS
        and answer.opaque == event.command.opaque
        and answer.code == ResponseCode.SUCCESS
    )


def late(held: Held) -> Send:
    if not held.stored:
        return held.send
    remark = "stored, but not known to be flushed"
    return replace(
        held.send,
        command=replace(held.send.command, code=ResponseCode.FLUSH_DISK_TIMEOUT, remark=remark),
    )
