"""What our drivers in Python share: lines in and out, the listener's rules, and the requests of the driver protocol.

JSON lines come in on stdin and go out on stdout (specs/schemas/driver.v2.json): one process is one client of a plan.
Nothing of inorder is imported; this file and the library under test lie on PYTHONPATH. INORDER_CLIENT_OPTIONS holds
the settings as a JSON object, credentials too: they stand in no command line and in no log.

When stdin ends, whoever started us is gone: we end at once, and nothing is acknowledged or given back.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
import time

PROTOCOL = 2
LINE_BYTES_MAX = 1 << 20
BROKER = "b0"
SUSPEND_LEAST_MS = 10
SENDS = ("send", "send_half")
"""What is answered by events."""
DONE = ("success", "commit", "rollback")


class Wrong(Exception):
    """A request that can't be done, in words."""


def note(words):
    """For whoever reads the driver's log."""
    sys.stderr.write(f"{words}\n")
    sys.stderr.flush()


def meta_of(asked):
    """What a message takes along besides its body, of a request to send it."""
    seq = asked.get("key_seq")
    return {
        "message_id": asked["message"],
        "key": asked.get("key"),
        "key_seq": None if seq is None else str(seq),
        "tags": asked.get("tags"),
        "properties": asked.get("properties", {}),
    }


def place(at):
    return {"topic": at[0], "broker": BROKER, "queue_id": at[1]}


class Output:
    """Lines on stdout, each with the host's clock, in the order of their times, whatever thread says them."""

    def __init__(self):
        self._turn = threading.Lock()
        self._to = sys.stdout
        sys.stdout = sys.stderr  # what a library prints must not stand between our lines

    def __call__(self, **line):
        with self._turn:
            line["at_us"] = time.monotonic_ns() // 1000
            self._to.write(json.dumps(line) + "\n")
            self._to.flush()


class Listener:
    """How a consumer's calls are to end: by the rules of the plan."""

    def listen(self, asked):
        """Before any call. asked: the request to start."""
        self.group, self.client = asked["group"], asked["client"]
        self.rules = asked.get("listener", [])
        self.suspend_ms = asked.get("config", {}).get("suspend_ms", 1000)
        self.began = time.monotonic()
        self.tries = {}

    def times(self, at, offset):
        """How often this client has been given the message."""
        return self.tries.get((*at, offset), 0)

    def decide(self, *told):
        """For the messages of a call, as they are told: the rule of the first one that has one, the last that fits."""
        for each in told:
            mark = (each["topic"], each["queue_id"], each["queue_offset"])
            self.tries[mark] = self.tries.get(mark, 0) + 1
        for each in told:
            for rule in reversed(self.rules):
                if self.fits(rule, each):
                    return rule
        return {}

    def fits(self, rule, told):
        nth = self.times((told["topic"], told["queue_id"]), told["queue_offset"])
        most = rule.get("delivery_max")
        asked = {
            "number": int((told["message_id"] or "m0").rpartition("m")[2] or 0),
            "client": self.client,
            "group": self.group,
            "topic": told["topic"],
            "key": told["key"],
        }
        return (
            all(rule.get(name) in (None, value) for name, value in asked.items())
            and nth >= rule.get("delivery_min", 1)
            and (most is None or nth <= most)
            and (time.monotonic() - self.began) * 1000 >= rule.get("from_ms", 0)
        )

    def wait_s(self, wait_ms):
        """Until what failed comes again."""
        return (self.suspend_ms if wait_ms < 0 else max(wait_ms, SUSPEND_LEAST_MS)) / 1000

    def call(self, told):
        """As `hear`, in a thread that may wait."""
        rule, number = self.decide(told), next(self.numbers)
        self.say(event="delivered", call=number, messages=[told])
        time.sleep(rule.get("duration_ms", 1) / 1000)
        end = ending(rule)
        self.say(event="finished", call=number, **end)
        return end

    async def hear(self, told):
        """A call with one message, as it is told; how it ended."""
        rule, number = self.decide(told), next(self.numbers)
        self.say(event="delivered", call=number, messages=[told])
        await asyncio.sleep(rule.get("duration_ms", 1) / 1000)
        end = ending(rule)
        self.say(event="finished", call=number, **end)
        return end


def ending(rule):
    """How the rule has a call end, as it is told."""
    outcome, wait_ms = rule.get("outcome", "success"), rule.get("suspend_ms", -1)
    return {"outcome": outcome, "manual": False, "suspend_ms": wait_ms}


class Driver:
    """Requests, one after the other. What they are asked of may be coroutines or plain functions.

    sender, worker, keeper: classes, made of `say` and the settings: a producer, a consumer, and nobody's client, which
    prepares and reads. hello: from the settings, what the greeting says besides the version.
    """

    def __init__(self, say, hello, sender, worker, keeper):
        self.say, self.told = say, hello
        self.sender, self.worker, self.made_keeper = sender, worker, keeper
        self.options = json.loads(os.environ.get("INORDER_CLIENT_OPTIONS", "{}"))
        self.client = self.keeper = None
        self.greeted = False

    def hello(self, asked):
        if asked.get("version") != PROTOCOL:
            raise Wrong(f"this driver speaks version {PROTOCOL}, not {asked.get('version')}")
        self.greeted = True
        return {"version": PROTOCOL, **self.told(self.options)}

    async def answer(self, asked):
        """What an answer says besides."""
        verb = asked.get("verb")
        if not self.greeted and verb != "hello":
            raise Wrong("the first request must be hello")
        if verb in ("prepare", "read", "progress", "leader"):
            self.keeper = self.keeper or self.made_keeper(self.say, self.options)
        match verb:
            case "hello":
                return self.hello(asked)
            case "prepare":
                await done(self.keeper.prepare(asked))
            case "read":
                return {"messages": await done(self.keeper.read(asked))}
            case "progress":
                return {"progress": await done(self.keeper.progress(asked))}
            case "leader":
                return {"node": await done(self.keeper.leader(asked["topic"]))}
            case "start":
                made = self.worker if asked["role"] == "consumer" else self.sender
                self.client = made(self.say, self.options)
                await done(self.client.start(asked))
            case "send":
                if not isinstance(self.client, self.sender):
                    raise Wrong("only a producer that was started sends")
                await done(self.client.send(asked))
            case "send_half":
                if not isinstance(self.client, self.sender):
                    raise Wrong("only a producer that was started sends")
                await done(self.client.send_half(asked))
            case "stop":
                for each in (self.client, self.keeper):
                    if each is not None:
                        await done(each.stop())
            case other:
                raise Wrong(f"there is no verb {str(other)[:40]!r}")
        return {}

    async def serve(self):
        """Until stop, or until stdin ends."""
        lines, loop = sys.stdin.buffer, asyncio.get_running_loop()

        def read(most):
            return loop.run_in_executor(None, lines.readline, most)

        while line := await read(LINE_BYTES_MAX + 1):
            if not line.endswith(b"\n"):
                while line and not line.endswith(b"\n"):
                    line = await read(LINE_BYTES_MAX)
                too_long = f"a line is longer than {LINE_BYTES_MAX} bytes"
                self.say(reply=None, ok=False, error=too_long)
                continue
            number, asked = None, {}
            try:
                asked = json.loads(line)
                number = asked["id"]
                said = {"ok": True, **(await self.answer(asked))}
            except Exception as error:
                said = {"ok": False, "error": in_words(error)}
            if asked.get("verb") not in SENDS or not said["ok"]:
                self.say(reply=number, **said)
            if asked.get("verb") == "stop" and said["ok"]:
                return


def in_words(error):
    """On one line: a library's error may hold a whole page, and a time-out of Python's says nothing."""
    silent = "no answer in time" if isinstance(error, TimeoutError) else "no word of why"
    return f"{type(error).__name__}: {' '.join(str(error).split()) or silent}"[:500]


async def done(what):
    """What came of it."""
    return await what if inspect.isawaitable(what) else what


def run(hello, sender, worker, keeper):
    """The whole driver. It ends at once: whoever still works is not to outlive the requests."""

    async def to_the_end():
        await Driver(Output(), hello, sender, worker, keeper).serve()
        sys.stderr.flush()
        os._exit(0)

    asyncio.run(to_the_end())
