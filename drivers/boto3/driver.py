"""The driver protocol over SQS FIFO queues through boto3: one process is one client of a plan (../speaking.py).

Each group has a FIFO queue for each topic, and a queue N of the topic is the message group N, which a producer chooses
by the hash of the key. One more FIFO queue of each topic, the log, is read by nobody but the keeper. The application:

- A producer sends to all of these queues, one after the other, with the message's id against a second sending.
- A member has some workers. Each receives one message, of whatever message group, works on it and deletes it; while it
  is in flight nobody is given another one of its group. One that failed is made visible after as long as the call asked
  for (`ChangeMessageVisibility`, in whole seconds).
- A message is ours until the visibility timeout after we asked for it. What comes later is not worked on, and what took
  longer is deleted all the same: the server refuses that by its receipt handle.
- What a member asks for is tried once: were it tried again by the library, nobody could tell what was done.

A sequence number of SQS' is wider than a place in a history. A message's number is when it was sent, in µs by the
machine's clock, which its producer puts into it.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import threading
import time
import zlib

import boto3
from boto3 import __version__ as library_version
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError
from speaking import BROKER, DONE, Listener, Wrong, meta_of, note, place, run

ANSWER_S = 5.0
CONNECT_S = 20.0
READ_S = 30.0
NOTHING_CAME = 2
"""So many answers in a row without a message: how many a queue holds is said a moment late."""
POLL_S = 1
AGAIN_S = 0.1
WORKERS = 4
LEASE_SPARE_S = 0.1
"""So long before its end a lease counts as over: a deletion takes a moment."""
MOST = 10
ANEW_S = 1.5
"""After so long a question that brought nothing is told as one that did not, and the next one as a new one."""
LOG = "log"
META = "inorder"
QUEUES = "queues"
TOLD = ["delivered", "finished", "sent", "gave_up", "committed", "received", "acked", "released"]
"""Nobody gives a message up (there is no redrive policy): with that setting it can't happen."""
CREDENTIALS = ("aws_access_key_id", "aws_secret_access_key", "aws_session_token")
TROUBLE = (BotoCoreError, ClientError, OSError)


class Client:
    """Of a plan: its settings and its connection, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)
        self.lease_s = int(options["visibility_timeout"])
        self.sqs = self.connected(attempts=2)

    def connected(self, attempts):
        """The library's client. Whose queues these are to be is said by who asks, and never by this machine."""
        own = {name: self.options.get(name, "inorder") for name in CREDENTIALS[:2]}
        if CREDENTIALS[2] in self.options:
            own[CREDENTIALS[2]] = self.options[CREDENTIALS[2]]
        return boto3.session.Session().client(
            "sqs",
            endpoint_url=self.options["endpoint"],
            region_name=self.options.get("region_name")
            or os.environ.get("AWS_DEFAULT_REGION")
            or "us-east-1",
            config=Config(
                connect_timeout=ANSWER_S,
                read_timeout=ANSWER_S,
                retries={"total_max_attempts": attempts, "mode": "standard"},
                max_pool_connections=WORKERS + 2,
            ),
            **own,
        )

    def url_of(self, topic, group):
        """Of a queue, also where the server comes only in a while."""
        until = time.monotonic() + CONNECT_S
        while True:
            try:
                return self.sqs.get_queue_url(QueueName=name_of(topic, group))["QueueUrl"]
            except ClientError as error:
                raise Wrong(f"no queue {name_of(topic, group)}: {error}") from error
            except TROUBLE:
                if time.monotonic() > until:
                    raise
                time.sleep(AGAIN_S)

    def shape_of(self, topic):
        """How many message groups a topic has, and which groups, as the tags of its log say."""
        tags = self.sqs.list_queue_tags(QueueUrl=self.url_of(topic, LOG))["Tags"]
        return int(tags[QUEUES]), tags["groups"].split()

    def stop(self):
        """Nothing is kept open."""


class Sender(Client):
    """A producer: one message after the other, each once the one before is answered."""

    def start(self, asked):
        self.shapes, self.turn, self.last = {}, itertools.count(), 0

    def send(self, asked):
        meta = meta_of(asked)
        told = {"event": "sent", "id": asked["id"], "broker": BROKER}
        try:
            at = self.choose(asked["topic"], asked.get("key"))
            told["queue_id"] = at[1]
            told.update(outcome="ok", queue_offset=self.put(at, meta, asked["body"]))
        except Exception as error:
            refused = isinstance(error, EndpointConnectionError) and not self.made
            why = f"{type(error).__name__}: {error}"[:200]
            told.update(outcome="refused" if refused else "unknown", why=why)
        self.say(**told)

    def choose(self, topic, key):
        self.made = 0
        if topic not in self.shapes:
            queues, groups = self.shape_of(topic)
            self.shapes[topic] = queues, [self.url_of(topic, each) for each in (*groups, LOG)]
        hashed = next(self.turn) if key is None else zlib.crc32(key.encode())
        return topic, hashed % self.shapes[topic][0]

    def put(self, at, meta, body):
        """Send it; its number."""
        number = self.last = max(self.last + 1, time.monotonic_ns() // 1000)
        for url in self.shapes[at[0]][1]:
            self.send_to(url, at, {**meta, "number": number}, body)
            self.made += 1
        return number

    def send_to(self, url, at, meta, body):
        self.sqs.send_message(
            QueueUrl=url,
            MessageBody=body,
            MessageGroupId=str(at[1]),
            MessageDeduplicationId=meta["message_id"],
            MessageAttributes={META: {"DataType": "String", "StringValue": json.dumps(meta)}},
        )


class Questions:
    """What is told of a worker's questions: one may be answered with a message of whatever message group.

    So one of each is told, from a moment before the question on; and what brought nothing is told now and then.
    """

    def __init__(self, client, topic, queues):
        self.client = client
        self.lanes = [(topic, number) for number in range(queues)]
        self.open = {}  # lane → its number, and since when
        self.in_vain = set()  # lanes of which nothing came, though it might have

    def asks(self):
        """Before each question; until when a message that comes is ours at least."""
        now = time.monotonic()
        for at in self.lanes:
            _, since = self.open.get(at, (None, now))
            if at in self.in_vain and now - since > ANEW_S:
                self.end(at, "refused")
            if at not in self.open:
                self.open[at] = next(self.client.numbers), now
                self.client.say(event="receiving", receive=self.open[at][0], **place(at))
        return now + self.client.lease_s

    def brought_nothing(self):
        self.in_vain = set(self.open)

    def brought(self, at, message, until):
        number, _ = self.open.pop(at)
        self.in_vain.discard(at)
        key = shown(at, message)["key"]
        told = {**which(message), "key": key, "lease_until_us": round(until * 1e6)}
        times = int(message["Attributes"]["ApproximateReceiveCount"]) - 1
        self.client.say(event="received", receive=number, reconsume_times=times, **told)

    def end(self, at, outcome):
        number, _ = self.open.pop(at)
        self.in_vain.discard(at)
        self.client.say(event="received", receive=number, outcome=outcome)

    def stop(self):
        for at in sorted(self.in_vain):
            self.end(at, "refused")

    def fail(self):
        """The answer was lost."""
        for at in list(self.open):
            self.end(at, "unknown")


class Worker(Listener, Client):
    """A consumer: some threads, each of which receives and works."""

    def start(self, asked):
        self.listen(asked)
        self.at_work = True
        self.sqs = self.connected(attempts=1)
        urls = [
            (topic, self.url_of(topic, self.group), self.shape_of(topic)[0])
            for topic in asked["topics"]
        ]
        self.threads = [
            threading.Thread(target=self.work, args=each, daemon=True)
            for each in urls
            for _ in range(WORKERS)
        ]
        for thread in self.threads:
            thread.start()

    def work(self, topic, url, queues):
        questions = Questions(self, topic, queues)
        while self.at_work:
            until = questions.asks()
            try:
                message = self.receive(url)
            except TROUBLE as error:
                questions.fail()
                self.trouble(topic, error)
                continue
            if message is None:
                questions.brought_nothing()
            else:
                questions.brought(at_of(topic, message), message, until)
                try:
                    self.take(topic, url, message, until - LEASE_SPARE_S)
                except TROUBLE as error:
                    self.trouble(topic, error)
        questions.stop()

    def trouble(self, topic, error):
        note(f"{topic}: {type(error).__name__}: {error}")
        time.sleep(AGAIN_S)

    def receive(self, url):
        answer = self.sqs.receive_message(
            QueueUrl=url,
            MaxNumberOfMessages=1,
            WaitTimeSeconds=0,
            AttributeNames=["All"],
            MessageAttributeNames=["All"],
        )
        found = answer.get("Messages", [])
        if not found:
            time.sleep(AGAIN_S / 2)
        return found[0] if found else None

    def take(self, topic, url, message, until):
        """A message that is ours at least until then, by our clock."""
        at = at_of(topic, message)
        if time.monotonic() > until:
            note(f"{at}: a message came too late")
            return
        told = self.told(at, message)
        end = self.call(told)
        if end["outcome"] in DONE:
            self.done(at, url, message, until)
        else:
            self.again(at, url, message, end["suspend_ms"])

    def told(self, at, message):
        times = int(message["Attributes"]["ApproximateReceiveCount"]) - 1
        return {**shown(at, message), "reconsume_times": times}

    def done(self, at, url, message, until):
        """Delete it. Once it may be another's that says nothing of how far the lane has come."""
        told, number, commit = which(message), next(self.numbers), None
        if time.monotonic() <= until:
            commit = next(self.numbers)
            value = told["queue_offset"] + 1
            self.say(event="committing", commit=commit, value=value, **place(at))
        self.say(event="acking", ack=number, **told, **place(at))
        try:
            self.delete(url, message)
            outcome = "ok"
        except TROUBLE as error:
            outcome = "refused" if isinstance(error, ClientError) else "unknown"
            note(f"delete: {type(error).__name__}: {error}")
        self.say(event="acked", ack=number, outcome=outcome)
        if commit is not None:
            self.say(event="committed", commit=commit, outcome=outcome)

    def delete(self, url, message):
        self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])

    def again(self, at, url, message, wait_ms):
        """Put it back."""
        seconds, number = math.ceil(self.wait_s(wait_ms)), next(self.numbers)
        told = {"suspend_ms": seconds * 1000, **which(message), **place(at)}
        self.say(event="released", release=number, **told)
        try:
            self.show_after(url, message, seconds)
            outcome = "ok"
        except TROUBLE as error:
            outcome = "refused" if isinstance(error, ClientError) else "unknown"
            note(f"put back: {type(error).__name__}: {error}")
        self.say(event="put_back", release=number, outcome=outcome)

    def show_after(self, url, message, seconds):
        self.sqs.change_message_visibility(
            QueueUrl=url, ReceiptHandle=message["ReceiptHandle"], VisibilityTimeout=seconds
        )

    def stop(self):
        self.at_work = False
        for thread in self.threads:
            thread.join()


class Keeper(Client):
    """Nobody's client: makes queues, and reads the logs."""

    def prepare(self, asked):
        for topic in asked["topics"]:
            tags = {QUEUES: str(topic["queues"]), "groups": " ".join(asked["groups"])}
            for group in (*asked["groups"], LOG):
                self.sqs.create_queue(
                    QueueName=name_of(topic["name"], group),
                    Attributes={"FifoQueue": "true", "VisibilityTimeout": str(self.lease_s)},
                    tags=tags,
                )

    def read(self, asked):
        """Each message of the log, which is emptied by that: until nothing comes and the server says that it is empty.

        That nothing comes says nothing yet: an answer that was lost has taken its messages out of sight.
        """
        topic, found, nothing = asked["topic"], [], 0
        url, until = self.url_of(topic, LOG), time.monotonic() + READ_S
        while nothing < NOTHING_CAME or self.left_in(url):
            if time.monotonic() > until:
                raise Wrong(f"the log of {topic} could not be read to its end in {READ_S:g} s")
            answer = self.sqs.receive_message(
                QueueUrl=url,
                MaxNumberOfMessages=MOST,
                WaitTimeSeconds=POLL_S,
                AttributeNames=["All"],
                MessageAttributeNames=["All"],
            )
            messages = answer.get("Messages", [])
            nothing = 0 if messages else nothing + 1
            for message in messages:
                found.append({**shown(at_of(topic, message), message), "reconsume_times": 0})
                self.sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
        return found

    def left_in(self, url):
        """How many messages the server says that the queue holds, handed out or not."""
        names = ["ApproximateNumberOfMessages", "ApproximateNumberOfMessagesNotVisible"]
        told = self.sqs.get_queue_attributes(QueueUrl=url, AttributeNames=names)["Attributes"]
        return sum(int(told[name]) for name in names)


def name_of(topic, group):
    """SQS' names have at most 80 letters, digits, hyphens and underscores."""
    whole = f"{topic}-{group}"
    return f"{whole[:60]}-{zlib.crc32(whole.encode()):08x}.fifo"


def at_of(topic, message):
    return topic, int(message["Attributes"]["MessageGroupId"])


def which(message):
    """Its number, and the name of its lease."""
    number = json.loads(message["MessageAttributes"][META]["StringValue"])["number"]
    return {
        "queue_offset": number,
        "lease_id": f"{zlib.crc32(message['ReceiptHandle'].encode()):08x}",
    }


def shown(at, message):
    """A message, as it is told."""
    meta = json.loads(message["MessageAttributes"][META]["StringValue"])
    number = meta.pop("number")
    return {**meta, **place(at), "queue_offset": number, "body": message["Body"]}


def hello(options):
    """What the greeting says."""
    return {
        "driver": "boto3",
        "client": library_version,
        "events": TOLD,
        "verbs": ["prepare", "read"],
    }


def main():
    run(hello, Sender, Worker, Keeper)


if __name__ == "__main__":
    main()
