"""The laws over all clauses: they hold of the judges as they are, in both engines, and each can be broken."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from conformance.machines.cluster import Collector, Run
from conformance.runner import run_machine
from inorder.evidence import laws
from inorder.evidence.laws import (
    LEFT_BROKEN,
    TAKEN_AWAY,
    Hearing,
    hear_broken,
    hear_kept,
    hear_valid,
)
from specs.clauses.clause import Clause
from specs.clauses.stored import is_marker
from specs.facts import findings
from specs.facts.run_context import RunContext
from specs.history.row import Row
from specs.verdicts import examine as examining
from specs.vocabulary import Kind, Outcome

SPARK_TESTS = Path(__file__).parents[2] / "spark_checkers"
PLANS = 2


@cache
def drawn() -> tuple[laws.History, ...]:
    """Histories of the correct reference."""
    found: list[laws.History] = []

    def take(run: Run) -> None:
        found.append((run.info, run.rows))

    run_machine(Collector(lambda refuted: (), on_run=take, config={"mode": "orderly"}), 21, PLANS)
    return tuple(found)


def shorter() -> laws.History:
    return min(drawn(), key=lambda history: len(history[1]))


def heard(*only: str, histories: Sequence[laws.History] = ()) -> Hearing:
    hearing = Hearing()
    for history in histories or drawn():
        hear_valid(history, hearing, laws=only or TAKEN_AWAY)
    return hearing


def broken() -> Hearing:
    hearing = Hearing()
    for clause, histories in laws.broken_transcripts():
        hear_broken(clause, histories, hearing)
    return hearing


@pytest.mark.parametrize("histories", ["one", pytest.param("all", marks=pytest.mark.long)])
def test_nothing_is_refuted_for_what_is_missing_unknown_or_timed_otherwise(histories: str) -> None:
    assert heard(histories=[shorter()] if histories == "one" else drawn()).reasons == []


def test_the_laws_hold_where_messages_are_leased_one_by_one() -> None:
    assert heard(histories=laws.leased()).reasons == []


NOT_CORRECT = (
    "RTY-1: nobody knows whether the offset was reset, which may happen after the answer was given up as well",
    "CMT-4: she was told to go back in this life, and reports it late",
)
"""What a clause lets pass only for what it saw before: a reset, or a broker's correction, of which somebody learns
in the moments after it, just before the first row."""
ONE_NAME = (
    "ORD-2: she left and joined again, and her incarnations have one number, as where no ADD is recorded",
    "ORD-2: what she is added for is not what she works on after she joined again",
    "RTY-3: she left and came again, and what the incarnation of that name added was before",
    "CMT-4: she left and came again, and counts her incarnations anew",
    "CMT-4: she died, and whoever has her name counts incarnations anew",
    "CMT-4: what she had committed before she left was answered only after she had come again",
)
"""Two incarnations have one name, and what tells them apart is not recorded: that they are one the recorder claims."""
HEEDED = (
    "ORD-2: the broker told it to go on further back, as its store had been cut",
    "ORD-3: what was put back was removed meanwhile",
    "ORD-3: the broker said that nothing lies there any more",
    "RTY-2: a pull is told to go on further back, and 17 comes with what lies before it",
    "RTY-2: her pull is told to go on further ahead, and a client before 5.2 waits for ten seconds",
    "RTY-2: likewise where she was told to go on further back while the call ran",
    "RTY-9: a pull was told to go on further back, and she begins anew from there",
    "RTY-4: 17 was put back on the server, which keeps it no longer",
    "RTY-7: the broker keeps 17 no longer",
)
"""What excuses where it is told, and is taken for what did not happen where a log does not record it: else nothing
would be certain in the logs that most systems write (docs/soundness.md)."""


def test_what_is_kept_stays_kept_where_less_of_it_is_told() -> None:
    hearing = Hearing()
    for clause, histories in laws.kept_transcripts():
        hear_kept(clause, histories, hearing)
    known = (*NOT_CORRECT, *ONE_NAME, *HEEDED)
    assert [each for each in hearing.reasons if not any(why in each for why in known)] == []
    assert [why for why in known if not any(why in each for each in hearing.reasons)] == []


def test_what_is_broken_stays_broken() -> None:
    assert broken().reasons == []


@pytest.mark.long
def test_most_clauses_are_at_stake_where_the_laws_are_held() -> None:
    """A law that meets no clause at stake would hold of nothing."""
    hearing = Hearing(least=1)
    for history in (*laws.played(), *laws.leased(), *drawn()):
        hear_valid(history, hearing, laws=("the end missing",))
    assert hearing.reasons == []
    assert len(hearing.lacking(("the end missing",))) < 3


REVERTED = {
    "a party missing": (Clause, "stands_in", lambda self, info, **_: True),
    "a kind missing": (Clause, "missing", lambda self, known: frozenset()),
    "other clocks": (findings, "is_quiet", lambda evidence, others, bound_us: True),
    "answers unknown": (Clause, "stands_in", lambda self, info, **_: True),
}
"""Of each law a mend without which it is broken."""


@pytest.mark.long
@pytest.mark.parametrize("law", REVERTED)
def test_a_law_is_broken_again_without_its_mend(law: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, name, as_it_was = REVERTED[law]
    monkeypatch.setattr(laws, "BOUND_US", 300_000)  # clocks so far apart turn more round
    monkeypatch.setattr(where, name, as_it_was)
    assert any(reason.startswith(law) for reason in heard(law).reasons)


@pytest.mark.long
def test_a_missing_begin_is_broken_again_where_nobody_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """That the history begins late is what keeps clauses from accusing: of what was given up before, say."""
    law = "the begin missing"

    def untold(history: laws.History) -> Iterator[laws.History]:
        for info, rows in TAKEN_AWAY[law](history):
            yield replace(info, begins_late=False), rows

    monkeypatch.setattr(laws, "TAKEN_AWAY", {**TAKEN_AWAY, law: untold})
    assert any(
        reason.startswith(law)
        for history in laws.played()
        for reason in heard(law, histories=[history]).reasons
    )


@pytest.mark.long
def test_a_missing_end_is_broken_again_where_a_reading_of_a_queue_counts_as_whole(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A queue of which the history holds a part of the reading is not read to its end."""
    feed = examining.Examiner.feed
    monkeypatch.setattr(
        examining.Examiner, "feed", lambda self, rows: feed(self, _with_whole_readings(list(rows)))
    )
    hearing = Hearing()
    for history in laws.played():
        hear_valid(history, hearing, laws=("the end missing",))
    assert any(reason.startswith("the end missing: SND-1") for reason in hearing.reasons)


def _with_whole_readings(rows: list[Row]) -> list[Row]:
    over = max((row.seq_end or row.seq_begin for row in rows), default=0) + 1
    now = max((row.started_us for row in rows), default=0)
    found = [row.queue for row in rows if row.kind is Kind.READ and row.queue_offset is not None]
    return [
        row._replace(seq_end=over, ended_us=now, outcome=Outcome.OK, value=found.count(row.queue))
        if is_marker(row) and row.seq_end is None
        else row
        for row in rows
    ]


@pytest.mark.long
def test_needs_removed_is_broken_again_without_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Clause, "missing", lambda self, known: frozenset())
    assert any(reason.startswith(laws.NEEDS) for reason in heard("the end missing").reasons)


def test_others_added_is_broken_again_without_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """A departure of somebody else excuses nobody."""
    monkeypatch.setattr(RunContext, "leaving_at", lambda self, *_: bool(self.ended))
    monkeypatch.setattr(RunContext, "broker_died_since", lambda self, *_: bool(self.broker_died))
    monkeypatch.setattr(RunContext, "client_died_between", lambda self, *_: bool(self.died_us))
    assert any(reason.startswith("others added") for reason in broken().reasons)


def test_renaming_is_broken_again_without_its_mend(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing may hang on a name but its prefix."""
    monkeypatch.setattr(RunContext, "_take", _knows_b0_alone(RunContext._take))
    assert any(reason.startswith("renamed") for reason in broken().reasons)
    assert set(LEFT_BROKEN) == {"others added", "renamed and shifted"}


def _knows_b0_alone(take):  # type: ignore[no-untyped-def]
    def taken(self: RunContext, row: Row) -> None:
        if (row.client_id or "alice") in ("alice", "bob", "carol", "dora", "shop", "drain", "till"):
            take(self, row)

    return taken
