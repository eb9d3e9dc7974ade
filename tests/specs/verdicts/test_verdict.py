"""From tallies and a profile to verdicts: the lattice, the parties, the checks of the run itself."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from specs.clauses.catalogue import all_clauses, get, select
from specs.clauses.certainty import told_of
from specs.clauses.clause import Clause
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared
from specs.history.telling import MUST_TELL
from specs.history.text import parse_history
from specs.plan.config import Config, config_of
from specs.profiles import Claim, Profile, Status, load
from specs.verdicts.examine import examine, find_violations, witness
from specs.verdicts.tally import Examination, Found, RunFacts, Tally, merged
from specs.verdicts.verdict import (
    ClauseVerdict,
    Judged,
    NotJudged,
    RunVerdict,
    Verdict,
    conclude,
    judge_clause,
)
from specs.vocabulary import OF_A_CLIENT, Kind, Level, Outcome, Party

OURS = {
    "broker": "inorder reference",
    "client": "inorder reference",
    "producer": "inorder reference",
}
APACHE = {**OURS, "broker": "Apache RocketMQ 5.4.0"}
UNKNOWN: dict[str, str] = {}
INFO = RunInfo(run="r", parties=OURS)

LOCKS = get("LSE-1")  # the broker's
CALLS = get("LSE-3")  # the client's
BOTH = get("LSE-2")  # the pair's


def profile(**claims: Status) -> Profile:
    lines = {
        name.replace("_", "-"): Claim(status, "here", "because") for name, status in claims.items()
    }
    return Profile("p", "p", lines)


def told(opportunities: int = 0, violations: int = 0, possible: int = 0) -> Tally:
    """A tally in which one kind of finding was made so often."""
    found = (
        {"seen": Found(violations, possible, certain=violations > 0)}
        if violations or possible
        else {}
    )
    return Tally(opportunities, found)


CLAIMED = profile(LSE_1="claimed", LSE_2="claimed", LSE_3="claimed")


@pytest.mark.parametrize(
    ("tally", "expected"),
    [
        (told(opportunities=5), ClauseVerdict.UPHELD),
        (told(opportunities=5, violations=1), ClauseVerdict.REFUTED),
        (told(opportunities=1, violations=1), ClauseVerdict.REFUTED),
        (told(opportunities=5, possible=1), ClauseVerdict.POSSIBLE),
        (told(opportunities=5, possible=1, violations=1), ClauseVerdict.REFUTED),
        (told(opportunities=4), ClauseVerdict.NOT_EXERCISED),
        (Tally(), ClauseVerdict.NOT_EXERCISED),
    ],
)
def test_a_claimed_clause(tally: Tally, expected: ClauseVerdict) -> None:
    """Refuted before possible before not exercised before upheld; the floor is five."""
    judged = judge_clause(LOCKS, tally, INFO, CLAIMED, floor=5)
    assert judged.verdict is expected
    assert judged.violations == tally.violations + tally.possible
    assert bool(judged.reason) == (
        expected in (ClauseVerdict.NOT_EXERCISED, ClauseVerdict.POSSIBLE)
    )


def test_a_profile_allows_and_leaves_out() -> None:
    """Allowed only when there is something to allow; what does not apply is not judged."""
    broken, fine = told(opportunities=5, violations=1), told(opportunities=5)
    allows, leaves_out = profile(LSE_1="allowed"), profile(LSE_1="not_applicable")
    assert judge_clause(LOCKS, broken, INFO, allows, 1).verdict is ClauseVerdict.ALLOWED
    assert judge_clause(LOCKS, broken, INFO, allows, 1).reason == "because"
    assert judge_clause(LOCKS, fine, INFO, allows, 1).verdict is ClauseVerdict.UPHELD
    assert judge_clause(LOCKS, broken, INFO, leaves_out, 1).verdict is ClauseVerdict.NOT_CLAIMED
    assert judge_clause(LOCKS, broken, INFO, profile(), 1).verdict is ClauseVerdict.NOT_CLAIMED


@pytest.mark.parametrize(
    ("clause", "parties", "claimed"),
    [
        (LOCKS, OURS, True),
        (LOCKS, APACHE, True),
        (LOCKS, UNKNOWN, True),
        (CALLS, OURS, True),
        (CALLS, APACHE, False),
        (CALLS, {**OURS, "client": "Apache Java client 5.4.0"}, True),
        (LOCKS, {**OURS, "client": "Apache Java client 5.4.0"}, False),
        (BOTH, APACHE, True),
        (BOTH, OURS, True),
    ],
)
def test_our_own_code_on_a_foreign_target_is_not_claimed(
    clause: Clause, parties: Mapping[str, str], claimed: bool
) -> None:
    """Testing our consumer says nothing about their broker; a pair is claimed as soon as one of it is theirs."""
    judged = judge_clause(
        clause, told(opportunities=5, violations=1), replace(INFO, parties=parties), CLAIMED, 1
    )
    assert judged.verdict is (ClauseVerdict.REFUTED if claimed else ClauseVerdict.NOT_CLAIMED)
    roles = {
        Party.BROKER: ("broker",),
        Party.CLIENT: ("client",),
        Party.PAIR: ("client", "broker"),
    }[clause.party]
    assert judged.implementations == tuple(parties.get(role, "unknown") for role in roles)


def run(
    *tallies: Tally,
    facts: RunFacts | None = None,
    info: RunInfo = INFO,
    require_exercised: bool = False,
    profile: Profile = CLAIMED,
) -> Verdict:
    """The verdict of a run in which LSE-1 and LSE-2 came to the tallies."""
    clauses = select(("LSE-1", "LSE-2"))
    found = dict(zip(("LSE-1", "LSE-2"), tallies, strict=False))
    examination = Examination(found, facts or RunFacts(rows=10))
    return conclude(
        examination, info, profile, clauses=clauses, require_exercised=require_exercised
    )


GOOD, BAD, MAYBE, IDLE = told(5), told(5, 1), told(5, 0, 1), Tally()


@pytest.mark.parametrize(
    ("tallies", "expected", "code"),
    [
        ((GOOD, GOOD), RunVerdict.UPHELD, 0),
        ((GOOD, IDLE), RunVerdict.UPHELD, 0),
        ((GOOD, BAD), RunVerdict.REFUTED, 1),
        ((MAYBE, BAD), RunVerdict.REFUTED, 1),
        ((GOOD, MAYBE), RunVerdict.INCONCLUSIVE, 2),
        ((IDLE, IDLE), RunVerdict.INCONCLUSIVE, 2),
        ((), RunVerdict.INCONCLUSIVE, 2),
    ],
)
def test_the_verdict_of_a_run(tallies: tuple[Tally, ...], expected: RunVerdict, code: int) -> None:
    """Refuted before inconclusive before upheld; nothing upheld is inconclusive, never an empty pass."""
    verdict = run(*tallies)
    assert verdict.verdict is expected
    assert verdict.exit_code == code


def test_what_cannot_be_trusted_is_inadmissible_whatever_was_found() -> None:
    """Exit 70: the history itself is at fault."""
    verdict = run(GOOD, BAD, facts=RunFacts(rows=10, broken=["seq 4 does not follow seq 7"]))
    assert verdict.verdict is RunVerdict.INADMISSIBLE
    assert verdict.exit_code == 70
    assert verdict.distrust == "the history can't be trusted: seq 4 does not follow seq 7"
    assert str(verdict) == f"inadmissible under {verdict.profile}: {verdict.distrust}"
    assert run(GOOD, BAD).distrust == ""


def test_what_makes_a_run_inconclusive() -> None:
    """A fault without effect, too small a workload, two subscriptions, a claimed clause that was not at stake."""
    assert (
        run(GOOD, facts=RunFacts(faults=[("pause c1", False)])).verdict is RunVerdict.INCONCLUSIVE
    )
    assert run(GOOD, facts=RunFacts(faults=[("pause c1", True)])).verdict is RunVerdict.UPHELD
    assert run(GOOD, info=replace(INFO, workload_floor=3)).verdict is RunVerdict.INCONCLUSIVE
    assert (
        run(
            GOOD, info=replace(INFO, workload_floor=3), facts=RunFacts(sends=2, deliveries=1)
        ).exit_code
        == 0
    )
    assert (
        run(GOOD, facts=RunFacts(subscriptions_differ=["billing"])).verdict
        is RunVerdict.INCONCLUSIVE
    )
    assert run(GOOD, IDLE, require_exercised=True).verdict is RunVerdict.INCONCLUSIVE
    assert (
        run(GOOD, BAD, facts=RunFacts(faults=[("pause c1", False)])).verdict is RunVerdict.REFUTED
    )


def test_an_allowed_deviation_does_not_fail_a_run() -> None:
    """It is reported, and the rest decides."""
    verdict = run(GOOD, BAD, profile=profile(LSE_1="claimed", LSE_2="allowed"))
    assert verdict.verdict is RunVerdict.UPHELD
    assert [judged.id for judged in verdict.of(ClauseVerdict.ALLOWED)] == ["LSE-2"]


def test_the_specific_clause_speaks_for_the_general_one() -> None:
    """LSE-8 refines LSE-1: same last event, so LSE-1 steps back, but stays refuted."""
    info, rows = parse_history(get("LSE-8").shortest_violation)
    verdict = conclude(examine(rows, info), info, load("reference"))
    by_id = {judged.id: judged for judged in verdict.clauses}
    assert by_id["LSE-8"].reason == ""
    assert by_id["LSE-1"].verdict is ClauseVerdict.REFUTED
    assert by_id["LSE-1"].reason == "shown as LSE-8"
    info, rows = parse_history(get("LSE-1").shortest_violation)
    alone = conclude(examine(rows, info), info, load("reference"))
    assert {judged.id: judged.reason for judged in alone.clauses}["LSE-1"] == ""


@pytest.mark.parametrize("clause_id", ["LSE-1", "LSE-2", "LSE-8", "CMT-5"])
def test_only_a_definite_order_refutes(clause_id: str) -> None:
    """Where several clients have clocks of their own, an error that could change what came first leaves it open."""
    text = get(clause_id).shortest_violation
    found = {}
    for bound_us in (5, 70_000_000):
        info, rows = parse_history(f"config clock_bound_us={bound_us}\n{text}")
        tally = examine(rows, info).tallies[clause_id]
        found[bound_us] = (tally.violations, tally.total().certain)
    assert found == {5: (1, True), 70_000_000: (0, False)}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "0ms  shop  sends  t/b/0  id=m1 ok\n1ms  shop  sends  t/b/0  id=m1 ok",
            "message id m1 was sent twice",
        ),
        (
            "0ms  shop  sends  t/b/0  id=m1 attempt=1 ok\n1ms  shop  sends  t/b/0  id=m1 attempt=2 ok",
            "",
        ),
        ("0ms  shop  sends  t/b/0  id=m1 ok\n1ms  b  sends  t/b/0  id=m1 level=store ok", ""),
    ],
)
def test_ids_are_unique(text: str, said: str) -> None:
    """One message id is one send, or its tries; a broker's own record shows the same send again."""
    info, rows = parse_history(text)
    rows = [row._replace(level=rows[0].level) if row.client_id == "shop" else row for row in rows]
    assert "; ".join(examine(rows, info).facts.broken)[: len(said) or None] == said


@pytest.mark.parametrize("kind", sorted(Kind))
def test_who_did_it_is_named_where_somebody_must_have(kind: Kind) -> None:
    info, (row,) = parse_history("0ms  alice  locks  g/t/b/0  offset=1 value=1 id=m1 ok")
    broken = examine([row._replace(kind=kind, client_id=None)], info).facts.broken
    said = [f"seq 1 is a {kind} that names no client"]
    assert broken == (said if kind in OF_A_CLIENT else [])
    assert not examine([row._replace(kind=kind)], info).facts.broken
    by_a_store = row._replace(kind=kind, level=Level.STORE, client_id=None)
    assert not examine([by_a_store], info).facts.broken


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name, kinds in MUST_TELL.items() for kind in sorted(kinds)],
)
def test_a_row_that_lacks_what_makes_it_one_is_not_trusted(name: str, kind: Kind) -> None:
    info, (row,) = parse_history("0ms  alice  locks  g/t/b/0  offset=1 value=1 id=m1 ok")
    broken = examine([row._replace(kind=kind, **{name: None})], info).facts.broken
    lacks = "names no client" if name == "client_id" else f"has no {name}"
    assert broken == [f"seq 1 is a {kind} that {lacks}"]
    for other in ({"outcome": Outcome.REFUSED}, {"level": Level.WIRE}):
        without = row._replace(kind=kind, **{name: None, **other})
        assert bool(examine([without], info).facts.broken) is (name == "client_id")


@pytest.mark.parametrize(
    ("changed", "is_told"),
    [
        ({}, False),
        ({"incarnation": None}, True),
        ({"incarnation": None, "client_id": "bob"}, False),
        ({"incarnation": None, "group": "audit"}, False),
        ({"incarnation": None, "level": Level.STORE}, False),
        ({"incarnation": None, "kind": Kind.PULL}, False),
        ({"incarnation": None, "run": "next"}, False),
    ],
)
def test_a_client_names_its_incarnations_always_or_never(
    changed: Mapping[str, Any], is_told: bool
) -> None:
    info, rows = parse_history(
        "0ms  alice  adds  g/t/b/0  value=0\n"
        "1ms..2ms  alice  delivers  g/t/b/0  offset=0 id=m0 success\n"
        "3ms..4ms  alice  commits  g/t/b/0  value=1 ok"
    )
    rows[-1] = rows[-1]._replace(**changed)
    said = [f"seq {rows[-1].seq_begin} names no incarnation, as other rows of its client do"]
    assert examine(rows, info).facts.broken == (said if is_told else [])
    nobodys = [row._replace(incarnation=None) for row in rows]
    assert not examine(nobodys, info).facts.broken


def test_a_history_with_a_hole_in_its_order_is_not_trusted() -> None:
    """Numbers that go back, ends before begins, clocks that run backwards."""
    info, rows = parse_history("0ms..3ms  a  locks  g/t/b/0  ok\n1ms..2ms  b  locks  g/t/b/0  ok")
    first, second = rows
    assert examine(rows, info).facts.broken == []
    assert "does not follow" in examine([second, first], info).facts.broken[0]
    assert (
        "ends before it begins"
        in examine([first._replace(ended_us=-1), second], info).facts.broken[0]
    )
    assert (
        "runs backwards" in examine([first, second._replace(started_us=-5)], info).facts.broken[0]
    )


def test_the_run_facts_are_counted() -> None:
    """Sends, deliveries, faults with their effect, subscriptions that differ."""
    info, rows = parse_history(
        """
        0ms   shop   sends     orders/b0/0          id=m1 ok
        1ms   alice  joins     billing              view=orders:*
        2ms   bob    joins     billing              view=orders:red
        3ms   alice  delivers  billing/orders/b0/0  offset=0 id=m1 success
        4ms..5ms  rig  suffers  -                   detail='pause alice' refused
        """
    )
    facts = examine(rows, info).facts
    assert (facts.rows, facts.sends, facts.deliveries) == (5, 1, 1)
    assert facts.faults == [("pause alice", False)]
    assert facts.subscriptions_differ == ["billing"]


def test_merged_examinations_keep_the_first_certain_witness() -> None:
    """Sums, and the witness of a certain violation before that of a possible one."""
    info, rows = parse_history(get("LSE-1").shortest_violation)
    sure = examine(rows, info, (LOCKS,))
    # A tap that tells no epochs: the broker may have been started anew in between.
    info, rows = parse_history(get("LSE-1").shortest_violation.replace("  ok", "  level=tap ok"))
    unsure = examine(rows, info, (LOCKS,))
    total = merged([unsure, sure, sure])
    tally = total.tallies["LSE-1"]
    assert (tally.opportunities, tally.violations, tally.possible) == (3, 2, 1)
    assert tally.total().certain
    assert total.refuted() == ("LSE-1",)
    assert total.facts.rows == 6


def test_a_clause_whose_premise_the_run_does_not_meet_is_not_claimed() -> None:
    """It is not judged either: what is no promise there can't be broken there."""
    clause = get("RTY-8")
    info, rows = parse_history(clause.shortest_violation)
    other = replace(info, config=replace(info.config, mode="concurrent"))
    assert examine(rows, info, (clause,)).refuted() == ("RTY-8",)
    found = examine(rows, other, (clause,))
    assert found.refuted() == ()
    (judged,) = conclude(found, other, load("reference"), clauses=(clause,)).clauses
    assert judged.verdict is ClauseVerdict.NOT_CLAIMED
    assert judged.reason == "its premise is not met: orderly"


CALLS_ONLY = declared(client=(Kind.DELIVER, Kind.ADD))


def test_what_nobody_recorded_is_not_recorded() -> None:
    """However often a clause looks at stake: without the rows that it needs, nothing is said for it or against it."""
    info, rows = parse_history(
        """
        0ms  alice  adds      billing/orders/b0/0  value=0
        1ms  alice  delivers  billing/orders/b0/0  offset=0 id=m1 success
        """
    )

    def judged(records: Mapping[str, tuple[str, ...]] | None) -> Judged:
        told = replace(info, records=records)
        (found,) = conclude(
            examine(rows, told, (CALLS,)), told, load("reference"), clauses=(CALLS,)
        ).clauses
        return found

    assert (
        judged(None).verdict is ClauseVerdict.REFUTED
    )  # a closed world: whoever had a lease would be in it
    assert (judged(CALLS_ONLY).verdict, judged(CALLS_ONLY).reason) == (
        ClauseVerdict.NOT_RECORDED,
        "the history does not tell lock",
    )


def test_what_is_not_recorded_survives_the_sum_of_runs() -> None:
    """Two runs that both lack it; and where one of them could judge the clause, it was judged."""
    lacking, fine = (
        Examination({"LSE-3": Tally(missing=("lock",))}),
        Examination({"LSE-3": told(5)}),
    )
    assert merged([lacking, lacking]).tallies["LSE-3"].missing == ("lock",)
    assert (
        merged([lacking, fine]).tallies["LSE-3"]
        == merged([fine, lacking]).tallies["LSE-3"]
        == told(5)
    )


def test_a_verdict_names_the_findings_that_count() -> None:
    """First the one of which the witness is; what a profile allows by name is left out."""
    several = Tally(5, {"b": Found(1, certain=True), "a": Found(0, 1), "c": Found(2, certain=True)})
    assert judge_clause(LOCKS, several, INFO, CLAIMED, 1).findings == ("b", "c", "a")
    allows = Profile("p", "p", {"LSE-1": Claim("allowed", "here", "because", ("b", "c"))})
    left = judge_clause(LOCKS, several, INFO, allows, 1)
    assert (left.verdict, left.findings) == (ClauseVerdict.POSSIBLE, ("a",))
    allows = Profile("p", "p", {"LSE-1": Claim("allowed", "here", "because", ("a", "b", "c"))})
    assert judge_clause(LOCKS, several, INFO, allows, 1).findings == ("b", "c", "a")


def test_our_own_clients_on_a_foreign_broker_when_that_is_the_question() -> None:
    info = RunInfo(run="r", parties=APACHE)
    tally = told(opportunities=50)
    usually = judge_clause(CALLS, tally, info, load("reference"), 1)
    asked = judge_clause(CALLS, tally, info, load("reference"), 1, ours_too=True)
    assert (usually.verdict, asked.verdict) == (ClauseVerdict.NOT_CLAIMED, ClauseVerdict.UPHELD)


def test_why_nothing_came_of_a_clause_is_a_word_of_its_own() -> None:
    """Six reasons, of which five are called not claimed: a reader of the numbers has to tell them apart."""
    orderly, broadcast = RunInfo("r"), RunInfo("r", config=Config(message_model="broadcasting"))
    foreign = RunInfo("r", config=config_of({"system": "mine", "mode": "orderly"}))
    told_by_nobody, claims = Tally(missing=("lock",)), profile(LSE_1="claimed", ORD_11="claimed")

    def why(
        clause: Clause, tally: Tally, info: RunInfo, lack: str | None = None
    ) -> NotJudged | None:
        judged = judge_clause(clause, tally, info, claims, 1, lack)
        assert judged.to_json().get("not_judged") == judged.not_judged
        return judged.not_judged

    assert why(get("ORD-2"), Tally(), orderly) is NotJudged.NOT_PROMISED
    assert why(get("ORD-11"), Tally(), broadcast) is NotJudged.PREMISE
    assert why(LOCKS, Tally(), foreign) is NotJudged.NO_SETTING
    assert why(LOCKS, Tally(), orderly, "such a run lacks it") is NotJudged.OUT_OF_REACH
    assert why(LOCKS, told_by_nobody, orderly) is NotJudged.NOT_RECORDED
    assert why(LOCKS, told(opportunities=1), orderly) is None
    assert why(LOCKS, Tally(), orderly) is None  # never at stake
    on_foreign = replace(INFO, parties={**OURS, "client": "Apache Java client 5.4.0"})
    assert why(LOCKS, told(opportunities=1), on_foreign) is NotJudged.OWN_CODE


def test_a_finding_whose_name_rests_on_other_rows_is_told_as_well() -> None:
    """That the client was leaving is no evidence of CMT-13, and by the evidence alone it has the other name."""
    text = """
        config guard_slack_ms=0
        0ms         alice  adds      billing/orders/b0/3   value=17
        1ms..5ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
        6ms..20ms   alice  leaves    billing
        8ms         alice  unlocks   billing/orders/b0/3   inc=1 sent
    """
    info, rows = parse_history(text)
    (found,) = find_violations(get("CMT-13"), rows, info)
    assert found.name == "released-while-leaving"
    shown, said = witness(get("CMT-13"), found, info)
    assert shown == found.rows
    assert said.startswith(
        "alice gave billing/orders/b0/3 back at 0.008 s without having committed 18"
    )


@pytest.mark.parametrize("clause", all_clauses(), ids=lambda clause: clause.id)
def test_runs_of_one_file_are_judged_each_by_itself(clause: Clause) -> None:
    """What is found in all examples that are told alike, one run after the other, is what is found in each.

    Not where nobody says what is recorded: of that all rows of the file tell.
    """
    alike: dict[str, tuple[RunInfo, list[list[Row]]]] = {}
    for example in clause.examples:
        info, rows = parse_history(example.text)
        info = replace(info, run="", seed=None)
        if told_of(info) is None:
            continue
        alike.setdefault(repr(info), (info, []))[1].append(rows)
    for info, histories in alike.values():
        runs = [
            [row._replace(run=f"run-{number:03}") for row in rows]
            for number, rows in enumerate(histories)
        ]
        of_each = [examine(rows, info, (clause,)).tallies[clause.id] for rows in runs]
        of_all = examine([row for rows in runs for row in rows], info, (clause,)).tallies[clause.id]
        assert (of_all.opportunities, of_all.violations, of_all.possible) == (
            sum(tally.opportunities for tally in of_each),
            sum(tally.violations for tally in of_each),
            sum(tally.possible for tally in of_each),
        )
