"""SND-6: what else may not be seen, and what may."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

EXAMPLES = {
    "seen after a rollback only": (
        2,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        6ms          shop   ends-transaction  orders/b0/3           id=m17 value=12 sent
        9ms          alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        20ms..30ms   drain  reads             orders/b0/3           offset=17 id=m17
        """,
    ),
    "the commit began after the delivery": (
        1,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        9ms..12ms    alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        10ms         shop   ends-transaction  orders/b0/3           id=m17 value=8 sent
        """,
    ),
    "a read may meet what is committed while it lasts": (
        0,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        9ms..12ms    drain  reads             orders/b0/3           offset=17 id=m17
        10ms         shop   ends-transaction  orders/b0/3           id=m17 value=8 sent
        """,
    ),
    "a half send that failed may have happened, and is to be unseen all the same": (
        1,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail="half, timeout" unknown
        9ms          alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        """,
    ),
    "any producer of the group may commit": (
        0,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        6ms          shop   crashes           -
        30s          desk   is-asked          orders/b0/3           id=m17 attempt=1 ok
        30s          desk   ends-transaction  orders/b0/3           id=m17 value=8 view=check sent
        30005ms      alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        """,
    ),
    "two half messages of one id have two transactions": (
        0,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail="half, closed" unknown
        6ms..8ms     shop   sends             orders/b0/2           id=m17 detail=half ok
        9ms..10ms    shop   ends-transaction  orders/b0/2           id=m17 value=12 ok
        30s          shop   ends-transaction  orders/b0/3           id=m17 value=8 view=check sent
        30005ms      alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        """,
    ),
    "what was sent in the ordinary way too may be seen": (
        0,
        """
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        6ms..8ms     shop   sends             orders/b0/3           offset=17 id=m17 ok
        9ms          alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        """,
    ),
    "asked once more than configured": (
        1,
        """
        config transaction_check_max=2
        1s   shop  is-asked  orders/b0/3  id=m17 attempt=1 ok
        2s   shop  is-asked  orders/b0/3  id=m17 attempt=2 ok
        2s   shop  is-asked  orders/b0/3  id=m17 attempt=2 ok   # the frame came twice
        3s   shop  is-asked  orders/b0/3  id=m17 attempt=3 ok
        """,
    ),
    "copies are another matter": (
        0,
        """
        0ms..5ms     shop   sends             orders/b0/3                  id=m17 detail=half ok
        9ms          drain  reads             billing/%DLQ%billing/b0/0    offset=0 id=c1 origin=m17
        """,
    ),
    "only where every producer is in the history": (
        0,
        """
        config closed_world=no
        0ms..5ms     shop   sends             orders/b0/3           id=m17 detail=half ok
        9ms          alice  delivers          billing/orders/b0/3   offset=17 id=m17 success
        """,
    ),
}


@pytest.mark.parametrize(("violations", "text"), EXAMPLES.values(), ids=list(EXAMPLES))
def test_example(violations: int, text: str) -> None:
    info, rows = parse_history(text)
    clause = get("SND-6")
    found = find_violations(clause, rows, info) if clause.unmet(info) is None else []
    assert len(found) == violations


def test_it_is_explained_with_the_count() -> None:
    info, rows = parse_history(
        "config transaction_check_max=2\n3s shop is-asked orders/b0/3 id=m17 attempt=3 ok"
    )
    (clause,) = (get("SND-6"),)
    assert examine(rows, info, (clause,)).tallies["SND-6"].violations
    (found,) = find_violations(clause, rows, info)
    assert clause.explain(found) == (
        "shop was asked about the half message m17 at 3.000 s, for time number 3, where 2 times are the most"
    )
