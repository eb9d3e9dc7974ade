"""Mutants on sockets: refuted by the clause that each names, as a user would have them judged."""

from __future__ import annotations

from pathlib import Path

import pytest

from conformance.parts.processes import living
from conformance.run import run
from conformance.targets.base import Asked, find
from conformance.targets.mutant_tcp import mutant
from conformance.wire.runner import SHORT_LEASES, orderly_plan
from conformance.wire.target import WireTarget
from specs import profiles
from specs.errors import UsageError
from specs.history.store import open_history
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, RunVerdict


@pytest.mark.parametrize("name", ["takeover-keeps-old-owner", "key-without-queue-id"])
def test_a_mutant_of_the_lease_table_is_refuted_over_the_wire(name: str, tmp_path: Path) -> None:
    """One by a clause, from the history; one by a wire rule, that no well-behaved client notices."""
    target = find(f"mutant+tcp:{name}")
    assert isinstance(target, WireTarget)
    asked = Asked(seed=1, examples=3, floor=1, out=tmp_path / "run")
    verdict = target.search(profiles.load(target.profile), asked).verdict
    assert verdict.verdict is RunVerdict.REFUTED
    refuted = {judged.id for judged in verdict.of(ClauseVerdict.REFUTED)}
    assert target.sought in refuted
    assert verdict.info.parties["broker"] == f"inorder mutant {name}"
    assert open_history(tmp_path / "run").info.target == f"mutant+tcp:{name}"
    assert living() == []


@pytest.mark.long
def test_a_mutant_of_the_consumer_is_refuted_by_a_plan_on_a_store(tmp_path: Path) -> None:
    """And the broker's store lies on a disk. In real time one plan may give no lane to anybody for long enough."""
    target = mutant("renewal-forgotten:sync")
    plans = (orderly_plan(SHORT_LEASES, "", seed, 120, broker="b0") for seed in range(1, 6))
    histories = (run(plan, target, tmp_path / str(seed)) for seed, plan in enumerate(plans))
    refuted = next(
        each for each in histories if target.sought in examine(each.rows(), each.info).refuted()
    )
    assert refuted.info.parties["client"] == "inorder mutant renewal-forgotten"


@pytest.mark.parametrize(
    ("argument", "sentence"),
    [
        (None, "needs the name of a mutant"),
        ("key-without-queue", "did you mean key-without-queue-id"),
        ("key-without-queue-id:paper", "may follow sync or async"),
        ("key-without-queue-id:", "may follow sync or async"),
    ],
)
def test_a_wrong_name_is_told_in_a_sentence(argument: str | None, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        mutant(argument)
