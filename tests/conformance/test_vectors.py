"""The reference gives what the tables of vectors say, and a mutant of a tabulated function does not."""

from __future__ import annotations

import pytest

from conformance.vectors import differences, wrong_queues
from reference_impl.core.producer import Producer, ProducerConfig
from reference_impl.mutants import VECTORS, Mutant, all_mutants
from specs.clauses.catalogue import catalogue
from specs.errors import SpecError
from specs.vocabulary import Queue


@pytest.mark.parametrize("clause", [each.id for each in catalogue() if each.vectors])
def test_the_reference_is_its_table(clause: str) -> None:
    assert differences(clause) == []


@pytest.mark.parametrize("mutant", all_mutants(VECTORS), ids=lambda mutant: mutant.name)
def test_the_mutant_is_not(mutant: Mutant) -> None:
    assert differences(mutant.killed_by, mutant) != []


def test_a_clause_without_a_table_is_said() -> None:
    with pytest.raises(SpecError, match="no table of vectors decides SND-1"):
        differences("SND-1")


def test_anybodys_choice_is_held_against_the_table() -> None:
    select = Producer(ProducerConfig("p1", "producers", ())).select

    def choose(key: str, count: int) -> int | str:
        return select(key, [Queue("orders", "b0", number) for number in range(count)]).queue_id

    rows, wrong = wrong_queues("ORD-6", choose)
    assert (rows > 40, wrong) == (True, [])
    _, wrong = wrong_queues(
        "ORD-6", lambda key, count: "no queue" if key == "GydZG_" else choose(key, count)
    )
    assert len(wrong) == 3
    assert "key 'GydZG_' gets none (no queue) of 3 instead of queue 2" in wrong[0]
