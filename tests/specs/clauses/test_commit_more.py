"""Further examples of the commit clauses: other ways to break them, and what is excused."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations

EXAMPLES = (
    # (clause, violations, why, history)
    (
        "CMT-3",
        1,
        "a message that was rolled back is not committed either",
        """
        0ms        alice  adds      billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers  billing/orders/b0/3  offset=7 mode=manual success
        3ms..4ms   alice  delivers  billing/orders/b0/3  offset=8 mode=manual rollback
        5ms        alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    (
        "CMT-3",
        0,
        "a later COMMIT covers it; a suspended call of auto mode covers nothing and is no business of this clause",
        """
        0ms          alice  adds          billing/orders/b0/3  value=7
        1ms..2ms     alice  delivers      billing/orders/b0/3  offset=7 mode=manual success
        3ms..4ms     alice  delivers      billing/orders/b0/3  offset=8 mode=manual suspend
        14ms..15ms   alice  delivers      billing/orders/b0/3  offset=8 mode=manual commit
        16ms         alice  commits       billing/orders/b0/3  value=9 sent
        17ms..18ms   alice  delivers      billing/orders/b0/3  offset=9 suspend
        19ms         alice  commits       billing/orders/b0/3  value=10 sent
        """,
    ),
    (
        "CMT-3",
        0,
        "a dead letter of auto mode commits all that was taken; one of manual mode waits for a COMMIT",
        """
        0ms        alice  adds          billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers      billing/orders/b0/3  offset=7 mode=manual success
        3ms..4ms   alice  delivers      billing/orders/b0/3  offset=8 suspend
        5ms..6ms   alice  dead-letters  billing/orders/b0/3  offset=8 ok
        7ms        alice  commits       billing/orders/b0/3  value=9 sent
        """,
    ),
    (
        "CMT-3",
        1,
        "a dead letter of manual mode commits nothing",
        """
        0ms        alice  adds          billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers      billing/orders/b0/3  offset=7 mode=manual suspend
        5ms..6ms   alice  dead-letters  billing/orders/b0/3  offset=7 ok
        7ms        alice  commits       billing/orders/b0/3  value=8 sent
        """,
    ),
    (
        "CMT-3",
        0,
        "a correction, a reset, a drop and a beginning that was not seen are excused",
        """
        0ms        alice  adds      billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers  billing/orders/b0/3  offset=7 mode=manual success
        3ms        alice  commits   billing/orders/b0/3  value=9 detail=corrected sent
        4ms        alice  drops     billing/orders/b0/3
        5ms        alice  commits   billing/orders/b0/3  value=9 sent
        6ms        alice  adds      billing/orders/b0/3  value=7 inc=2
        7ms..8ms   alice  delivers  billing/orders/b0/3  offset=7 mode=manual inc=2 success
        9ms        admin  resets    billing/orders/b0/3  value=12
        10ms       alice  commits   billing/orders/b0/3  value=12 inc=2 sent
        11ms..12ms bob    delivers  billing/orders/b0/3  offset=7 mode=manual success
        13ms       bob    commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    (
        "CMT-6",
        1,
        "the call that outlived the lane is reported",
        """
        0ms        alice  adds      billing/orders/b0/3  value=7
        1ms..9ms   alice  delivers  billing/orders/b0/3  offset=7 success
        5ms        alice  drops     billing/orders/b0/3
        10ms       alice  commits   billing/orders/b0/3  value=8 sent
        """,
    ),
    (
        "CMT-6",
        0,
        "what a look-up, a dead letter or a commit reached before the drop may be told again",
        """
        0ms        alice  adds          billing/orders/b0/3  value=7
        1ms..2ms   alice  fetches       billing/orders/b0/3  inc=1 value=9 ok
        3ms        alice  drops         billing/orders/b0/3
        4ms        alice  commits       billing/orders/b0/3  value=9 sent
        5ms        alice  adds          billing/orders/b0/3  value=9 inc=2
        6ms..7ms   alice  delivers      billing/orders/b0/3  offset=9 inc=2 suspend
        8ms..9ms   alice  dead-letters  billing/orders/b0/3  offset=9 inc=2 ok
        10ms       alice  drops         billing/orders/b0/3  inc=2
        11ms       alice  commits       billing/orders/b0/3  value=10 inc=2 sent
        12ms       bob    adds          billing/orders/b0/3  value=10
        13ms       bob    commits       billing/orders/b0/3  value=12 sent
        14ms       bob    drops         billing/orders/b0/3
        15ms       bob    commits       billing/orders/b0/3  value=12 sent
        """,
    ),
    (
        "CMT-6",
        0,
        "a correction, a reset and a start that nobody knows are excused",
        """
        config consume_from=last
        0ms        alice  adds      billing/orders/b0/3  value=7
        3ms        alice  drops     billing/orders/b0/3
        4ms        alice  commits   billing/orders/b0/3  value=2 detail=corrected sent
        5ms        alice  commits   billing/orders/b0/3  value=9 detail=corrected sent
        6ms        bob    adds      billing/orders/b0/3  value=7
        7ms..8ms   bob    fetches   billing/orders/b0/3  inc=1 value=-1 refused
        9ms        bob    drops     billing/orders/b0/3
        10ms       bob    commits   billing/orders/b0/3  value=9 sent
        11ms       carol  adds      billing/orders/b0/3  value=7
        12ms       admin  resets    billing/orders/b0/3  value=9
        13ms       carol  drops     billing/orders/b0/3
        14ms       carol  commits   billing/orders/b0/3  value=9 sent
        """,
    ),
    (
        "CMT-7",
        1,
        "nothing is stored any more",
        """
        0ms..5ms          alice  commits  billing/orders/b0/3  value=8 view=pull ok
        20000ms           b0     crashes  b0
        25000ms..25001ms  bob    fetches  billing/orders/b0/3  value=-1 code=22 refused
        """,
    ),
    (
        "CMT-7",
        1,
        "what was on disk before one crash is there after the next",
        """
        0ms..5ms          alice  commits  billing/orders/b0/3  value=8 view=pull ok
        20000ms           b0     crashes  b0
        21000ms..21001ms  alice  commits  billing/orders/b0/3  value=9 view=pull ok
        22000ms           b0     crashes  b0
        25000ms..25001ms  bob    fetches  billing/orders/b0/3  value=7 ok
        """,
    ),
    (
        "CMT-7",
        0,
        "a later commit may have gone back, and one that a crash undid is not on disk",
        """
        0ms..5ms          alice  commits  billing/orders/b0/3  value=8 view=pull ok
        9000ms            alice  commits  billing/orders/b0/3  value=6 sent
        20000ms           b0     crashes  b0
        25000ms..25001ms  bob    fetches  billing/orders/b0/3  value=6 ok
        0ms..5ms          alice  commits  billing/orders/b1/3  value=8 view=pull ok
        3000ms            b1     crashes  b1
        20000ms           b1     crashes  b1
        25000ms..25001ms  bob    fetches  billing/orders/b1/3  value=6 ok
        """,
    ),
    (
        "CMT-7",
        0,
        "a pause of the broker, a reset and a negative value are excused; no answer says nothing",
        """
        0ms..5ms          alice  commits  billing/orders/b0/3  value=8 view=pull ok
        20000ms           b0     crashes  b0
        25000ms..25001ms  bob    fetches  billing/orders/b0/3  value=1 unknown
        26000ms           admin  resets   billing/orders/b0/3  value=6
        27000ms..27001ms  bob    fetches  billing/orders/b0/3  value=6 ok
        0ms..5ms          alice  commits  billing/orders/b1/3  value=-1 ok
        20000ms           b1     crashes  b1
        25000ms..25001ms  bob    fetches  billing/orders/b1/3  value=-1 refused
        """,
    ),
    (
        "CMT-8",
        2,
        "no lane is added, and none is pulled, after an error",
        """
        1ms..2ms  alice  fetches  billing/orders/b0/3  unknown
        3ms       alice  adds     billing/orders/b0/3  value=0
        4ms..5ms  alice  fetches  billing/orders/b0/3  inc=1 code=1 refused
        6ms..7ms  alice  pulls    billing/orders/b0/3  offset=0 value=1
        """,
    ),
    (
        "CMT-8",
        2,
        "where nothing is stored, from the first means 0; the first pull asks for what was told last",
        """
        1ms..2ms  alice  fetches  billing/orders/b0/3            value=-1 refused
        3ms       alice  adds     billing/orders/b0/3            value=4
        4ms..5ms  alice  fetches  billing/orders/b0/3            inc=1 value=6 ok
        6ms..7ms  alice  pulls    billing/orders/b0/3            offset=4 value=5
        """,
    ),
    (
        "CMT-8",
        1,
        "a retry topic from the last means 0",
        """
        config consume_from=last
        1ms..2ms  bob    fetches  billing/%RETRY%billing/b0/0    value=-1 refused
        3ms       bob    adds     billing/%RETRY%billing/b0/0    value=1
        """,
    ),
    (
        "CMT-8",
        2,
        "from the last: not below the end; a first message a moment ago makes the topic young",
        """
        config consume_from=last
        0ms..1ms          shop   sends    orders/b0/3          offset=0 id=m1 ok
        5000ms..5001ms    alice  fetches  billing/orders/b0/3  value=-1 refused
        5002ms            alice  adds     billing/orders/b0/3  value=0
        """,
    ),
    (
        "CMT-8",
        1,
        "from a time: what was sent since then is not skipped",
        """
        config consume_from=timestamp
        0ms..1ms          shop   sends    orders/b0/3          offset=7 id=m8 ok
        5000ms..5001ms    alice  fetches  billing/orders/b0/3  value=-1 refused
        5002ms            alice  adds     billing/orders/b0/3  value=8
        """,
    ),
    (
        "CMT-8",
        0,
        "older than half an hour, the end of a retry topic, a first message that is old, one from before a crash",
        """
        config consume_from=timestamp
        0ms..1ms               shop   sends    orders/b0/3                  offset=0 id=m8 ok
        1900000ms..1900001ms   alice  fetches  billing/orders/b0/3          value=-1 refused
        1900002ms              alice  adds     billing/orders/b0/3          value=1
        1900003ms..1900004ms   alice  fetches  billing/orders/b0/3          inc=1 value=-1 refused
        1900005ms..1900006ms   alice  pulls    billing/orders/b0/3          offset=1 value=1
        1900002ms..1900003ms   bob    fetches  billing/%RETRY%billing/b0/0  value=-1 refused
        1900004ms              bob    adds     billing/%RETRY%billing/b0/0  value=3
        1900005ms..1900006ms   shop   sends    orders/b1/3                  offset=0 id=m9 ok
        1905000ms              b1     crashes  b1
        1906000ms..1906001ms   alice  fetches  billing/orders/b1/3          value=-1 refused
        1906002ms              alice  adds     billing/orders/b1/3          value=4
        """,
    ),
    (
        "CMT-8",
        0,
        "a reset, and a look-up that is not over when the lane is added",
        """
        1ms..2ms  alice  fetches  billing/orders/b0/3  value=6 ok
        3ms       admin  resets   billing/orders/b0/3  value=2
        4ms       alice  adds     billing/orders/b0/3  value=2
        5ms..9ms  bob    fetches  billing/orders/b0/3  value=6 ok
        7ms       bob    adds     billing/orders/b0/3  value=2
        8ms       bob    pulls    billing/orders/b0/3  offset=3 value=4
        """,
    ),
    (
        "CMT-11",
        1,
        "a commit that was sent before the reset arrives after it",
        """
        config delay_bound_ms=50
        0ms         alice  commits  billing/orders/b0/3  value=7 sent
        10ms..11ms  ops    resets   billing/orders/b0/3  value=2 ok
        20ms..21ms  bob    fetches  billing/orders/b0/3  value=7 ok
        """,
    ),
    (
        "CMT-11",
        1,
        "what is heard is neither the reset nor the commit; an earlier reset is overwritten as well",
        """
        config delay_bound_ms=50
        0ms..1ms      ops    resets   billing/orders/b0/3  value=3 ok
        100ms..101ms  ops    resets   billing/orders/b0/3  value=2 ok
        102ms..103ms  alice  commits  billing/orders/b0/3  value=7 ok
        104ms..105ms  bob    fetches  billing/orders/b0/3  value=3 ok
        """,
    ),
    (
        "CMT-11",
        0,
        "an old commit, no answer to the reset, another reset under way, a look-up that began before the answer",
        """
        config delay_bound_ms=50
        0ms..1ms      alice  commits  billing/orders/b0/3  value=7 ok       # long over
        100ms..101ms  ops    resets   billing/orders/b0/3  value=2 ok
        102ms..103ms  bob    fetches  billing/orders/b0/3  value=7 ok       # another clause's matter
        200ms..       ops    resets   billing/orders/b0/4  value=2 unknown
        201ms..202ms  alice  commits  billing/orders/b0/4  value=7 ok
        203ms..204ms  bob    fetches  billing/orders/b0/4  value=7 ok
        300ms..301ms  ops    resets   billing/orders/b0/5  value=2 ok
        302ms..309ms  ops    resets   billing/orders/b0/5  value=4 ok
        303ms..304ms  alice  commits  billing/orders/b0/5  value=7 ok
        305ms..306ms  bob    fetches  billing/orders/b0/5  value=4 ok
        400ms..410ms  ops    resets   billing/orders/b0/6  value=2 ok
        401ms..402ms  alice  commits  billing/orders/b0/6  value=7 ok
        403ms..411ms  bob    fetches  billing/orders/b0/6  value=7 ok
        """,
    ),
    (
        "CMT-11",
        0,
        "a pull that was parked takes the reset, a broker that crashed",
        """
        config delay_bound_ms=50 long_poll_ms=1000
        0ms             alice  pulls    billing/orders/b0/3  offset=7 unknown
        500ms..501ms    ops    resets   billing/orders/b0/3  value=2 ok
        502ms..503ms    alice  commits  billing/orders/b0/3  value=7 ok
        504ms..505ms    bob    fetches  billing/orders/b0/3  value=7 ok
        600ms..601ms    ops    resets   billing/orders/b0/4  value=2 ok
        602ms           b0     crashes  b0
        603ms..604ms    alice  commits  billing/orders/b0/4  value=7 ok
        605ms..606ms    bob    fetches  billing/orders/b0/4  value=7 ok
        """,
    ),
    (
        "CMT-11",
        1,
        "who was told to go on elsewhere reports what it had finished",
        """
        config guard_slack_ms=0
        0ms        ops    resets   billing/orders/b0/3  value=2 ok
        1ms..2ms   alice  pulls    billing/orders/b0/3  offset=7 value=2 code=21 refused
        3ms        alice  commits  billing/orders/b0/3  value=7 sent
        """,
    ),
    (
        "CMT-11",
        0,
        "it reports the new offset; it was told something else; it had dropped the lane, or begun to leave",
        """
        0ms          ops    resets   billing/orders/b0/3  value=2 ok
        1ms..2ms     alice  pulls    billing/orders/b0/3  offset=7 value=2 code=21 refused
        3ms          alice  drops    billing/orders/b0/3
        4ms          alice  commits  billing/orders/b0/3  value=2 detail=corrected sent
        5ms..6ms     bob    pulls    billing/orders/b0/3  offset=7 value=9 code=21 refused
        7ms          bob    commits  billing/orders/b0/3  value=9 sent
        8ms..12ms    carol  pulls    billing/orders/b0/3  offset=7 value=2 code=21 refused
        9ms          carol  drops    billing/orders/b0/3
        13ms         carol  commits  billing/orders/b0/3  value=7 sent
        14ms..16ms   dave   pulls    billing/orders/b0/3  offset=7 value=2 code=21 refused
        15ms         dave   leaves   billing
        17ms         dave   commits  billing/orders/b0/3  value=7 sent
        """,
    ),
    (
        "CMT-9",
        1,
        "nothing is stored though a commit was answered",
        """
        0ms..5ms  alice  commits  billing/orders/b0/3  value=8 view=pull ok
        6ms..7ms  bob    fetches  billing/orders/b0/3  value=-1 code=22 refused
        """,
    ),
    (
        "CMT-9",
        1,
        "an older commit is certainly overwritten",
        """
        0ms               alice  commits  billing/orders/b0/3  value=7 sent
        4000ms..4005ms    alice  commits  billing/orders/b0/3  value=8 view=pull ok
        6000ms..6005ms    bob    fetches  billing/orders/b0/3  value=7 ok
        """,
    ),
    (
        "CMT-9",
        0,
        "a commit while the question is under way, a crash of the broker, an error, a negative value",
        """
        0ms..5ms       alice  commits  billing/orders/b0/3  value=8 view=pull ok
        6ms..9ms       bob    fetches  billing/orders/b0/3  value=9 ok
        7ms            alice  commits  billing/orders/b0/3  value=9 sent
        10ms..11ms     bob    fetches  billing/orders/b0/3  code=1 refused
        12ms           b0     crashes  b0
        13ms..14ms     bob    fetches  billing/orders/b0/3  value=3 ok
        15ms..16ms     alice  commits  billing/orders/b0/3  value=-1 ok
        17ms..18ms     bob    fetches  billing/orders/b0/3  value=0 ok
        """,
    ),
    (
        "CMT-9",
        0,
        "a long pull's commit may be applied at any time until it is answered; after a reset nothing is said",
        """
        0ms..15000ms      alice  commits  billing/orders/b0/3  value=7 view=pull ok
        9000ms..9005ms    alice  commits  billing/orders/b0/3  value=8 ok
        16000ms..16005ms  bob    fetches  billing/orders/b0/3  value=7 ok
        17000ms           admin  resets   billing/orders/b0/3  value=2
        18000ms..18005ms  alice  commits  billing/orders/b0/3  value=9 ok
        19000ms..19005ms  bob    fetches  billing/orders/b0/3  value=2 ok
        """,
    ),
    (
        "CMT-13",
        1,
        "an older value was told, the last one not",
        """
        config guard_slack_ms=0
        0ms        alice  adds      billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers  billing/orders/b0/3  offset=7 success
        3ms        alice  commits   billing/orders/b0/3  value=8 sent
        4ms..5ms   alice  delivers  billing/orders/b0/3  offset=8 mode=manual commit
        6ms        alice  unlocks   billing/orders/b0/3  inc=1 sent
        7ms        alice  commits   billing/orders/b0/3  value=9 sent
        """,
    ),
    (
        "CMT-13",
        0,
        "nothing finished in manual mode, a correction, a reset, another incarnation's unlock",
        """
        config guard_slack_ms=0
        0ms        alice  adds      billing/orders/b0/3  value=7
        1ms..2ms   alice  delivers  billing/orders/b0/3  offset=7 mode=manual success
        6ms        alice  unlocks   billing/orders/b0/3  inc=1 sent
        7ms        alice  adds      billing/orders/b0/3  value=7 inc=2
        8ms..9ms   alice  delivers  billing/orders/b0/3  offset=7 inc=2 success
        10ms       alice  commits   billing/orders/b0/3  value=3 inc=2 detail=corrected sent
        11ms       alice  unlocks   billing/orders/b0/3  inc=2 sent
        12ms       alice  adds      billing/orders/b0/3  value=7 inc=3
        13ms..14ms alice  delivers  billing/orders/b0/3  offset=7 inc=3 success
        15ms       alice  unlocks   billing/orders/b0/3  sent
        16ms       admin  resets    billing/orders/b0/3  value=3
        17ms       alice  unlocks   billing/orders/b0/3  inc=3 sent
        """,
    ),
)


@pytest.mark.parametrize(
    ("clause_id", "violations", "why", "text"), EXAMPLES, ids=[f"{e[0]}: {e[2]}" for e in EXAMPLES]
)
def test_example(clause_id: str, violations: int, why: str, text: str) -> None:
    """The clause finds what the example says, no more and no less, and explains it."""
    clause = get(clause_id)
    info, rows = parse_history(text)
    found = find_violations(clause, rows, info)
    assert len(found) == violations, (why, [clause.explain(each) for each in found])
    for each in found:
        assert "None" not in clause.explain(each)
        assert find_violations(clause, each.rows, info)
