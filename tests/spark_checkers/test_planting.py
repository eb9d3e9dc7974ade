"""What changes do to the rows of a history, and where they can be made."""

from __future__ import annotations

from spark_checkers import places
from spark_checkers.changes import Change, Given, alter, begin, by, copy, drop, insert, spread, swap
from spark_checkers.planting import Changes, Mutant, Trace, defect, lookalike, pairs
from specs.history.text import parse_history
from specs.vocabulary import Kind, Outcome

INFO, READ = parse_history(
    """
0ms         alice  locks     billing/orders/b0/3   ok
1ms         alice  adds      billing/orders/b0/3   value=17
2ms..5ms    alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
6ms..9ms    alice  delivers  billing/orders/b0/3   offset=18 id=m18 success
10ms        alice  commits   billing/orders/b0/3   value=19 sent
"""
)
ROWS = spread(READ)
LOCK, ADD, FIRST, SECOND, COMMIT = ROWS


def made(change: Change) -> list[tuple[Kind, int | None, str | None]]:
    return [(row.kind, row.queue_offset, row.client_id) for row in change.made(ROWS).rows]


def test_changes_are_made_together() -> None:
    change = swap(FIRST, SECOND, "queue_offset") + drop(COMMIT) + alter(LOCK, client_id="bob")
    assert made(change) == [
        (Kind.LOCK, None, "bob"),
        (Kind.ADD, None, "alice"),
        (Kind.DELIVER, 18, "alice"),
        (Kind.DELIVER, 17, "alice"),
    ]
    assert [row.seq_begin for row in change.made(ROWS).rows] == [r.seq_begin for r in ROWS[:4]]


def test_what_is_added_lies_at_the_end_or_within_and_in_its_turn() -> None:
    within = copy(FIRST, begin(FIRST), **by("bob"))
    after = copy(FIRST, FIRST) + insert(Kind.DROP, FIRST, FIRST)
    rows = (within + after).made(ROWS).rows
    assert FIRST.seq_end is not None
    inner, *outer = [row for row in rows if row not in ROWS]
    assert (inner.seq_begin, inner.seq_end, inner.started_us, inner.client_id, inner.process) == (
        FIRST.seq_begin + 1,
        FIRST.seq_begin + 2,
        FIRST.started_us,
        "bob",
        "bob",
    )
    assert [(row.kind, row.seq_begin, row.seq_end, row.queue_offset) for row in outer] == [
        (Kind.DELIVER, FIRST.seq_end + 1, FIRST.seq_end + 2, 17),
        (Kind.DROP, FIRST.seq_end + 3, FIRST.seq_end + 3, None),
    ]
    assert {row.started_us for row in outer} == {FIRST.ended_us}
    assert [row.op_id - max(r.op_id for r in ROWS) for row in (inner, *outer)] == [1, 2, 3]


def test_a_row_of_another_kind_says_who_and_where_and_nothing_else() -> None:
    (row,) = insert(Kind.COMMIT, FIRST, FIRST, value=18).new
    assert (row.lane, row.client_id, row.incarnation) == (FIRST.lane, "alice", FIRST.incarnation)
    assert (row.queue_offset, row.message_id, row.commit_mode) == (None, None, None)
    assert (row.value, row.outcome) == (18, Outcome.OK)


def test_a_change_is_about_what_it_alters_and_adds_and_names() -> None:
    change = alter(FIRST, value=1) + drop(COMMIT)
    assert change.made(ROWS).about == (FIRST.seq_begin,)
    assert change.about(ADD).made(ROWS).about == (ADD.seq_begin, FIRST.seq_begin)
    assert drop(COMMIT).made(ROWS).about == (COMMIT.seq_begin,)


def test_a_mutant_goes_through_what_its_selection_finds() -> None:
    trace = Trace(ROWS, INFO)
    one = Mutant(
        "one", "", places.each(Kind.DELIVER), drop, where=lambda row: row.queue_offset > 17
    )
    two = Mutant("two", "", places.neighbours, lambda before, row: drop(row).about(before))
    made = Mutant("made", "", lambda trace: [drop(row) for row in trace.rows])
    assert list(one.sites(trace)) == [drop(SECOND)]
    assert list(two.sites(trace)) == [drop(SECOND).about(FIRST)]
    assert list(made.sites(trace)) == [drop(row) for row in ROWS]


def test_a_function_is_declared_as_what_is_planted() -> None:
    """By its name, and the sentence that its docstring is."""

    @defect(places.each(Kind.DELIVER), where=lambda row: row.queue_offset > 17)
    def gone_for_good(row: Given) -> Change:
        """A delivery is gone."""
        return drop(row)

    @lookalike(generated=False)
    def all_gone(trace: Trace) -> Changes:
        """Every row is gone."""
        yield drop(*trace.rows)

    trace = Trace(ROWS, INFO)
    assert (gone_for_good.name, gone_for_good.why) == ("gone-for-good", "a delivery is gone")
    assert (gone_for_good.breaks, gone_for_good.generated) == (True, True)
    assert (all_gone.breaks, all_gone.generated) == (False, False)
    assert list(gone_for_good.sites(trace)) == [drop(SECOND)]
    assert list(all_gone.sites(trace)) == [drop(*ROWS)]


def test_pairs_are_of_one_key() -> None:
    found = pairs(ROWS, lambda row: row.kind)
    assert list(found) == [(FIRST, SECOND)]
    assert len(list(pairs(ROWS))) == len(ROWS) - 1
