"""The log against its model: sends, pulls that wait or do not, filters, retries, dead letters, delays, retention.

Messages are sent one by one, in batches, to a queue that the broker chooses, to a retry topic with tries left or
exhausted, and back by a consumer; each place of each queue shows the same message for ever. Offsets by time and
single messages are looked up at the moments at which something was stored.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.broker_bench import FATES, BrokerBench
from inorder.evidence.machines.programs import ProgramMachine
from specs.model import broker as model
from specs.vocabulary import dead_letter_topic, retry_topic

GROUP = "billing"
TOPIC, NEW_TOPIC = "orders", "made-on-demand"
ALL_TOPICS = (TOPIC, TOPIC, TOPIC, retry_topic(GROUP), dead_letter_topic(GROUP), NEW_TOPIC)
TAGS = (None, "red", "blue")
UNKNOWN_CODE = 31_999

queue_ids = st.sampled_from((0, 0, 1))


class Bench(BrokerBench):
    """Aims at places that there are, and at the times at which they were filled."""

    def batch(self, queue_id: int, count: int) -> None:
        names = tuple(f"m{self._number + 1}-{part}" for part in range(count))
        self.ask("producer", model.SendBatch(TOPIC, queue_id, names))

    def to_any_queue(self) -> None:
        """The broker may choose; the answer says what it chose."""
        self.ask("producer", model.Send(TOPIC, -1, f"m{self._number + 1}"))

    def set_limit(self, limit: int) -> None:
        self.ask("admin", model.CreateGroup(GROUP, limit))

    def read(
        self, topic: str, queue_id: int, place: int, most: int, tags: list[str] | None
    ) -> None:
        """Pull from a place counted from the queue's start; below it for a negative one."""
        start = self.past.starts.get((topic, queue_id), 0)
        self.pull(
            "alice", GROUP, topic, queue_id, max(0, start + place), "answered", most=most, tags=tags
        )

    def park(self, conn: str, queue_id: int, wait_ms: int, tags: list[str] | None) -> None:
        """Wait at the queue's end for what comes next."""
        offset = self.end_of(TOPIC, queue_id)
        self.pull(conn, GROUP, TOPIC, queue_id, offset, "answered", wait_ms=wait_ms, tags=tags)

    def send_back(
        self, topic: str, queue_id: int, place: int, level: int, limit: int | None, fate: str
    ) -> None:
        offset = self.past.starts.get((topic, queue_id), 0) + place
        self.ask("alice", model.SendBack(GROUP, topic, queue_id, offset, level, limit), fate)

    def search(self, queue_id: int, place: int, beyond_ms: int, upper: bool) -> None:
        """Look for the time at which a message was stored, and so much more."""
        log = self.past.logs.get((TOPIC, queue_id), [])
        at_ms = log[place % len(log)].stored_ms if log else self.now_ms
        self.ask("admin", model.Search(TOPIC, queue_id, at_ms + beyond_ms, upper))

    def view(self, topic: str, queue_id: int, offset: int) -> None:
        self.ask("admin", model.View(topic, queue_id, offset))

    def reach_the_next_delay(self, beyond_ms: int) -> None:
        due = sorted(each.due_ms for each in self.past.delayed)
        if due:
            self.wait(max(0, due[0] - self.now_ms + beyond_ms))


class MessageLogMachine(ProgramMachine):
    """See the module."""

    NAME = "message_log"
    bench_class = Bench

    @initialize(version=st.sampled_from(("5.x", "4.9")), limit=st.sampled_from((None, 0, 2)))
    def begin(self, version: str, limit: int | None) -> None:
        self.do("begin", version=version)
        self.do("create_topic", topic=TOPIC, queues=2)
        if limit is not None:
            self.do("set_limit", limit=limit)

    @rule(
        topic=st.sampled_from((TOPIC, TOPIC, TOPIC, NEW_TOPIC)),
        queue_id=st.sampled_from((0, 0, 1, 2)),
        tag=st.sampled_from(TAGS),
        level=st.sampled_from((0, 0, 0, 1, 2, 9)),
        fate=st.sampled_from(FATES),
    )
    def send(self, topic: str, queue_id: int, tag: str | None, level: int, fate: str) -> None:
        level = 0 if len(self.bench.past.delayed) > 2 else level
        self.do("send", topic=topic, queue_id=queue_id, tag=tag, level=level, fate=fate)

    @rule(queue_id=queue_ids, count=st.integers(1, 8))
    def send_many(self, queue_id: int, count: int) -> None:
        for _ in range(count):
            self.do("send", topic=TOPIC, queue_id=queue_id)
            self.do("wait", ms=1)

    @rule(queue_id=st.sampled_from((0, 1, 2)), count=st.integers(1, 3))
    def batch(self, queue_id: int, count: int) -> None:
        self.do("batch", queue_id=queue_id, count=count)

    @rule()
    def to_any_queue(self) -> None:
        self.do("to_any_queue")

    @rule(
        times=st.integers(0, 4),
        limit=st.sampled_from((None, 0, 1, 3)),
        level=st.sampled_from((0, 1, 2)),
        lock=st.booleans(),
        fate=st.sampled_from(FATES),
    )
    def give_up(self, times: int, limit: int | None, level: int, lock: bool, fate: str) -> None:
        """What an orderly consumer sends when tries are exhausted, or not yet; with or without a lease."""
        if lock:
            self.do("lock", who="alice", group=GROUP, queues=[[TOPIC, "b0", 0]], fate="answered")
        level = 0 if len(self.bench.past.delayed) > 2 else level
        fields = {"times": times, "limit": limit, "level": level, "origin": "m1"}
        self.do("send", topic=retry_topic(GROUP), queue_id=0, fate=fate, **fields)
        self.do("read", topic=dead_letter_topic(GROUP), queue_id=0, place=0, most=32, tags=None)

    @rule(
        topic=st.sampled_from((TOPIC, TOPIC, retry_topic(GROUP))),
        queue_id=queue_ids,
        place=st.integers(0, 3),
        level=st.sampled_from((-1, 0, 1)),
        limit=st.sampled_from((None, 0, 1)),
        fate=st.sampled_from(FATES),
    )
    def send_back(
        self, topic: str, queue_id: int, place: int, level: int, limit: int | None, fate: str
    ) -> None:
        level = -1 if len(self.bench.past.delayed) > 2 else level
        self.do(
            "send_back",
            topic=topic,
            queue_id=queue_id,
            place=place,
            level=level,
            limit=limit,
            fate=fate,
        )

    @rule(
        topic=st.sampled_from(ALL_TOPICS),
        queue_id=st.sampled_from((0, 0, 1, 2)),
        place=st.integers(-1, 4),
        most=st.sampled_from((1, 2, 32)),
        tags=st.sampled_from((None, None, ["red"], ["red", "blue"], ["green"])),
    )
    def read(
        self, topic: str, queue_id: int, place: int, most: int, tags: list[str] | None
    ) -> None:
        self.do("read", topic=topic, queue_id=queue_id, place=place, most=most, tags=tags)

    @rule(
        conn=st.sampled_from(("alice", "bob")),
        queue_id=queue_ids,
        wait_ms=st.sampled_from((1, 500, 3_000)),
        tags=st.sampled_from((None, None, ["red"])),
    )
    def park(self, conn: str, queue_id: int, wait_ms: int, tags: list[str] | None) -> None:
        self.do("park", conn=conn, queue_id=queue_id, wait_ms=wait_ms, tags=tags)

    @rule(
        queue_id=queue_ids,
        place=st.integers(0, 5),
        beyond_ms=st.sampled_from((-1, 0, 1)),
        upper=st.booleans(),
    )
    def search(self, queue_id: int, place: int, beyond_ms: int, upper: bool) -> None:
        self.do("search", queue_id=queue_id, place=place, beyond_ms=beyond_ms, upper=upper)

    @rule(topic=st.sampled_from(ALL_TOPICS), queue_id=queue_ids, offset=st.integers(0, 4))
    def view(self, topic: str, queue_id: int, offset: int) -> None:
        self.do("view", topic=topic, queue_id=queue_id, offset=offset)
        self.do("bounds", topic=topic, queue_id=queue_id)

    @rule(queue_id=queue_ids, start=st.integers(0, 3))
    def trim(self, queue_id: int, start: int) -> None:
        self.do("trim", topic=TOPIC, queue_id=queue_id, start=start)

    @rule(beyond_ms=st.sampled_from((-1, 0, 1)))
    def reach_the_next_delay(self, beyond_ms: int) -> None:
        self.do("reach_the_next_delay", beyond_ms=beyond_ms)

    @rule(ms=st.sampled_from((1, 300, 3_000)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @rule(conn=st.sampled_from(("alice", "bob")))
    def close(self, conn: str) -> None:
        self.do("close", conn=conn)

    @rule(down_ms=st.sampled_from((1, 1_500)))
    def crash(self, down_ms: int) -> None:
        self.do("crash")
        self.do("wait", ms=down_ms)
        self.do("restart")

    @rule(is_full=st.booleans())
    def fill(self, is_full: bool) -> None:
        self.do("fill", is_full=is_full)

    @rule()
    def ask_unknown(self) -> None:
        self.do("unknown", code=UNKNOWN_CODE)
