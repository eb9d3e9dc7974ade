"""One row of a history: one operation, or one message of a batch operation."""

from __future__ import annotations

from typing import Any, NamedTuple

from specs.history import columns
from specs.vocabulary import SERVER_CONSUMER, Kind, Lane, Level, Outcome, Queue


class Row(NamedTuple):
    """A row; the columns are documented in `specs.history.columns`. A tuple, because millions are made."""

    run: str
    seq_begin: int
    seq_end: int | None
    op_id: int
    kind: Kind
    level: Level
    process: str | None
    client_id: str | None
    incarnation: str | None
    group: str | None
    topic: str | None
    broker: str | None
    broker_epoch: int | None
    queue_id: int | None
    queue_offset: int | None
    message_id: str | None
    origin_id: str | None
    sharding_key: str | None
    key_seq: int | None
    reconsume_times: int | None
    attempt: int | None
    outcome: Outcome
    code: int | None
    commit_mode: str | None
    suspend_ms: int | None
    started_us: int
    ended_us: int | None
    clock: str | None
    wall_us: int | None
    lease_until_us: int | None
    body_hash: int | None
    tags: str | None
    delay_level: int | None
    value: int | None
    view: str | None
    detail: str | None
    props_hash: int | None = None
    generation: int | None = None
    lease_id: str | None = None

    @property
    def lane(self) -> Lane:
        """The lane, for rows that have one."""
        queue_id = -1 if self.queue_id is None else self.queue_id
        return Lane(self.group or "", self.topic or "", self.broker or "", queue_id)

    @property
    def queue(self) -> Queue:
        return Queue(
            self.topic or "", self.broker or "", -1 if self.queue_id is None else self.queue_id
        )

    @property
    def party(self) -> str | None:
        """Who did it: the client, or the process where nobody or the server's own consumer is the client."""
        return self.process if self.client_id in (None, SERVER_CONSUMER) else self.client_id

    @property
    def source_id(self) -> str | None:
        """The id of the message as it was first sent: a copy names its origin."""
        return self.origin_id or self.message_id

    @property
    def ended_wall_us(self) -> int | None:
        """Wall clock at the end, in µs; None while open or when no wall clock was kept."""
        if self.wall_us is None or self.ended_us is None:
            return None
        return self.wall_us + self.ended_us - self.started_us

    def to_json(self) -> dict[str, Any]:
        """Without its empty columns."""
        return {name: value for name, value in self._asdict().items() if value is not None}


assert Row._fields == columns.NAMES, "a row has the columns of a history, in their order"

_DEFAULTS: dict[str, Any] = dict.fromkeys(columns.NAMES)


def make_row(**fields: Any) -> Row:
    """A row from keyword columns; text is turned into the vocabulary's words.

    Raises KeyError for an unknown column and ValueError for an unknown word.
    """
    values = {**_DEFAULTS, **fields}  # in the order of the columns
    if len(values) != len(_DEFAULTS):
        unknown = fields.keys() - _DEFAULTS.keys()
        raise KeyError(f"no such column: {', '.join(sorted(unknown))}")
    if type(values["kind"]) is not Kind:
        values["kind"] = Kind(values["kind"])
    if type(values["level"]) is not Level:
        values["level"] = Level(values["level"] or Level.CLIENT)
    if type(values["outcome"]) is not Outcome:
        values["outcome"] = Outcome(values["outcome"] or Outcome.UNKNOWN)
    return Row._make(values.values())
