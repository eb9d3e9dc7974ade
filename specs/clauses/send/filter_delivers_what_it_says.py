"""A group that subscribes to some tags is given every message with one of them, and no other message.

Decided where the configuration names tags. A delivery of a message whose tag is none of them, or that has no tag,
breaks the promise; rows of a message show its tags when they have the body's hash: the delivery, or else the send that
was acknowledged at that place with its id (unless another send of that id has a wanted tag; of a history that begins
late, possible at most). Brokers compare hash codes, which may be equal for different tags, so that the client has to
compare the texts. And a message with a wanted tag that an incarnation passed over breaks it: the incarnation delivered,
for the first time each, a message before it and, as its next one, a message behind it. Decided for orderly clustering,
where first deliveries ascend; a reset forgets what went before, and a client may learn of it late: of an incarnation
that was not added since nothing is said of what lies below where the reset moved the lane. Of an acknowledged batch the
answer tells the place of the first message, and the others lie behind it. Sends that are not acknowledged, acknowledged
weakly (codes 10 to 12) or delayed are not awaited, nor are those of a broker that died since, nor what it said to have
removed. Copies among the retries are delivered whatever their tags.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, FILTERED, NO_RESET, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import Segments, chosen, composite, dense, first_of_each, positions
from specs.facts.stored import STORED_COLUMNS, STORED_WEAKLY, broker_died, copies, halves, placed
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
COLUMNS = (*STORED_COLUMNS, "client_id", "incarnation", "body_hash", "tags")


class Unwanted(Finding):
    """sent: the send that shows its tag, None where the delivery does."""

    given: Row
    sent: Row | None


class PassedOver(Finding):
    """offset: where the message lies that was sent."""

    before: Row
    sent: Row
    behind: Row
    offset: int


def judge(rows: Rows, findings: Findings) -> None:
    original = ~copies(rows)
    wanted = _wanted(rows)
    whole = original & (rows.number("body_hash") != NONE)
    usual = ~halves(rows) & np.isin(rows.number("delay_level"), (0, NONE))
    stored = usual & rows.are(Kind.SEND) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    offset, _ = placed(rows, stored)
    sends = positions(whole & stored & (offset != NONE))
    calls = positions(original & rows.are(Kind.DELIVER))
    sent = np.where(whole[calls], NOWHERE, _sends_of(rows, calls, sends, offset))
    told = whole[calls] | (sent != NOWHERE)
    given, sent, message = calls[told], sent[told], dense(rows.queue, rows.text("message_id"))[0]
    also_wanted = np.isin(message[given], message[rows.are(Kind.SEND) & wanted])
    unwanted = np.where(sent == NOWHERE, ~wanted[given], ~wanted[sent] & ~also_wanted)
    findings.at_stake(given)
    given, sent = given[unwanted], sent[unwanted]
    late = rows.begins_late(given)
    findings.broken(Unwanted, given=given, sent=sent, certain=(sent == NOWHERE) | ~late)
    weak = np.isin(rows.number("code"), STORED_WEAKLY)
    _holes(rows, findings, original, sends[(wanted & ~weak)[sends]], offset)


def _sends_of(rows: Rows, calls: Ints, sends: Ints, offset: Ints) -> Ints:
    """Of each delivery a send that was acknowledged at its place with its id; NOWHERE without one."""
    both = np.concatenate([calls, sends])
    same, count = dense(rows.queue[both], offset[both], rows.text("message_id")[both])
    named = rows.text("message_id")[calls] != NO_TEXT
    found = chosen(sends, first_of_each(same[len(calls) :], count), NOWHERE)[same[: len(calls)]]
    return np.where(named, found, NOWHERE)


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


def _holes(rows: Rows, findings: Findings, original: Mask, sends: Ints, offset: Ints) -> None:
    """Deliveries above all earlier ones of their incarnation, since it was added and since the last reset."""
    configs = [rows.config_of(place) for place in rows.parties()[1]]
    orderly = np.asarray(
        [each.mode == "orderly" and each.message_model == "clustering" for each in configs],
        np.bool_,
    )
    tenures = rows.shared(Tenures)
    calls = original & tenures.named & rows.are(Kind.DELIVER) & (rows.offset != NONE)
    where = positions(calls & orderly[rows.run])
    if not len(sends) or not len(where):
        return
    life = tenures.period[where]
    highest = Segments(life).highest_before(offset[where])
    raised = (highest != NOWHERE) & (offset[where] > offset[where[np.maximum(highest, 0)]])
    behind, before = where[raised], where[highest[raised]]
    if not len(behind):
        return
    # The first acknowledged send of each place, by place.
    ended = sends[np.argsort(rows.end[sends], kind="stable")]
    place, count = dense(rows.queue[ended], offset[ended])
    sends = ended[first_of_each(place, count)]
    both = np.concatenate([rows.queue[sends], rows.queue[before]])
    keys = composite(dense(both)[0], offset[np.concatenate([sends, before])])
    ours, asked = keys[: len(sends)], keys[len(sends) :]
    order = np.argsort(ours, kind="stable")
    ours, sends = ours[order], sends[order]
    at = np.searchsorted(ours, asked, side="right")
    there = at < len(sends)
    next_sent = sends[np.minimum(at, len(sends) - 1)]
    there &= (rows.queue[next_sent] == rows.queue[behind]) & (offset[next_sent] < offset[behind])
    for each in positions(there).tolist():
        _judge(rows, findings, int(before[each]), sends[at[each] :], offset, int(behind[each]))


def _judge(
    rows: Rows, findings: Findings, before: int, sends: Ints, offset: Ints, behind: int
) -> None:
    """The first of these sends, by place, that was there and is kept when the delivery behind it began."""
    name, now = rows.name_of("broker", behind), int(rows.begin[behind])
    low = rows.shared(Tenures).moved_to(behind)
    low = max(low, rows.context_of(behind).kept_from(rows.queue_of(behind), now))
    for sent in sends.tolist():
        if rows.queue[sent] != rows.queue[behind] or offset[sent] >= offset[behind]:
            return
        if rows.end[sent] >= now or broker_died(rows, sent, now, name):
            continue
        if offset[sent] >= low:
            findings.at_stake(np.asarray([behind], np.int64))
            roles = {"before": before, "sent": sent, "behind": behind}
            findings.shown(PassedOver, roles, {"offset": int(offset[sent])})
            return


def explain(found: Unwanted | PassedOver) -> str:
    if isinstance(found, Unwanted):
        given = found.given
        tags = (found.sent or given).tags
        tag = f"the tag {tags}" if tags else "no tag"
        return (
            f"{who(given)} was given message {given.message_id} at offset {given.queue_offset} of {given.queue} at "
            f"{at(given)}, which has {tag}, and group {given.group} does not subscribe to that"
        )
    before, sent, behind = found.before, found.sent, found.behind
    return (
        f"{who(behind)} went from offset {before.queue_offset} of {behind.queue} to offset {behind.queue_offset} at "
        f"{at(behind)} and passed over message {sent.message_id} at offset {found.offset}, whose tag {sent.tags} "
        f"group {behind.group} subscribes to"
    )
