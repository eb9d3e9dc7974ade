"""An exhausted message reaches the group's dead letters within the bound.

(a) A message whose dead letter was acknowledged is found when the group's dead-letter queues are read afterwards. As in
SND-1, an acknowledgement with a code from 10 to 12 (stored, but not flushed or replicated in time) promises less. (b) A
message that was delivered for the last time allowed, in vain, and was then passed by (the incarnation went on to a
higher offset in a later call) without any dead letter being sent, is found there too, or else it is gone, also where a
later incarnation is given it again. A message that lies at two places of the topic, and was given up at both, is to be
found twice. Decided by the final drain: every queue of `%DLQ%` + group that the history shows must have been read to
its end by a read that began at least the bound later, in which no broker of these queues stood still; a read that
failed decides nothing. What an earlier drain had found at or beyond the end that the last one of its queue tells is
gone. A queue is shown by a READ, by whoever adds it as a lane, and by a TRIM; where calls take dead letters and nobody
has added a lane of them, nobody knows of which queue, and nothing is said. A drain's READ rows of that topic name the
group. A copy is known by the id of its origin, or by its own where it kept that of its message and names as its origin
none that was given up. One that has neither may be any that is missed: as many of those, the first ones, are passed
over as there are such copies, whoever wrote them. In an open world there may be dead-letter queues that nobody read, of
brokers that nobody named: what is not found there is at most possibly lost. (b) needs the auto mode and a limit. A dead
letter that was begun before the broker removed some of the group's dead letters on purpose, and is not found
afterwards, may have been one of them, unless it was too young for that (`keep_ms`, but not where a fault had filled
that broker's disk); what was begun later lies above the announced minimum.
"""

import numpy as np

from specs.clauses.premises import DRAINED, NOT_REMOVED, NOTHING_TAKEN_BACK, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.calls import may_be_by_hand
from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import ONLY_DEAD_READS, dead_reads
from specs.facts.drains import Drains
from specs.facts.segments import Batches, Segments, Timeline, dense, is_first, positions
from specs.facts.stored import STORED_WEAKLY, copies
from specs.facts.tenures import TENURE_COLUMNS, Tenures
from specs.vocabulary import LISTENER_SUSPENDS, Key, Kind, Outcome, Party, dead_letter_topic

ID = "DLQ-1"
TITLE = "an exhausted message reaches the dead letters"
STATEMENT = "An exhausted message reaches its group's dead-letter queue within the bound."
PARTY = Party.PAIR
KEY = Key.GROUP
PREMISE = (ORDERLY, DRAINED, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#dead-letters",)
KINDS = frozenset({Kind.DEAD_LETTER, Kind.READ, Kind.DELIVER, Kind.ADD})
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.READ})
ONLY = ONLY_DEAD_READS
EXCUSED_BY = frozenset({Kind.CRASH, Kind.RESET})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = (*TENURE_COLUMNS, "commit_mode", "message_id", "op_id", "origin_id", "reconsume_times")


class NotFound(Finding):
    """given_up: its acknowledged dead letter."""

    given_up: Row
    drained: Row


class PassedBy(Finding):
    """last: its last delivery. passed: the delivery that passed it by."""

    last: Row
    passed: Row
    drained: Row


def judge(rows: Rows, findings: Findings) -> None:
    """What was given up, or passed by, beside the dead letters that were read: a copy for each of its places."""
    drains = Drains(rows)
    if not len(drains.reads):
        return
    names = _Names(drains, _exhausted(rows))
    row, passed = _due(rows, drains, *_passed_by(rows, findings))
    message, group = names.message[row], drains.group[row]
    copy, of = names.copies()
    found_at = Timeline(of, rows.begin[copy])
    first = Batches(message).lowest(rows.begin[row])[dense(message)[0]]
    number = found_at.count_before(message, np.full(len(row), NEVER))
    is_found = Segments(message).nth() < number - found_at.count_before(message, first)
    missed = positions(~is_found)
    missed = missed[~_may_be_removed(rows, row[missed], drains.last[group[missed]])]
    missed = missed[Segments(group[missed]).nth() >= names.may_be_any()[group[missed]]]
    findings.at_stake(row[is_found])
    findings.at_stake(row[missed])
    row, passed, drained = row[missed], passed[missed], drains.last[group[missed]]
    told = passed == NOWHERE
    findings.broken(NotFound, given_up=row[told], drained=drained[told])
    findings.broken(PassedBy, last=row[~told], passed=passed[~told], drained=drained[~told])


def pick(rows: Rows) -> Ints:
    """Dead letters, and of whole lanes few of the deliveries and adds.

    Judged with these alone it finds the same: every delivery that exhausts its message is there, what came next of the
    message or passed it by, and where their tenures began.
    """
    exhausted = _exhausted(rows)
    _, again, beyond = _after(rows, exhausted)
    calls = np.concatenate([exhausted, again, beyond])
    calls = np.concatenate([calls, rows.shared(Tenures).add[calls]])
    letters = positions(rows.are(Kind.DEAD_LETTER) | dead_reads(rows))
    return np.union1d(calls[calls != NOWHERE], letters)


def _exhausted(rows: Rows) -> Ints:
    """Deliveries of messages for the last time allowed, in vain and in auto mode."""
    vain = rows.are(Kind.DELIVER) & rows.ended_as(*LISTENER_SUSPENDS) & ~may_be_by_hand(rows)
    vain &= (rows.group != NO_TEXT) & (rows.offset >= 0) & (rows.end < NEVER)
    at = positions(vain & ~copies(rows))
    limit = rows.config("max_reconsume_times", at)
    return at[(limit >= 0) & (rows.number("reconsume_times")[at] >= limit)]


def _after(rows: Rows, exhausted: Ints) -> tuple[Ints, Ints, Ints]:
    """Of each of these deliveries that names its incarnation: it, what came next of its message in the incarnation, be
    it a dead letter, and, where nothing did, the first delivery that passed it by in its tenure; or NOWHERE."""
    tenures, offset, call = rows.shared(Tenures), rows.offset, rows.number("op_id")
    last = exhausted[tenures.named[exhausted]]
    tried = positions(rows.are(Kind.DELIVER, Kind.DEAD_LETTER) & tenures.named & (offset >= 0))
    message = tenures.message
    again = Line(message, rows.begin, tried).first_after(message[last], rows.begin[last])
    beyond, left = np.full(len(last), NOWHERE, np.int64), positions(again == NOWHERE)

    def passes(index: Ints, later: Ints) -> Mask:
        of = last[left[index]]
        found: Mask = (offset[later] > offset[of]) & (call[later] != call[of])
        return found

    calls = Line(tenures.number, rows.begin, tried[rows.are(Kind.DELIVER)[tried]])
    beyond[left] = calls.first_after_with(tenures.number[last[left]], rows.end[last[left]], passes)
    return last, again, beyond


def _passed_by(rows: Rows, findings: Findings) -> tuple[Ints, Ints]:
    """The last deliveries of messages that were passed by before anybody moved the lane, and what passed each by; in
    the order of these."""
    last, _, beyond = _after(rows, _exhausted(rows))
    order = np.argsort(rows.begin[beyond], kind="stable")
    order = order[beyond[order] != NOWHERE]
    last, beyond = last[order], beyond[order]
    kept = rows.begin[beyond] <= rows.moved_from(last)
    return last[kept], beyond[kept]


class _Names:
    """Of each row the number of the message that it is about, in its group. tried: deliveries that exhausted it."""

    def __init__(self, drains: Drains, tried: Ints) -> None:
        self.rows = rows = drains.rows
        self.drains, self.own = drains, rows.text("message_id")  # of the same codes as the sources
        self._width = 2 + max(int(rows.source.max()), int(self.own.max()))
        self.message = self._numbered(rows.source)
        tried = np.concatenate([tried, rows.of(Kind.DEAD_LETTER)])
        self._known = self.message[tried[rows.source[tried] != NO_TEXT]]

    def _numbered(self, name: Ints) -> Ints:
        return self.drains.group * self._width + name + 1

    def _is_known(self, copy: Ints) -> Mask:
        """Is the origin that a copy names, or else it itself, known to have been tried for the last time?"""
        return np.isin(self.message[copy], self._known)

    def copies(self) -> tuple[Ints, Ints]:
        """Of each place where a copy still lies its last read, and the message that it is a copy of.

        It is told by the id of its origin; and by its own, where that is another one and the origin is not known.
        """
        rows, own, reads = self.rows, self.own, self.drains.reads
        named = reads[rows.ended_as(Outcome.OK)[reads] & (rows.source[reads] != NO_TEXT)]
        also = (own[named] != NO_TEXT) & (own[named] != rows.source[named])
        itself = named[also & ~self._is_known(named)]
        copy = np.concatenate([named, itself])
        of = np.concatenate([self.message[named], self._numbered(own)[itself]])
        order = np.argsort(-rows.end[copy], kind="stable")
        copy, of = copy[order], of[order]
        lies = is_first(of, rows.lane[copy], rows.offset[copy]) & self.drains.still_lies(copy)
        return copy[lies], of[lies]

    def may_be_any(self) -> Ints:
        """Of each group how many copies have an id of their own, or none, and name no origin."""
        rows, group, reads = self.rows, self.drains.group, self.drains.reads
        found = rows.ended_as(Outcome.OK) & (rows.text("origin_id") == NO_TEXT)
        found &= (rows.source != NO_TEXT) | (rows.offset != NONE)
        copy = reads[found[reads]]
        copy = copy[~self._is_known(copy)]
        copy = copy[is_first(self.message[copy], rows.lane[copy], rows.offset[copy])]
        return np.bincount(group[copy], minlength=len(self.drains.last))


def _due(rows: Rows, drains: Drains, last: Ints, passed: Ints) -> tuple[Ints, Ints]:
    """What was given up, or passed by (the last delivery, and what passed it by; else NOWHERE), long enough before the
    readings began: once for each message and place, by begin."""
    place, of = dense(rows.lane, rows.offset)[0], dense(rows.lane, rows.offset, rows.source)[0]
    named = (rows.group != NO_TEXT) & (rows.source != NO_TEXT)
    letter = positions(rows.are(Kind.DEAD_LETTER) & named)
    letter = letter[np.argsort(rows.end[letter], kind="stable")]
    kept = rows.ended_as(Outcome.OK) & ~np.isin(rows.number("code"), STORED_WEAKLY)
    sent, unsure = letter[kept[letter]], letter[~kept[letter]]
    tried = Line(place, rows.end, unsure).first_after(place[last], rows.begin[last])
    told = np.isin(of[last], of[sent]) | (tried != NOWHERE)
    asks, sent = ~told & named[last] & is_first(of[last]), sent[is_first(of[sent])]
    row = np.concatenate([sent, last[asks]])
    then = np.concatenate([np.full(len(sent), NOWHERE), passed[asks]])
    over_us = np.where(rows.ended[row] == NEVER, rows.started[row], rows.ended[row])
    since = np.where(then == NOWHERE, rows.end[row], rows.begin[then])
    since_us = np.where(then == NOWHERE, over_us, rows.started[then])
    waited = drains.waited_for(row, since, since_us)
    row, then = row[waited], then[waited]
    order = np.argsort(rows.begin[row], kind="stable")
    return row[order], then[order]


def _may_be_removed(rows: Rows, given_up: Ints, last: Ints) -> Mask:
    """May the broker have removed each dead letter on purpose? Not while it keeps everything."""
    found = np.zeros(len(given_up), np.bool_)
    for index, (row, read) in enumerate(zip(given_up.tolist(), last.tolist(), strict=True)):
        context = rows.context_of(row)
        config, begun = context.info.config, int(rows.begin[row])
        young_us = int(rows.started[row]) + config.keep_ms * MS - context.info.clock_bound_us
        keeps = config.keep_ms > 0 and context.clock_stepped == NEVER
        topic = dead_letter_topic(rows.name_of("group", row))
        found[index] = any(
            begun < seq <= rows.end[read]
            and not (keeps and at_us < young_us and not context.is_crowded(broker, NEVER - 1))
            for seq, at_us, broker in context.removals.get(topic, ())
        )
    return found


def explain(found: NotFound | PassedBy) -> str:
    row, drained = found.last if isinstance(found, PassedBy) else found.given_up, found.drained
    message = f"message {row.source_id} (offset {row.queue_offset} of {row.lane})"
    missing = f"its dead letter was not among the {drained.value} that were read at {at(drained)}"
    if isinstance(found, NotFound):
        later = ms(drained.started_us - over_us(row))
        return f"{who(row)} gave up {message} at {at(row)} and was told that it is stored; {later} later {missing}"
    return (
        f"{message} had its last delivery at {at(row)} (retry {row.reconsume_times}, {row.outcome}) and {who(row)} "
        f"went on to offset {found.passed.queue_offset} at {at(found.passed)} without giving it up; {missing}"
    )
