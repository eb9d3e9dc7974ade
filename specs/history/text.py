"""The text notation: a line per operation, as examples and tests write histories by hand.

    config broker_lease_ms=3000 max_reconsume_times=2
    0ms         alice  locks     billing/orders/b0/3   ok
    5ms..20ms   alice  delivers  billing/orders/b0/3   offset=17 id=m17 success
    25ms..      alice  commits   billing/orders/b0/3   value=18 sent
    30ms        shop   sends     orders/b0/3           offset=18 id=m18 key=k1 ok

Time is an instant, a span, or open (`25ms..`: begun, never ended). Then who, what, where (a lane, a queue, a
group, a broker or `-`), `column=value` words, and the outcome as a bare word (default ok). Short names:
offset, id, origin, key, rt (reconsume_times), call (messages of one call share it), inc (the incarnation's
number, `-` for none), mode (below), suspend, gen (generation), lease (lease_id), body, props (props_hash), wall (ms),
until (a time: lease_until_us). A `config` line has words of a plan's configuration, and some of the run's:
`closed_world=no`, `begins_late=yes`, `profile=NAME`, `system=NAME` (the words are then what that system was told),
`records=` and `gaps=` with kinds apart by commas, and `clock_bound_us=500`, with which everybody who is named has a
clock of their own. `#` starts a comment. The order of lines breaks ties of time.

A call that ended was in auto mode unless `mode=manual` says otherwise, or `mode=-` that nobody knows. Where a call
ended in a rollback or a commit, which mean another thing in either mode, and does not say its mode, nobody knows the
mode of any call that does not say it.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from specs.errors import HistoryError, UsageError
from specs.history.columns import COLUMNS, LARGEST, NAMES, SMALLEST
from specs.history.row import Row, make_row
from specs.history.runinfo import RunInfo
from specs.plan.config import config_of
from specs.vocabulary import LISTENER_RESULTS, CommitMode, Kind, Level, Outcome

_NUMBER = re.compile("-?[0-9]{1,18}")

VERBS: dict[str, Kind] = {
    "appends": Kind.APPEND,
    "sends": Kind.SEND,
    "locks": Kind.LOCK,
    "unlocks": Kind.UNLOCK,
    "renews": Kind.RENEW,
    "receives": Kind.RECEIVE,
    "acks": Kind.ACK,
    "releases": Kind.RELEASE,
    "pulls": Kind.PULL,
    "delivers": Kind.DELIVER,
    "commits": Kind.COMMIT,
    "fetches": Kind.FETCH_OFFSET,
    "persists": Kind.PERSIST,
    "witnesses": Kind.PROGRESS,
    "trims": Kind.TRIM,
    "resets": Kind.RESET,
    "dead-letters": Kind.DEAD_LETTER,
    "sends-back": Kind.SEND_BACK,
    "ends-transaction": Kind.END_TRANSACTION,
    "is-asked": Kind.CHECK,
    "assigns": Kind.ASSIGN,
    "adds": Kind.ADD,
    "drops": Kind.DROP,
    "joins": Kind.JOIN,
    "leaves": Kind.LEAVE,
    "asks-members": Kind.MEMBER,
    "asks-route": Kind.ROUTE,
    "reads": Kind.READ,
    "crashes": Kind.CRASH,
    "pauses": Kind.PAUSE,
    "steps-clock": Kind.CLOCK_STEP,
    "suffers": Kind.FAULT,
}
_VERB_OF = {kind: verb for verb, kind in VERBS.items()}
_SHORT = {
    "offset": "queue_offset",
    "id": "message_id",
    "origin": "origin_id",
    "key": "sharding_key",
    "rt": "reconsume_times",
    "mode": "commit_mode",
    "suspend": "suspend_ms",
    "delay": "delay_level",
    "body": "body_hash",
    "props": "props_hash",
    "gen": "generation",
    "lease": "lease_id",
    "epoch": "broker_epoch",
}
_TIMES = {"wall": "wall_us", "until": "lease_until_us"}
_OWN_LEASE = {Kind.RECEIVE, Kind.RENEW}
"""Kinds of rows that are shown with the end of their lease."""
_LONG = {column: short for short, column in _SHORT.items()}
_WHOLE = {column.name for column in COLUMNS if column.type == "int64"}
_INCARNATION_KINDS = {
    Kind.ADD,
    Kind.DROP,
    Kind.DELIVER,
    Kind.COMMIT,
    Kind.DEAD_LETTER,
    Kind.PULL,
    Kind.SEND_BACK,
}
_MAY_NAME_ONE = {Kind.FETCH_OFFSET, Kind.UNLOCK}
"""Kinds that belong to an incarnation only where the line says `inc=`."""
NAMES_NONE = "-"
"""An `inc=` of a row that names no incarnation, though its kind belongs to one."""
_LEVELS = {level.value for level in Level}
_OUTCOMES = {outcome.value for outcome in Outcome}
_GROUP_ONLY = {Kind.JOIN, Kind.LEAVE, Kind.MEMBER, Kind.ASSIGN}
_ALWAYS_STORE = {Kind.APPEND, Kind.TRIM, Kind.PROGRESS}
_STORE_KINDS = _ALWAYS_STORE | {Kind.PERSIST}
_LANE_LENGTH, _QUEUE_LENGTH = 4, 3
_COUNTED = {
    "run",
    "seq_begin",
    "seq_end",
    "op_id",
    "kind",
    "outcome",
    "started_us",
    "ended_us",
    "clock",
}
"""Columns that no `column=value` word sets."""
_TRUE, _FALSE = ("yes", "true"), ("no", "false")


@dataclass(slots=True)
class _Line:
    number: int
    began_us: int
    ended_us: int | None
    instant: bool
    fields: dict[str, Any]
    call: str | None


def _time(word: str, where: str) -> int:
    for suffix, factor in (("ms", 1000), ("us", 1), ("s", 1_000_000)):
        if word.endswith(suffix):
            try:
                at_us = round(float(word[: -len(suffix)]) * factor)
            except (ValueError, OverflowError):
                break
            if not SMALLEST <= at_us <= LARGEST:
                break
            return at_us
    raise HistoryError(f"{where}: {word!r} is no time; write 12ms, 12us or 1.5s")


def _whole(value: str, name: str, where: str) -> int:
    try:
        number = int(value)
    except ValueError as error:
        raise HistoryError(f"{where}: {name} must be a whole number, not {value!r}") from error
    if not SMALLEST <= number <= LARGEST:
        raise HistoryError(f"{where}: {name} must be an int64, {value} is too large")
    return number


def _word(column: str, value: str, where: str) -> str | None:
    if column == "commit_mode" and value == NAMES_NONE:
        return None
    if column == "level" and value not in _LEVELS:
        raise HistoryError(f"{where}: {value!r} is no level ({', '.join(sorted(_LEVELS))})")
    return value


def _place(kind: Kind, word: str, where: str) -> dict[str, Any]:
    if word == "-":
        return {}
    parts = word.split("/")
    if len(parts) == _LANE_LENGTH:
        return {
            "group": parts[0],
            "topic": parts[1],
            "broker": parts[2],
            "queue_id": _whole(parts[3], "the queue", where),
        }
    if len(parts) == _QUEUE_LENGTH:
        return {
            "topic": parts[0],
            "broker": parts[1],
            "queue_id": _whole(parts[2], "the queue", where),
        }
    if len(parts) == 1:
        return {"group": word} if kind in _GROUP_ONLY else {"broker": word}
    raise HistoryError(
        f"{where}: {word!r} is no lane (group/topic/broker/queue), queue, group or broker"
    )


def _words(text: str, where: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise HistoryError(f"{where}: a quotation mark is open: {text.strip()}") from error


def _parse_line(number: int, text: str) -> _Line:
    where = f"line {number}"
    words = _words(text, where)
    if len(words) < _LANE_LENGTH:
        raise HistoryError(f"{where}: expected time, who, what, where, got {text.strip()!r}")
    span, who, verb, place, *rest = words
    kind = VERBS.get(verb)
    if kind is None:
        raise HistoryError(f"{where}: {verb!r} is not one of {', '.join(sorted(VERBS))}")
    begin, dots, end = span.partition("..")
    began_us = _time(begin, where)
    ended_us = (_time(end, where) if end else None) if dots else began_us
    client = None if kind in _STORE_KINDS else who
    fields: dict[str, Any] = {
        "kind": kind,
        "process": who,
        "client_id": client,
        **_place(kind, place, where),
    }
    if kind in _ALWAYS_STORE:
        fields["level"] = Level.STORE
    fields["outcome"] = Outcome.OK if ended_us is not None else Outcome.UNKNOWN
    call: str | None = None
    incarnation = "1"
    for word in rest:
        name, equals, value = word.partition("=")
        if not equals:
            if word not in _OUTCOMES:
                raise HistoryError(
                    f"{where}: {word!r} is no outcome ({', '.join(sorted(_OUTCOMES))})"
                )
            fields["outcome"] = Outcome(word)
        elif name == "call":
            call = value
        elif name == "inc":
            incarnation = value
        elif name in _TIMES:
            fields[_TIMES[name]] = _time(value, where)
        else:
            column = _SHORT.get(name, name)
            if column not in NAMES:
                raise HistoryError(f"{where}: there is no column {name}")
            if column in _COUNTED:
                raise HistoryError(f"{where}: {name} follows from the line's place, time and verb")
            fields[column] = (
                _whole(value, name, where) if column in _WHOLE else _word(column, value, where)
            )
    if incarnation == NAMES_NONE:
        fields.setdefault("incarnation", None)
    elif kind in _INCARNATION_KINDS or (
        kind in _MAY_NAME_ONE and any(w.startswith("inc=") for w in rest)
    ):
        fields.setdefault("incarnation", f"{who}#{incarnation}")
    return _Line(number, began_us, ended_us, ended_us == began_us and not dots, fields, call)


def parse_history(text: str | Iterable[str], run: str = "example") -> tuple[RunInfo, list[Row]]:
    """Read the notation, from one text or line by line.

    Raises HistoryError with the line's number for anything that can't be read.
    """
    info = RunInfo(run=run, settles=True)
    lines: list[_Line] = []
    for number, raw in enumerate(_split(text), start=1):
        content = (
            raw.split("#", 1)[0].strip()
            if " #" in raw or raw.strip().startswith("#")
            else raw.strip()
        )
        if not content:
            continue
        if content.startswith("config "):
            info = _configure(info, _words(content, f"line {number}")[1:], number)
            continue
        lines.append(_parse_line(number, content))
    _take_for_automatic(lines)
    if info.clock_bound_us:
        for line in lines:  # whoever is named has a clock of their own
            line.fields.setdefault("clock", line.fields["process"])
    levels = {line.fields.get("level", Level.CLIENT) for line in lines} - {Level.STORE}
    if levels:
        info = replace(info, levels=tuple(sorted(Level(level).value for level in levels)))
    return info, _number(run, lines)


def _split(text: str | Iterable[str]) -> Iterator[str]:
    for part in (text,) if isinstance(text, str) else text:
        yield from part.splitlines() or ("",)


def _take_for_automatic(lines: Iterable[_Line]) -> None:
    """Calls that ended are in auto mode where nothing speaks against it."""
    calls = [
        line.fields
        for line in lines
        if line.fields["kind"] is Kind.DELIVER
        and line.fields["outcome"] in LISTENER_RESULTS
        and "commit_mode" not in line.fields
    ]
    if not any(call["outcome"] in (Outcome.ROLLBACK, Outcome.COMMIT) for call in calls):
        for call in calls:
            call["commit_mode"] = CommitMode.AUTO.value


def _configure(info: RunInfo, words: Iterable[str], number: int) -> RunInfo:
    values: dict[str, Any] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise HistoryError(f"line {number}: config words are name=value, not {word!r}")
        if name == "closed_world":
            if value not in (*_TRUE, *_FALSE):
                raise HistoryError(f"line {number}: closed_world is yes or no, not {value!r}")
            info = replace(info, closed_world=value in _TRUE)
        elif name == "begins_late":
            info = replace(info, begins_late=value in _TRUE)
        elif name in ("records", "gaps"):
            kinds = tuple(value.split(","))
            unknown = sorted(set(kinds) - set(Kind))
            if unknown:
                raise HistoryError(f"line {number}: {name} names no kind of row: {unknown[0]!r}")
            declared: dict[str, Any] = {"gaps": kinds}
            if name == "records":
                declared = {"records": {Level.CLIENT.value: kinds}}
            info = replace(info, **declared)
        elif name == "clock_bound_us":
            info = replace(info, clock_bounds_us={"other": _whole(value, name, f"line {number}")})
        elif name == "profile":
            info = replace(info, profile=value)
        else:
            values[name] = int(value) if _NUMBER.fullmatch(value) else value
    try:
        known = {"system": info.config.system, **info.config.to_json()}
        if values.get("system", info.config.system) != info.config.system:
            known = {}  # another system: nothing of the last one's numbers is true of it
        return replace(info, config=config_of({**known, **values}))
    except (UsageError, ValueError) as error:
        raise HistoryError(f"line {number}: {error}") from error


def _number(run: str, lines: Sequence[_Line]) -> list[Row]:
    """Give begins and ends their places: by time, ties by line; a call's messages share an op_id."""
    calls: dict[tuple[Any, str], int] = {}
    ops: list[int] = []
    for index, line in enumerate(lines):
        op = index + 1
        if line.call is not None:
            op = calls.setdefault((line.fields["process"], line.call), op)
        ops.append(op)
    marks: list[tuple[int, int, int, int]] = []  # time, line, phase, index
    for index, line in enumerate(lines):
        marks.append((line.began_us, line.number, 0, index))
        if line.ended_us is not None and not line.instant:
            marks.append((line.ended_us, line.number, 1, index))
    begin_at: dict[int, int] = {}
    end_at: dict[int, int] = {}
    for seq, (_time_us, _line, phase, index) in enumerate(sorted(marks), start=1):
        (end_at if phase else begin_at)[index] = seq
    rows = [
        make_row(
            run=run,
            seq_begin=begin_at[index],
            seq_end=begin_at[index] if line.instant else end_at.get(index),
            op_id=ops[index],
            started_us=line.began_us,
            ended_us=line.ended_us,
            **{"clock": "virtual", **line.fields},
        )
        for index, line in enumerate(lines)
    ]
    return sorted(rows, key=lambda row: row.seq_begin)


def _us(value: int) -> str:
    return f"{value // 1000}ms" if value % 1000 == 0 else f"{value}us"


def _where(row: Row) -> str:
    if row.queue_id is not None and row.topic and row.broker:
        return str(row.lane) if row.group else str(row.queue)
    return row.group or row.broker or "-"


_SHOWN = (
    "queue_offset",
    "message_id",
    "origin_id",
    "sharding_key",
    "key_seq",
    "reconsume_times",
    "value",
    "commit_mode",
    "suspend_ms",
    "delay_level",
    "generation",
    "lease_id",
    "tags",
    "code",
    "view",
    "detail",
)


def render_row(row: Row, *, base_us: int = 0, whole: bool = True) -> str:
    """One row as a line of the notation; base_us is subtracted from its times.

    whole: what the row does not hold was not told, and is not left out by who shows it.
    """
    begun = _us(row.started_us - base_us)
    if row.ended_us is None:
        span = f"{begun}.."
    elif row.seq_end == row.seq_begin:
        span = begun
    else:
        span = f"{begun}..{_us(row.ended_us - base_us)}"
    words = [
        span,
        row.process or row.client_id or "-",
        _VERB_OF.get(row.kind, row.kind),
        _where(row),
    ]
    if row.kind is Kind.ASSIGN and row.topic and row.queue_id is None:
        words.append(f"topic={shlex.quote(row.topic)}")
    is_call = row.kind is Kind.DELIVER
    for column in _SHOWN:
        value = getattr(row, column)
        if (
            value is None
            and whole
            and column == "commit_mode"
            and is_call
            and row.outcome in LISTENER_RESULTS
        ):
            words.append(f"{_LONG[column]}={NAMES_NONE}")
        elif value is not None:
            words.append(f"{_LONG.get(column, column)}={shlex.quote(str(value))}")
    if row.kind in _OWN_LEASE and row.lease_until_us is not None:
        words.append(f"until={_us(row.lease_until_us - base_us)}")
    if row.incarnation and "#" in row.incarnation and not row.incarnation.endswith("#1"):
        words.append(f"inc={row.incarnation.rsplit('#', 1)[1]}")
    words.append(row.outcome)
    return "  ".join(words)


def render_rows(rows: Sequence[Row], *, base_us: int | None = None, whole: bool = True) -> str:
    """Rows as aligned lines. base_us: what times are counted from; by default the first row's begin."""
    base = min((row.started_us for row in rows), default=0) if base_us is None else base_us
    table = [render_row(row, base_us=base, whole=whole).split("  ") for row in rows]
    widths = [max((len(line[column]) for line in table), default=0) for column in range(4)]
    return "\n".join(
        "  ".join([*(word.ljust(widths[i]) for i, word in enumerate(line[:4])), *line[4:]]).rstrip()
        for line in table
    )
