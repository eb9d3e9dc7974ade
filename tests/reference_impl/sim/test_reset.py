"""Resets in the simulated cluster, judged: the clauses excuse what a reset brings about, and nothing without it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest

from reference_impl.sim.simulate import simulate
from specs import profiles
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, conclude
from specs.vocabulary import Kind, Level, Outcome

RESET_MS = 20_000


def plan_of(dialect: str, offset: int, mode: str = "orderly") -> Plan:
    """Two members at work, too slow for what comes; an operator resets the group. 4.9 goes by the time: to the end."""
    reset = {
        "client": "ops",
        "group": "billing",
        "topic": "orders",
        "broker": "b0",
        "queue": 0,
        "offset": offset,
    }
    sends = [
        Action(
            at_ms, "send", {"client": "p1", "topic": "orders", "count": 2, "key": f"k{at_ms % 7}"}
        )
        for at_ms in range(1_000, 40_000, 500)
    ]
    actions = [Action(0, "start", {"client": name}) for name in ("p1", "c1", "c2", "ops")]
    actions += [*sends, Action(RESET_MS, "reset", reset)]
    return Plan(
        topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)),
        config=Config(mode=mode, dialect=dialect, long_poll_ms=2_000),
        clients=(
            ClientPlan("p1", "producer"),
            ClientPlan("ops", "prober"),
            *(ClientPlan(name, "consumer", "billing", ("orders",)) for name in ("c1", "c2")),
        ),
        actions=tuple(sorted(actions, key=lambda action: action.at_ms)),
        listener=(ListenerRule(Outcome.SUCCESS, duration_ms=1_200),),
        until_ms=50_000,
    )


def refuted(info: RunInfo, rows: Sequence[Row]) -> set[str]:
    verdict = conclude(examine(rows, info), info, profiles.load("reference"), floor=1)
    return {each.id for each in verdict.of(ClauseVerdict.REFUTED)}


def without_marks(rows: Iterable[Row]) -> list[Row]:
    """As a client's records look that does not say which of its commits are somebody else's word."""
    return [row._replace(detail=None) if row.kind is Kind.COMMIT else row for row in rows]


@pytest.mark.parametrize(
    ("dialect", "offset"), [("4.9", 3), ("4.9", -1), ("5.x", 3), ("5.x", 10), ("5.x", -1)]
)
def test_no_clause_is_refuted_by_a_reset(dialect: str, offset: int) -> None:
    info, rows = simulate(plan_of(dialect, offset))
    told = [row for row in rows if row.kind is Kind.RESET and row.level is Level.CLIENT]
    ordered = [row for row in rows if row.kind is Kind.RESET and row.level is Level.WIRE]
    assert [row.outcome for row in ordered] == [Outcome.OK]
    assert len(told) == (2 if dialect == "4.9" else 0)
    assert refuted(info, rows) == set()


def test_without_the_rows_of_the_reset_what_it_skipped_is_lost() -> None:
    info, rows = simulate(plan_of("4.9", -1))
    told = without_marks(row for row in rows if row.kind is not Kind.RESET)
    assert refuted(info, told) == {"CMT-1", "CMT-2", "LIV-1"}


def test_the_members_rows_alone_excuse_it_where_no_operator_was_seen() -> None:
    info, rows = simulate(plan_of("4.9", -1))
    mine = (row for row in rows if row.kind is not Kind.RESET or row.level is Level.CLIENT)
    assert refuted(info, without_marks(mine)) == set()


def test_a_commit_in_flight_is_not_held_against_a_broker_that_leaves_resets_to_its_clients() -> (
    None
):
    """CMT-11 is a promise from 5.2 on."""
    info, rows = simulate(plan_of("4.9", -1))
    verdict = conclude(examine(rows, info), info, profiles.load("reference"), floor=1)
    assert "CMT-11" in {each.id for each in verdict.of(ClauseVerdict.NOT_CLAIMED)}
