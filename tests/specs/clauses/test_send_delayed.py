"""SND-7: what else came too soon, and what did not."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.clauses.stored import waits_ms
from specs.history.text import parse_history
from specs.plan.config import Config
from specs.verdicts.examine import find_violations

EXAMPLES = {
    "a read that ends too soon": (
        1,
        """
        0ms..5ms        shop   sends  orders/b0/3  id=m17 delay=1 ok
        900ms..999ms    drain  reads  orders/b0/3  offset=17 id=m17
        """,
    ),
    "a read that began too soon and ended in time may have met it in time": (
        0,
        """
        0ms..5ms        shop   sends  orders/b0/3  id=m17 delay=1 ok
        900ms..1000ms   drain  reads  orders/b0/3  offset=17 id=m17
        """,
    ),
    "brokers count in whole milliseconds": (
        0,
        """
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=1 ok
        999.001ms       alice  delivers  billing/orders/b0/3  offset=17 id=m17
        """,
    ),
    "a level beyond the table is its last one": (
        1,
        """
        config delay_levels=2s
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=9 ok
        1999ms          alice  delivers  billing/orders/b0/3  offset=17 id=m17
        2000ms          bob    delivers  shipping/orders/b0/3 offset=17 id=m17
        """,
    ),
    "a level of 0, or below, waits for nothing": (
        0,
        """
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=0 ok
        0ms..5ms        shop   sends     orders/b0/3          id=m18 delay=-1 ok
        6ms             alice  delivers  billing/orders/b0/3  offset=17 id=m17
        7ms             alice  delivers  billing/orders/b0/3  offset=18 id=m18
        """,
    ),
    "each that sees it too soon counts, and each time": (
        3,
        """
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=1 unknown
        6ms..7ms        alice  delivers  billing/orders/b0/3  offset=17 id=m17 suspend
        9ms..12ms       alice  delivers  billing/orders/b0/3  offset=17 id=m17
        9ms..12ms       bob    delivers  shipping/orders/b0/3 offset=17 id=m17
        """,
    ),
    "a second try with a level of its own could not be seen before the first": (
        1,
        """
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=1 unknown
        500ms..505ms    shop   sends     orders/b0/2          id=m17 delay=1 ok
        1000ms          alice  delivers  billing/orders/b0/3  offset=17 id=m17
        1001ms          alice  delivers  billing/orders/b0/2  offset=4 id=m17
        400ms           bob    delivers  shipping/orders/b0/3 offset=17 id=m17
        """,
    ),
    "another try after the delivery excuses nothing": (
        1,
        """
        0ms..5ms        shop   sends     orders/b0/3          id=m17 delay=1 unknown
        6ms             alice  delivers  billing/orders/b0/3  offset=17 id=m17
        7ms..9ms        shop   sends     orders/b0/3          id=m17 ok
        """,
    ),
    "a copy in another topic has a level of its own": (
        0,
        """
        0ms..5ms        shop   sends     orders/b0/3                 id=m17 delay=5 ok
        6ms             drain  reads     billing/%DLQ%billing/b0/0   offset=0 id=m17
        7ms..8ms        alice  sends     %RETRY%billing/b0/0         id=m18 delay=3 ok
        9ms             drain  reads     billing/%RETRY%billing/b0/0 offset=0 id=m18
        """,
    ),
    "nothing is claimed after a step of a wall clock": (
        0,
        """
        0ms..5ms        shop   sends        orders/b0/3          id=m17 delay=5 ok
        6ms             b0     steps-clock  b0                   value=60000
        9ms             alice  delivers     billing/orders/b0/3  offset=17 id=m17
        """,
    ),
}


@pytest.mark.parametrize(("violations", "text"), EXAMPLES.values(), ids=list(EXAMPLES))
def test_example(violations: int, text: str) -> None:
    info, rows = parse_history(text)
    assert len(find_violations(get("SND-7"), rows, info)) == violations


def test_the_table_is_read_as_the_broker_reads_it() -> None:
    assert waits_ms("1s 10m 2h 1d") == (1_000, 600_000, 7_200_000, 86_400_000)
    assert waits_ms("5s soon") == (5_000, 0)
    assert len(waits_ms(Config().delay_levels)) == 18
