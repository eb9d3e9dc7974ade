"""The messages of one sharding key reach a group for the first time in the order of their numbers.

The end-to-end promise, which a plain consumer log can decide: the producer numbers the messages of a key, and no matter
how many clients share the work, a message that nobody of the group has been given yet must not come after one with a
higher number. Only messages of one queue are compared (a changed queue list moves keys), and where the offsets are
known and lie the other way round, the log itself holds them so: that is the producer's business. Nothing is said of a
lane whose offset an operator has moved: messages that were skipped so may come later. Nor of a message that the broker
had removed on purpose before the higher one was delivered: only who had it already could still be given it. Where a
group is known not to begin with the first message (`consume_from`), who takes a queue over for which no offset is
stored begins behind what others may hold and be given later: only what one incarnation was given is compared, the
higher one whether or not somebody else had it before. Where the broker died between the two deliveries, as a crash or a
later epoch tells, its log may have been cut short or made anew, so that the numbers begin again: then a finding is at
most possible.
"""

import numpy as np

from specs.clauses.premises import IN_PLACE, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK, SENT_IN_TURN
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NONE, NOWHERE
from specs.facts.gone import kept_from
from specs.facts.presence import brokers_died
from specs.facts.segments import Segments, dense, is_first, positions
from specs.vocabulary import Key, Kind, Party

ID = "ORD-12"
TITLE = "first deliveries follow the key"
STATEMENT = "For each sharding key, first deliveries to a group follow the key's sequence."
PARTY = Party.PAIR
KEY = Key.GROUP_KEY
PREMISE = (IN_PLACE, SENT_IN_TURN, NO_RESET, NOT_REMOVED, NOTHING_TAKEN_BACK)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#send")
KINDS = frozenset({Kind.DELIVER})
NEEDS = frozenset({Kind.DELIVER})
EXCUSED_BY = frozenset({Kind.CRASH})
CONCLUDES_FROM_ABSENCE = True
LOOKS_BACK = True
COLUMNS = ("client_id", "incarnation", "queue_offset", "sharding_key", "key_seq")


class KeyOvertaken(Finding):
    highest: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """First deliveries of each number of a key, against the highest that was delivered before in their queue.

    Per incarnation, in runs where one may begin behind what others hold.
    """
    number = rows.number("key_seq")
    where = positions(rows.are(Kind.DELIVER) & (number != NONE))
    if not len(where):
        return
    key = (rows.run, rows.group, rows.text("topic"), rows.text("sharding_key"))
    first = is_first(*(column[where] for column in key), number[where])
    skips = [
        code
        for code, run in enumerate(rows.words("run"))
        if run in rows.runs and rows.runs[run].info.config.consume_from != "first"
    ]
    may_skip = np.isin(rows.run[where], skips)
    counts = ~may_skip | rows.names_incarnation[where]
    where, may_skip, first = where[counts], may_skip[counts], first[counts]
    queue_of_key, _ = dense(
        *(column[where] for column in key),
        rows.text("broker")[where],
        rows.number("queue_id")[where],
        np.where(may_skip, rows.incarnation[where], NOWHERE),
    )
    highest = Segments(queue_of_key).highest_before(number[where])
    after = positions(first & (highest != NOWHERE))
    findings.at_stake(where[after])
    place, before = where[after], where[highest[after]]
    offset, other = rows.offset[place], rows.offset[before]
    stored_so = (offset != NONE) & (other != NONE) & (offset > other)
    wrong = (number[place] <= number[before]) & ~stored_so
    place, before, offset = place[wrong], before[wrong], offset[wrong]
    removed = (offset != NONE) & (offset < kept_from(rows, before))
    wrong = ~removed & (rows.moved_from(place) >= rows.begin[place])
    place, before = place[wrong], before[wrong]
    certain = ~brokers_died(rows, before, rows.begin[place])
    findings.broken(KeyOvertaken, highest=before, second=place, certain=certain)


def explain(found: KeyOvertaken) -> str:
    first, second = found.highest, found.second
    return (
        f"group {second.group} was given number {second.key_seq} of key {second.sharding_key} for the first time at "
        f"{at(second)} (by {who(second)}), after number {first.key_seq}, which it had been given at {at(first)} "
        f"(by {who(first)})"
    )
