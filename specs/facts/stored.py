"""What a SEND row says: may its message be stored, from when on is it seen, and where.

A refusal with a code that says that nothing was stored is certain. The codes 10 to 12 say that the message *is* stored
(not flushed or replicated in time), code 1 is a broker's internal error, and a send that ended with one of these,
without an answer or without a code may have stored the message. A half message waits for its commit and not for a
delay level. Of a batch the answer tells the place of the first message only; the others lie behind it, in their order.
"""

import numpy as np

from specs.clauses.rows import is_copy_topic
from specs.clauses.stored import waits_ms
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.rows import Rows
from specs.facts.segments import is_first, positions
from specs.vocabulary import Kind, Outcome

STORED_WEAKLY = (10, 11, 12)
NOT_CERTAIN = (0, 1, *STORED_WEAKLY)
STORED_COLUMNS = (
    "op_id",
    "message_id",
    "queue_offset",
    "outcome",
    "code",
    "delay_level",
    "detail",
    "value",
)
"""What the questions here use."""


def refused(rows: Rows) -> Mask:
    """Sends of which the answer says that nothing was stored."""
    code = rows.number("code")
    found = rows.are(Kind.SEND) & rows.ended_as(Outcome.REFUSED) & (rows.end < NEVER)
    where = positions(found)
    found[where] = (code[where] != NONE) & ~np.isin(code[where], NOT_CERTAIN)
    return found


def halves(rows: Rows) -> Mask:
    """Sends of half messages."""
    says = rows.that_say("detail", lambda word: word.split(",", 1)[0] == "half")
    return rows.are(Kind.SEND) & says


def delayed(rows: Rows) -> Mask:
    """Sends with a delay level that counts."""
    return rows.are(Kind.SEND) & (rows.number("delay_level") > 0) & ~halves(rows)


def copies(rows: Rows) -> Mask:
    """Rows of topics that hold copies."""
    return rows.that_say("topic", is_copy_topic)


def tried_unseen(rows: Rows, message: Ints) -> Mask:
    """Of each row: do the numbers of its message's sends tell of a try that is not in the history?

    Somebody made it whom nobody recorded, before a history that begins late, or to where these rows are not of.
    message: of each row its message's number. A send without a number is the first try; two with one are one.
    """
    sends = rows.of(Kind.SEND)
    attempt = np.where(rows.number("attempt") == NONE, 1, rows.number("attempt"))[sends]
    highest, numbers = np.zeros((2, int(message.max(initial=-1)) + 1), np.int64)
    np.maximum.at(highest, message[sends], attempt)
    np.add.at(numbers, message[sends[is_first(message[sends], attempt)]], 1)
    found: Mask = (highest != numbers)[message]
    return found


def sightings(rows: Rows) -> tuple[Mask, Ints]:
    """Rows by which somebody sees a message, and since when (seq): deliveries from their begin, reads that found it at
    their end."""
    calls, reads = rows.are(Kind.DELIVER), rows.are(Kind.READ) & rows.ended_as(Outcome.OK)
    return calls | (reads & (rows.end < NEVER)), np.where(calls, rows.begin, rows.end)


def levels(rows: Rows, sends: Ints) -> tuple[Ints, Ints]:
    """Of each of these sends the level that it waits on (0: none), and how long that is in µs."""
    level, wait = np.zeros(len(sends), np.int64), np.zeros(len(sends), np.int64)
    asked = np.where(delayed(rows)[sends], rows.number("delay_level")[sends], 0)
    for at in rows.parties()[1]:
        table = waits_ms(rows.context_of(at).info.config.delay_levels)
        mine = (rows.run[sends] == rows.run[at]) & (asked > 0)
        if table:
            level[mine] = np.minimum(asked[mine], len(table))
            wait[mine] = MS * np.asarray(table, np.int64)[level[mine] - 1]
    return level, wait


def placed(rows: Rows, acknowledged: Mask) -> tuple[Ints, Ints]:
    """The offset of each row, that of an acknowledged batch's message counted from the one that was told; and the
    row that told it (NOWHERE: the row itself, or none)."""
    offset, told_by = rows.offset.copy(), np.full(rows.size, NOWHERE, np.int64)
    parts = acknowledged & (rows.value != NONE)
    open_parts = np.flatnonzero(parts & (rows.offset == NONE))
    if not len(open_parts):
        return offset, told_by
    op = rows.number("op_id")
    first: dict[tuple[int, int], int] = {}
    told = np.flatnonzero(parts & (rows.offset != NONE))
    for place in told[np.argsort(rows.end[told], kind="stable")].tolist():  # batches are few
        first.setdefault((int(rows.queue[place]), int(op[place])), place)
    for place in open_parts.tolist():
        base = first.get((int(rows.queue[place]), int(op[place])), NOWHERE)
        if base != NOWHERE:
            offset[place] = rows.offset[base] - rows.value[base] + rows.value[place]
            told_by[place] = base
    return offset, told_by


def broker_died(rows: Rows, place: int, until: int, broker: str | None = None) -> bool:
    """Did the broker (the row's own by default) die between the begin of the row and the seq `until`?"""
    own = rows.name_of("broker", place)
    name = own if broker is None else broker
    epoch = int(rows.number("broker_epoch")[place]) if name == own else NONE
    has_one = rows.text("broker")[place] != NO_TEXT or broker is not None
    return has_one and rows.context_of(place).broker_died_since(
        name, int(rows.begin[place]), epoch, until
    )


def may_have_died(rows: Rows, places: Ints) -> bool:
    """Did the broker of these rows die, or does one of them name an epoch that was over by then, as far as is told?"""
    context, broker = rows.context_of(int(places[0])), rows.name_of("broker", int(places[0]))
    epochs, named = rows.number("broker_epoch")[places], context.epochs.get(broker, [])
    is_older = bool(named) and bool(np.any((epochs != NONE) & (epochs < named[-1][1])))
    return is_older or bool(context.deaths_of(broker))
