"""Where a consumer begins: from the first, the last or a time, with an offset stored, missing or not to be had.

For the topic and for the group's own retry topic, on young, old, empty and trimmed queues; the look-up may fail,
before the lane is added and again before the first pull; the end of the queue may not be told.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.consumer_bench import FATES, RETRY, TOPIC, ConsumerBench
from inorder.evidence.machines.programs import ProgramMachine

topics = st.sampled_from((TOPIC, TOPIC, RETRY))
HALF_AN_HOUR_MS = 30 * 60 * 1_000


class StartMatrixMachine(ProgramMachine):
    """See the module."""

    NAME = "start_matrix"
    bench_class = ConsumerBench

    @initialize(
        queues=st.integers(1, 3),
        consume_from=st.sampled_from(("first", "last", "timestamp")),
        filled=st.lists(st.tuples(topics, st.integers(0, 2), st.integers(1, 5)), max_size=4),
        gap_ms=st.sampled_from((0, HALF_AN_HOUR_MS - 1, HALF_AN_HOUR_MS, HALF_AN_HOUR_MS + 1)),
        later=st.lists(st.tuples(topics, st.integers(0, 2), st.integers(1, 5)), max_size=3),
        trimmed=st.lists(st.tuples(st.integers(0, 2), st.integers(1, 4)), max_size=2),
        stored=st.lists(st.tuples(topics, st.integers(0, 2), st.integers(0, 6)), max_size=3),
        fates=st.lists(st.sampled_from(FATES), max_size=3),
        end_fates=st.lists(st.sampled_from(FATES), max_size=2),
    )
    def begin(
        self,
        queues: int,
        consume_from: str,
        filled: list[tuple[str, int, int]],
        gap_ms: int,
        later: list[tuple[str, int, int]],
        trimmed: list[tuple[int, int]],
        stored: list[tuple[str, int, int]],
        fates: list[str],
        end_fates: list[str],
    ) -> None:
        self.do(
            "begin",
            queues=queues,
            batch=1,
            limit=-1,
            threads=20,
            suspend_ms=1_000,
            consume_from=consume_from,
            with_retry_topic=True,
        )
        for topic, queue_id, count in filled:
            self.do("append", topic=topic, queue_id=queue_id, count=count)
        self.do("wait", ms=gap_ms)
        for topic, queue_id, count in later:
            self.do("append", topic=topic, queue_id=queue_id, count=count)
        for queue_id, start in trimmed:
            self.do("trim", queue_id=queue_id, start=start)
        for topic, queue_id, value in stored:
            self.do("store", topic=topic, queue_id=queue_id, value=value)
        self.do("script", request="fetch", fates=fates)
        for request in ("end", "time"):
            self.do("script", request=request, fates=end_fates)
        self.do("start")

    @rule(
        topic=topics,
        queue_id=st.integers(0, 2),
        value=st.integers(0, 6),
        fates=st.lists(st.sampled_from(FATES), max_size=3),
        before=st.booleans(),
    )
    def come_again(
        self, topic: str, queue_id: int, value: int, fates: list[str], before: bool
    ) -> None:
        """The lanes go to another, who stores an offset, and come back."""
        self.do("regroup", before=before, after=False, alone=True, notify=True)
        self.do("wait", ms=100)
        self.do("store", topic=topic, queue_id=queue_id, value=value)
        self.do("script", request="fetch", fates=fates)
        self.do("regroup", before=before, after=False, alone=False, notify=True)
        self.do("wait", ms=700)

    @rule(topic=topics, queue_id=st.integers(0, 2), count=st.integers(1, 3))
    def append(self, topic: str, queue_id: int, count: int) -> None:
        self.do("append", topic=topic, queue_id=queue_id, count=count)

    @rule(ms=st.sampled_from((1, 400, 3_100)), returning=st.integers(0, 3))
    def work(self, ms: int, returning: int) -> None:
        for _ in range(returning):
            self.do("returns", which=0, outcome="success", manual=False, suspend_ms=-1)
        self.do("wait", ms=ms)
