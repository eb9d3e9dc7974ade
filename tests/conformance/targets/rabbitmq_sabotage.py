"""The driver of pika with one bug, named by the environment: each is refuted by the clause beside it."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

PATH = Path(__file__).resolve().parents[3] / "drivers" / "pika" / "driver.py"
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)


class Worker(driver.Worker):
    """Knows the how-manieth message of a lane it is given."""

    def start(self, asked):
        self.counts = {}
        super().start(asked)

    def nth(self, lane):
        self.counts[lane.at] = self.counts.get(lane.at, 0) + 1
        return self.counts[lane.at]


class Swaps(Worker):
    """ORD-2, ORD-12: a message is taken, and given to the listener after the one behind it of its key."""

    def handle(self, lane, method, properties, body):
        held = self.__dict__.setdefault("held", {})
        if lane.number is not None and lane.at not in held and self.nth(lane) % 3 == 1:
            held[lane.at] = properties, body
            self.acknowledge(lane, method)
            return
        super().handle(lane, method, properties, body)
        if lane.at in held:
            before = self.told(lane, *held[lane.at])
            if before["key"] == self.told(lane, properties, body)["key"]:
                del held[lane.at]
                self.call(before)


class Passes(driver.Worker):
    """ORD-3, RTY-4: what failed is acknowledged, and the next one comes."""

    def again(self, lane, method):
        self.acknowledge(lane, method)


class Skips(driver.Worker):
    """ORD-4: a new owner passes over the first message that it is given."""

    def handle(self, lane, method, properties, body):
        skipped = lane.__dict__.setdefault("skipped", False)
        if not skipped:
            lane.skipped = True
            self.acknowledge(lane, method)
            return
        super().handle(lane, method, properties, body)


class Twice(Worker):
    """ORD-10: what was done comes again."""

    def handle(self, lane, method, properties, body):
        super().handle(lane, method, properties, body)
        if self.nth(lane) % 5 == 2:
            self.call(self.told(lane, properties, body))


class Lingers(driver.Worker):
    """ORD-13: who has dropped a lane works on."""

    def handle(self, lane, method, properties, body):
        super().handle(lane, method, properties, body)
        lane.last = properties, body

    def over(self, lane):
        number = lane.number
        super().over(lane)
        if number is not None and "last" in lane.__dict__:
            lane.number = number
            self.call(self.told(lane, *lane.last))
            lane.number = None


class Overlaps(Worker):
    """LSE-2: who gives a message back works on it all the same."""

    def handle(self, lane, method, properties, body):
        if lane.number is not None and self.nth(lane) % 4 == 0:
            self.leave(lane)
            told, number = self.told(lane, properties, body), next(self.numbers)
            self.say(event="delivered", call=number, messages=[told])
            time.sleep(0.6)
            self.say(event="finished", call=number, **driver.ending({}))
            raise OSError("its channel is closed")
        super().handle(lane, method, properties, body)


class Early(driver.Worker):
    """CMT-1: a message is acknowledged before the work."""

    def handle(self, lane, method, properties, body):
        if lane.number is None:
            super().handle(lane, method, properties, body)
            return
        told = self.told(lane, properties, body)
        self.done(lane, method, told["queue_offset"] + 1)
        self.call(told)


class Back(driver.Worker):
    """CMT-4: an acknowledgement goes back."""

    def done(self, lane, method, value):
        super().done(lane, method, value)
        first = lane.__dict__.setdefault("first", value)
        if value > first:
            number = next(self.numbers)
            told = {**driver.place(lane.at), "incarnation": lane.number}
            self.say(event="committing", commit=number, value=first, **told)
            self.say(event="committed", commit=number, outcome="ok")


class Late(driver.Worker):
    """CMT-5: who has left acknowledges, when another has the lane."""

    def done(self, lane, method, value):
        super().done(lane, method, value)
        lane.value, lane.was = value, lane.number

    def leave(self, lane):
        super().leave(lane)
        if "value" in lane.__dict__:
            time.sleep(1.2)
            number = next(self.numbers)
            told = {**driver.place(lane.at), "incarnation": lane.was}
            self.say(event="committing", commit=number, value=lane.value, **told)
            self.say(event="committed", commit=number, outcome="ok")


class Leaves(Worker):
    """LIV-1: a message is passed over in silence."""

    def handle(self, lane, method, properties, body):
        if self.nth(lane) % 5 == 3:
            self.acknowledge(lane, method)
        else:
            super().handle(lane, method, properties, body)


class Loses(driver.Sender):
    """SND-1: a confirmed message is not there."""

    def publish(self, at, number, meta, body):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns % 5 != 3:
            super().publish(at, number, meta, body)


class Doubles(driver.Sender):
    """SND-2: a message lies in two places."""

    def put(self, at, meta, body):
        super().put(at, meta, body)
        return super().put(at, meta, body)


class Spoils(driver.Sender):
    """SND-10: a message does not arrive as it was sent."""

    def publish(self, at, number, meta, body):
        super().publish(at, number, meta, body + b"!")


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Swaps, "ORD-12"),
    "passes": (Passes, "ORD-3"),
    "forgets": (Passes, "RTY-4"),
    "skips": (Skips, "ORD-4"),
    "twice": (Twice, "ORD-10"),
    "lingers": (Lingers, "ORD-13"),
    "overlaps": (Overlaps, "LSE-2"),
    "early": (Early, "CMT-1"),
    "back": (Back, "CMT-4"),
    "late": (Late, "CMT-5"),
    "leaves": (Leaves, "LIV-1"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
    "spoils": (Spoils, "SND-10"),
}

if __name__ == "__main__":
    made, _ = BUGS[os.environ["INORDER_SABOTAGE"]]
    setattr(driver, "Sender" if issubclass(made, driver.Sender) else "Worker", made)
    driver.main()
