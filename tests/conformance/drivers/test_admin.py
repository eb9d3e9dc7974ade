"""Who looks after the queues reads a topic once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from conformance.targets.base import CutShort
from conformance.targets.redis import RedisTarget
from specs.vocabulary import Queue

QUEUES = [Queue("orders", "b0", number) for number in range(2)]


class Emptied(RedisTarget):
    """Its first reading takes everything away and is not answered, a second one finds nothing."""

    asked = 0

    def _read_topic(self, topic: str) -> list[Mapping[str, Any]]:
        self.asked += 1
        if self.asked == 1:
            raise CutShort(f"{topic} could not be read")
        return []


def test_a_topic_whose_reading_failed_is_unread_in_all_its_queues() -> None:
    """Else what the first reading took away would count as lost."""
    target = Emptied.remote("127.0.0.1:1")
    for queue in QUEUES:
        with pytest.raises(CutShort, match="orders could not be read"):
            asyncio.run(target.read(queue))
    assert target.asked == 1
