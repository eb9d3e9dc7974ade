"""The journal: begins before the effect, ends after it, so that a crash hides nothing that was begun.

One file of JSON lines per process. Every line is one `write` to an append-only descriptor: it survives the
death of the process at once, and the death of the machine after `close`, which alone waits for the disk.
A recorder that waited in between would hold up what it records: on a busy disk an fsync takes seconds, and
a client that checked its lease before it and called its listener after it would be accused of the wait.
A torn last line is what a kill leaves; it is skipped and the history says that it was cut.
Journals of several processes on one host merge by the shared monotonic clock.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specs.documents import from_json
from specs.errors import HistoryError
from specs.history.clock import RecorderClock, host_clock
from specs.history.columns import NAMES
from specs.history.row import Row, make_row
from specs.vocabulary import Kind, Level, Outcome

JOURNAL_VERSION = 2
"""Version 1 had fewer columns, and is read as it is."""
_COLUMNS = frozenset(NAMES)


@dataclass(slots=True)
class _Operation:
    """An operation between its begin and its end."""

    op_id: int
    kind: Kind
    began_us: int
    clock: str
    rows: list[dict[str, Any]]
    seqs: list[int]


@dataclass(slots=True)
class Assembler:
    """Turns begin, end and note events, given in their total order, into rows.

    Seq numbers are dense and unique: each row takes one at its begin and one at its end, an instant takes one.
    """

    run: str
    process_of: Mapping[str, str] = field(default_factory=dict)
    _seq: int = 0
    _ops: int = 0
    _open: dict[Hashable, _Operation] = field(default_factory=dict)
    _done: list[Row] = field(default_factory=list)

    def begin(
        self,
        op: Hashable,
        kind: Kind,
        at_us: int,
        clock: str,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        if op in self._open:
            raise HistoryError(f"operation {op!r} begins twice")
        self._ops += 1
        merged = [{**fields, **row} for row in rows] if rows else [dict(fields)]
        seqs = list(range(self._seq + 1, self._seq + 1 + len(merged)))
        self._seq += len(merged)
        self._open[op] = _Operation(self._ops, kind, at_us, clock, merged, seqs)

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        at_us: int,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        operation = self._open.pop(op, None)
        if operation is None:
            raise HistoryError(f"operation {op!r} ends without a begin")
        if rows and len(rows) != len(operation.rows):
            raise HistoryError(
                f"operation {op!r} began with {len(operation.rows)} rows and ended with {len(rows)}"
            )
        for index, begun in enumerate(operation.rows):
            self._seq += 1
            values = {**begun, "outcome": outcome, **fields, **(rows[index] if rows else {})}
            self._done.append(
                self._row(
                    operation, values, operation.seqs[index], seq_end=self._seq, ended_us=at_us
                )
            )

    def withdraw(self, op: Hashable) -> None:
        """Nothing came of the operation, and it is not told."""
        del self._open[op]

    def note(
        self, kind: Kind, outcome: Outcome, at_us: int, clock: str, fields: Mapping[str, Any]
    ) -> None:
        self._seq += 1
        self._ops += 1
        operation = _Operation(self._ops, kind, at_us, clock, [], [])
        self._done.append(
            self._row(
                operation,
                {**fields, "outcome": outcome},
                self._seq,
                seq_end=self._seq,
                ended_us=at_us,
            )
        )

    def _row(
        self,
        operation: _Operation,
        values: dict[str, Any],
        seq: int,
        *,
        seq_end: int | None,
        ended_us: int | None,
    ) -> Row:
        values.update(
            run=self.run,
            seq_begin=seq,
            seq_end=seq_end,
            op_id=operation.op_id,
            kind=operation.kind,
            started_us=operation.began_us,
            ended_us=ended_us,
            clock=operation.clock,
        )
        return make_row(**values)

    def rows(self) -> list[Row]:
        """All rows so far, by seq_begin; operations still open have outcome unknown and no end."""
        still_open = [
            self._row(
                operation, {**values, "outcome": Outcome.UNKNOWN}, seq, seq_end=None, ended_us=None
            )
            for operation in self._open.values()
            for values, seq in zip(operation.rows, operation.seqs, strict=True)
        ]
        return sorted([*self._done, *still_open], key=lambda row: row.seq_begin)


class MemoryRecorder:
    """Records a simulated run: the caller's virtual clock, no files."""

    def __init__(self, run: str, now_us: Any, *, clock: str = "virtual") -> None:
        self._assembler = Assembler(run)
        self._now_us = now_us
        self._clock = clock

    def begin(
        self,
        op: Hashable,
        kind: Kind,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """An operation begins now; `rows` (one mapping per message or lane) become rows of one op_id."""
        self._assembler.begin(op, kind, self._now_us(), self._clock, fields, rows)

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any] | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """The operation ends now."""
        self._assembler.end(op, outcome, self._now_us(), fields or {}, rows)

    def withdraw(self, op: Hashable) -> None:
        """Nothing came of the operation, and it is not told."""
        self._assembler.withdraw(op)

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        """Something that takes no time."""
        self._assembler.note(kind, outcome, self._now_us(), self._clock, fields)

    def rows(self) -> list[Row]:
        """The history so far, by seq_begin."""
        return self._assembler.rows()


class Journal:
    """The crash-safe recorder of one process: same calls as `MemoryRecorder`, written to a file.

    Thread-safe. `common` columns (process, level, client_id, ...) are added to every row.
    """

    def __init__(
        self,
        folder: Path,
        process: str,
        *,
        clock: RecorderClock | None = None,
        common: Mapping[str, Any] | None = None,
    ) -> None:
        directory = folder / "journal"
        directory.mkdir(parents=True, exist_ok=True)
        self._clock = clock or host_clock()
        self._common = {"process": process, "level": Level.CLIENT, **(common or {})}
        self._lock = threading.Lock()
        self._ids: dict[Hashable, int] = {}
        self._next = 0
        number = 0
        while True:  # a process that starts again under its name gets a file of its own
            name = f"{process}.{number}.jsonl"
            try:
                self._fd = os.open(
                    directory / name, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o644
                )
                break
            except FileExistsError:
                number += 1
        self._write(
            {"e": "open", "version": JOURNAL_VERSION, "process": process, "clock": self._clock.name}
        )

    def begin(
        self,
        op: Hashable,
        kind: Kind,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        with self._lock:
            if op in self._ids:
                raise HistoryError(f"operation {op!r} begins twice")
            self._next += 1
            self._ids[op] = self._next
            record: dict[str, Any] = {
                "e": "begin",
                "op": self._next,
                "t": self._clock.monotonic_us(),
                "kind": kind,
                "fields": self._fields(fields),
            }
            if rows:
                record["rows"] = [dict(row) for row in rows]
            self._write(record)

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any] | None = None,
        rows: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        with self._lock:
            number = self._ids.pop(op, None)
            if number is None:
                raise HistoryError(f"operation {op!r} ends without a begin")
            record: dict[str, Any] = {
                "e": "end",
                "op": number,
                "t": self._clock.monotonic_us(),
                "outcome": outcome,
            }
            if fields:
                record["fields"] = dict(fields)
            if rows:
                record["rows"] = [dict(row) for row in rows]
            self._write(record)

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        with self._lock:
            self._write(
                {
                    "e": "note",
                    "t": self._clock.monotonic_us(),
                    "kind": kind,
                    "outcome": outcome,
                    "fields": self._fields(fields),
                }
            )

    def close(self) -> None:
        """Say that the journal ends here on purpose, and make it durable."""
        with self._lock:
            if self._fd < 0:
                return
            self._write({"e": "close", "t": self._clock.monotonic_us()})
            os.fsync(self._fd)
            os.close(self._fd)
            self._fd = -1

    def __enter__(self) -> Journal:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _fields(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        unknown = fields.keys() - _COLUMNS
        if unknown:
            raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
        return {"wall_us": self._clock.wall_us(), **self._common, **fields}

    def _write(self, record: Mapping[str, Any]) -> None:
        data = json.dumps(record, separators=(",", ":")).encode() + b"\n"
        while data:
            data = data[os.write(self._fd, data) :]


@dataclass(frozen=True, slots=True)
class JournalEvents:
    """One journal file, read. cut: it does not end with a close, so its process died or still runs."""

    path: Path
    clock: str
    events: list[dict[str, Any]]
    cut: bool


def read_journal(path: Path) -> JournalEvents:
    """Read one journal. A torn last line is dropped (cut); a broken line in the middle is an error."""
    raw = path.read_bytes()
    lines = raw.split(b"\n")
    torn = lines.pop() != b""  # a whole journal ends with a newline
    events: list[dict[str, Any]] = []
    for number, line in enumerate(lines, start=1):
        try:
            event = from_json(line)
        except ValueError as error:
            raise HistoryError(
                f"{path} line {number} is not JSON, and it is not the last one: {error}"
            ) from error
        if not isinstance(event, dict) or "e" not in event:
            raise HistoryError(f"{path} line {number} is no journal event")
        events.append(event)
    if not events:
        return JournalEvents(path, "unknown", [], True)
    head = events.pop(0)
    if head.get("e") != "open" or head.get("version") not in range(1, JOURNAL_VERSION + 1):
        raise HistoryError(
            f"{path} is journal version {head.get('version')!r}; "
            f"this version reads 1 to {JOURNAL_VERSION}"
        )
    closed = bool(events) and events[-1]["e"] == "close"
    if closed:
        events.pop()
    return JournalEvents(path, str(head.get("clock", "host")), events, torn or not closed)


def assemble(run: str, journals: Iterable[JournalEvents]) -> list[Row]:
    """Merge journals of one clock domain by time (ties: by file, then line) into rows."""

    def keyed() -> Iterator[tuple[int, int, int, JournalEvents, dict[str, Any]]]:
        for index, journal in enumerate(journals):
            last = 0
            for line, event in enumerate(journal.events):
                last = max(last, int(event["t"]))  # lines of one file keep their order
                yield last, index, line, journal, event

    assembler = Assembler(run)
    try:
        for at_us, index, _line, journal, event in sorted(keyed(), key=lambda item: item[:3]):
            match event["e"]:
                case "begin":
                    assembler.begin(
                        (index, event["op"]),
                        Kind(event["kind"]),
                        at_us,
                        journal.clock,
                        event["fields"],
                        event.get("rows", ()),
                    )
                case "end":
                    assembler.end(
                        (index, event["op"]),
                        Outcome(event["outcome"]),
                        at_us,
                        event.get("fields", {}),
                        event.get("rows", ()),
                    )
                case "note":
                    assembler.note(
                        Kind(event["kind"]),
                        Outcome(event["outcome"]),
                        at_us,
                        journal.clock,
                        event["fields"],
                    )
                case other:
                    raise HistoryError(f"{journal.path} has an event of unknown kind {other!r}")
    except (KeyError, ValueError, TypeError) as error:
        raise HistoryError(f"a journal holds an event that can't be read: {error}") from error
    return assembler.rows()
