"""Nobody is handed a message of a key while another member's lease of another message of that key lives.

So the messages of a key are worked on one after the other, whoever of the members does it: who holds one keeps all that
lie behind it. What is held, and which of two hand-outs certainly came in the other's lifetime, is said in
`specs.facts.message_leases`. A message that the broker had removed is held no more, whichever of the two it is. Says
nothing of several messages of a key that one member is handed together, nor of messages without a key; that one message
has two holders is another clause's to say, and what a member works on when its lease is over nobody's.

It is the broker's promise over all members of a group. That one client calls its listener for one message of a key at a
time, of those that lie with it, is ORD-11's; and where nobody tells hand-outs and one message of a lane is in flight at
a time, ORD-3 says of calls what is said of hand-outs here.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, CONNECTED, NO_WALL_CLOCK_STEP, NOT_REMOVED
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, over_us, who
from specs.facts.columns import NO_TEXT, NOWHERE, Ints, Mask
from specs.facts.message_leases import LEASE_COLUMNS, OF_LEASES, MessageLeases
from specs.facts.segments import Segments, dense, is_first
from specs.vocabulary import Key, Kind, Party

ID = "KEY-1"
TITLE = "one holder of a key at a time"
STATEMENT = "No two members of a group hold unfinished messages of one key at once."
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, CONNECTED, NOT_REMOVED)
SOURCES = ("docs/sources.md#holders-of-a-key",)
KINDS = OF_LEASES
NEEDS = frozenset({Kind.RECEIVE})
COLUMNS = (*LEASE_COLUMNS, "sharding_key")


class TwoHoldersOfAKey(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """At stake is each hand-out of a key to another member than the last time.

    Of each other message of the key that somebody else has the last hand-out is told.
    """
    leases, key = rows.shared(MessageLeases), rows.text("sharding_key")
    keyed = leases.handed[(key[leases.handed] != NO_TEXT) & (rows.client[leases.handed] != NO_TEXT)]
    keyed = keyed[np.argsort(rows.end[keyed], kind="stable")]
    key = dense(rows.lane, key)[0]
    before = Segments(key[keyed]).previous()
    other = (before != NOWHERE) & (rows.client[keyed] != rows.client[keyed[before]])
    findings.at_stake(keyed[other & (rows.end[keyed] < rows.clock_stepped(keyed))])

    def of_two(first: Ints, second: Ints) -> Mask:
        found: Mask = leases.message[first] != leases.message[second]
        found &= rows.client[first] != rows.client[second]
        return found

    first, second = leases.together(key, keyed, of_two)
    held = ~_removed(rows, first, second)
    either = held & (rows.end[first] >= rows.begin[second])
    held[either] = ~_removed(rows, second[either], first[either])
    first, second = first[held], second[held]
    order = np.argsort(-rows.begin[first], kind="stable")
    first, second = first[order], second[order]
    is_last = is_first(second, leases.message[first])
    findings.broken(TwoHoldersOfAKey, first=first[is_last], second=second[is_last])


def _removed(rows: Rows, held: Ints, other: Ints) -> Mask:
    """Had the broker removed each message that is held by the time of the other answer?"""
    found = [
        int(rows.offset[at]) < rows.context_of(at).kept_from(rows.queue_of(at), now)
        for at, now in zip(held.tolist(), rows.end[other].tolist(), strict=True)
    ]
    return np.asarray(found, np.bool_)


def explain(found: TwoHoldersOfAKey) -> str:
    first, second = sorted((found.first, found.second), key=lambda row: row.seq_begin)
    later = ms(over_us(second) - first.started_us)
    return (
        f"{who(second)} was handed offset {second.queue_offset} of {second.lane} (key {second.sharding_key}) at "
        f"{at(second)}, at most {later} after {who(first)} had been handed offset {first.queue_offset} of that key at "
        f"{at(first)}, whose lease had not ended"
    )
