"""Nothing is said against the correct reference, however many plans it is driven with."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from rich.console import Console

from conformance.machines import cluster
from inorder.evidence import false_alarms, grid
from inorder.evidence.false_alarms import listen, listen_long, main, table
from reference_impl.mutants import load
from specs.vocabulary import Kind

Collector = cluster.Collector


@pytest.mark.long
def test_some_plans_and_nothing_against_any_of_them() -> None:
    """The small form of `--plans 10000`; the counts are those of all plans together."""
    heard = listen_long(11, 24, workers=1)
    assert heard.broken == []
    assert heard.plans >= 24
    assert heard.events > 2_400
    assert heard.counts["LSE-1"].plans > 2


@pytest.mark.long
def test_the_other_modes_are_driven_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    """One share after the other is of the next mode; each is held against what it claims."""
    monkeypatch.setattr(false_alarms, "SHARE", 6)
    monkeypatch.setattr(false_alarms, "PROFILES", false_alarms.PROFILES[-3:])
    heard = listen_long(3, 18, workers=1)
    assert heard.broken == []
    assert heard.counts["LSE-12"].plans > 0
    assert heard.counts["ORD-11"].plans > 0
    assert heard.counts["RTY-10"].plans > 0


@pytest.mark.long
@pytest.mark.parametrize("profile", ["reference", "reference-concurrent"])
def test_where_brokers_remove_what_is_old_nothing_is_called_lost(
    monkeypatch: pytest.MonkeyPatch, profile: str
) -> None:
    """The same plans with a time to keep that they outlast: what was removed on purpose is held against nobody."""
    removals: list[int] = []

    def make(
        wanted: Callable[..., Any], on_run: Callable[..., Any], config: Mapping[str, Any]
    ) -> Collector:
        def told(run: cluster.Run) -> None:
            removals.extend(row.value or 0 for row in run.rows if row.kind is Kind.TRIM)
            on_run(run)

        return Collector(wanted, on_run=told, config={**config, "keep_ms": 30_000})

    monkeypatch.setattr(false_alarms, "Collector", make)
    heard = listen(5, 10, profile)
    assert heard.broken == []
    assert max(removals) > 0
    assert heard.counts["SND-1"].opportunities > 0


def test_the_counts_do_not_depend_on_the_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """A share has a seed of its own, whoever listens to it."""
    monkeypatch.setattr(false_alarms, "SHARE", 2)
    assert listen_long(5, 5, workers=1) == listen_long(5, 5, workers=2)


def test_a_share_that_is_there_is_not_driven_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """With nothing changed the sums are the same; without time the rest is left, which is no proof: exit 2."""
    monkeypatch.setattr(false_alarms, "SHARE", 4)
    first = listen_long(5, 8, workers=1, store=tmp_path)
    monkeypatch.setattr(false_alarms, "listen", None)  # nobody may ask again
    assert listen_long(5, 8, workers=1, store=tmp_path) == first
    words = ["--plans", "12", "--seed", "5", "--budget", "0s", "--out", str(tmp_path)]
    result = CliRunner().invoke(main, words)
    assert (result.exit_code, "1 of 3 cells are not made yet" in result.output) == (2, True)
    assert f"{first.plans:,} plans, {first.events:,} events; against: 0" in result.output
    assert "2 cells are " in result.output


def test_a_second_run_in_the_same_folder_is_told_to_wait(tmp_path: Path) -> None:
    """A sentence, and the exit code of wrong usage."""
    cell = false_alarms.shares(1, 1)[0]
    first = grid.run([cell, replace(cell, name="another")], lambda _: 0, tmp_path)
    next(first)
    result = CliRunner().invoke(main, ["--plans", "1", "--out", str(tmp_path)])
    assert (result.exit_code, "another run is at work in" in result.stderr) == (64, True)
    assert len(result.stderr.splitlines()) == 1


def test_it_hears_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same plans on a broken broker: the seed, the clause and the reason are named."""
    broken = load("expiry-ignored")
    make: Callable[..., Collector] = cluster.Collector
    monkeypatch.setattr(
        false_alarms, "Collector", lambda wanted, on_run, config: make(wanted, broken, on_run)
    )
    heard = listen(3, 10)
    assert any(reason.startswith("reference, seed 3: LSE-1: ") for reason in heard.broken)
    assert heard.counts["LSE-1"].against > 0


def test_what_is_seldom_at_stake_is_named() -> None:
    """And the table has a line for every clause."""
    heard = listen(3, 5)
    assert "DLQ-2" in heard.seldom(6)
    paper = Console(width=80, record=True, file=io.StringIO())
    paper.print(table(heard))
    assert "DLQ-2" in paper.export_text()
