"""The driver protocol over NATS JetStream through nats-py: one process is one client of a plan (../speaking.py).

A topic is a stream, its queue N the subject TOPIC.N; a producer chooses it by the hash of the key. The application:

- `app.consumer` queue: each group has one durable pull consumer for each queue, with explicit acknowledgements and one
  message outstanding (`max_ack_pending` 1), as the guide says of processing in strict order. Every member pulls from
  all of them; whoever is given the message works on it, acknowledges it and waits until the server has processed that
  (`ack_sync`). One that failed is put back with a delay (`nak`).
- `app.outstanding`: so many messages of a queue may be outstanding (`max_ack_pending`), and each member works on as
  many at a time. With more than one an acknowledgement says nothing of the messages before: no commits are told.
- `app.late.acks` drop: a message is ours until `ack_wait` after we asked for it. What comes later is not worked on, and
  what took longer is not acknowledged, for by then it may be another's, and the guide warns that the server would take
  our acknowledgement for the other's. `send` does both all the same.
- `app.consumer` ordered: each member reads all queues by ordered consumers, from the first message on; there is
  nothing to acknowledge, and a call that failed is made again on the spot.
- `app.rollups` true: each message is followed by the queue's state, on TOPIC.N.state, which by a rollup takes the place
  of the one before. The state is the application's own affair, and nothing is told of it.
- `app.filters`: a consumer has a second filter: `state`, just that subject; `below`, TOPIC.N.>; `wild`, one with a
  wildcard in the midst, which nothing matches.
- While the server is gone nothing is kept to be sent later (`pending_size` 0): whoever asks is refused at once.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import itertools
import json
import ssl
import time
import zlib

import nats
from nats.aio.client import __version__ as library_version
from nats.errors import Error as NatsError
from nats.errors import OutboundBufferLimitError
from nats.js.api import AckPolicy, ConsumerConfig, StreamConfig
from nats.js.errors import NotFoundError, ServiceUnavailableError
from speaking import BROKER, DONE, Listener, Wrong, in_words, meta_of, note, place, run

POLL_S = 0.4
ANSWER_S = 5.0
CONNECT_S = 30.0
READ_S = 30.0
"""The harness waits for an answer twice as long."""
AGAIN_S = 0.05
"""After a pull that could not be made, as while the server is gone."""
LEASE_SPARE_S = 0.1
"""So long before its end a lease counts as over: an acknowledgement takes a moment."""
HEARTBEAT_S = 0.5
PROBE = "inorder-probe"
STATE = "state"
HEADER = "Inorder-Message"
TOLD = ["delivered", "finished", "sent", "gave_up"]
READS = ["added", "dropped", "looked_up"]
OF_LEASES = ["received", "acked", "released"]
"""Nobody gives a message up (there is no `max_deliver`): with that setting it can't happen."""
CONNECTION = ("user", "password", "token", "user_credentials", "nkeys_seed_str")
"""Settings that are the library's own parameters."""


class Client:
    """Of a plan: its settings and its connection, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)
        self.connection = self.stream = None
        self.trouble = "no answer"

    async def connect(self):
        """Once; for good: a server that is gone may come again."""
        if self.connection is not None:
            return
        own = {name: self.options[name] for name in CONNECTION if name in self.options}
        if "tls_ca" in self.options:
            own["tls"] = ssl.create_default_context(cafile=self.options["tls_ca"])
        asked = nats.connect(
            self.options["servers"].split(","),
            error_cb=self.on_error,
            max_reconnect_attempts=-1,
            reconnect_time_wait=0.2,
            connect_timeout=2,
            pending_size=0,
            **own,
        )
        try:
            self.connection = await asyncio.wait_for(asked, CONNECT_S)
        except TimeoutError as error:  # the library tries for ever, the first time too
            servers = self.options["servers"]
            raise Wrong(f"no connection to {servers} in {CONNECT_S:g} s: {self.trouble}") from error
        self.stream = self.connection.jetstream(timeout=ANSWER_S)

    async def on_error(self, error):
        before, self.trouble = self.trouble, in_words(error)
        if self.trouble != before:
            note(f"connection: {self.trouble}")

    async def stop(self):
        await self.close()

    async def close(self):
        if self.connection is not None:
            await self.connection.close()

    @property
    def ordered(self):
        return self.options.get("app.consumer") == "ordered"

    @property
    def outstanding(self):
        return outstanding(self.options)

    def filters(self, at):
        """The subjects of a queue's consumer."""
        topic, number = at
        first = subject(at)
        match self.options.get("app.filters", "one"):
            case "state":
                return [first, f"{first}.{STATE}"]
            case "below":
                return [first, f"{first}.>"]
            case "wild":
                return [first, f"{topic}.*.{STATE}{number}"]
            case _:
                return [first]


class Sender(Client):
    """A producer: one message after the other, each once the one before is acknowledged."""

    async def start(self, asked):
        self.queues, self.turn = {}, itertools.count()
        await self.connect()

    async def send(self, asked):
        place = await self.choose(asked["topic"], asked.get("key"))
        meta = meta_of(asked)
        headers = {HEADER: json.dumps(meta), "Nats-Msg-Id": asked["message"]}
        told = {"event": "sent", "id": asked["id"], "broker": BROKER, "queue_id": place[1]}
        try:
            offset = await self.put(place, asked["body"].encode(), headers)
            told.update(outcome="ok", queue_offset=offset)
        except Exception as error:
            why = f"{type(error).__name__}: {error}"[:200]
            told.update(outcome=refused_or_unknown(error), why=why)
        self.say(**told)
        if self.options.get("app.rollups") == "true":
            try:
                await self.stream.publish(
                    f"{subject(place)}.{STATE}", b"now", headers={"Nats-Rollup": "sub"}
                )
            except Exception as error:  # the next one takes its place
                note(f"state: {type(error).__name__}: {error}")

    async def put(self, place, body, headers):
        """Publish it; its place in the stream."""
        return (await self.stream.publish(subject(place), body, headers=headers)).seq

    async def choose(self, topic, key):
        if topic not in self.queues:
            info = await self.stream.stream_info(topic)
            self.queues[topic] = int(info.config.description)
        hashed = next(self.turn) if key is None else zlib.crc32(key.encode())
        return topic, hashed % self.queues[topic]


class HandOuts:
    """What is told of the messages that a lane's consumer hands out to us, and since when we may have what came.

    The server may answer a question that we have ceased to wait for, once we have asked the next one; and what was
    answered while this process stood still lies unread when it goes on. So before each question the server is asked for
    a sign of life: what it handed out before that has come by then, and what comes later was handed out since.

    signs: gives one, or none in time; a question that none came before tells nothing new.
    """

    def __init__(self, client, at, signs):
        self.client, self.at, self.signs = client, at, signs
        self.asked = collections.deque([(0, now_us())])  # how much had come, and when it was asked
        self.open = collections.deque([self.begin()])

    def begin(self):
        number = next(self.client.numbers)
        self.client.say(event="receiving", receive=number, **place(self.at))
        return number

    async def asks(self, messages, wait_s):
        """Before each question. Those that brought nothing are not told one by one."""
        asked_us = now_us()
        if await self.signs.come(wait_s):
            self.is_about(taken(messages) + 1)
            self.asked.append((messages.delivered, asked_us))
        if len(self.open) == 1:
            self.open.append(self.begin())

    def is_about(self, number):
        """From here on it is about what came as the so many-th: only questions before that can have brought it."""
        while len(self.asked) > 1 and self.asked[1][0] < number:
            self.asked.popleft()

    @property
    def until_us(self):
        """So long what was taken last is ours at least."""
        return self.asked[0][1] + round(self.client.lease_s * 1e6)

    def brought(self, message):
        """It came. What is not the application's own work (another subject) is not told."""
        if message.subject == subject(self.at):
            self.client.say(
                event="received",
                receive=self.open.popleft(),
                key=shown(self.at, 0, message.headers, None)["key"],
                **which(message),
                reconsume_times=message.metadata.num_delivered - 1,
                lease_until_us=self.until_us,
            )


class Signs:
    """Signs of life of the server: words of our own, which it sends back.

    Not the library's `flush`: one that is answered too late ends its reading for good (2.16.0).
    """

    def __init__(self, connection):
        self.connection, self.subject = connection, connection.new_inbox()
        self.numbers = itertools.count(1)

    async def begin(self):
        self.words = await self.connection.subscribe(self.subject)

    async def come(self, wait_s):
        """Does one come in time?"""
        number = str(next(self.numbers)).encode()
        try:
            await self.connection.publish(self.subject, number)
            while (await self.words.next_msg(timeout=wait_s)).data != number:
                pass  # the answer to one that was waited for in vain
        except (NatsError, TimeoutError):  # the server is gone, or takes its time
            return False
        return True

    async def end(self):
        await self.words.unsubscribe()


class Worker(Listener, Client):
    """A consumer: for each queue one task, which pulls and works."""

    async def start(self, asked):
        self.listen(asked)
        self.incarnations = {}
        self.lease_s = float(self.options["ack_wait"])
        await self.connect()
        self.at_work = True
        places = []
        for topic in asked["topics"]:
            info = await self.stream.stream_info(topic)
            places += [(topic, number) for number in range(int(info.config.description))]
        work = self.read_in_order if self.ordered else self.pull
        alike = 1 if self.ordered else self.outstanding
        self.tasks = [asyncio.create_task(work(at)) for at in places for _ in range(alike)]

    async def pull(self, at):
        """The queue's durable consumer, shared with the other members."""
        messages = await self.stream.pull_subscribe_bind(durable(self.group, at), stream=at[0])
        signs = Signs(self.connection)
        await signs.begin()
        handed = HandOuts(self, at, signs)
        while self.at_work:
            message = await self.fetch(messages, POLL_S, handed)
            if message is not None:
                await self.take(at, message, handed.until_us - round(LEASE_SPARE_S * 1e6))
        while messages.pending_msgs:  # it came when we had ceased to wait
            message = await self.fetch(messages, AGAIN_S, handed)
            if message is not None:
                await self.again(at, message, 0)
        await messages.unsubscribe()
        await signs.end()

    async def fetch(self, messages, wait_s, handed):
        await handed.asks(messages, wait_s)
        try:
            message = (await messages.fetch(1, timeout=wait_s))[0]
        except TimeoutError:
            return None
        except Exception as error:
            note(f"pull: {type(error).__name__}: {error}")
            await asyncio.sleep(AGAIN_S)
            return None
        handed.is_about(taken(messages))
        handed.brought(message)
        return message

    async def take(self, at, message, until):
        """A message that is ours at least until then, by our clock."""
        if self.is_late(at, message, until):
            return
        if message.subject != subject(at):  # the application's own, and nothing is told of it
            with contextlib.suppress(OutboundBufferLimitError):
                await message.ack()
            return
        end = await self.call(at, message)
        if self.is_late(at, message, until):
            return
        if end["outcome"] in DONE:
            await self.done(at, message)
        else:
            await self.again(at, message, end["suspend_ms"])

    def is_late(self, at, message, until):
        if self.options.get("app.late.acks") == "send" or now_us() <= until:
            return False
        note(f"{message.metadata.sequence.stream} of {at} may be another's")
        return True

    async def done(self, at, message):
        """Acknowledge it, and wait until the server has processed that."""
        number = next(self.numbers)
        value = message.metadata.sequence.stream + 1
        if self.outstanding == 1:
            self.say(event="committing", commit=number, value=value, **place(at))
        self.say(event="acking", ack=number, **which(message), **place(at))
        outcome = "ok"
        try:
            await message.ack_sync(timeout=ANSWER_S)
        except Exception as error:
            note(f"ack: {type(error).__name__}: {error}")
            outcome = refused_or_unknown(error)
        self.say(event="acked", ack=number, outcome=outcome)
        if self.outstanding == 1:
            self.say(event="committed", commit=number, outcome=outcome)

    async def again(self, at, message, wait_ms):
        """Put it back. The server does not answer that."""
        self.say(event="released", **which(message), **place(at))
        try:
            await message.nak(delay=self.wait_s(wait_ms))
        except (
            OutboundBufferLimitError
        ):  # the server is gone, and takes it back when the lease is over
            note("nak: refused")

    async def read_in_order(self, at):
        """An ordered consumer of our own, which the library makes anew where it finds a gap."""
        number = self.incarnations[at] = next(self.numbers)
        lane = {**place(at), "incarnation": number}
        self.say(event="added", **lane)
        self.say(event="looking_up", look=number, **lane)
        self.say(event="looked_up", look=number, outcome="refused", value=-1)
        messages = await self.stream.subscribe(
            subject(at),
            stream=at[0],
            ordered_consumer=True,
            idle_heartbeat=HEARTBEAT_S,
            config=ConsumerConfig(filter_subjects=self.several(at)),
        )
        while self.at_work:
            try:
                message = await messages.next_msg(timeout=POLL_S)
            except TimeoutError:
                continue
            if message.subject == subject(at):
                end = await self.call(at, message)
                while end["outcome"] not in DONE:
                    await asyncio.sleep(self.wait_s(end["suspend_ms"]))
                    end = await self.call(at, message)
        await messages.unsubscribe()
        self.say(event="dropped", **lane)

    def several(self, at):
        """The filters where there is more than one: a single one is asked for in another way."""
        filters = self.filters(at)
        return filters if len(filters) > 1 else None

    async def call(self, at, message):
        """The listener's work; how it ended."""
        return await self.hear(self.told(at, message))

    def told(self, at, message):
        found = shown(at, message.metadata.sequence.stream, message.headers, message.data)
        if self.ordered:
            times = self.times(at, found["queue_offset"])
            return {**found, "reconsume_times": times, "incarnation": self.incarnations[at]}
        return {**found, "reconsume_times": message.metadata.num_delivered - 1}

    async def stop(self):
        self.at_work = False
        await asyncio.gather(*self.tasks)
        await self.close()


class Keeper(Client):
    """Nobody's client: prepares streams and consumers, reads streams, and says what the server has of a consumer."""

    async def prepare(self, asked):
        await self.connect()
        await self.all_there()
        for topic in asked["topics"]:
            name = topic["name"]
            await self.stream.add_stream(
                StreamConfig(
                    name=name,
                    num_replicas=self.copies,
                    description=str(topic["queues"]),
                    subjects=[f"{name}.>"],
                    allow_rollup_hdrs=True,
                )
            )
            for group in () if self.ordered else asked["groups"]:
                for number in range(topic["queues"]):
                    await self.add((name, number), group)

    async def all_there(self):
        """Until the nodes have chosen who leads them, and each can be given a copy."""
        until = time.monotonic() + CONNECT_S
        while True:
            try:
                await self.stream.add_stream(
                    StreamConfig(name=PROBE, subjects=[PROBE], num_replicas=self.copies)
                )
                return await self.stream.delete_stream(PROBE)
            except Exception as error:
                if time.monotonic() > until:
                    raise Wrong(
                        f"no stream with {self.copies} copies can be made: {error}"
                    ) from error
            await asyncio.sleep(AGAIN_S)

    @property
    def copies(self):
        return int(self.options.get("app.nodes", 1))

    async def leader(self, topic):
        """The number of the node that leads the stream: they are named by their numbers."""
        await self.connect()
        return int((await self.stream.stream_info(topic)).cluster.leader)

    async def add(self, at, group):
        filters = self.filters(at)
        one = {"filter_subject": filters[0]} if len(filters) == 1 else {"filter_subjects": filters}
        await self.stream.add_consumer(
            at[0],
            ConsumerConfig(
                durable_name=durable(group, at),
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=float(self.options["ack_wait"]),
                max_ack_pending=self.outstanding,
                **one,
            ),
        )

    async def read(self, asked):
        """Each message by its number, past all consumers."""
        await self.connect()
        topic = asked["topic"]
        info, found = await patiently(lambda: self.stream.stream_info(topic)), []
        for seq in range(info.state.first_seq, info.state.last_seq + 1):
            try:
                message = await patiently(lambda at=seq: self.stream.get_msg(topic, at))
            except NotFoundError:  # a rollup took it away
                continue
            _, number, *more = message.subject.split(".")
            if not more:
                told = shown((topic, int(number)), seq, message.headers, message.data)
                found.append({**told, "reconsume_times": 0})
        return found

    async def progress(self, asked):
        """Behind what the group has acknowledged without a gap; -1 where that is nothing."""
        await self.connect()
        topic, group = asked["topic"], asked["group"]
        info = await self.stream.stream_info(topic)
        lanes = [(topic, number) for number in range(int(info.config.description))]
        infos = await asyncio.gather(
            *(self.stream.consumer_info(topic, durable(group, at)) for at in lanes)
        )
        return [
            {**place(at), "value": floor + 1 if (floor := each.ack_floor.stream_seq) else -1}
            for at, each in zip(lanes, infos, strict=True)
        ]


async def patiently(read):
    """What was read: a question is lost with the node that led, and asking again changes nothing."""
    until = time.monotonic() + READ_S
    while True:
        try:
            return await read()
        except (nats.errors.TimeoutError, ServiceUnavailableError):
            if time.monotonic() > until:
                raise
        await asyncio.sleep(AGAIN_S)


def outstanding(options):
    return int(options.get("app.outstanding", 1))


def refused_or_unknown(error):
    """What becomes of a request that failed: only one that was never sent is certainly not done."""
    return "refused" if isinstance(error, OutboundBufferLimitError) else "unknown"


def now_us():
    return time.monotonic_ns() // 1000


def taken(messages):
    """How much of what came was taken. Answers that say that there is nothing count as well."""
    return messages.delivered - messages.pending_msgs


def which(message):
    """Its place in the stream, and the name of its lease: the server counts a message's hand-outs."""
    offset = message.metadata.sequence.stream
    return {"queue_offset": offset, "lease_id": f"{offset}/{message.metadata.num_delivered}"}


def subject(at):
    return f"{at[0]}.{at[1]}"


def durable(group, at):
    return f"{group}-{at[1]}"


def shown(at, seq, headers, data):
    """A message, as it is told."""
    meta = json.loads((headers or {}).get(HEADER, "{}"))
    return {
        "message_id": None,
        "key": None,
        "key_seq": None,
        **meta,
        **place(at),
        "queue_offset": seq,
        "body": (data or b"").decode(),
    }


def hello(options):
    """What the greeting says."""
    ordered = options.get("app.consumer") == "ordered"
    leased = OF_LEASES if outstanding(options) > 1 else ["committed", *OF_LEASES]
    return {
        "driver": "nats-py",
        "client": library_version,
        "events": [*TOLD, *(READS if ordered else leased)],
        "verbs": ["prepare", "read", "leader"] + ([] if ordered else ["progress"]),
    }


def main():
    run(hello, Sender, Worker, Keeper)


if __name__ == "__main__":
    main()
