"""A shop's two programs: `checkout` sends orders, `billing` bills those of one queue one after the other.

It knows nothing of a suite that judges it: it is what somebody has running when she hears of one.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys

from reference_impl.client import Message, OrderlyConsumer, Producer, SendFailed

NAMESRV = os.environ["NAMESRV"]
WORK_S = float(os.environ.get("WORK_S", "0.05"))
CUSTOMERS = 8


def say(line: str) -> None:
    print(line, flush=True)  # noqa: T201 - a container's log


async def checkout() -> None:
    """An order each tenth of a second, until it is ended; one that is not taken is sent again."""
    order = 0
    ended = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, ended.set)
    async with Producer(NAMESRV) as producer:
        while not ended.is_set():
            try:
                await producer.send("orders", f"order {order}", key=f"customer-{order % CUSTOMERS}")
                order += 1
            except SendFailed as error:
                say(f"order {order} waits: {error}")
            await asyncio.sleep(0.1)


async def bill(message: Message) -> None:
    await asyncio.sleep(WORK_S)
    say(f"billed {message.text} of {message.key}")


async def billing() -> None:
    """Until it is ended; what it is at is finished."""
    async with OrderlyConsumer(
        NAMESRV,
        group="billing",
        topics="orders",
        listener=bill,
        start="first",
        # A lease of three seconds instead of thirty: the shop can't wait longer for a sleeping colleague.
        client_lease_ms=3_000,
        lock_first_ms=100,
        lock_interval_ms=1_000,
        rebalance_interval_ms=1_000,
        heartbeat_ms=1_000,
        long_poll_ms=2_000,
        persist_interval_ms=1_000,
    ) as consumer:
        await consumer.run_until_signal()


asyncio.run({"checkout": checkout, "billing": billing}[sys.argv[1]]())
