"""The columns of history v2: the one definition from which Arrow schema, JSON schema and docs are made.

Version 1 had all but the last three, which may be empty: what it wrote is read as it is.

Times are µs as integers: `started_us` and `ended_us` on the monotonic clock that `clock` names, `wall_us` on the
wall clock of the party that acted, at the operation's begin. `seq_begin` and `seq_end` give one total order of
all begins and ends of a run; inside one clock domain it agrees with time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

HISTORY_VERSION = 2

ColumnType = Literal["string", "int64"]

SMALLEST, LARGEST = -(2**63), 2**63 - 1
"""What an int64 holds."""


@dataclass(frozen=True, slots=True)
class Column:
    """One column. required: a row without it is no row. dictionary: few distinct values, encode as such."""

    name: str
    type: ColumnType
    doc: str
    required: bool = False
    dictionary: bool = False


def _text(name: str, doc: str, *, required: bool = False, dictionary: bool = True) -> Column:
    return Column(name, "string", doc, required, dictionary)


def _whole(name: str, doc: str, *, required: bool = False) -> Column:
    return Column(name, "int64", doc, required)


COLUMNS: tuple[Column, ...] = (
    _text("run", "The run that the row belongs to.", required=True),
    _whole(
        "seq_begin",
        "Place of the operation's begin in the total order; unique in a run.",
        required=True,
    ),
    _whole(
        "seq_end", "Place of its end; null while it is open. Equal to seq_begin for an instant."
    ),
    _whole("op_id", "The operation; the messages of one batch share it.", required=True),
    _text("kind", "What was done: see the kinds of the vocabulary.", required=True),
    _text("level", "Where it was seen: client, wire, tap or store.", required=True),
    _text(
        "process",
        "The process (or simulated node) that did it. At level `client` it tells two processes of one client id apart; "
        "at other levels it may be a connection, and tells nobody apart.",
    ),
    _text("client_id", "The client's id in the protocol."),
    _text("incarnation", "One client's work on one lane, from add until drop."),
    _text("group", "The consumer or producer group."),
    _text("topic", "The topic."),
    _text("broker", "The broker's name."),
    _whole("broker_epoch", "Counts the broker's starts."),
    _whole("queue_id", "The queue's number within topic and broker."),
    _whole("queue_offset", "The message's place in its queue, or the offset that was asked for."),
    _text("message_id", "The unique key that the producer gave the message.", dictionary=False),
    _text(
        "origin_id", "For a copy: the unique key of the message it was made from.", dictionary=False
    ),
    _text("sharding_key", "The key whose messages stay in order."),
    _whole("key_seq", "The message's number among those of its sharding key."),
    _whole("reconsume_times", "The retry counter that the message carries."),
    _whole(
        "attempt", "Which try this is: of a send, or of a delivery by this client; counts from 1."
    ),
    _text("outcome", "How it ended: see the outcomes of the vocabulary.", required=True),
    _whole("code", "The protocol's response code."),
    _text("commit_mode", "auto or manual, as the listener chose for the call."),
    _whole("suspend_ms", "How long the consumer has to wait before the next try, after clamping."),
    _whole("started_us", "Begin, monotonic, in µs.", required=True),
    _whole("ended_us", "End, monotonic, in µs; null while the operation is open."),
    _text("clock", "The clock domain of started_us and ended_us."),
    _whole("wall_us", "Wall clock at the begin; for a read message: when the broker stored it."),
    _whole("lease_until_us", "Until when the client believes in its grant."),
    _whole("body_hash", "CRC-32 of the body."),
    _text("tags", "The message's tags."),
    _whole("delay_level", "The delay level asked for."),
    _whole("value", "The operation's number: an offset committed, fetched or pulled to, a count."),
    _text(
        "view",
        "The operation's set: members, queues to choose from, or how a commit travelled.",
        dictionary=False,
    ),
    _text("detail", "Anything else, for people.", dictionary=False),
    _whole(
        "props_hash",
        "CRC-32 of the properties that the sender's application gave the message, by name: of each its name, 0x01, its "
        "value, 0x02; those of the protocol are left out. Null: nobody looked.",
    ),
    _whole(
        "generation",
        "The epoch of its group, or of its lease, under which the party acted: what a newer one fences off.",
    ),
    _text(
        "lease_id",
        "The grant under which it acted, where a system names each: a receipt, an acquisition, a lease's number.",
        dictionary=False,
    ),
)

NAMES: tuple[str, ...] = tuple(column.name for column in COLUMNS)
