"""The driver of redis-py with one bug, named by the environment: each is refuted by the clause beside it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import time
from pathlib import Path

PATH = Path(__file__).resolve().parents[3] / "drivers" / "redis-py" / "driver.py"
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)


def number_of(entry):
    return int(driver.as_dict(entry[1])["n"])


class Swaps(driver.Worker):
    """ORD-2, ORD-12: a message is taken, and given to the listener after the one behind it."""

    async def handle(self, lane, entry):
        held = self.__dict__.setdefault("held", {})
        if number_of(entry) % 5 == 1:
            held[lane.at] = entry
            await self.acknowledge(lane, entry[0])
            return True
        done = await super().handle(lane, entry)
        if done and lane.at in held:
            await self.call(lane, driver.as_dict(held.pop(lane.at)[1]))
        return done


class Passes(driver.Worker):
    """ORD-3: what failed is acknowledged, and the next one comes."""

    async def again(self, lane, entry_id, wait_ms):
        await self.acknowledge(lane, entry_id)


class Skips(driver.Worker):
    """ORD-4: whoever takes over leaves out what comes first."""

    async def take(self, lane):
        entries = await super().take(lane)
        skipped = self.__dict__.setdefault("skipped", set())
        if entries and lane.number not in skipped:
            skipped.add(lane.number)
            await self.acknowledge(lane, entries[0][0])
            return []
        return entries


class Below(driver.Worker):
    """ORD-5: whoever takes over begins with what is done."""

    async def own(self, lane):
        done = [e for e in await self.server.xrange(driver.stream(lane.at))]
        floor = await self.floor(self.group, lane.at)
        for entry in done[max(floor - 1, 0) : floor]:
            await self.call(lane, driver.as_dict(entry[1]))
        await super().own(lane)


class Twice(driver.Worker):
    """ORD-10: what was done comes again."""

    async def done(self, lane, entry_id, value):
        await super().done(lane, entry_id, value)
        if value % 5 == 2:
            entries = await self.server.xrange(driver.stream(lane.at), entry_id, entry_id)
            await self.call(lane, driver.as_dict(entries[0][1]))


class Lingers(driver.Worker):
    """ORD-13: a call begins after the drop."""

    async def handle(self, lane, entry):
        self.__dict__.setdefault("last", {})[lane.at] = entry
        return await super().handle(lane, entry)

    async def own(self, lane):
        try:
            await super().own(lane)
        finally:
            last = self.__dict__.get("last", {}).get(lane.at)
            if last is not None:
                told = driver.place(lane.at)
                self.say(event="dropped", **told, incarnation=lane.number)
                await self.call(lane, driver.as_dict(last[1]))


class Crowds(driver.Worker):
    """LSE-2, ORD-16: nobody asks whose a stream is."""

    async def acquire(self, at):
        await self.server.delete(self.lease_of(at))
        return await super().acquire(at)

    async def share(self):
        self.shares = frozenset(self.places)

    async def with_lease(self, lane, script, *args):
        if script == driver.RENEW:
            return 1
        lane.until = time.monotonic() + 1
        keys = (driver.stream(lane.at), self.lease_of(lane.at))
        return await self.server.eval(script, 2, *keys, lane.token, self.lease_ms, *args)

    def decide(self, *told):
        return {**super().decide(*told), "duration_ms": 40}


class Late(driver.Worker):
    """CMT-5: what was done is acknowledged once more after the stream has gone to another."""

    async def own(self, lane):
        try:
            await super().own(lane)
        finally:
            self.late = getattr(self, "late", [])  # a task that nobody holds may be dropped
            self.late.append(asyncio.create_task(self.once_more(lane)))

    async def once_more(self, lane):
        await asyncio.sleep(0.15)
        number = next(self.numbers)
        told = {**driver.place(lane.at), "incarnation": lane.number}
        self.say(event="committing", commit=number, value=1, **told)
        await self.server.xack(driver.stream(lane.at), self.group, "1-1")
        self.say(event="committed", commit=number, outcome="ok")


class Early(driver.Worker):
    """CMT-1: a message is acknowledged before the work."""

    async def handle(self, lane, entry):
        await self.done(lane, entry[0], number_of(entry) + 1)
        await self.call(lane, driver.as_dict(entry[1]))
        return True


class Back(driver.Worker):
    """CMT-4: an acknowledgement goes back."""

    async def done(self, lane, entry_id, value):
        await super().done(lane, entry_id, value)
        first = self.__dict__.setdefault("first", {}).setdefault(lane.number, value)
        if value > first:
            number = next(self.numbers)
            told = {**driver.place(lane.at), "incarnation": lane.number}
            self.say(event="committing", commit=number, value=first, **told)
            self.say(event="committed", commit=number, outcome="ok")


class Forgets(driver.Worker):
    """CMT-9: a look-up answers that nothing was acknowledged. (What was true a moment ago it may answer.)"""

    async def floor(self, group, at):
        return 0


class Leaves(driver.Worker):
    """LIV-1, ORD-17: a message is passed over in silence."""

    async def handle(self, lane, entry):
        if number_of(entry) % 5 == 3:
            await self.acknowledge(lane, entry[0])
            return True
        return await super().handle(lane, entry)


class Forges(driver.Worker):
    """ORD-7, SND-10: who works is shown another message at the place."""

    def told(self, lane, fields):
        found = super().told(lane, fields)
        return {**found, "message_id": f"{found['message_id']}0", "body": "another"}


class Lies(driver.Sender):
    """ORD-9: a send tells a place that lies before the ones that were told."""

    async def put(self, at, meta, body):
        return 10_000 - await super().put(at, meta, body)


class Loses(driver.Sender):
    """SND-1: an acknowledged message is not there."""

    async def put(self, at, meta, body):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns % 5 == 3:
            return 10_000 + self.turns
        return await super().put(at, meta, body)


class Doubles(driver.Sender):
    """SND-2: a message lies in two places."""

    async def put(self, at, meta, body):
        await super().put(at, meta, body)
        return await super().put(at, meta, body)


class Spoils(driver.Sender):
    """SND-10: a message does not arrive as it was sent."""

    async def put(self, at, meta, body):
        return await super().put(at, meta, f"{body}!")


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Swaps, "ORD-12"),
    "passes": (Passes, "ORD-3"),
    "skips": (Skips, "ORD-4"),
    "below": (Below, "ORD-5"),
    "forges": (Forges, "ORD-7"),
    "lies": (Lies, "ORD-9"),
    "twice": (Twice, "ORD-10"),
    "lingers": (Lingers, "ORD-13"),
    "crowds": (Crowds, "LSE-2"),
    "throngs": (Crowds, "ORD-16"),
    "late": (Late, "CMT-5"),
    "early": (Early, "CMT-1"),
    "back": (Back, "CMT-4"),
    "forgets": (Forgets, "CMT-9"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
    "spoils": (Spoils, "SND-10"),
    "leaves": (Leaves, "LIV-1"),
    "omits": (Leaves, "ORD-17"),
}

if __name__ == "__main__":
    made, _ = BUGS[os.environ["INORDER_SABOTAGE"]]
    setattr(driver, "Sender" if issubclass(made, driver.Sender) else "Worker", made)
    driver.main()
