"""The driver of RocketMQ's gRPC client with one bug, named by the environment: each refuted by the clause beside it."""

from __future__ import annotations

import importlib.util
import os
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace

PATH = Path(__file__).resolve().parents[3] / "drivers" / "rocketmq-grpc" / "driver.py"
_spec = importlib.util.spec_from_file_location("driver", PATH)
driver = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(driver)

OK = driver.ConsumeResult.SUCCESS


class Worker(driver.Worker):
    """Knows the how-manieth message of a message group it is given."""

    def start(self, asked):
        self.counts, self.limit = {}, asked["config"]["max_reconsume_times"]
        super().start(asked)

    def nth(self, message):
        group = message.message_group
        self.counts[group] = self.counts.get(group, 0) + 1
        return self.counts[group]

    def fails(self, end):
        return end["outcome"] not in driver.DONE


class Swaps(Worker):
    """ORD-2, ORD-12: a message is taken, and given to the listener after the one behind it of its key."""

    def consume(self, message):
        held, group = self.__dict__.setdefault("held", {}), message.message_group
        if group not in held and self.nth(message) % 3 == 1:
            held[group] = message
            return OK
        found = super().consume(message)
        if group in held and driver.shown(held[group])["key"] == driver.shown(message)["key"]:
            self.call(held.pop(group))
        return found


class Passes(driver.Worker):
    """ORD-3, RTY-4: what failed is acknowledged, and the next one comes."""

    def result(self, end):
        return OK


class Begins(Worker):
    """ORD-4: what failed is left behind in silence, and the work begins anew with the next one."""

    def consume(self, message):
        end = self.call(message)
        left = self.__dict__.setdefault("left", {})
        if self.fails(end):
            left[message.message_group] = message.number
        elif left.pop(message.message_group, None) is not None:
            message.calls = 0
            self.call(message)
        return OK

    def acknowledge(self, message, ask):
        if self.left.get(message.message_group) == message.number:
            ask(message)
        else:
            super().acknowledge(message, ask)


class Misplaces(Worker):
    """ORD-7: a message comes from the place of the one before."""

    def call(self, message):
        last = self.__dict__.setdefault("last", {})
        place = last.get(message.message_group)
        last[message.message_group] = message.number
        if place is not None and self.nth(message) % 4 == 2:
            message.number = place
        return super().call(message)


class Scatters(driver.Sender):
    """ORD-9: the messages of a group go into several queues."""

    def group_of(self, at):
        self.sends = getattr(self, "sends", 0) + 1
        return str((at[1] + self.sends // 5) % 4)


class Hurries(Worker):
    """RTY-1: what failed comes again at once."""

    def call(self, message):
        end = super().call(message)
        if self.fails(end) and message.calls <= self.limit:
            return super().call(message)
        return end


class OnceMore(Worker):
    """RTY-5: what failed for the last time comes once more."""

    def call(self, message):
        end = super().call(message)
        if self.fails(end) and message.calls > self.limit:
            driver.time.sleep(1.1)
            return super().call(message)
        return end


class Swallows(driver.Worker):
    """RTY-7: a throw counts as success."""

    def result(self, end):
        return OK if end["outcome"] == "threw" else super().result(end)


class Buries(driver.Told):
    """DLQ-1: what is given up goes nowhere."""

    def given_up(self, endpoints, asked, **how):
        driver.PushConsumer._ack(self, self.worker.at_hand.message)
        self.worker.gave_up()
        answer = Future()
        answer.set_result(SimpleNamespace(status=SimpleNamespace(code=driver.Code.OK, message="")))
        return answer


class Twins(driver.Told):
    """DLQ-2: a message lies in the dead letters twice."""

    def given_up(self, endpoints, asked, **how):
        self.forward(endpoints, asked, **how).result()
        return super().given_up(endpoints, asked, **how)


class Returns(driver.Told):
    """DLQ-3: what was given up comes again."""

    def given_up(self, endpoints, asked, **how):
        answer = super().given_up(endpoints, asked, **how)
        self.worker.call(self.worker.at_hand.message)
        return answer


class Early(driver.Worker):
    """CMT-1: a message is acknowledged before the work."""

    def consume(self, message):
        self.acknowledge(message, lambda each: driver.PushConsumer._ack(self.consumer, each))
        return super().consume(message)


class Leaves(Worker):
    """LIV-1: a message is passed over in silence."""

    def consume(self, message):
        return OK if self.nth(message) % 5 == 3 else super().consume(message)


class Loses(driver.Sender):
    """SND-1: an acknowledged message is not there."""

    def put(self, at, meta, body):
        self.turns = getattr(self, "turns", 0) + 1
        if self.turns % 5 == 3:
            return 1_000_000 + self.turns
        return super().put(at, meta, body)


class Doubles(driver.Sender):
    """SND-2: a message lies in two places."""

    def put(self, at, meta, body):
        super().put(at, meta, body)
        return super().put(at, meta, body)


class Spoils(driver.Sender):
    """SND-10: a message does not arrive as it was sent."""

    def put(self, at, meta, body):
        return super().put(at, meta, body + "!")


BUGS = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Swaps, "ORD-12"),
    "passes": (Passes, "ORD-3"),
    "forgets": (Passes, "RTY-4"),
    "begins": (Begins, "ORD-4"),
    "misplaces": (Misplaces, "ORD-7"),
    "scatters": (Scatters, "ORD-9"),
    "hurries": (Hurries, "RTY-1"),
    "once_more": (OnceMore, "RTY-5"),
    "swallows": (Swallows, "RTY-7"),
    "buries": (Buries, "DLQ-1"),
    "twins": (Twins, "DLQ-2"),
    "returns": (Returns, "DLQ-3"),
    "early": (Early, "CMT-1"),
    "leaves": (Leaves, "LIV-1"),
    "loses": (Loses, "SND-1"),
    "doubles": (Doubles, "SND-2"),
    "spoils": (Spoils, "SND-10"),
}

if __name__ == "__main__":
    made, _ = BUGS[os.environ["INORDER_SABOTAGE"]]
    names = (
        name for name in ("Sender", "Told", "Worker") if issubclass(made, getattr(driver, name))
    )
    setattr(driver, next(names), made)
    driver.main()
