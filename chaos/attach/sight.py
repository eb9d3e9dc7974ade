"""What the tap has seen so far: whose lanes are whose, who has finished what, and who went around it.

A run waits for conditions on it, never for a time that should be long enough.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from conformance.live import Live
from conformance.tap.alone import PEERS
from specs.vocabulary import Kind, Outcome

LaneOf = tuple[Any, ...]
_PLACE = ("group", "topic", "broker", "queue_id")


class Met(NamedTuple):
    """A client was heard of, from that address."""

    at_us: int
    client: str
    address: str


class Sight(Live):
    """`look` before every question. folder: into which the tap writes. silent_us: who was silent for so long is a
    member no more, unless it goes on elsewhere."""

    def __init__(self, folder: Path, silent_us: int) -> None:
        super().__init__(folder)
        self._silent_us = silent_us
        self._heard: dict[str, int] = {}
        self._peers = folder / PEERS
        self._peers_read = 0
        self._lists: dict[Hashable, tuple[int, str]] = {}
        self.met: list[Met] = []
        self.pulls: dict[LaneOf, tuple[int, str, int]] = {}
        """By lane its latest pull: when, whose, from where on."""
        self.committed: dict[LaneOf, int] = {}
        self.commits: Counter[str] = Counter()
        self.sends: Counter[str] = Counter()
        self.members: dict[str, tuple[int, frozenset[str]]] = {}
        """By group when its members were last asked for, and who was named."""
        self.ever: dict[str, list[tuple[int, str]]] = {}
        """By group everybody whom a list of members has named, and when."""
        self._gone_around: set[tuple[str, str]] = set()
        """Group and member that was named, and had been silent for too long."""

    def look(self) -> None:
        super().look()
        if self._peers.exists():
            with self._peers.open("rb") as file:
                file.seek(self._peers_read)
                text = file.read()
            whole = text.rfind(b"\n") + 1
            self._peers_read += whole
            for line in text[:whole].splitlines():
                told = json.loads(line)
                self.met.append(Met(told["t"], told["client"], told["host"]))

    def begins(
        self,
        op: Hashable,
        kind: str,
        at_us: int,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        client = str(fields.get("client_id"))
        lane = tuple(fields.get(name) for name in _PLACE)
        self._heard[client] = max(at_us, self._heard.get(client, at_us))
        match kind:
            case Kind.PULL:
                self.pulls[lane] = (at_us, client, int(fields["queue_offset"]))
            case Kind.COMMIT:
                self.commits[client] += 1
                self.committed[lane] = int(fields["value"])
            case Kind.SEND:
                self.sends[client] += 1
            case Kind.MEMBER:
                self._lists[op] = (at_us, str(fields["group"]))

    def ends(
        self,
        op: Hashable,
        outcome: str,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        at_us, group = self._lists.pop(op, (0, ""))
        if group and outcome == Outcome.OK:
            named = frozenset(str(fields.get("view") or "").split(",")) - {""}
            self.members[group] = (at_us, named)
            self.ever.setdefault(group, []).extend((at_us, each) for each in named)
            self._gone_around |= {
                (group, each)
                for each in named
                if at_us - self._heard.get(each, at_us) > self._silent_us
            }

    def clients_at(self, addresses: Sequence[tuple[int, str]]) -> frozenset[str]:
        """The ids of the clients that were at one of these addresses, each from its time until the next one's."""
        found = set()
        for number, (since_us, address) in enumerate(addresses):
            until_us = addresses[number + 1][0] if number + 1 < len(addresses) else None
            found |= {
                met.client
                for met in self.met
                if met.address == address
                and met.at_us >= since_us
                and (until_us is None or met.at_us < until_us)
            }
        return frozenset(found)

    def lanes_of(self, clients: Collection[str]) -> frozenset[LaneOf]:
        """Those that one of them was the last to fetch from."""
        return frozenset(lane for lane, (_, who, _) in self.pulls.items() if who in clients)

    def others_have(self, lanes: Iterable[LaneOf], clients: Collection[str], since_us: int) -> bool:
        """Has somebody else fetched from each of the lanes since?"""
        latest = [self.pulls[lane] for lane in lanes]
        return all(at_us >= since_us and who not in clients for at_us, who, _ in latest)

    def done_by(self, clients: Collection[str]) -> int:
        """How often they have told how far they are."""
        return sum(self.commits[each] for each in clients)

    @property
    def progress(self) -> int:
        """How far all lanes are together."""
        return sum(self.committed.values())

    @property
    def is_drained(self) -> bool:
        """Is everybody waiting where everything before is finished?"""
        return bool(self.pulls) and all(
            self.committed.get(lane, offset) >= offset
            for lane, (_, _, offset) in self.pulls.items()
        )

    def around(self, since_us: int = 0) -> list[str]:
        """Who is a member of a group of theirs and was never heard of, or not any more: it does not pass the tap."""
        known = {met.client for met in self.met}
        never = {
            (group, client)
            for group, named in self.ever.items()
            for at_us, client in named
            if at_us >= since_us and client not in known
        }
        return [
            f"{client} of the group {group}" for group, client in sorted(never | self._gone_around)
        ]

    @property
    def is_whole(self) -> bool:
        """Were all members that the groups have now heard of?"""
        known = {met.client for met in self.met}
        return all(named <= known for _, named in self.members.values())
