"""A verdict as reports see it: read from `inorder/verdict/v1`, live or from a folder.

Rules:
- a general clause that was refuted by the same event as a specific one is hidden (its reason names the specific one);
- what stays is grouped by family, in catalogue order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from pyarrow import parquet

from conformance.reports.occasion import Occasion, read_occasion
from conformance.reports.rate import Rate
from conformance.reports.rate import read as read_rate
from specs.clauses.clause import Clause
from specs.documents import json_in
from specs.errors import HistoryError
from specs.history.row import Row, make_row
from specs.history.store import History, open_history
from specs.verdicts.schema import verdict_schema
from specs.verdicts.tally import FaultTold
from specs.verdicts.verdict import (
    VERDICT_SCHEMA,
    ClauseVerdict,
    Coverage,
    Ended,
    Further,
    NotJudged,
    RunVerdict,
    Search,
    Verdict,
    distrust,
    exit_code,
)

VERDICT_FILE = "verdict.json"
_SHOWN_AS = "shown as "
_WIRE = "the wire"
_LONGEST_WORDS = 200


@dataclass(frozen=True, slots=True)
class ClauseView:
    """One clause or wire rule of a verdict."""

    id: str
    title: str
    statement: str
    verdict: ClauseVerdict
    party: str
    implementations: tuple[str, ...]
    opportunities: int
    floor: int
    violations: int
    witness: tuple[Row, ...]
    explanation: str
    reason: str
    findings: tuple[
        str, ...
    ] = ()  # public names of what was found; a verdict of an older version names none
    not_judged: NotJudged | None = None  # an older verdict does not say it

    @property
    def family(self) -> str:
        """The family's name for people."""
        return Clause.FAMILIES.get(self.id.split("-")[0], _WIRE)

    @property
    def hidden(self) -> bool:
        """Refuted by the same event as a more specific clause, which is shown instead."""
        return self.verdict is ClauseVerdict.REFUTED and self.reason.startswith(_SHOWN_AS)

    @property
    def name(self) -> str:
        return f"{self.id} {self.title}"

    @property
    def happened(self) -> str:
        """What was found, in a sentence or two: with what a refutation takes for granted, if anything."""
        if (
            self.verdict is ClauseVerdict.REFUTED
            and self.reason
            and not self.hidden
            and self.explanation
        ):
            return f"{self.explanation.rstrip('.')}; {self.reason}"
        return self.explanation


@dataclass(frozen=True, slots=True)
class CheckView:
    """A check of the run itself. ok is None where there was nothing to check."""

    id: str
    title: str
    ok: bool | None
    detail: str


@dataclass(frozen=True, slots=True)
class KnownView:
    """An entry of a baseline (`specs.verdicts.baseline`). expires: its last day. state: what came of it."""

    clause: str
    finding: str
    reason: str
    owner: str
    issue: str
    expires: str
    state: str

    @property
    def told(self) -> str:
        """One line: what it is about, whose it is, and what to do."""
        name = " ".join(filter(None, (self.clause, self.finding)))
        whose = ", ".join(filter(None, (self.owner, self.issue)))
        match self.state:
            case "seen":
                return f"{name}: until {self.expires} ({whose}): {self.reason}"
            case "not_seen":
                return (
                    f"{name} was not seen, although it could have been; its entry may go ({whose})"
                )
            case "expired":
                return f"{name}: expired with {self.expires} ({whose}): {self.reason}"
            case _:
                return f"{name}: this run can't say ({whose})"


@dataclass(frozen=True, slots=True)
class ExposureView:
    """What a stepped wall clock let happen (`specs.verdicts.exposures`). stepped: whose it was, and by how much."""

    clause: str
    title: str
    stepped: str
    after_ms: int
    explanation: str
    times: int
    rows: tuple[Row, ...]

    @property
    def told(self) -> str:
        """One line: whose promise, when, and what happened."""
        return f"{self.clause} {self.title}: {self.after_ms} ms after {self.stepped}, {self.explanation}"


@dataclass(frozen=True, slots=True)
class FaultView:
    """A fault of a run. told: as much as somebody looked at, None where nobody did (as in a search)."""

    name: str
    effective: bool
    told: FaultTold | None = None

    @property
    def lasted(self) -> str:
        """From when to when, in seconds of the run; empty where nobody told."""
        if self.told is None:
            return ""
        began, ended = self.told.from_ms, self.told.to_ms
        end = "the end" if ended is None else f"{ended / 1000:.3f} s"
        return f"at {end}" if ended == began else f"{began / 1000:.3f} s to {end}"

    @property
    def evidence(self) -> str:
        """What shows its effect, and how the lanes recovered, in a sentence; empty where nobody told."""
        told = self.told
        if told is None:
            return ""
        shown = told.evidence or "nothing shows an effect"
        if not told.lanes:
            return shown
        lanes = "1 lane" if told.lanes == 1 else f"{told.lanes} lanes"
        if told.recovered_ms is None:
            return f"{shown}; of {lanes} with work not all went on"
        return f"{shown}; {lanes} with work went on within {told.recovered_ms} ms"


@dataclass(frozen=True, slots=True)
class VerdictView:
    """A verdict, read. events: rows of the history, where known."""

    verdict: RunVerdict
    target: str
    profile: str
    seed: int
    run: str
    replay: str | None
    parties: Mapping[str, str]
    levels: tuple[str, ...]
    clauses: tuple[ClauseView, ...]
    met: tuple[CheckView, ...]
    cut: tuple[str, ...] = ()
    faults: tuple[FaultView, ...] = ()
    tool: Mapping[str, str] = field(default_factory=dict)
    raw: Mapping[str, Any] = field(default_factory=dict, repr=False)
    folder: Path | None = None
    events: int | None = None
    coverage: Coverage | None = None
    search: Search | None = None
    occasion: Occasion = field(default_factory=Occasion)

    @property
    def told_faults(self) -> tuple[FaultView, ...]:
        """Those that a report speaks of: with their time and what came of them."""
        return tuple(fault for fault in self.faults if fault.told is not None)

    @property
    def label(self) -> str:
        """Of which series the run is: as it was named, or what was judged under which promises."""
        return self.occasion.name.strip() or f"{self.target} under {self.profile}"

    @property
    def rate(self) -> Rate | None:
        """How often the failure came again, where somebody has tried (`inorder confirm`, `inorder hunt`)."""
        return None if self.folder is None else read_rate(self.folder)

    @property
    def known(self) -> tuple[KnownView, ...]:
        """What a baseline knows to be broken, and what this run says of it."""
        found = (self.raw.get("baseline") or {}).get("known", ())
        return tuple(KnownView(**each) for each in found)

    @property
    def exposures(self) -> tuple[ExposureView, ...]:
        """What stepped wall clocks let happen; it changes nothing of the verdict."""
        return tuple(
            ExposureView(**{**each, "rows": tuple(make_row(**row) for row in each["rows"])})
            for each in self.raw.get("exposures", ())
        )

    @property
    def distrust(self) -> str:
        """Why the history can't be trusted, in one sentence; empty where it can."""
        return distrust((check.id, check.ok, check.detail) for check in self.met)

    @property
    def exit_code(self) -> int:
        return exit_code(self.verdict, ((check.id, check.ok) for check in self.met))

    @property
    def failures(self) -> tuple[ClauseView, ...]:
        """Refuted clauses to show, then possible ones, in catalogue order."""
        wanted = (ClauseVerdict.REFUTED, ClauseVerdict.POSSIBLE)
        return tuple(
            clause
            for verdict in wanted
            for clause in self.clauses
            if clause.verdict is verdict and not clause.hidden
        )

    def of(self, verdict: ClauseVerdict) -> tuple[ClauseView, ...]:
        return tuple(clause for clause in self.clauses if clause.verdict is verdict)

    def count(self, verdict: ClauseVerdict) -> int:
        return len(self.of(verdict))


def view(verdict: Verdict, *, folder: Path | None = None, events: int | None = None) -> VerdictView:
    """A live verdict as reports see it."""
    return parse(verdict.to_json(), where="the verdict", folder=folder, events=events)


def parse(
    data: Mapping[str, Any], *, where: str, folder: Path | None = None, events: int | None = None
) -> VerdictView:
    """Read `inorder/verdict/v1`. Raises HistoryError (exit 64) for another version or a broken shape."""
    schema = data.get("schema")
    if schema != VERDICT_SCHEMA:
        raise HistoryError(f"{where} has schema {schema!r}; this version reads {VERDICT_SCHEMA}")
    try:
        found = VerdictView(
            verdict=RunVerdict(data["verdict"]),
            target=data["target"],
            profile=data["profile"],
            seed=int(data["seed"]),
            run=data["run"],
            replay=data.get("replay"),
            parties=dict(data["parties"]),
            levels=tuple(data["levels"]),
            clauses=tuple(_clause(each) for each in data["clauses"]),
            met=tuple(
                CheckView(c["id"], c["title"], c["ok"], c.get("detail", "")) for c in data["met"]
            ),
            cut=tuple(data.get("cut", ())),
            faults=tuple(_fault(each) for each in data.get("faults", ())),
            tool=dict(data.get("tool", {})),
            raw=data,
            folder=folder,
            events=events,
            coverage=_coverage(data["coverage"]) if data.get("coverage") else None,
            search=_search(data["search"]) if data.get("search") else None,
        )
        _ = found.known, found.exposures  # read where they are shown
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise HistoryError(
            f"{where} can't be read as a verdict: {type(error).__name__} {error}"
        ) from error
    return found


def _fault(data: Mapping[str, Any]) -> FaultView:
    name, effective = str(data["fault"]), bool(data["effective"])
    if "from_ms" not in data:
        return FaultView(name, effective)
    fields = {key: value for key, value in data.items() if key != "fault"}
    return FaultView(name, effective, FaultTold(name=name, **fields))


def _coverage(data: Mapping[str, Any]) -> Coverage:
    more = data.get("further")
    further = None if more is None else Further(more["runs"], more["most"], tuple(more["sought"]))
    growth = tuple((int(runs), int(states)) for runs, states in data.get("growth", ()))
    return Coverage(data["states"], data["runs"], data["new_at_the_end"], further, growth)


def _search(data: Mapping[str, Any]) -> Search:
    fields = {**data, "ended": Ended(data["ended"])}
    return Search(**fields)


def _clause(data: Mapping[str, Any]) -> ClauseView:
    return ClauseView(
        id=data["id"],
        title=data.get("title", ""),
        statement=data.get("statement", ""),
        verdict=ClauseVerdict(data["verdict"]),
        party=data["party"],
        implementations=tuple(data.get("implementations", ())),
        opportunities=int(data["opportunities"]),
        floor=int(data["floor"]),
        violations=int(data["violations"]),
        witness=tuple(make_row(**row) for row in data["witness"]),
        explanation=data.get("explanation", ""),
        reason=data.get("reason", ""),
        findings=tuple(data.get("findings", ())),
        not_judged=NotJudged(data["not_judged"]) if "not_judged" in data else None,
    )


def open_run(path: Path | str) -> VerdictView:
    """The verdict of a run's folder (or of a verdict.json). Raises HistoryError where there is none."""
    path = Path(path)
    file = path if path.is_file() else path / VERDICT_FILE
    if not path.exists():
        raise HistoryError(f"{path} is no run: there is no such folder")
    if not file.is_file():
        raise HistoryError(
            f"{path} is no judged run: it has no {VERDICT_FILE}; "
            f"`inorder check {path} --out {path}` judges the history of a run"
        )
    data = json_in(file, error=HistoryError)
    if not isinstance(data, dict):
        raise HistoryError(f"{file} is no verdict: it holds no JSON object")
    folder = file.parent
    _refuse_other_types(data, str(file))
    found = parse(data, where=str(file), folder=folder, events=count_events(folder))
    return replace(found, occasion=read_occasion(folder))


def _refuse_other_types(data: Mapping[str, Any], where: str) -> None:
    """Raises HistoryError for a value of another type than verdicts have there.

    What is missing is for whoever reads it: an older verdict may lack it.
    """
    if data.get("schema") != VERDICT_SCHEMA:
        return  # and is refused for that
    wrong = next(_types().iter_errors(data), None)
    if wrong is not None:
        place = "/".join(str(part) for part in wrong.absolute_path)
        raise HistoryError(
            f"{where} can't be read as a verdict: {place}: {_shortened(wrong.message)}"
        )


@cache
def _types() -> Draft202012Validator:
    """The schema of verdicts without what must be there and what may be there besides."""

    def types_of(schema: Any) -> Any:
        if isinstance(schema, list):
            return [types_of(each) for each in schema]
        if not isinstance(schema, dict):
            return schema
        return {
            name: types_of(each)
            for name, each in schema.items()
            if name != "required" and not (name == "additionalProperties" and each is False)
        }

    return Draft202012Validator(types_of(verdict_schema()))


def _shortened(message: str) -> str:
    """What a validator says quotes the value, which may be long."""
    return message if len(message) <= _LONGEST_WORDS else f"{message[:_LONGEST_WORDS]}..."


def opened_in(folder: Path) -> History | None:
    """The run's history; None where none can be read (a report does not fail for that)."""
    try:
        return open_history(folder)
    except HistoryError:
        return None


def count_events(folder: Path) -> int | None:
    """How many rows the run's history has, where it can be read."""
    history = opened_in(folder)
    return None if history is None else rows_in(history)


def rows_in(history: History) -> int:
    """The number of rows of an open history; of Parquet files only the footers are read."""
    if not history.parquet:
        return len(history.loaded) or history.events
    return sum(int(parquet.ParquetFile(path).metadata.num_rows) for path in history.parquet)


def families(clauses: Sequence[ClauseView]) -> list[tuple[str, list[ClauseView]]]:
    """Clauses by family, families in the order of their first clause."""
    found: dict[str, list[ClauseView]] = {}
    for clause in clauses:
        found.setdefault(clause.family, []).append(clause)
    return list(found.items())
