"""`inorder list faults`: which there are, and what a target lacks for them."""

from __future__ import annotations

from conformance.cli.listing import known_faults
from specs.faults import FAULTS


def test_every_fault_is_listed_with_its_first_line_and_needs() -> None:
    items = list(known_faults())
    assert [item["name"] for item in items] == list(FAULTS)
    assert all(item["why"] and item["needs"] for item in items)
    assert "available" not in items[0]


def test_the_simulated_target_can_have_every_fault() -> None:
    assert [item["reason"] for item in known_faults("reference")] == [""] * len(FAULTS)


def test_a_target_that_lacks_an_ability_is_told_with_it() -> None:
    lose = next(item for item in known_faults("reference+tcp") if item["name"] == "lose")
    reason = "can't lose, double and reorder what a connection carries"
    assert (lose["available"], lose["reason"]) == (False, reason)
