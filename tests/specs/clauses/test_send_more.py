"""Further examples of the clauses about sends, as text: the other ways to break them, and their excuses."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations


@dataclass(frozen=True)
class Example:
    """violations: how often the clause is broken by the history; why: what the example shows."""

    clause: str
    violations: int
    why: str
    text: str


EXAMPLES = (
    # ---------------------------------------------------------------- SND-3
    Example(
        "SND-3",
        1,
        "a message that is read before its refusal arrives was stored all the same",
        """
        0ms..9ms  shop   sends  orders/b0/3  id=m1 code=14 refused
        5ms       drain  reads  orders/b0/3  offset=0 id=m1 ok
        """,
    ),
    Example(
        "SND-3",
        1,
        "every attempt was refused, and a copy shows that one was stored",
        """
        0ms..1ms  shop   sends  orders/b0/3                id=m1 attempt=1 code=14 refused
        2ms..3ms  shop   sends  orders/b1/3                id=m1 attempt=2 code=16 refused
        9ms       drain  reads  billing/%DLQ%billing/b0/0  offset=0 id=c1 origin=m1 ok
        """,
    ),
    Example(
        "SND-3",
        0,
        "an attempt is missing, and it may have stored the message",
        """
        2ms..3ms  shop   sends  orders/b1/3  id=m1 attempt=2 code=16 refused
        9ms       drain  reads  orders/b0/3  offset=0 id=m1 ok
        """,
    ),
    Example(
        "SND-3",
        0,
        "an internal error may come after the append, and a failure without a code is no answer",
        """
        0ms..1ms  shop   sends  orders/b0/3  id=m1 code=1 refused
        0ms..1ms  shop   sends  orders/b0/3  id=m2 refused
        9ms       drain  reads  orders/b0/3  offset=0 id=m1 ok
        9ms       drain  reads  orders/b0/3  offset=1 id=m2 ok
        """,
    ),
    Example(
        "SND-3",
        0,
        "with more attempts than a witness can show nothing is said",
        "".join(
            f"{n}ms..{n}ms shop sends orders/b0/3 id=m1 attempt={n} code=14 refused\n"
            for n in range(1, 11)
        )
        + "99ms drain reads orders/b0/3 offset=0 id=m1 ok",
    ),
    # ---------------------------------------------------------------- SND-4
    Example(
        "SND-4",
        2,
        "each further try counts, at whatever queue",
        """
        0ms..1ms  shop  sends  orders/b0/3  id=m1 key=k1 attempt=1 code=14 refused
        1ms..2ms  shop  sends  orders/b0/2  id=m1 key=k1 attempt=2 code=14 refused
        2ms..3ms  shop  sends  orders/b1/2  id=m1 key=k1 attempt=3 offset=0 ok
        """,
    ),
    Example(
        "SND-4",
        0,
        "another client that sends the same id is another producer",
        """
        0ms..1ms  shop   sends  orders/b0/3  id=m1 key=k1 attempt=1 unknown
        1ms..2ms  stall  sends  orders/b0/3  id=m1 key=k1 attempt=2 offset=0 ok
        """,
    ),
    # ---------------------------------------------------------------- SND-5
    Example(
        "SND-5",
        1,
        "a batch that nobody answered is stored whole or not at all, too",
        """
        0ms..     shop   sends  orders/b0/3  id=m1 value=0 call=a
        0ms..     shop   sends  orders/b0/3  id=m2 value=1 call=a
        0ms..     shop   sends  orders/b0/3  id=m3 value=2 call=a
        90ms      drain  reads  orders/b0/3  offset=0 id=m1 ok
        91ms      drain  reads  orders/b0/3  offset=1 id=m2 ok
        92ms      drain  reads  orders/b0/3  offset=2 id=m9 ok
        """,
    ),
    Example(
        "SND-5",
        0,
        "after a crash of the broker the end of a batch may be gone",
        """
        0ms..5ms  shop   sends    orders/b0/3  id=m1 value=0 offset=0 call=a ok
        0ms..5ms  shop   sends    orders/b0/3  id=m2 value=1 call=a ok
        9ms       b0     crashes  b0
        90ms      drain  reads    orders/b0/3  offset=0 id=m1 ok
        91ms      drain  reads    orders/b0/3  offset=1 id=m9 ok
        """,
    ),
    Example(
        "SND-5",
        0,
        "where offsets are missing between two reads, nothing is known of what lies there",
        """
        0ms..5ms  shop   sends  orders/b0/3  id=m1 value=0 offset=0 call=a ok
        0ms..5ms  shop   sends  orders/b0/3  id=m2 value=1 call=a ok
        90ms      drain  reads  orders/b0/3  offset=0 id=m1 ok
        91ms      drain  reads  orders/b0/3  offset=2 id=m9 ok
        """,
    ),
    # ---------------------------------------------------------------- SND-8
    Example(
        "SND-8",
        1,
        "a message without a tag is wanted by nobody who names tags",
        """
        config subscription=red
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 success
        7ms..8ms  alice  delivers  billing/orders/b0/3  offset=1 id=m2 success
        """,
    ),
    Example(
        "SND-8",
        1,
        "a message with a wanted tag was passed over",
        """
        config subscription=red||green
        0ms..1ms  shop   sends     orders/b0/3          offset=1 id=m2 body=1 tags=green ok
        0ms..1ms  shop   sends     orders/b0/3          offset=2 id=m3 body=1 tags=red ok
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 tags=red success
        7ms..8ms  alice  delivers  billing/orders/b0/3  offset=3 id=m4 body=1 tags=red success
        """,
    ),
    Example(
        "SND-8",
        0,
        "what is not known to be there, or was sent to another owner, is not awaited",
        """
        config subscription=red
        0ms..     shop   sends     orders/b0/3          id=m2 body=1 tags=red
        0ms..1ms  shop   sends     orders/b0/3          offset=2 id=m3 body=1 tags=red code=10 ok
        0ms..1ms  shop   sends     orders/b0/3          offset=3 id=m4 body=1 tags=red delay=2 ok
        0ms..1ms  shop   sends     orders/b0/3          offset=4 id=m5 tags=red ok
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 tags=red success
        7ms..8ms  alice  delivers  billing/orders/b0/3  offset=5 id=m6 body=1 tags=red success
        8ms..9ms  shop   sends     orders/b0/3          offset=8 id=m9 body=1 tags=red ok
        9ms..10ms bob    delivers  billing/orders/b0/3  offset=10 id=m11 body=1 tags=red success
        """,
    ),
    Example(
        "SND-8",
        0,
        "a reset, a new beginning or a crash of the broker forgets what went before",
        """
        config subscription=red
        0ms..1ms    shop   sends     orders/b0/3          offset=1 id=m2 body=1 tags=red ok
        0ms..1ms    shop   sends     orders/b0/3          offset=4 id=m5 body=1 tags=red ok
        0ms..1ms    shop   sends     orders/b0/3          offset=6 id=m7 body=1 tags=red ok
        5ms..6ms    alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 tags=red success
        6ms         admin  resets    billing/orders/b0/3  value=3
        7ms..8ms    alice  delivers  billing/orders/b0/3  offset=3 id=m4 body=1 tags=red success
        9ms         alice  adds      billing/orders/b0/3  value=5
        10ms..11ms  alice  delivers  billing/orders/b0/3  offset=5 id=m6 body=1 tags=red success
        12ms        b0     crashes   b0
        13ms..14ms  alice  delivers  billing/orders/b0/3  offset=7 id=m8 body=1 tags=red success
        """,
    ),
    Example(
        "SND-8",
        0,
        "concurrent calls come in no order, and may fill the hole later",
        """
        config subscription=red mode=concurrent
        0ms..1ms  shop   sends     orders/b0/3          offset=1 id=m2 body=1 tags=red ok
        5ms..6ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 tags=red success
        7ms..8ms  alice  delivers  billing/orders/b0/3  offset=2 id=m3 body=1 tags=red success
        """,
    ),
    # ---------------------------------------------------------------- SND-9
    Example(
        "SND-9",
        0,
        "a broker that crashed since may have lost the one in front",
        """
        0ms..1ms  shop  sends    orders/b0/3  id=m1 key=k1 key_seq=1 attempt=1 code=14 refused
        2ms..3ms  shop  sends    orders/b0/3  id=m2 key=k1 key_seq=2 attempt=1 offset=7 ok
        4ms       b0    crashes  b0
        5ms..6ms  shop  sends    orders/b0/3  id=m1 key=k1 key_seq=1 attempt=2 offset=8 ok
        """,
    ),
    Example(
        "SND-9",
        0,
        "a missing try may have stored it, an internal error as well, and another queue is another order",
        """
        0ms..1ms    shop  sends  orders/b0/3  id=m1 key=k1 key_seq=1 attempt=1 code=14 refused
        0ms..1ms    shop  sends  orders/b0/3  id=m2 key=k1 key_seq=2 attempt=1 code=1 refused
        0ms..1ms    shop  sends  orders/b0/3  id=m3 key=k1 key_seq=3 attempt=1 code=14 refused
        2ms..3ms    shop  sends  orders/b0/3  id=m4 key=k1 key_seq=4 attempt=1 offset=7 ok
        4ms..5ms    shop  sends  orders/b0/3  id=m1 key=k1 key_seq=1 attempt=3 offset=8 ok
        6ms..7ms    shop  sends  orders/b0/3  id=m2 key=k1 key_seq=2 attempt=2 offset=9 ok
        8ms..9ms    shop  sends  orders/b0/2  id=m3 key=k1 key_seq=3 attempt=2 offset=9 ok
        """,
    ),
    Example(
        "SND-9",
        1,
        "several tries were refused",
        """
        0ms..1ms    shop  sends  orders/b0/3  id=m1 key=k1 key_seq=1 attempt=1 code=14 refused
        2ms..3ms    shop  sends  orders/b0/2  id=m1 key=k1 key_seq=1 attempt=2 code=16 refused
        4ms..5ms    shop  sends  orders/b0/3  id=m2 key=k1 key_seq=2 attempt=1 offset=7 ok
        6ms..7ms    shop  sends  orders/b0/3  id=m1 key=k1 key_seq=1 attempt=3 offset=8 ok
        """,
    ),
    # ---------------------------------------------------------------- SND-10
    Example(
        "SND-10",
        3,
        "body, tags and key each count, wherever the message is seen",
        """
        0ms..1ms  shop   sends     orders/b0/3          offset=0 id=m1 body=1 tags=red key=k1 ok
        1ms..2ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=2 tags=red key=k1 success
        3ms..4ms  alice  delivers  billing/orders/b0/3  offset=0 id=m1 body=1 tags=red success
        9ms       drain  reads     orders/b0/3          offset=0 id=m1 body=1 tags=blue key=k1 ok
        """,
    ),
    Example(
        "SND-10",
        3,
        "a delayed message says its level wherever it is seen; one of a transaction has none",
        """
        0ms..1ms  shop   sends     orders/b0/3          offset=0 id=m1 body=1 delay=2 ok
        1ms..2ms  shop   sends     orders/b0/3          offset=0 id=m2 body=2 delay=99 ok
        2ms..3ms  shop   sends     orders/b0/3          value=0 id=m3 body=3 delay=2 detail=half ok
        3ms..4ms  shop   sends     orders/b0/3          offset=0 id=m4 body=4 ok
        5s        alice  delivers  billing/orders/b0/3  offset=1 id=m1 body=1 delay=0 success
        6s        alice  delivers  billing/orders/b0/3  offset=1 id=m1 body=1 delay=3 success
        7s        alice  delivers  billing/orders/b0/3  offset=1 id=m1 body=1 delay=2 success
        8s        alice  delivers  billing/orders/b0/3  offset=1 id=m1 body=1 success
        9s        alice  delivers  billing/orders/b0/3  offset=2 id=m2 body=2 delay=18 success
        10s       alice  delivers  billing/orders/b0/3  offset=2 id=m2 body=2 delay=99 success
        11s       alice  delivers  billing/orders/b0/3  offset=3 id=m3 body=3 delay=0 success
        12s       alice  delivers  billing/orders/b0/3  offset=0 id=m4 body=4 delay=7 success
        13s       drain  reads     orders/b0/3          offset=1 id=m1 body=1 delay=2 ok
        """,
    ),
    Example(
        "SND-10",
        1,
        "a send without an answer says what was sent as well",
        """
        0ms..     shop   sends  orders/b0/3  id=m1 body=1
        9ms       drain  reads  orders/b0/3  offset=0 id=m1 body=2 ok
        """,
    ),
    Example(
        "SND-10",
        0,
        "an id that was sent with two contents means nothing any more",
        """
        0ms..1ms  shop   sends  orders/b0/3  offset=0 id=m1 attempt=1 body=1 ok
        2ms..3ms  shop   sends  orders/b0/3  offset=1 id=m1 attempt=2 body=2 ok
        9ms       drain  reads  orders/b0/3  offset=0 id=m1 body=1 ok
        9ms       drain  reads  orders/b0/3  offset=1 id=m1 body=2 ok
        """,
    ),
)


@pytest.mark.parametrize(
    "example", EXAMPLES, ids=lambda example: f"{example.clause}: {example.why}"
)
def test_the_example_is_judged_as_it_says(example: Example) -> None:
    """As often as the example says, and each violation's evidence alone is refuted again."""
    info, rows = parse_history(example.text)
    found = find_violations(get(example.clause), rows, info)
    assert len(found) == example.violations
    for finding in found:
        assert find_violations(get(example.clause), finding.rows, info)
    assert examine(rows, info).tallies[example.clause].violations == example.violations
