"""The orderly consumer core alone, before a scripted broker, against the model of its lanes.

All of the listener's results in both modes, batches, limits, suspend times at the edges of what is allowed, grants
that end, are refused, answered late or not at all, dead letters that fail, pulls that fail, lanes that go to
others and come back, and the shutdown; time passes to the edge of each limit.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from inorder.evidence.machines.consumer_bench import FATES, SCRIPTED, ConsumerBench
from inorder.evidence.machines.programs import ProgramMachine
from specs.plan.plan import LISTENER_OUTCOMES

SUSPENDS_MS = (-1, 0, 9, 10, 11, 100, 30_000, 30_001)
RESULTS = tuple(str(outcome) for outcome in LISTENER_OUTCOMES)


class OrderlyConsumerMachine(ProgramMachine):
    """See the module."""

    NAME = "orderly_consumer"
    bench_class = ConsumerBench

    @initialize(
        queues=st.sampled_from((1, 1, 2, 3)),
        batch=st.sampled_from((1, 1, 2, 3)),
        limit=st.sampled_from((-1, 0, 1, 1, 2)),
        threads=st.sampled_from((20, 20, 1)),
        suspend_ms=st.sampled_from((100, 1_000)),
        count=st.integers(0, 6),
    )
    def begin(
        self, queues: int, batch: int, limit: int, threads: int, suspend_ms: int, count: int
    ) -> None:
        self.do(
            "begin",
            queues=queues,
            batch=batch,
            limit=limit,
            threads=threads,
            suspend_ms=suspend_ms,
            consume_from="first",
            with_retry_topic=False,
        )
        self.do("start")
        self.do("append", queue_id=0, count=count)

    @rule(
        queue_id=st.integers(0, 2),
        count=st.integers(1, 4),
        carried=st.sampled_from((0, 0, 0, 1, 3)),
    )
    def append(self, queue_id: int, count: int, carried: int) -> None:
        self.do("append", queue_id=queue_id, count=count, carried=carried)

    @precondition(lambda self: self.bench.calls)
    @rule(
        which=st.integers(0, 2),
        outcome=st.sampled_from(RESULTS),
        manual=st.sampled_from((False, False, True)),
        suspend_ms=st.sampled_from(SUSPENDS_MS),
    )
    def returns(self, which: int, outcome: str, manual: bool, suspend_ms: int) -> None:
        self.do("returns", which=which, outcome=outcome, manual=manual, suspend_ms=suspend_ms)

    @precondition(lambda self: self.bench.calls)
    @rule(
        results=st.lists(
            st.tuples(
                st.sampled_from(("success", *RESULTS)),
                st.booleans(),
                st.sampled_from((-1, 0, 10, 100)),
                st.sampled_from((-1, 0, 0)),
            ),
            min_size=2,
            max_size=5,
        )
    )
    def return_in_turn(self, results: list[tuple[str, bool, int, int]]) -> None:
        """Several results, and after each the suspend time, or a little less and then the rest of it."""
        for outcome, manual, suspend_ms, beyond_ms in results:
            self.do("returns", which=0, outcome=outcome, manual=manual, suspend_ms=suspend_ms)
            self.do("reach_suspend", which=0, beyond_ms=beyond_ms)
            self.do("wait", ms=-beyond_ms)

    @rule(
        request=st.sampled_from((*SCRIPTED, "lock", "send", "send")),
        fates=st.lists(st.sampled_from(FATES), max_size=4),
    )
    def script(self, request: str, fates: list[str]) -> None:
        self.do("script", request=request, fates=fates)

    @rule(queue_id=st.integers(0, 2), taken=st.booleans())
    def contest(self, queue_id: int, taken: bool) -> None:
        self.do("contest", queue_id=queue_id, taken=taken)

    @rule(which=st.integers(0, 2), beyond_ms=st.sampled_from((-1, 0, 1)))
    def reach_suspend(self, which: int, beyond_ms: int) -> None:
        self.do("reach_suspend", which=which, beyond_ms=beyond_ms)

    @rule(
        which=st.integers(0, 2),
        beyond_ms=st.sampled_from((-1, 0, 1)),
        cut_off=st.booleans(),
        returning=st.booleans(),
    )
    def reach_lease(self, which: int, beyond_ms: int, cut_off: bool, returning: bool) -> None:
        """Mostly with renewals that nobody hears of, and a call that ends then."""
        if cut_off:
            self.do("script", request="lock", fates=["timeout"] * 3)
        self.do("reach_lease", which=which, beyond_ms=beyond_ms)
        if returning:
            self.do("returns", which=0, outcome="success", manual=False, suspend_ms=-1)

    @rule(
        before=st.booleans(),
        after=st.booleans(),
        alone=st.sampled_from((False, False, False, True)),
        notify=st.booleans(),
    )
    def regroup(self, before: bool, after: bool, alone: bool, notify: bool) -> None:
        self.do("regroup", before=before, after=after, alone=alone, notify=notify)

    @rule(queue_id=st.integers(0, 2), value=st.integers(0, 8))
    def store(self, queue_id: int, value: int) -> None:
        """Somebody else stores an offset: it matters when the lane begins."""
        self.do("store", queue_id=queue_id, value=value)

    @rule(queue_id=st.integers(0, 2), start=st.integers(1, 6))
    def trim(self, queue_id: int, start: int) -> None:
        self.do("trim", queue_id=queue_id, start=start)

    @rule(ms=st.sampled_from((1, 10, 99, 500, 1_100, 3_300)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @precondition(lambda self: len(self.steps) > 12)
    @rule(then_ms=st.sampled_from((0, 499, 500, 501)))
    def shut_down(self, then_ms: int) -> None:
        """Up to and beyond the time for which a running call is waited for."""
        self.do("shut_down")
        self.do("wait", ms=then_ms)
