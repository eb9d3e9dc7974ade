"""Further examples of the clauses about progress: other ways to break them, and what is excused."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

EXAMPLES = (
    # (clause, violations, why, history)
    (
        "LIV-1",
        1,
        "a message that was suspended and never came again; the look-up says where the incarnation starts",
        """
        0ms          alice  adds      billing/orders/b0/3  value=3
        1ms..2ms     alice  fetches   billing/orders/b0/3  inc=1 value=7 ok
        3ms..4ms     alice  delivers  billing/orders/b0/3  offset=7 id=m7 suspend
        90ms..99ms   drain  reads     orders/b0/3          value=8 detail=settled ok
        94ms         drain  reads     orders/b0/3          offset=6 id=m6 ok
        95ms         drain  reads     orders/b0/3          offset=7 id=m7 ok
        """,
    ),
    (
        "LIV-1",
        2,
        "each group owes its own",
        """
        0ms          alice  adds   billing/orders/b0/3  value=7
        0ms          carol  adds   audit/orders/b0/3    value=0
        90ms..99ms   drain  reads  orders/b0/3          value=9 detail=settled ok
        94ms         drain  reads  orders/b0/3          offset=7 id=m7 ok
        95ms         drain  reads  orders/b0/3          offset=8 id=m8 ok
        """,
    ),
    (
        "LIV-1",
        0,
        "a call that has not returned, the manual mode, a reset, and an owner who is gone",
        """
        0ms          alice  adds      billing/orders/b0/3  value=7
        1ms..        alice  delivers  billing/orders/b0/3  offset=7 id=m7
        0ms          bob    adds      audit/orders/b0/3    value=7
        1ms..2ms     bob    delivers  audit/orders/b0/3    offset=7 id=m7 mode=manual success
        0ms          carol  adds      third/orders/b0/3    value=7
        1ms          admin  resets    third/orders/b0/3    value=7
        0ms          dave   adds      fourth/orders/b0/3   value=7
        5ms          dave   crashes   -
        0ms          eve    adds      fifth/orders/b0/3    value=7
        5ms..6ms     eve    leaves    fifth
        90ms..99ms   drain  reads     orders/b0/3          value=8 detail=settled ok
        95ms         drain  reads     orders/b0/3          offset=7 id=m7 ok
        """,
    ),
    (
        "LIV-1",
        0,
        "a reading that failed, and one after which the lane went on",
        """
        0ms           alice  adds      billing/orders/b0/3  value=7
        90ms..99ms    drain  reads     orders/b0/3          value=7 detail=settled refused
        95ms          drain  reads     orders/b0/3          offset=7 id=m7 ok
        100ms..101ms  alice  delivers  billing/orders/b0/3  offset=7 id=m7 success
        110ms..119ms  drain  reads     orders/b0/3          value=8 detail=settled ok
        115ms         drain  reads     orders/b0/3          offset=7 id=m7 ok
        """,
    ),
    (
        "LIV-3",
        1,
        "the grant is fresh, and so was the one before",
        """
        0ms..1ms          alice  locks     billing/orders/b0/3  ok
        2ms               alice  adds      billing/orders/b0/3  value=0
        3ms..4ms          alice  pulls     billing/orders/b0/3  offset=0 value=9
        10ms..11ms        alice  delivers  billing/orders/b0/4  offset=7 success
        20000ms..20001ms  alice  locks     billing/orders/b0/3  ok
        40000ms..40001ms  alice  locks     billing/orders/b0/3  ok
        62000ms..62001ms  alice  delivers  billing/orders/b0/4  offset=8 success
        """,
    ),
    (
        "LIV-3",
        0,
        "a renewal that was asked for in time and answered too late: in between the lane had no lease",
        """
        0ms..1ms          alice  locks     billing/orders/b0/3  ok
        2ms               alice  adds      billing/orders/b0/3  value=0
        3ms..4ms          alice  pulls     billing/orders/b0/3  offset=0 value=9
        10ms..11ms        alice  delivers  billing/orders/b0/4  offset=7 success
        20000ms..30002ms  alice  locks     billing/orders/b0/3  ok
        40000ms..40001ms  alice  locks     billing/orders/b0/3  ok
        62000ms..62001ms  alice  delivers  billing/orders/b0/4  offset=8 success
        """,
    ),
    (
        "LIV-3",
        0,
        "no messages yet; the cap to the millisecond; another client's calls; another lane that takes its turn",
        """
        0ms               alice  adds      billing/orders/b0/3  value=0
        1ms..2ms          alice  pulls     billing/orders/b0/3  offset=0 value=0
        10ms..11ms        alice  delivers  billing/orders/b0/4  offset=7 success
        70000ms..70001ms  alice  delivers  billing/orders/b0/4  offset=8 success
        0ms               bob    adds      billing/orders/b0/5  value=0
        1ms..2ms          bob    pulls     billing/orders/b0/5  offset=0 value=9
        10ms..11ms        bob    delivers  billing/orders/b0/6  offset=7 success
        61010ms..61011ms  bob    delivers  billing/orders/b0/6  offset=8 success
        80000ms..80001ms  alice  delivers  billing/orders/b0/6  offset=9 success
        90000ms..90001ms  bob    delivers  billing/orders/b0/7  offset=1 success
        """,
    ),
    (
        "LIV-3",
        0,
        "who loses the lease, the lane or its life is not in line",
        """
        0ms..1ms          alice  locks     billing/orders/b0/3  ok
        2ms               alice  adds      billing/orders/b0/3  value=0
        3ms..4ms          alice  pulls     billing/orders/b0/3  offset=0 value=9
        10ms..11ms        alice  delivers  billing/orders/b0/4  offset=7 success
        62000ms..62001ms  alice  delivers  billing/orders/b0/4  offset=8 success
        2ms               bob    adds      billing/orders/b0/5  value=0
        3ms..4ms          bob    pulls     billing/orders/b0/5  offset=0 value=9
        10ms..11ms        bob    delivers  billing/orders/b0/6  offset=7 success
        20ms..21ms        bob    locks     billing/orders/b0/5  refused
        62000ms..62001ms  bob    delivers  billing/orders/b0/6  offset=8 success
        2ms               carol  adds      billing/orders/b0/7  value=0
        3ms..4ms          carol  pulls     billing/orders/b0/7  offset=0 value=9
        10ms..11ms        carol  delivers  billing/orders/b0/8  offset=7 success
        20ms              carol  drops     billing/orders/b0/7
        62000ms..62001ms  carol  delivers  billing/orders/b0/8  offset=8 success
        2ms               dave   adds      billing/orders/b0/9  value=0
        3ms..4ms          dave   pulls     billing/orders/b0/9  offset=0 value=9
        10ms..11ms        dave   delivers  billing/orders/b1/0  offset=7 success
        20ms..30000ms     dave   pauses    -
        62000ms..62001ms  dave   delivers  billing/orders/b1/0  offset=8 success
        """,
    ),
    (
        "LIV-2",
        1,
        "the owner died in a call, and a member who started later lives",
        """
        0ms          alice  adds      billing/orders/b0/3  value=7
        1ms..        alice  delivers  billing/orders/b0/3  offset=7 id=m7
        5ms          alice  crashes   -
        6ms          bob    joins     billing
        90ms..99ms   drain  reads     orders/b0/3          value=8 detail=settled ok
        95ms         drain  reads     orders/b0/3          offset=7 id=m7 ok
        """,
    ),
    (
        "LIV-2",
        0,
        "the lane has an owner, or nothing is left in it",
        """
        0ms          bob    joins     billing
        0ms          alice  adds      billing/orders/b0/3  value=7
        5ms          alice  drops     billing/orders/b0/3
        6ms          bob    adds      billing/orders/b0/3  value=7
        0ms          alice  adds      billing/orders/b0/4  value=7
        1ms..2ms     alice  delivers  billing/orders/b0/4  offset=7 id=n7 success
        5ms          alice  drops     billing/orders/b0/4
        90ms..99ms   drain  reads     orders/b0/3          value=8 detail=settled ok
        95ms         drain  reads     orders/b0/3          offset=7 id=m7 ok
        90ms..99ms   drain  reads     orders/b0/4          value=8 detail=settled ok
        95ms         drain  reads     orders/b0/4          offset=7 id=n7 ok
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


@pytest.mark.parametrize("clause_id", ["LIV-1", "LIV-2"])
def test_a_run_that_does_not_settle_is_not_judged(clause_id: str) -> None:
    """Whoever drains without waiting learns nothing about progress."""
    clause = get(clause_id)
    info, rows = parse_history(clause.shortest_violation)
    tally = examine(rows, replace(info, settles=False), (clause,)).tallies[clause_id]
    assert (tally.opportunities, tally.violations) == (0, 0)
