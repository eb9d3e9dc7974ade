"""Histories of which the product still says another thing than the definition: a clause, how they differ, and why.

Whoever settles one takes it out of here; a difference that is gone fails the tests too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from specs.history.row import Row
from specs.history.text import parse_history
from specs.vocabulary import Kind, Outcome


class Known(NamedTuple):
    """How it differs is a word of `enumeration.difference`."""

    clause: str
    how: str
    why: str
    history: str


KNOWN = (
    Known(
        "LIV-1",
        "missed",
        "who adds a lane while it is leaving is taken to have left it",
        """
        0ms..15ms  alice leaves billing
        10ms       alice adds   billing/orders/b0/3 value=17
        20ms..25ms drain reads  orders/b0/3 value=18 detail=settled ok
        21ms       drain reads  orders/b0/3 offset=17 id=m17 ok
        """,
    ),
    Known(
        "LSE-2",
        "missed",
        "an unlock in mid-call, which may arrive after a later grant, is taken for an excuse",
        """
        config broker_lease_ms=300 client_lease_ms=200 delay_bound_ms=100
        0ms..450ms   alice delivers billing/orders/b0/3 offset=17 id=m17 success
        100ms        alice unlocks  billing/orders/b0/3 sent
        200ms        alice locks    billing/orders/b0/3 ok
        300ms..350ms bob   delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-2",
        "missed",
        "of several running calls of one client id only the first is compared with another process",
        """
        config broker_lease_ms=300 client_lease_ms=150 guard_slack_ms=50
        0ms..        alice delivers billing/orders/b0/3 offset=17 id=m17
        100ms        alice locks    billing/orders/b0/3 ok
        200ms..650ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        300ms..450ms alice delivers billing/orders/b0/3 offset=17 id=m17 process=p2 success
        """,
    ),
    Known(
        "SND-1",
        "missed",
        "what was read before its send was answered does not count as read before",
        """
        config delay_bound_ms=15
        0ms..25ms  shop  sends orders/b0/3 offset=17 id=m17 ok
        10ms       drain reads orders/b0/3 offset=17 id=m17 ok
        30ms..35ms drain reads orders/b0/3 value=17 ok
        """,
    ),
    Known(
        "SND-1",
        "missed",
        "what was read before a reading began counts for it, where another reading was going on",
        """
        0ms..5ms   shop  sends orders/b0/3 offset=17 id=m17 ok
        10ms..35ms drain reads orders/b0/3 value=19 ok
        20ms       drain reads orders/b0/3 offset=17 id=m17 ok
        30ms..34ms audit reads orders/b0/3 value=18 ok
        """,
    ),
    Known(
        "LSE-1",
        "missed",
        "of two grants of one client that overlap only the one that was answered last is looked at",
        """
        config broker_lease_ms=300 delay_bound_ms=100
        0ms..150ms   alice locks billing/orders/b0/3 ok
        100ms..140ms alice locks billing/orders/b0/3 ok
        200ms..350ms bob   locks billing/orders/b0/3 ok
        """,
    ),
    Known(
        "LSE-1",
        "missed",
        "an unlock of the one who asked last, begun too late to matter, is taken for an excuse",
        """
        config broker_lease_ms=300 delay_bound_ms=100
        0ms..150ms   alice locks   billing/orders/b0/3 ok
        100ms..250ms bob   locks   billing/orders/b0/3 ok
        200ms..250ms bob   unlocks billing/orders/b0/3 ok
        """,
    ),
    Known(
        "LSE-4",
        "missed",
        "a client's own request that was granted while it was refused another one silences the refusal",
        """
        config broker_lease_ms=60000
        0ms          bob locks billing/orders/b0/3 ok
        100ms..250ms bob locks billing/orders/b0/3 refused
        200ms        bob locks billing/orders/b0/3 ok
        """,
    ),
    Known(
        "LSE-4",
        "missed",
        "likewise after a crash of the broker",
        """
        config broker_lease_ms=200
        0ms          b0  crashes b0
        100ms..250ms bob locks billing/orders/b0/3 refused
        200ms        bob locks billing/orders/b0/3 ok
        """,
    ),
    Known(
        "LSE-4",
        "missed",
        "likewise after its owner gave the lane back",
        """
        config broker_lease_ms=200 delay_bound_ms=100
        0ms          alice locks   billing/orders/b0/3 ok
        100ms..150ms alice unlocks billing/orders/b0/3 ok
        200ms..350ms bob   locks   billing/orders/b0/3 refused
        300ms        bob   locks   billing/orders/b0/3 ok
        """,
    ),
    Known(
        "LSE-4",
        "missed",
        "likewise of one that was refused before the answer of one that was asked for earlier",
        """
        config broker_lease_ms=150 delay_bound_ms=150
        0ms..50ms    alice locks billing/orders/b0/3 ok
        100ms..350ms bob   locks billing/orders/b0/3 ok
        200ms..250ms alice locks billing/orders/b0/3 refused
        300ms..350ms bob   locks billing/orders/b0/3 refused
        """,
    ),
    Known(
        "LSE-4",
        "missed",
        "likewise of a client that was seen to join",
        """
        config broker_lease_ms=150 delay_bound_ms=150
        0ms..50ms    bob joins billing
        100ms..350ms bob locks billing/orders/b0/3 ok
        200ms..250ms bob joins billing
        300ms..360ms bob locks billing/orders/b0/3 refused
        """,
    ),
    Known(
        "ORD-12",
        "missed",
        "where a group begins in the midst, what somebody else was given first is not looked at again",
        """
        config consume_from=last
        0ms..5ms   alice delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        10ms..15ms bob   delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        20ms..25ms bob   delivers billing/orders/b0/3 offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    Known(
        "ORD-12",
        "missed",
        "likewise of what its own earlier life was given",
        """
        config consume_from=last
        0ms..5ms   alice delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        10ms       alice crashes  -
        20ms..25ms alice delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        30ms..35ms alice delivers billing/orders/b0/3 offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    Known(
        "ORD-12",
        "missed",
        "likewise where it was the same client in an earlier life",
        """
        config consume_from=last
        0ms..5ms   alice delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        10ms       alice crashes  -
        20ms..25ms alice delivers billing/orders/b0/3 offset=18 id=m18 key=k1 key_seq=5 success
        30ms..35ms alice delivers billing/orders/b0/3 offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    Known(
        "PML-1",
        "missed",
        "of several hand-outs to one member only the last one is compared with the next member's",
        """
        0ms..5ms   alice receives billing/orders/b0/3 offset=17 ok
        10ms..15ms alice receives billing/orders/b0/3 offset=17 until=36ms ok
        40ms..45ms bob   receives billing/orders/b0/3 offset=17 until=60ms ok
        """,
    ),
    Known(
        "SND-2",
        "missed",
        "a place that was seen when every try until then had been refused is not remembered",
        """
        0ms..5ms   shop  sends    orders/b0/3 id=m17 attempt=1 code=14 refused
        10ms..15ms alice delivers billing/orders/b0/3 offset=18 id=m17 success
        20ms..25ms shop  sends    orders/b0/3 offset=17 id=m17 attempt=1 ok
        """,
    ),
    Known(
        "SND-2",
        "missed",
        "likewise where a reader saw it",
        """
        0ms..5ms   shop  sends orders/b0/3 id=m17 attempt=1 code=14 refused
        10ms..15ms drain reads orders/b0/3 offset=19 id=m17 ok
        20ms..25ms shop  sends orders/b0/3 offset=17 id=m17 attempt=1 ok
        """,
    ),
    Known(
        "SND-2",
        "missed",
        "likewise of a place that was seen when a try before the last was not yet told",
        """
        0ms..5ms   till  sends    orders/b0/4 offset=17 id=m17 attempt=2 ok
        10ms..15ms alice delivers billing/orders/b0/3 offset=18 id=m17 success
        20ms..25ms shop  sends    orders/b0/3 offset=17 id=m17 attempt=1 ok
        """,
    ),
    Known(
        "DLQ-3",
        "missed",
        "a batch excuses though its other message had come again without the one that was given up",
        """
        0ms..5ms   alice delivers     billing/orders/b0/3 offset=17 id=m17 call=0 suspend
        0ms..5ms   alice delivers     billing/orders/b0/3 offset=18 id=m18 call=0 suspend
        10ms..15ms alice delivers     billing/orders/b0/3 offset=17 id=m17 success
        20ms..25ms alice dead-letters billing/orders/b0/3 offset=18 id=m18 ok
        30ms..35ms alice delivers     billing/orders/b0/3 offset=17 id=m17 call=3 suspend
        30ms..35ms alice delivers     billing/orders/b0/3 offset=18 id=m18 call=3 suspend
        """,
    ),
    Known(
        "PML-2",
        "missed",
        "of several hand-outs that overlap only the last one is compared with the next",
        """
        config delay_bound_ms=12
        0ms        alice releases billing/orders/b0/3 offset=17 sent
        10ms..35ms bob   receives billing/orders/b0/3 offset=17 until=40ms ok
        20ms..25ms alice receives billing/orders/b0/3 offset=17 until=50ms ok
        30ms..35ms alice receives billing/orders/b0/3 offset=17 until=60ms ok
        """,
    ),
    Known(
        "PML-2",
        "missed",
        "likewise where the last one goes to the other member",
        """
        config delay_bound_ms=12
        0ms        alice releases billing/orders/b0/3 offset=17 sent
        10ms..35ms bob   receives billing/orders/b0/3 offset=17 until=40ms ok
        20ms..25ms alice receives billing/orders/b0/3 offset=17 until=50ms ok
        30ms..35ms bob   receives billing/orders/b0/3 offset=17 until=60ms ok
        """,
    ),
    Known(
        "PML-2",
        "missed",
        "likewise of three hand-outs of which the first is the longest on its way",
        """
        config delay_bound_ms=12
        0ms alice releases billing/orders/b0/3 offset=17 sent
        10ms..35ms bob   receives billing/orders/b0/3 offset=17 until=40ms ok
        20ms..25ms bob   receives billing/orders/b0/3 offset=17 until=50ms ok
        30ms..35ms bob   receives billing/orders/b0/3 offset=17 until=60ms ok
        """,
    ),
    Known(
        "SND-3",
        "invented",
        "two tries with one number count for all tries up to that number",
        """
        0ms..5ms   shop  sends    orders/b0/3 id=m17 attempt=2 code=14 refused
        10ms..15ms shop  sends    orders/b0/3 id=m17 attempt=2 code=14 refused
        20ms..25ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "SND-3",
        "invented",
        "likewise where it is read",
        """
        0ms..5ms   shop  sends orders/b0/3 id=m17 attempt=2 code=14 refused
        10ms..15ms shop  sends orders/b0/3 id=m17 attempt=2 code=14 refused
        20ms..25ms drain reads orders/b0/3 offset=17 id=m17 ok
        """,
    ),
    Known(
        "SND-4",
        "missed",
        "where the first send that is told is a further try, nothing is said of later ones",
        """
        0ms..5ms   shop sends orders/b0/3 id=m17 key=k1 attempt=2 unknown
        10ms..15ms shop sends orders/b0/3 id=m17 key=k1 attempt=1 unknown
        20ms..25ms shop sends orders/b0/3 id=m17 key=k1 attempt=2 unknown
        """,
    ),
    Known(
        "SND-4",
        "missed",
        "likewise where the first try was refused",
        """
        0ms..5ms   shop sends orders/b0/3 id=m17 key=k1 attempt=2 unknown
        10ms..15ms shop sends orders/b0/3 id=m17 key=k1 attempt=1 code=14 refused
        20ms..25ms shop sends orders/b0/3 id=m17 key=k1 attempt=2 unknown
        """,
    ),
    Known(
        "RTY-8",
        "invented",
        "what a COMMIT has covered counts as unfinished while that COMMIT's call is the last one",
        """
        0ms..5ms   alice delivers     billing/orders/b0/3 offset=17 id=m17 mode=manual success
        10ms..15ms alice delivers     billing/orders/b0/3 offset=18 id=m18 mode=manual commit
        20ms..25ms alice dead-letters billing/orders/b0/3 offset=17 id=m17 ok
        """,
    ),
    Known(
        "ORD-5",
        "invented",
        "an incarnation of which nobody knows the start is not seen to meet a reset",
        """
        0ms..5ms   alice fetches  billing/orders/b0/3 inc=1 value=-1 refused
        10ms..15ms admin resets   billing/orders/b0/3 value=16
        20ms..25ms alice fetches  billing/orders/b0/3 inc=1 value=18 ok
        30ms..35ms alice delivers billing/orders/b0/3 offset=16 id=m16 success
        """,
    ),
    Known(
        "ORD-5",
        "invented",
        "likewise of one whose look-up is under way when the offset is reset",
        """
        0ms..25ms  alice fetches  billing/orders/b0/3 inc=1 value=18 ok
        20ms..24ms admin resets   billing/orders/b0/3 value=16
        30ms..35ms alice delivers billing/orders/b0/3 offset=16 id=m16 success
        """,
    ),
    Known(
        "ORD-5",
        "invented",
        "a look-up that began before its incarnation was added sets the start when it is answered",
        """
        0ms..25ms  alice fetches  billing/orders/b0/3 inc=1 value=18 ok
        10ms       alice adds     billing/orders/b0/3 value=17
        30ms..35ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-15",
        "invented",
        "of two shutdowns of one client only the later one is looked at",
        """
        config shutdown_wait_ms=200
        0ms..350ms   alice leaves   billing
        100ms..550ms alice delivers billing/orders/b0/3 offset=18 id=m18 cut
        200ms..250ms alice leaves   billing
        300ms        alice unlocks  billing/orders/b0/3 inc=1 sent
        """,
    ),
    Known(
        "LSE-15",
        "missed",
        "a shutdown that was over early, while the call ran, excuses once the waiting time would have run out",
        """
        config shutdown_wait_ms=200
        0ms..450ms   alice delivers billing/orders/b0/3 offset=17 id=m17 success
        100ms..150ms alice leaves   billing
        300ms        alice unlocks  billing/orders/b0/3 sent
        """,
    ),
    Known(
        "KEY-1",
        "missed",
        "who is handed a message that another member holds is taken for its only holder",
        """
        config delay_bound_ms=12
        0ms..5ms   bob   receives billing/orders/b0/3 offset=18 key=k1 until=30ms ok
        10ms..15ms alice receives billing/orders/b0/3 offset=18 key=k1 until=60ms ok
        20ms..25ms alice receives billing/orders/b0/3 offset=17 key=k1 until=50ms ok
        """,
    ),
    Known(
        "KEY-1",
        "invented",
        "a hand-out is held against one of a message that had been removed, though that one may have come first",
        """
        config delay_bound_ms=12
        0ms..25ms  bob   receives billing/orders/b0/3 offset=19 key=k1 until=30ms ok
        10ms       b0    trims    orders/b0/3 value=18
        20ms..25ms alice receives billing/orders/b0/3 offset=17 key=k1 until=50ms ok
        """,
    ),
    Known(
        "ORD-4",
        "invented",
        "the look-up of who is not seen to add the lane is not taken for that of its start",
        """
        0ms..5ms   bob   fetches  billing/orders/b0/3 value=-1 refused
        10ms..15ms shop  sends    orders/b0/3 offset=17 id=m17 ok
        20ms..25ms alice fetches  billing/orders/b0/3 value=17 ok
        30ms..35ms bob   delivers billing/orders/b0/3 offset=18 id=m18 success
        """,
    ),
    Known(
        "ORD-4",
        "invented",
        "likewise where the message is known by a delivery",
        """
        0ms..5ms   bob   fetches  billing/orders/b0/3 value=-1 refused
        10ms..15ms alice fetches  billing/orders/b0/3 value=17 ok
        20ms..25ms alice delivers billing/orders/b0/3 offset=17 id=m17 suspend
        30ms..35ms bob   delivers billing/orders/b0/3 offset=18 id=m18 success
        """,
    ),
    Known(
        "ORD-4",
        "invented",
        "likewise where a commit tells what is stored",
        """
        0ms..5ms   bob   fetches  billing/orders/b0/3 value=-1 refused
        10ms..15ms alice delivers billing/orders/b0/3 offset=17 id=m17 suspend
        20ms..25ms alice commits  billing/orders/b0/3 value=17 ok
        30ms..35ms bob   delivers billing/orders/b0/3 offset=18 id=m18 success
        """,
    ),
    Known(
        "ORD-4",
        "invented",
        "likewise where a commit tells it, and a send of the message",
        """
        0ms..5ms   bob   fetches  billing/orders/b0/3 value=-1 refused
        10ms..15ms shop  sends    orders/b0/3 offset=17 id=m17 ok
        20ms..25ms alice commits  billing/orders/b0/3 value=17 ok
        30ms..35ms bob   delivers billing/orders/b0/3 offset=18 id=m18 success
        """,
    ),
    Known(
        "CMT-1",
        "invented",
        "what lies below a correction is owed also where it was delivered only after that",
        """
        0ms        alice adds     billing/orders/b0/3 value=17
        1ms..5ms   alice pulls    billing/orders/b0/3 offset=17 value=18 code=21 refused
        10ms..15ms alice delivers billing/orders/b0/3 offset=17 id=m17 suspend
        20ms..25ms alice commits  billing/orders/b0/3 value=19 sent
        """,
    ),
    Known(
        "CMT-10",
        "invented",
        "as CMT-1: what lies below a correction is owed also where it was delivered only after that",
        """
        config mode=key_ordered max_reconsume_times=1
        0ms..5ms   alice pulls    billing/orders/b0/3 offset=17 value=18 code=21 refused
        10ms..15ms alice delivers billing/orders/b0/3 offset=17 id=m17 rt=0 key=k1 suspend
        20ms..25ms alice commits  billing/orders/b0/3 value=19 sent
        """,
    ),
    Known(
        "CMT-10",
        "missed",
        "a call that ends after its lane was dropped, and added anew under the same name, counts as finished",
        """
        config mode=concurrent
        0ms..25ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        10ms      alice drops    billing/orders/b0/3
        20ms      alice adds     billing/orders/b0/3 value=17
        30ms      alice commits  billing/orders/b0/3 value=18 sent
        """,
    ),
    Known(
        "ORD-11",
        "missed",
        "a dead letter that failed, and does not repeat the key, is not taken for one of the key",
        """
        config mode=key_ordered max_reconsume_times=1
        0ms..5ms   alice delivers     billing/orders/b0/3 offset=17 id=m17 key=k1 rt=1 suspend
        10ms..15ms alice dead-letters billing/orders/b0/3 offset=17 id=m17 refused
        20ms..25ms alice delivers     billing/orders/b0/3 offset=18 id=m18 key=k1 rt=0 success
        """,
    ),
    Known(
        "ORD-11",
        "missed",
        "a message that its key has passed, when it may have been given up, is not asked about again",
        """
        config mode=key_ordered max_reconsume_times=1
        0ms..5ms   alice delivers     billing/orders/b0/3 offset=17 id=m17 key=k1 rt=1 suspend
        10ms..15ms alice delivers     billing/orders/b0/3 offset=18 id=m18 key=k1 rt=0 success
        20ms..25ms alice dead-letters billing/orders/b0/3 offset=17 id=m17 key=k1 unknown
        30ms..35ms alice delivers     billing/orders/b0/3 offset=18 id=m18 key=k1 rt=0 success
        """,
    ),
    Known(
        "LSE-3",
        "missed",
        "of two refusals only the later one is looked at, which may have come after the client's look at its lease",
        """
        config client_lease_ms=150 guard_slack_ms=50
        0ms..50ms    alice locks    billing/orders/b0/3 refused
        100ms..150ms alice locks    billing/orders/b0/3 refused
        200ms..250ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-3",
        "missed",
        "likewise where the lane was added, and nothing was answered before the look",
        """
        config client_lease_ms=150 guard_slack_ms=50
        0ms          alice adds     billing/orders/b0/3 value=17
        100ms..150ms alice locks    billing/orders/b0/3 refused
        200ms..250ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-3",
        "missed",
        "likewise where the client had given the lane back",
        """
        config client_lease_ms=150 guard_slack_ms=50
        0ms          alice unlocks  billing/orders/b0/3 sent
        100ms..150ms alice locks    billing/orders/b0/3 refused
        200ms..250ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-3",
        "missed",
        "likewise where the lease was too old",
        """
        config client_lease_ms=150 guard_slack_ms=50
        0ms          alice locks    billing/orders/b0/3 ok
        200ms..250ms alice locks    billing/orders/b0/3 refused
        300ms..350ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        """,
    ),
    Known(
        "LSE-6",
        "missed",
        "of two unlocks only the one that began first is looked at",
        """
        config broker_lease_ms=300 delay_bound_ms=100
        0ms          alice locks   billing/orders/b0/3 ok
        100ms..350ms alice unlocks billing/orders/b0/3 ok
        200ms..250ms alice unlocks billing/orders/b0/3 ok
        300ms..350ms bob   locks   billing/orders/b0/3 refused
        """,
    ),
    Known(
        "LSE-6",
        "missed",
        "likewise whoever is refused",
        """
        config broker_lease_ms=300 delay_bound_ms=100
        0ms          alice locks   billing/orders/b0/3 ok
        100ms..350ms alice unlocks billing/orders/b0/3 ok
        200ms..250ms alice unlocks billing/orders/b0/3 ok
        300ms..350ms carol locks   billing/orders/b0/3 refused
        """,
    ),
    Known(
        "CMT-6",
        "missed",
        "a call that began before its incarnation was added anew finishes something for the new one",
        """
        0ms..15ms alice delivers billing/orders/b0/3 offset=17 id=m17 success
        10ms      alice adds     billing/orders/b0/3 value=17
        20ms      alice drops    billing/orders/b0/3
        30ms      alice commits  billing/orders/b0/3 value=18 sent
        """,
    ),
    Known(
        "CMT-6",
        "missed",
        "likewise of a dead letter",
        """
        config max_reconsume_times=1 consume_from=last
        0ms..15ms alice dead-letters billing/orders/b0/3 offset=17 id=m17 ok
        10ms      alice adds         billing/orders/b0/3 value=17
        20ms      alice drops        billing/orders/b0/3
        20ms      alice commits      billing/orders/b0/3 value=18 sent
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "a pause that was over when the commit began excuses, for the bound for delays",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    b0    pauses  b0
        100ms..150ms alice commits billing/orders/b0/3 value=19 ok
        200ms        b0    crashes b0
        300ms..350ms bob   fetches billing/orders/b0/3 value=18 ok
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise of a reset",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    b0    pauses  b0
        100ms..150ms admin resets  billing/orders/b0/3 value=5
        200ms        b0    crashes b0
        300ms..350ms bob   fetches billing/orders/b0/3 value=18 ok
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise where the answer is that nothing is stored",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    b0    pauses  b0
        100ms..150ms alice commits billing/orders/b0/3 value=19 ok
        200ms        b0    crashes b0
        300ms..350ms bob   fetches billing/orders/b0/3 value=-1 refused
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise of a reset, where the answer is that nothing is stored",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    b0    pauses  b0
        100ms..150ms admin resets  billing/orders/b0/3 value=5
        200ms        b0    crashes b0
        300ms..350ms bob   fetches billing/orders/b0/3 value=-1 refused
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "two commits after the crash make what was stored before it forgotten",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    alice commits billing/orders/b0/3 value=18 ok
        100ms        b0    crashes b0
        200ms..250ms alice commits billing/orders/b0/3 value=18 ok
        300ms..350ms alice commits billing/orders/b0/3 value=18 ok
        400ms..450ms bob   fetches billing/orders/b0/3 value=-1 refused
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise a commit and a reset",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    alice commits billing/orders/b0/3 value=18 ok
        100ms        b0    crashes b0
        200ms..250ms alice commits billing/orders/b0/3 value=18 ok
        300ms..350ms admin resets  billing/orders/b0/3 value=5
        400ms..450ms bob   fetches billing/orders/b0/3 value=-1 refused
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise where the answer is another offset",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    alice commits billing/orders/b0/3 value=18 ok
        100ms        b0    crashes b0
        200ms..250ms alice commits billing/orders/b0/3 value=18 ok
        300ms..350ms alice commits billing/orders/b0/3 value=18 ok
        400ms..450ms bob   fetches billing/orders/b0/3 value=17 ok
        """,
    ),
    Known(
        "CMT-7",
        "missed",
        "likewise a commit and a reset, where the answer is another offset",
        """
        config persist_first_ms=30 persist_ms=20 schedule_slack_ms=10 delay_bound_ms=150
        0ms..50ms    alice commits billing/orders/b0/3 value=18 ok
        100ms        b0    crashes b0
        200ms..250ms alice commits billing/orders/b0/3 value=18 ok
        300ms..350ms admin resets  billing/orders/b0/3 value=5
        400ms..450ms bob   fetches billing/orders/b0/3 value=17 ok
        """,
    ),
    Known(
        "CMT-2",
        "missed",
        "a batch that is finished again before it was reported has its time anew",
        """
        config max_reconsume_times=1 persist_first_ms=5 persist_ms=5 schedule_slack_ms=15
        0ms        alice adds     billing/orders/b0/3 value=17
        10ms..15ms alice delivers billing/orders/b0/3 offset=17 id=m17 rt=0 mode=- commit
        40ms..45ms alice delivers billing/orders/b0/3 offset=17 id=m17 rt=0 mode=- commit
        50ms       alice commits  billing/orders/b0/3 value=18 sent
        """,
    ),
    Known(
        "LSE-13",
        "missed",
        "who adds a lane while it is leaving is taken to have left it",
        """
        config lock_interval_ms=150 schedule_slack_ms=25 delay_bound_ms=25
        0ms..150ms alice leaves  billing
        100ms      alice adds    billing/orders/b0/3 value=17 inc=2
        400ms      alice commits billing/orders/b0/3 value=18 inc=2 sent
        """,
    ),
)


def is_known(clause: str, how: str, history: Sequence[Row]) -> bool:
    """Does a history that differs hold all the rows of one that is known?

    Times, numbers, who sends, and how what was not refused ended may differ; alice and bob may have changed places.
    """
    return any(
        (each.clause, each.how) == (clause, how)
        and any(
            _outline(parse_history(each.history)[1], names) <= _outline(history, {})
            for names in ({}, {"alice": "bob", "bob": "alice"})
        )
        for each in KNOWN
    )


def _outline(rows: Sequence[Row], names: Mapping[str, str]) -> Counter[tuple[object, ...]]:
    return Counter(
        (
            row.kind,
            row.outcome is Outcome.REFUSED,
            None if row.kind is Kind.SEND else names.get(row.client_id or "", row.client_id),
        )
        for row in rows
    )
