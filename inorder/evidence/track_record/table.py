"""The table of `docs/track-record.md`: written by a run, a row per entry; rows that were not run again stay."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from xml.etree.ElementTree import Element

from conformance.reports import plots
from conformance.reports.plots import Cell, Kind
from inorder.evidence.track_record.entries import Entry
from specs.errors import UsageError
from specs.history.store import rows_of_lines
from specs.verdicts.verdict import ClauseVerdict, Judged

BEGIN = "<!-- table: written by `make track-record` -->"
END = "<!-- end of table -->"
HEAD = (
    "| bug | what happens | judged by | red | green | rate | seen last | command |",
    "|---|---|---|---|---|---|---|---|",
)


@dataclass(frozen=True, slots=True)
class Reproduction:
    """An entry that was run: one result per seed on each side; date: ISO.

    plans: the digests of the plans that each side did, red first, by seed; none where a trial is no plan.
    """

    entry: Entry
    red: Sequence[Judged]
    green: Sequence[Judged]
    date: str
    plans: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def reproduced(self) -> bool:
        """Refuted at least once in the red release, upheld each time in the green one, by the same plans."""
        return self.red_times > 0 and self.green_times == len(self.green) > 0 and self.is_one_plan

    @property
    def is_one_plan(self) -> bool:
        """Did both sides do the same?"""
        return self.plans[0] == self.plans[1]

    @property
    def red_times(self) -> int:
        return sum(each.verdict is ClauseVerdict.REFUTED for each in self.red)

    @property
    def green_times(self) -> int:
        return sum(each.verdict is ClauseVerdict.UPHELD for each in self.green)

    def to_json(self) -> dict[str, Any]:
        sides = {"red": self.red, "green": self.green}
        told = {side: [_to_json(each) for each in results] for side, results in sides.items()}
        return {"entry": self.entry.id, **told, "date": self.date, "plans": self.plans}

    @classmethod
    def from_json(cls, entry: Entry, data: Mapping[str, Any]) -> Reproduction:
        """What `to_json` told of this entry."""
        red, green = ([_from_json(each) for each in data[side]] for side in ("red", "green"))
        plans = tuple(data["plans"][0]), tuple(data["plans"][1])
        return cls(entry, red, green, data["date"], plans)

    def wrong(self) -> str:
        """Why it counts as not reproduced, a sentence; empty when it was."""
        if self.reproduced:
            return ""
        if not self.is_one_plan:
            red, green = (", ".join(each) or "none" for each in self.plans)
            return f"{self.entry.id} was not reproduced: its sides did other plans ({red}; {green})"
        shown = [
            f"{target}: " + ", ".join(each.verdict.value for each in results)
            for target, results in ((self.entry.red, self.red), (self.entry.green, self.green))
        ]
        return f"{self.entry.id} was not reproduced by {self.entry.judged_by} ({'; '.join(shown)})"

    def line(self) -> str:
        entry = self.entry
        rate = f"red {self.red_times} of {len(self.red)}, green {self.green_times} of {len(self.green)}"
        if self.plans[0]:
            rate += f", plans {' '.join(f'`{each}`' for each in self.plans[0])}"
        green = f"`{entry.green}`" + (f", {entry.green_setting}" if entry.green_setting else "")
        cells = (
            entry.id, entry.bug, entry.judged_by, f"`{entry.red}`", green, rate, self.date,
            f"`{entry.command}`",
        )  # fmt: skip
        return f"| {' | '.join(cells)} |"


def _to_json(judged: Judged) -> dict[str, Any]:
    told = {each.name: getattr(judged, each.name) for each in fields(judged)}
    return {
        **told,
        "verdict": judged.verdict.value,
        "witness": [row.to_json() for row in judged.witness],
    }


def _from_json(data: Mapping[str, Any]) -> Judged:
    """Lists come back as what they were, tuples."""
    told: dict[str, Any] = {
        name: tuple(each) if isinstance(each, list) else each for name, each in data.items()
    }
    lines = "\n".join(json.dumps(row) for row in data["witness"])
    witness = tuple(rows_of_lines(lines.splitlines(), f"the witness of {data['id']}"))
    told |= {"verdict": ClauseVerdict(data["verdict"]), "witness": witness}
    return Judged(**told)


def picture(found: Sequence[Reproduction]) -> Element:
    """How often each bug showed in the release that has it, and how often the other one was clean."""
    cells: dict[tuple[str, str], Cell] = {}
    for each in found:
        name = f"{each.entry.id} ({each.entry.judged_by})"
        for side, times, results in (
            ("red", each.red_times, each.red),
            ("green", each.green_times, each.green),
        ):
            told = f"{times} of {len(results)}"
            kind = Kind.SHARE if times else Kind.BAD
            words = f"{'refuted' if side == 'red' else 'upheld'} {told} times"
            cells[name, side] = Cell(kind, told, words, times / max(1, len(results)))
    rows = list(dict.fromkeys(name for name, _ in cells))
    title = "Bugs of released systems: refuted where the bug is (red), upheld where not (green)"
    return plots.heat_map("record", title, rows, ("red", "green"), cells)


def refresh(page: str, order: Sequence[str], new: Mapping[str, str]) -> str:
    """The page with its table written anew. order: the entries' ids; new: id → row. UsageError without the marks."""
    before, begin, rest = page.partition(BEGIN)
    table, end, after = rest.partition(END)
    if not begin or not end:
        raise UsageError(f"the page has no table between {BEGIN!r} and {END!r}")
    kept = {
        line.split("|")[1].strip(): line for line in table.splitlines() if line.startswith("| ")
    }
    rows = [row for name in order if (row := new.get(name) or kept.get(name))]
    return "\n".join([f"{before}{BEGIN}", *HEAD, *rows, f"{END}{after}"])
