"""An import from its first line to the history's folder, and what it says of itself."""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from math import gcd
from pathlib import Path
from typing import Any

from conformance.importing.events import BadRow, Compiled, Line, Mark, Role, compiled
from conformance.importing.hashing import Hasher, told_settings
from conformance.importing.mapping import AT_THE_STORE, LINES, REFUSE, Map
from conformance.importing.reach import Decided, Reach, Shape, reach
from conformance.importing.sources import Record, records
from conformance.importing.timeline import (
    TIE_BOUND_US,
    Once,
    Timeline,
    Told,
    by_lines,
    by_times,
    in_order,
)
from conformance.importing.writing import Written, write_rows
from specs.errors import UsageError
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import write_cut
from specs.plan.config import ROCKETMQ, Config, config_of
from specs.profiles import Profile, load
from specs.vocabulary import Kind, Level

IMPORT_SCHEMA = "inorder/import/v1"
REPORT_FILE = "import.json"
_SHOWN_BAD = 10
_LONGEST_SHOWN = 60
_MS, _SECOND_US = 1_000, 1_000_000
_EVERY = 100_000
_FEW_LINES = 10
"""A quoted text of more of them is told: a quote may be open."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What an import is asked for. secret: words become hashes keyed with it."""

    form: str
    logs: Sequence[str]
    mapping: Map
    out: Path
    skip_bad: int = 0
    secret: bytes | None = None


@dataclass(frozen=True, slots=True)
class Bad:
    """A line that was passed over. sentence: with the log's name, the line and the reason."""

    line: int
    sentence: str


@dataclass(frozen=True, slots=True)
class Lacking:
    """A log, the first one by number 1, whose header lacks columns that the map asks for and that another log has."""

    number: int
    log: str
    columns: tuple[str, ...]


@dataclass(slots=True)
class Report:
    """What became of a log's lines, and what can be judged of it."""

    written: Written
    told: Told
    lines: int = 0
    long_texts: int = 0
    first_long_text: int | None = None
    noise: int = 0
    unspoken: int = 0
    first_unspoken: int | None = None
    bad: int = 0
    shown_bad: list[Bad] = field(default_factory=list)
    seen: dict[str, int] = field(default_factory=dict)
    moments: tuple[str, ...] = ()
    clauses: list[Reach] = field(default_factory=list)
    profile: str = ""
    hashed: bool = False
    assumed: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    lacking: list[Lacking] = field(default_factory=list)
    sure_of_duplicates: bool = False

    def cut(self) -> list[str]:
        """What of the log is not in the history, for whoever reads a verdict on it."""
        midst = sum(self.told.in_the_midst.values())
        found = [(self.bad, "line was passed over", "lines were passed over")]
        if not self.sure_of_duplicates:
            found.append(
                (
                    self.told.twice,
                    "line the same as another was left out",
                    "lines the same as others were left out",
                )
            )
        found.append(
            (midst, "end that no line began was left out", "ends that no line began were left out")
        )
        return [
            f"{count:,} {one if count == 1 else many} at the import"
            for count, one, many in found
            if count
        ]

    def of(self, decided: Decided) -> list[Reach]:
        return [each for each in self.clauses if each.decided is decided]

    def to_json(self) -> dict[str, Any]:
        told = self.told
        return {
            "schema": IMPORT_SCHEMA,
            "lines": self.lines,
            "rows": self.written.total,
            "not_in_the_form_of_a_line": self.noise,
            "of_no_event": self.unspoken,
            "first_of_no_event": self.first_unspoken,
            "bad": self.bad,
            "bad_lines": [
                {"line": bad.line, **({} if self.hashed else {"why": bad.sentence})}
                for bad in self.shown_bad
            ],
            "never_ended": told.never_ended,
            "ends_without_begin": told.without_begin,
            "ends_without_begin_in_the_midst": told.in_the_midst,
            "twice": told.twice,
            "twice_lines": [
                {"line": line, "same_as_line": other} for line, other in told.twice_shown
            ],
            "logs_that_lack_columns": [
                {"log": each.number, **({} if self.hashed else {"columns": list(each.columns)})}
                for each in self.lacking
            ],
            "gaps": sorted(told.gaps),
            "texts_of_many_lines": self.long_texts,
            "rows_of_one_time": told.ties,
            "newest_first": told.newest_first,
            "hashed": self.hashed,
            "assumed": list(self.assumed),
            "resolution_us": told.resolution_us,
            "settings_finer_than_the_times": list(self.dropped),
            "kinds": {
                kind: {
                    "rows": count,
                    "values": {
                        name: number
                        for name, number in sorted(self.written.values[kind].items())
                        if number
                    },
                }
                for kind, count in sorted(self.written.rows.items())
            },
            "profile": self.profile,
            "clauses": [
                {
                    "id": each.id,
                    "title": each.title,
                    "can_be": each.decided.value,
                    "why": each.why,
                    "missing_kinds": list(each.kinds),
                    "missing_columns": list(each.columns),
                    "missing_settings": list(each.settings),
                }
                for each in self.clauses
            ],
        }


class Job:
    """Reads the log once. A line that is no row ends it, unless so many may be passed over."""

    def __init__(self, wanted: Wanted, say: Callable[[str], None] = lambda line: None) -> None:
        self._wanted, self._say = wanted, say
        self._map = wanted.mapping
        self._hasher = None if wanted.secret is None else Hasher(wanted.secret)
        self._log, self._number = "", 0
        self._order = 0
        self.report = Report(
            Written(),
            Told(),
            hashed=self._hasher is not None,
            sure_of_duplicates=self._map.duplicates is not None,
        )

    def run(self) -> Report:
        """Do it. Raises UsageError, and leaves nothing behind then."""
        profile = load(self._map.profile or "")
        info = self._described(profile)
        out = self._wanted.out
        _refuse_what_is_there(out)
        try:
            out.parent.mkdir(parents=True, exist_ok=True)
            room = Path(tempfile.mkdtemp(prefix=f".{out.name}-", dir=out.parent))
        except OSError as error:
            raise UsageError(f"{out} can't be written: {error.strerror or error}") from error
        part = room / "history"
        try:
            self.report.written = write_rows(part / "history", self._rows(info.run))
            info = self._finished(info)
            self._sum_up(info, profile)
            write_runinfo(part, info)
            write_cut(part, self.report.cut())
            (part / REPORT_FILE).write_text(
                json.dumps(self.report.to_json(), indent=2) + "\n", encoding="utf-8"
            )
            if out.is_dir():
                out.rmdir()
            part.replace(out)
        except OSError as error:
            raise UsageError(f"{out} can't be written: {error.strerror or error}") from error
        finally:
            shutil.rmtree(room, ignore_errors=True)
        return self.report

    # ------------------------------------------------------------ lines

    def _rows(self, run: str) -> Iterator[list[Any]]:
        mapping = self._map
        events = compiled(mapping, self._hasher)
        timeline = Timeline(mapping, run, self.report.told)
        ordered = mapping.order == LINES
        if ordered:
            groups = by_lines(self._marks(events), self.report.told, self._refuse)
        else:
            groups = by_times(self._marks(events), self.report.told)
        groups = Once(mapping, self.report.told, self._told_twice).marks(groups)
        rows = timeline.rows(groups, ordered=ordered)
        waits = any(each.role is Role.BEGINS for each in events)
        yield from in_order(rows) if waits else rows
        self.report.seen = {each.event.name: each.seen for each in events}
        self.report.told.reckoned_us = max(each.reckoned_us for each in events)

    def _marks(self, events: Sequence[Compiled]) -> Iterator[Mark]:
        report = self.report
        told = report.told
        all_kinds = frozenset(event.kind.value for event in events)
        logs = records(self._wanted.logs, self._wanted.form, self._map, self._told_lacking)
        for self._number, (log, coming) in enumerate(logs, start=1):
            self._log = log
            for record in coming:
                report.lines += record.lines
                if report.lines % _EVERY == 0:
                    self._say(f"{report.lines:,} lines read")
                if record.noise:
                    report.noise += 1
                    continue
                if record.wrong is not None:
                    self._refuse(record.number, BadRow(record.wrong), all_kinds, record.lines)
                    continue
                if record.lines > _FEW_LINES:
                    report.long_texts += 1
                    report.first_long_text = report.first_long_text or record.number
                try:
                    spoken = [
                        (event, fields)
                        for event in events
                        if (fields := event.speaks_of(record.fields)) is not None
                    ]
                except BadRow as bad:  # nobody knows of which event it speaks
                    kinds = frozenset(event.kind.value for event in events)
                    self._refuse(record.number, bad, kinds, record.lines)
                    continue
                if not spoken:
                    report.unspoken += 1
                    report.first_unspoken = report.first_unspoken or record.number
                    continue
                try:
                    found = self._of_a_line(spoken, record)
                except BadRow as bad:
                    kinds = frozenset(event.kind.value for event, _fields in spoken)
                    self._refuse(record.number, bad, kinds, record.lines)
                    continue
                for mark in found:
                    told.resolution_us = gcd(told.resolution_us, mark.at_us)
                    told.earliest_us = min(told.earliest_us, mark.at_us)
                yield from found

    def _of_a_line(
        self, spoken: Sequence[tuple[Compiled, Mapping[str, Any]]], record: Record
    ) -> list[Mark]:
        """All marks of a line that these events speak of, or none of them."""
        found: list[Mark] = []
        line = Line(record.number, self.report.lines, record.same)
        for event, fields in spoken:
            found.extend(event.marks(fields, line, self._order + 1))
            self._order = max((self._order + 1, *(mark.order for mark in found)))
        return found

    def _told_lacking(self, log: str, columns: Sequence[str]) -> None:
        self.report.lacking.append(Lacking(self._number, log, tuple(columns)))

    def _told_twice(self, line: int, other: int) -> None:
        if self._map.duplicates == REFUSE:
            raise UsageError(
                f"{self._log}, line {line} is the same as line {other}, byte for byte, and the map says "
                'duplicates = "refuse"; "drop" takes it once, "keep" takes each line for an event'
            )

    def _refuse(
        self, line: int, bad: BadRow, kinds: frozenset[str] = frozenset(), lines: int = 1
    ) -> None:
        """kinds: those that it spoke of, as far as anybody knows; lines: as many as it spans."""
        subject = "the line" if bad.field is None else f"the field {bad.field!r}"
        value = ""
        if bad.value is not None and self._hasher is None:
            shown = bad.value[:_LONGEST_SHOWN]
            value = f": {shown!r}" if shown == bad.value else f": {shown!r}..."
        sentence = f"{self._log}, line {line}: {subject} {bad.why}{value}"
        if lines > 1:
            sentence += f" (a quoted text spans the lines to {line + lines - 1})"
        self.report.bad += lines
        self.report.told.gaps |= kinds
        if len(self.report.shown_bad) < _SHOWN_BAD:
            self.report.shown_bad.append(Bad(line, sentence))
        if self.report.bad > self._wanted.skip_bad:
            allowed = self._wanted.skip_bad
            mend = (
                f"that makes {count_of(self.report.bad, 'bad line')}, and --skip-bad allows {allowed}"
                if allowed
                else "mend the map or the log, or pass over so many bad lines with --skip-bad N"
            )
            raise UsageError(f"{sentence}; {mend}")

    # ------------------------------------------------------------ what is known of it

    def _described(self, profile: Profile) -> RunInfo:
        mapping = self._map
        config = dict(mapping.config)
        if config["system"] == ROCKETMQ:
            # By that name our defaults would stand for whatever the map does not tell.
            config["system"] = "Apache RocketMQ"
        if self._hasher is not None:
            config = told_settings(config)
        name = mapping.run or ("import" if self._hasher else Path(self._wanted.logs[0]).stem)
        if self._hasher is not None and mapping.run is not None:
            name = self._hasher.name(mapping.run)
        return RunInfo(
            run=name or "import",
            target=mapping.target if self._hasher is None else "imported",
            parties=mapping.parties,
            profile=mapping.profile,
            closed_world=mapping.closed_world,
            begins_late=mapping.begins_late,
            records=self._records(),
            config=config_of(config, "the map, config"),
            environment={"imported by": f"inorder {version('inorder')}"},
        )

    def _records(self) -> dict[str, tuple[str, ...]]:
        mapping = self._map
        levels: dict[str, set[str]] = {}
        for kind in mapping.did_not_happen:
            store = Kind(kind) in AT_THE_STORE
            levels.setdefault(Level.STORE if store else Level.CLIENT, set()).add(kind)
        for event in mapping.event:
            # That no line told of any may be because none happened, or because the log or the pattern does not tell.
            if event.kind in (mapping.records or ()) and event.kind in self.report.written.rows:
                usual = Level.STORE if event.what in AT_THE_STORE else Level.CLIENT
                level = str(event.constants.get("level", usual))
                levels.setdefault(level, set()).add(event.kind)
        return {str(level): tuple(sorted(kinds)) for level, kinds in levels.items()}

    def _finished(self, info: RunInfo) -> RunInfo:
        report = self.report
        told = {*(self._map.records or ())} & {*report.written.rows}
        report.told.gaps |= told & {*self._map.partial}
        if not report.written.total:
            raise UsageError(f"{self._log} gives no event at all: {self._why_none()}")
        for kind in self._map.did_not_happen:
            if count := report.written.rows.get(kind):
                raise UsageError(
                    f"the map says that no {kind} happened (did_not_happen), and {self._log} tells of {count}: take it "
                    "out there, and add it to `records` if the log tells each of them"
                )
        bounds = {}
        if self._map.clock_bound_ms:
            bounds["log"] = self._map.clock_bound_ms * _MS
        elif report.told.ties:
            bounds["log"] = TIE_BOUND_US
        if report.told.reckoned_us:
            # Both the time and the length were rounded: so far may the other end be from where it was.
            off = 2 * max(report.told.reckoned_us, report.told.resolution_us)
            bounds["log"] = max(bounds.get("log", 0), off)
        environment = {**info.environment, **self._assumed()}
        return RunInfo(
            run=info.run,
            target=info.target,
            parties=info.parties,
            profile=info.profile,
            levels=tuple(sorted(report.written.levels)),
            clock_bounds_us=bounds,
            # Of a line that was passed over nobody knows whom it told of.
            closed_world=info.closed_world and not report.told.gaps,
            begins_late=info.begins_late or bool(report.told.without_begin),
            records=self._records(),
            gaps=tuple(sorted(report.told.gaps)),
            config=self._measurable(info.config),
            environment=environment,
        )

    def _measurable(self, config: Config) -> Config:
        """Without the lengths of time that times as coarse as the log's can't be held against.

        Of two times that tell only the second, a length of 1.5 s between them may look like one of 1 s. A whole number
        of seconds never looks shorter, or longer, than it is.
        """
        told = config.to_json()
        exact = self._map.timed and not self.report.told.reckoned_us
        coarse = self.report.told.resolution_us if exact else 0
        dropped = [
            name
            for name, value in told.items()
            if (
                name.endswith("_ms")
                and isinstance(value, int)
                and (not coarse or value * _MS % coarse)
            )
            or (name == "delay_levels" and (not coarse or _SECOND_US % coarse))
        ]
        self.report.dropped = tuple(sorted(dropped))
        left = {name: value for name, value in told.items() if name not in dropped}
        return config_of({"system": config.system, **left}) if dropped else config

    def _why_none(self) -> str:
        report = self.report
        if not report.lines:
            return "it is empty"
        if report.noise == report.lines:
            return f"none of its {report.lines} lines has the form that `line` says"
        return (
            f"of its {report.lines} lines {report.noise} are not in the form of a line, {report.bad} are bad, and no "
            "event of the map speaks of the others"
        )

    def _assumed(self) -> dict[str, str]:
        moments = sorted(
            {
                event.kind
                for event in self._map.event
                if event.at == "moment" and event.kind in self.report.written.rows
            }
        )
        self.report.moments = tuple(moments)
        return (
            {"taken for begin and end: the moment of the line": ", ".join(moments)}
            if moments
            else {}
        )

    def _sum_up(self, info: RunInfo, profile: Profile) -> None:
        report = self.report
        report.profile = profile.name
        report.assumed = tuple(
            [
                f"{kind}: the moment of the line is taken for begin and end"
                for kind in report.moments
            ]
            + [f"{kind}: none happened" for kind in self._map.did_not_happen]
            + (
                ["deliver: a call may have been in auto or in manual mode (no commit_mode is told)"]
                if report.written.rows.get(Kind.DELIVER)
                and "commit_mode" not in report.written.columns(Kind.DELIVER)
                else []
            )
            + (["nobody was at work whom the log does not tell"] if info.closed_world else [])
        )
        report.clauses = reach(info, profile, self._shapes())

    def _shapes(self) -> dict[Kind, Shape]:
        open_ = {
            event.what
            for event in self._map.event
            if event.at == "begin" and not event.spans and not self._map.pairs(event.what)
        }
        moments = {Kind(kind) for kind in self.report.moments}
        return {
            Kind(kind): Shape(
                self.report.written.columns(kind),
                Kind(kind) not in open_,
                Kind(kind) not in moments,
            )
            for kind in self.report.written.rows
        }


def count_of(number: int, what: str) -> str:
    """`1 bad line`, `2 bad lines`."""
    return f"{number:,} {what}" if number == 1 else f"{number:,} {what}s"


def _refuse_what_is_there(out: Path) -> None:
    if out.is_dir() and any(out.iterdir()):
        raise UsageError(f"{out} exists and is not empty; give another --out")
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder with --out")
