"""What runs came to, as the pages of the docs keep it: one line of JSON for each, the last of a seed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from inorder.evidence import grid
from specs.verdicts.verdict import RunVerdict

FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Run:
    """A run. word: its verdict, or `failed`. at_stake: in the trouble, by clause.

    faults: the verb of each, how many lanes had something to do when it ended, and how long the slowest took, None
    where it never went on. stood_still: of each crash, pause and departure how long the slowest lane stood still.
    """

    target: str
    scenario: str
    seed: int
    profile: str
    date: str
    word: str
    refuted: Sequence[str]
    missed: Sequence[str]
    messages: int
    at_stake: Mapping[str, int]
    faults: Sequence[tuple[str, int, int | None]]
    stood_still: Mapping[str, float | None]

    @property
    def place(self) -> tuple[str, str, int]:
        """What another run of the same takes over."""
        return (self.target, self.scenario, self.seed)

    @property
    def least_at_stake(self) -> int | None:
        """Of the clauses that the scenario names; None where none of them counts here."""
        return min(self.at_stake.values(), default=None)

    @property
    def why(self) -> str:
        """What it refuted, or what it missed."""
        return "; ".join(self.refuted or self.missed)

    @classmethod
    def of(cls, done: grid.Done) -> Run:
        """A cell that was made, or that failed."""
        key = done.cell.key
        failed = {"word": FAILED, "refuted": [], "missed": [str(done.error)]}
        value: Mapping[str, Any] = failed if done.error is not None else done.value
        made_us = done.made_us
        return cls(
            target=key["target"],
            scenario=key["scenario"],
            seed=key["seed"],
            profile=key["profile"],
            date=datetime.fromtimestamp(made_us / 1e6, UTC).date().isoformat() if made_us else "",
            word=value["word"],
            refuted=tuple(value["refuted"]),
            missed=tuple(value["missed"]),
            messages=value.get("messages", 0),
            at_stake=value.get("at_stake", {}),
            faults=tuple(
                (each["verb"], each["lanes"], each["recovered_ms"])
                for each in value.get("faults", ())
            ),
            stood_still=_slowest(value.get("recovery", ())),
        )

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Run:
        faults = tuple((str(verb), int(lanes), ms) for verb, lanes, ms in data["faults"])
        return cls(**{**data, "faults": faults})


def _slowest(recovery: Iterable[Mapping[str, Any]]) -> dict[str, float | None]:
    found: dict[str, float | None] = {}
    for each in recovery:
        what, ms = each["what"], each["ms"]
        before = found.get(what, 0.0)
        found[what] = None if ms is None or before is None else max(before, ms)
    return found


def read(data: Path) -> list[Run]:
    """What is kept; nothing where nothing is."""
    if not data.exists():
        return []
    return [Run.from_json(each) for each in json.loads(data.read_text(encoding="utf-8"))]


def keep(data: Path, new: Iterable[Run]) -> list[Run]:
    """Add runs to what is kept, each in the place of that of the same target, scenario and seed."""
    by_place = {run.place: run for run in (*read(data), *new)}
    kept = [by_place[place] for place in sorted(by_place)]
    lines = ",\n".join(json.dumps(asdict(run)) for run in kept)  # a run is a line: a diff shows it
    data.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return kept


def is_upheld(run: Run) -> bool:
    """Whether nothing has to be said of it."""
    return run.word == RunVerdict.UPHELD
