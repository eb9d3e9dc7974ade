"""Receiving messages at one's own pace: `async for`.

    async with PullConsumer("127.0.0.1:9876", group="audit", topics="orders", start="first") as consumer:
        async for batch in consumer:
            for message in batch:
                print(message.text)

A batch is finished when the next one is asked for, or by `consumer.done()`; what is not finished when the consumer
stops comes again, here or at another member. Batches of one queue come in order.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar, Self, Unpack

from reference_impl.client.consumer import Member, Start, Topics, Tuning, batch_of
from reference_impl.client.message import Batch
from reference_impl.core import io
from reference_impl.core.allocation import Strategy
from reference_impl.core.consumer.consumer import Consumer
from reference_impl.core.consumer.pull_consumer import PullConsumer as PullCore
from reference_impl.protocol.message import StoredMessage
from reference_impl.shell.node import Listener as NodeListener
from reference_impl.shell.node import ListenerContext
from reference_impl.shell.recording import Recorder
from specs.errors import UsageError
from specs.vocabulary import Outcome


class PullConsumer(Member):
    """A member that asks. The arguments are those of `PushConsumer`; batch: messages of one batch at most."""

    _core_class: ClassVar[type[Consumer]] = PullCore

    def __init__(
        self,
        name_servers: str | Sequence[str],
        *,
        group: str,
        topics: Topics,
        start: Start = "last",
        batch: int = 32,
        share_by: str | Strategy = "AVG",
        client_id: str | None = None,
        recorder: Recorder | None = None,
        **tuning: Unpack[Tuning],
    ) -> None:
        super().__init__(
            name_servers,
            group=group,
            topics=topics,
            start=start,
            batch=batch,
            threads=1,
            max_retries=None,
            suspend_ms=1_000,
            share_by=share_by,
            client_id=client_id,
            recorder=recorder,
            tuning=tuning,
        )
        self._ready: asyncio.Queue[tuple[Batch, asyncio.Future[Outcome]] | None] = asyncio.Queue()
        self._open: asyncio.Future[Outcome] | None = None  # of the batch that the caller has
        self._offered: set[asyncio.Future[Outcome]] = set()
        self._is_over = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Batch:
        batch = await self.next()
        if batch is None:
            raise StopAsyncIteration
        return batch

    async def next(self, timeout_s: float | None = None) -> Batch | None:
        """The next batch; what was given before is finished with that. None: none in time, or the consumer stops."""
        self.done()
        if self._node is None:
            raise UsageError(
                "The consumer is not started: use it in `async with PullConsumer(...) as consumer:`."
            )
        if self._is_over:
            return None
        try:
            async with asyncio.timeout(timeout_s):
                item = await self._ready.get()
        except TimeoutError:
            return None
        if item is None:
            return None
        batch, self._open = item
        return batch

    def done(self) -> None:
        """The batch at hand is finished."""
        self._settle(Outcome.SUCCESS)

    def again(self) -> None:
        """The batch at hand is not finished: it is given again, before anything else."""
        self._settle(Outcome.SUSPEND)

    def _settle(self, outcome: Outcome) -> None:
        if self._open is not None and not self._open.done():
            self._open.set_result(outcome)
        self._open = None

    async def stop(self) -> None:
        """Leave in good order. Iterations that wait end; the batch at hand is not finished by it."""
        if self._node is not None:
            self._is_over = True
            self._node.post(
                io.Shutdown()
            )  # before the batches are given back: they are not to be offered anew
            for offered in list(self._offered):
                if not offered.done():
                    offered.set_result(Outcome.SUSPEND)
            self._ready.put_nowait(None)
        await super().stop()

    def _node_listener(self) -> NodeListener:
        async def offer(stored: Sequence[StoredMessage], context: ListenerContext) -> Outcome:
            settled: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
            self._offered.add(settled)
            self._ready.put_nowait((batch_of(stored, context), settled))
            try:
                return await settled
            finally:
                self._offered.discard(settled)

        return offer
