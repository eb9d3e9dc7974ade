"""Whose incarnation a row names, where several have one name."""

from __future__ import annotations

import pytest

from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.store import rows_to_table
from specs.history.text import parse_history
from specs.vocabulary import Kind, Level

LANE = "billing/orders/b0/3"
CALL = f"delivers {LANE} client_id={{}} incarnation=1 offset={{}} id=m{{}} success"


def told_apart(*events: str) -> list[int]:
    """Of each call, which incarnation it is of: the first, the second, ..."""
    _, rows = parse_history(
        "\n".join(f"{at}ms..{at + 1}ms {each}" for at, each in enumerate(events))
    )
    return numbered(rows)


def numbered(rows: list[Row]) -> list[int]:
    columns = Rows(rows_to_table(rows), {rows[0].run: RunContext.of_rows(RunInfo("r"), rows)})
    names = dict[int, int]()
    calls = columns.incarnation[columns.of(Kind.DELIVER)].tolist()
    return [names.setdefault(each, len(names) + 1) for each in calls]


def call(process: str, offset: int, client: str = "alice") -> str:
    return f"{process} {CALL.format(client, offset, offset)}"


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ((call("p1", 1), call("p1", 2)), [1, 1]),
        ((call("p1", 1), call("p2", 2), call("p1", 3)), [1, 2, 1]),
        ((call("p1", 1), call("p1", 2, "bob")), [1, 2]),
        ((call("p1", 1, "server-consumer"), call("p2", 2, "server-consumer")), [1, 1]),
        ((call("alice", 1), "alice crashes -", call("alice", 2)), [1, 2]),
        ((call("alice", 1), "alice leaves billing", call("alice", 2)), [1, 1]),
        (
            (
                call("alice", 1),
                "alice leaves billing",
                "alice joins billing",
                call("alice", 2),
                call("alice", 3),
            ),
            [1, 2, 2],
        ),
        (
            (call("alice", 1), "alice leaves paying", "alice joins paying", call("alice", 2)),
            [1, 1],
        ),
        ((call("alice", 1), "alice joins billing", call("alice", 2)), [1, 1]),
    ],
)
def test_who_is_told_apart(events: tuple[str, ...], found: list[int]) -> None:
    assert told_apart(*events) == found


def test_a_row_of_another_level_names_no_process() -> None:
    """On the wire a connection stands there."""
    _, (first, second) = parse_history(f"0ms..1ms {call('p1', 1)}\n2ms..3ms {call('c:7', 2)}")
    assert numbered([first, second]) == [1, 2]
    assert numbered([first, second._replace(level=Level.WIRE)]) == [1, 1]


@pytest.mark.parametrize(
    ("between", "found"),
    [
        ("till leaves shops\n5ms till joins shops", [1, 1]),
        ("shop leaves shops\n5ms shop joins shops", [1, 2]),
        ("shop leaves -\n5ms shop joins -", [1, 2]),
        ("shop leaves shops", [1, 1]),
        ("shop crashes -", [1, 2]),
    ],
)
def test_what_names_no_group_is_of_another_life_after_any_of_its_client(
    between: str, found: list[int]
) -> None:
    _, rows = parse_history(
        f"0ms shop sends orders/b0/3 id=m1\n4ms {between}\n9ms shop sends orders/b0/3 id=m2"
    )
    columns = Rows(rows_to_table(rows), {rows[0].run: RunContext.of_rows(RunInfo("r"), rows)})
    sent = columns.doer[columns.of(Kind.SEND)]
    assert [1, 1 + (sent[0] != sent[1])] == found
