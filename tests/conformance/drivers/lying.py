"""Any driver with one lie between it and the suite: `lying.py LIE COMMAND...`. Each is refuted by the clause beside it.

For drivers that are no Python: what the client did is told otherwise than it was, in the lines of the protocol.
"""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
import threading
import time

DRAWN = itertools.count(1_000_000)  # numbers of calls that the driver has not given


class Lie:
    """Tells the truth. `asked` gives what the driver is to hear in a request's stead, `said` tells of a line."""

    every = 5

    def __init__(self, tell):
        self.tell, self.seen, self.calls = tell, 0, {}

    def asked(self, line):
        yield line

    def said(self, line):
        event = line.get("event")
        if event == "delivered":
            self.calls[line["call"]] = line
            self.delivered(line)
        elif event == "finished":
            self.finished(line, self.calls[line["call"]])
        else:
            getattr(self, event or "answer", self.tell)(line)

    def delivered(self, line):
        self.tell(line)

    def finished(self, line, call):
        self.tell(line)

    def is_due(self):
        self.seen += 1
        return self.seen % self.every == 0

    def again(self, call):
        """A call that was not."""
        number = next(DRAWN)
        self.tell({**call, "call": number})
        self.tell(
            {
                "event": "finished",
                "call": number,
                "outcome": "success",
                "manual": False,
                "suspend_ms": -1,
            }
        )


class Swaps(Lie):
    """ORD-2: what was given to the listener first is told behind what came after it."""

    held = None

    def is_behind(self, call):
        return lane(call) == lane(self.held[0])

    def delivered(self, line):
        if self.held is None and first(line) and self.is_due():
            self.held = [line]
        else:
            self.tell(line)

    def finished(self, line, call):
        if self.held and self.held[0] is call:
            self.held.append(line)
            return
        self.tell(line)
        if self.held and len(self.held) > 1 and first(call) and self.is_behind(call):
            for each in self.held:
                self.tell(each)
            self.held = None


class Mixes(Swaps):
    """ORD-12: the same with the next one of its key."""

    def is_behind(self, call):
        return super().is_behind(call) and message(call)["key"] == message(self.held[0])["key"]


class Repeats(Lie):
    """ORD-10: what was done comes again."""

    def finished(self, line, call):
        self.tell(line)
        if line["outcome"] == "success" and self.is_due():
            self.again(call)


class Miscounts(Lie):
    """RTY-3: what comes again has come once more than it has."""

    def delivered(self, line):
        for each in line["messages"]:
            each["reconsume_times"] += each["reconsume_times"] > 0
        self.tell(line)


class Misplaces(Lie):
    """ORD-7: another message lies at an offset than the one that everybody else sees there."""

    last = None

    def delivered(self, line):
        if self.last is not None and self.is_due():
            message(line)["message_id"] = self.last
        self.last = message(line)["message_id"]
        self.tell(line)


class Spoils(Lie):
    """SND-10: a message comes with another body than it was sent with."""

    def delivered(self, line):
        if self.is_due():
            message(line)["body"] += "!"
        self.tell(line)


class Loses(Lie):
    """SND-1: what is acknowledged was never sent."""

    places = None

    def asked(self, line):
        if line["verb"] != "send" or not self.places or not self.is_due():
            yield line
            return
        self.tell({"event": "sent", "id": line["id"], "outcome": "ok", **self.places})

    def sent(self, line):
        self.places = {word: line[word] for word in ("broker", "queue_id", "queue_offset")}
        self.tell(line)


class Strays(Lie):
    """SND-12: a message was acknowledged in another queue than in which it lies."""

    def sent(self, line):
        if self.is_due():
            line["queue_id"] = (line["queue_id"] + 1) % 4
        self.tell(line)


class Overtakes(Lie):
    """ORD-9: what was sent later lies before what was sent earlier."""

    def __init__(self, tell):
        super().__init__(tell)
        self.last = {}

    def sent(self, line):
        place, offset = line["queue_id"], line["queue_offset"]
        if place in self.last and self.is_due():
            line["queue_offset"] = self.last[place] - 1
        self.last[place] = offset
        self.tell(line)


class Takes(Lie):
    """ASG-1: all queues are everybody's."""

    def assigned(self, line):
        self.tell({**line, "share": line["queues"]})


class Leaves(Lie):
    """ASG-2: the first queue is nobody's."""

    def assigned(self, line):
        self.tell(
            {
                **line,
                "share": line["share"][1:] if line["queues"][0] in line["share"] else line["share"],
            }
        )


class Waits(Lie):
    """ORD-15: one of several sends in flight goes out behind the next one of its key."""

    def __init__(self, tell):
        super().__init__(tell)
        self.held = {}

    def asked(self, line):
        key = line.get("key")
        if line["verb"] == "send" and key not in self.held and self.is_due():
            self.held[key] = line
            return
        yield line
        if line["verb"] == "send" and key in self.held:
            yield self.held.pop(key)


class Returns(Lie):
    """GEN-1: a commit that was refused was accepted, as its client says."""

    def committed(self, line):
        self.tell({**line, "outcome": "ok"})


def message(call):
    return call["messages"][0]


def lane(call):
    return tuple(message(call)[word] for word in ("topic", "broker", "queue_id", "incarnation"))


def first(call):
    return message(call)["reconsume_times"] == 0


LIES = {
    "swaps": (Swaps, "ORD-2"),
    "mixes": (Mixes, "ORD-12"),
    "repeats": (Repeats, "ORD-10"),
    "miscounts": (Miscounts, "RTY-3"),
    "misplaces": (Misplaces, "ORD-7"),
    "spoils": (Spoils, "SND-10"),
    "loses": (Loses, "SND-1"),
    "strays": (Strays, "SND-12"),
    "overtakes": (Overtakes, "ORD-9"),
    "takes": (Takes, "ASG-1"),
    "leaves": (Leaves, "ASG-2"),
    "returns": (Returns, "GEN-1"),
    "waits": (Waits, "ORD-15"),
}


def main(name, *command):
    lock = threading.RLock()

    def tell(line):
        with lock:  # stamped here, so that the lines ascend
            stamped = {**line, "at_us": time.monotonic_ns() // 1000}
            sys.stdout.write(json.dumps(stamped) + "\n")
            sys.stdout.flush()

    lie = LIES[name][0](tell)
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as driver:

        def ask():
            for raw in sys.stdin.buffer:
                with lock:
                    heard = [json.dumps(line) for line in lie.asked(json.loads(raw))]
                driver.stdin.write("".join(f"{line}\n" for line in heard).encode())
                driver.stdin.flush()
            driver.stdin.close()

        threading.Thread(target=ask, daemon=True).start()
        for raw in driver.stdout:
            with lock:
                lie.said(json.loads(raw))
    return driver.returncode


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
