"""A message is found in no other queue of its topic than those that its producer sent it to.

Wherever it is read or delivered in the topic, the queue must be one that a try named: the producer chose it by the
message's key. A delayed message and a half one wait elsewhere, but the queue that they name is the one that they come
to. A try that was refused counts as well: its frame may have come twice, and been stored the second time. (That a
message of which every try was refused is not seen is SND-3's business.) Every try up to the last must be in the
history, with its number and its queue, whenever it was made: a send without `attempt` is not taken for the first here,
and two with one number are one. Where a broker chose the queue and did not answer, nothing is said. Copies among the
retries and dead letters lie elsewhere. Of a message that lies in more queues, or was sent more often, than a witness
can show, nothing is said either. Another producer might send it too, and so might its own before a history that begins
late: there, and in an open world, it is possible at most.
"""

import numpy as np

from specs.clauses.terms import Finding, Findings, Row, Rows, at, saw, who
from specs.facts.columns import NO_TEXT, NONE, Ints, Mask
from specs.facts.segments import dense, first_of_each
from specs.facts.stored import copies, refused, sightings, tried_unseen
from specs.vocabulary import Key, Kind, Party

ID = "SND-12"
TITLE = "a message lies where it was sent"
STATEMENT = (
    "A message is found in no other queue of its topic than those that its producer sent it to."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = ()
SOURCES = ("docs/sources.md#send", "docs/sources.md#delay", "docs/sources.md#transactions")
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
NEEDS = frozenset({Kind.SEND})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = ("message_id", "origin_id", "queue_offset", "outcome", "code", "attempt")


class Elsewhere(Finding):
    sends: tuple[Row, ...]
    seen: Row


EVIDENCE_MAX = 9


def judge(rows: Rows, findings: Findings) -> None:
    original = (rows.text("origin_id") == NO_TEXT) & ~copies(rows)
    original &= rows.text("message_id") != NO_TEXT
    sends = np.flatnonzero(original & rows.are(Kind.SEND))
    if not len(sends):
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    judged = _can_be_judged(rows, sends, message, count)
    placed = (rows.offset != NONE) & (rows.number("queue_id") != NONE)
    shows, when = sightings(rows)
    seen = np.flatnonzero(original & placed & shows & judged[message])
    seen = seen[np.argsort(when[seen], kind="stable")]
    pair, pairs = dense(message[seen], rows.queue[seen])
    first = seen[first_of_each(pair, pairs)]  # in each queue, the first time
    mine = sends[judged[message[sends]]]
    named, _ = dense(
        np.concatenate([message[first], message[mine]]),
        np.concatenate([rows.queue[first], rows.queue[mine]]),
    )
    elsewhere = ~np.isin(named[: len(first)], named[len(first) :])
    many = np.bincount(message[first], minlength=count) > EVIDENCE_MAX
    _few(findings, (first, when), (message, elsewhere, many, sends))


def _can_be_judged(rows: Rows, sends: Ints, message: Ints, count: int) -> np.ndarray:
    """Messages of which every try is known and names its queue, and not all were refused."""
    attempt = rows.number("attempt")[sends]
    total = np.bincount(message[sends], minlength=count)
    untold = np.bincount(message[sends], weights=attempt < 1, minlength=count)
    vague = (rows.number("queue_id")[sends] < 0) | (rows.text("broker")[sends] == NO_TEXT)
    unnamed = np.bincount(message[sends], weights=vague, minlength=count)
    stored = np.bincount(message[sends], weights=~refused(rows)[sends], minlength=count)
    found: np.ndarray = (total < EVIDENCE_MAX) & (untold == 0) & (unnamed == 0) & (stored > 0)
    found[message[tried_unseen(rows, message)]] = False
    return found


def _few(findings: Findings, seen: tuple[Ints, Ints], known: tuple[Ints, Mask, Mask, Ints]) -> None:
    """Counted are the first queues in which a message was seen, as many as a witness can show."""
    (first, when), (message, elsewhere, many, sends) = seen, known
    kept = np.ones(len(first), np.bool_)
    for each in np.flatnonzero(many).tolist():
        its = np.flatnonzero(message[first] == each)
        kept[its[np.argsort(when[first[its]], kind="stable")][EVIDENCE_MAX:]] = False
    findings.at_stake(first[kept])
    for place in first[kept & elsewhere].tolist():
        its = sends[message[sends] == message[place]].tolist()
        findings.shown(Elsewhere, {"sends": its, "seen": place})


def explain(found: Elsewhere) -> str:
    last, seen = found.sends[-1], found.seen
    where = ", ".join(dict.fromkeys(str(row.queue) for row in found.sends))
    return (
        f"{who(last)} sent message {last.message_id} to {where} (at {at(last)}), but {saw(seen)} it at offset "
        f"{seen.queue_offset} of {seen.queue} at {at(seen)}"
    )
