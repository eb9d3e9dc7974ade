"""A driver that is one process for each client, all of them talking to a queue server over TCP.

`networked.py PORT [BUG]`. Nothing of inorder is imported: a driver may be written in any language.
"""

import json
import socket
import sys
import threading
import time

BUG = sys.argv[2] if len(sys.argv) > 2 else ""  # skips, twice, loses or forgets
EVENTS = ["delivered", "finished", "sent", "added", "dropped", "committed", "looked_up", "gave_up"]
HELLO = {"version": 2, "driver": "networked toy", "client": "1", "events": EVENTS}
HELLO["verbs"] = ["prepare", "read"]
out = threading.Lock()


class Server:
    """A client's connection."""

    def __init__(self):
        self.link = socket.create_connection(("127.0.0.1", int(sys.argv[1]))).makefile("rw")
        self.turn = threading.Lock()

    def __call__(self, *ask):
        with self.turn:
            self.link.write(json.dumps(ask) + "\n")
            self.link.flush()
            return json.loads(self.link.readline())


class Driver:
    """One client of a plan."""

    def __init__(self):
        self.server, self.tries, self.at_work = Server(), {}, True
        self.threads, self.numbers = [], iter(range(1, 1 << 60))

    def say(self, **line):
        with out:
            line["at_us"] = time.monotonic_ns() // 1000
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    def consume(self, place):
        while self.at_work:
            if self.server("take", self.group, place):
                self.own(place)
            time.sleep(0.02)

    def own(self, place):
        server, lane = self.server, (self.group, place)
        at = {"topic": place.split()[0], "broker": "b0", "queue_id": int(place.split()[1])}
        at["incarnation"] = next(self.numbers)
        self.say(event="added", **at)
        self.say(event="looking_up", look=at["incarnation"], **at)
        stored = server("stored", *lane)
        self.say(event="looked_up", look=at["incarnation"], outcome="ok", value=stored)
        offset = max(stored, 0) + (BUG == "skips" and stored > 0)
        while self.at_work and (message := server("next", *lane, offset)) is not False:
            if message is None:
                time.sleep(0.02)
            elif self.call(message, at, offset):
                offset += 1
                number = next(self.numbers)
                self.say(event="committing", commit=number, value=offset, **at)
                mine = server("store", *lane, offset)
                self.say(event="committed", commit=number, outcome="ok" if mine else "refused")
            elif BUG == "twice":
                time.sleep(0.1)
                if later := server("next", *lane, offset + 1):
                    self.call(later, at, offset + 1)
        self.say(event="dropped", **at)
        server("free", *lane)

    def call(self, message, at, offset):
        nth = self.tries[message["message_id"]] = self.tries.get(message["message_id"], 0) + 1
        rule, number = self.decide(message, nth), next(self.numbers)
        told = {**message, **at, "queue_offset": offset, "reconsume_times": nth - 1}
        self.say(event="delivered", call=number, messages=[told])
        time.sleep(rule.get("duration_ms", 1) / 1000)
        outcome, wait_ms = rule.get("outcome", "success"), rule.get("suspend_ms", -1)
        self.say(event="finished", call=number, outcome=outcome, manual=False, suspend_ms=wait_ms)
        return outcome in ("success", "commit", "rollback")

    def decide(self, message, nth):
        """The last rule that matches; a message's number stands at the end of its id."""
        number = int(message["message_id"].rpartition("m")[2])
        for rule in reversed(self.rules):
            if rule.get("number", number) == number and nth <= (rule.get("delivery_max") or nth):
                return rule
        return {}

    def send(self, ask):
        message = {"topic": ask["topic"], "message_id": ask["message"], "body": ask["body"]}
        message |= {"key": ask.get("key"), "key_seq": str(ask.get("key_seq") or "")}
        message |= {"properties": {} if BUG == "forgets" else ask.get("properties", {})}
        places = self.server("places", ask["topic"])
        place = places[sum(map(ord, ask.get("key", ""))) % len(places)]
        lost = BUG == "loses" and ask.get("key_seq") == 5
        at = {"broker": "b0", "queue_offset": 0 if lost else self.server("put", place, message)}
        self.say(event="sent", id=ask["id"], outcome="ok", queue_id=int(place.split()[1]), **at)

    def read(self, topic):
        found = []
        for place in self.server("places", topic):
            at = {"broker": "b0", "queue_id": int(place.split()[1]), "reconsume_times": 0}
            while message := self.server("get", place, offset := sum(f[0] == place for f in found)):
                found.append((place, {**message, **at, "queue_offset": offset}))
        return [message for _, message in found]

    def answer(self, ask):
        match ask["verb"]:
            case "hello" if ask["version"] == 2:
                return HELLO
            case "prepare":
                for topic in ask["topics"]:
                    self.server("make", topic["name"], topic["queues"])
            case "start":
                self.group, self.rules = ask["group"], ask.get("listener", [])
                for place in self.server("places", *ask["topics"]) if ask.get("topics") else []:
                    self.threads.append(threading.Thread(target=self.consume, args=[place]))
                    self.threads[-1].start()
            case "send":
                self.send(ask)
            case "read":
                return {"messages": self.read(ask["topic"])}
            case "stop":
                self.at_work = False
                for thread in self.threads:
                    thread.join()
            case other:
                raise ValueError(f"can't do {other}")
        return {}

    def work(self):
        for line in sys.stdin:
            ask = json.loads(line)
            try:
                said = {"ok": True, **self.answer(ask)}
            except (ValueError, KeyError) as error:
                said = {"ok": False, "error": f"{type(error).__name__}: {error}"[:200]}
            if ask["verb"] != "send" or not said["ok"]:
                self.say(reply=ask["id"], **said)
            if ask["verb"] == "stop":
                break


Driver().work()
