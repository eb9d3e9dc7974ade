"""What clauses are made of: deaths and pauses, words for people."""

from __future__ import annotations

from specs.clauses.rows import acknowledges, asks_again
from specs.clauses.words import at, ms, who
from specs.facts.columns import NONE
from specs.facts.run_context import RunContext
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.vocabulary import Kind, Outcome


def rows_of(text: str) -> list[Row]:
    return parse_history(text)[1]


def test_the_context_knows_deaths_departures_and_pauses() -> None:
    """A new start undoes a departure and a death, but not that it happened."""
    leave, crash, join, broker, pause = rows_of(
        """
        0ms         alice  leaves   billing
        1ms         alice  crashes  -
        2ms         alice  joins    billing
        3ms         b0     crashes  b0
        10ms..20ms  bob    pauses   -
        """
    )
    context = RunContext.of_rows(RunInfo(run="r"), [leave, crash, join, broker, pause])
    left, died, came, fell, stood = (row.seq_begin for row in (leave, crash, join, broker, pause))
    assert context.leaving_at("alice", "billing", left)
    assert not context.leaving_at("alice", "audit", left)
    assert context.has_a_client_died(died)
    assert not context.leaving_at("alice", "billing", came)
    assert context.client_died_between("alice", left, came)
    assert not context.client_died_between("alice", came, stood)
    assert context.broker_died_since("b0", came, NONE, fell)
    assert not context.broker_died_since("b1", came, NONE, fell)
    assert context.paused_since("bob", 20_000, stood)
    assert not context.paused_since("bob", 20_001, stood)
    assert not context.paused_since("alice", 0, stood)


def test_results_of_a_call() -> None:
    """What acknowledges and what asks for the batch again, in each mode."""

    def call(outcome: Outcome, mode: str | None) -> Row:
        return make_row(kind=Kind.DELIVER, outcome=outcome, commit_mode=mode)

    auto = {outcome for outcome in Outcome if acknowledges(call(outcome, None))}
    assert auto == {outcome for outcome in Outcome if acknowledges(call(outcome, "auto"))}
    assert auto == {Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK}
    assert {outcome for outcome in Outcome if acknowledges(call(outcome, "manual"))} == {
        Outcome.COMMIT
    }
    again = {Outcome.SUSPEND, Outcome.NULL, Outcome.THREW}
    assert {outcome for outcome in Outcome if asks_again(call(outcome, "auto"))} == again
    assert {outcome for outcome in Outcome if asks_again(call(outcome, "manual"))} == again | {
        Outcome.ROLLBACK
    }


def test_words_for_people() -> None:
    """Milliseconds, and seconds from ten on."""
    assert [ms(1_500), ms(999_000), ms(9_999_999), ms(10_000_000)] == [
        "1.5 ms",
        "999 ms",
        "10000 ms",
        "10.000 s",
    ]
    (row,) = rows_of("1250ms  alice  locks  g/t/b/0  ok")
    assert at(row) == "1.250 s"
    assert who(row) == "alice"
    assert who(row._replace(client_id=None, process=None)) == "somebody"
