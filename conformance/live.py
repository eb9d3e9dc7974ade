"""What has happened so far in a run that goes on: its journals, read while they are written.

Steps wait for conditions ("c1 runs its listener"), never for a time that should be long enough. Each look reads only
what was written since the last one. A simulated run has no journals: who records it tells `Happenings` itself.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

from specs.history.evidence import is_named
from specs.vocabulary import RETRY_PREFIX, Kind, Outcome

FINISHED = frozenset({Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK})
_WATCHED = frozenset({Kind.DELIVER, Kind.SEND, Kind.DEAD_LETTER, Kind.CRASH, Kind.JOIN})
_LANE = ("group", "topic", "broker", "queue_id")
_Lane = tuple[Any, ...]


class Happenings:
    """What was told so far of a run. `look` before every question."""

    def __init__(self) -> None:
        self._open: dict[Hashable, dict[str, Any]] = {}
        self._crashed_us: dict[str, int] = {}
        self._worked: list[tuple[int, str, _Lane]] = []
        self.finished: Counter[str] = Counter()
        """Messages by the client that finished them."""
        self.joined: Counter[str] = Counter()
        """How often a client has joined."""
        self.sent: set[str] = set()
        self.done: set[str] = set()
        """Of the messages that were acknowledged, and that were finished or given up."""

    def look(self) -> None:
        """Take in what has happened since the last look."""

    def begins(
        self,
        op: Hashable,
        kind: str,
        at_us: int,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """An operation begins; one that nobody waits for is not kept."""
        if kind not in _WATCHED:
            return
        merged = [{**fields, **row} for row in rows or [{}]]
        self._open[op] = {"t": at_us, "kind": kind, "rows": merged}
        if kind == Kind.DELIVER:
            for row in merged:
                self._worked.append((at_us, str(row.get("client_id")), _lane_of(row)))

    def ends(
        self,
        op: Hashable,
        outcome: str,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """It ends, each of its rows in its own way."""
        found = self._open.pop(op, None)
        if found is None:
            return
        ends = [{**fields, **row} for row in rows or [{}]]
        for number, row in enumerate(found["rows"]):
            last = ends[min(number, len(ends) - 1)]
            self._over(found["kind"], outcome, {**row, **last})

    def notes(self, kind: str, outcome: str, at_us: int, fields: Mapping[str, Any]) -> None:
        """Something that takes no time."""
        if kind not in _WATCHED:
            return
        if kind == Kind.CRASH:
            self._crashed_us[str(fields.get("client_id"))] = at_us
        self._over(str(kind), outcome, fields)

    def _over(self, kind: str, outcome: str, row: Mapping[str, Any]) -> None:
        message = str(row.get("message_id"))
        if kind == Kind.DELIVER and row.get("outcome", outcome) in FINISHED:
            self.finished[str(row.get("client_id"))] += 1
            self.done.add(message)
        elif kind == Kind.DEAD_LETTER and outcome == Outcome.OK:
            self.done.add(message)
        elif kind == Kind.SEND and outcome == Outcome.OK:
            self.sent.add(message)
        elif kind == Kind.JOIN:
            self.joined[str(row.get("client_id"))] += 1

    def finished_by(self, client: str) -> int:
        """How many messages a client has finished; everybody, where it is empty."""
        named = (n for known, n in self.finished.items() if not client or is_named(known, client))
        return sum(named)

    def joins_of(self, client: str) -> int:
        """How often it has come."""
        return sum(n for known, n in self.joined.items() if is_named(known, client))

    def is_at_work(self, client: str) -> bool:
        """Is the client's listener running at this moment?"""
        return any(
            begun["kind"] == Kind.DELIVER
            and is_named(str(row.get("client_id")), client)
            and begun["t"] > self._crashed_us.get(str(row.get("client_id")), -1)
            for begun in self._open.values()
            for row in begun["rows"]
        )

    def is_taken_over(self, client: str, since_us: int) -> bool:
        """Has each lane on which the client worked before since been delivered by another?

        A retry topic holds what has failed, and may have nothing for its next owner.
        """
        lanes = {
            lane
            for at, known, lane in self._worked
            if at < since_us and is_named(known, client) and not _is_retried(lane)
        }
        taken = {
            lane
            for at, known, lane in self._worked
            if at >= since_us and not is_named(known, client)
        }
        return bool(lanes) and lanes <= taken

    @property
    def is_sending(self) -> bool:
        """Is a send open?"""
        return any(begun["kind"] == Kind.SEND for begun in self._open.values())

    @property
    def waiting(self) -> int:
        """How many messages were acknowledged, and neither finished nor given up."""
        return len(self.sent - self.done)

    @property
    def is_caught_up(self) -> bool:
        """Was every acknowledged message finished or given up, and is no send open?"""
        return not self.is_sending and bool(self.sent) and self.sent <= self.done


class Live(Happenings):
    """A history that grows in a run's folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder / "journal"
        self._read: dict[Path, int] = {}

    def look(self) -> None:
        """Read what was written since the last look."""
        for path in sorted(self._folder.glob("*.jsonl")):
            with path.open("rb") as file:
                file.seek(self._read.get(path, 0))
                text = file.read()
            whole = text.rfind(b"\n") + 1  # the rest is being written
            self._read[path] = self._read.get(path, 0) + whole
            for line in text[:whole].splitlines():
                self._take(path, json.loads(line))

    def _take(self, path: Path, event: Mapping[str, Any]) -> None:
        rows = event.get("rows") or ()
        match event["e"]:
            case "begin":
                self.begins((path, event["op"]), event["kind"], event["t"], event["fields"], rows)
            case "end":
                self.ends((path, event["op"]), event["outcome"], event.get("fields", {}), rows)
            case "note":
                self.notes(event["kind"], event["outcome"], event["t"], event["fields"])


def _is_retried(lane: _Lane) -> bool:
    return str(lane[_LANE.index("topic")]).startswith(RETRY_PREFIX)


def _lane_of(row: Mapping[str, Any]) -> _Lane:
    return tuple(row.get(name) for name in _LANE)
