"""What a clause asks of the configuration stands beside it: nothing is guessed of a system of which it is not told."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from specs.clauses.catalogue import all_clauses, get
from specs.clauses.clause import Clause
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.plan.config import ALLOWED_BY_JUDGES, NOTHING_IS_LOST, Config, OtherConfig, config_of
from specs.profiles import load
from specs.verdicts.examine import examine
from specs.verdicts.verdict import ClauseVerdict, conclude

KNOWN = {field.name for field in fields(Config)}
ASKED: set[str] = set()


class Watched(Config):
    """Notes what is read of it."""

    __slots__ = ()

    def __getattribute__(self, name: str) -> Any:
        if name in KNOWN:
            ASKED.add(name)
        return object.__getattribute__(self, name)


def watched(config: Config) -> Config:
    found = object.__new__(Watched)
    for name in KNOWN:
        object.__setattr__(found, name, object.__getattribute__(config, name))
    return found


BY_DEFAULT = {
    "ORD-12": {"consume_from"},
    "ORD-16": {"broker_lease_ms", "client_lease_ms"},
    "ORD-17": {"consume_from"},
    "SND-10": {"delay_levels"},
}
"""ORD-12 takes a group to begin with the first message where nobody says otherwise. ORD-16 asks whether leases are told
at all, and has a bound for either case. ORD-17 says nothing of a handover where nobody tells where groups begin. SND-10
caps a level at the table's last: where there is no table, it compares what rows say."""


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_a_clause_says_what_it_asks_of_the_configuration(clause: Clause) -> None:
    """All that its judge reads in its own transcript, and its premises; of nothing that does not exist."""
    asked: set[str] = set()
    for example in clause.examples:
        info, rows = parse_history(example.text)
        info = replace(info, config=watched(info.config))
        ASKED.clear()
        examine(rows, info, (clause,))
        asked |= ASKED
    said = clause.settings.union(*(premise.settings for premise in clause.premise))
    free = ALLOWED_BY_JUDGES | NOTHING_IS_LOST | BY_DEFAULT.get(clause.id, set())
    assert asked - free <= said
    assert said <= KNOWN


def test_a_lease_that_nobody_told_is_not_judged() -> None:
    """Two grants that overlap under RocketMQ's minute; of another system nobody knows how long they last."""
    info, rows = parse_history(get("LSE-1").shortest_violation)
    foreign = replace(info, config=config_of({"system": "mine", "mode": "orderly"}))
    told = replace(info, config=config_of({"system": "mine", "broker_lease_ms": 60_000}))
    verdicts = {}
    for name, each in (("rocketmq", info), ("untold", foreign), ("told", told)):
        found = conclude(examine(rows, each), each, load("reference"))
        (verdicts[name],) = [judged for judged in found.clauses if judged.id == "LSE-1"]
    assert verdicts["rocketmq"].verdict is verdicts["told"].verdict is ClauseVerdict.REFUTED
    assert verdicts["untold"].verdict is ClauseVerdict.NOT_CLAIMED
    assert verdicts["untold"].reason == "its premise is not met: mine's broker_lease_ms told"


def test_of_rocketmq_its_own_defaults_are_known() -> None:
    """No clause is lost by this rule where the system is RocketMQ, and some are judged of whatever system."""
    info, _ = parse_history("config batch=1\n")
    foreign = replace(info, config=OtherConfig(name="mine"))
    assert not any(
        (premise := clause.unmet(info)) is not None and premise.name.endswith(" told")
        for clause in all_clauses()
    )
    judged = {clause.id for clause in all_clauses() if clause.unmet(foreign) is None}
    assert {"ORD-5", "ORD-7", "CMT-9", "SND-1"} <= judged
    assert not {"ORD-2", "LSE-1", "LSE-5", "RTY-1", "LIV-2"} & judged


@pytest.mark.parametrize(
    ("told", "is_met"), [(5, True), (1, False), ("many", False), (None, False)]
)
def test_what_another_system_says_in_words_is_no_number(told: object, is_met: bool) -> None:
    """Its settings are handed in as they are: nobody has looked at their types."""
    info = RunInfo("r", config=config_of({"system": "kafka", "in_flight": told}))
    unmet = get("ORD-15").unmet(info)
    assert (unmet is None or unmet.name != "in flight") is is_met
