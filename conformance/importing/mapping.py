"""What a map may say, and the sentences that ask for what it must not leave out.

A map is TOML. It says once what holds for the whole log (its times, their order and clock, what the system was told,
which kinds of events it tells), and in each `[[event]]` which lines are one, and from where its columns come. A map may
begin with another one (`extends`), by the name of a recipe or by a path: its own words win, and its events come after,
or in place of the other's events of their kind (`replaces`). A sentence about an event names the map that it stands in.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

from conformance.importing.patterns import pattern
from conformance.importing.values import (
    NO_TIMES,
    UNITS_US,
    ZONE_EXAMPLES,
    is_time_format,
    tells_zone,
    zone_of,
)
from specs.documents import NotReadable, from_toml, text_in
from specs.errors import UsageError
from specs.history.columns import COLUMNS, LARGEST, NAMES, SMALLEST
from specs.plan.config import Config
from specs.reading import near, read, told
from specs.vocabulary import CommitMode, Kind, Level, Outcome

CSV, JSONL, TEXT = "csv", "jsonl", "text"
FORMS = (CSV, JSONL, TEXT)
LINES, TIMES = "lines", "times"
BEGIN, END, MOMENT = "begin", "end", "moment"
DROP, KEEP, REFUSE = "drop", "keep", "refuse"
MESSAGE = "message"
ANY_OTHER = "*"
"""In a column's `values`: the word for whatever is not listed."""
RECIPES = "recipes"
SYSTEMS = ("kafka", "nats", "rabbitmq", "redis", "rocketmq", "rocketmq-grpc", "sqs")
"""Systems by the names that the suite has for them; a map may name any other."""
_OF_ROCKETMQ = frozenset(each.name for each in dataclasses.fields(Config))
OWN_SETTINGS: Mapping[str, type] = {"generations": int, "in_flight": int}
"""What a judge asks of a system that is not RocketMQ, besides the settings that have the same name there."""

KINDS = tuple(kind.value for kind in Kind)
_OURS = frozenset(
    {"run", "seq_begin", "seq_end", "op_id", "kind", "started_us", "ended_us", "clock"}
)
"""Columns that the import fills itself."""
MAPPED = tuple(name for name in NAMES if name not in _OURS)
NUMBERS = frozenset(column.name for column in COLUMNS if column.type == "int64")
LANE = ("group", "topic", "broker", "queue_id")
_QUEUE = ("topic", "broker", "queue_id")
NEEDED: Mapping[Kind, tuple[str, ...]] = {
    Kind.DELIVER: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.COMMIT: (*LANE, "value", "client_id", "outcome"),
    Kind.FETCH_OFFSET: (*LANE, "client_id", "outcome"),
    Kind.PULL: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.LOCK: (*LANE, "client_id", "outcome"),
    Kind.UNLOCK: (*LANE, "client_id", "outcome"),
    Kind.RENEW: (*LANE, "client_id", "outcome"),
    Kind.RECEIVE: (*LANE, "client_id", "outcome"),
    Kind.ACK: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.RELEASE: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.ADD: (*LANE, "client_id"),
    Kind.DROP: (*LANE, "client_id"),
    Kind.SEND: ("topic", "message_id", "outcome"),
    Kind.DEAD_LETTER: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.SEND_BACK: (*LANE, "queue_offset", "client_id", "outcome"),
    Kind.READ: (*_QUEUE, "outcome"),
    Kind.APPEND: _QUEUE,
    Kind.TRIM: (*_QUEUE, "value"),
    Kind.RESET: (*LANE, "value"),
    Kind.PERSIST: (*LANE, "value"),
    Kind.PROGRESS: (*LANE, "outcome"),
    Kind.JOIN: ("group", "client_id"),
    Kind.LEAVE: ("group", "client_id"),
    Kind.MEMBER: ("group", "client_id", "outcome"),
    Kind.ASSIGN: ("group", "topic", "client_id"),
    Kind.END_TRANSACTION: ("message_id", "outcome"),
    Kind.CHECK: ("message_id",),
}
"""What makes a row of a kind one: without it the row is in no lane, or says nothing."""
INSTANTS = frozenset({Kind.ADD, Kind.DROP, Kind.CRASH, Kind.CHECK, Kind.CLOCK_STEP, Kind.ASSIGN})
"""Kinds that have no length: begin and end are one moment."""
AT_THE_STORE = frozenset({Kind.APPEND, Kind.PERSIST, Kind.PROGRESS, Kind.TRIM})
LISTENER_RESULTS = frozenset(
    {
        Outcome.SUCCESS,
        Outcome.SUSPEND,
        Outcome.COMMIT,
        Outcome.ROLLBACK,
        Outcome.NULL,
        Outcome.THREW,
        Outcome.CUT,
    }
)
"""What a listener's call that has an end may have ended with: of one whose end nobody knows, a judge would take it that
its message was not finished."""
WORDS: Mapping[str, frozenset[str]] = {
    "outcome": frozenset(each.value for each in Outcome),
    "level": frozenset(each.value for each in Level),
    "commit_mode": frozenset(each.value for each in CommitMode),
}
"""Columns that hold words of the vocabulary and no others."""


class MapError(UsageError):
    """A map that can't be read, or that leaves out what nobody can guess: exit 64."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a column comes from. match: a regular expression; its group (`value`, or the first) is taken. values: by
    the word in the log, ours. plus: is added to a number. crc32: of the text, as a body's hash.
    """

    field: str
    match: str | None = None
    values: Mapping[str, Any] | None = None
    plus: int = 0
    crc32: bool = False


@dataclass(frozen=True, slots=True)
class Took:
    """How long an operation took, in the log's own unit."""

    field: str
    unit: str = dataclasses.field(default="", metadata=told(choices=tuple(UNITS_US)))


@dataclass(frozen=True, slots=True)
class Each:
    """One line tells several: the elements of a list in JSON, or every match of a regular expression in a field."""

    field: str
    match: str | None = None


def _source(value: Any, where: str) -> Source:
    if isinstance(value, str):
        return Source(value)
    if not isinstance(value, Mapping):
        raise MapError(f"{where} must be the name of a field, or a table with `field`")
    source = read(Source, value, where, error=MapError)
    if source.match is not None:
        _pattern(source.match, f"{where}, match")
    return source


def _sources(value: Any, where: str) -> dict[str, Source]:
    if not isinstance(value, Mapping):
        raise MapError(f"{where} must be a table: COLUMN = FIELD")
    _known_columns(value, where)
    return {name: _source(each, f"{where}.{name}") for name, each in value.items()}


def _constants(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise MapError(f"{where} must be a table: COLUMN = VALUE")
    _known_columns(value, where)
    for name, each in value.items():
        is_number = isinstance(each, int) and not isinstance(each, bool)
        if name in NUMBERS and not (is_number and SMALLEST <= each <= LARGEST):
            raise MapError(f"{where}.{name} must be a whole number of 64 bits, not {each!r}")
        if name not in NUMBERS and not isinstance(each, str):
            raise MapError(f"{where}.{name} must be text, not {each!r}")
        if name not in NUMBERS and not each.strip():
            raise MapError(f"{where}.{name} must not be empty")
        if name in WORDS and each not in WORDS[name]:
            known = ", ".join(sorted(WORDS[name]))
            raise MapError(f"{where}.{name} must be one of {known}, not {each!r}")
    return dict(value)


def _known_columns(value: Mapping[str, Any], where: str) -> None:
    for name in value:
        if name in _OURS:
            raise MapError(f"{where}: the import fills the column {name!r} itself")
        if name not in NAMES:
            raise MapError(f"{where}: a history has no column {name!r}{near(name, MAPPED)}")


def _when(value: Any, where: str) -> dict[str, frozenset[str]]:
    if not isinstance(value, Mapping):
        raise MapError(f"{where} must be a table: FIELD = VALUE, or a list of values")
    found = {}
    for name, each in value.items():
        listed = each if isinstance(each, list) else [each]
        if not listed or not all(isinstance(one, str | int | bool) for one in listed):
            raise MapError(f"{where}.{name} must be a value, or a list of values")
        found[name] = frozenset(_as_the_log_has_it(one) for one in listed)
    return found


def _as_the_log_has_it(value: str | int | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _patterns(value: Any, where: str) -> tuple[str, ...]:
    listed = value if isinstance(value, list) else [value]
    if not listed or not all(isinstance(one, str) for one in listed):
        raise MapError(f"{where} must be a regular expression, or a list of them")
    for one in listed:
        _pattern(one, where)
    return tuple(listed)


def _pattern(text: str, where: str) -> None:
    try:
        pattern(text)
    except ValueError as error:
        raise MapError(f"{where} is no regular expression: {error}") from error


@dataclass(frozen=True, slots=True)
class Event:
    """Which lines are one kind of event, and where its columns come from.

    when: fields with the values that they must have. match: a regular expression that must be found in the field
    `message`; its named groups are fields too. at: what the line's moment is of the operation. time: the field of that
    moment; begin, end: both, where a line tells both. pair: the fields that
    are the same in both lines of an operation, as a request's id; by itself an end finds its begin by who and where.
    name: for sentences about it, with the map that it stands in where that is not the map itself; no map gives it.
    """

    kind: str = field(metadata=told(choices=KINDS))
    at: str | None = field(default=None, metadata=told(choices=(BEGIN, END, MOMENT)))
    when: Mapping[str, frozenset[str]] = field(default_factory=dict, metadata=told(reads=_when))
    match: str | None = None
    message: str | None = None
    each: Each | None = None
    time: str | None = None
    begin: str | None = None
    end: str | None = None
    took: Took | None = None
    pair: tuple[str, ...] = ()
    columns: Mapping[str, Source] = field(default_factory=dict, metadata=told(reads=_sources))
    constants: Mapping[str, Any] = field(default_factory=dict, metadata=told(reads=_constants))
    name: str = ""

    @classmethod
    def from_json(cls, value: Mapping[str, Any], where: str) -> Event:
        """where: the map, and the event's number among all."""
        name = value["name"]
        where = f"{where.rpartition(', event')[0]}, {name}"
        own = {key: each for key, each in value.items() if key != "name"}
        return dataclasses.replace(read(Event, own, where, error=MapError), name=name)

    @property
    def what(self) -> Kind:
        return Kind(self.kind)

    @property
    def spans(self) -> bool:
        """Does one line tell begin and end?"""
        return self.begin is not None or self.took is not None

    @property
    def given(self) -> frozenset[str]:
        """The columns that it says anything of."""
        return frozenset(self.columns) | frozenset(self.constants)


@dataclass(frozen=True, slots=True)
class Map:
    """A whole map; the fields' meanings are told in docs/import.md."""

    event: tuple[Event, ...] = field(metadata=told(fewest=1))
    order: str | None = field(default=None, metadata=told(choices=(LINES, TIMES)))
    clock_bound_ms: int | None = field(default=None, metadata=told(least=0))
    clock: str | None = None
    time: str | None = None
    time_format: str = "iso"
    time_zone: str | None = None
    profile: str | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    records: tuple[str, ...] | None = field(default=None, metadata=told(choices=KINDS))
    partial: tuple[str, ...] = field(default=(), metadata=told(choices=KINDS))
    did_not_happen: tuple[str, ...] = field(default=(), metadata=told(choices=KINDS))
    closed_world: bool = False
    begins_late: bool = True
    duplicates: str | None = field(default=None, metadata=told(choices=(DROP, KEEP, REFUSE)))
    target: str = "imported"
    parties: Mapping[str, str] = field(
        default_factory=dict, metadata=told(keys=("broker", "client", "producer"))
    )
    run: str | None = None
    columns: Mapping[str, Source] = field(default_factory=dict, metadata=told(reads=_sources))
    constants: Mapping[str, Any] = field(default_factory=dict, metadata=told(reads=_constants))
    null: tuple[str, ...] = ("",)
    fields: tuple[str, ...] = ()
    delimiter: str = ","
    quote: str = '"'
    skip_lines: int = field(default=0, metadata=told(least=0))
    encoding: str = "utf-8"
    line: tuple[str, ...] = field(default=(), metadata=told(reads=_patterns))
    message: str = MESSAGE

    @property
    def timed(self) -> bool:
        """Does the log tell when things happened?"""
        return self.time_format != NO_TIMES

    @property
    def counts_incarnations(self) -> bool:
        """Are incarnations numbered by the import? Where the log tells ADD, and nothing else names them."""
        return any(event.what is Kind.ADD for event in self.event) and not any(
            "incarnation" in event.given for event in self.event
        )

    def pairs(self, kind: Kind) -> bool:
        """Is an operation of this kind told by two lines, its begin and its end?"""
        told_at = {event.at for event in self.event if event.what is kind and not event.spans}
        return {BEGIN, END} <= told_at


# ---------------------------------------------------------------- reading


def recipes() -> tuple[str, ...]:
    """The maps that come with the project."""
    folder = resources.files(__package__ or "") / RECIPES
    names = (entry.name for entry in folder.iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def recipe(name: str) -> str:
    """The text of a map that comes with the project. Raises MapError for an unknown one."""
    if name not in recipes():
        raise MapError(
            f"there is no recipe {name!r}{near(name, recipes())}; there are {', '.join(recipes())}"
        )
    path = resources.files(__package__ or "") / RECIPES / f"{name}.toml"
    return path.read_text(encoding="utf-8")


def why(name: str) -> str:
    """What a recipe is for: its first line."""
    return recipe(name).partition("\n")[0].removeprefix("# ")


def read_map(path: Path, form: str) -> Map:
    """The map in a file. Raises MapError, with one sentence that says how to mend it."""
    text = text_in(path, error=MapError, name=f"the map {path}")
    return parse_map(text, form, str(path))


def parse_map(text: str, form: str, name: str = "the map") -> Map:
    """A map from its text; form: of the log. Raises MapError."""
    data = _with_parents(text, form, (name,))
    found = read(Map, _spread(data, name), name, error=MapError)
    _check(found, form, name)
    return found


def _with_parents(text: str, form: str, children: tuple[str, ...]) -> dict[str, Any]:
    """The map's words, those of the maps that it begins with among them. children: the last one is its own name."""
    name = children[-1]
    try:
        data = from_toml(text)
    except NotReadable as error:
        both = "; a table is written in one way, as x = { y = 1 } or as x.y = 1"
        hint = both if "immutable" in str(error) else ""
        raise MapError(f"{name} {error}{hint}") from error
    _name_events(data, name, is_whole=len(children) == 1)
    parent = data.pop("extends", None)
    if parent is None:
        return _merged({}, data, name, "")
    if not isinstance(parent, str):
        raise MapError(f"{name}: extends must be the name of a recipe, or a path")
    if parent in children:
        raise MapError(f"{name}: a map can't extend itself: {' → '.join((*children, parent))}")
    if parent in recipes():
        inherited = recipe(parent)
    else:
        known = ", ".join(recipes())
        if not Path(parent).is_file():
            raise MapError(f"{name} extends {parent!r}, which is no recipe ({known}) and no file")
        inherited = text_in(Path(parent), error=MapError)
    base = _with_parents(inherited, form, (*children, parent))
    if form != TEXT:
        base.pop("line", None)  # the same log, sent on as JSON or CSV by a collector
    return _merged(base, data, name, parent)


def _name_events(data: dict[str, Any], name: str, *, is_whole: bool) -> None:
    """Each event by its number in its own map; of another map than the one that was asked for, with that one's name."""
    events = data.get("event", [])
    if not isinstance(events, list) or not all(isinstance(each, dict) for each in events):
        raise MapError(f"{name}: events are written as [[event]]")
    of = "" if is_whole else f" of {name}"
    for number, event in enumerate(events, start=1):
        if "name" in event:
            raise MapError(f"{name}, event {number}: unknown field 'name'")
        kind = event.get("kind")
        event["name"] = f"event {number}{f' ({kind})' if isinstance(kind, str) else ''}{of}"


def _beside(
    base: list[dict[str, Any]], own: list[dict[str, Any]], name: str, parent: str
) -> list[dict[str, Any]]:
    """The events of both maps, without those of the parent that the child's stand in place of.

    That both tell a kind is asked for: a line that is an event of both would be two of them.
    """
    said: dict[Any, list[bool]] = {}
    for event in own:
        replaces = event.pop("replaces", None)
        if not isinstance(replaces, bool | None):
            raise MapError(f"{name}, {event['name']}: replaces must be true or false")
        said.setdefault(event.get("kind"), []).extend([] if replaces is None else [replaces])
    theirs = {event.get("kind") for event in base}
    for event in own:
        kind, where = event.get("kind"), f"{name}, {event['name']}"
        if kind in theirs and not said[kind]:
            raise MapError(
                f"{where}: {parent} has an event of that kind too: replaces = true takes this one in its place, "
                "replaces = false takes both, where no line is one and the other"
            )
        if kind not in theirs and any(said[kind]):
            raise MapError(
                f"{where} replaces nothing: {parent or 'a map that extends none'} has no such event"
            )
    return [*(event for event in base if not any(said.get(event.get("kind"), ()))), *own]


def _merged(base: dict[str, Any], own: dict[str, Any], name: str, parent: str) -> dict[str, Any]:
    found = {**base, **own}
    for table in ("columns", "constants", "config", "parties"):
        if isinstance(base.get(table), dict) and isinstance(own.get(table), dict):
            found[table] = {**base[table], **own[table]}
    for table, other in (("columns", "constants"), ("constants", "columns")):
        mine = own.get(other)
        if isinstance(base.get(table), dict) and isinstance(mine, dict):
            # What the child says of a column replaces what the parent says of it, in whichever table.
            kept = {**base[table], **own.get(table, {})}
            found[table] = {
                name: value
                for name, value in kept.items()
                if name not in mine or name in own.get(table, {})
            }
    found["event"] = _beside(base.get("event", []), own.get("event", []), name, parent)
    return found


def _spread(data: dict[str, Any], name: str) -> dict[str, Any]:
    """What the map says of all events, said in each; a field's source there wins over a constant here, and so on."""
    events = data["event"]
    if not events:
        raise MapError(f"{name}: a map needs at least one [[event]]")
    spread = []
    for event in events:
        own = {**event}
        for table, other in (("columns", "constants"), ("constants", "columns")):
            shared, mine = data.get(table, {}), event.get(table, {})
            if not isinstance(shared, dict) or not isinstance(mine, dict):
                raise MapError(f"{name}: {table} must be a table")
            theirs = event.get(other, {})
            left = {key: value for key, value in shared.items() if key not in theirs}
            own[table] = {**left, **mine}
        spread.append(own)
    return {**data, "event": spread}


# ---------------------------------------------------------------- what must be said


def _check(found: Map, form: str, name: str) -> None:
    """Raises MapError for what a map must say and does not, and for what can't be."""
    _ask_for_the_whole(found, name)
    _ask_for_times(found, name)
    _ask_for_the_form(found, form, name)
    for event in found.event:
        _check_event(found, event, f"{name}, {event.name}", form)
    _check_records(found, name)


def _ask_for_the_whole(found: Map, name: str) -> None:
    if found.profile is None:
        raise MapError(
            f'{name} does not say what was promised: profile = "kafka-java", or another of '
            "`inorder list profiles`"
        )
    if not isinstance(found.config.get("system"), str) or not found.config["system"]:
        raise MapError(
            f"{name} does not say which system wrote the log, and what it was told: "
            'config = { system = "kafka", mode = "orderly", message_model = "clustering" }'
        )
    _check_config(found.config, name)
    if found.order is None:
        raise MapError(
            f'{name} does not say in which order things happened: order = "lines" if the lines stand in the order in '
            'which one process wrote them, order = "times" if only their times say'
        )
    if found.clock_bound_ms is None:
        raise MapError(
            f"{name} does not say how far the clocks that timed the lines may be apart: clock_bound_ms = 0 if one "
            "clock timed all of them, else the bound in ms, and clock = FIELD for whose clock it was"
        )
    if found.clock_bound_ms and found.clock is None:
        raise MapError(
            f"{name}: with clock_bound_ms = {found.clock_bound_ms} the map must say whose clock timed a line: "
            'clock = FIELD, as clock = "host"'
        )
    if found.clock_bound_ms and found.order == LINES:
        raise MapError(
            f'{name}: lines that several clocks timed are in no order of their own: order = "times"'
        )
    if found.records is None:
        raise MapError(
            f"{name} does not say which kinds of events the log tells whenever they happen: records = "
            f"{_listed(sorted({event.kind for event in found.event}))} if it tells each of them; what it does not tell "
            "may excuse what looks wrong"
        )


def unread(config: Mapping[str, Any]) -> list[str]:
    """What the map tells of the system and no clause asks for."""
    return sorted(set(config) - {"system", *_OF_ROCKETMQ, *OWN_SETTINGS})


def _check_config(config: Mapping[str, Any], name: str) -> None:
    """A misspelt name would count as not told; a system's own names, as `bootstrap.servers`, are nobody's mistake."""
    system = config["system"]
    if system not in SYSTEMS and (hint := near(system, SYSTEMS)):
        raise MapError(f"{name}: config.system is {system!r}{hint}")
    for setting in unread(config):
        if "." not in setting and (hint := near(setting, [*_OF_ROCKETMQ, *OWN_SETTINGS])):
            raise MapError(f"{name}: config names {setting!r}, which no clause asks for{hint}")
    for setting, kind in OWN_SETTINGS.items():
        if not isinstance(config.get(setting, kind()), kind):
            raise MapError(f"{name}: config.{setting} must be a whole number")
    try:
        Config.from_json({each: config[each] for each in config if each in _OF_ROCKETMQ})
    except UsageError as error:
        raise MapError(f"{name}: {error}") from error


def _listed(words: Iterable[str]) -> str:
    return "[" + ", ".join(f'"{word}"' for word in words) + "]"


def _ask_for_times(found: Map, name: str) -> None:
    if not is_time_format(found.time_format):
        raise MapError(
            f"{name}: time_format must be iso, epoch_s, epoch_ms, epoch_us, epoch_ns, none (the lines do not tell "
            f'when) or a pattern as "%d/%b/%Y:%H:%M:%S", not {found.time_format!r}'
        )
    if not found.timed and (found.order != LINES or found.time is not None):
        raise MapError(
            f'{name}: with time_format = "none" there is no `time`, and the order of the lines is all there is: '
            'order = "lines"'
        )
    if found.time_zone is not None and zone_of(found.time_zone) is None:
        raise MapError(
            f"{name}: there is no time zone {found.time_zone!r}; give one as {ZONE_EXAMPLES}"
        )
    if "%" in found.time_format and not tells_zone(found.time_format) and found.time_zone is None:
        raise MapError(
            f"{name} does not say in which time zone the times are: time_zone = {ZONE_EXAMPLES}"
        )


def _ask_for_the_form(found: Map, form: str, name: str) -> None:
    if form == TEXT and not found.line:
        raise MapError(
            f"{name} does not say what a line of the text log looks like: line = a regular expression with named "
            "groups, as '(?P<time>\\S+ \\S+) (?P<level>\\w+) (?P<message>.*)'"
        )
    if form != TEXT and found.line:
        raise MapError(f"{name}: `line` is for text logs (`inorder import text`), not for {form}")
    if form != CSV and found.fields:
        raise MapError(f"{name}: `fields` names the columns of a CSV without a header line")
    for sign, what in ((found.delimiter, "delimiter"), (found.quote, "quote")):
        if len(sign) != 1 or sign in "\r\n":
            raise MapError(f"{name}: {what} must be one character, not {sign!r}")
    try:
        line_end = "\n".encode(found.encoding)
    except (LookupError, UnicodeError) as error:
        raise MapError(f"{name}: there is no encoding {found.encoding!r}") from error
    if line_end != b"\n":
        raise MapError(
            f"{name}: lines in {found.encoding} do not end in one byte; turn the log into UTF-8 first"
        )


def _check_event(found: Map, event: Event, where: str, form: str) -> None:
    kind = event.what
    if event.match is not None:
        _pattern(event.match, f"{where}, match")
    if event.each is not None and event.each.match is not None:
        _pattern(event.each.match, f"{where}, each.match")
    if event.each is not None and event.each.match is None and form != JSONL:
        raise MapError(f"{where}: each needs a `match`: only JSON has lists")
    both = sorted(frozenset(event.columns) & frozenset(event.constants))
    if both:
        raise MapError(f"{where}: {both[0]} is both a column and a constant")
    _check_places(event, where)
    _check_moment(found, event, where)
    _check_needs(found, event, where)
    if event.pair and (event.spans or not found.pairs(kind)):
        raise MapError(
            f"{where}: pair is for an operation that two lines tell, its begin and its end"
        )
    if event.at == BEGIN and not event.spans and "outcome" in event.given and kind is Kind.DELIVER:
        raise MapError(
            f"{where}: a line of a call's begin can't tell how it ends; the outcome belongs to the event of the end"
        )


PLACES = (
    "queue_id",
    "queue_offset",
    "value",
    "key_seq",
    "reconsume_times",
    "attempt",
    "generation",
)
"""Columns in which a number below 0 is a client's word for none."""
LOOK_UPS = frozenset({Kind.FETCH_OFFSET, Kind.PROGRESS})
"""Kinds whose value is -1 where they were refused: nothing is stored."""


def may_be_negative(kind: Kind, column: str) -> bool:
    """May such a column say less than 0 in a row of that kind? A step of a clock may go back."""
    return column not in PLACES or (column == "value" and kind is Kind.CLOCK_STEP)


def _check_places(event: Event, where: str) -> None:
    for name, value in event.constants.items():
        stored = name == "value" and event.what in LOOK_UPS
        if (
            isinstance(value, int)
            and value < 0
            and not (stored or may_be_negative(event.what, name))
        ):
            raise MapError(
                f"{where}: constants.{name} must not be below 0; leave it out where nobody knows it"
            )


def _check_moment(found: Map, event: Event, where: str) -> None:
    if (event.begin is None) != (event.end is None):
        raise MapError(f"{where}: begin and end are told together, or `time` and `at`")
    if event.begin is not None and (event.took or event.time or event.at):
        raise MapError(f"{where}: with begin and end a line needs neither time, at nor took")
    if not found.timed and (event.spans or event.time):
        raise MapError(f'{where}: with time_format = "none" a line has neither times nor a length')
    if found.timed and event.begin is None and event.time is None and found.time is None:
        raise MapError(
            f"{where} does not say which field holds its time: time = FIELD (for all events, or in this one)"
        )
    if event.took is not None and not event.took.unit:
        units = ", ".join(UNITS_US)
        raise MapError(f"{where}: how long it took, in which unit: took.unit is one of {units}")
    if event.took is not None and event.at not in (BEGIN, END):
        raise MapError(
            f'{where}: with `took`, is the line\'s time the begin or the end? at = "end"'
        )
    if event.spans and found.order == LINES:
        raise MapError(
            f"{where}: a line that tells begin and end stands at one of them in the log, so the order of the lines is "
            'not that of begins and ends: order = "times"'
        )
    if event.at is None and not event.spans and event.what not in INSTANTS:
        raise MapError(
            f'{where} does not say what the line\'s moment is: at = "begin" (its end is not known, or another event '
            'tells it), "end" (of what another event began), or "moment" (you take it for both)'
        )
    if event.at == END and not event.spans and not found.pairs(event.what):
        raise MapError(
            f"{where}: nobody tells when it began, and a history holds no operation without its begin: name its length "
            '(took = { field = FIELD, unit = "ms" }), add an event with at = "begin", or take the moment for both '
            '(at = "moment"; docs/import.md says what that leaves out)'
        )


def _check_needs(found: Map, event: Event, where: str) -> None:
    if event.at == END and not event.spans:
        if "outcome" in NEEDED.get(event.what, ()) and "outcome" not in event.given:
            raise MapError(f"{where} does not say how it ended: outcome, {_words_of(event)}")
        return  # the rest is the begin's
    open_ = event.at == BEGIN and not event.spans
    for name in NEEDED.get(event.what, ()):
        if name in event.given or (name == "outcome" and (open_ or event.what in INSTANTS)):
            continue
        mend = f"columns.{name} = FIELD, or constants.{name} = VALUE"
        if name == "outcome":
            mend += f" ({_words_of(event)})"
        elif name == "broker":
            mend += ' (a system whose queues name no broker has one: constants.broker = "kafka")'
        raise MapError(f"{where} does not say where {name} comes from: {mend}")


def _words_of(event: Event) -> str:
    if event.what is Kind.DELIVER:
        return ", ".join(sorted(LISTENER_RESULTS))
    return "ok, refused, sent or unknown"


def _check_records(found: Map, name: str) -> None:
    kinds = {event.kind for event in found.event}
    seen = sorted({Kind.DELIVER, Kind.READ, Kind.RECEIVE} & {Kind(kind) for kind in kinds})
    if found.closed_world and seen and Kind.SEND in found.did_not_happen:
        raise MapError(
            f"{name}: closed_world says that the log holds every producer, did_not_happen that none of them sent, and "
            f"the log tells {seen[0]} events, so of messages that nobody sent: leave one of the two out"
        )
    both = sorted({*found.partial} & {*found.did_not_happen})
    if both:
        raise MapError(
            f"{name}: partial says that the log has some {both[0]} events and not each, did_not_happen that there were "
            "none: leave one of the two out"
        )
    for kind in found.records or ():
        if kind not in kinds:
            raise MapError(
                f"{name}: records names {kind}, and no event of the map is one; if there was none of it say "
                f'did_not_happen = ["{kind}"]'
            )
