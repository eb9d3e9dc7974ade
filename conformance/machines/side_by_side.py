"""The cluster machine for groups that do not consume in the orderly mode: concurrent, key-ordered, broadcast.

Everything that can happen to a cluster happens to theirs as well. What is added are the occasions of their own:
calls of one queue that end in another order than they began in, keys of which one is stuck, messages that are sent
back and come again, and members that go in the middle of that.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from conformance.machines.cluster import (
    GROUPS,
    KEYS,
    MESSAGES_MAX,
    PRODUCERS,
    SHORT,
    SUSPENDS_MS,
    TOPIC,
    ClusterMachine,
    Collector,
)
from reference_impl.protocol.codes import RequestCode
from specs.faults import crash, drop_next
from specs.plan.plan import ListenerRule
from specs.vocabulary import Outcome

SHORT_LEVELS = "1s 1s 1s 2s 2s 3s 3s"
LEVELS = (0, 0, 0, 1, 4, 9, -1)
"""What a concurrent listener asks for: mostly nothing, a level below the usual ones, one of them, one too high, or
the dead letters at once."""


class SideBySideMachine(ClusterMachine):
    """See the module."""

    short: ClassVar[Mapping[str, Any]] = {**SHORT, "delay_levels": SHORT_LEVELS}
    knows_manual: ClassVar[bool] = False

    @property
    def members(self) -> list[str]:
        """Who of the first group runs."""
        return [
            client.id
            for client in self.plan.clients
            if client.group == GROUPS[0] and self.is_up(client.id)
        ]

    def is_up(self, name: str) -> bool:
        return self.world.is_running(name) and not self.world.is_paused(name)

    @precondition(lambda self: self.sent < 2 * MESSAGES_MAX)
    @rule(
        keys=st.integers(0, 4),
        durations=st.lists(st.sampled_from((1, 5, 40, 400, 1_300)), min_size=2, max_size=6),
        failing=st.integers(0, 7),
        how=st.sampled_from((Outcome.SUSPEND, Outcome.SUSPEND, Outcome.THREW, Outcome.NULL)),
        times=st.integers(1, 3),
        suspend_ms=st.sampled_from(SUSPENDS_MS),
        level=st.sampled_from(LEVELS),
        gap_ms=st.sampled_from((1, 20, 400, 1_100, 2_500)),
    )
    def work_of_all_lengths(
        self,
        keys: int,
        durations: list[int],
        failing: int,
        how: Outcome,
        times: int,
        suspend_ms: int,
        level: int,
        gap_ms: int,
    ) -> None:
        """A burst for each of some keys, or for none, whose calls take different times, and one of which fails."""
        for place in range(max(1, keys)):
            first = self.world.message_number + 1
            self.sent += len(durations)
            for at, duration_ms in enumerate(durations):
                turned = durations[(at + place) % len(durations)] if place else duration_ms
                self.listen(ListenerRule(duration_ms=turned, number=first + at))
            if failing < len(durations):
                self.listen(
                    ListenerRule(
                        outcome=how,
                        suspend_ms=suspend_ms,
                        delay_level=level,
                        duration_ms=2,
                        number=first + failing,
                        delivery_max=times,
                    )
                )
            key = {"key": KEYS[place]} if keys else {}
            self.do("send", client=PRODUCERS[0], topic=TOPIC, count=len(durations), **key)
        self.wait(gap_ms)

    @rule(
        number=st.integers(0, 5),
        how=st.sampled_from(("stop", crash.VERB, "vanish")),
        down_ms=st.sampled_from((1, 300, 1_500)),
    )
    def come_back(self, number: int, how: str, down_ms: int) -> None:
        """A member goes in the middle of its work, and a new process of it comes."""
        if self.members:
            who = self.pick(self.members, number)
            if self.sent < 2 * MESSAGES_MAX:
                self.load(len(KEYS), 2, "light", "default")
                self.wait(30)
            if how == "stop":
                self.do("stop", client=who)
            else:
                self.do(crash.VERB, client=who, silent=how == "vanish")
            self.wait(max(down_ms, self.config.shutdown_wait_ms + 50 if how == "stop" else 1))
            self.do(crash.HEALED_BY, client=who)
            self.wait(300)

    @rule(
        number=st.integers(0, 5),
        server=st.integers(0, 1),
        answer=st.booleans(),
        code=st.sampled_from((RequestCode.CONSUMER_SEND_MSG_BACK, RequestCode.SEND_MESSAGE_V2)),
    )
    def lose_a_return(self, number: int, server: int, answer: bool, code: RequestCode) -> None:
        """The next message that a member gives up or sends back is lost on the way, or the answer is."""
        if self.members:
            broker = self.pick(self.plan.topology.brokers, server)
            who = self.pick(self.members, number)
            self.do(drop_next.VERB, a=who, b=broker, code=int(code), answer=answer)
            self.wait(1)


def machine_for(collector: Collector) -> type[ClusterMachine]:
    """The machine for the mode that is asked for, bound to a collector."""
    asked = collector.asked
    orderly = (
        asked.get("mode", "orderly") == "orderly"
        and asked.get("message_model", "clustering") == "clustering"
    )
    kind: type[ClusterMachine] = ClusterMachine if orderly else SideBySideMachine
    return type(kind.__name__, (kind,), {"collector": collector})
