"""What shows in a tap's rows that a container's fault had an effect."""

from __future__ import annotations

from typing import Any

from chaos.attach.breaking import BREAKINGS, Fault
from chaos.attach.hers import Role
from specs.history.row import Row, make_row
from specs.vocabulary import Kind, Lane

LANE = Lane("billing", "orders", "b0", 0)
DONE_US, HEALED_US = 1_000_000, 5_000_000


def row(kind: Kind, who: str, at_us: int, ended_us: int | None = None) -> Row:
    return make_row(kind=kind, client_id=who, started_us=at_us, ended_us=ended_us, **LANE._asdict())


def fault(role: Role = Role.CONSUMER, **other: Any) -> Fault:
    breaking = next(each for each in BREAKINGS if each.role is role)
    told: dict[str, Any] = {"clients": {"c1"}, "lanes": {tuple(LANE)}, **other}
    return Fault(breaking, "billing-1", done_us=DONE_US, healed_us=HEALED_US, **told)


BEFORE = row(Kind.PULL, "c1", 900_000)
TAKEN = row(Kind.PULL, "c2", 4_000_000)


def test_it_was_silent_and_another_went_on() -> None:
    shown = fault().shown([BEFORE, TAKEN])
    assert shown == f"billing-1 was silent for 4000 ms; c2 went on with {LANE} after 3000 ms"


def test_who_goes_on_working_was_not_broken() -> None:
    assert fault().shown([BEFORE, row(Kind.COMMIT, "c1", 2_000_000), TAKEN]) is None


def test_what_was_on_its_way_is_no_work() -> None:
    """It was sent before the fault, and read by the tap a moment later."""
    assert fault().shown([BEFORE, row(Kind.COMMIT, "c1", DONE_US + 1_000), TAKEN]) is not None


def test_who_had_nothing_to_do_shows_nothing() -> None:
    assert fault(lanes=frozenset()).shown([BEFORE, TAKEN]) is None


def test_a_broker_that_answers_was_not_away() -> None:
    """Requests waited for it until it was healed, and none was answered before."""
    waits = row(Kind.PULL, "c1", 2_000_000, HEALED_US + 1)
    answered = row(Kind.LOCK, "c1", 2_000_000, 2_500_000)
    assert (
        fault(Role.BROKER).shown([waits]) == "1 requests were not answered while billing-1 was away"
    )
    assert fault(Role.BROKER).shown([waits, answered]) is None
    assert fault(Role.BROKER).shown([]) is None
