"""A message is handed out again, to whomever, only when its lease has ended.

By its time, by whatever may have acknowledged or released it, or with its holder's connection. Judged whenever a
message is handed out that was handed out before, and refuted as in one_holder_of_a_message, which is this for two
members. Says nothing about a message that comes again after it was acknowledged.

A release may ask for a pause (`suspend_ms`), and the message comes no sooner than that after it. Judged at the first
hand-out after the release was answered, if whoever released it certainly had the lease until then: a server may answer
a late release and take it for nothing. A renewal, an acknowledgement or another release that may be applied after it
may have ended the pause, and so may whatever ends a lease with its holder's connection.
"""

from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_MOVED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us, who
from specs.facts.columns import MS, NO_TEXT, NOWHERE, Ints
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, MessageLeases, may_be_cut
from specs.facts.segments import is_first, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "PML-2"
TITLE = "no redelivery before the lease ended"
STATEMENT = (
    "A message that was handed out is not handed out again before its lease has ended: by its time, by an "
    "acknowledgement or a release, or with its holder's connection; nor before the pause is over that the release "
    "asked for."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_MOVED)
SOURCES = ("docs/sources.md#leases-of-messages",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})
COLUMNS = (*LEASE_COLUMNS, "suspend_ms")


class HandedOutAgain(Finding):
    first: Row
    second: Row


class HandedOutWithinThePause(Finding):
    first: Row
    release: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """At stake whenever the message is handed out again, and once more where that is the first time after a pause."""
    again, _ = rows.shared(MessageLeases).again()
    findings.at_stake(again)
    first, second = rows.shared(MessageLeases).of_one_message
    is_last = is_first(second)
    findings.broken(HandedOutAgain, first=first[is_last], second=second[is_last])
    _judge_pauses(rows, findings)


def _judge_pauses(rows: Rows, findings: Findings) -> None:
    first, release, second = _after_pauses(rows)
    findings.at_stake(second)
    pause_us = rows.number("suspend_ms")[release] * MS
    last_us = rows.started[release] + pause_us - rows.clocks_us(second) - MS
    early = rows.ended[second] < last_us
    first, release, second = first[early], release[early], second[early]
    findings.broken(HandedOutWithinThePause, first=first, release=release, second=second)


def _after_pauses(rows: Rows) -> tuple[Ints, Ints, Ints]:
    """First hand-outs after a release with a pause that certainly was the last word about the message.

    Before each the release, and before that the hand-out whose lease it ended, as it had certainly lived until then.
    """
    leases, begin, end = rows.shared(MessageLeases), rows.begin, rows.end
    of, lease = leases.message, rows.text("lease_id")
    asked = rows.are(Kind.ACK, Kind.RELEASE, Kind.RENEW) & ~rows.ended_as(Outcome.REFUSED)
    asks = Line(of, begin, positions(asked & (of != NOWHERE)))
    pauses = rows.are(Kind.RELEASE) & rows.ended_as(Outcome.OK) & (rows.number("suspend_ms") > 0)
    second = leases.handed[end[leases.handed] < rows.clock_stepped(leases.handed)]
    first = leases.line.last_before(of[second], end[second])
    release = asks.last_before(of[second], end[second])
    some = (first != NOWHERE) & (release != NOWHERE)
    first, release, second = first[some], release[some], second[some]
    some = pauses[release] & (end[first] < begin[release]) & (end[release] <= begin[second])
    some &= (lease[release] != NO_TEXT) & (lease[release] == lease[first])
    some &= rows.client[release] == rows.client[first]
    first, release, second = first[some], release[some], second[some]
    some = leases.live(first, release, begin[release]) & ~may_be_cut(rows, first, end[second])
    for line, key, now in (
        (leases.renewals, of[first], begin[release]),
        (leases.of_any, rows.lane[first], end[second]),
    ):
        least_us = rows.started[release]
        some &= line.first_reaching(key, now, leases.applied_us, least_us) == NOWHERE
    return first[some], release[some], second[some]


def explain(found: HandedOutAgain | HandedOutWithinThePause) -> str:
    if isinstance(found, HandedOutWithinThePause):
        release, second = found.release, found.second
        return (
            f"offset {second.queue_offset} of {second.lane} was handed to {who(second)} at {at(second)}, at most "
            f"{ms(over_us(second) - release.started_us)} after {who(release)} had put it back at {at(release)} for "
            f"{release.suspend_ms} ms"
        )
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"offset {second.queue_offset} of {second.lane} was handed to {who(second)} at {at(second)}, at most {later} "
        f"after {who(first)} had been handed it at {at(first)}; nothing had ended that lease"
    )
