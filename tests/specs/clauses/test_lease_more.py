"""Further histories of lease clauses: what breaks them, and what excuses it."""

from __future__ import annotations

import pytest

from specs.clauses.catalogue import get
from specs.history.text import parse_history
from specs.verdicts.examine import find_violations

LANE = "billing/orders/b0/3"

DEAD_OWNER = """
        0ms       alice  locks    {lane}    ok
        1000ms    alice  crashes  -
        1100ms    bob    assigns  billing   topic=orders value=2 view=bob detail='b0/2 b0/3'"""
AT_WORK = """
        {at}ms    bob    locks    billing/orders/b0/2   ok
        """

BROKEN: dict[str, tuple[str, str, int]] = {
    "the survivor never adds a dead owner's lane": (
        "LSE-5",
        DEAD_OWNER + AT_WORK.replace("{at}", "85101"),
        4,
    ),
    "the time runs from the last disturbance": (
        "LSE-5",
        DEAD_OWNER
        + """
        2000ms..9000ms  harness  suffers  -   detail='cut bob b0' ok"""
        + AT_WORK.replace("{at}", "93001"),
        4,
    ),
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
    "a grant of an earlier incarnation that was given back": (
        "LSE-11",
        """
        0ms          alice  locks    {lane}   ok
        10ms         alice  unlocks  {lane}   sent
        20ms         alice  adds     {lane}   value=17 inc=2
        30ms..40ms   alice  pulls    {lane}   offset=17 inc=2 ok
        """,
        2,
    ),
    "a lane that was refused is added and pulled": (
        "LSE-11",
        """
        0ms         alice  locks  {lane}   refused
        10ms        alice  adds   {lane}   value=17
        20ms..      alice  pulls  {lane}   offset=17
        """,
        2,
    ),
    "a renewal that comes far too late": (
        "LSE-13",
        """
        0ms      alice  adds   {lane}   value=17
        20000ms  alice  locks  {lane}   incarnation=alice#1 ok
        44001ms  alice  locks  {lane}   incarnation=alice#1 ok
        """,
        2,
    ),
    "a client that only pulls, and never renews": (
        "LSE-13",
        """
        0ms               alice  adds   {lane}   value=17
        10000ms..25000ms  alice  pulls  {lane}   offset=17 ok
        25001ms..         alice  pulls  {lane}   offset=17
        26001ms..         alice  pulls  {lane}   offset=17
        """,
        2,
    ),
    "a shutdown that cuts its call at once": (
        "LSE-15",
        """
        0ms..500ms   alice  delivers  {lane}   offset=17 cut
        490ms..600ms alice  leaves    billing
        500ms        alice  unlocks   {lane}   incarnation=alice#1 sent
        """,
        2,
    ),
    "a call that never ends": (
        "LSE-15",
        """
        0ms..    alice  delivers  {lane}   offset=17
        500ms    alice  unlocks   {lane}   sent
        """,
        2,
    ),
    "a shutdown that keeps the lease": (
        "LSE-16",
        """
        0ms            alice  locks   {lane}   ok
        10ms..900ms    alice  leaves  billing
        20ms           alice  drops   {lane}
        30ms           bob    locks   {lane}   refused
        1030ms         bob    locks   {lane}   refused
        """,
        3,
    ),
}

SILENT: dict[str, tuple[str, str]] = {
    "the bound is not over": ("LSE-5", DEAD_OWNER + AT_WORK.replace("{at}", "85100")),
    "the survivor has added the lane": (
        "LSE-5",
        DEAD_OWNER
        + """
        62000ms   bob    adds     {lane}    value=17"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "a fault that lasts": (
        "LSE-5",
        DEAD_OWNER
        + """
        2000ms..  harness  suffers  -   detail='cut bob b0'"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "the survivor's request was not answered": (
        "LSE-5",
        DEAD_OWNER
        + """
        62000ms..63000ms   bob    locks    {lane}    unknown"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "the stored offset could not be had": (
        "LSE-5",
        DEAD_OWNER
        + """
        62000ms   bob    fetches    {lane}    code=1 refused"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "a broker has crashed": (
        "LSE-5",
        DEAD_OWNER
        + """
        2000ms    b0     crashes    b0"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "a stranger was granted the lane": (
        "LSE-5",
        DEAD_OWNER
        + """
        62000ms   eve    locks    {lane}    ok"""
        + AT_WORK.replace("{at}", "99000"),
    ),
    "the survivor has had the lane before, and may still run a call of it": (
        "LSE-5",
        """
        0ms       bob    adds     {lane}    value=17"""
        + DEAD_OWNER
        + AT_WORK.replace("{at}", "99000"),
    ),
    "the lane was assigned to somebody else meanwhile": (
        "LSE-5",
        DEAD_OWNER
        + """
        3000ms    bob    assigns  billing   topic=orders value=1 view='bob carol' detail=b0/2"""
        + AT_WORK.replace("{at}", "99000"),
    ),
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
    "a frame that came twice may have renewed the lease": (
        "LSE-14",
        """
        0ms      alice    locks    {lane}   ok
        5ms..9ms harness  suffers  -        detail='duplicate alice b0 30' ok
        60500ms  bob      locks    {lane}   refused
        """,
    ),
    "the answer comes after the add, and before the pull": (
        "LSE-11",
        """
        0ms          alice  adds   {lane}   value=17
        5ms..10ms    alice  locks  {lane}   ok
        20ms..40ms   alice  pulls  {lane}   offset=17 ok
        """,
    ),
    "a late refusal of an older request": (
        "LSE-11",
        """
        0ms..50ms    alice  locks  {lane}   refused
        10ms..20ms   alice  locks  {lane}   ok
        60ms         alice  adds   {lane}   value=17
        70ms..80ms   alice  pulls  {lane}   offset=17 ok
        """,
    ),
    "who is not known to have added the lane": (
        "LSE-11",
        """
        0ms..40ms   alice  pulls  {lane}   offset=17 ok
        """,
    ),
    "a client that was paused": (
        "LSE-13",
        """
        0ms               alice  adds    {lane}   value=17
        1000ms..70000ms   alice  pauses  -
        70001ms..         alice  pulls   {lane}   offset=17
        """,
    ),
    "a client that shuts down": (
        "LSE-13",
        """
        0ms              alice  adds      {lane}   value=17
        1000ms..30000ms  alice  leaves    billing
        29000ms          alice  commits   {lane}   value=17 sent
        """,
    ),
    "a dropped lane": (
        "LSE-13",
        """
        0ms               alice  adds      {lane}   value=17
        1000ms            alice  drops     {lane}
        26000ms           alice  commits   {lane}   value=17 sent
        """,
    ),
    "a request that does not say of which incarnation": (
        "LSE-13",
        """
        0ms      alice  adds      {lane}   value=17
        20000ms  alice  locks     {lane}   ok
        90000ms  alice  commits   {lane}   value=17 sent
        """,
    ),
    "a process of the same name after a crash": (
        "LSE-15",
        """
        0ms..    alice  delivers  {lane}   offset=17
        100ms    alice  crashes   -
        200ms    alice  joins     billing
        300ms    alice  unlocks   {lane}   sent
        """,
    ),
    "a call that was cut when the waiting time was over": (
        "LSE-15",
        """
        0ms..5100ms    alice  delivers  {lane}   offset=17 cut
        100ms..5200ms  alice  leaves    billing
        5100ms         alice  unlocks   {lane}   incarnation=alice#1 sent
        """,
    ),
    "another client's call": (
        "LSE-15",
        """
        0ms..900ms  alice  delivers  {lane}   offset=17 success
        500ms       bob    unlocks   {lane}   sent
        """,
    ),
    "an unlock that got lost": (
        "LSE-16",
        """
        0ms      alice  locks    {lane}   ok
        10ms     alice  drops    {lane}
        11ms     alice  unlocks  {lane}   sent
        2000ms   bob    locks    {lane}   refused
        """,
    ),
    "a dead letter is still on its way": (
        "LSE-16",
        """
        0ms           alice  locks         {lane}   ok
        10ms          alice  drops         {lane}
        5ms..1900ms   alice  dead-letters  {lane}   offset=17 id=m17 ok
        2000ms        bob    locks         {lane}   refused
        """,
    ),
    "the owner wants the lane again": (
        "LSE-16",
        """
        0ms           alice  locks  {lane}   ok
        10ms          alice  drops  {lane}
        500ms..       alice  locks  {lane}
        2000ms        bob    locks  {lane}   refused
        """,
    ),
    "an owner that crashed": (
        "LSE-16",
        """
        0ms     alice  locks    {lane}   ok
        10ms    alice  drops    {lane}
        11ms    alice  crashes  -
        2000ms  bob    locks    {lane}   refused
        """,
    ),
    "somebody else was granted it": (
        "LSE-16",
        """
        0ms     alice  locks  {lane}   ok
        10ms    alice  drops  {lane}
        20ms    carol  locks  {lane}   ok
        2000ms  bob    locks  {lane}   refused
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
