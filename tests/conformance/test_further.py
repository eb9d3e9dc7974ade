"""A search goes on while claimed clauses are below their floor: within a limit, and from the seed alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import jsonschema
import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance import runner
from conformance.cli.conform import command
from conformance.further import FURTHER, ROUND, go_on, seed_of
from conformance.machines.cluster import Collector
from conformance.machines.steering import MIXTURES, ingredients_for
from conformance.reports.text import coverage_lines
from conformance.reports.view import view
from conformance.runner import Result, conform_simulated
from specs.profiles import load as load_profile
from specs.verdicts.schema import verdict_schema
from specs.verdicts.verdict import ClauseVerdict, Further

PROFILE = load_profile("reference")
SEED = 7
FLOOR = 100


class Search:
    """A collector whose runs put `gains` at stake, by the ingredients that they are made from."""

    def __init__(
        self, at_stake: dict[str, int], gains: dict[tuple[str, ...], dict[str, int]]
    ) -> None:
        self.collector = Collector(lambda refuted: ())
        self.at_stake, self.gains = Counter(at_stake), gains
        self.rounds: list[tuple[int, tuple[str, ...]]] = []

    def short(self) -> tuple[str, ...]:
        return tuple(clause for clause, times in self.at_stake.items() if times < FLOOR)

    def draw(self, seed: int, examples: int, ingredients: tuple[str, ...]) -> None:
        self.rounds.append((seed, ingredients))
        for _ in range(examples):
            self.collector.runs += 1
            self.at_stake.update(self.gains.get(ingredients, {}))
            if self.collector.enough():
                return

    def go_on(self, most: int) -> Further | None:
        return go_on(self.collector, SEED, most, self.short, self.draw)


RTY, SND = ingredients_for("RTY-9"), ingredients_for("SND-7")


def test_nothing_is_added_where_every_clause_is_at_its_floor() -> None:
    search = Search({"RTY-9": 100}, {})
    assert (search.go_on(150), search.rounds) == (None, [])


def test_a_round_draws_from_what_its_clause_wants_and_ends_when_it_is_there() -> None:
    search = Search({"RTY-9": 98, "SND-7": 100}, {RTY: {"RTY-9": 1}})
    assert search.go_on(150) == Further(2, 150, ("RTY-9",))
    assert search.rounds == [(seed_of(SEED, 1), RTY)]


def test_clauses_take_turns_so_that_one_that_gets_nowhere_does_not_take_all() -> None:
    search = Search({"RTY-9": 0, "SND-7": 97}, {SND: {"SND-7": 1}})
    assert search.go_on(60) == Further(60, 60, ("RTY-9", "SND-7"))
    assert [ingredients for _, ingredients in search.rounds[:3]] == [RTY, SND, RTY]
    assert search.at_stake["SND-7"] == FLOOR
    assert len({seed for seed, _ in search.rounds}) == len(search.rounds)


def test_the_limit_holds_within_a_round_too() -> None:
    search = Search({"RTY-9": 0}, {})
    assert search.go_on(ROUND + 3) == Further(ROUND + 3, ROUND + 3, ("RTY-9",))
    assert search.go_on(0) == Further(0, 0, ("RTY-9",))


def test_a_broken_clause_ends_it() -> None:
    search = Search({"RTY-9": 0}, {})

    def breaks(seed: int, examples: int, ingredients: tuple[str, ...]) -> None:
        search.draw(seed, 1, ingredients)
        search.collector.broken = object()  # type: ignore[assignment]

    assert go_on(search.collector, SEED, 150, search.short, breaks) == Further(1, 150, ("RTY-9",))


def test_rounds_that_make_no_run_come_to_an_end() -> None:
    search = Search({"RTY-9": 0}, {})
    assert go_on(search.collector, SEED, 20, search.short, lambda *_: None) == Further(
        0, 20, ("RTY-9",)
    )


def test_the_help_tells_the_limit() -> None:
    said = " ".join(CliRunner().invoke(command, ["--help"]).output.split())
    assert "at most as many again" in said
    assert FURTHER == 1


# ------------------------------------------------------------------------------------------ what was asked for


def made(monkeypatch: pytest.MonkeyPatch, examples: int) -> list[tuple[int, int, tuple[str, ...]]]:
    """(seed, examples, ingredients) of what a search has the machine make."""
    calls: list[tuple[int, int, tuple[str, ...]]] = []

    def note(
        collector: Collector, seed: int, examples: int, ingredients: tuple[str, ...] = ()
    ) -> None:
        calls.append((seed, examples, ingredients))

    monkeypatch.setattr(runner, "run_machine", note)
    runner.search(Collector(lambda refuted: ()), SEED, examples)
    return calls


def test_a_search_of_few_runs_has_ordinary_ones_only(monkeypatch: pytest.MonkeyPatch) -> None:
    assert made(monkeypatch, 6) == [(SEED, 6, ())]


def test_a_usual_search_has_runs_of_every_mixture_after_its_first_sixth(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    calls = made(monkeypatch, runner.EXAMPLES)
    first, *mixed, last = calls
    assert first == (SEED, 25, ())
    assert [ingredients for _, _, ingredients in mixed] == list(MIXTURES)
    assert last[1:] == (125 - len(MIXTURES), ())
    assert len({seed for seed, _, _ in calls}) == len(calls)


# ------------------------------------------------------------------------------------------ with the real machine


def searched(examples: int, floor: int) -> Result:
    return conform_simulated(None, SEED, PROFILE, examples=examples, floor=floor)


def shown(result: Result) -> str:
    console = Console(width=300, color_system=None)
    with console.capture() as capture:
        console.print(*coverage_lines(view(result.verdict)), sep="\n")
    return " ".join(capture.get().split())  # however long the list of clauses is


@pytest.mark.long
def test_the_same_seed_goes_on_to_the_same_bytes_and_the_verdict_tells() -> None:
    result, again = searched(6, 3), searched(6, 3)
    assert (result.verdict.to_json(), result.rows) == (again.verdict.to_json(), again.rows)
    assert result.verdict.coverage is not None
    further = result.verdict.coverage.further
    assert further is not None
    assert 0 < further.runs <= further.most == FURTHER * 6
    assert further.runs < result.runs == result.verdict.coverage.runs
    jsonschema.validate(result.verdict.to_json(), verdict_schema())
    assert view(result.verdict).coverage == result.verdict.coverage
    assert f"went on: {further.runs} further runs of at most 6, for " in shown(result)
    still = {judged.id for judged in result.verdict.of(ClauseVerdict.NOT_EXERCISED)}
    assert still < set(further.sought)
    assert ("; they ran out at " in shown(result)) is bool(still)


def test_it_says_which_clauses_it_could_not_bring_to_their_floor() -> None:
    result = searched(2, 1_000_000)
    assert result.verdict.coverage is not None
    assert result.verdict.coverage.further is not None
    assert result.verdict.coverage.further.runs == 2
    assert "; they ran out at " in shown(result)
    lsn = next(each for each in result.verdict.clauses if each.id == "LSE-1")
    assert f"LSE-1 {lsn.opportunities} of 1000000" in shown(result)


def test_where_there_is_no_need_nothing_is_said() -> None:
    result = searched(2, 0)
    assert result.verdict.coverage is not None
    assert result.verdict.coverage.further is None
    assert "went on" not in shown(result)
    assert "further" not in result.verdict.to_json()["coverage"]


@pytest.mark.long
def test_a_bug_that_only_a_further_run_meets_is_found() -> None:
    """Where the floor asks for no further run, the same search misses it."""
    only = replace(PROFILE, claims={"RTY-6": PROFILE.claim("RTY-6")})
    name = "suspension-stops-all-lanes"
    assert conform_simulated(name, SEED, only, examples=7, floor=0).found == ()
    assert conform_simulated(name, SEED, only, examples=7, shrink_runs=5).found == ("RTY-6",)
