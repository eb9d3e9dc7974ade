"""The driver of boto3 with one bug, named by the environment: each is refuted by the clause beside it."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path

PATH = Path(__file__).resolve().parents[3] / "drivers" / "boto3" / "driver.py"
HIDDEN_S = 12
"""Longer than a lease, a pause and the bound together."""
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)


def first_time(told):
    """A line, as if its message were handed out for the first time."""
    return {**told, "reconsume_times": 0} if "lease_until_us" in told else told


class Worker(driver.Worker):
    """Knows the how-manieth message of a lane it is given."""

    def start(self, asked):
        self.counts = {}
        super().start(asked)

    def nth(self, at):
        self.counts[at] = self.counts.get(at, 0) + 1
        return self.counts[at]


class Swaps(Worker):
    """ORD-2, ORD-12: a message is taken, and given to the listener after the one behind it of its key."""

    def take(self, topic, url, message, until):
        held, at = self.__dict__.setdefault("held", {}), driver.at_of(topic, message)
        if at not in held and self.nth(at) % 3 == 1:
            held[at] = message
            self.delete(url, message)
            return
        super().take(topic, url, message, until)
        if at in held:
            before = self.told(at, held[at])
            if before["key"] == self.told(at, message)["key"]:
                del held[at]
                self.call(before)


class Passes(driver.Worker):
    """ORD-3, RTY-4: what failed is deleted, and the next one comes."""

    def again(self, at, url, message, wait_ms):
        self.delete(url, message)


class Quiet(driver.Worker):
    """KEY-1: a message is deleted, and nobody is told: another member is handed the next one of its key."""

    def done(self, at, url, message, until):
        self.delete(url, message)


class Twice(Worker):
    """ORD-10: what was done comes again."""

    def take(self, topic, url, message, until):
        super().take(topic, url, message, until)
        at = driver.at_of(topic, message)
        if self.nth(at) % 5 == 2:
            self.call(self.told(at, message))


class Hurries(driver.Worker):
    """RTY-1: what failed comes again at once."""

    def show_after(self, url, message, seconds):
        super().show_after(url, message, 0)


class Early(driver.Worker):
    """CMT-1: a message is deleted before the work."""

    def take(self, topic, url, message, until):
        at = driver.at_of(topic, message)
        told = self.told(at, message)
        self.done(at, url, message, until)
        self.call(told)


class Back(driver.Worker):
    """CMT-4: an acknowledgement goes back."""

    def done(self, at, url, message, until):
        super().done(at, url, message, until)
        value = driver.which(message)["queue_offset"] + 1
        first = self.__dict__.setdefault("first", {}).setdefault(at, value)
        if value > first:
            number = next(self.numbers)
            self.say(event="committing", commit=number, value=first, **driver.place(at))
            self.say(event="committed", commit=number, outcome="ok")


class Leaves(Worker):
    """LIV-1: a message is passed over in silence."""

    def take(self, topic, url, message, until):
        if self.nth(driver.at_of(topic, message)) % 5 == 3:
            self.delete(url, message)
        else:
            super().take(topic, url, message, until)


class Silent(Worker):
    """PML-1, PML-2: a message is put back, nobody is told, and it is handed out again."""

    def take(self, topic, url, message, until):
        if self.nth(driver.at_of(topic, message)) % 3 == 1:
            self.show_after(url, message, 0)
        else:
            super().take(topic, url, message, until)


class Accepts(Worker):
    """PML-3: a deletion after its time is told as accepted while another receipt of the message lives."""

    def take(self, topic, url, message, until):
        held = self.__dict__.setdefault("held", {})
        at, told = driver.at_of(topic, message), driver.which(message)
        if self.nth(at) % 3 == 1 and message["Attributes"]["ApproximateReceiveCount"] == "1":
            held[told["queue_offset"]] = told
            return
        late = held.pop(told["queue_offset"], None)
        if late is not None:
            number = next(self.numbers)
            self.say(event="acking", ack=number, **late, **driver.place(at))
            self.say(event="acked", ack=number, outcome="ok")
        super().take(topic, url, message, until)


class Recounts(Worker):
    """PML-4: a message that comes again is told as if it came for the first time."""

    def __init__(self, say, options):
        super().__init__(lambda **told: say(**first_time(told)), options)


class Hides(driver.Worker):
    """PML-5: what is put back for a second is put away for many."""

    def show_after(self, url, message, seconds):
        super().show_after(url, message, seconds + HIDDEN_S)


class Loses(driver.Sender):
    """SND-1: an acknowledged message is not there."""

    def put(self, at, meta, body):
        self.turns = getattr(self, "turns", 0) + 1
        return self.turns if self.turns % 5 == 3 else super().put(at, meta, body)


class Doubles(driver.Sender):
    """SND-2: a message lies in two places."""

    def put(self, at, meta, body):
        super().put(at, meta, body)
        return super().put(at, meta, body)

    def send_to(self, url, at, meta, body):
        self.sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageGroupId=str(at[1]),
            MessageDeduplicationId=str(meta["number"]),
            MessageAttributes={
                driver.META: {"DataType": "String", "StringValue": json.dumps(meta)}
            },
        )


class Spoils(driver.Sender):
    """SND-10: a message does not arrive as it was sent."""

    def send_to(self, url, at, meta, body):
        super().send_to(url, at, meta, body + "!")


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Swaps, "ORD-12"),
    "passes": (Passes, "ORD-3"),
    "quiet": (Quiet, "KEY-1"),
    "forgets": (Passes, "RTY-4"),
    "twice": (Twice, "ORD-10"),
    "hurries": (Hurries, "RTY-1"),
    "early": (Early, "CMT-1"),
    "back": (Back, "CMT-4"),
    "leaves": (Leaves, "LIV-1"),
    "shares": (Silent, "PML-1"),
    "silent": (Silent, "PML-2"),
    "accepts": (Accepts, "PML-3"),
    "recounts": (Recounts, "PML-4"),
    "hides": (Hides, "PML-5"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
    "spoils": (Spoils, "SND-10"),
}

if __name__ == "__main__":
    made, _ = BUGS[os.environ["INORDER_SABOTAGE"]]
    setattr(driver, "Sender" if issubclass(made, driver.Sender) else "Worker", made)
    driver.main()
