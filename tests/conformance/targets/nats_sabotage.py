"""The driver of nats-py with one bug, named by the environment: each is refuted by the clause beside it."""

from __future__ import annotations

import asyncio
import importlib.util
import os
from pathlib import Path

PATH = Path(__file__).resolve().parents[3] / "drivers" / "nats-py" / "driver.py"
HELD = 20
"""Quarters of a lease: longer than a timer may be late."""
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)


def seq_of(message):
    return message.metadata.sequence.stream


def first_time(told):
    """A line, as if its message were handed out for the first time."""
    return {**told, "reconsume_times": 0} if told["event"] == "received" else told


class Swaps(driver.Worker):
    """ORD-2, ORD-12: a message is taken, and given to the listener after the one behind it."""

    async def take(self, at, message, until):
        held = self.__dict__.setdefault("held", {})
        if at in held:
            await super().take(at, message, until)
            await self.call(at, held.pop(at))
        elif seq_of(message) % 5 == 1:
            held[at] = message
            await message.ack_sync()
        else:
            await super().take(at, message, until)


class Passes(driver.Worker):
    """ORD-3, RTY-4: what failed is acknowledged, and the next one comes."""

    async def again(self, at, message, wait_ms):
        await message.ack_sync()


class Twice(driver.Worker):
    """ORD-10: what was done comes again."""

    async def done(self, at, message):
        await super().done(at, message)
        if seq_of(message) % 5 == 2:
            await self.call(at, message)


class Hurries(driver.Worker):
    """RTY-1: what failed comes again at once."""

    async def again(self, at, message, wait_ms):
        await message.nak()


class Early(driver.Worker):
    """CMT-1: a message is acknowledged before the work."""

    async def take(self, at, message, until):
        await self.done(at, message)
        await self.call(at, message)


class Back(driver.Worker):
    """CMT-4: an acknowledgement goes back."""

    async def done(self, at, message):
        await super().done(at, message)
        first = self.__dict__.setdefault("first", {}).setdefault(at, seq_of(message))
        if seq_of(message) > first:
            number = next(self.numbers)
            lane = driver.place(at)
            self.say(event="committing", commit=number, value=first + 1, **lane)
            self.say(event="committed", commit=number, outcome="ok")


class Leaves(driver.Worker):
    """LIV-1: a message is passed over in silence."""

    async def take(self, at, message, until):
        if seq_of(message) % 5 == 3:
            await message.ack_sync()
        else:
            await super().take(at, message, until)


class Omits(Leaves):
    """ORD-17: and nobody is told that it was handed out."""

    async def fetch(self, messages, wait_s, handed):
        brought = handed.brought
        handed.brought = lambda message: seq_of(message) % 5 == 3 or brought(message)
        try:
            return await super().fetch(messages, wait_s, handed)
        finally:
            del handed.brought


class Holds(driver.Worker):
    """LIV-1: a message is never answered, and its lease is renewed for ever."""

    async def take(self, at, message, until):
        while seq_of(message) == 3 and self.at_work:
            await message.in_progress()
            await asyncio.sleep(self.lease_s / 4)
        await super().take(at, message, until)


class Silent(driver.Worker):
    """PML-1, PML-2: a message is put back, nobody is told, and it is handed out again."""

    async def again(self, at, message, wait_ms):
        await message.nak(delay=self.wait_s(wait_ms))


class Quiet(driver.Worker):
    """KEY-1: a message is acknowledged, and nobody is told: another member is handed the next one of its key."""

    async def done(self, at, message):
        await message.ack_sync()


class Stays(driver.Worker):
    """FLR-2: an acknowledgement is told that the server never gets, and the lease is renewed."""

    async def done(self, at, message):
        if seq_of(message) != 3:
            await super().done(at, message)
            return
        number = next(self.numbers)
        self.say(event="acking", ack=number, **driver.which(message), **driver.place(at))
        self.say(event="acked", ack=number, outcome="ok")
        for _ in range(HELD):
            await message.in_progress()
            await asyncio.sleep(self.lease_s / 4)
        await message.ack_sync()


class Recounts(driver.Worker):
    """PML-4: a message that comes again is told as if it came for the first time."""

    def __init__(self, say, options):
        super().__init__(lambda **told: say(**first_time(told)), options)


class Forges(driver.Worker):
    """ORD-7, SND-10: who works is shown another message at the place."""

    def told(self, at, message):
        found = super().told(at, message)
        return {**found, "message_id": f"{found['message_id']}0", "body": "another"}


class Lies(driver.Sender):
    """ORD-9: a send tells a place that lies before the ones that were told."""

    async def put(self, place, body, headers):
        return 10_000 - await super().put(place, body, headers)


class Loses(driver.Sender):
    """SND-1: an acknowledged message is not there."""

    async def put(self, place, body, headers):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns % 5 == 3:
            return 10_000 + self.turns
        return await super().put(place, body, headers)


class Doubles(driver.Sender):
    """SND-2: a message lies in two places."""

    async def put(self, place, body, headers):
        own = {name: value for name, value in headers.items() if name != "Nats-Msg-Id"}
        await super().put(place, body, own)
        return await super().put(place, body, own)


class Spoils(driver.Sender):
    """SND-10: a message does not arrive as it was sent."""

    async def put(self, place, body, headers):
        return await super().put(place, body + b"!", headers)


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Swaps, "ORD-12"),
    "passes": (Passes, "ORD-3"),
    "forgets": (Passes, "RTY-4"),
    "forges": (Forges, "ORD-7"),
    "lies": (Lies, "ORD-9"),
    "twice": (Twice, "ORD-10"),
    "hurries": (Hurries, "RTY-1"),
    "early": (Early, "CMT-1"),
    "back": (Back, "CMT-4"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
    "spoils": (Spoils, "SND-10"),
    "leaves": (Leaves, "LIV-1"),
    "omits": (Omits, "ORD-17"),
    "holds": (Holds, "LIV-1"),
    "shares": (Silent, "PML-1"),
    "silent": (Silent, "PML-2"),
    "recounts": (Recounts, "PML-4"),
    "hides": (Leaves, "FLR-1"),
    "stays": (Stays, "FLR-2"),
    "quiet": (Quiet, "KEY-1"),
}

if __name__ == "__main__":
    made, _ = BUGS[os.environ["INORDER_SABOTAGE"]]
    setattr(driver, "Sender" if issubclass(made, driver.Sender) else "Worker", made)
    driver.main()
