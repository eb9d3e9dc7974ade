"""Which brokers a producer leaves alone for a while, because they were slow or failed.

| a send took | then its broker is avoided for |
|---|---|
| less than 550 ms | not at all |
| 550 ms | 2 s |
| 1.8 s | 5 s |
| 3 s | 6 s |
| 5 s | 10 s |
| 15 s | 30 s |
| it failed, or was refused | 10 s |

Each line holds up to the next. Only messages without a key and without a selector avoid anything; when every broker
is to be avoided, none is. Source: `MQFaultStrategy` of apache/rocketmq from 5.1 on (4.9 avoids for minutes).
"""

from __future__ import annotations

from bisect import bisect_right

LATENCY_MS = (50, 100, 550, 1_800, 3_000, 5_000, 15_000)
AVOIDED_MS = (0, 0, 2_000, 5_000, 6_000, 10_000, 30_000)
FAILED_MS = 10_000
"""As how long a send counts that failed or was refused."""


def avoided_ms(latency_ms: int) -> int:
    """For how long a broker is avoided after a send that took so long."""
    place = bisect_right(LATENCY_MS, latency_ms)
    return AVOIDED_MS[place - 1] if place else 0


class Faults:
    """What is known of each broker, by name."""

    def __init__(self) -> None:
        self._until_ms: dict[str, int] = {}

    def saw(self, now_ms: int, broker: str, latency_ms: int | None) -> None:
        """A send to the broker ended after so long; None: it failed. The latest send decides."""
        self._until_ms[broker] = now_ms + avoided_ms(
            FAILED_MS if latency_ms is None else latency_ms
        )

    def is_available(self, now_ms: int, broker: str) -> bool:
        return now_ms >= self._until_ms.get(broker, now_ms)
