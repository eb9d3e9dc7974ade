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
        "CMT-13",
        1,
        "an older value was told, the last one not",
        """
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
