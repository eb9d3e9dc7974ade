"""What consumers and producers do, as lines of the text notation: time, who, what, where, and the columns that tell it.

Only what has begun or ended since the last look is told. An operation that is still open is told when it begins
(`5ms..`), and once more when it has ended. Columns that say nothing about order are left out, and so is what the
raw clients do: their answers are in the case already.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from specs.history.row import Row, make_row
from specs.history.text import render_rows
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Kind, Level, Outcome

WATCHED: Mapping[str, tuple[Kind, ...]] = {
    "deliveries": (Kind.DELIVER,),
    "dead-letters": (Kind.DEAD_LETTER,),
    "sends": (Kind.SEND,),
    "commits": (Kind.COMMIT,),
    "fetches": (Kind.FETCH_OFFSET,),
    "pulls": (Kind.PULL,),
    "locks": (Kind.LOCK,),
    "unlocks": (Kind.UNLOCK,),
    "adds": (Kind.ADD,),
    "drops": (Kind.DROP,),
    "assigns": (Kind.ASSIGN,),
    "leaves": (Kind.LEAVE,),
    "send-backs": (Kind.SEND_BACK,),
    "writes": (Kind.PERSIST,),
    "transactions": (Kind.END_TRANSACTION, Kind.CHECK),
}
"""What `watch` can be told."""

AT_FIRST = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.SEND, Kind.SEND_BACK})
"""What is told when a case does not say."""

_TOLD: Mapping[Kind, tuple[str, ...]] = {
    Kind.SEND: ("queue_offset", "message_id", "sharding_key"),
    Kind.DELIVER: ("queue_offset", "message_id", "reconsume_times"),
    Kind.DEAD_LETTER: ("queue_offset", "message_id", "reconsume_times"),
    Kind.SEND_BACK: ("queue_offset", "message_id", "reconsume_times", "delay_level"),
    Kind.PERSIST: ("value",),
    Kind.COMMIT: ("value", "detail"),
    Kind.FETCH_OFFSET: ("value",),
    Kind.PULL: ("queue_offset", "value"),
    Kind.ADD: ("value",),
    Kind.DROP: ("detail",),
    Kind.END_TRANSACTION: ("message_id", "value"),
    Kind.CHECK: ("message_id", "attempt"),
    Kind.ASSIGN: ("view", "detail"),
}
_ALWAYS = (
    "run",
    "seq_begin",
    "seq_end",
    "op_id",
    "kind",
    "level",
    "process",
    "client_id",
    "group",
    "topic",
    "broker",
    "queue_id",
    "outcome",
    "started_us",
    "ended_us",
)


class Story:
    """Tells a history bit by bit. kinds: what of it; topic: of one topic only."""

    def __init__(self) -> None:
        self.kinds: frozenset[Kind] = AT_FIRST
        self.topic: str | None = None
        self._seen: dict[int, bool] = {}  # rows told or passed over, by seq_begin: had they ended?

    def go_on(self, rows: Iterable[Row]) -> list[str]:
        """The lines for what is new in the history, in the order in which it began."""
        fresh = []
        for row in rows:
            ended = row.ended_us is not None
            if self._seen.get(row.seq_begin) == ended:
                continue
            self._seen[row.seq_begin] = ended
            if (
                row.kind in self.kinds
                and row.level is Level.CLIENT
                and self.topic in (None, row.topic)
            ):
                fresh.append(_told(row))
        return _lines(fresh)


def _told(row: Row) -> Row:
    """The row without the columns that are not told; what took no time as an instant."""
    columns = [*_ALWAYS, *_TOLD.get(row.kind, ())]
    if row.commit_mode == CommitMode.MANUAL:
        columns.append("commit_mode")
    if row.outcome in LISTENER_SUSPENDS or row.outcome is Outcome.ROLLBACK:
        columns.append("suspend_ms")
    told = make_row(**{name: getattr(row, name) for name in columns})
    return told._replace(seq_end=told.seq_begin) if told.started_us == told.ended_us else told


def _lines(rows: Sequence[Row]) -> list[str]:
    lines = render_rows(rows, base_us=0, whole=False).splitlines() if rows else []
    return [
        line.removesuffix(Outcome.UNKNOWN).rstrip() if row.ended_us is None else line
        for row, line in zip(rows, lines, strict=True)
    ]
