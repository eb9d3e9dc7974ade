"""More of what the clauses of retries and dead letters refute, and of what they excuse."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

LANE = "billing/orders/b0/3"


def found(clause_id: str, text: str) -> list[tuple[int, ...]]:
    """The lines (from 1) that show each violation."""
    info, rows = parse_history(text.replace("LANE", LANE))
    place = {row.seq_begin: number for number, row in enumerate(rows, start=1)}
    violations = find_violations(get(clause_id), rows, info)
    return [tuple(place[row.seq_begin] for row in each.rows) for each in violations]


REFUTED = {
    "ORD-3: an exhausted message was passed after its dead letter failed": (
        "ORD-3",
        """
        config max_reconsume_times=0
        0ms..5ms    alice  delivers      LANE  offset=17 id=m17 rt=0 suspend
        6ms..7ms    alice  dead-letters  LANE  offset=17 id=m17 rt=0 unknown
        8ms..9ms    alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
        [(1, 2, 3)],
    ),
    "ORD-3: a message with retries left was passed": (
        "ORD-3",
        """
        config max_reconsume_times=2
        0ms..5ms    alice  delivers      LANE  offset=17 id=m17 rt=1 suspend
        8ms..9ms    alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
        [(1, 2)],
    ),
    "RTY-4: a call starts below the suspended batch": (
        "RTY-4",
        """
        0ms..5ms       alice  delivers  LANE  offset=17 id=m17 suspend
        1006ms..1007ms alice  delivers  LANE  offset=16 id=m16 success
        """,
        [(1, 2)],
    ),
    "RTY-6: the next message of a busy lane waits while another lane is at work, and the lease is renewed": (
        "RTY-6",
        """
        config client_lease_ms=1500
        0ms              alice  adds      LANE                 value=0
        1ms..2ms         alice  locks     LANE                 ok
        3ms..4ms         alice  pulls     LANE                 offset=0 value=32
        5ms..800ms       alice  delivers  LANE                 offset=0 success
        6ms..4000ms      alice  delivers  billing/orders/b0/4  offset=7 success
        1001ms..1002ms   alice  locks     LANE                 ok
        1801ms..1802ms   alice  delivers  LANE                 offset=1 success
        """,
        [(1, 2, 3, 4, 5, 6, 7)],
    ),
    "RTY-6: a lane that was idle waits for one that runs": (
        "RTY-6",
        """
        0ms              alice  adds      LANE                 value=0
        1ms..2ms         alice  locks     LANE                 ok
        3ms..4ms         alice  pulls     LANE                 offset=0 value=1
        5ms..6ms         alice  delivers  LANE                 offset=0 success
        10ms..9000ms     alice  delivers  billing/orders/b0/4  offset=7 success
        100ms..101ms     alice  pulls     LANE                 offset=1 value=2
        1102ms..1103ms   alice  delivers  LANE                 offset=1 success
        """,
        [(1, 2, 5, 6, 7)],
    ),
    "RTY-7: a null comes again too soon": (
        "RTY-7",
        """
        0ms..5ms  alice  delivers  LANE  offset=17 id=m17 null
        6ms..7ms  alice  delivers  LANE  offset=17 id=m17 success
        """,
        [(1, 2)],
    ),
    "RTY-7: a throw in manual mode is passed": (
        "RTY-7",
        """
        0ms..5ms  alice  delivers  LANE  offset=17 id=m17 mode=manual threw
        6ms..7ms  alice  delivers  LANE  offset=18 id=m18 mode=manual success
        """,
        [(1, 2)],
    ),
    "RTY-9: the replay of a taken message was counted": (
        "RTY-9",
        """
        0ms..5ms        alice  delivers  LANE  offset=16 id=m16 mode=manual rt=0 success
        6ms..9ms        alice  delivers  LANE  offset=17 id=m17 mode=manual rt=0 rollback
        1010ms..1015ms  alice  delivers  LANE  offset=16 id=m16 mode=manual rt=1 success
        1016ms..1017ms  alice  delivers  LANE  offset=17 id=m17 mode=manual rt=1 success
        """,
        [(1, 2, 3), (2, 4)],
    ),
    "RTY-11: another client counts on": (
        "RTY-11",
        """
        0ms..5ms        alice  delivers  LANE  offset=17 id=m17 rt=0 threw
        10ms            alice  adds      LANE  value=17 inc=2
        1010ms..1015ms  alice  delivers  LANE  offset=17 id=m17 rt=1 inc=2 success
        """,
        [(1, 2, 3)],
    ),
    "DLQ-3: it came back later, after others": (
        "DLQ-3",
        """
        config max_reconsume_times=0
        0ms..5ms    alice  delivers      LANE  offset=17 id=m17 rt=0 suspend
        6ms..7ms    alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        8ms..9ms    alice  delivers      LANE  offset=18 id=m18 rt=0 success
        10ms..11ms  alice  delivers      LANE  offset=17 id=m17 rt=0 success
        """,
        [(2, 4)],
    ),
    "DLQ-6: refused, and passed by a batch": (
        "DLQ-6",
        """
        config max_reconsume_times=0 batch=2
        0ms..5ms    alice  delivers      LANE  offset=17 id=m17 rt=0 call=1 suspend
        0ms..5ms    alice  delivers      LANE  offset=18 id=m18 rt=0 call=1 suspend
        6ms..7ms    alice  dead-letters  LANE  offset=17 id=m17 rt=0 refused
        8ms..9ms    alice  dead-letters  LANE  offset=18 id=m18 rt=0 ok
        10ms..11ms  alice  delivers      LANE  offset=19 id=m19 rt=0 success
        """,
        [(3, 5)],
    ),
    "RTY-2: it never comes again, and the lane is dropped in the end": (
        "RTY-2",
        """
        0ms         alice  adds      LANE  value=17
        1ms..2ms    alice  locks     LANE  ok
        10ms..20ms  alice  delivers  LANE  offset=17 id=m17 suspend=100 threw
        2000ms      alice  drops     LANE
        """,
        [(1, 2, 3, 4)],
    ),
    "RTY-2: not after a dead letter that failed": (
        "RTY-2",
        """
        config max_reconsume_times=0
        0ms             alice  adds          LANE  value=17
        1ms..2ms        alice  locks         LANE  ok
        10ms..20ms      alice  delivers      LANE  offset=17 id=m17 rt=0 suspend=100 suspend
        21ms..3021ms    alice  dead-letters  LANE  offset=17 id=m17 rt=0 unknown
        4200ms..4300ms  alice  delivers      LANE  offset=17 id=m17 rt=1 success
        """,
        [(1, 2, 3, 4, 5)],
    ),
    "RTY-2: the renewal of the lease shows that the client lives": (
        "RTY-2",
        """
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 mode=manual suspend=100 rollback
        20000ms         alice  locks     LANE  ok
        20001ms         alice  delivers  LANE  offset=17 id=m17 mode=manual commit
        """,
        [(1, 2, 3, 4)],
    ),
    "DLQ-9: the lease was renewed in time": (
        "DLQ-9",
        """
        config max_reconsume_times=1
        0ms..5ms          alice  locks         LANE  ok
        6ms..9ms          alice  pulls         LANE  offset=17 value=19 ok
        29010ms..29020ms  alice  delivers      LANE  offset=17 id=m17 rt=1 suspend
        29021ms..29022ms  alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        29500ms..29501ms  alice  locks         LANE  ok
        33023ms..33024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
        [(1, 2, 3, 4, 5, 6)],
    ),
    "DLQ-9: two messages were there": (
        "DLQ-9",
        """
        config max_reconsume_times=1
        0ms..5ms        alice  locks         LANE  ok
        6ms..9ms        alice  pulls         LANE  offset=17 value=19 ok
        6000ms..6009ms  alice  pulls         LANE  offset=19 value=19 ok
        8010ms..8020ms  alice  delivers      LANE  offset=17 id=m17 rt=1 threw
        8021ms..8022ms  alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        9023ms..9024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
        [(1, 2, 4, 5, 6)],
    ),
    "DLQ-9: within the cap of the run": (
        "DLQ-9",
        """
        config max_reconsume_times=1 continuous_ms=1500
        0ms..5ms        alice  locks         LANE  ok
        6ms..9ms        alice  pulls         LANE  offset=17 value=19 ok
        10ms..20ms      alice  delivers      LANE  offset=17 id=m17 rt=1 suspend
        21ms..22ms      alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        1023ms..1024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
        [(1, 2, 3, 4, 5)],
    ),
}

EXCUSED = {
    "RTY-2: the client was paused": (
        "RTY-2",
        """
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 suspend=100 suspend
        30ms..5000ms    alice  pauses    -
        5001ms..5002ms  alice  delivers  LANE  offset=17 id=m17 success
        """,
    ),
    "RTY-2: the lease was refused in between": (
        "RTY-2",
        """
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 suspend=100 suspend
        30ms..35ms      alice  locks     LANE  refused
        5001ms..5002ms  alice  delivers  LANE  offset=17 id=m17 success
        """,
    ),
    "RTY-2: fewer threads than lanes may need": (
        "RTY-2",
        """
        config threads=1
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 suspend=100 suspend
        5001ms..5002ms  alice  delivers  LANE  offset=17 id=m17 success
        """,
    ),
    "RTY-2: the lane was dropped before": (
        "RTY-2",
        """
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 suspend=100 suspend
        90ms            alice  drops     LANE
        5001ms..5002ms  alice  locks     LANE  ok
        """,
    ),
    "RTY-2: it may have been given up unseen": (
        "RTY-2",
        """
        config max_reconsume_times=0
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 rt=0 suspend=100 suspend
        5001ms..5002ms  alice  delivers  LANE  offset=18 id=m18 success
        """,
    ),
    "RTY-2: the client shuts down": (
        "RTY-2",
        """
        0ms             alice  adds      LANE  value=17
        1ms..2ms        alice  locks     LANE  ok
        10ms..20ms      alice  delivers  LANE  offset=17 id=m17 suspend=100 suspend
        50ms..6000ms    alice  leaves    billing
        5001ms          alice  drops     LANE
        """,
    ),
    "RTY-6: the client was paused": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms..60ms      alice  pauses    -
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the lease was refused in between": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms..60ms      alice  locks     LANE                 refused
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the lease was given back in between": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms..60ms      alice  unlocks   LANE                 ok
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the client died and came again": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms            alice  crashes   -
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the client shuts down": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms..3000ms    alice  leaves    billing
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: an operator moved an offset": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        50ms            ops    resets    LANE                 value=0
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the message had been delivered before": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        7ms..8ms        alice  delivers  LANE                 offset=0 success
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the lane rests itself": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        7ms..8ms        alice  delivers  LANE                 offset=0 suspend=2000 suspend
        1100ms..1101ms  alice  delivers  LANE                 offset=1 success
        """,
    ),
    "RTY-6: to the millisecond": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        1006ms..1007ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the other one rests for no longer than the bound": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=1001 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: another message than the first one fetched": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        1100ms..1101ms  alice  delivers  LANE                 offset=1 success
        """,
    ),
    "RTY-6: another client rests": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        bob    delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: the lease ran out": (
        "RTY-6",
        """
        config client_lease_ms=1000
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32
        1002ms..1003ms  alice  locks     LANE                 ok
        1100ms..1101ms  alice  delivers  LANE                 offset=0 success
        """,
    ),
    "RTY-6: a call of an earlier life may still keep the lane": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms             alice  adds      LANE                 value=0 inc=2
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        5ms..6ms        alice  pulls     LANE                 offset=0 value=32 inc=2
        1100ms..1101ms  alice  delivers  LANE                 offset=0 inc=2 success
        """,
    ),
    "RTY-6: without a lease when its last call ended, the lane asks for one and waits": (
        "RTY-6",
        """
        config client_lease_ms=1200
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  pulls     LANE                 offset=0 value=1
        5ms..1300ms     alice  delivers  LANE                 offset=0 success
        1301ms..1302ms  alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        1400ms..1401ms  alice  locks     LANE                 ok
        1402ms..1403ms  alice  pulls     LANE                 offset=1 value=2
        2410ms..2411ms  alice  delivers  LANE                 offset=1 success
        """,
    ),
    "RTY-6: fetched while the last call ran": (
        "RTY-6",
        """
        0ms             alice  adds      LANE                 value=0
        1ms..2ms        alice  locks     LANE                 ok
        3ms..4ms        alice  pulls     LANE                 offset=0 value=1
        5ms..30ms       alice  delivers  LANE                 offset=0 success
        6ms..7ms        alice  delivers  billing/orders/b0/4  offset=7 suspend=9000 suspend
        8ms..9ms        alice  pulls     LANE                 offset=1 value=2
        1400ms..1401ms  alice  delivers  LANE                 offset=1 success
        """,
    ),
    "DLQ-9: the lease had run out": (
        "DLQ-9",
        """
        config max_reconsume_times=1
        0ms..5ms          alice  locks         LANE  ok
        6ms..9ms          alice  pulls         LANE  offset=17 value=19 ok
        29010ms..29020ms  alice  delivers      LANE  offset=17 id=m17 rt=1 suspend
        29021ms..29022ms  alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        33023ms..33024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
    ),
    "DLQ-9: the cap of the run may end the turn before the bound is over": (
        "DLQ-9",
        """
        config max_reconsume_times=1 continuous_ms=1000
        0ms..5ms        alice  locks         LANE  ok
        6ms..9ms        alice  pulls         LANE  offset=17 value=19 ok
        10ms..20ms      alice  delivers      LANE  offset=17 id=m17 rt=1 suspend
        21ms..22ms      alice  dead-letters  LANE  offset=17 id=m17 rt=1 ok
        1023ms..1024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
    ),
    "DLQ-9: at its first delivery the lane may have had its thread for long": (
        "DLQ-9",
        """
        config max_reconsume_times=0
        0ms..5ms        alice  locks         LANE  ok
        6ms..9ms        alice  pulls         LANE  offset=17 value=19 ok
        10ms..20ms      alice  delivers      LANE  offset=17 id=m17 rt=0 suspend
        21ms..22ms      alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        2023ms..2024ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
    ),
    "ORD-3: nobody recorded dead letters, and the retries were used up": (
        "ORD-3",
        """
        config max_reconsume_times=1
        0ms..5ms        alice  delivers  LANE  offset=17 id=m17 rt=0 suspend
        1005ms..1006ms  alice  delivers  LANE  offset=17 id=m17 rt=1 suspend
        1010ms..1011ms  alice  delivers  LANE  offset=18 id=m18 rt=0 success
        """,
    ),
    "RTY-4: a batch that was given up in part comes again as a whole": (
        "RTY-4",
        """
        config max_reconsume_times=0 batch=2
        0ms..5ms        alice  delivers      LANE  offset=17 id=m17 rt=0 call=1 suspend
        0ms..5ms        alice  delivers      LANE  offset=18 id=m18 rt=0 call=1 suspend
        6ms..7ms        alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        8ms..9ms        alice  dead-letters  LANE  offset=18 id=m18 rt=0 unknown
        1009ms..1010ms  alice  delivers      LANE  offset=17 id=m17 rt=0 success
        """,
    ),
    "RTY-4: the offset was reset": (
        "RTY-4",
        """
        0ms..5ms       alice  delivers  LANE  offset=17 id=m17 suspend
        6ms            ops    resets    LANE  value=3
        1006ms..1007ms alice  delivers  LANE  offset=3 id=m3 success
        """,
    ),
    "RTY-7: the listener set a time before it threw": (
        "RTY-7",
        """
        0ms..5ms    alice  delivers  LANE  offset=17 id=m17 suspend=10 threw
        15ms..17ms  alice  delivers  LANE  offset=17 id=m17 success
        """,
    ),
    "RTY-9: in auto mode a ROLLBACK acknowledges": (
        "RTY-9",
        """
        0ms..5ms  alice  delivers  LANE  offset=16 id=m16 mode=auto success
        6ms..9ms  alice  delivers  LANE  offset=17 id=m17 mode=auto rollback
        10ms..12ms  alice  delivers  LANE  offset=18 id=m18 mode=auto success
        """,
    ),
    "RTY-9: an auto call commits what was taken": (
        "RTY-9",
        """
        0ms..5ms        alice  delivers  LANE  offset=16 id=m16 mode=manual success
        6ms..9ms        alice  delivers  LANE  offset=17 id=m17 mode=auto success
        10ms..12ms      alice  delivers  LANE  offset=18 id=m18 mode=manual rollback
        1013ms..1014ms  alice  delivers  LANE  offset=18 id=m18 mode=manual success
        """,
    ),
    "RTY-9: giving up commits what was taken": (
        "RTY-9",
        """
        config max_reconsume_times=0
        0ms..5ms        alice  delivers      LANE  offset=16 id=m16 mode=manual rt=0 success
        6ms..9ms        alice  delivers      LANE  offset=17 id=m17 mode=auto rt=0 suspend
        10ms..11ms      alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        12ms..13ms      alice  delivers      LANE  offset=18 id=m18 mode=manual rt=0 rollback
        1014ms..1015ms  alice  delivers      LANE  offset=18 id=m18 mode=manual rt=0 success
        """,
    ),
    "RTY-11: a copy in the retry topic carries its own counter": (
        "RTY-11",
        """
        0ms..5ms        alice  delivers  billing/%RETRY%billing/b0/0  offset=1 id=m17 rt=3 suspend
        10ms            bob    adds      billing/%RETRY%billing/b0/0  value=1
        1010ms..1015ms  bob    delivers  billing/%RETRY%billing/b0/0  offset=1 id=m17 rt=3 success
        """,
    ),
    "RTY-11: the second delivery of the new incarnation counts its own": (
        "RTY-11",
        """
        0ms             bob    adds      LANE  value=17
        1ms..2ms        bob    delivers  LANE  offset=17 id=m17 rt=0 suspend
        3ms..5ms        alice  delivers  LANE  offset=17 id=m17 rt=2 suspend
        1010ms..1015ms  bob    delivers  LANE  offset=17 id=m17 rt=1 success
        """,
    ),
    "DLQ-3: a manual ROLLBACK replays what was given up": (
        "DLQ-3",
        """
        config max_reconsume_times=0
        0ms..5ms        alice  delivers      LANE  offset=17 id=m17 mode=manual rt=0 suspend
        6ms..7ms        alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        8ms..9ms        alice  delivers      LANE  offset=18 id=m18 mode=manual rt=0 rollback
        1010ms..1011ms  alice  delivers      LANE  offset=17 id=m17 mode=manual rt=0 success
        """,
    ),
    "DLQ-3: a batch of two comes again when one of them was not given up": (
        "DLQ-3",
        """
        config max_reconsume_times=0 batch=2
        6ms..7ms        alice  dead-letters  LANE  offset=17 id=m17 rt=0 ok
        1010ms..1011ms  alice  delivers      LANE  offset=17 id=m17 rt=0 success
        """,
    ),
    "DLQ-6: it comes again": (
        "DLQ-6",
        """
        config max_reconsume_times=0
        0ms..5ms        alice  delivers      LANE  offset=17 id=m17 rt=0 suspend
        6ms..7ms        alice  dead-letters  LANE  offset=17 id=m17 rt=0 unknown
        1007ms..1008ms  alice  delivers      LANE  offset=17 id=m17 rt=1 success
        1009ms..1010ms  alice  delivers      LANE  offset=18 id=m18 rt=0 success
        """,
    ),
}


@pytest.mark.parametrize(("clause_id", "text", "lines"), REFUTED.values(), ids=list(REFUTED))
def test_it_is_refuted_by_these_lines(
    clause_id: str, text: str, lines: list[tuple[int, ...]]
) -> None:
    assert found(clause_id, text) == lines


@pytest.mark.parametrize(("clause_id", "text"), EXCUSED.values(), ids=list(EXCUSED))
def test_it_is_excused(clause_id: str, text: str) -> None:
    assert found(clause_id, text) == []


def test_a_given_up_batch_that_nobody_recorded_is_no_opportunity_lost() -> None:
    """The excuse of ORD-3 leaves it at stake, and DLQ-1 to say whether the message arrived."""
    info, rows = parse_history(
        EXCUSED["ORD-3: nobody recorded dead letters, and the retries were used up"][1].replace(
            "LANE", LANE
        )
    )
    assert examine(rows, info).tallies["ORD-3"].opportunities == 2
