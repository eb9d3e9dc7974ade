"""A dead letter has the body, the tags and the sharding key of its message, and names the topic it came from.

Decided where a dead letter is read whole (its row has the body's hash), against the first row that shows the
original whole: its send or a delivery. Where one id was seen with different contents, nothing is said about it
(SND-10 does). The topic of origin is compared where the reader recorded it. A copy that a recorded consumer sent
also names the id of its origin; clients of the 4.9 line do not promise that. That it names none is known where the
run declares that reads are recorded; else only where the reader recorded what else the copy says of its origin, its
topic, and some dead letter of the run was read with the id of its origin. A log that has no such id anywhere may lack
the column: nobody may have looked.
In an open world a log may lack the one and have the other: that it names none is at most possible there.
"""

import numpy as np

from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.segments import chosen, dense, first_of_each, positions
from specs.facts.stored import copies
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-5"
TITLE = "a dead letter keeps its content"
STATEMENT = "A dead letter keeps the body, the tags, the key and the topic of its message, and the id of its origin."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.DEAD_LETTER, Kind.READ})
SETTINGS = ("dialect",)
NEEDS = frozenset({Kind.READ})
LOOKS_BACK = True
COLUMNS = ("body_hash", "message_id", "origin_id", "outcome", "sharding_key", "tags", "view")

WITHOUT_ORIGIN_ID = "4.9"
"""The dialect whose clients need not name the origin's id."""


class Changed(Finding):
    """original: as it was sent or delivered, or (where only the origin's id is missing) its dead letter's send.

    named: then, where the run does not declare its reads, a dead letter that was read with the id of its origin.
    """

    original: Row
    read: Row
    named: Row | None = None

    @property
    def timed(self) -> tuple[Row, ...]:
        """That anybody read such a dead letter counts, and not when."""
        return tuple(row for row in self.rows if row is not self.named)


def judge(rows: Rows, findings: Findings) -> None:
    """Each dead letter that was read whole beside its message as it was first shown, then beside its send."""
    body = rows.number("body_hash")
    reads = positions(
        (body != NONE) & dead_reads(rows) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    )
    if not len(reads):
        return
    message, count = dense(rows.run, rows.source)
    original = _originals(rows, message, count, rows.end[reads], message[reads])
    known = original != NOWHERE
    findings.at_stake(reads[known])
    other = known.copy()
    other[known] = _differs(rows, original[known], reads[known]) | _elsewhere(
        rows, original[known], reads[known]
    )
    findings.broken(Changed, original=original[other], read=reads[other])
    _nameless(rows, findings, reads[~other], message, known[~other])


def _originals(rows: Rows, message: Ints, count: int, until: Ints, wanted: Ints) -> Ints:
    """Of each of these messages the first row that shows it whole; NOWHERE if not before `until`, or later another."""
    whole = (rows.number("body_hash") != NONE) & (rows.text("origin_id") == NO_TEXT) & ~copies(rows)
    shown = positions(whole & rows.are(Kind.SEND, Kind.DELIVER))
    shown = shown[np.argsort(rows.begin[shown], kind="stable")]
    first = chosen(shown, first_of_each(message[shown], count), NOWHERE)
    another = np.full(count, NEVER, np.int64)
    others = shown[_differs(rows, shown, first[message[shown]])] if len(shown) else shown
    np.minimum.at(another, message[others], rows.begin[others])
    found = first[wanted]
    fine = (found != NOWHERE) & (rows.begin[found] < until) & (another[wanted] > until)
    return np.where(fine, found, NOWHERE)


def _differs(rows: Rows, place: Ints, other: Ints) -> Mask:
    different = np.zeros(len(place), np.bool_)
    for column in (rows.number("body_hash"), rows.text("tags"), rows.text("sharding_key")):
        different |= column[place] != column[other]
    return different


def _elsewhere(rows: Rows, original: Ints, read: Ints) -> Mask:
    """Does the dead letter name another topic than its message's?"""
    topics, views = rows.words("topic"), rows.words("view")
    named = np.asarray(
        [*(topics.index(view) if view in topics else NEVER for view in views), NO_TEXT], np.int64
    )
    view = rows.text("view")[read]
    different: Mask = (view != NO_TEXT) & (named[view] != rows.text("topic")[original])
    return different


def _nameless(rows: Rows, findings: Findings, reads: Ints, message: Ints, known: Mask) -> None:
    """Dead letters that a recorded client sent, and that name no origin. known: those that were at stake already."""
    nameless = (rows.text("origin_id") == NO_TEXT)[reads]
    promised = [rows.config_of(row).dialect != WITHOUT_ORIGIN_ID for row in reads.tolist()]
    declared = np.asarray([_reads_are_declared(rows, row) for row in reads.tolist()], np.bool_)
    others = rows.of_runs(lambda context: context.named_origin, reads)
    topic_told = rows.text("view")[reads] != NO_TEXT
    looked = declared | ~nameless | (topic_told & (others < NEVER))
    letters = positions(rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK) & (rows.end < NEVER))
    letters = letters[np.argsort(rows.end[letters], kind="stable")]
    both = np.concatenate([letters, reads])
    of_group, count = dense(message[both], group_of(rows, both))
    first = first_of_each(of_group[: len(letters)], count)
    sent = chosen(letters, first[of_group[len(letters) :]], NOWHERE)
    found = np.asarray(promised, np.bool_) & looked & (nameless | ~known)
    found &= (sent != NOWHERE) & (rows.end[sent] <= rows.end[reads])
    findings.at_stake(reads[found & ~known])
    for index in positions(found & nameless).tolist():
        context = rows.context_of(int(reads[index]))
        findings.shown(
            Changed,
            {"original": int(sent[index]), "read": int(reads[index])},
            certain=context.info.closed_world,
            of_context={} if declared[index] else {"named": context.named_origin},
        )


def _reads_are_declared(rows: Rows, row: int) -> bool:
    """Does the run of the row say that reads are among what it records?"""
    records = rows.context_of(row).info.records
    return records is not None and any(Kind.READ in kinds for kinds in records.values())


def explain(found: Changed) -> str:
    original, read = found.original, found.read
    said = f"the dead letter of message {original.source_id} at offset {read.queue_offset} of {read.queue}"
    if original.kind is Kind.DEAD_LETTER:
        named = found.named
        other = (
            ""
            if named is None
            else f", as that at offset {named.queue_offset} of {named.queue} does"
        )
        return f"{said}, which {who(original)} sent at {at(original)}, does not name the id of its origin{other}"
    pairs = (
        ("body's hash", original.body_hash, read.body_hash),
        ("tags", original.tags, read.tags),
        ("sharding key", original.sharding_key, read.sharding_key),
        ("topic of origin", original.topic, read.view or original.topic),
    )
    other = "; ".join(
        f"{name} {now or 'none'} instead of {was or 'none'}"
        for name, was, now in pairs
        if was != now
    )
    return f"{said} has another content than at {at(original)}: {other}"
