"""A producer for programs without an event loop: the same calls, each waits.

    with BlockingProducer("127.0.0.1:9876") as producer:
        producer.send("orders", b"paid", key="customer-7")

It may be used from several threads; its own thread runs the event loop.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from reference_impl.client.producer import Outgoing, Producer, SendResult
from reference_impl.core.io import Selector
from reference_impl.protocol.command import NO_EXT
from specs.errors import UsageError

T = TypeVar("T")
JOIN_S = 10.0


class BlockingProducer:
    """Wraps a `Producer`, whose arguments it takes."""

    def __init__(self, name_servers: str | Sequence[str], **options: Any) -> None:
        self._inner = Producer(name_servers, **options)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise UsageError("A producer is started once; make another.")
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="producer", daemon=True)
        self._thread.start()
        self._do(self._inner.start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            self._do(self._inner.stop())
        finally:
            loop, self._loop = self._loop, None
            assert loop is not None, "entered before it is left"
            assert self._thread is not None, "entered before it is left"
            loop.call_soon_threadsafe(loop.stop)
            self._thread.join(JOIN_S)
            loop.close()

    def send(
        self,
        topic: str,
        body: bytes | str,
        *,
        key: str | None = None,
        tags: str | None = None,
        keys: Sequence[str] = (),
        properties: Mapping[str, str] = NO_EXT,
        delay_level: int | None = None,
        queue: int | None = None,
        selector: Selector | None = None,
    ) -> SendResult:
        """As `Producer.send`."""
        return self._do(
            self._inner.send(
                topic,
                body,
                key=key,
                tags=tags,
                keys=keys,
                properties=properties,
                delay_level=delay_level,
                queue=queue,
                selector=selector,
            )
        )

    def send_oneway(
        self, topic: str, body: bytes | str, *, key: str | None = None, tags: str | None = None
    ) -> SendResult:
        """As `Producer.send_oneway`."""
        return self._do(self._inner.send_oneway(topic, body, key=key, tags=tags))

    def send_batch(
        self, topic: str, messages: Iterable[bytes | str | Outgoing], *, key: str | None = None
    ) -> SendResult:
        """As `Producer.send_batch`."""
        return self._do(self._inner.send_batch(topic, messages, key=key))

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        if self._loop is None:
            work.close()
            raise UsageError(
                "The producer is not started: use it in `with BlockingProducer(...) as producer:`."
            )
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()
