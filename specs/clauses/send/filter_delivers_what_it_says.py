"""A group that subscribes to some tags is given every message with one of them, and no other message.

Decided where the configuration names tags. A delivery of a message whose tag is none of them, or that has no tag,
breaks the promise; rows of a message show its tags when they have the body's hash. Brokers compare hash codes, which
may be equal for different tags, so that the client has to compare the texts. And a message with a wanted tag that an
incarnation passed over breaks it: the incarnation delivered, for the first time each, a message before it and, as its
next one, a message behind it. Decided for orderly clustering, where first deliveries ascend; a reset forgets what
went before. Sends that are not acknowledged, acknowledged weakly (codes 10 to 12) or delayed are not awaited, nor are
those of a broker that died since, nor what it said to have removed. Copies among the retries are delivered whatever
their tags.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, FILTERED, NO_RESET, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import Segments, composite, dense, first_of_each, positions
from specs.facts.stored import STORED_WEAKLY, broker_died, copies, halves
from specs.facts.tenures import Tenures
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "SND-8"
TITLE = "a filter delivers what it says"
STATEMENT = (
    "A group that subscribes to tags is given the messages with one of these tags, and no others."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (FILTERED, NO_RESET, BROKER_LIVES, NOT_REMOVED)
SOURCES = ("docs/sources.md#filters",)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.ADD, Kind.RESET})
SETTINGS = ("message_model", "mode")
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = (
    "client_id",
    "incarnation",
    "queue_offset",
    "outcome",
    "code",
    "delay_level",
    "detail",
    "body_hash",
    "tags",
)


class Unwanted(Finding):
    given: Row


class PassedOver(Finding):
    before: Row
    sent: Row
    behind: Row


def judge(rows: Rows, findings: Findings) -> None:
    original = ~copies(rows)
    wanted = _wanted(rows)
    whole = original & (rows.number("body_hash") != NONE)
    given = positions(whole & rows.are(Kind.DELIVER))
    findings.at_stake(given)
    findings.broken(Unwanted, given=given[~wanted[given]])
    usual = (
        ~halves(rows)
        & ~np.isin(rows.number("code"), STORED_WEAKLY)
        & np.isin(rows.number("delay_level"), (0, NONE))
    )
    stored = (
        rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER) & (rows.offset != NONE)
    )
    _holes(rows, findings, original, positions(whole & wanted & usual & stored))


def _wanted(rows: Rows) -> Mask:
    """Does the group's subscription name the row's tag?"""
    words = rows.words("tags")
    found = np.zeros(rows.size, np.bool_)
    for run, _name in enumerate(rows.words("run")):
        here = positions(rows.run == run)
        if not len(here):
            continue
        tags = {
            tag.strip()
            for tag in rows.config_of(int(here[0])).subscription.split("||")
            if tag.strip()
        }
        named = np.asarray(
            [*(word in tags for word in words), False], np.bool_
        )  # no tag takes the last
        found[here] = named[rows.text("tags")[here]]
    return found


def _holes(rows: Rows, findings: Findings, original: Mask, sends: Ints) -> None:
    """Deliveries above all earlier ones of their incarnation, since it was added and since the last reset."""
    configs = [rows.config_of(int(place)) for place in _one_of_each_run(rows)]
    orderly = np.asarray(
        [each.mode == "orderly" and each.message_model == "clustering" for each in configs],
        np.bool_,
    )
    tenures = rows.shared(Tenures)
    calls = original & tenures.named & rows.are(Kind.DELIVER) & (rows.offset != NONE)
    where = positions(calls & orderly[rows.run])
    if not len(sends) or not len(where):
        return
    life = dense(tenures.number, tenures.reset)[0][where]
    offset = rows.offset[where]
    highest = Segments(life).highest_before(offset)
    raised = (highest != NOWHERE) & (offset > offset[np.maximum(highest, 0)])
    behind, before = where[raised], where[highest[raised]]
    if not len(behind):
        return
    # The first acknowledged send of each place, by place.
    ended = sends[np.argsort(rows.end[sends], kind="stable")]
    place, count = dense(rows.queue[ended], rows.offset[ended])
    sends = ended[first_of_each(place, count)]
    both = np.concatenate([rows.queue[sends], rows.queue[before]])
    keys = composite(dense(both)[0], np.concatenate([rows.offset[sends], rows.offset[before]]))
    ours, asked = keys[: len(sends)], keys[len(sends) :]
    order = np.argsort(ours, kind="stable")
    ours, sends = ours[order], sends[order]
    at = np.searchsorted(ours, asked, side="right")
    there = at < len(sends)
    next_sent = sends[np.minimum(at, len(sends) - 1)]
    there &= (rows.queue[next_sent] == rows.queue[behind]) & (
        rows.offset[next_sent] < rows.offset[behind]
    )
    for each in positions(there).tolist():
        _judge(rows, findings, int(before[each]), sends[at[each] :], int(behind[each]))


def _judge(rows: Rows, findings: Findings, before: int, sends: Ints, behind: int) -> None:
    """The first of these sends, by place, that was there and is kept when the delivery behind it began."""
    name = rows.name_of("broker", behind)
    for sent in sends.tolist():
        if rows.queue[sent] != rows.queue[behind] or rows.offset[sent] >= rows.offset[behind]:
            return
        now = int(rows.begin[behind])
        if rows.end[sent] >= now or broker_died(rows, sent, now, name):
            continue
        if rows.offset[sent] >= rows.context_of(behind).kept_from(rows.queue_of(behind), now):
            findings.at_stake(np.asarray([behind], np.int64))
            findings.shown(PassedOver, {"before": before, "sent": sent, "behind": behind})
            return


def _one_of_each_run(rows: Rows) -> Ints:
    return first_of_each(rows.run, len(rows.words("run")))


def explain(found: Unwanted | PassedOver) -> str:
    if isinstance(found, Unwanted):
        given = found.given
        tag = f"the tag {given.tags}" if given.tags else "no tag"
        return (
            f"{who(given)} was given message {given.message_id} at offset {given.queue_offset} of {given.queue} at "
            f"{at(given)}, which has {tag}, and group {given.group} does not subscribe to that"
        )
    before, sent, behind = found.before, found.sent, found.behind
    return (
        f"{who(behind)} went from offset {before.queue_offset} of {behind.queue} to offset {behind.queue_offset} at "
        f"{at(behind)} and passed over message {sent.message_id} at offset {sent.queue_offset}, whose tag {sent.tags} "
        f"group {behind.group} subscribes to"
    )
