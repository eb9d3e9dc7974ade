"""The shop's message server: a name server and a broker, until it is ended."""

import asyncio
import signal

from reference_impl.core.broker import BrokerConfig
from reference_impl.shell.cluster import LocalCluster

TIMES = BrokerConfig(lease_ms=3_000, channel_expiry_ms=4_000, channel_scan_ms=500)


async def main() -> None:
    told = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, told.set)
    everywhere = "0.0.0.0"
    options = {"host": everywhere, "advertise": "mq:10911", "topics": ["orders"]}
    async with LocalCluster(TIMES, namesrv_port=9876, broker_port=10911, **options):
        await told.wait()


asyncio.run(main())
