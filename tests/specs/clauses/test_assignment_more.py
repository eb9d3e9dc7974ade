"""Further examples of the clauses about assignment: the other ways to break them, and their excuses."""

from __future__ import annotations

import pytest

from specs import vectors
from specs.clauses.catalogue import catalogue, get
from specs.errors import SpecError
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations

EXAMPLES = (
    (
        "ASG-1",
        3,
        "each pair of clients that took it counts",
        """
        0ms  alice  assigns  billing  topic=orders view="alice bob carol | b0/0" detail="b0/0"
        1ms  bob    assigns  billing  topic=orders view="alice bob carol | b0/0" detail="b0/0"
        2ms  carol  assigns  billing  topic=orders view="alice bob carol | b0/0" detail=""
        3ms  dave   assigns  billing  topic=orders view="alice bob carol | b0/0" detail="b0/0"
        """,
    ),
    (
        "ASG-1",
        0,
        "only the last share of a client counts",
        """
        0ms  alice  assigns  billing  topic=orders view="alice bob | b0/0 b0/1" detail="b0/0"
        1ms  alice  assigns  billing  topic=orders view="alice | b0/0 b0/1" detail="b0/0 b0/1"
        2ms  bob    assigns  billing  topic=orders view="alice bob | b0/0 b0/1" detail="b0/0"
        """,
    ),
    (
        "ASG-1",
        0,
        "of rows that do not tell the queues, or the share, nothing is said",
        """
        0ms  alice  assigns  billing  topic=orders view="alice bob" detail="b0/0"
        1ms  bob    assigns  billing  topic=orders view="alice bob" detail="b0/0"
        2ms  alice  assigns  billing  topic=orders view="alice bob | b0/0" detail="b0/0"
        3ms  bob    assigns  billing  topic=orders view="alice bob | b0/0"
        """,
    ),
    (
        "ASG-1",
        0,
        "a fixed list asks nobody",
        """
        config strategy=CONFIG
        0ms  alice  assigns  billing  topic=orders view="alice bob | b0/0" detail="b0/0"
        1ms  bob    assigns  billing  topic=orders view="alice bob | b0/0" detail="b0/0"
        """,
    ),
    (
        "ASG-2",
        0,
        "listed machine rooms leave queues out on purpose, and in broadcasting nobody shares",
        """
        config strategy=MACHINE_ROOM
        0ms  alice  assigns  billing  topic=orders view="alice | b0/0 b0/1" detail="b0/0"
        """,
    ),
    (
        "ASG-2",
        1,
        "a group of one",
        """
        0ms  alice  assigns  billing  topic=orders view="alice | b0/0 b0/1" detail="b0/0"
        """,
    ),
    (
        "ASG-2",
        0,
        "a client that is not among the members takes nothing, and their shares count",
        """
        0ms  alice  assigns  billing  topic=orders view="alice | b0/0" detail="b0/0"
        1ms  bob    assigns  billing  topic=orders view="alice | b0/0" detail=""
        """,
    ),
    (
        "ASG-4",
        1,
        "the members' order counts as well",
        """
        0ms  alice  assigns  billing  topic=orders view="alice bob | b0/0 b0/1" detail="b0/0"
        1ms  bob    assigns  billing  topic=orders view="bob alice | b0/0 b0/1" detail="b0/0"
        """,
    ),
    (
        "ASG-4",
        1,
        "a client takes something else of the same",
        """
        0ms  alice  assigns  billing  topic=orders view="alice bob | b0/0 b0/1" detail="b0/0"
        1ms  alice  assigns  billing  topic=orders view="alice bob | b0/0 b0/1" detail="b0/1"
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


def test_every_table_of_a_clause_is_there() -> None:
    """With rows, each of which says why it is there; an unknown table is an error."""
    for clause in catalogue():
        if clause.vectors:
            rows = vectors.load(clause.vectors)
            assert rows
            assert all(row["why"] for row in rows)
    with pytest.raises(SpecError, match="there is no table nothing"):
        vectors.load("nothing.json")
