"""The concurrent and the key-ordered consumer core alone, before a scripted broker, against the model of their lanes.

Calls of one lane that end in another order than they began in, keys of which one is stuck, send-backs and dead
letters that are refused, answered late or not at all, lanes too full to be pulled, lanes that go to others and come
back in the middle of that, and the shutdown.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, precondition, rule

from inorder.evidence.machines.consumer_bench import FATES, SCRIPTED
from inorder.evidence.machines.orderly_consumer import RESULTS
from inorder.evidence.machines.programs import ProgramMachine
from inorder.evidence.machines.side_by_side_bench import SideBySideBench

KEYS = ("", "red", "red", "blue", "green")
SUSPENDS_MS = (-1, 0, 9, 10, 100, 1_000)


class SideBySideConsumerMachine(ProgramMachine):
    """See the module."""

    NAME = "side_by_side_consumer"
    bench_class = SideBySideBench

    @initialize(
        mode=st.sampled_from(("concurrent", "key_ordered")),
        queues=st.sampled_from((1, 1, 2, 3)),
        batch=st.sampled_from((1, 1, 2, 3)),
        limit=st.sampled_from((-1, 0, 1, 2)),
        threads=st.sampled_from((20, 3, 1)),
        suspend_ms=st.sampled_from((100, 1_000)),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6),
    )
    def begin(
        self,
        mode: str,
        queues: int,
        batch: int,
        limit: int,
        threads: int,
        suspend_ms: int,
        keys: list[str],
    ) -> None:
        self.do(
            "begin",
            mode=mode,
            queues=queues,
            batch=batch,
            limit=limit,
            threads=threads,
            suspend_ms=suspend_ms,
        )
        self.do("start")
        self.do("append", queue_id=0, count=len(keys), keys=keys)

    @rule(
        queue_id=st.integers(0, 2),
        keys=st.lists(st.sampled_from(KEYS), min_size=1, max_size=6),
        carried=st.sampled_from((0, 0, 0, 1, 3)),
    )
    def append(self, queue_id: int, keys: list[str], carried: int) -> None:
        self.do("append", queue_id=queue_id, count=len(keys), carried=carried, keys=keys)

    @precondition(lambda self: self.bench.calls)
    @rule(
        which=st.integers(0, 5),
        outcome=st.sampled_from(RESULTS),
        suspend_ms=st.sampled_from(SUSPENDS_MS),
    )
    def returns(self, which: int, outcome: str, suspend_ms: int) -> None:
        self.do("returns", which=which, outcome=outcome, suspend_ms=suspend_ms)

    @precondition(lambda self: self.bench.calls)
    @rule(
        results=st.lists(
            st.tuples(st.integers(0, 5), st.sampled_from(("success", *RESULTS))), max_size=6
        )
    )
    def several_return(self, results: list[tuple[int, str]]) -> None:
        for which, outcome in results:
            self.do("returns", which=which, outcome=outcome, suspend_ms=-1)

    @rule(
        request=st.sampled_from(
            (*(name for name in SCRIPTED if name != "lock"), "send", "back", "back", "back")
        ),
        fates=st.lists(st.sampled_from(FATES), max_size=4),
    )
    def script(self, request: str, fates: list[str]) -> None:
        self.do("script", request=request, fates=fates)

    @rule(which=st.integers(0, 2), beyond_ms=st.sampled_from((-1, 0, 1)))
    def reach_suspend(self, which: int, beyond_ms: int) -> None:
        self.do("reach_suspend", which=which, beyond_ms=beyond_ms)

    @rule(
        before=st.booleans(),
        after=st.booleans(),
        alone=st.sampled_from((False, False, False, True)),
        notify=st.booleans(),
    )
    def regroup(self, before: bool, after: bool, alone: bool, notify: bool) -> None:
        self.do("regroup", before=before, after=after, alone=alone, notify=notify)

    @rule(queue_id=st.integers(0, 2), start=st.integers(1, 6))
    def trim(self, queue_id: int, start: int) -> None:
        self.do("trim", queue_id=queue_id, start=start)

    @rule(ms=st.sampled_from((1, 10, 99, 500, 700, 1_100, 3_300)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @precondition(lambda self: len(self.steps) > 12)
    @rule(then_ms=st.sampled_from((0, 499, 500, 501)))
    def shut_down(self, then_ms: int) -> None:
        """Up to and beyond the time for which running calls are waited for."""
        self.do("shut_down")
        self.do("wait", ms=then_ms)
