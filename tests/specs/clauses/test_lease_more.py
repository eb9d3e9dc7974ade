"""Further histories of lease clauses: what breaks them, and what excuses it."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations

LANE = "billing/orders/b0/3"

BROKEN: dict[str, tuple[str, str, int]] = {
    "an unlock of an expired lease is in vain": (
        "LSE-6",
        """
        0ms      alice  locks    {lane}   ok
        70000ms  alice  unlocks  {lane}   ok
        70001ms  bob    locks    {lane}   refused
        """,
        3,
    ),
    "an expired lease is refused for ever": (
        "LSE-14",
        """
        0ms      alice  locks    {lane}   ok
        90000ms  bob    locks    {lane}   refused
        """,
        2,
    ),
    "one millisecond too early": (
        "LSE-14",
        """
        0ms      alice  locks    {lane}   ok
        10000ms  alice  locks    {lane}   ok
        69999ms  bob    locks    {lane}   ok
        """,
        2,
    ),
    "who was refused is granted when it asks again": (
        "LSE-7",
        """
        0ms      alice  locks    {lane}   ok
        100ms    bob    locks    {lane}   refused
        200ms    bob    locks    {lane}   ok
        """,
        3,
    ),
}

SILENT: dict[str, tuple[str, str]] = {
    "somebody who was not answered may hold what was given back": (
        "LSE-6",
        """
        0ms            alice  locks    {lane}   ok
        10ms           alice  unlocks  {lane}   ok
        11ms..1011ms   carol  locks    {lane}   unknown
        1020ms         bob    locks    {lane}   refused
        """,
    ),
    "the owner took it again": (
        "LSE-6",
        """
        0ms      alice  locks    {lane}   ok
        10ms     alice  unlocks  {lane}   ok
        15ms     alice  locks    {lane}   ok
        20ms     bob    locks    {lane}   refused
        """,
    ),
    "an error code is no refusal": (
        "LSE-6",
        """
        0ms      alice  locks    {lane}   ok
        10ms     alice  unlocks  {lane}   ok
        20ms     bob    locks    {lane}   code=1 refused
        """,
    ),
    "a broker that restarted knows of no lease": (
        "LSE-14",
        """
        0ms      alice  locks    {lane}   ok
        100ms    b0     crashes  b0
        59995ms  bob    locks    {lane}   ok
        """,
    ),
    "whose answer came late may have been asked late": (
        "LSE-14",
        """
        0ms..20ms  alice  locks    {lane}   ok
        60010ms    bob    locks    {lane}   refused
        60021ms    bob    locks    {lane}   ok
        """,
    ),
    "a grant in the middle of a lease is no matter of its limit": (
        "LSE-14",
        """
        0ms      alice  locks    {lane}   ok
        30000ms  bob    locks    {lane}   ok
        """,
    ),
    "a refusal that is too long ago explains nothing": (
        "LSE-7",
        """
        0ms       alice  locks    {lane}   ok
        100ms     bob    locks    {lane}   refused
        60102ms   bob    locks    {lane}   refused
        """,
    ),
    "the owner's own refusal is no stranger's": (
        "LSE-7",
        """
        0ms      alice  locks    {lane}   ok
        50000ms  alice  locks    {lane}   refused
        60001ms  bob    locks    {lane}   refused
        """,
    ),
    "a lease that was given back is granted": (
        "LSE-7",
        """
        0ms      alice  locks    {lane}   ok
        100ms    bob    locks    {lane}   refused
        150ms    alice  unlocks  {lane}   sent
        200ms    bob    locks    {lane}   ok
        """,
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_it_is_refuted(name: str) -> None:
    """Once, with a witness of that many events."""
    clause_id, text, size = BROKEN[name]
    info, rows = parse_history(text.format(lane=LANE))
    found = find_violations(get(clause_id), rows, info)
    assert [len(each.rows) for each in found] == [size]


@pytest.mark.parametrize("name", SILENT)
def test_it_is_excused(name: str) -> None:
    """Nothing is found."""
    clause_id, text = SILENT[name]
    info, rows = parse_history(text.format(lane=LANE))
    assert find_violations(get(clause_id), rows, info) == []
