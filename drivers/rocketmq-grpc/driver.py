"""The driver protocol over RocketMQ's gRPC client: one process is one client of a plan (../speaking.py).

A queue N of a plan's topic is the message group N, which a producer chooses by the hash of the key: of one group the
messages are worked on one after the other, whoever of the members has them. The proxy puts a message group into a queue
of the broker's, which several may share; a message's number is its offset there. The application:

- A producer sends one message after the other, with what the plan says of it in a property.
- A member is a push consumer of a FIFO group: the library receives, calls, calls again what failed, acknowledges, and
  forwards to the dead letters what failed too often. All that is told of these is told around its own requests.
- A call that is to fail says so, or throws. With `app.null=none` one that is to return nothing does that; else it says
  that it failed.

The library counts its own retries and shows them to nobody, so the count that is told is the application's, of the
calls with what it was handed once.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
import zlib
from importlib.metadata import version

from rocketmq import (
    ClientConfiguration,
    ConsumeResult,
    Credentials,
    FilterExpression,
    Message,
    MessageListener,
    Producer,
    PushConsumer,
)
from rocketmq.grpc_protocol import Code
from rocketmq.v5.exception import BadRequestException, IllegalArgumentException
from speaking import BROKER, DONE, Listener, Wrong, meta_of, note, place, run

REQUEST_S = 5
CONNECT_S = 30.0
AGAIN_S = 0.2
META = "inorder"
TOLD = ["delivered", "finished", "sent", "gave_up", "committed"]


class Failed(Exception):
    """What a listener throws whose call is to end so."""


class Client:
    """Of a plan: its settings, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)
        self.endpoint = options["endpoint"]

    def configured(self):
        return ClientConfiguration(self.endpoint, Credentials(), request_timeout=REQUEST_S)

    def begun(self, make):
        """A client of the library's that has started; the proxy may take a moment to know a new topic."""
        until = time.monotonic() + CONNECT_S
        while True:
            made = make()
            try:
                made.startup()
            except Exception as error:
                if time.monotonic() > until:
                    raise Wrong(f"{self.endpoint}: {type(error).__name__}: {error}") from error
                note(f"start: {type(error).__name__}: {error}")
                time.sleep(AGAIN_S)
            else:
                return made


class Sender(Client):
    """A producer: one message after the other, each once the one before is answered."""

    def start(self, asked):
        self.queues = json.loads(self.options["queues"])
        self.turn = itertools.count()
        self.producer = self.begun(lambda: Producer(self.configured(), tuple(self.queues)))

    def send(self, asked):
        meta = meta_of(asked)
        at = self.choose(asked["topic"], asked.get("key"))
        told = {"event": "sent", "id": asked["id"], "broker": BROKER, "queue_id": at[1]}
        try:
            number = self.put(at, meta, asked["body"])
            told.update(outcome="ok", queue_offset=number)
        except Exception as error:
            refused = isinstance(error, IllegalArgumentException)
            told.update(outcome="refused" if refused else "unknown", why=why(error))
        self.say(**told)

    def choose(self, topic, key):
        hashed = next(self.turn) if key is None else zlib.crc32(key.encode())
        return topic, hashed % self.queues[topic]

    def put(self, at, meta, body):
        """Send it; its number."""
        message = Message()
        message.topic, message.body = at[0], body.encode()
        message.message_group = self.group_of(at)
        message.add_property(META, json.dumps(meta))
        if meta["tags"]:
            message.tag = meta["tags"]
        receipt = self.producer.send(message)
        return receipt.offset  # the queue that it names is the client's guess: the proxy chooses

    def group_of(self, at):
        return str(at[1])

    def stop(self):
        self.producer.shutdown()


class Told(PushConsumer):
    """The library's consumer, which tells its acknowledgements, and what it gives up. worker: ours."""

    def __init__(self, worker, *told):
        self.worker = worker
        super().__init__(*told)
        self.forward = self.rpc_client.forward_message_to_dead_letter_queue_async
        self.rpc_client.forward_message_to_dead_letter_queue_async = self.given_up

    def _ack(self, message):
        self.worker.acknowledge(message, super()._ack)

    def given_up(self, endpoints, asked, **how):
        """Forward a message to the dead letters; the one that this thread has worked on last."""
        answer = self.forward(endpoints, asked, **how)
        if answer.result().status.code == Code.OK:
            self.worker.gave_up()
        return answer


class Worker(Listener, MessageListener, Client):
    """A consumer. The library calls it in threads of its own, one message of a message group at a time."""

    def start(self, asked):
        self.listen(asked)
        self.at_hand = threading.local()
        wanted = asked.get("config", {}).get("subscription", "*")
        topics = {topic: FilterExpression(wanted) for topic in asked["topics"]}
        self.consumer = self.begun(lambda: Told(self, self.configured(), self.group, self, topics))

    def consume(self, message):
        """The listener's work, as the library asks for it."""
        self.at_hand.message = message
        return self.result(self.call(message))

    def result(self, end):
        """What the library is told of a call."""
        if end["outcome"] in DONE:
            return ConsumeResult.SUCCESS
        if end["outcome"] == "threw":
            raise Failed("as the plan says")
        returns_nothing = end["outcome"] == "null" and self.options.get("app.null") == "none"
        return None if returns_nothing else ConsumeResult.FAILURE

    def call(self, message):
        """How it ended."""
        message.calls = getattr(message, "calls", 0) + 1
        return super().call({**shown(message), "reconsume_times": message.calls - 1})

    def acknowledge(self, message, ask):
        """The library's acknowledgement of a message, told around."""
        number, told = next(self.numbers), shown(message)
        value = told["queue_offset"] + 1
        at = place((told["topic"], told["queue_id"]))
        self.say(event="committing", commit=number, value=value, **at)
        try:
            ask(message)
        except Exception as error:
            refused = isinstance(error, BadRequestException)
            self.say(event="committed", commit=number, outcome="refused" if refused else "unknown")
            note(f"acknowledge: {why(error)}")
            raise
        self.say(event="committed", commit=number, outcome="ok")

    def gave_up(self):
        told = shown(self.at_hand.message)
        kept = ("message_id", "topic", "broker", "queue_id", "queue_offset")
        self.say(event="gave_up", **{name: told[name] for name in kept})

    def stop(self):
        self.consumer.shutdown()


class Keeper:
    """Nobody's client: whoever started us makes topics and reads them, without gRPC."""

    def __init__(self, say, options):
        raise Wrong("this driver prepares and reads nothing")


def shown(message):
    """A message, as it is told."""
    meta = json.loads(message.properties[META])
    return {
        **meta,
        **place((message.topic, int(message.message_group))),
        "queue_offset": message.number,
        "tags": message.tag,
        "body": message.body.decode(),
    }


def why(error):
    return f"{type(error).__name__}: {error}"[:200]


def keep_the_place():
    """The library drops where a message lies, which its answer says."""
    decode = Message.fromProtobuf

    def with_the_place(self, answer):
        made = decode(self, answer)
        made.number = answer.system_properties.queue_offset
        return made

    Message.fromProtobuf = with_the_place


def hello(options):
    """What the greeting says."""
    return {
        "driver": "rocketmq-grpc",
        "client": version("rocketmq-python-client"),
        "events": TOLD,
        "verbs": [],
    }


def main():
    keep_the_place()
    run(hello, Sender, Worker, Keeper)


if __name__ == "__main__":
    main()
