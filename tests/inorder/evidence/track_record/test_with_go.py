"""The plans of the Go client's bugs: the same on both sides, and with nothing in them but what fails how."""

from __future__ import annotations

import pytest

from conformance.targets.base import find
from inorder.evidence.track_record.entries import ENTRIES, Entry
from inorder.evidence.track_record.with_go import MESSAGES, SmallPlan
from specs.plan.plan import Plan


def plan_of(target: str, entry: Entry, seed: int) -> Plan:
    assert isinstance(entry.trial, SmallPlan)
    return entry.trial.plan(find(target), seed)


OF_GO = tuple(each for each in ENTRIES if isinstance(each.trial, SmallPlan))
FAIL = tuple(each for each in OF_GO if plan_of(each.red, each, 1).listener)


@pytest.mark.parametrize("entry", OF_GO, ids=lambda each: each.id)
def test_both_sides_do_the_same(entry: Entry) -> None:
    """And another seed is another plan."""
    red, green = (plan_of(target, entry, 1).to_json() for target in (entry.red, entry.green))
    assert red == green
    assert plan_of(entry.red, entry, 2).to_json() != red
    assert entry.red.partition("+")[0] == entry.green.partition("+")[0]


@pytest.mark.parametrize("entry", FAIL, ids=lambda each: each.id)
def test_what_fails_has_messages_behind_it(entry: Entry) -> None:
    """Where nothing follows, nothing is passed."""
    for seed in range(20):
        numbers = {rule.number for rule in plan_of(entry.red, entry, seed).listener} - {None}
        assert 1 < min(number or 0 for number in numbers) < MESSAGES
