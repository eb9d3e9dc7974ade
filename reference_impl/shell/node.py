"""A client core (a producer, a consumer) on real sockets, with a listener of the user's.

The listener is called as `listener(messages, context)` and returns an Outcome. A coroutine function runs in the
event loop, a plain one in a thread of the node's own. Returning None is NULL; raising, or returning anything that
is no listener's outcome, is THREW.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import logging
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from reference_impl.core import io
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.body import Body, Core
from reference_impl.shell.clock import WallClock
from reference_impl.shell.errors import BodyFailed
from reference_impl.shell.recording import Recorder
from specs.vocabulary import Lane, Outcome

log = logging.getLogger("inorder.reference")

LISTENER_OUTCOMES = frozenset(
    {Outcome.SUCCESS, Outcome.SUSPEND, Outcome.COMMIT, Outcome.ROLLBACK, Outcome.NULL}
)


@dataclass(slots=True)
class ListenerContext:
    """What a listener call may look at and set; new for every call.

    auto_commit: set to False for manual commits, in each call anew. suspend_ms: how long a SUSPEND or ROLLBACK
    waits; -1 is the consumer's default. delay_level: what a concurrent listener asks for, 0 for the broker's
    choice. delivery: for each message, how often this client has delivered it.
    """

    lane: Lane
    delivery: Sequence[int]
    auto_commit: bool = True
    suspend_ms: int = -1
    delay_level: int = 0


Listener: TypeAlias = Callable[[Sequence[StoredMessage], ListenerContext], Any]
"""Returns an Outcome or None, or a coroutine of that."""


class ClientNode(Body):
    """Drives one client core. `start`, then `send` or a listener at work, then `shutdown` (or `kill`).

    threads: how many plain listener calls can run at a time. via: as `RemotingClient` takes it.
    """

    def __init__(
        self,
        core: Core,
        listener: Listener | None = None,
        *,
        threads: int = 20,
        clock: WallClock | None = None,
        recorder: Recorder | None = None,
        via: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(core, clock=clock, recorder=recorder, via=via)
        self._listener = listener
        self._threads = _Threads(threads)
        self._running: set[asyncio.Task[None]] = set()
        self._sends: dict[object, asyncio.Future[io.SendDone]] = {}
        self._stopped = asyncio.Event()

    def start(self) -> None:
        """Tell the core `Start`. To be called in a running event loop, as everything here."""
        self.post(io.Start())

    def submit(self, message: io.SendMessage) -> asyncio.Future[io.SendDone]:
        """Send one message now; the future says how it ended. The token must be new.

        What is submitted first is handed to the core first, so messages of one queue go out in the order of the calls.
        """
        if message.token in self._sends:
            raise BodyFailed(f"The token {message.token!r} names a send that is still open.")
        if self._ended:
            raise BodyFailed("The node has ended; it sends nothing any more.")
        done: asyncio.Future[io.SendDone] = asyncio.get_running_loop().create_future()
        self._sends[message.token] = done
        done.add_done_callback(lambda _: self._sends.pop(message.token, None))
        self.post(message)
        return done

    async def send(self, message: io.SendMessage) -> io.SendDone:
        """As `submit`, and returns when the core says how it ended."""
        return await self.submit(message)

    async def shutdown(self, timeout_s: float = 30.0) -> bool:
        """Stop in good order; True when the core said `Stopped` within the time. Raises BodyFailed (`check`)."""
        self.post(io.Shutdown())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._stopped.wait()
        await self.end()
        self.check()
        return self._stopped.is_set()

    async def kill(self) -> None:
        """Vanish without a word: no unlock, no last commit, no unregister."""
        await self.end()

    async def end(self) -> None:
        await super().end()
        self._threads.stop()
        for task in self._running:
            task.cancel()
        if self._running:
            await asyncio.wait(set(self._running), timeout=1.0)
        for done in list(self._sends.values()):
            if not done.done():
                done.set_exception(BodyFailed("The node ended before the send did."))

    def carry_out(self, effect: io.Effect) -> None:
        match effect:
            case io.CallListener():
                self._call(effect)
            case io.SendDone(token):
                done = self._sends.get(token)
                if done is not None and not done.done():
                    done.set_result(effect)
            case io.Stopped():
                self._stopped.set()
            case _:
                super().carry_out(effect)

    def _call(self, call: io.CallListener) -> None:
        listener = self._listener
        if listener is None:
            raise BodyFailed("The core called a listener, but the node has none.")
        context = ListenerContext(call.lane, call.delivery)
        if inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(
            type(listener).__call__
        ):
            task = asyncio.get_running_loop().create_task(
                self._await_listener(listener, call, context)
            )
            self._running.add(task)
            task.add_done_callback(self._running.discard)
        else:
            loop = asyncio.get_running_loop()
            self._threads.run(lambda: self._run_listener(listener, call, context, loop))

    async def _await_listener(
        self, listener: Listener, call: io.CallListener, context: ListenerContext
    ) -> None:
        try:
            result = await listener(call.messages, context)
        except Exception as error:
            result = error
        self._returned(call.call_id, result, context)

    def _run_listener(
        self,
        listener: Listener,
        call: io.CallListener,
        context: ListenerContext,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        try:
            result = listener(call.messages, context)
        except Exception as error:
            result = error
        try:
            loop.call_soon_threadsafe(self._returned, call.call_id, result, context)
        except RuntimeError:
            log.debug("a listener call outlived its event loop")

    def _returned(self, call_id: int, result: object, context: ListenerContext) -> None:
        match result:
            case None:
                outcome = Outcome.NULL
            case Outcome() if result in LISTENER_OUTCOMES:
                outcome = result
            case _:
                outcome = Outcome.THREW
                log.info("a listener threw: %r", result)
        manual = not context.auto_commit
        self.post(
            io.ListenerReturned(call_id, outcome, manual, context.suspend_ms, context.delay_level)
        )


class _Threads:
    """At most `limit` daemon threads, started when needed: a listener that hangs can't hold the process."""

    def __init__(self, limit: int) -> None:
        self._limit = max(limit, 1)
        self._jobs: queue.SimpleQueue[Callable[[], None] | None] = queue.SimpleQueue()
        self._started = 0
        self._busy = 0
        self._lock = threading.Lock()

    def run(self, job: Callable[[], None]) -> None:
        with self._lock:
            self._busy += 1
            if self._busy > self._started and self._started < self._limit:
                self._started += 1
                threading.Thread(target=self._work, name="listener", daemon=True).start()
        self._jobs.put(job)

    def stop(self) -> None:
        """Let the idle threads end, the busy ones after their job."""
        with self._lock:
            count, self._started = self._started, 0
        for _ in range(count):
            self._jobs.put(None)

    def _work(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
            with self._lock:
                self._busy -= 1
