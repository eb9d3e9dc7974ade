"""The part that all asyncio bodies share: hand inputs to a core, carry out what it asks for.

Inputs are handled one at a time, in the order in which they came, and the effects of one are all carried out
before the next is handled. Everything happens in one event loop's thread.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from functools import partial
from typing import Protocol

from reference_impl.core import io
from reference_impl.protocol.command import Command
from reference_impl.shell.client import RemotingClient
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import BodyFailed, RequestFailed
from reference_impl.shell.recording import NoRecorder, Recorder

log = logging.getLogger("inorder.reference")


class Core(Protocol):
    """Every core: inputs in, effects out."""

    def handle(self, now_ms: int, event: io.Input, /) -> Iterable[io.Effect]: ...


class Body:
    """Timers, requests and the recorder for one core; servers and clients add the rest in `carry_out`.

    via: as `RemotingClient` takes it.
    """

    def __init__(
        self,
        core: Core,
        *,
        clock: WallClock | None = None,
        recorder: Recorder | None = None,
        via: Mapping[str, str] | None = None,
    ) -> None:
        self.core = core
        self.clock = clock or WallClock()
        self.faults: list[BaseException] = []
        self._recorder = recorder or NoRecorder()
        self._client = RemotingClient(self._pushed, via)
        self._timers: dict[Hashable, asyncio.TimerHandle] = {}
        self._inbox: deque[io.Input] = deque()
        self._handling = False
        self._ended = False

    def post(self, event: io.Input) -> None:
        """Hand an input to the core; inside a handling it waits for its turn."""
        if self._ended:
            return
        self._inbox.append(event)
        if self._handling:
            return
        self._handling = True
        try:
            while self._inbox and not self._ended:
                self._handle(self._inbox.popleft())
        finally:
            self._handling = False

    def check(self) -> None:
        """Raise BodyFailed if the core or the recorder ever raised."""
        if self.faults:
            raise BodyFailed(
                f"{type(self.core).__name__} failed: {self.faults[0]!r}."
            ) from self.faults[0]

    def _handle(self, event: io.Input) -> None:
        try:
            effects = list(self.core.handle(self.clock.now_ms(), event))
        except Exception as error:
            self.core_raised(event, error)
            return
        for effect in effects:
            try:
                self.carry_out(effect)
            except Exception as error:
                self.faults.append(error)
                log.exception("an effect could not be carried out: %r", effect)

    def core_raised(self, event: io.Input, error: Exception) -> None:
        """A bug in a core. It is kept for `check`; the body goes on."""
        self.faults.append(error)
        log.error("%s failed at %r", type(self.core).__name__, event, exc_info=error)

    def carry_out(self, effect: io.Effect) -> None:
        match effect:
            case io.SetTimer(token, delay_ms):
                self._cancel(token)
                loop = asyncio.get_running_loop()
                self._timers[token] = loop.call_later(max(delay_ms, 0) / 1000, self._fire, token)
            case io.CancelTimer(token):
                self._cancel(token)
            case io.Request(token, address, command, timeout_ms):
                answer = self._client.submit(address, command, timeout_ms)
                answer.add_done_callback(partial(self._answered, token))
            case io.Oneway(address, command):
                self._client.oneway(address, command)
            case io.Begin(op, kind, fields, rows):
                self._recorder.begin(op, kind, fields, rows)
            case io.End(op, outcome, fields, rows):
                self._recorder.end(op, outcome, fields, rows)
            case io.Note(kind, outcome, fields):
                self._recorder.note(kind, outcome, fields)
            case _:
                raise BodyFailed(f"{type(self).__name__} can't carry out {type(effect).__name__}.")

    async def end(self) -> None:
        """No more inputs: cancel the timers, flush and close the client's connections."""
        self._ended = True
        for token in list(self._timers):
            self._cancel(token)
        await self._client.close()

    def _fire(self, token: Hashable) -> None:
        self._timers.pop(token, None)
        self.post(io.TimerFired(token))

    def _cancel(self, token: Hashable) -> None:
        timer = self._timers.pop(token, None)
        if timer is not None:
            timer.cancel()

    def _answered(self, token: Hashable, answer: asyncio.Future[Command]) -> None:
        if answer.cancelled():
            return
        error = answer.exception()
        if error is None:
            self.post(io.Answered(token, answer.result()))
        elif isinstance(error, RequestFailed):
            self.post(io.Failed(token, error.reason))
        else:
            self.faults.append(error)

    def _pushed(self, address: str, command: Command) -> None:
        self.post(io.Pushed(address, command))
