"""The driver protocol over RabbitMQ through pika: one process is one client of a plan (../speaking.py).

A topic is a direct exchange, and its queue N the routing key N; a producer chooses it by the hash of the key. For each
of them every group has a queue of RabbitMQ's own, with a single active consumer, and one more queue, the log, is read
by nobody but the keeper. The application:

- `app.queue`: the groups' queues are `classic` or `quorum` ones, the latter with a delivery limit.
- Every member consumes from all queues of its group, each on a connection of its own; who is active the server decides,
  mostly for who came first, and its first delivery tells it. So that members that start together share the work, a
  member begins with every other queue, by its name, and takes the rest a moment later. `app.prefetch` is how many
  messages it is handed before it acknowledges one.
- A message is acknowledged once its call has ended well. AMQP answers no acknowledgement, so the queue is asked for its
  state on the same channel: by then the server has taken what came before.
- With a prefetch of 1 a message that failed is given back (`nack` with requeue), after as long as the call asked for.
  With more the next ones lie here already, so it is called again on the spot.
- Who leaves ends the call at hand and closes its channel, which gives back what it holds.
- A send is persistent, mandatory, and over when it is confirmed; none is made twice.

A queue of RabbitMQ's numbers nothing. A message's number is when it was published, in µs by the machine's clock, which
its producer puts into it: a channel's messages come in the order in which they were published.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import ssl
import threading
import time
import zlib
from collections import deque

import pika
from pika import __version__ as library_version
from pika.adapters.utils.connection_workflow import AMQPConnectorException
from pika.exceptions import AMQPError, UnroutableError
from speaking import BROKER, DONE, Listener, Wrong, meta_of, note, place, run

PUMP_S = 0.05
LATER_S = 2.0
AGAIN_S = 0.1
"""After a connection that could not be made, as while the server is gone."""
ANSWER_S = 5.0
CONNECT_S = 30.0
DELIVERY_LIMIT = 20
"""Beyond what any message of a plan fails."""
META = "inorder"
LOG = "log"
QUEUES = "queues"
TOLD = ["delivered", "finished", "sent", "gave_up", "added", "dropped", "committed"]
"""Nobody gives a message up: none fails as often as the delivery limit says."""
TROUBLE = (AMQPError, AMQPConnectorException, OSError, ValueError)
"""While a connection is made pika has errors apart: its own that are no AMQPError, and ValueError where it breaks."""


class Client:
    """Of a plan: its settings, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)
        host, _, port = options["server"].rpartition(":")
        own = {}
        if "tls_ca" in options:
            own["ssl_options"] = pika.SSLOptions(
                ssl.create_default_context(cafile=options["tls_ca"]), host
            )
        if "virtual_host" in options:
            own["virtual_host"] = options["virtual_host"]
        self.parameters = pika.ConnectionParameters(
            host,
            int(port),
            credentials=pika.PlainCredentials(
                options.get("username", "guest"), options.get("password", "guest")
            ),
            heartbeat=int(options["heartbeat"]),
            socket_timeout=ANSWER_S,
            stack_timeout=ANSWER_S,
            blocked_connection_timeout=ANSWER_S,
            **own,
        )

    @property
    def prefetch(self):
        return int(self.options.get("app.prefetch", "1"))

    @contextlib.contextmanager
    def channel(self):
        connection = pika.BlockingConnection(self.parameters)
        try:
            yield connection, connection.channel()
        finally:
            with contextlib.suppress(*TROUBLE):
                connection.close()

    def lanes_of(self, topic):
        """The topic's queues: how many there are is told by the queue that holds one message for each of them."""
        until = time.monotonic() + CONNECT_S
        while True:
            try:
                with self.channel() as (_, channel):
                    found = channel.queue_declare(f"{topic}.{QUEUES}", passive=True)
                    return [(topic, number) for number in range(found.method.message_count)]
            except pika.exceptions.ChannelClosedByBroker as error:
                raise Wrong(f"no topic {topic}: {error}") from error
            except TROUBLE as error:
                if isinstance(error, pika.exceptions.AuthenticationError) or (
                    time.monotonic() > until
                ):
                    raise
                note(f"connection: {type(error).__name__}: {error}")
                time.sleep(AGAIN_S)


class Sender(Client):
    """A producer: one message after the other, each once the one before is confirmed."""

    def start(self, asked):
        self.queues, self.turn, self.last = {}, itertools.count(), 0
        self.connection = self.open = None

    def send(self, asked):
        meta = meta_of(asked)
        told = {"event": "sent", "id": asked["id"], "broker": BROKER}
        try:
            at = self.choose(asked["topic"], asked.get("key"))
            told["queue_id"] = at[1]
            told.update(outcome="ok", queue_offset=self.put(at, meta, asked["body"].encode()))
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:200]
            told.update(outcome=self.refused_or_unknown(error), why=why)
            self.hang_up()
        self.say(**told)

    def refused_or_unknown(self, error):
        """What becomes of a send that failed: one that was never made, or that nobody could route, was not done."""
        refused = self.open is None or isinstance(error, UnroutableError)
        return "refused" if refused else "unknown"

    def choose(self, topic, key):
        if topic not in self.queues:
            self.queues[topic] = len(self.lanes_of(topic))
        hashed = next(self.turn) if key is None else zlib.crc32(key.encode())
        return topic, hashed % self.queues[topic]

    def put(self, at, meta, body):
        """Publish it; its number."""
        if self.open is None or not self.open.is_open:
            self.hang_up()
            self.connection = pika.BlockingConnection(self.parameters)
            channel = self.connection.channel()
            channel.confirm_delivery()
            self.open = channel
        number = self.last = max(self.last + 1, time.monotonic_ns() // 1000)
        self.publish(at, number, meta, body)
        return number

    def publish(self, at, number, meta, body):
        headers = {META: json.dumps({**meta, "number": number})}
        properties = pika.BasicProperties(headers=headers, delivery_mode=2)
        self.open.basic_publish(at[0], str(at[1]), body, properties, mandatory=True)

    def hang_up(self):
        if self.connection is not None:
            with contextlib.suppress(*TROUBLE):
                self.connection.close()
        self.connection = self.open = None

    def stop(self):
        self.hang_up()


class Lane:
    """A queue that we consume from, on a connection. number: of our work on it, once it has begun."""

    def __init__(self, at, queue, connection, channel):
        self.at, self.queue, self.connection, self.channel = at, queue, connection, channel
        self.buffer, self.number = deque(), None


class Worker(Listener, Client):
    """A consumer: for each queue one thread, which has a connection, consumes and works."""

    def start(self, asked):
        self.listen(asked)
        self.at_work = True
        lanes = [at for topic in asked["topics"] for at in self.lanes_of(topic)]
        turn = sum(map(ord, self.client)) if len(lanes) > 1 else 0
        self.threads = [
            threading.Thread(target=self.work, args=(at, (turn + at[1]) % 2), daemon=True)
            for at in lanes
        ]
        for thread in self.threads:
            thread.start()

    def work(self, at, later):
        until = time.monotonic() + (LATER_S if later else 0)
        while self.at_work and time.monotonic() < until:
            time.sleep(PUMP_S)
        while self.at_work:
            lane = None
            try:
                with self.channel() as (connection, channel):
                    lane = Lane(at, name_of(at, self.group), connection, channel)
                    self.consume(lane)
                    self.over(lane)
                    self.leave(lane)
            except TROUBLE as error:
                note(f"{at}: {type(error).__name__}: {error}")
                if lane is not None:
                    self.over(lane)
                time.sleep(AGAIN_S)

    def over(self, lane):
        """The work on it has ended; a second call does nothing."""
        if lane.number is not None:
            self.say(event="dropped", **place(lane.at), incarnation=lane.number)
            lane.number = None

    def leave(self, lane):
        """Close the channel, which gives back what it holds at once.

        pika's own `close` cancels first, and rejects what lies with it one by one: by then another has begun.
        """
        until = time.monotonic() + ANSWER_S
        lane.channel._impl.close()
        while not lane.channel.is_closed and time.monotonic() < until:
            lane.connection.process_data_events(PUMP_S)

    def consume(self, lane):
        def take(_channel, method, properties, body):
            lane.buffer.append((method, properties, body))

        lane.channel.basic_qos(prefetch_count=self.prefetch)
        lane.channel.basic_consume(lane.queue, take)
        while self.at_work:
            if not lane.buffer:
                lane.connection.process_data_events(PUMP_S)
                continue
            self.handle(lane, *lane.buffer.popleft())

    def handle(self, lane, method, properties, body):
        """A message: worked on, and then acknowledged or given back."""
        if lane.number is None:
            lane.number = next(self.numbers)
            self.say(event="added", **place(lane.at), incarnation=lane.number)
        told = self.told(lane, properties, body)
        end = self.call(told)
        while end["outcome"] not in DONE and self.prefetch > 1 and self.at_work:
            lane.connection.sleep(self.wait_s(end["suspend_ms"]))
            end = self.call(self.told(lane, properties, body))
        if end["outcome"] in DONE:
            self.done(lane, method, told["queue_offset"] + 1)
        elif self.prefetch == 1:
            lane.connection.sleep(self.wait_s(end["suspend_ms"]))
            self.again(lane, method)

    def told(self, lane, properties, body):
        found = shown(lane.at, properties, body)
        times = self.times(lane.at, found["queue_offset"])
        return {**found, "reconsume_times": times, "incarnation": lane.number}

    def done(self, lane, method, value):
        """Acknowledge it, and wait until the server has taken that."""
        number = next(self.numbers)
        told = {**place(lane.at), "incarnation": lane.number}
        self.say(event="committing", commit=number, value=value, **told)
        try:
            self.acknowledge(lane, method)
        except TROUBLE:
            self.say(event="committed", commit=number, outcome="unknown")
            raise
        self.say(event="committed", commit=number, outcome="ok")

    def acknowledge(self, lane, method):
        lane.channel.basic_ack(method.delivery_tag)
        lane.channel.queue_declare(lane.queue, passive=True)

    def again(self, lane, method):
        lane.channel.basic_nack(method.delivery_tag, requeue=True)

    def stop(self):
        self.at_work = False
        for thread in self.threads:
            thread.join()


class Keeper(Client):
    """Nobody's client: makes exchanges and queues, and reads the logs."""

    def prepare(self, asked):
        with self.channel() as (_, channel):
            channel.confirm_delivery()
            for topic in asked["topics"]:
                name = topic["name"]
                channel.exchange_declare(name, "direct", durable=True)
                for number in range(topic["queues"]):
                    self.add(channel, (name, number), LOG, {})
                    for group in asked["groups"]:
                        self.add(channel, (name, number), group, self.arguments())
                channel.queue_declare(f"{name}.{QUEUES}", durable=True)
                for _ in range(topic["queues"]):
                    kept = pika.BasicProperties(delivery_mode=2)
                    channel.basic_publish("", f"{name}.{QUEUES}", b"", kept)

    def arguments(self):
        found = {"x-single-active-consumer": True}
        if self.options.get("app.queue") == "quorum":
            return {**found, "x-queue-type": "quorum", "x-delivery-limit": DELIVERY_LIMIT}
        return found

    def add(self, channel, at, group, arguments):
        channel.queue_declare(name_of(at, group), durable=True, arguments=arguments)
        channel.queue_bind(name_of(at, group), at[0], str(at[1]))

    def read(self, asked):
        """Each message of the logs; they go back when the channel is closed."""
        return [
            {**shown(at, properties, body), "reconsume_times": 0}
            for at in self.lanes_of(asked["topic"])
            for properties, body in self.logged(name_of(at, LOG))
        ]

    def logged(self, queue):
        with self.channel() as (connection, channel):
            count = channel.queue_declare(queue, passive=True).method.message_count
            found = []

            def take(_channel, _method, properties, body):
                found.append((properties, body))

            channel.basic_consume(queue, take)
            until = time.monotonic() + CONNECT_S
            while len(found) < count and time.monotonic() < until:
                connection.process_data_events(PUMP_S)
            channel._impl.close()  # pika's own would reject each by itself
            if len(found) < count:
                raise Wrong(f"{queue} has {count} messages, and gave {len(found)}")
            return found

    def stop(self):
        """It keeps no connection."""


def name_of(at, group):
    return f"{at[0]}.{at[1]}.{group}"


def shown(at, properties, body):
    """A message, as it is told."""
    meta = json.loads((properties.headers or {}).get(META, "{}"))
    number = meta.pop("number", 0)
    return {
        "message_id": None,
        "key": None,
        "key_seq": None,
        **meta,
        **place(at),
        "queue_offset": number,
        "body": body.decode(),
    }


def hello(options):
    """What the greeting says."""
    return {
        "driver": "pika",
        "client": library_version,
        "events": TOLD,
        "verbs": ["prepare", "read"],
    }


def main():
    run(hello, Sender, Worker, Keeper)


if __name__ == "__main__":
    main()
