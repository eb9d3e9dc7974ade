"""The driver protocol over librdkafka through confluent-kafka: one process is one client of a plan (../speaking.py).

The application that is played here is the one of the library's own guide: one thread polls, works, and commits.

- Manual commits (`enable.auto.commit` false): after each call that ended well the offset behind it is committed, and
  the answer is waited for. A call that failed is made again: the application waits, and seeks back.
- With `app.on.failure` pause, a setting of this application, it pauses the lane of a call that failed and works on the
  others meanwhile; once the time has come it seeks back, and resumes all that it has.
- Automatic commits: nobody commits but the library, which tells nobody in time; so no commit is told, and a call ends
  (`finished`) only when the next poll begins, for that is what the library is told that the records are done.
  With `enable.auto.offset.store` false the offset is stored once the work is done, as the guide says.
- `app.consumer` share: a member of a share group (SharedWorker), which commits no offsets.
- `added` and `dropped` are the rebalance's callbacks. At each `added` the stored offset is looked up, as the library
  does for itself a moment later.
"""

from __future__ import annotations

import itertools
import threading
import time
import uuid

from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
    libversion,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)
from speaking import BROKER, DONE, Listener, Wrong, ending, note, place, run

POLL_S = 0.05
ANSWER_S = 10.0
READ_S = 30.0
TOLD = ["delivered", "finished", "sent", "added", "dropped", "looked_up", "gave_up"]
"""A consumer gives no message up: with it that can't happen."""
REFUSALS = {
    getattr(KafkaError, name)
    for name in (
        "ILLEGAL_GENERATION",
        "UNKNOWN_MEMBER_ID",
        "FENCED_INSTANCE_ID",
        "FENCED_MEMBER_EPOCH",
        "STALE_MEMBER_EPOCH",
        "_STATE",
    )
    if hasattr(KafkaError, name)  # older libraries do not know the new protocol's
}
"""Of a commit: after these it is certainly not stored, if it was tried once. Of any other error nobody knows."""
TRIED_ONCE_S = 0.05
"""The library tries a commit that had no answer again by itself, after 80 ms at least (`retry.backoff.ms`). So a
refusal that came sooner is the answer to the only try, and a later one may be that to a second, where the first was
stored."""


class Client:
    """Of a plan: its settings, and how it tells what happens."""

    def __init__(self, say, options):
        self.say, self.options = say, options
        self.numbers = itertools.count(1)

    def settings(self, **more):
        """The library's settings for this use of it; the options are the user's, and win."""
        return {**more, **self.options, "bootstrap.servers": self.options["bootstrap.servers"]}

    def stop(self):
        """Nothing is left to do."""


class Sender(Client):
    """A producer, which sends in the order asked for: one message after the other, or `app.in.flight` at a time."""

    def start(self, asked):
        own = {
            "acks": "all",
            "enable.idempotence": True,
            "linger.ms": 0,
            "client.id": asked["client"],
        }
        self.in_flight = int(self.options.get("app.in.flight", 1))
        self.free = threading.Semaphore(self.in_flight)
        self.transactions = is_true(self.options.get("app.transactions", False))
        if self.transactions:
            own["transactional.id"] = asked["client"]
        self.producer = Producer(only(PRODUCER_SETTINGS, self.settings(**own)))
        if self.transactions:
            self.producer.init_transactions(READ_S)
        self.at_work = True
        self.thread = threading.Thread(target=self.hear)
        self.thread.start()

    def hear(self):
        """Answers come to whoever polls."""
        while self.at_work:
            self.producer.poll(POLL_S)

    def send(self, asked):
        def answered(error, message):
            told = {"event": "sent", "id": asked["id"]}
            if error is not None:
                told.update(outcome="unknown", why=str(error)[:200])
            else:
                told.update(outcome="ok", broker=BROKER)
                told.update(queue_id=message.partition())
                if (
                    not self.transactions
                ):  # else there is nothing for consumers yet, and perhaps never
                    told.update(queue_offset=message.offset())
            self.say(**told)
            self.free.release()

        headers = [
            ("id", asked["message"].encode()),
            ("seq", str(asked.get("key_seq", "")).encode()),
        ]
        key = asked.get("key")
        self.free.acquire()
        self.producer.produce(
            asked["topic"],
            asked["body"].encode(),
            key=None if key is None else key.encode(),
            headers=headers,
            on_delivery=answered,
        )

    def send_half(self, asked):
        """All messages in one transaction, which is then committed or aborted."""
        ends, outcome = asked["ends"], "unknown"
        self.producer.begin_transaction()
        for each in asked["messages"]:
            self.send({**each, "id": each["number"], "topic": asked["topic"]})
        self.producer.flush()
        self.say(event="ending", id=asked["id"])
        try:
            if ends == "commit":
                self.producer.commit_transaction(READ_S)
            else:
                self.producer.abort_transaction(READ_S)
            outcome = "ok"
        except KafkaException as error:
            note(f"{ends}: {error}")
            self.give_up(error.args[0])
        self.say(event="ended", id=asked["id"], outcome=outcome)

    def give_up(self, error):
        """Of a transaction that could not be ended as it should; what became of it nobody knows."""
        if error.txn_requires_abort():
            try:
                self.producer.abort_transaction(READ_S)
            except KafkaException as another:
                note(f"abort: {another}")

    def stop(self):
        self.producer.flush()
        self.at_work = False
        self.thread.join()


class Worker(Listener, Client):
    """A consumer: one thread that polls and works.

    lanes: the incarnation of each partition that is ours, by (topic, number).
    """

    def start(self, asked):
        self.listen(asked)
        config = asked.get("config", {})
        self.batch = config.get("batch", 1)
        self.lanes, self.held = {}, None
        self.pauses = self.options.get("app.on.failure") == "pause"
        self.waiting = {}  # lane → when it goes on, and at which offset
        self.unfinished = []
        own = {
            "group.id": self.group,
            "client.id": self.client,
            "auto.offset.reset": "latest" if config.get("consume_from") == "last" else "earliest",
            "enable.auto.commit": False,
        }
        settings = only(CONSUMER_SETTINGS, self.settings(**own))
        self.automatic = is_true(settings["enable.auto.commit"])
        self.stores = self.automatic and not is_true(settings.get("enable.auto.offset.store", True))
        self.consumer = Consumer(settings)
        self.consumer.subscribe(asked["topics"], on_assign=self.assigned, on_revoke=self.revoked)
        self.at_work = True
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    # -------------------------------------------------------------- the loop

    def work(self):
        while self.at_work:
            taken = self.take()
            if taken:
                self.call(taken)
        self.poll_begins()
        self.consumer.close()

    def take(self):
        """Up to `batch` messages of one lane; one of another lane is held for the next time."""
        taken = []
        self.go_on()
        while len(taken) < self.batch:
            message, self.held = self.held or self.poll(0 if taken else POLL_S), None
            if message is None:
                break
            if lane_of(message) in self.waiting:  # it comes again
                continue
            if taken and lane_of(message) != lane_of(taken[0][0]):
                self.held = message
                break
            taken.append((message, self.lanes.get(lane_of(message))))
        # What was taken from us meanwhile is not ours any more, and comes to its new owner.
        return [m for m, inc in taken if inc is not None and self.lanes.get(lane_of(m)) == inc]

    def poll(self, wait_s):
        self.poll_begins()
        message = self.consumer.poll(wait_s)
        if message is not None and message.error() is not None:
            note(f"poll: {message.error()}")
            return None
        return message

    def poll_begins(self):
        """With automatic commits the calls since the last poll are over now."""
        for told in self.unfinished:
            self.say(event="finished", **told)
        self.unfinished = []

    def call(self, messages):
        at = lane_of(messages[0])
        told = [self.told(each) for each in messages]
        rule, number = self.decide(*told), next(self.numbers)
        self.say(event="delivered", call=number, messages=told)
        time.sleep(rule.get("duration_ms", 1) / 1000)
        end = {"call": number, **ending(rule)}
        if end["outcome"] in DONE and self.automatic:
            self.unfinished.append(end)
        else:
            self.say(event="finished", **end)
        if end["outcome"] in DONE:
            self.done(at, messages)
        else:
            self.again(at, messages, end["suspend_ms"])

    def done(self, at, messages):
        behind = messages[-1].offset() + 1
        if self.stores:
            self.consumer.store_offsets(offsets=[TopicPartition(*at, behind)])
        elif not self.automatic:
            self.commit(at, behind)

    def again(self, at, messages, wait_ms):
        """The messages failed: wait, and go back."""
        wait_s = self.wait_s(wait_ms)
        if self.pauses:
            self.consumer.pause([TopicPartition(*at)])
            self.waiting[at] = time.monotonic() + wait_s, messages[0].offset()
        else:
            time.sleep(wait_s)
            self.seek(at, messages[0].offset())

    def go_on(self):
        """Lanes whose time has come; who resumes names all that it has, paused or not."""
        due = [at for at, (until, _) in self.waiting.items() if until <= time.monotonic()]
        for at in due:
            self.seek(at, self.waiting.pop(at)[1])
        if due:
            self.consumer.resume(
                [TopicPartition(*at) for at in self.lanes if at not in self.waiting]
            )

    def seek(self, at, offset):
        try:
            self.consumer.seek(TopicPartition(*at, offset))
        except KafkaException as error:  # the lane is being taken away: its next owner begins there
            note(f"seek: {error}")

    def commit(self, at, value):
        number, lane = next(self.numbers), place(at)
        lane["incarnation"] = self.lanes[at]
        self.say(event="committing", commit=number, value=value, **lane)
        outcome, began = "ok", time.monotonic()
        try:
            for each in self.consumer.commit(
                offsets=[TopicPartition(*at, value)], asynchronous=False
            ):
                if each.error is not None:
                    outcome = refused_or_unknown(each.error)
        except KafkaException as error:
            outcome = refused_or_unknown(error.args[0])
        if outcome == "refused" and time.monotonic() - began > TRIED_ONCE_S:
            outcome = "unknown"
        self.say(event="committed", commit=number, outcome=outcome)

    def told(self, message):
        at = lane_of(message)
        times = self.times(at, message.offset())
        return {**shown(message), "reconsume_times": times, "incarnation": self.lanes[at]}

    # -------------------------------------------------------------- what the group's coordinator says

    def assigned(self, consumer, partitions):
        for each in partitions:
            at = (each.topic, each.partition)
            self.lanes[at] = next(self.numbers)
            self.say(event="added", **place(at), incarnation=self.lanes[at])
        self.look_up(partitions)

    def look_up(self, partitions):
        looks = {}
        for each in partitions:
            at = (each.topic, each.partition)
            looks[at] = next(self.numbers)
            lane = {**place(at), "incarnation": self.lanes[at]}
            self.say(event="looking_up", look=looks[at], **lane)
        try:
            found = self.consumer.committed(partitions, timeout=ANSWER_S)
            answers = {(each.topic, each.partition): each for each in found}
        except KafkaException as error:
            note(f"committed: {error}")
            answers = {}
        for at, number in looks.items():
            answer = answers.get(at)
            if answer is None or answer.error is not None:
                self.say(event="looked_up", look=number, outcome="unknown", value=-1)
            elif answer.offset < 0:
                self.say(event="looked_up", look=number, outcome="refused", value=-1)
            else:
                self.say(event="looked_up", look=number, outcome="ok", value=answer.offset)

    def revoked(self, consumer, partitions):
        self.poll_begins()
        for each in partitions:
            at = (each.topic, each.partition)
            incarnation = self.lanes.pop(at, None)
            self.waiting.pop(at, None)
            if incarnation is not None:
                self.say(event="dropped", **place(at), incarnation=incarnation)
        if self.held is not None and lane_of(self.held) not in self.lanes:
            self.held = None

    def stop(self):
        self.at_work = False
        self.thread.join()


class SharedWorker(Listener, Client):
    """A member of a share group: records are acquired one by one, and acknowledged or released one by one.

    Nobody owns a lane: each member may be given records of all of them, so that is what it says it has.
    """

    def start(self, asked):
        from confluent_kafka import ShareConsumer  # older libraries have none

        self.listen(asked)
        admin = AdminClient(only(COMMON_SETTINGS, self.settings()))
        for topic in asked["topics"]:
            self.say_all("added", topic, admin)
        self.consumer = ShareConsumer(
            only(COMMON_SETTINGS, self.settings())
            | {"group.id": self.group, "share.acknowledgement.mode": "explicit"}
        )
        self.consumer.subscribe(asked["topics"])
        self.at_work = True
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def say_all(self, event, topic, admin):
        """Of each lane of a topic; where a group begins it was told, and nobody looks it up."""
        self.lanes = getattr(self, "lanes", {})
        for number in admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions:
            at = (topic, number)
            self.lanes[at] = next(self.numbers)
            lane = {**place(at), "incarnation": self.lanes[at]}
            self.say(event=event, **lane)
            look = next(self.numbers)
            self.say(event="looking_up", look=look, **lane)
            self.say(event="looked_up", look=look, outcome="refused", value=-1)

    def work(self):
        while self.at_work:
            for message in self.consumer.poll(POLL_S):
                if message.error() is not None:
                    note(f"poll: {message.error()}")
                else:
                    self.take(message)
        self.consumer.close()
        for at, incarnation in self.lanes.items():
            self.say(event="dropped", **place(at), incarnation=incarnation)

    def take(self, message):
        if not self.at_work:  # of those that are left, which another may work on
            self.again(message)
            return
        told = self.told(message)
        rule, number = self.decide(told), next(self.numbers)
        self.say(event="delivered", call=number, messages=[told])
        time.sleep(rule.get("duration_ms", 1) / 1000)
        end = ending(rule)
        self.say(event="finished", call=number, **end)
        if end["outcome"] in DONE:
            self.acknowledge(message, acknowledge_type().ACCEPT)
        else:
            self.again(message)

    def again(self, message):
        """It comes again at once, to whomever."""
        self.acknowledge(message, acknowledge_type().RELEASE)

    def acknowledge(self, message, how):
        """One at a time: a refusal is of a whole batch."""
        try:
            self.consumer.acknowledge(message, how)
            for at, error in self.consumer.commit_sync(ANSWER_S).items():
                if error is not None:
                    note(f"{how} of {message.offset()} in {at}: {error}")
        except KafkaException as error:
            note(f"{how} of {message.offset()}: {error}")

    def told(self, message):
        at = lane_of(message)
        return {
            **shown(message),
            "reconsume_times": max(0, message.delivery_count() - 1),
            "incarnation": self.lanes[at],
        }

    def stop(self):
        self.at_work = False
        self.thread.join()


def acknowledge_type():
    from confluent_kafka import AcknowledgeType  # older libraries have none

    return AcknowledgeType


def shown(message):
    """A record, as it is told."""
    headers = {name: value.decode() for name, value in message.headers() or []}
    key = message.key()
    return {
        **place(lane_of(message)),
        "queue_offset": message.offset(),
        "message_id": headers.get("id"),
        "reconsume_times": 0,
        "body": message.value().decode(),
        "key": None if key is None else key.decode(),
        "key_seq": headers.get("seq") or None,
    }


class Keeper(Client):
    """Nobody's client: prepares topics, reads them, and says what the brokers have stored of a group."""

    def __init__(self, say, options):
        super().__init__(say, options)
        self.admin = AdminClient(only(COMMON_SETTINGS, self.settings()))
        self.askers, self.numbers_of = {}, {}

    def prepare(self, asked):
        copies = int(self.options.get("app.nodes", -1))  # as many as the brokers' own default says
        new = [NewTopic(each["name"], each["queues"], copies) for each in asked["topics"]]
        for future in self.admin.create_topics(new).values():
            future.result(ANSWER_S)
        for each in asked["topics"]:  # who asks a moment later is to find all of it
            until = time.monotonic() + ANSWER_S
            while len(self.partitions(each["name"])) < each["queues"]:
                if time.monotonic() > until:
                    raise Wrong(f"topic {each['name']} is not there after {ANSWER_S:g} s")
                time.sleep(0.05)

        if shares(self.options):
            for group in asked["groups"]:
                self.begins_at_the_first(group)

    def begins_at_the_first(self, group):
        """Of a share group: where it begins is a setting of its own."""
        entry = ConfigEntry(
            "share.auto.offset.reset", "earliest", incremental_operation=AlterConfigOpType.SET
        )
        of = ConfigResource(ResourceType.GROUP, group, incremental_configs=[entry])
        for future in self.admin.incremental_alter_configs([of]).values():
            future.result(ANSWER_S)

    def partitions(self, topic):
        found = self.admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
        return sorted(number for number, each in found.items() if each.leader >= 0)

    def led_partitions(self, topic):
        """All partitions, each with a leader: of one without, nobody says what is in it."""
        until = time.monotonic() + READ_S
        while True:
            found = self.admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
            unled = [number for number, each in found.items() if each.leader < 0]
            if found and not unled:
                return sorted(found)
            if time.monotonic() > until:
                raise Wrong(f"{topic}: nobody leads {unled or 'any partition'} for {READ_S:g} s")
            time.sleep(POLL_S)

    def leader(self, topic):
        """The number of the node that leads the first partition."""
        found = self.admin.list_topics(topic, timeout=ANSWER_S).topics[topic].partitions
        return found[0].leader

    def read(self, asked):
        topic = asked["topic"]
        own = {
            "group.id": f"inorder-reader-{uuid.uuid4()}",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
        }
        reader = Consumer(only(COMMON_SETTINGS, self.settings()) | own)
        try:
            return list(self.messages(reader, topic))
        finally:
            reader.close()

    def messages(self, reader, topic):
        ends = {}
        for number in self.led_partitions(topic):
            low, high = reader.get_watermark_offsets(
                TopicPartition(topic, number), timeout=ANSWER_S
            )
            if high > low:
                ends[number] = high
        reader.assign([TopicPartition(topic, number, OFFSET_BEGINNING) for number in ends])
        until = time.monotonic() + READ_S
        while ends:
            if time.monotonic() > until:
                raise Wrong(f"{topic} could not be read to its end in {READ_S:g} s")
            message = reader.poll(POLL_S)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().code() == KafkaError._PARTITION_EOF:
                    # What ends a transaction is no record, and has the last offset.
                    ends.pop(message.partition(), None)
                continue
            if message.partition() in ends:
                yield shown(message)
            if message.offset() + 1 >= ends.get(message.partition(), 0):
                ends.pop(message.partition(), None)

    def progress(self, asked):
        """The group's stored offsets of a topic; -1 where none is stored."""
        topic, group = asked["topic"], asked["group"]
        if group not in self.askers:  # one that asks for a group is no member of it
            own = {"group.id": group, "enable.auto.commit": False}
            self.askers[group] = Consumer(only(COMMON_SETTINGS, self.settings()) | own)
        if topic not in self.numbers_of:
            self.numbers_of[topic] = self.led_partitions(topic)
        wanted = [TopicPartition(topic, number) for number in self.numbers_of[topic]]
        return [
            {**place((each.topic, each.partition)), "value": max(each.offset, -1)}
            for each in self.askers[group].committed(wanted, timeout=ANSWER_S)
        ]


COMMON_SETTINGS = (
    "bootstrap.",
    "security.",
    "sasl.",
    "ssl.",
    "socket.",
    "client.",
    "debug",
    "metadata.",
    "reconnect.",
    "topic.",
)
PRODUCER_SETTINGS = (*COMMON_SETTINGS, "acks", "enable.idempotence", "linger.", "max.in.flight", "partitioner",
                     "message.timeout", "request.timeout", "retries", "retry.", "compression.",
                     "transactional.")  # fmt: skip
CONSUMER_SETTINGS = (*COMMON_SETTINGS, "group.", "auto.", "enable.auto.", "session.", "heartbeat.", "partition.",
                     "max.poll", "fetch.", "isolation.", "check.", "queued.")  # fmt: skip


def only(prefixes, settings):
    """The library refuses to start a producer with a setting of consumers."""
    return {name: value for name, value in settings.items() if name.startswith(prefixes)}


def is_true(value):
    return str(value).lower() == "true"


def lane_of(message):
    return message.topic(), message.partition()


def refused_or_unknown(error):
    return "refused" if error.code() in REFUSALS else "unknown"


def shares(options):
    return options.get("app.consumer") == "share"


def hello(options):
    """What the greeting says."""
    if shares(options):
        return {
            "driver": "librdkafka",
            "client": libversion()[0],
            "events": TOLD,
            "verbs": ["prepare", "read", "leader"],
        }
    manual = not is_true(options.get("enable.auto.commit", False))
    return {
        "driver": "librdkafka",
        "client": libversion()[0],
        "events": [*TOLD, "committed"] if manual else TOLD,
        "verbs": ["send_half", "prepare", "read", "progress", "leader"],
    }


def main():
    def worker(say, options):
        return (SharedWorker if shares(options) else Worker)(say, options)

    run(hello, Sender, worker, Keeper)


if __name__ == "__main__":
    main()
