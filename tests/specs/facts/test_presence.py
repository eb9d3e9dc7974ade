"""Who was there is said of many rows at once as the context of the run says it of one."""

from __future__ import annotations

from random import Random

import pytest

from specs.facts import presence
from specs.facts.columns import NEVER, NONE
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import ints
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind, Queue

HAPPENINGS = (
    "alice joins billing",
    "alice joins -",
    "alice leaves billing",
    "alice leaves -",
    "alice leaves audit",
    "alice crashes -",
    "alice pauses -",
    "alice adds billing/orders/b0/3 value=17",
    "alice adds billing/orders/b1/3 value=17",
    "alice adds audit/orders/b0/3 value=17",
    "b0 crashes b0",
    "bob crashes -",
    "alice locks billing/orders/b0/3 epoch=1",
    "alice locks billing/orders/b0/3 epoch=2",
    "alice locks billing/orders/b0/3",
    "bob locks audit/orders/b0/3",
    "rig suffers - detail='partition alice b0'",
    "rig suffers - detail='pause bob' client_id=bob",
)


@pytest.mark.parametrize("seed", range(60))
def test_many_rows_are_told_what_one_is(seed: int) -> None:
    draw = Random(seed)
    lines = [
        f"{at * 10}ms..{at * 10 + draw.choice((1, 5, 25))}ms {draw.choice(HAPPENINGS)}"
        for at in range(14)
    ]
    lines = [
        line.split("..")[0] + " " + line.split(" ", 1)[1] if "adds" in line else line
        for line in lines
    ]
    info, history = parse_history("\n".join(lines))
    context = RunContext.of_rows(info, history)
    rows = Rows(rows_to_table(history), {info.run: context})
    now = int(rows.begin.max()) + draw.choice((-4, 0))
    where = ints([at for at in range(rows.size) if rows.begin[at] <= now])
    until = ints([now] * len(where))
    since_us = rows.started[where]

    def said(ask: str, *more: object) -> list[object]:
        return getattr(presence, ask)(rows, where, *more, until).tolist()  # type: ignore[no-any-return]

    names = [(rows.name_of("client_id", at), rows.name_of("group", at)) for at in where.tolist()]
    begins, epochs = rows.begin[where].tolist(), rows.number("broker_epoch")[where].tolist()
    assert said("died_since") == [
        context.client_died_between(client, begin, now)
        for (client, _), begin in zip(names, begins, strict=True)
    ]
    assert said("of_old_lives") == [
        context.is_of_an_old_life(*who, begin, now)
        for who, begin in zip(names, begins, strict=True)
    ]
    assert said("were_leaving") == [context.leaving_at(*who, now) for who in names]
    assert said("paused_since", since_us) == [
        context.paused_since(client, us, now)
        for (client, _), us in zip(names, since_us.tolist(), strict=True)
    ]
    assert said("left_since") == [
        any(
            seq <= now and row.kind is Kind.LEAVE and (row.seq_end or NEVER) > begin
            for seq, _, row in context.work.get(client, ())
        )
        for (client, _), begin in zip(names, begins, strict=True)
    ]
    joined = (context.member_since(group, client, now) for client, group in names)
    assert said("members_since") == [NONE if seq is None else seq for seq in joined]
    newest = (context.newest_member(group, now) for _, group in names)
    assert said("newest_members") == [NONE if seq is None else seq for seq in newest]
    brokers = [rows.name_of("broker", at) for at in where.tolist()]
    assert said("faulty_since", since_us) == [
        context.fault_between(us, NEVER, now, (client, broker))
        for (client, _), broker, us in zip(names, brokers, since_us.tolist(), strict=True)
    ]
    assert said("brokers_died") == [
        context.broker_died_since(broker, begin, epoch, now)
        for broker, begin, epoch in zip(brokers, begins, epochs, strict=True)
    ]


def test_who_leaves_after_a_time_was_there_until_then() -> None:
    """It leaves from its first order on, until it begins anew."""
    for back, there in (("", [False, False, True]), ("11s alice joins billing", [True] * 3)):
        info, history = parse_history(
            f"8s..9s alice leaves billing\n9s..10s alice leaves -\n{back}\n"
            "20s alice locks billing/orders/b0/3 ok"
        )
        context = RunContext.of_rows(info, history)
        rows = Rows(rows_to_table(history), {info.run: context})
        where = ints([rows.size - 1] * 3)
        until_us, since = ints([NEVER, 8_000_000, 7_999_999]), where * 0
        told = presence.were_there(rows, where, since, since, until_us)
        assert told.tolist() == there


def test_a_pause_counts_until_the_longest_of_those_that_have_begun_is_over() -> None:
    """A shorter one that began later, in the midst of it, ends nothing."""
    info, history = parse_history(
        """
        0ms..10s   alice pauses -
        1s..2s     alice pauses -
        0ms..10s   b0 pauses b0
        1s..2s     b0 pauses b0
        5s..6s     alice locks billing/orders/b0/3 ok
        """
    )
    context = RunContext.of_rows(info, history)
    now = history[-1].seq_begin
    assert context.paused_since("alice", 5_000_000, now)
    assert context.broker_paused_since("b0", 5_000_000, now)
    assert not context.paused_since("alice", 10_000_001, now)


ASTRAY = (
    ("topic=orders id=m7 unknown", True),
    ("topic=orders broker=b0 id=m7 ok", True),
    ("topic=orders id=m7 detail=half value=0 ok", True),
    ("topic=orders id=m7 code=14 refused", False),
    ("topic=orders broker=b1 id=m7 unknown", False),
    ("topic=bills id=m7 unknown", False),
)


@pytest.mark.parametrize(("sends", "expected"), ASTRAY, ids=[each[0] for each in ASTRAY])
def test_a_send_that_names_no_queue_may_lie_in_any_of_its_topic(sends: str, expected: bool) -> None:
    info, history = parse_history(f"0ms..1s shop sends - key=k1 {sends}")
    context, queue = RunContext.of_rows(info, history), Queue("orders", "b0", 3)
    assert context.may_hold_astray(queue) == expected
    assert context.may_hold_astray(queue, "k1") == expected
    assert not context.may_hold_astray(queue, "k2")


@pytest.mark.parametrize(
    ("row", "gone"),
    [
        ("5ms alice crashes -", True),
        ("5ms..9ms alice leaves billing", True),
        ("5ms.. alice leaves -", True),
        ("5ms..9ms alice leaves audit", False),
        ("5ms bob crashes -", False),
        ("5ms alice joins billing", False),
    ],
)
def test_a_client_is_gone_that_died_or_left_though_it_came_again(row: str, gone: bool) -> None:
    lane = "billing/orders/b0/3"
    info, history = parse_history(
        f"0ms alice adds {lane}\n{row}\n8ms alice joins billing\n20ms alice adds {lane}"
    )
    context, now = RunContext.of_rows(info, history), history[-1].seq_begin
    assert context.is_gone("billing", "alice", history[0].seq_begin, now) == gone
    assert not context.is_gone("billing", "alice", now, now)
