"""DLQ-10: what breaks it, and what looks so and does not."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.clauses.judging import Finding
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations


def violations(text: str) -> list[Finding]:
    info, rows = parse_history(text)
    return list(find_violations(get("DLQ-10"), rows, info))


DEAD = """
    0ms..5ms        alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 ok
"""
AGAIN = """
    1006ms..1010ms  alice  dead-letters  billing/orders/b0/3   offset=17 id=m17 {}
"""

BROKEN = {
    "again, and nobody knows whether it arrived": DEAD + AGAIN.format("unknown"),
    "again, and it was refused": DEAD + AGAIN.format("refused"),
    "again, while the answer is awaited": DEAD + AGAIN.format("ok").replace("..1010ms", ".."),
    "others in between": DEAD
    + """
    6ms..7ms        alice  dead-letters  billing/orders/b0/3   offset=18 id=m18 refused
    8ms..9ms        alice  dead-letters  billing/orders/b0/2   offset=17 id=n17 ok
"""
    + AGAIN.format("ok"),
    "after the lease was lost and taken again": DEAD
    + """
    10ms            alice  locks         billing/orders/b0/3   refused
    500ms           alice  locks         billing/orders/b0/3   ok
"""
    + AGAIN.format("ok"),
}

KEPT = {
    "the first was refused": DEAD.replace("ok", "refused") + AGAIN.format("ok"),
    "the first had no answer": DEAD.replace("ok", "unknown") + AGAIN.format("ok"),
    "the first was not answered yet": DEAD.replace("..5ms ", "..2000ms ") + AGAIN.format("ok"),
    "another incarnation": DEAD
    + """
    10ms            alice  drops         billing/orders/b0/3
    20ms            alice  adds          billing/orders/b0/3   inc=2 value=17
"""
    + AGAIN.format("inc=2 ok"),
    "the incarnation begins anew under its name": DEAD
    + """
    20ms            alice  adds          billing/orders/b0/3   value=17
"""
    + AGAIN.format("ok"),
    "another client": DEAD + AGAIN.format("ok").replace("alice", "bob  "),
    "another lane": DEAD + AGAIN.format("ok").replace("b0/3", "b0/2"),
    "another group": DEAD + AGAIN.format("ok").replace("billing/", "audit/"),
    "the lane was reset": DEAD
    + """
    10ms            ops    resets        billing/orders/b0/3   value=17
"""
    + AGAIN.format("ok"),
    "a ROLLBACK in manual mode took it back": DEAD
    + """
    10ms..11ms      alice  delivers      billing/orders/b0/3   offset=18 id=m18 mode=manual rollback
"""
    + AGAIN.format("ok"),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=list(BROKEN))
def test_it_is_given_up_a_second_time(text: str) -> None:
    found = violations(f"config batch=2\n{text}")
    assert [[row.queue_offset for row in each.rows] for each in found] == [[17, 17]]


@pytest.mark.parametrize("text", KEPT.values(), ids=list(KEPT))
def test_it_may_be_given_up_again(text: str) -> None:
    config = "" if text.startswith("config") else "config batch=2\n"
    assert violations(f"{config}{text}") == []


CALL = """
    0ms..1ms        alice  delivers      billing/orders/b0/3   offset=17 id=m17 rt=1 call={0} suspend
    0ms..1ms        alice  delivers      billing/orders/b0/3   offset=18 id=m18 rt={1} call={0} suspend
"""

NAMED = {
    "the batch is not known": ("given-up-again", "config batch=2\n" + DEAD + AGAIN.format("ok")),
    "the batch came again because of 18": (
        "given-up-again",
        "config batch=2 max_reconsume_times=1\n"
        + CALL.format(1, 0)
        + DEAD.replace("0ms..5ms", "2ms..5ms")
        + CALL.format(2, 1).replace("0ms..1ms", "1001ms..1002ms")
        + AGAIN.format("ok"),
    ),
    "the batch did not come again": (
        "given-up-twice",
        "config batch=2 max_reconsume_times=1\n"
        + CALL.format(1, 0)
        + DEAD.replace("0ms..5ms", "2ms..5ms")
        + AGAIN.format("ok"),
    ),
    "the batch came again without a cause": (
        "given-up-twice",
        "config batch=2 max_reconsume_times=1\n"
        + CALL.format(1, 1)
        + DEAD.replace("0ms..5ms", "2ms..5ms")
        + DEAD.replace("0ms..5ms", "2ms..5ms").replace("17", "18")
        + CALL.format(2, 1).replace("0ms..1ms", "1001ms..1002ms")
        + AGAIN.format("ok"),
    ),
    "one message per call": ("given-up-twice", "config batch=1\n" + DEAD + AGAIN.format("ok")),
}


@pytest.mark.parametrize(("name", "text"), NAMED.values(), ids=list(NAMED))
def test_what_a_batch_explains_has_a_name_of_its_own(name: str, text: str) -> None:
    """A profile allows the one and not the other."""
    assert [each.name for each in violations(text)] == [name]
