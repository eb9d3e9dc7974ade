"""The toy with leases: a lane is its owner's as long as the owner is heard of, and whoever wakes up looks first."""

import asyncio

from toy import Toy

from specs.faults import crash, pause
from specs.plan.ability import Ability
from specs.vocabulary import LISTENER_SUSPENDS, Outcome


class Leased(Toy):
    name = "leased"
    abilities = Toy.abilities | {Ability.PAUSE_CLIENT}

    async def prepare(self, run):
        await super().prepare(run)
        self.owner = {}

    def expire_later(self, me):
        def expire():
            gone = [lane for lane, owner in self.owner.items() if owner[0] == me]
            for lane in gone if not self._awake[me].is_set() or me not in self._tasks else ():
                del self.owner[lane]

        lease_s = self.config.broker_lease_ms / 1000
        asyncio.get_running_loop().call_later(lease_s, expire)

    async def act(self, action):
        await super().act(action)
        if action.do in (pause.VERB, crash.VERB):
            self.expire_later(action.args.get("node") or action.args["client"])

    async def consume(self, me, lane):
        while self.is_wanted(me):
            if lane not in self.owner:
                self.owner[lane] = mine = (me, object())
                with self.working(me, lane) as at_work:
                    await self.as_owner(me, lane, at_work, mine)
                if self.owner.get(lane) == mine:
                    del self.owner[lane]
            await asyncio.sleep(0.005)

    async def as_owner(self, me, lane, at_work, mine):
        offset = self.first(lane)
        while self.is_wanted(me) and self.is_mine(lane, mine):
            if offset < len(self.kept[lane.queue]):
                outcome = await self.call(at_work, lane, self.kept[lane.queue][offset], offset)
                if not self.is_mine(lane, mine):
                    return
                if outcome not in LISTENER_SUSPENDS:
                    offset += 1
                    at = {**at_work, "value": offset}
                    self.next[lane] = offset
                    self.log.note("commit", Outcome.OK, at)
            await asyncio.sleep(0.005)

    def is_mine(self, lane, mine):
        return self.owner.get(lane) == mine


class Keeps(Leased):
    """A dead owner keeps its lanes for ever."""

    name = "keeps"

    def expire_later(self, me):
        pass


class Skips(Leased):
    """A new owner begins one message too far."""

    name = "skips"

    def first(self, lane):
        return self.next[lane] + (self.next[lane] > 0)


def leased(_argument):
    return Leased()


def keeps(_argument):
    return Keeps()


def skips(_argument):
    return Skips()
