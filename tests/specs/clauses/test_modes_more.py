"""Further histories of groups that consume side by side: what their clauses refute, and what they excuse."""

from __future__ import annotations

from dataclasses import replace

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import examine, find_violations

CONCURRENT = "config mode=concurrent\n"
KEYED = "config mode=key_ordered\n"
BROADCAST = "config mode=concurrent message_model=broadcasting\n"

BREAKING: dict[str, tuple[str, str]] = {
    "a key goes back": (
        "ORD-11",
        KEYED
        + """
        0ms..1ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        2ms..3ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        """,
    ),
    "the next of a key whose message failed": (
        "ORD-11",
        KEYED
        + """
        0ms..1ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 threw
        2ms..3ms  alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k1 success
        """,
    ),
    "the next of a key whose dead letter got no answer": (
        "ORD-11",
        KEYED
        + """
        0ms..1ms  alice  delivers      billing/orders/b0/3   offset=17 id=m17 key=k1 null
        2ms..3ms  alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 key=k1 unknown
        4ms..5ms  alice  delivers      billing/orders/b0/3   offset=19 id=m19 key=k1 success
        """,
    ),
    "half of a batch is given up": (
        "ORD-11",
        "config mode=key_ordered batch=2\n"
        + """
        0ms..1ms  alice  delivers      billing/orders/b0/3   offset=17 id=m17 key=k1 call=a suspend
        0ms..1ms  alice  delivers      billing/orders/b0/3   offset=18 id=m18 key=k1 call=a suspend
        2ms..3ms  alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 key=k1 ok
        4ms..5ms  alice  delivers      billing/orders/b0/3   offset=19 id=m19 key=k1 success
        """,
    ),
    "a key waits for another one": (
        "ORD-11",
        KEYED
        + """
        0ms             alice  adds      billing/orders/b0/3   value=17
        1ms..2ms        alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 suspend
        3ms..4ms        alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k3 success
        2003ms..2004ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        2005ms..2006ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k2 success
        """,
    ),
    "a lease asked for later": (
        "LSE-12",
        BROADCAST
        + """
        0ms       alice  adds   billing/orders/b0/3   value=0
        9ms..10ms alice  locks  billing/orders/b0/3   refused
        """,
    ),
    "the counter stands still": (
        "RTY-10",
        CONCURRENT
        + """
        0ms               shop   sends       orders/b0/3                  offset=17 id=m17 ok
        0ms..5ms          alice  sends-back  billing/orders/b0/3          offset=17 id=m17 rt=0 delay=3 ok
        20000ms..20001ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=0 attempt=1 success
        """,
    ),
    "the second time too soon": (
        "RTY-10",
        CONCURRENT
        + """
        0ms               shop   sends       orders/b0/3                  offset=17 id=m17 ok
        0ms..5ms          alice  sends-back  billing/orders/b0/3          offset=17 id=m17 rt=0 delay=3 ok
        10005ms..10006ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=1 attempt=1 suspend
        10006ms..10007ms  bob    sends-back  billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=1 delay=4 ok
        20007ms..20008ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=1 origin=m17 rt=2 attempt=1 success
        """,
    ),
    "a level of the listener's own": (
        "RTY-10",
        "config mode=concurrent delay_levels=5s\n"
        + """
        0ms               shop   sends       orders/b0/3                  offset=17 id=m17 ok
        0ms..5ms        alice  sends-back  billing/orders/b0/3          offset=17 id=m17 rt=0 delay=9 ok
        4998ms..4999ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=1 attempt=1 success
        """,
    ),
    "a refused send-back is passed": (
        "CMT-10",
        CONCURRENT
        + """
        0ms..1ms  alice  delivers    billing/orders/b0/3   offset=17 id=m17 suspend
        2ms..3ms  alice  sends-back  billing/orders/b0/3   offset=17 id=m17 rt=0 delay=3 refused
        4ms       alice  commits     billing/orders/b0/3   value=18 sent
        """,
    ),
    "a key that failed is passed": (
        "CMT-10",
        KEYED
        + """
        0ms..1ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 suspend
        0ms..1ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k2 success
        4ms       alice  commits   billing/orders/b0/3   value=19 sent
        """,
    ),
    "begins where another member is": (
        "CMT-12",
        BROADCAST
        + """
        0ms  alice    persists  billing/orders/b0/3   value=3 process=alice
        1ms  bob      persists  billing/orders/b0/3   value=9 process=bob
        2ms  alice.2  adds      billing/orders/b0/3   value=9 process=alice
        """,
    ),
}

EXCUSED: dict[str, tuple[str, str]] = {
    "keys of two lanes": (
        "ORD-11",
        KEYED
        + """
        0ms..9ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        1ms..2ms  alice  delivers  billing/orders/b0/4   offset=3 id=m3 key=k1 success
        """,
    ),
    "a key of two incarnations": (
        "ORD-11",
        KEYED
        + """
        0ms..9ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        1ms       alice  drops     billing/orders/b0/3
        2ms       alice  adds      billing/orders/b0/3   value=17 inc=2
        3ms..4ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 inc=2 success
        """,
    ),
    "a key whose message waits for its own": (
        "ORD-11",
        KEYED
        + """
        0ms             alice  adds      billing/orders/b0/3   value=17
        1ms..2003ms     alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        3ms..4ms        alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k3 success
        2004ms..2005ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        """,
    ),
    "a batch takes a later message along": (
        "ORD-11",
        "config mode=key_ordered batch=2 threads=1\n"
        + """
        0ms             alice  adds      billing/orders/b0/3   value=17
        3ms..2004ms     alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k3 call=a success
        3ms..2004ms     alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k3 call=a success
        2005ms..2006ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        """,
    ),
    "a thread is a moment late": (
        "ORD-11",
        KEYED
        + """
        0ms             alice  adds      billing/orders/b0/3   value=17
        3ms..4ms        alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k3 success
        1003ms..1004ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        """,
    ),
    "the begin of the work was not seen": (
        "ORD-11",
        KEYED
        + """
        3ms..4ms        alice  delivers  billing/orders/b0/3   offset=19 id=m19 key=k3 success
        3003ms..3004ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        """,
    ),
    "a reset takes a key back": (
        "ORD-11",
        KEYED
        + """
        0ms..1ms  alice  delivers  billing/orders/b0/3   offset=18 id=m18 key=k1 success
        2ms       ops    resets    billing/orders/b0/3   value=17
        3ms..4ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 key=k1 success
        """,
    ),
    "half of a batch comes again": (
        "ORD-11",
        "config mode=key_ordered batch=2\n"
        + """
        0ms..1ms  alice  delivers      billing/orders/b0/3   offset=17 id=m17 key=k1 call=a suspend
        0ms..1ms  alice  delivers      billing/orders/b0/3   offset=18 id=m18 key=k1 call=a suspend
        2ms..3ms  alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 key=k1 ok
        4ms..5ms  alice  delivers      billing/orders/b0/3   offset=18 id=m18 key=k1 success
        """,
    ),
    "an orderly group takes leases": (
        "LSE-12",
        """
        0ms..5ms  alice  locks  billing/orders/b0/3   ok
        6ms       alice  adds   billing/orders/b0/3   value=0
        """,
    ),
    "the client tried by itself": (
        "RTY-10",
        CONCURRENT
        + """
        0ms..5ms          alice  sends-back  billing/%RETRY%billing/b0/0  offset=4 origin=m17 rt=1 delay=4 refused
        5005ms..5006ms    alice  delivers    billing/%RETRY%billing/b0/0  offset=4 origin=m17 rt=2 attempt=2 suspend
        """,
    ),
    "a clock was stepped": (
        "RTY-10",
        CONCURRENT
        + """
        0ms..5ms        alice  sends-back   billing/orders/b0/3          offset=17 id=m17 rt=0 delay=3 ok
        6ms             b0     steps-clock  -                            value=10000
        9000ms..9001ms  bob    delivers     billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=1 attempt=1 success
        """,
    ),
    "who sent it back was not recorded": (
        "RTY-10",
        "config mode=concurrent closed_world=no\n"
        + """
        0ms..5ms        alice  sends-back  billing/orders/b0/3          offset=17 id=m17 rt=0 delay=3 ok
        9000ms..9001ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=3 attempt=1 success
        """,
    ),
    "a millisecond is lost in rounding": (
        "RTY-10",
        CONCURRENT
        + """
        0.9ms..5ms        alice  sends-back  billing/orders/b0/3          offset=17 id=m17 rt=0 delay=3 ok
        10000ms..10001ms  bob    delivers    billing/%RETRY%billing/b0/0  offset=0 origin=m17 rt=1 attempt=1 success
        """,
    ),
    "somebody else of the group finished it": (
        "CMT-10",
        CONCURRENT
        + """
        0ms..9ms  alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
        1ms..2ms  bob    delivers  billing/orders/b0/3   offset=17 id=m17 success
        4ms       alice  commits   billing/orders/b0/3   value=18 sent
        """,
    ),
    "an operator moved the offset": (
        "CMT-12",
        BROADCAST
        + """
        0ms  alice  persists  billing/orders/b0/3   value=3
        1ms  ops    resets    billing/orders/b0/3   value=0
        2ms  alice  adds      billing/orders/b0/3   value=0
        """,
    ),
    "the first time": (
        "CMT-12",
        BROADCAST
        + """
        0ms  bob    persists  billing/orders/b0/3   value=3
        2ms  alice  adds      billing/orders/b0/3   value=0
        """,
    ),
}


@pytest.mark.parametrize("name", sorted(BREAKING))
def test_it_is_refuted_and_its_evidence_alone_is_too(name: str) -> None:
    clause_id, text = BREAKING[name]
    info, rows = parse_history(text)
    tally = examine(rows, info).tallies[clause_id]
    assert tally.violations >= 1
    assert tally.explanation
    assert find_violations(get(clause_id), tally.witness, info)
    for gone in tally.witness:
        assert not find_violations(
            get(clause_id), [row for row in tally.witness if row is not gone], info
        )


@pytest.mark.parametrize("name", sorted(EXCUSED))
def test_it_is_not_refuted(name: str) -> None:
    clause_id, text = EXCUSED[name]
    info, rows = parse_history(text)
    tally = examine(rows, info).tallies[clause_id]
    assert (tally.violations, tally.possible) == (0, 0)


@pytest.mark.parametrize(("bound_us", "violations"), [(998_000, 1), (1_000_000, 0)])
def test_a_clock_ahead_may_make_a_copy_seem_too_soon(bound_us: int, violations: int) -> None:
    """The bound between the clocks of two hosts is on the copy's side."""
    info, rows = parse_history(get("RTY-10").shortest_violation)
    tally = examine(rows, replace(info, clock_bounds_us={"a": bound_us}), (get("RTY-10"),)).tallies[
        "RTY-10"
    ]
    assert tally.violations == violations
