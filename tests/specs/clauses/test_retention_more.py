"""What a broker removed on purpose excuses who counts on it, and nothing else does."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

EXAMPLES = (
    (
        "SND-1",
        0,
        "what lies below the announced minimum is not lost",
        """
        0ms..5ms    shop   sends  orders/b0/3   offset=17 id=m17 ok
        50ms        b0     trims  orders/b0/3   value=18
        90ms..99ms  drain  reads  orders/b0/3   value=18 ok
        """,
    ),
    (
        "SND-1",
        1,
        "the first message that is said to be kept is lost",
        """
        0ms..5ms    shop   sends  orders/b0/3   offset=17 id=m17 ok
        6ms..7ms    shop   sends  orders/b0/3   offset=18 id=m18 ok
        50ms        b0     trims  orders/b0/3   value=18
        90ms..99ms  drain  reads  orders/b0/3   value=19 ok
        """,
    ),
    (
        "SND-1",
        2,
        "another queue, and another broker, say nothing about this one",
        """
        0ms..5ms    shop   sends  orders/b0/3   offset=17 id=m17 ok
        0ms..5ms    shop   sends  orders/b0/2   offset=17 id=n17 ok
        50ms        b0     trims  orders/b1/3   value=18
        51ms        b0     trims  bills/b0/2    value=18
        90ms..99ms  drain  reads  orders/b0/3   value=18 ok
        90ms..99ms  drain  reads  orders/b0/2   value=18 ok
        """,
    ),
    (
        "SND-1",
        1,
        "what is announced after the reading comes too late",
        """
        0ms..5ms    shop   sends  orders/b0/3   offset=17 id=m17 ok
        90ms..99ms  drain  reads  orders/b0/3   value=18 ok
        100ms       b0     trims  orders/b0/3   value=18
        """,
    ),
    (
        "SND-1",
        0,
        "a later word never takes an earlier one back",
        """
        0ms..5ms    shop   sends  orders/b0/3   offset=17 id=m17 ok
        50ms        b0     trims  orders/b0/3   value=18
        60ms        b0     trims  orders/b0/3   value=9
        90ms..99ms  drain  reads  orders/b0/3   value=18 ok
        """,
    ),
    (
        "ORD-4",
        0,
        "nobody owes what was removed before the new owner began",
        """
        0ms         alice  fetches   billing/orders/b0/3   value=17 ok
        1ms         shop   sends     orders/b0/3           offset=18 id=m18 ok
        2ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 suspend
        15ms        b0     trims     orders/b0/3           value=19
        20ms..25ms  bob    delivers  billing/orders/b0/3   offset=19 id=m19 success
        """,
    ),
    (
        "ORD-4",
        1,
        "the message at the announced minimum is owed",
        """
        0ms         alice  fetches   billing/orders/b0/3   value=17 ok
        1ms         shop   sends     orders/b0/3           offset=18 id=m18 ok
        2ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 suspend
        15ms        b0     trims     orders/b0/3           value=18
        20ms..25ms  bob    delivers  billing/orders/b0/3   offset=19 id=m19 success
        """,
    ),
    (
        "ORD-4",
        1,
        "what is removed after the new owner's begin was there before",
        """
        0ms         alice  fetches   billing/orders/b0/3   value=17 ok
        2ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 suspend
        20ms..25ms  bob    delivers  billing/orders/b0/3   offset=18 id=m18 success
        30ms        b0     trims     orders/b0/3           value=18
        """,
    ),
    (
        "ORD-12",
        0,
        "who still had a message that was removed may deliver it late",
        """
        1ms         b0     trims     orders/b0/3           value=18
        2ms..5ms    bob    delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 key_seq=5 success
        6ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    (
        "ORD-12",
        1,
        "it was still there when the higher one was delivered",
        """
        2ms..3ms    bob    delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 key_seq=5 success
        4ms         b0     trims     orders/b0/3           value=18
        6ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    (
        "ORD-12",
        1,
        "it is still there",
        """
        1ms         b0     trims     orders/b0/3           value=17
        2ms..5ms    bob    delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 key_seq=5 success
        6ms..9ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 key_seq=4 success
        """,
    ),
    (
        "CMT-8",
        0,
        "a queue without its first message is young no longer",
        """
        config consume_from=last delay_bound_ms=5
        0ms..1ms    shop   sends    orders/b0/3           offset=0 id=m0 ok
        20ms        b0     trims    orders/b0/3           value=1
        30ms..31ms  alice  fetches  billing/orders/b0/3   value=-1 refused
        """,
    ),
    (
        "CMT-8",
        1,
        "its first message is still there",
        """
        config consume_from=last delay_bound_ms=5
        0ms..1ms    shop   sends    orders/b0/3           offset=0 id=m0 ok
        20ms        b0     trims    orders/b0/3           value=0
        30ms..31ms  alice  fetches  billing/orders/b0/3   value=-1 refused
        """,
    ),
    (
        "CMT-8",
        0,
        "from a time: the message of that time was removed",
        """
        config consume_from=timestamp delay_bound_ms=5
        0ms..1ms    shop   sends    orders/b0/3           offset=7 id=m7 ok
        20ms        b0     trims    orders/b0/3           value=8
        30ms..31ms  alice  fetches  billing/orders/b0/3   value=-1 refused
        32ms        alice  adds     billing/orders/b0/3   value=8
        """,
    ),
    (
        "CMT-8",
        1,
        "from a time: the message of that time is kept",
        """
        config consume_from=timestamp delay_bound_ms=5
        0ms..1ms    shop   sends    orders/b0/3           offset=7 id=m7 ok
        20ms        b0     trims    orders/b0/3           value=7
        30ms..31ms  alice  fetches  billing/orders/b0/3   value=-1 refused
        32ms        alice  adds     billing/orders/b0/3   value=8
        """,
    ),
    (
        "DLQ-1",
        0,
        "dead letters are removed like other messages",
        """
        0ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=17 id=m17 ok
        500ms           b0     trims         billing/%DLQ%billing/b0/0  value=1
        1005ms..1010ms  drain  reads         billing/%DLQ%billing/b0/0  value=1 ok
        """,
    ),
    (
        "DLQ-1",
        1,
        "a dead letter that was begun after the removal lies above it",
        """
        0ms             b0     trims         billing/%DLQ%billing/b0/0  value=1
        1ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=17 id=m17 ok
        1005ms..1010ms  drain  reads         billing/%DLQ%billing/b0/0  value=2 ok
        """,
    ),
    (
        "DLQ-1",
        1,
        "another group's dead letters were removed, and its own topic's messages",
        """
        0ms..5ms        alice  dead-letters  billing/orders/b0/3        offset=17 id=m17 ok
        500ms           b0     trims         audit/%DLQ%audit/b0/0      value=1
        501ms           b0     trims         orders/b0/3                value=18
        1005ms..1010ms  drain  reads         billing/%DLQ%billing/b0/0  value=1 ok
        """,
    ),
    (
        "LIV-1",
        0,
        "nobody has to finish what the drain no longer finds",
        """
        config closed_world=no
        0ms         shop   sends  orders/b0/3           offset=17 id=m17 ok
        1ms         alice  adds   billing/orders/b0/3   value=17
        50ms        b0     trims  orders/b0/3           value=18
        90ms..99ms  drain  reads  orders/b0/3           value=18 detail=settled ok
        """,
    ),
    (
        "LIV-1",
        1,
        "what is kept has to be finished",
        """
        1ms         alice  adds   billing/orders/b0/3   value=17
        50ms        b0     trims  orders/b0/3           value=18
        90ms..99ms  drain  reads  orders/b0/3           value=19 detail=settled ok
        95ms        drain  reads  orders/b0/3           offset=18 id=m18 ok
        """,
    ),
)


@pytest.mark.parametrize(
    ("clause", "violations", "why", "text"), EXAMPLES, ids=[f"{e[0]}: {e[2]}" for e in EXAMPLES]
)
def test_the_example_is_judged_as_it_says(
    clause: str, violations: int, why: str, text: str
) -> None:
    """As often as the example says, and each violation's evidence alone is refuted again."""
    info, rows = parse_history(text)
    found = find_violations(get(clause), rows, info)
    assert len(found) == violations
    for finding in found:
        assert find_violations(get(clause), finding.rows, info)
    assert examine(rows, info).tallies[clause].violations == violations
