"""The shop's two programs: `checkout` sends orders, `billing` bills those of one queue one after the other.

BUG names what is wrong with billing, if anything is.
"""

import asyncio
import os
import sys

from reference_impl.client import Message, OrderlyConsumer, Producer, SendFailed
from reference_impl.mutants import load

NAMESRV = os.environ["NAMESRV"]
BUG = os.environ.get("BUG")
CUSTOMERS = 8


class Billing(OrderlyConsumer):
    if BUG:
        _core_class = load(BUG).consumer


async def checkout() -> None:
    async with Producer(NAMESRV) as producer:
        order = 0
        while not told.is_set():
            try:
                await producer.send("orders", f"order {order}", key=f"customer-{order % CUSTOMERS}")
                order += 1
            except SendFailed as error:
                sys.stderr.write(f"order {order} waits: {error}\n")
            await asyncio.sleep(0.05)


async def bill(message: Message) -> None:
    await asyncio.sleep(0.02)


async def billing() -> None:
    async with Billing(
        NAMESRV,
        group="billing",
        topics="orders",
        listener=bill,
        start="first",
        client_lease_ms=1_500,
        lock_first_ms=100,
        lock_interval_ms=500,
        rebalance_interval_ms=500,
        heartbeat_ms=500,
        long_poll_ms=1_000,
        persist_first_ms=200,
        persist_interval_ms=200,
    ):
        await told.wait()


async def main() -> None:
    for number in (2, 15):
        asyncio.get_running_loop().add_signal_handler(number, told.set)
    await {"checkout": checkout, "billing": billing}[sys.argv[1]]()


told = asyncio.Event()
asyncio.run(main())
