"""Membership against its model: a member is a connection, and whoever changes a group is announced to all of it.

Clients beat with one or two connections, leave in order, by silence or by a closed connection, change what they
subscribe to, and come back; the list holds one entry for each connection, and is an error without any.
"""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.broker_bench import FATES, NUMBERS, SCAN_MS, BrokerBench
from inorder.evidence.machines.programs import ProgramMachine

CLIENTS = ("alice", "bob")
CONNECTIONS = ("c1", "c2", "c3")
GROUPS = ("billing", "audit")
SUBSCRIPTIONS = (["orders"], ["orders"], ["orders", "bills"])


class Bench(BrokerBench):
    """Aims at the moment at which a silent connection is dropped."""

    def reach_expiry(self, beyond_ms: int) -> None:
        heard = [heard for members in self.past.members.values() for _, heard in members.values()]
        if heard:
            self.wait(max(0, min(heard) + self.rules.channel_expiry_ms - self.now_ms + beyond_ms))


class MembershipMachine(ProgramMachine):
    """See the module."""

    NAME = "membership"
    bench_class = Bench

    @initialize(version=st.sampled_from(("5.x", "4.9")))
    def begin(self, version: str) -> None:
        self.do("begin", version=version)

    @rule(
        who=st.sampled_from(CLIENTS),
        conn=st.sampled_from(CONNECTIONS),
        group=st.sampled_from(GROUPS),
        topics=st.sampled_from(SUBSCRIPTIONS),
        fate=st.sampled_from(FATES),
    )
    def beat(self, who: str, conn: str, group: str, topics: list[str], fate: str) -> None:
        self.do("beat", who=who, conn=conn, group=group, topics=topics, fate=fate)

    @rule(
        who=st.sampled_from(CLIENTS),
        conn=st.sampled_from(CONNECTIONS),
        group=st.sampled_from(GROUPS),
        fate=st.sampled_from(FATES),
    )
    def unregister(self, who: str, conn: str, group: str, fate: str) -> None:
        """Also by who is no member, and on another's connection."""
        self.do("unregister", who=who, conn=conn, group=group, fate=fate)
        self.do("members", who="carol", group=group)

    @rule(who=st.sampled_from(("carol", *CONNECTIONS)), group=st.sampled_from(GROUPS))
    def members(self, who: str, group: str) -> None:
        self.do("members", who=who, group=group)

    @rule(conn=st.sampled_from(CONNECTIONS), group=st.sampled_from(GROUPS))
    def close(self, conn: str, group: str) -> None:
        self.do("close", conn=conn)
        self.do("members", who="carol", group=group)

    @rule(beyond_ms=st.sampled_from((-SCAN_MS, -1, 0, 1, SCAN_MS)))
    def reach_expiry(self, beyond_ms: int) -> None:
        self.do("reach_expiry", beyond_ms=beyond_ms)

    @rule(ms=st.sampled_from((1, SCAN_MS, NUMBERS["channel_expiry_ms"] // 2)))
    def wait(self, ms: int) -> None:
        self.do("wait", ms=ms)

    @rule(down_ms=st.sampled_from((1, SCAN_MS)))
    def crash(self, down_ms: int) -> None:
        """Nobody is a member after it."""
        self.do("crash")
        self.do("wait", ms=down_ms)
        self.do("restart")
