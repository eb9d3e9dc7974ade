"""The tables of the grid: what came to what, what was thin, and how soon lanes went on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from statistics import median

from inorder.evidence import tables
from inorder.evidence.chaos_grid.runs import FAILED, Run, is_upheld, keep
from specs.errors import UsageError
from specs.verdicts.verdict import RunVerdict

LEFT_OUT = "–"
FLOOR = 10
"""So often a scenario's clause should be at stake in the trouble, or a run says little of it."""
NEVER = "never"
DATA, GRID, RECOVERY = "chaos-grid.json", "chaos-grid.md", "recovery.md"
Row = tuple[str, ...]
Wait = tuple[str, float | None]
"""What happened, and the ms until the slowest lane went on; None for never."""
WORDS = (RunVerdict.UPHELD, RunVerdict.REFUTED, RunVerdict.INCONCLUSIVE, FAILED)


def targets_of(runs: Iterable[Run]) -> list[str]:
    """In the order in which they come."""
    return list(dict.fromkeys(run.target for run in runs))


def summary(runs: Sequence[Run]) -> list[str]:
    """A row for each target: how many runs came to what, and how much each of them was about."""
    head = ("target", "profile", "scenarios", "runs", *WORDS, "messages", "at stake")
    rows = []
    for target in targets_of(runs):
        those = [run for run in runs if run.target == target]
        words = Counter(run.word for run in those)
        stakes = [least for run in those if (least := run.least_at_stake) is not None]
        rows.append(
            (
                f"`{target}`",
                f"`{those[-1].profile}`",
                f"{len({run.scenario for run in those})}",
                f"{len(those)}",
                *(f"{words[word]}" for word in WORDS),
                _spread([run.messages for run in those if run.word != FAILED]),
                _spread(stakes),
            )
        )
    return tables.markdown(head, rows, right=head[2:])


def _spread(numbers: Sequence[int]) -> str:
    """The least and the median."""
    return f"{min(numbers)}, median {median(numbers):.0f}" if numbers else ""


def by_scenario(runs: Sequence[Run], told: Callable[[Sequence[Run]], str]) -> tuple[Row, list[Row]]:
    """A row for each scenario, a column for each target."""
    targets = targets_of(runs)
    rows = [
        (
            scenario,
            *(
                told([run for run in runs if (run.scenario, run.target) == (scenario, target)])
                for target in targets
            ),
        )
        for scenario in sorted({run.scenario for run in runs})
    ]
    return ("scenario", *targets), rows


def whole(runs: Sequence[Run]) -> str:
    """What runs of one kind came to, each that was not upheld with its reason."""
    words = Counter(run.word for run in runs)
    why = dict.fromkeys(run.why for run in runs if run.why)
    counted = [
        word if len(runs) == 1 else f"{word} {n} of {len(runs)}" for word, n in words.items()
    ]
    return " ".join([", ".join(counted), *([f"({'; '.join(why)})"] if why else [])]) or LEFT_OUT


def short(runs: Sequence[Run]) -> str:
    """How many of how many were upheld."""
    return f"{sum(map(is_upheld, runs))} of {len(runs)}" if runs else LEFT_OUT


def not_upheld(runs: Sequence[Run]) -> list[str]:
    """Each run that was not, with its reason."""
    rows = [
        (run.scenario, f"`{run.target}`", f"{run.seed}", run.word, run.why)
        for run in runs
        if not is_upheld(run)
    ]
    head = ("scenario", "target", "seed", "came to", "why")
    return tables.markdown(head, rows) if rows else ["None."]


def thin(runs: Sequence[Run]) -> list[str]:
    """The clauses that were at stake less often than the floor, by scenario and target: the least of all seeds."""
    least: dict[tuple[str, str, str], int] = {}
    for run in runs:
        for clause, often in run.at_stake.items():
            place = (run.scenario, clause, run.target)
            least[place] = min(often, least.get(place, often))
    found: dict[tuple[str, str], list[str]] = {}
    for (scenario, clause, target), often in sorted(least.items()):
        if often < FLOOR:
            found.setdefault((scenario, clause), []).append(f"`{target}` {often}")
    rows = [(*place, ", ".join(each)) for place, each in found.items()]
    return tables.markdown(("scenario", "clause", "least"), rows) if rows else ["None."]


def after_healing(run: Run) -> list[Wait]:
    """By fault; one after which nobody had anything to do says nothing."""
    return [(verb, ms) for verb, lanes, ms in run.faults if lanes]


def standing_still(run: Run) -> list[Wait]:
    """By what took the lanes' client, or their broker, away."""
    return list(run.stood_still.items())


def recovery(runs: Sequence[Run], waits_of: Callable[[Run], Iterable[Wait]]) -> list[str]:
    """Rows: faults; columns: targets; median, worst, of how many. Runs in which something was refuted are left out."""
    targets = targets_of(runs)
    found: dict[str, dict[str, list[float | None]]] = {}
    for run in runs:
        if run.word not in (RunVerdict.REFUTED, FAILED):
            for what, ms in waits_of(run):
                found.setdefault(what, {}).setdefault(run.target, []).append(ms)
    rows = [
        (f"`{what}`", *(waited(found[what].get(target, ())) for target in targets))
        for what in sorted(found)
    ]
    head = ("fault", *(f"`{target}`" for target in targets))
    return tables.markdown(head, rows, right=head[1:])


def waited(times: Sequence[float | None]) -> str:
    """`median / worst (of how many)`, in ms; `never` where a lane did not go on."""
    if not times:
        return LEFT_OUT
    came = sorted(ms for ms in times if ms is not None)
    never = len(times) - len(came)
    middle = f"{median(came):,.0f}" if came else NEVER
    worst = NEVER if never else f"{came[-1]:,.0f}"
    return f"{middle} / {worst} ({len(times)})"


def refresh(docs: Path, new: Iterable[Run]) -> None:
    """Both pages of the docs, from these runs and those that were kept before."""
    runs = keep(docs / DATA, new)
    head, rows = by_scenario(runs, short)
    parts = {
        "targets": summary(runs),
        "scenarios": tables.markdown(head, rows, right=head[1:]),
        "not upheld": not_upheld(runs),
        "thin": thin(runs),
    }
    write(docs / GRID, parts)
    write(
        docs / RECOVERY,
        {
            "after healing": recovery(runs, after_healing),
            "standing still": recovery(runs, standing_still),
        },
    )


def write(page: Path, parts: dict[str, list[str]]) -> None:
    """Each table anew between its marks. Raises UsageError for a page without them."""
    text = page.read_text(encoding="utf-8")
    for name, lines in parts.items():
        begin, end = f"<!-- table {name} -->", f"<!-- end of table {name} -->"
        before, found, rest = text.partition(begin)
        _, closed, after = rest.partition(end)
        if not found or not closed:
            raise UsageError(f"{page} has no table between {begin!r} and {end!r}")
        text = "\n".join([f"{before}{begin}", "", *lines, "", f"{end}{after}"])
    page.write_text(text, encoding="utf-8")
