"""A whole target: ordered queues in memory, each worked on by one consumer of a group at a time."""

import asyncio
from collections import Counter, defaultdict

from conformance.drivers.plans import FAST
from conformance.targets.base import NEVER_ASKED, operation
from conformance.targets.inprocess import InProcess
from specs.history.runinfo import declared
from specs.vocabulary import LISTENER_SUSPENDS, Kind


class Toy(InProcess):
    name, profile, config = "toy", "ordered-queue", FAST
    parties = dict.fromkeys(("broker", "client", "producer"), "toy 1")
    kinds = (Kind.SEND, Kind.DELIVER, Kind.COMMIT, Kind.ADD, Kind.DROP)
    records = declared(client={*kinds, *NEVER_ASKED, Kind.FETCH_OFFSET, Kind.DEAD_LETTER})

    async def prepare(self, run):
        await super().prepare(run)
        self.kept = {queue: [] for queue, _ in self.queues(run)}
        self.next, self.free = Counter(), defaultdict(asyncio.Lock)

    async def send(self, me, message):
        queue = list(self.kept)[sum(map(ord, message.sharding_key or "")) % len(self.kept)]
        self.kept[queue].append(message)
        return {**queue._asdict(), "queue_offset": len(self.kept[queue]) - 1}

    async def consume(self, me, lane):
        while self.free[lane].locked():
            if not self.is_wanted(me):
                return
            await asyncio.sleep(0.005)
        await self.free[lane].acquire()
        try:
            with self.working(me, lane) as at_work:
                await self.work(me, lane, at_work, self.first(lane))
        finally:  # whoever was killed is thought to live for a while
            wait_s = self.config.broker_lease_ms / 1000 if self.is_wanted(me) else 0
            asyncio.get_running_loop().call_later(wait_s, self.free[lane].release)

    def first(self, lane):
        return self.next[lane]

    async def work(self, me, lane, at_work, offset):
        while self.is_wanted(me):
            if offset < len(self.kept[lane.queue]):
                message = self.kept[lane.queue][offset]
                if await self.call(at_work, lane, message, offset) not in LISTENER_SUSPENDS:
                    offset += 1
                    with operation(self.log, Kind.COMMIT, {**at_work, "value": offset}):
                        self.next[lane] = offset
            await asyncio.sleep(0.005)

    async def read(self, queue):
        return [{**m.columns(), "queue_offset": n} for n, m in enumerate(self.kept[queue])]


def toy(_argument):
    return Toy()
