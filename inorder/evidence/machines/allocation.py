"""The six allocation strategies, by what must be true of every share of every view.

No queue is two members' and (but for a fixed list, and for brokers outside of the rooms) none is nobody's; who is no
member gets nothing; the same view gives the same result, whoever computes it; a block is contiguous and no share
is larger than another's by more than one, where the strategy promises that. With consistent hashing a member who
comes or goes moves no queue between the others.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule

from inorder.evidence.machines.programs import Bench, Disagreement, ProgramMachine
from reference_impl.core import allocation
from reference_impl.core.allocation import Strategy
from specs.vocabulary import Queue

ROOMS = ("east", "west", "north")
NAMES = ("AVG", "CIRCLE", "CONFIG", "MACHINE_ROOM", "NEARBY", "CONSISTENT_HASH")
COVERING = frozenset({"AVG", "CIRCLE", "NEARBY", "CONSISTENT_HASH"})
"""Those that leave no queue to nobody."""
LEVEL = frozenset({"AVG", "CIRCLE", "MACHINE_ROOM"})
"""Those whose shares differ by one at most."""


def room(name: str) -> str:
    return name.split("@")[0]


def strategies(rooms: Sequence[str], fixed: Sequence[Queue]) -> Mapping[str, Strategy]:
    """rooms: in which the strategy by room works. fixed: the list of the strategy by configuration."""
    return {
        "AVG": allocation.averagely,
        "CIRCLE": allocation.by_circle,
        "CONFIG": allocation.by_config(fixed),
        "MACHINE_ROOM": allocation.by_machine_room(rooms),
        "NEARBY": allocation.nearby(allocation.averagely, lambda queue: room(queue.broker), room),
        "CONSISTENT_HASH": allocation.consistent_hash,
    }


class AllocationBench(Bench):
    """A group's view: the queues of a topic and the members, both sorted. broken: in a test, a strategy instead."""

    broken: Mapping[str, Strategy] = {}

    def begin(self, rooms: list[str]) -> None:
        self.rooms = rooms
        self.members: set[str] = set()
        self.queues: set[Queue] = set()

    def join(self, name: str) -> None:
        before = self._shares("CONSISTENT_HASH")
        self.members.add(name)
        self._stays(before, name)

    def leave(self, name: str) -> None:
        before = self._shares("CONSISTENT_HASH")
        self.members.discard(name)
        self._stays(before, name)

    def _stays(self, before: Mapping[str, Sequence[Queue]], changed: str) -> None:
        """Between the members who stay no queue moves."""
        after = self._shares("CONSISTENT_HASH")
        for name in sorted((before.keys() & after.keys()) - {changed}):
            moved = set(after[name]) - set(before[name])
            other = [q for n in before.keys() - {changed, name} for q in before[n] if q in moved]
            self._check(
                not other, f"{name} takes {other} from who stays when {changed} comes or goes"
            )

    def route(self, broker: str, queues: int) -> None:
        """The broker has so many queues now."""
        self.queues = {queue for queue in self.queues if queue.broker != broker}
        self.queues |= {Queue("orders", broker, number) for number in range(queues)}

    def share(self, name: str) -> None:
        """What each member gets by that strategy."""
        shares = self._shares(name)
        queues, given = sorted(self.queues), [queue for share in shares.values() for queue in share]
        if name == "CONFIG":
            fixed = sorted(self.queues)[::2]
            self._check(
                all(list(share) == fixed for share in shares.values()),
                f"CONFIG gives {shares}, not {fixed}",
            )
            return
        self._check(len(set(given)) == len(given), f"{name}: a queue has two members: {shares}")
        self._check(
            set(given) <= self.queues, f"{name}: a queue is given that there is not: {shares}"
        )
        wanted = set(queues) if name in COVERING else set()
        if name == "MACHINE_ROOM":
            wanted = {
                queue
                for queue in queues
                if "@" in queue.broker and room(queue.broker) in self.rooms
            }
        if self.members and name != "CONFIG":
            self._check(
                set(given) == wanted, f"{name}: {sorted(wanted - set(given))} is nobody's: {shares}"
            )
        sizes = [len(share) for share in shares.values()]
        if sizes and name in LEVEL:
            self._check(max(sizes) - min(sizes) <= 1, f"{name}: shares of {sizes} queues")
        if name == "AVG" and self.members:
            in_turn = [queue for member in sorted(shares) for queue in shares[member]]
            self._check(in_turn == queues, f"AVG: the blocks are not in order: {shares}")
        if name == "CIRCLE" and self.members:
            dealt = {m: queues[n :: len(self.members)] for n, m in enumerate(sorted(self.members))}
            self._check(shares == dealt, f"CIRCLE: {shares}, expected {dealt}")
        if name == "NEARBY":
            for member, share in shares.items():
                inhabited = {room(each) for each in self.members}
                away = [q for q in share if room(q.broker) in inhabited - {room(member)}]
                self._check(not away, f"NEARBY: {member} gets {away} of another's room")

    def _shares(self, name: str) -> dict[str, list[Queue]]:
        allocate = self.broken.get(name) or strategies(self.rooms, sorted(self.queues)[::2])[name]
        queues, members = sorted(self.queues), sorted(self.members)
        found: dict[str, list[Queue]] = {}
        for member in members:
            share = allocate(member, queues, members)
            again = allocate(member, tuple(queues), tuple(members))
            self._check(
                list(share) == list(again), f"{name}: the same view gives {share} and {again}"
            )
            found[member] = list(share)
        if name != "CONFIG":
            stranger = allocate("nobody@nowhere", queues, members)
            self._check(not stranger, f"{name}: who is no member gets {stranger}")
        return found

    def _check(self, holds: bool, text: str) -> None:
        if not holds:
            raise Disagreement(text)

    def abstract(self) -> Hashable:
        rooms = (
            len({room(queue.broker) for queue in self.queues}),
            len({room(name) for name in self.members}),
        )
        return min(len(self.members), 5), min(len(self.queues), 12), rooms


class AllocationMachine(ProgramMachine):
    """See the module."""

    NAME = "allocation"
    bench_class = AllocationBench

    @initialize(rooms=st.lists(st.sampled_from(ROOMS), min_size=1, max_size=2, unique=True))
    def begin(self, rooms: list[str]) -> None:
        self.do("begin", rooms=rooms)

    @rule(
        name=st.sampled_from([f"{where}@c{number}" for where in ROOMS for number in range(4)]),
        leaves=st.booleans(),
    )
    def members(self, name: str, leaves: bool) -> None:
        self.do("leave" if leaves else "join", name=name)

    @rule(
        broker=st.sampled_from(
            [f"{where}@b{number}" for where in ROOMS for number in range(2)] + ["plain"]
        ),
        queues=st.integers(0, 5),
    )
    def route(self, broker: str, queues: int) -> None:
        self.do("route", broker=broker, queues=queues)

    @rule(name=st.sampled_from(NAMES))
    def share(self, name: str) -> None:
        self.do("share", name=name)


def broken(**instead: Any) -> type[AllocationBench]:
    """A bench with other strategies, to see that the machine finds them out."""
    return type("BrokenBench", (AllocationBench,), {"broken": instead})
