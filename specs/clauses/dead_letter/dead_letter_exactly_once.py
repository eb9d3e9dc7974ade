"""A message given up by one incarnation, with a send that was answered at once, is dead-lettered exactly once.

Claimed where every dead letter of the message in its group belongs to one incarnation, was acknowledged (and not
stored weakly, with a code that says that it may be lost with its broker), and was its first try; where the message was
not consumed in manual mode, nor in a mode of which nobody tells (a ROLLBACK replays dead-lettered messages as well),
and where it lies at one place only (a send that reached the log twice made two messages, and each is given up).
Otherwise it is *at least* once. Where frames may come twice, so may a dead letter in its topic. Two dead letters of one
message are too many, and so are two places in the dead-letter topic that hold it. Where the consumer takes several
messages per call, only what was given up once is looked at: that a batch which is tried again is not given up again is
DLQ-10's matter. Needs to know every consumer: in an open world what is found is at most possible. Decided when the
history is over."""

import numpy as np

from specs.clauses.premises import AUTO_MODE, DEAD_LETTER_SENT, IN_PLACE, NO_FRAME_TWICE, Premise
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import may_be_by_hand, may_put_back_unseen_of
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import dead_reads, group_of
from specs.facts.segments import Segments, dense, is_first, positions
from specs.facts.stored import STORED_WEAKLY
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "DLQ-2"
TITLE = "a dead letter exactly once"
STATEMENT = "A message that one incarnation gives up reaches the dead letters exactly once."
PARTY = Party.PAIR
KEY = Key.MESSAGE
PREMISE = (
    IN_PLACE,
    AUTO_MODE,
    DEAD_LETTER_SENT,
    Premise(
        "one incarnation",
        "no other incarnation gave the message up, and each send was its first try",
    ),
    Premise("one place", "the message was given up at one offset of one queue only"),
    NO_FRAME_TWICE,
)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER})
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DEAD_LETTER})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (
    "attempt",
    "client_id",
    "code",
    "commit_mode",
    "incarnation",
    "message_id",
    "origin_id",
    "outcome",
    "process",
    "queue_offset",
)


class TwiceDead(Finding):
    """evidence: two dead letters, or the only one and two places where it was read."""

    evidence: tuple[Row, ...]


def judge(rows: Rows, findings: Findings) -> None:
    """Each message that was given up, in each group: how often that was, and where it was read."""
    where = _of_what_was_given_up(rows)
    of, count = dense(rows.run[where], rows.source[where], group_of(rows, where))
    message = np.full(rows.size, NOWHERE, np.int64)
    message[where] = of
    arrived, read = rows.ended_as(Outcome.OK), rows.are(Kind.READ)
    tries = where[~read[where]]
    tries = tries[np.argsort(rows.begin[tries], kind="stable")]
    letter, second = _first_two(tries, message, count)
    as_promised = arrived & ~may_be_by_hand(rows) & np.isin(rows.number("attempt"), (NONE, 1))
    as_promised &= ~np.isin(rows.number("code"), STORED_WEAKLY)
    later = tries[tries != letter[message[tries]]]
    apart = later[~_are_of_one(rows, letter[message[later]], later)]
    reads = where[(read & arrived & (rows.end < NEVER))[where]]
    reads = reads[np.argsort(rows.end[reads], kind="stable")]
    place = rows.text("broker"), rows.number("queue_id"), rows.offset
    reads = reads[is_first(message[reads], *(column[reads] for column in place))]
    lies, too = _first_two(reads, message, count)
    judged = (letter != NOWHERE) & ((lies != NOWHERE) | (second != NOWHERE))
    judged[message[np.append(apart, tries[~as_promised[tries]])]] = False
    judged &= (second == NOWHERE) | (rows.config("batch", letter) == 1)
    findings.at_stake(letter[judged])
    once = judged & (second == NOWHERE) & (too != NOWHERE) & ~rows.frames_twice(letter)
    for rows_of in (
        np.stack([letter, second], 1)[judged & (second != NOWHERE)],
        np.stack([letter, lies, too], 1)[once],
    ):
        for evidence in rows_of.tolist():
            findings.shown(TwiceDead, {"evidence": evidence})


def _first_two(where: Ints, message: Ints, count: int) -> Ints:
    """Of each message the first of these rows, and the second one; NOWHERE where there is none."""
    found = np.full((2, count), NOWHERE, np.int64)
    nth = Segments(message[where]).nth()
    for number in (0, 1):
        found[number, message[where[nth == number]]] = where[nth == number]
    return found


def _of_what_was_given_up(rows: Rows) -> Ints:
    """Dead letters, reads of dead letters, and deliveries of what was given up that may be manual ones."""
    letter, read = rows.are(Kind.DEAD_LETTER), dead_reads(rows)
    manual = rows.are(Kind.DELIVER) & (may_be_by_hand(rows) | may_put_back_unseen_of(rows))
    message, count = dense(rows.run, rows.source)
    given_up = np.zeros(count, np.bool_)
    given_up[message[letter]] = True
    return positions((letter | read | manual) & given_up[message])


def _are_of_one(rows: Rows, first: Ints, later: Ints) -> Mask:
    """Did one incarnation give both up, at one place? The next process of its client may number its incarnations
    anew."""
    texts = (rows.text(name) for name in ("process", "topic", "broker"))
    columns = (rows.client, rows.incarnation, rows.number("queue_id"), rows.offset, *texts)
    found = np.ones(len(first), np.bool_)
    for column in columns:
        found &= column[first] == column[later]
    for index in positions(found).tolist():
        row, now = int(first[index]), int(rows.begin[later[index]])
        client, group = rows.member_of(row)
        context, since = rows.context_of(row), int(rows.begin[row])
        found[index] = not context.is_of_an_old_life(client, group, since, now)
    return found


def explain(found: TwiceDead) -> str:
    first = found.evidence[0]
    if len(found.evidence) > 2:
        places = " and ".join(
            f"offset {row.queue_offset} of {row.queue}" for row in found.evidence[1:]
        )
        return f"{who(first)} gave up message {first.source_id} once, at {at(first)}, but it lies at {places}"
    second = found.evidence[1]
    return (
        f"{who(second)} gave up message {second.source_id} again at {at(second)}, though the dead letter that the same "
        f"incarnation had sent at {at(first)} was acknowledged"
    )
