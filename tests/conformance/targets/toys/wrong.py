"""The toy with one bug each, of the kinds that ordered queues really have."""

import asyncio

from toy import Toy

from conformance.targets.base import CutShort
from specs.vocabulary import Outcome


class Skips(Toy):
    """A new owner begins one message too far."""

    name = "skips"

    def first(self, lane):
        return self.next[lane] + (self.next[lane] > 0)


class TwiceOutOfOrder(Toy):
    """What failed comes again after its successor."""

    name = "twice"

    async def call(self, at_work, lane, message, offset):
        outcome = await super().call(at_work, lane, message, offset)
        kept = self.kept[lane.queue]
        if outcome is not Outcome.SUCCESS and offset + 1 < len(kept):
            await super().call(at_work, lane, kept[offset + 1], offset + 1)
        return outcome


class Loses(Toy):
    """Of the messages that were acknowledged every fiftieth is not kept."""

    name = "loses"

    async def send(self, me, message):
        found = await super().send(me, message)
        if message.number % 50 == 0:
            await asyncio.sleep(0)
            self.kept[next(q for q in self.kept if q.queue_id == found["queue_id"])].pop()
        return found


class Silent(Toy):
    """Nobody says what lies in its first queue."""

    name = "silent"

    async def read(self, queue):
        if queue.queue_id == 0:
            raise CutShort("the toy did not say where queue 0 ends")
        return await super().read(queue)


def silent(_argument):
    return Silent()


def skips(_argument):
    return Skips()


def twice(_argument):
    return TwiceOutOfOrder()


def loses(_argument):
    return Loses()
