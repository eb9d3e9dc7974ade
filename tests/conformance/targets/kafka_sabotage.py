"""The driver of librdkafka with one bug, named by the environment: each is refuted by the clause beside it."""

from __future__ import annotations

import importlib.util
import os
import time
from pathlib import Path

PATH = Path(__file__).resolve().parents[3] / "drivers" / "librdkafka" / "driver.py"
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)


class Swaps(driver.Worker):
    """ORD-2, ORD-12: the second message of a lane is given out before the first."""

    def call(self, messages):
        at, held = driver.lane_of(messages[0]), self.__dict__.setdefault("stash", {})
        first = held.get(at)
        if first is None and messages[0].offset() % 4 == 1:
            held[at] = messages
            return
        super().call(messages)
        if first is not None:
            super().call(held.pop(at))


class Skips(driver.Worker):
    """ORD-4: who takes a lane over begins a message too far."""

    further = 1

    def assigned(self, consumer, partitions):
        super().assigned(consumer, partitions)
        for each in consumer.committed(partitions, timeout=driver.ANSWER_S):
            place = next(
                p for p in partitions if (p.topic, p.partition) == (each.topic, each.partition)
            )
            place.offset = max(0, each.offset + self.further) if each.offset >= 0 else each.offset
        consumer.assign(partitions)


class Rewinds(Skips):
    """ORD-5: who takes a lane over begins below the offset that it was told."""

    further = -1


class Early(driver.Worker):
    """CMT-1: the offset is committed before the work."""

    def call(self, messages):
        self.commit(driver.lane_of(messages[0]), messages[-1].offset() + 1)
        super().call(messages)


class Twice(driver.Worker):
    """ORD-10: what was done comes again."""

    def done(self, at, messages):
        super().done(at, messages)
        if messages[0].offset() % 5 == 2 and self.times(at, messages[0].offset()) == 1:
            self.again(at, messages, 10)


class Back(driver.Worker):
    """CMT-4: a commit goes back."""

    def done(self, at, messages):
        super().done(at, messages)
        if messages[0].offset() % 5 == 2:
            self.commit(at, messages[0].offset())


class Late(driver.Worker):
    """CMT-5: what was done is committed once more after the lane has gone to another."""

    def revoked(self, consumer, partitions):
        lanes = dict(self.lanes)
        super().revoked(consumer, partitions)
        self.gone = [(at, lanes[at]) for at in lanes if at not in self.lanes]
        self.since = time.monotonic()

    def poll_begins(self):
        super().poll_begins()
        if getattr(self, "gone", None) and time.monotonic() - self.since > 0.7:
            gone, self.gone = self.gone, []
            for at, incarnation in gone:
                if at not in self.lanes:
                    self.lanes[at] = incarnation
                    self.commit(at, 1)
                    del self.lanes[at]


class Returns(driver.Worker):
    """GEN-1: who was not heard for long commits all the same, and says that it was accepted."""

    def commit(self, at, value):
        rightly = self.say
        self.say = lambda **line: rightly(
            **(line if "value" in line else {**line, "outcome": "ok"})
        )
        try:
            super().commit(at, value)
        finally:
            self.say = rightly


class Leaves(driver.Worker):
    """LIV-1: a message is passed over in silence."""

    def call(self, messages):
        if messages[0].offset() == 3:
            self.commit(driver.lane_of(messages[0]), 4)
            return
        super().call(messages)


class Lies(driver.Worker):
    """CMT-9: the look-up's answer is what nobody committed."""

    def look_up(self, partitions):
        say, self.say = self.say, self.wrong
        self.rightly = say
        super().look_up(partitions)
        self.say = say

    def wrong(self, **line):
        if line.get("event") == "looked_up" and line["value"] > 1:
            line["value"] += 100
        self.rightly(**line)


class Loses(driver.Sender):
    """SND-1: an acknowledged record is not there."""

    def send(self, asked):
        if asked.get("key_seq") == 3:
            self.say(
                event="sent",
                id=asked["id"],
                outcome="ok",
                broker="b0",
                queue_id=0,
                queue_offset=10_000,
            )
        else:
            super().send(asked)


class Doubles(driver.Sender):
    """SND-2: a record lies in two places."""

    def send(self, asked):
        super().send(asked)
        if asked.get("key_seq") == 3:
            self.answered()
            say, self.say = self.say, lambda **line: None
            super().send(asked)
            self.answered()
            self.say = say

    def answered(self):
        """All that was sent has been."""
        self.free.acquire()
        self.free.release()


class Overtakes(driver.Sender):
    """ORD-15: a record is sent after the next one of its key."""

    def send(self, asked):
        held = self.__dict__.setdefault("held", {})
        if asked["key"] not in held and asked["key_seq"] % 4 == 2:
            held[asked["key"]] = asked
            return
        super().send(asked)
        if asked["key"] in held:
            super().send(held.pop(asked["key"]))


class Rejects(driver.SharedWorker):
    """LIV-1: a record whose work failed is rejected, and never comes again."""

    def again(self, message):
        self.acknowledge(message, driver.acknowledge_type().REJECT)


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "skips": (Skips, "ORD-4"),
    "rewinds": (Rewinds, "ORD-5"),
    "early": (Early, "CMT-1"),
    "twice": (Twice, "ORD-10"),
    "back": (Back, "CMT-4"),
    "late": (Late, "CMT-5"),
    "leaves": (Leaves, "LIV-1"),
    "lies": (Lies, "CMT-9"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
}
SHARED = {"rejects": (Rejects, "LIV-1")}
"""Members of a share group."""
ASLEEP = {"returns": (Returns, "GEN-1")}
"""Where a consumer stands still."""
IN_FLIGHT = {"overtakes": (Overtakes, "ORD-15")}
"""Where sends are under way together."""

if __name__ == "__main__":
    made, _ = {**BUGS, **SHARED, **ASLEEP, **IN_FLIGHT}[os.environ["INORDER_SABOTAGE"]]
    of = next(
        each
        for each in (driver.Sender, driver.Worker, driver.SharedWorker)
        if issubclass(made, each)
    )
    setattr(driver, of.__name__, made)
    driver.main()
