"""Further examples of each clause, as text: the other ways to break it, and the excuses that its premise grants."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

LANE = "billing/orders/b0/3"


@dataclass(frozen=True)
class Example:
    """violations: how often the clause is broken by the history; why: what the example shows."""

    clause: str
    violations: int
    why: str
    text: str


EXAMPLES = (
    # ---------------------------------------------------------------- ORD-2
    Example(
        "ORD-2",
        0,
        "a reset clears what is remembered",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=9 success
        2ms       admin  resets    billing/orders/b0/3  value=3
        3ms..4ms  alice  delivers  billing/orders/b0/3  offset=3 success
        """,
    ),
    Example(
        "ORD-2",
        0,
        "an add begins the incarnation anew, even under its old name",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=9 success
        2ms       alice  adds      billing/orders/b0/3  value=3
        3ms..4ms  alice  delivers  billing/orders/b0/3  offset=3 success
        """,
    ),
    Example(
        "ORD-2",
        2,
        "each offset out of place counts",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=9 success
        2ms..3ms  alice  delivers  billing/orders/b0/3  offset=3 success
        4ms..5ms  alice  delivers  billing/orders/b0/3  offset=4 success
        6ms..7ms  alice  delivers  billing/orders/b0/3  offset=3 success
        """,
    ),
    # ---------------------------------------------------------------- ORD-3
    Example(
        "ORD-3",
        1,
        "a call while another of the incarnation runs, even of the same batch",
        """
        0ms..9ms  alice  delivers  billing/orders/b0/3  offset=3 success
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=3 success
        """,
    ),
    Example(
        "ORD-3",
        1,
        "a call that never ended is still running",
        """
        0ms..     alice  delivers  billing/orders/b0/3  offset=3
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=4 success
        """,
    ),
    Example(
        "ORD-3",
        1,
        "a dead letter that was refused gives nothing up",
        """
        0ms..1ms  alice  delivers      billing/orders/b0/3  offset=3 null
        2ms..3ms  alice  dead-letters  billing/orders/b0/3  offset=3 refused
        4ms..5ms  alice  delivers      billing/orders/b0/3  offset=4 success
        """,
    ),
    Example(
        "ORD-3",
        1,
        "one of two messages given up: the other is still owed",
        """
        config batch=2
        0ms..1ms  alice  delivers      billing/orders/b0/3  offset=3 call=a threw
        0ms..1ms  alice  delivers      billing/orders/b0/3  offset=4 call=a threw
        2ms..3ms  alice  dead-letters  billing/orders/b0/3  offset=4 ok
        4ms..5ms  alice  delivers      billing/orders/b0/3  offset=5 success
        """,
    ),
    Example(
        "ORD-3",
        1,
        "a manual ROLLBACK blocks as well",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=3 mode=manual rollback
        4ms..5ms  alice  delivers  billing/orders/b0/3  offset=4 mode=manual success
        """,
    ),
    Example(
        "ORD-3",
        0,
        "an auto ROLLBACK acknowledges, and the batch itself may come again from anywhere",
        """
        config batch=2
        0ms..1ms      alice  delivers  billing/orders/b0/3  offset=3 rollback
        2ms..3ms      alice  delivers  billing/orders/b0/3  offset=4 call=a suspend
        2ms..3ms      alice  delivers  billing/orders/b0/3  offset=5 call=a suspend
        1003ms..1004ms  alice  delivers  billing/orders/b0/3  offset=5 success
        1005ms..1006ms  bob  delivers  billing/orders/b0/3  offset=9 success
        """,
    ),
    # ---------------------------------------------------------------- ORD-4
    Example(
        "ORD-4",
        1,
        "a message that was sent, and that nobody was given",
        """
        0ms        shop   sends    orders/b0/3          offset=7 id=m7 ok
        5ms        bob    fetches  billing/orders/b0/3  value=7 ok
        6ms        bob    adds     billing/orders/b0/3  value=8
        7ms..8ms   bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        1,
        "a call that ended well after its lane was dropped finished nothing",
        """
        0ms        alice  adds     billing/orders/b0/3  value=7
        1ms..9ms   alice  delivers billing/orders/b0/3  offset=7 success
        3ms        alice  commits  billing/orders/b0/3  value=7 view=pull ok
        5ms        alice  drops    billing/orders/b0/3
        12ms..13ms bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        0,
        "the message is below what was stored",
        """
        0ms        shop   sends    orders/b0/3          offset=7 id=m7 ok
        5ms        bob    fetches  billing/orders/b0/3  value=8 ok
        7ms..8ms   bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        0,
        "it was stored only after the new owner had looked",
        """
        0ms        alice  adds     billing/orders/b0/3  value=7
        1ms..9ms   alice  delivers billing/orders/b0/3  offset=7 suspend
        10ms..11ms bob    fetches  billing/orders/b0/3  value=-1 refused
        12ms..13ms alice  commits  billing/orders/b0/3  value=7 view=pull ok
        14ms       bob    adds     billing/orders/b0/3  value=8
        15ms..16ms bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        0,
        "a crash of the broker may have lost what was stored",
        """
        0ms        alice  fetches  billing/orders/b0/3  value=7 ok
        1ms..9ms   alice  delivers billing/orders/b0/3  offset=7 suspend
        10ms       b0     crashes  b0
        15ms..16ms bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        0,
        "an operator moved the offset",
        """
        0ms        alice  fetches  billing/orders/b0/3  value=7 ok
        1ms..9ms   alice  delivers billing/orders/b0/3  offset=7 suspend
        10ms       admin  resets   billing/orders/b0/3  value=8
        15ms..16ms bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    Example(
        "ORD-4",
        0,
        "another group's progress does not matter",
        """
        0ms        alice  fetches  billing/orders/b0/3  value=7 ok
        1ms..9ms   alice  delivers billing/orders/b0/3  offset=7 success
        2ms..9ms   eve    delivers audit/orders/b0/3    offset=7 suspend
        15ms..16ms bob    delivers billing/orders/b0/3  offset=8 success
        """,
    ),
    # ---------------------------------------------------------------- ORD-12
    Example(
        "ORD-12",
        1,
        "a plain consumer log without offsets decides it as well",
        """
        0ms  alice  delivers  billing/orders/b0/0  key=k key_seq=2 success
        1ms  bob    delivers  billing/orders/b0/0  key=k key_seq=1 success
        """,
    ),
    Example(
        "ORD-12",
        0,
        "another group, another key",
        """
        0ms  alice  delivers  billing/orders/b0/0  offset=2 key=k key_seq=2 success
        1ms  eve    delivers  audit/orders/b0/0    offset=1 key=k key_seq=1 success
        2ms  bob    delivers  billing/orders/b0/0  offset=1 key=j key_seq=1 success
        """,
    ),
    # ---------------------------------------------------------------- LSE-1
    Example(
        "LSE-1",
        0,
        "the first grant may have been released by an unlock that is still under way",
        """
        0ms  alice  unlocks  billing/orders/b0/3  sent
        1ms  alice  locks    billing/orders/b0/3  ok
        5ms  bob    locks    billing/orders/b0/3  ok
        """,
    ),
    Example(
        "LSE-1",
        0,
        "a broker that crashed remembers no lease",
        """
        0ms  alice  locks    billing/orders/b0/3  ok
        3ms  b0     crashes  b0
        5ms  bob    locks    billing/orders/b0/3  ok
        """,
    ),
    Example(
        "LSE-1",
        0,
        "after a wall clock was stepped nothing is said about leases",
        """
        0ms  alice  locks        billing/orders/b0/3  ok
        3ms  b0     steps-clock  b0                   value=70000
        5ms  bob    locks        billing/orders/b0/3  ok
        """,
    ),
    # ---------------------------------------------------------------- LSE-2
    Example(
        "LSE-2",
        1,
        "the client unlocks while its own call runs: no excuse",
        """
        0ms         alice  locks     billing/orders/b0/3  ok
        5ms..90ms   alice  delivers  billing/orders/b0/3  offset=7 success
        20ms        alice  unlocks   billing/orders/b0/3  sent
        30ms        bob    locks     billing/orders/b0/3  ok
        40ms..50ms  bob    delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-2",
        0,
        "a client that shuts down may be cut",
        """
        0ms         alice  locks     billing/orders/b0/3  ok
        5ms..90ms   alice  delivers  billing/orders/b0/3  offset=7 success
        20ms..80ms  alice  leaves    billing
        40ms..50ms  bob    delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-2",
        0,
        "a client that crashed runs nothing, also when it starts again",
        """
        0ms         alice  locks     billing/orders/b0/3  ok
        5ms..       alice  delivers  billing/orders/b0/3  offset=7
        20ms        alice  crashes   -
        25ms        alice  joins     billing
        30ms        alice  locks     billing/orders/b0/3  ok
        40ms..50ms  bob    delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-2",
        0,
        "the broker forgot the lease",
        """
        0ms         alice  locks     billing/orders/b0/3  ok
        5ms..90ms   alice  delivers  billing/orders/b0/3  offset=7 success
        20ms        b0     crashes   b0
        40ms..50ms  bob    delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-2",
        0,
        "another group is another lane",
        """
        0ms         alice  locks     billing/orders/b0/3  ok
        5ms..90ms   alice  delivers  billing/orders/b0/3  offset=7 success
        40ms..50ms  bob    delivers  audit/orders/b0/3    offset=7 success
        """,
    ),
    # ---------------------------------------------------------------- LSE-3
    Example(
        "LSE-3",
        1,
        "a call after the lease was refused",
        """
        0ms   alice  locks     billing/orders/b0/3  ok
        10ms  alice  locks     billing/orders/b0/3  refused
        1s    alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-3",
        1,
        "a call on a lane that was added and never granted",
        """
        0ms   alice  adds      billing/orders/b0/3  value=7
        20ms  alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-3",
        1,
        "a call after the client's own unlock",
        """
        0ms   alice  locks     billing/orders/b0/3  ok
        10ms  alice  unlocks   billing/orders/b0/3  sent
        20ms  alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-3",
        0,
        "an error code is no refusal, and the late answer of an older request says nothing",
        """
        0ms..30ms   alice  locks     billing/orders/b0/3  refused
        10ms..11ms  alice  locks     billing/orders/b0/3  ok
        12ms..13ms  alice  locks     billing/orders/b0/3  code=1 refused
        40ms        alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "LSE-3",
        0,
        "the client stood still between its guard and the call",
        """
        config client_lease_ms=100
        0ms           alice  locks     billing/orders/b0/3  ok
        50ms..900ms   alice  pauses    -
        901ms..902ms  alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    # ---------------------------------------------------------------- LSE-4
    Example(
        "LSE-4",
        1,
        "its own lane is refused",
        """
        0ms   alice  locks  billing/orders/b0/3  ok
        10ms  alice  locks  billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-4",
        1,
        "an expired lane is refused",
        """
        0ms      alice  locks  billing/orders/b0/3  ok
        60001ms  bob    locks  billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-4",
        0,
        "an unlock that was not answered may not have arrived",
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        10ms  alice  unlocks  billing/orders/b0/3  sent
        20ms  bob    locks    billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-4",
        0,
        "an unanswered renewal may have come in between",
        """
        0ms            alice  locks  billing/orders/b0/3  ok
        59000ms..60000ms alice  locks  billing/orders/b0/3  unknown
        60500ms        bob    locks  billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-4",
        0,
        "a refusal with an error code says nothing about the lane",
        """
        0ms   alice  locks  billing/orders/b0/3  ok
        10ms  alice  locks  billing/orders/b0/3  code=14 refused
        """,
    ),
    Example(
        "LSE-4",
        1,
        "after a crash of the broker the lane is free",
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        5ms   b0     crashes  b0
        10ms  alice  locks    billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-4",
        0,
        "after a crash of the broker nothing is claimed where somebody may not be recorded",
        """
        config closed_world=no
        0ms   alice  locks    billing/orders/b0/3  ok
        5ms   b0     crashes  b0
        10ms  alice  locks    billing/orders/b0/3  refused
        """,
    ),
    # ---------------------------------------------------------------- LSE-8
    Example(
        "LSE-8",
        0,
        "the owner renewed after the stranger's unlock",
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        10ms  bob    unlocks  billing/orders/b0/3  ok
        20ms  alice  locks    billing/orders/b0/3  ok
        30ms  carol  locks    billing/orders/b0/3  refused
        """,
    ),
    Example(
        "LSE-8",
        1,
        "the stranger may be the one who profits",
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        10ms  bob    unlocks  billing/orders/b0/3  unknown
        20ms  bob    locks    billing/orders/b0/3  ok
        """,
    ),
    # ---------------------------------------------------------------- RTY-1
    Example(
        "RTY-1",
        1,
        "the listener's 3 ms mean 10 ms",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=7 suspend=3 threw
        8ms..9ms  alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "RTY-1",
        1,
        "no time given means the consumer's own",
        """
        config suspend_ms=50
        0ms..1ms    alice  delivers  billing/orders/b0/3  offset=7 null
        40ms..41ms  alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "RTY-1",
        1,
        "a manual ROLLBACK waits as well",
        """
        0ms..1ms    alice  delivers  billing/orders/b0/3  offset=7 mode=manual suspend=50 rollback
        40ms..41ms  alice  delivers  billing/orders/b0/3  offset=7 mode=manual success
        """,
    ),
    Example(
        "RTY-1",
        0,
        "less than a millisecond early is the clocks' rounding",
        """
        0us..1000us     alice  delivers  billing/orders/b0/3  offset=7 suspend=10 suspend
        10001us..11ms   alice  delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    Example(
        "RTY-1",
        0,
        "another incarnation need not wait",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=7 suspend=50 suspend
        2ms..3ms  bob    delivers  billing/orders/b0/3  offset=7 success
        """,
    ),
    # ---------------------------------------------------------------- RTY-3
    Example(
        "RTY-3",
        1,
        "a lane that was just added counts from 0",
        """
        0ms       alice  adds      billing/orders/b0/3  value=7
        1ms..2ms  alice  delivers  billing/orders/b0/3  offset=7 rt=3 success
        """,
    ),
    Example(
        "RTY-3",
        0,
        "a ROLLBACK counts nothing, and neither do batches or retry topics",
        """
        0ms..1ms        alice  delivers  billing/orders/b0/3  offset=7 rt=0 mode=manual rollback
        1001ms..1002ms  alice  delivers  billing/orders/b0/3  offset=7 rt=0 mode=manual suspend
        2002ms..2003ms  alice  delivers  billing/orders/b0/3  offset=7 rt=0 mode=manual success
        0ms..1ms        alice  delivers  billing/%RETRY%billing/b0/0  offset=7 rt=4 suspend
        1001ms..1002ms  alice  delivers  billing/%RETRY%billing/b0/0  offset=7 rt=4 success
        """,
    ),
    Example(
        "RTY-3",
        1,
        "each message of a batch is counted by itself",
        """
        config batch=2
        0ms..1ms        alice  delivers  billing/orders/b0/3  offset=7 rt=0 suspend
        1001ms..1002ms  alice  delivers  billing/orders/b0/3  offset=7 rt=0 success
        """,
    ),
    # ---------------------------------------------------------------- RTY-5
    Example(
        "RTY-5",
        1,
        "one delivery too many",
        """
        config max_reconsume_times=0
        0ms..1ms        alice  delivers  billing/orders/b0/3  offset=7 rt=0 suspend
        1001ms..1002ms  alice  delivers  billing/orders/b0/3  offset=7 rt=1 suspend
        """,
    ),
    Example(
        "RTY-5",
        0,
        "no limit says nothing",
        """
        0ms..1ms  alice  delivers      billing/orders/b0/3  offset=7 rt=0 suspend
        2ms..3ms  alice  dead-letters  billing/orders/b0/3  offset=7 ok
        """,
    ),
    Example(
        "RTY-5",
        0,
        "the dead letter of another message is no matter of this one",
        """
        config max_reconsume_times=2
        0ms..1ms  alice  delivers      billing/orders/b0/3  offset=7 rt=0 suspend
        2ms..3ms  alice  dead-letters  billing/orders/b0/3  offset=6 ok
        """,
    ),
    # ---------------------------------------------------------------- DLQ-1
    Example(
        "DLQ-1",
        1,
        "a message passed by without being given up",
        """
        config max_reconsume_times=0
        0ms..1ms        alice  delivers  billing/orders/b0/3        offset=7 id=m7 rt=0 suspend
        2ms..3ms        alice  delivers  billing/orders/b0/3        offset=8 id=m8 rt=0 success
        1500ms..1510ms  drain  reads     billing/%DLQ%billing/b0/0  value=0 ok
        """,
    ),
    Example(
        "DLQ-1",
        0,
        "the drain came too early",
        """
        0ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 ok
        1004ms..1010ms  drain  reads         billing/%DLQ%billing/b0/0  value=0 ok
        """,
    ),
    Example(
        "DLQ-1",
        0,
        "the queue of another broker could not be read",
        """
        0ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 ok
        1500ms..1510ms  drain  reads         billing/%DLQ%billing/b0/0  value=0 ok
        1510ms..1520ms  drain  reads         billing/%DLQ%billing/b1/0  unknown
        """,
    ),
    Example(
        "DLQ-1",
        0,
        "nobody promised an unacknowledged dead letter, nor another group's",
        """
        0ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 unknown
        0ms..5ms        eve    dead-letters  audit/orders/b0/3          offset=7 id=m7 ok
        1500ms..1510ms  drain  reads         billing/%DLQ%billing/b0/0  value=0 ok
        """,
    ),
    # ---------------------------------------------------------------- DLQ-2
    Example(
        "DLQ-2",
        1,
        "one dead letter, two places",
        """
        0ms..5ms  alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 ok
        1500ms    drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=m7 ok
        1501ms    drain  reads         billing/%DLQ%billing/b0/0  offset=1 id=m7 ok
        """,
    ),
    Example(
        "DLQ-2",
        0,
        "one place read twice",
        """
        0ms..5ms  alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 ok
        1500ms    drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=m7 ok
        1501ms    drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=m7 ok
        """,
    ),
    Example(
        "DLQ-2",
        0,
        "two incarnations, a batch, or the manual mode may give it up twice",
        """
        0ms..5ms    alice  dead-letters  billing/orders/b0/3  offset=7 id=m7 ok
        10ms..15ms  bob    dead-letters  billing/orders/b0/3  offset=7 id=m7 ok
        20ms..21ms  alice  delivers      billing/orders/b0/4  offset=8 id=m8 mode=manual suspend
        22ms..23ms  alice  dead-letters  billing/orders/b0/4  offset=8 id=m8 ok
        24ms..25ms  alice  dead-letters  billing/orders/b0/4  offset=8 id=m8 ok
        """,
    ),
    Example(
        "DLQ-2",
        0,
        "a batch that is not given up as a whole is given up again",
        """
        config batch=2
        0ms..5ms    alice  dead-letters  billing/orders/b0/3  offset=7 id=m7 ok
        10ms..15ms  alice  dead-letters  billing/orders/b0/3  offset=7 id=m7 ok
        """,
    ),
    # ---------------------------------------------------------------- DLQ-7
    Example(
        "DLQ-7",
        0,
        "a copy of a send without an answer may come at any time",
        """
        0ms..5ms   alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 wall=0ms unknown
        6ms..7ms   alice  dead-letters  billing/orders/b0/3        offset=7 id=m7 wall=6ms ok
        9000ms     drain  reads         billing/%DLQ%billing/b0/0  offset=0 id=m7 wall=5000ms ok
        """,
    ),
    # ---------------------------------------------------------------- CMT-1
    Example(
        "CMT-1",
        1,
        "a message at or after the start that was never delivered",
        """
        0ms       shop   sends    orders/b0/3          offset=7 id=m7 ok
        1ms       alice  adds     billing/orders/b0/3  value=7
        9ms       alice  commits  billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        1,
        "a manual SUCCESS finishes nothing by itself",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=7 mode=manual success
        9ms       alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        1,
        "a commit while the call runs",
        """
        0ms..9ms  alice  delivers  billing/orders/b0/3  offset=7 success
        5ms       alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        1,
        "a call that ended after the drop",
        """
        0ms..9ms  alice  delivers  billing/orders/b0/3  offset=7 success
        5ms       alice  drops     billing/orders/b0/3
        12ms      alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        1,
        "a message that another incarnation left suspended",
        """
        0ms..1ms  alice  delivers  billing/orders/b0/3  offset=7 suspend
        2ms       bob    adds      billing/orders/b0/3  value=7
        12ms      bob    commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        0,
        "below the start it is somebody else's; dead letters and others' work count as finished",
        """
        0ms         shop   sends         orders/b0/3          offset=6 id=m6 ok
        1ms         shop   sends         orders/b0/3          offset=9 id=m9 ok
        2ms..3ms    bob    delivers      billing/orders/b0/3  offset=8 success
        4ms         alice  adds          billing/orders/b0/3  value=6
        5ms..6ms    alice  fetches       billing/orders/b0/3  inc=1 value=7 ok
        7ms..8ms    alice  delivers      billing/orders/b0/3  offset=7 suspend
        9ms..10ms   alice  dead-letters  billing/orders/b0/3  offset=7 ok
        12ms        alice  commits       billing/orders/b0/3  value=9 sent
        13ms        alice  commits       billing/orders/b0/3  value=20 detail=corrected sent
        """,
    ),
    Example(
        "CMT-1",
        0,
        "a delayed message does not lie there yet",
        """
        0ms   shop   sends    orders/b0/3          offset=7 id=m7 delay=3 ok
        1ms   alice  adds     billing/orders/b0/3  value=7
        9ms   alice  commits  billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-1",
        1,
        "in manual mode a dead letter waits for a COMMIT, and a ROLLBACK takes it back",
        """
        0ms..1ms    alice  delivers      billing/orders/b0/3  offset=7 mode=manual suspend
        2ms..3ms    alice  dead-letters  billing/orders/b0/3  offset=7 ok
        4ms..5ms    alice  delivers      billing/orders/b0/3  offset=8 mode=manual commit
        6ms         alice  commits       billing/orders/b0/3  value=9 sent
        7ms..8ms    alice  delivers      billing/orders/b0/3  offset=9 mode=manual success
        9ms..10ms   alice  delivers      billing/orders/b0/3  offset=10 mode=manual rollback
        1011ms..1012ms alice  delivers   billing/orders/b0/3  offset=10 mode=manual commit
        1013ms      alice  commits       billing/orders/b0/3  value=11 sent
        """,
    ),
    # ---------------------------------------------------------------- CMT-2
    Example(
        "CMT-2",
        1,
        "a value inside a batch",
        """
        config batch=2
        0ms       alice  adds      billing/orders/b0/3  value=7
        1ms..2ms  alice  delivers  billing/orders/b0/3  offset=7 call=a success
        1ms..2ms  alice  delivers  billing/orders/b0/3  offset=8 call=a success
        3ms       alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    Example(
        "CMT-2",
        1,
        "a finished batch that is not committed while the work goes on",
        """
        config persist_first_ms=100 persist_ms=50 schedule_slack_ms=10
        0ms           alice  adds      billing/orders/b0/3  value=7
        1ms..2ms      alice  delivers  billing/orders/b0/3  offset=7 success
        162ms..163ms  alice  delivers  billing/orders/b0/3  offset=8 success
        163ms..164ms  alice  delivers  billing/orders/b0/3  offset=9 success
        400ms..401ms  alice  delivers  billing/orders/b0/3  offset=9 success
        """,
    ),
    Example(
        "CMT-2",
        1,
        "only after the bound; pulls are work as well; said once",
        """
        config persist_first_ms=100 persist_ms=50 schedule_slack_ms=10
        0ms           alice  adds      billing/orders/b0/3  value=7
        1ms..2ms      alice  delivers  billing/orders/b0/3  offset=7 success
        162ms..163ms  alice  delivers  billing/orders/b0/3  offset=8 success
        163ms         alice  pulls     billing/orders/b0/3  ok
        164ms         alice  pulls     billing/orders/b0/3  ok
        """,
    ),
    Example(
        "CMT-2",
        0,
        "not after a pause, a crash of the broker or a drop; not without commits being recorded at all",
        """
        config persist_first_ms=100 persist_ms=50 schedule_slack_ms=10
        0ms           alice  adds      billing/orders/b0/3  value=7
        1ms..2ms      alice  delivers  billing/orders/b0/3  offset=7 success
        3ms..300ms    alice  pauses    -
        301ms..302ms  alice  delivers  billing/orders/b0/3  offset=8 success
        303ms         alice  drops     billing/orders/b0/3
        900ms..901ms  alice  delivers  billing/orders/b0/3  offset=9 success
        0ms           bob    adds      billing/orders/b0/4  value=7
        1ms..2ms      bob    delivers  billing/orders/b0/4  offset=7 success
        3ms           b0     crashes   b0
        301ms..302ms  bob    delivers  billing/orders/b0/4  offset=8 success
        1ms..2ms      eve    delivers  audit/orders/b0/4    offset=7 success
        301ms..302ms  eve    delivers  audit/orders/b0/4    offset=8 success
        """,
    ),
    Example(
        "CMT-2",
        0,
        "the start as looked up, a value told before, a dead letter, a correction",
        """
        0ms         alice  adds          billing/orders/b0/3  value=6
        1ms         alice  commits       billing/orders/b0/3  value=6 sent
        2ms..3ms    alice  fetches       billing/orders/b0/3  inc=1 value=7 ok
        4ms         alice  commits       billing/orders/b0/3  value=7 sent
        5ms..6ms    alice  delivers      billing/orders/b0/3  offset=7 suspend
        7ms..8ms    alice  dead-letters  billing/orders/b0/3  offset=7 ok
        9ms         alice  commits       billing/orders/b0/3  value=8 sent
        10ms        alice  commits       billing/orders/b0/3  value=20 detail=corrected sent
        11ms        alice  commits       billing/orders/b0/3  value=20 sent
        """,
    ),
    Example(
        "CMT-2",
        0,
        "a start that nobody knows",
        """
        config consume_from=last
        0ms         alice  adds          billing/orders/b0/3  value=6
        2ms..3ms    alice  fetches       billing/orders/b0/3  inc=1 value=-1 refused
        4ms         alice  commits       billing/orders/b0/3  value=9 sent
        """,
    ),
    # ---------------------------------------------------------------- CMT-4
    Example(
        "CMT-4",
        0,
        "a new look-up, a correction and a reset clear what is remembered",
        """
        0ms         alice  commits  billing/orders/b0/3  value=9 sent
        1ms..2ms    alice  fetches  billing/orders/b0/3  inc=1 value=7 ok
        3ms         alice  commits  billing/orders/b0/3  value=8 sent
        4ms         alice  commits  billing/orders/b0/3  value=2 detail=corrected sent
        5ms         alice  commits  billing/orders/b0/3  value=3 sent
        6ms         admin  resets   billing/orders/b0/3  value=1
        7ms         alice  commits  billing/orders/b0/3  value=1 sent
        """,
    ),
    # ---------------------------------------------------------------- CMT-5
    Example(
        "CMT-5",
        0,
        "without an own unlock the broker is at fault; the broker may forget; the lease may be regained",
        """
        0ms   alice  locks    billing/orders/b0/3  ok
        10ms  bob    locks    billing/orders/b0/3  ok
        20ms  alice  commits  billing/orders/b0/3  value=8 sent
        0ms   alice  locks    billing/orders/b1/3  ok
        10ms  alice  unlocks  billing/orders/b1/3  sent
        15ms  b1     crashes  b1
        20ms  bob    locks    billing/orders/b1/3  ok
        30ms  alice  commits  billing/orders/b1/3  value=8 sent
        0ms   alice  locks    billing/orders/b2/3  ok
        10ms  alice  unlocks  billing/orders/b2/3  sent
        20ms  bob    locks    billing/orders/b2/3  ok
        30ms  bob    unlocks  billing/orders/b2/3  sent
        40ms  alice  locks    billing/orders/b2/3  ok
        50ms  alice  commits  billing/orders/b2/3  value=8 sent
        """,
    ),
    # ---------------------------------------------------------------- SND-1
    Example(
        "SND-1",
        1,
        "another message lies in its place",
        """
        0ms..5ms  shop   sends  orders/b0/3  offset=7 id=m7 ok
        9ms       drain  reads  orders/b0/3  offset=7 id=m8 ok
        """,
    ),
    Example(
        "SND-1",
        1,
        "the queue ends before it",
        """
        0ms..5ms        shop   sends  orders/b0/3  offset=7 id=m7 ok
        3005ms..3010ms  drain  reads  orders/b0/3  value=7 ok
        """,
    ),
    Example(
        "SND-1",
        0,
        "a message just acknowledged may show up a little later; weaker promises; a reading that failed",
        """
        0ms..5ms        shop   sends  orders/b0/3  offset=7 id=m7 ok
        6ms..7ms        shop   sends  orders/b0/4  offset=7 id=m9 code=10 ok
        8ms..9ms        drain  reads  orders/b0/3  value=7 ok
        8ms..9ms        drain  reads  orders/b0/4  value=8 ok
        4000ms..4001ms  drain  reads  orders/b0/3  value=8 unknown
        """,
    ),
    Example(
        "SND-1",
        2,
        "two sends acknowledged with one offset: one of them is lost, at the least",
        """
        0ms..5ms        shop   sends  orders/b0/3  offset=7 id=m7 ok
        0ms..6ms        shop   sends  orders/b0/3  offset=7 id=m8 ok
        0ms..6ms        shop   sends  orders/b0/3  offset=9 id=m9 ok
        3005ms..3010ms  drain  reads  orders/b0/3  value=10 ok
        3006ms          drain  reads  orders/b0/3  offset=7 id=m8 ok
        """,
    ),
    # ---------------------------------------------------------------- SND-2
    Example(
        "SND-2",
        0,
        "an open world has other producers",
        """
        config closed_world=no
        0ms..5ms  alice  delivers  billing/orders/b0/3  offset=7 id=m7 success
        """,
    ),
    Example(
        "SND-2",
        1,
        "a copy of a message that was never sent",
        """
        0ms   drain  reads  billing/%DLQ%billing/b0/0  offset=0 id=c7 origin=m7 ok
        """,
    ),
)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda each: f"{each.clause}: {each.why}")
def test_example(example: Example) -> None:
    """The clause finds what the example says, no more and no less, and explains it."""
    clause = get(example.clause)
    info, rows = parse_history(example.text)
    found = find_violations(clause, rows, info)
    assert len(found) == example.violations, [clause.explain(each) for each in found]
    for each in found:
        said = clause.explain(each)
        assert said
        assert "None" not in said
    tally = examine(rows, info, (clause,)).tallies[clause.id]
    assert tally.violations == example.violations
    if found:
        assert set(tally.witness) <= set(rows)
        assert find_violations(clause, tally.witness, info)
