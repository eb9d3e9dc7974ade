"""What a small history is taken to mean: the rows above, the facts below."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from specs.facts.calls import Calls
from specs.facts.columns import NEVER, NOWHERE
from specs.facts.gone import floor_before, gone_from
from specs.facts.messages import Messages
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.stored import tried_unseen
from specs.facts.tenures import Tenures
from specs.facts.tries import Tries
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind

LANE = "billing/orders/b0/3"
DELIVERED = f"alice delivers {LANE}"


def columns(text: str) -> Rows:
    info, rows = parse_history(text)
    of_queues = [row for row in rows if row.queue_id is not None]
    return Rows(rows_to_table(of_queues), {info.run: RunContext.of_rows(info, rows)})


def told_apart(numbers: Iterator[int]) -> str:
    """Numbers as letters, in the order in which they come."""
    names: dict[int, str] = {}
    return "".join(names.setdefault(each, chr(ord("a") + len(names))) for each in numbers)


STANDS = (
    ("nothing happens", "", "aa"),
    ("it is added anew", f"10ms alice adds {LANE} value=17", "ab"),
    ("an operator moves the lane", f"10ms ops resets {LANE} value=5", "ab"),
    ("that was refused", f"10ms ops resets {LANE} value=5 refused", "aa"),
    ("it is told to go back", f"10ms..11ms alice pulls {LANE} offset=18 value=5 refused", "ab"),
    ("by code", f"10ms..11ms alice pulls {LANE} offset=18 value=5 code=21 refused", "ab"),
    ("its client is", f"10ms..11ms alice pulls {LANE} inc=- offset=18 value=5 refused", "ab"),
    ("another one is", f"10ms..11ms bob pulls {LANE} offset=18 value=5 refused", "aa"),
    (
        "another one's client is",
        f"10ms..11ms bob pulls {LANE} inc=- offset=18 value=5 refused",
        "aa",
    ),
    ("it is told to go ahead", f"10ms..11ms alice pulls {LANE} offset=18 value=30 refused", "aa"),
    ("it is told so later", f"10ms..30ms alice pulls {LANE} offset=18 value=5 refused", "aa"),
    ("nobody answers", f"10ms.. alice pulls {LANE} offset=18 value=5 unknown", "aa"),
    ("it dies", "10ms alice crashes -", "ab"),
    ("it leaves and comes again", "10ms alice leaves billing\n12ms alice joins billing", "ab"),
)


@pytest.mark.parametrize(("what", "between", "stands"), STANDS, ids=[each[0] for each in STANDS])
def test_a_stand_ends_where_somebody_moves_the_lane(what: str, between: str, stands: str) -> None:
    rows = columns(
        f"0ms..5ms {DELIVERED} offset=17 id=m17 success\n"
        f"{between}\n"
        f"20ms..25ms {DELIVERED} offset=18 id=m18 success"
    )
    calls = rows.of(Kind.DELIVER)
    assert told_apart(iter(rows.shared(Tenures).stand[calls].tolist())) == stands


@pytest.mark.parametrize(
    ("between", "low"),
    [
        ("", -1),
        (f"6ms..7ms ops resets {LANE} value=18", 18),
        (f"6ms..7ms ops resets {LANE} value=18\n8ms ops resets {LANE} value=5", 18),
        (f"6ms ops resets {LANE} value=-1", NEVER),
        (f"6ms..7ms ops resets {LANE} value=18\n8ms alice adds {LANE} value=16", -1),
        (f"6ms..9ms ops resets {LANE} value=18\n8ms alice adds {LANE} value=16", 18),
        ("6ms..7ms ops resets audit/orders/b0/3 value=18", -1),
        (f"20ms..21ms ops resets {LANE} value=18", -1),
    ],
)
def test_a_tenure_may_have_been_moved_by_resets_since_it_was_added(between: str, low: int) -> None:
    rows = columns(f"{between}\n10ms..12ms {DELIVERED} offset=16 id=m16 success")
    (call,) = rows.of(Kind.DELIVER).tolist()
    assert rows.shared(Tenures).moved_to(call) == low


SUSPENDED = f"0ms..5ms {DELIVERED} offset=17 id=m17 rt=0 suspend"
LATER = f"20ms..25ms {DELIVERED} offset=18 id=m18 rt=0 success"
LATEST = f"30ms..35ms {DELIVERED} offset=19 id=m19 rt=0 success"
LETTER = f"alice dead-letters {LANE} offset=17 id=m17"
LIMIT = "config max_reconsume_times=0\n"
OWED = (
    ("it was put back", "", SUSPENDED, "17 by 18, 19"),
    ("it comes again", f"10ms..15ms {DELIVERED} offset=17 id=m17 rt=1 success", SUSPENDED, "17 by 17"),
    ("it was given up", f"10ms..15ms {LETTER} ok", SUSPENDED, ""),
    ("by its client", f"10ms..15ms alice dead-letters {LANE} inc=- offset=17 id=m17 ok", SUSPENDED, ""),
    ("by another one", f"10ms..15ms bob dead-letters {LANE} inc=- offset=17 id=m17 ok", SUSPENDED, "17 by 18, 19"),
    ("after the next call", f"26ms..27ms {LETTER} ok", SUSPENDED, "17 by 18"),
    ("by what was under way", f"4ms..15ms {LETTER} ok", SUSPENDED, ""),
    ("that was refused", f"10ms..15ms {LETTER} refused", SUSPENDED, "17 by 18, 19"),
    ("it was removed", "10ms b0 trims orders/b0/3 value=18", SUSPENDED, ""),
    ("it succeeded", "", SUSPENDED.replace("suspend", "success"), ""),
    ("its retries were used up", "", LIMIT + SUSPENDED, ""),
    ("and giving it up failed", f"10ms..15ms {LETTER} refused", LIMIT + SUSPENDED, "17 by 18, 19"),
    ("but too late", f"26ms..27ms {LETTER} refused", LIMIT + SUSPENDED, ""),
    ("its call goes on", "", SUSPENDED.replace("0ms..5ms", "0ms..28ms"), "17 by 19"),
)  # fmt: skip


@pytest.mark.parametrize(("what", "between", "first", "owed"), OWED, ids=[each[0] for each in OWED])
def test_what_is_owed_and_by_which_calls(what: str, between: str, first: str, owed: str) -> None:
    rows = columns(f"{first}\n{between}\n{LATER}\n{LATEST}")
    calls = rows.shared(Calls)
    begins, offsets = rows.begin[calls.first], rows.offset[calls.first]
    told = [
        f"{offset} by {', '.join(map(str, offsets[(begins >= since) & (begins <= until)].tolist()))}"
        for offset, since, until in zip(
            rows.offset[calls.owed.row].tolist(),
            calls.owed.since.tolist(),
            calls.owed.until.tolist(),
            strict=True,
        )
    ]
    assert "; ".join(told) == owed


AGAIN = f"20ms..25ms {DELIVERED} offset=17 id=m17 rt=1 success"
COMES_AGAIN = (
    ("it was put back", SUSPENDED, 1),
    ("it succeeded", SUSPENDED.replace("suspend", "success"), 0),
    ("it was given up in between", f"{SUSPENDED}\n10ms..15ms {LETTER} ok", 0),
    ("that was refused", f"{SUSPENDED}\n10ms..15ms {LETTER} refused", 1),
    ("it was added anew", f"{SUSPENDED}\n10ms alice adds {LANE} value=17", 0),
    ("it may have been given up, and a ROLLBACK replays it",
     f"{LIMIT}{SUSPENDED}\n10ms..15ms {DELIVERED} offset=16 id=m16 mode=manual rollback", 0),
)  # fmt: skip


@pytest.mark.parametrize(("what", "first", "count"), COMES_AGAIN, ids=[each[0] for each in COMES_AGAIN])  # fmt: skip
def test_what_comes_again_and_waits_for_its_pause(what: str, first: str, count: int) -> None:
    again, before = columns(f"{first}\n{AGAIN}").shared(Calls).come_again
    assert (len(again), len(before)) == (count, count)


def test_what_is_gone_is_told_by_removals_and_by_answers() -> None:
    rows = columns(f"""
        0ms..5ms   {DELIVERED} offset=17 id=m17 success
        6ms        b0    trims    orders/b0/3 value=16
        6ms..7ms   dora  pulls    audit/orders/b0/3 offset=17 value=30 code=21 refused
        7ms..8ms   alice pulls    {LANE} offset=17 value=30 code=20 ok
        8ms..9ms   alice pulls    {LANE} offset=17 value=20 code=21 refused
        10ms..11ms alice pulls    {LANE} offset=20 value=40 ok
        20ms..25ms {DELIVERED} offset=20 id=m20 success
        30ms..35ms {DELIVERED} offset=15 id=m15 success
    """)
    calls = rows.of(Kind.DELIVER)
    _, _, pull, _ = rows.of(Kind.PULL)
    assert gone_from(rows, calls).tolist()[:2] == [int(rows.end[pull]), NEVER]
    assert gone_from(rows, calls)[2] < rows.begin[pull]


def test_a_try_follows_the_one_that_put_its_message_back() -> None:
    rows = columns(f"""
        0ms..5ms   {DELIVERED} offset=17 id=m17 rt=0 suspend
        10ms..15ms {DELIVERED} offset=16 id=m16 rt=0 success
        20ms..25ms {DELIVERED} offset=17 id=m17 rt=1 suspend
        26ms..27ms {LETTER} refused
        30ms..35ms {DELIVERED} offset=16 id=m16 rt=0 success
        40ms..45ms {DELIVERED} offset=17 id=m17 rt=2 mode=manual rollback
        50ms..55ms {DELIVERED} offset=17 id=m17 rt=2 success
    """)
    tries, (first, _, second, fourth, third, last) = rows.shared(Tries), rows.of(Kind.DELIVER)
    assert tries.before[[first, fourth]].tolist() == [NOWHERE, NOWHERE]
    assert tries.before[[second, third]].tolist() == [first, second]
    assert tries.before[tries.letters].tolist() == [second]
    failed = tries.failed_to_be_given_up(np.array([second]), rows.begin[[third]])
    assert failed.tolist() == [True]
    assert rows.begin[third] < tries.counted_until[last] <= rows.begin[last]


def test_a_dead_letter_that_names_no_incarnation_may_be_of_any_of_its_clients() -> None:
    for letter, has_failed in (
        ("alice dead-letters {LANE} offset=17 inc=- refused", True),
        ("alice dead-letters {LANE} offset=17 inc=- ok", False),
        ("alice dead-letters {LANE} offset=18 inc=- refused", False),
        ("bob dead-letters {LANE} offset=17 inc=- refused", False),
    ):
        rows = columns(
            f"0ms..5ms {DELIVERED} offset=17 suspend\n6ms {letter.format(LANE=LANE)}\n"
            f"20ms..25ms {DELIVERED} offset=17 success"
        )
        first, again = rows.of(Kind.DELIVER)
        failed = rows.shared(Tries).failed_to_be_given_up(np.array([first]), rows.begin[[again]])
        assert failed.tolist() == [has_failed], letter


def test_a_lane_without_a_number_is_called_as_its_rows_call_it() -> None:
    """By that name its resets and removals are found."""
    info, rows = parse_history(f"0ms..5ms {DELIVERED} offset=17 id=m17 success")
    row = rows[0]._replace(queue_id=None)
    found = Rows(rows_to_table([row]), {info.run: RunContext.of_rows(info, [row])})
    assert found.queue_of(0) == row.queue
    assert found.lane_of(0) == row.lane


@pytest.mark.parametrize(
    ("tries", "unseen"),
    [
        (("attempt=1", "attempt=2"), False),
        (("", "attempt=2"), False),
        (("attempt=2",), True),
        (("attempt=1", "attempt=3"), True),
        (("attempt=2", "attempt=2"), True),
        (("attempt=1", "attempt=1"), False),
    ],
)
def test_the_numbers_of_its_sends_tell_of_tries_that_are_not_in_the_history(
    tries: tuple[str, ...], unseen: bool
) -> None:
    sends = [f"{at}ms shop sends orders/b0/3 id=m1 {told} ok" for at, told in enumerate(tries)]
    rows = columns("\n".join([*sends, "9ms shop sends orders/b0/3 id=m2 ok"]))
    found = tried_unseen(rows, rows.text("message_id"))
    assert found.tolist() == [*[unseen] * len(tries), False]


@pytest.mark.parametrize(("begins", "floor"), [("9ms", 20), ("10ms", 0)])
def test_the_floor_counts_a_pull_that_is_told_to_go_on_from_its_begin_on(
    begins: str, floor: int
) -> None:
    rows = columns(
        f"""
        10ms..11ms alice delivers {LANE} offset=17 success
        {begins}..30ms bob pulls {LANE} offset=17 value=20 code=21 refused
        """
    )
    call = rows.of(Kind.DELIVER)
    assert floor_before(rows, rows.lane[call], rows.begin[call]).tolist() == [floor]


@pytest.mark.parametrize(
    ("acks", "given"),
    [("offset=17", True), ("id=m17", True), ("id=m18", False), ("lease=r1", False)],
)
def test_a_message_is_given_to_whoever_names_its_offset_or_its_id(acks: str, given: bool) -> None:
    rows = columns(
        f"""
        0ms shop sends orders/b0/3 offset=17 id=m17 ok
        5ms..6ms bob acks {LANE} {acks} ok
        9ms alice delivers {LANE} offset=18 success
        """
    )
    sent, call = rows.of(Kind.SEND), rows.of(Kind.DELIVER)
    found = rows.shared(Messages).given_before(rows.lane[call], sent, rows.begin[call])
    assert found.tolist() == [given]
