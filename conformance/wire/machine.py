"""A Hypothesis state machine that drives one broker over the wire, with the abstract model as its oracle.

Small rules; time is a rule too (where the lease is short enough to wait for). The machine never stops at a broken
rule: it counts it, follows the broker's answer and goes on, so that one run shows everything that differs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    precondition,
    rule,
    run_state_machine_as_test,
)

from conformance.waiting import pass_time
from conformance.wire.session import CLIENTS, QUEUES, Session, World

WHO = st.sampled_from(CLIENTS)
GROUP = st.sampled_from((0, 0, 0, 1))
QUEUE = st.integers(0, QUEUES - 1)
SOME_QUEUES = st.lists(QUEUE, min_size=1, max_size=QUEUES, unique=True)
WAITS_PER_WORLD = 2
"""Waiting for the end of a lease is by far the dearest step."""
FEW_QUEUES = st.lists(st.integers(0, 1), min_size=1, max_size=2, unique=True)


def make_machine(session: Session) -> type[RuleBasedStateMachine]:
    """The machine's class, bound to a session."""
    lease_s = session.config.broker_lease_ms / 1000

    class WireMachine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.world: World = session.world()
            self.waits = 0

        @initialize(who=WHO, queue=QUEUE)
        def fetch_of_an_empty_queue(self, who: str, queue: int) -> None:
            for group in self.world.groups:
                self.world.fetch(who, group, queue)

        @initialize(owner=WHO, stranger=WHO, third=WHO, queue=QUEUE)
        def each_situation_once(self, owner: str, stranger: str, third: str, queue: int) -> None:
            """What a random walk may miss is asked for in every world, by clients that are drawn."""
            self.strangers_unlock(owner, stranger, third, queue)
            self.unlock(owner, 0, [queue])
            self.batch_that_is_free_in_part(owner, 1, queue)
            self.lanes_beside_a_lane(owner, 1, queue)
            self.retry_under_lock(owner)
            self.give_up(stranger, 0, 1, queue)
            self.ask_for_what_is_not_there(third, queue)
            self.list_members(owner, 0)
            self.join(third, 0)
            self.disconnect(third)
            self.list_members(owner, 0)
            self.fetch_of_a_young_queue(owner, queue)

        @initialize(who=WHO)
        def first_commits_of_a_group(self, who: str) -> None:
            for queue in range(QUEUES):
                self.world.commit(who, self._group(1), queue, queue + 1)
            for queue in range(QUEUES):
                self.world.fetch(who, self._group(1), queue)

        def teardown(self) -> None:
            self.world.close()

        def _group(self, index: int) -> str:
            return self.world.groups[index]

        @rule(who=WHO, group=GROUP, queues=FEW_QUEUES)
        def lock(self, who: str, group: int, queues: list[int]) -> None:
            self.world.lock(who, self._group(group), queues)

        @rule(who=WHO, queues=SOME_QUEUES)
        def lock_many(self, who: str, queues: list[int]) -> None:
            self.world.lock(who, self._group(0), queues)

        @rule(who=WHO, group=GROUP, queues=FEW_QUEUES)
        def unlock(self, who: str, group: int, queues: list[int]) -> None:
            self.world.unlock(who, self._group(group), queues)

        @rule(owner=WHO, turn=st.integers(1, 2), queue=QUEUE)
        def batch_that_is_free_in_part(self, owner: str, turn: int, queue: int) -> None:
            """One holds a lane, another asks for all of them."""
            other = self._another(owner, turn)
            self.world.unlock(other, self._group(0), list(range(QUEUES)))
            self.world.lock(owner, self._group(0), [queue])
            self.world.lock(other, self._group(0), list(range(QUEUES)))
            self.world.unlock(other, self._group(0), list(range(QUEUES)))

        @rule(owner=WHO, turn=st.integers(1, 2), queue=QUEUE)
        def lanes_beside_a_lane(self, owner: str, turn: int, queue: int) -> None:
            """Group, topic, broker and queue are each enough to make another lane."""
            self.world.neighbours(owner, self._another(owner, turn), queue)

        def _another(self, who: str, turn: int) -> str:
            return CLIENTS[(CLIENTS.index(who) + turn) % len(CLIENTS)]

        @rule(owner=WHO, stranger=WHO, third=WHO, queue=QUEUE)
        def strangers_unlock(self, owner: str, stranger: str, third: str, queue: int) -> None:
            group = self._group(0)
            self.world.lock(owner, group, [queue])
            self.world.unlock(stranger, group, [queue])
            self.world.lock(third, group, [queue])

        @precondition(lambda self: session.lease_known and self.waits < WAITS_PER_WORLD)
        @rule(owner=WHO, other=WHO, queue=QUEUE, renew=st.booleans())
        def outlive_a_lease(self, owner: str, other: str, queue: int, renew: bool) -> None:
            group = self._group(0)
            self.waits += 1
            self.world.lock(owner, group, [queue])
            if (
                renew
            ):  # half a lease later the lease is young again, and half of the rest must not free it
                self._sleep(lease_s / 2)
                self.world.lock(owner, group, [queue])
                self._sleep(lease_s * 0.7)
            else:
                self._sleep(lease_s + 0.01)
            self.world.lock(other, group, [queue])

        def _sleep(self, seconds: float) -> None:
            """Let time pass: here the passing of time itself is the input."""
            pass_time(seconds)

        @rule(who=WHO, queue=QUEUE)
        def send(self, who: str, queue: int) -> None:
            self.world.send(who, queue)

        @rule(
            who=WHO,
            group=GROUP,
            queue=QUEUE,
            back=st.integers(1, 3),
            beyond=st.sampled_from((1, 2, 1000)),
        )
        def pull_inside_at_and_beyond_the_end(
            self, who: str, group: int, queue: int, back: int, beyond: int
        ) -> None:
            self.world.send(who, queue)  # an empty queue answers differently at 0
            end = self.world.end(queue)
            if end is not None:
                for offset in (max(end - back, 0), end, end + beyond):
                    self.world.pull(who, self._group(group), queue, offset)

        @rule(who=WHO, beyond=st.integers(0, 5))
        def ask_for_what_is_not_there(self, who: str, beyond: int) -> None:
            self.world.send(who, QUEUES + beyond)
            self.world.pull(who, self._group(0), QUEUES + beyond, 0)
            self.world.pull_unknown_topic(who, self._group(0))
            self.world.commit_unknown(who, topic=False)
            self.world.commit_unknown(who, topic=True)
            self.world.ask_unknown(who)

        @rule(who=WHO, group=GROUP, queue=QUEUE, value=st.sampled_from((0, 1, 2, 5, 99_999)))
        def commit(self, who: str, group: int, queue: int, value: int) -> None:
            self.world.commit(who, self._group(group), queue, value)

        @rule(who=WHO, group=GROUP, queue=QUEUE)
        def fetch(self, who: str, group: int, queue: int) -> None:
            self.world.fetch(who, self._group(group), queue)

        @rule(who=WHO, queue=QUEUE)
        def fetch_of_a_young_queue(self, who: str, queue: int) -> None:
            self.world.send(who, queue)
            self.world.settle(who, queue)
            self.world.fetch(who, self._group(0), queue)

        @rule(who=WHO, queue=QUEUE)
        def a_pull_moves_no_offset(self, who: str, queue: int) -> None:
            self.world.send(who, queue)
            self.world.commit(who, self._group(0), queue, 1)
            end = self.world.end(queue)
            if end is not None:
                self.world.pull(who, self._group(0), queue, end)
            self.world.fetch(who, self._group(0), queue)

        @rule(who=WHO, queue=QUEUE, other=st.sampled_from(CLIENTS))
        def commit_and_fetch(self, who: str, queue: int, other: str) -> None:
            self.world.commit(who, self._group(0), queue, 7)
            self.world.fetch(other, self._group(0), queue)

        @rule(who=WHO, group=GROUP)
        def join(self, who: str, group: int) -> None:
            self.world.join(who, self._group(group))

        @rule(who=WHO)
        def disconnect(self, who: str) -> None:
            self.world.disconnect(who)

        @rule(who=WHO, group=GROUP)
        def list_members(self, who: str, group: int) -> None:
            self.world.list_members(who, self._group(group))

        @rule(who=WHO, group=GROUP, limit=st.sampled_from((0, 1, 2)), queue=QUEUE)
        def give_up(self, who: str, group: int, limit: int, queue: int) -> None:
            self.world.join(who, self._group(group))  # the heartbeat makes the group's retry topic
            self.world.send(who, queue)
            self.world.give_up(who, self._group(group), limit)

        @rule(who=WHO)
        def retry_under_lock(self, who: str) -> None:
            self.world.join(who, self._group(1))
            self.world.lock(who, self._group(1), [3])
            self.world.retry_under_lock(who, self._group(1))

        @rule(who=WHO, queue=QUEUE)
        def max_offset(self, who: str, queue: int) -> None:
            self.world.settle(who, queue)

    return WireMachine


def run_machine(
    session: Session,
    run_seed: int,
    examples: int,
    steps: int = 60,
    progress: Callable[[int], Any] | None = None,
) -> None:
    """Drive the broker through `examples` examples; what was found is in the session."""
    machine = make_machine(session)

    class Counted(machine):  # type: ignore[valid-type, misc]
        def teardown(self) -> None:
            super().teardown()
            if progress is not None:
                progress(session.worlds)

    run_state_machine_as_test(
        seed(run_seed)(Counted),
        settings=settings(
            max_examples=examples,
            stateful_step_count=steps,
            phases=[Phase.generate],
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
            print_blob=False,
        ),
    )
