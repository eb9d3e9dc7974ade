"""A clause is at stake in the trouble as often as it was between a fault's begin and its end, and at the reading."""

from __future__ import annotations

from chaos.runner import twin_plan
from chaos.scenario import load
from chaos.twin import play
from inorder.evidence.chaos_grid.at_stake import Trouble, at_stake, trouble_of
from inorder.evidence.chaos_grid.cells import verb_of
from specs.clauses.catalogue import get
from specs.verdicts.examine import examine
from specs.verdicts.tally import FaultTold


def test_trouble_lasts_until_the_slowest_lane_went_on() -> None:
    first = FaultTold("cut everybody b0", True, 1000, 2000, "", lanes=2, recovered_ms=700)
    second = FaultTold("crash c1", True, 1500, 2100, "", lanes=1, recovered_ms=10)
    assert trouble_of((first, second), 5_000_000) == Trouble(6_000_000, 7_701_000)
    assert trouble_of((), 5_000_000) == Trouble()
    assert verb_of(first) == "cut"


def test_inside_and_outside_make_the_whole() -> None:
    twin = play(twin_plan(load("consumer-killed"), 1))
    clauses = [get("ORD-2"), get("SND-1")]
    everything = examine(twin.rows, twin.info, clauses).tallies
    told = {id: tally.opportunities for id, tally in everything.items()}
    assert at_stake(twin.rows, twin.info, clauses, Trouble()) == told
    fault = twin.faults[0]
    inside = at_stake(twin.rows, twin.info, clauses, Trouble(fault.from_us, fault.to_us))
    before = at_stake(twin.rows, twin.info, clauses, Trouble(None, fault.from_us - 1))
    after = at_stake(twin.rows, twin.info, clauses, Trouble(fault.to_us + 1, None))
    assert inside["ORD-2"] + before["ORD-2"] + after["ORD-2"] == told["ORD-2"]
    assert 0 < inside["ORD-2"] < told["ORD-2"]
    assert inside["SND-1"] == told["SND-1"]  # judged by what is read back
