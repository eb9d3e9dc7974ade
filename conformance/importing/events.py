"""Turns a line into marks: for each event of the map that the line is, one, or one for each element that it tells.

A line that no event speaks of is no fault. One that an event speaks of and that lacks what makes a row one, or holds
what is no value, is: it is told with the field and the reason.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from conformance.importing.hashing import Hasher
from conformance.importing.mapping import (
    ANY_OTHER,
    AT_THE_STORE,
    BEGIN,
    END,
    INSTANTS,
    LISTENER_RESULTS,
    LOOK_UPS,
    NEEDED,
    NUMBERS,
    PLACES,
    WORDS,
    Event,
    Map,
    MapError,
    Source,
    may_be_negative,
)
from conformance.importing.patterns import Pattern, pattern
from conformance.importing.sources import Fields, field_of, text_of, trimmed
from conformance.importing.values import BadValue, fitting, length_us, reads_times, step_us, whole
from specs.history.columns import NAMES
from specs.vocabulary import DLQ_PREFIX, RETRY_PREFIX, Kind, Level, Outcome

PLACE = {name: index for index, name in enumerate(NAMES)}
_CLOCKS = 1 << 16
_OUTCOME, _TOPIC = PLACE["outcome"], PLACE["topic"]
_MESSAGE, _ORIGIN = PLACE["message_id"], PLACE["origin_id"]
_TIMES = frozenset({"wall_us", "lease_until_us"})
_PAIR_BY = ("client_id", "group", "topic", "broker", "queue_id", "queue_offset")
_NAMES = ("process", "message_id")
"""By what an end finds its begin, where the map names nothing else, as far as both events tell it: who, where and which
offset. Where they say that, a further name counts only if both lines have it."""
NOTHING_STORED = -1
"""The value of a look-up that was refused."""
_SHARED = frozenset({Kind.DELIVER, Kind.SEND})
"""Kinds of which one operation may have several messages: rows of one line are one operation."""

Columns = tuple[Any, ...]
"""A row's columns, in the history's order, without those that only its place in time gives."""


class Role(IntEnum):
    """What a line tells of an operation."""

    MOMENT = 0  # all of it
    OPEN = 1  # its begin, and nobody tells the end
    BEGINS = 2  # its begin, and another line tells the end
    ENDS = 3


class Line(NamedTuple):
    """A line of a log. place: its own among all lines of all logs; same: equal for lines of the same bytes."""

    number: int
    place: int
    same: int


class Mark(NamedTuple):
    """When something began, ended, or both. order: its place among the log's lines, which breaks ties of time.

    place, line, same: those of its line.

    clock: whose time it is. pair: by which an end finds its begin; names: what they need not both say, and not say
    differently. op: rows of one line that share it are one operation.
    """

    at_us: int
    order: int
    place: int
    role: Role
    clock: str
    pair: tuple[Any, ...] | None
    op: int
    columns: Columns
    names: tuple[Any, ...]
    line: int
    same: int


class BadRow(ValueError):
    """A line that an event speaks of, and that is no row. place: the field; value: what stands there."""

    def __init__(self, why: str, field: str | None = None, value: str | None = None) -> None:
        super().__init__(why)
        self.why, self.field, self.value = why, field, value


class Compiled:
    """One event of a map, ready for lines."""

    def __init__(self, event: Event, mapping: Map, hasher: Hasher | None) -> None:
        self.event, self.kind = event, event.what
        self.seen = 0
        self.reckoned_us = (
            0  # how finely lengths were told, from which a begin or an end was reckoned
        )
        self._null = frozenset(word.strip() for word in mapping.null)
        self._reads_time = reads_times(mapping.time_format, mapping.time_zone)
        self._match = None if event.match is None else pattern(event.match)
        self._message = event.message or mapping.message
        self._each = (
            None if event.each is None or event.each.match is None else pattern(event.each.match)
        )
        self._timed = mapping.timed
        self._time = event.begin or event.time or mapping.time or ""
        self._clock = mapping.clock
        self._hasher = hasher
        self._ends_here = event.at == END and not event.spans
        needed = () if self._ends_here else NEEDED.get(self.kind, ())
        self._ends_later = event.at == BEGIN and not event.spans
        self._needed = [
            (PLACE[name], name) for name in needed if name != "outcome" or not self._ends_later
        ]
        self._takes = [
            (PLACE[name], name, source, self._taking(name, source))
            for name, source in event.columns.items()
        ]
        self._places = [
            (PLACE[name], name)
            for name in PLACES
            if name in event.given and not may_be_negative(self.kind, name)
        ]
        self._base = self._constants()
        self._pair_places: tuple[int, ...] = ()
        self._name_places: tuple[int, ...] = ()
        self.role = self._role(mapping)
        self._paired = self.role in (Role.BEGINS, Role.ENDS)

    def pair_with(self, columns: Sequence[str], names: Sequence[str]) -> None:
        """By which columns its operations are found again; names: those that a line may lack."""
        self._pair_places = tuple(PLACE[name] for name in columns)
        self._name_places = tuple(PLACE[name] for name in names)

    # ------------------------------------------------------------ what never changes

    def _role(self, mapping: Map) -> Role:
        event = self.event
        if event.spans:
            return Role.BEGINS
        if event.at == BEGIN:
            return Role.BEGINS if mapping.pairs(self.kind) else Role.OPEN
        return Role.ENDS if event.at == END else Role.MOMENT

    def _constants(self) -> list[Any]:
        base: list[Any] = [None] * len(NAMES)
        base[PLACE["kind"]] = self.kind.value
        level = Level.STORE if self.kind in AT_THE_STORE else Level.CLIENT
        base[PLACE["level"]] = level.value
        if self.kind in INSTANTS:
            base[PLACE["outcome"]] = Outcome.OK.value
        if self.event.at == BEGIN and not self.event.spans:
            base[PLACE["outcome"]] = Outcome.UNKNOWN.value
        for name, value in self.event.constants.items():
            base[PLACE[name]] = self._kept(name, value)
        return base

    def _kept(self, name: str, value: str | int) -> str | int | None:
        return value if self._hasher is None else self._hasher.column(self.kind, name, value)

    def _taking(self, name: str, source: Source) -> Callable[[str], str | int | None]:
        """From a field's text to the column's value. It raises BadValue; None stands for no value."""
        steps: list[Callable[[Any], Any]] = []
        if source.match is not None:
            steps.append(_group_of(pattern(source.match)))
        if source.values is not None:
            steps.append(_word_in(source.values))
        if source.crc32:
            steps.append(lambda text: zlib.crc32(str(text).encode("utf-8", "surrogatepass")))
        elif name in _TIMES:
            steps.append(self._reads_time)
        elif name in NUMBERS:
            steps.append(_whole)
            if source.plus:
                steps.append(lambda number: fitting(number + source.plus))
        elif name in WORDS:
            steps.append(_one_of(WORDS[name]))

        if self._hasher is None and len(steps) < 2:
            return steps[0] if steps else str

        def take(text: str) -> str | int | None:
            value: Any = text
            for step in steps:
                value = step(value)
                if value is None:
                    return None
            return self._kept(name, value)

        return take

    # ------------------------------------------------------------ lines

    def speaks_of(self, fields: Fields) -> Fields | None:
        """The line's fields, with those that `match` finds, if it is such an event. Raises BadRow."""
        for name, values in self.event.when.items():
            if trimmed(fields, name) not in values:
                return None
        if self._match is None:
            return fields
        text = text_of(field_of(fields, self._message))
        if text is None:
            return None
        _check_text(text, self._message)
        found = self._match.search(text)
        return None if found is None else {**fields, **found.groupdict()}

    def marks(self, fields: Fields, line: Line, order: int) -> list[Mark]:
        """What the line tells, given the fields of one that is such an event. Raises BadRow."""
        self.seen += 1
        if self.event.each is None:
            return self._of_one(fields, line, order, order)
        # Rows of a line that are each an operation have an op of their own; of a call's batch they share it.
        marks: list[Mark] = []
        for index, element in enumerate(self._elements(fields)):
            op = order if self.kind in _SHARED else order + index
            marks += self._of_one({**fields, **element}, line, order + index, op)
        return marks

    def _elements(self, fields: Fields) -> list[Fields]:
        name = self.event.each.field if self.event.each is not None else ""
        value = field_of(fields, name)
        if self._each is None:
            if not isinstance(value, list) or not all(isinstance(one, dict) for one in value):
                raise BadRow("is no list of objects", name)
            return value
        text = text_of(value)
        if text is None:
            raise BadRow("is missing", name)
        _check_text(text, name)
        elements: list[Fields] = [found.groupdict() for found in self._each.finditer(text)]
        if not elements and text.strip(" \t[](){}"):
            raise BadRow("holds nothing that `each` finds", name, text)
        return elements

    def _of_one(self, fields: Fields, line: Line, order: int, op: int) -> list[Mark]:
        columns = self._columns(fields)
        at_us = self._moment(fields, self._time) if self._timed else order
        clock = "log"
        if self._clock is not None:
            clock = trimmed(fields, self._clock) or ""
            if not clock:
                raise BadRow("is missing: whose clock timed the line?", self._clock)
            _check_text(clock, self._clock)
            clock = clock if self._hasher is None else self._hasher.name(clock)
        if not self.event.spans:
            pair = self._pair(columns, fields) if self._paired else None
            names = tuple(columns[place] for place in self._name_places) if self._paired else ()
            mine = (self.role, clock, pair, op, tuple(columns), names)
            return [Mark(at_us, order, line.place, *mine, line.number, line.same)]
        begin_us, end_us = self._span(fields, at_us)
        whole, rest = tuple(columns), ((), line.number, line.same)
        if begin_us == end_us:
            return [Mark(begin_us, order, line.place, Role.MOMENT, clock, None, op, whole, *rest)]
        own = ("line", order)
        if self.event.took is not None:
            clock = f"{clock}~{order % _CLOCKS}"  # one of the two was reckoned: see `Job`
        return [
            Mark(begin_us, order, line.place, Role.BEGINS, clock, own, op, whole, *rest),
            Mark(end_us, order, line.place, Role.ENDS, clock, own, op, (), *rest),
        ]

    def _columns(self, fields: Fields) -> list[Any]:
        columns = self._base.copy()
        for place, name, source, take in self._takes:
            field = source.field
            text = text_of(field_of(fields, field)) if source.crc32 else trimmed(fields, field)
            if text is None or text in self._null:
                continue
            try:
                value = take(text)
            except BadValue as error:
                raise BadRow(f"{error} ({name})", field, text) from error
            if type(value) is str and not value.isascii():
                _check_text(value, field)
            columns[place] = value
        self._without_negatives(columns, fields)
        for place, name in self._needed:
            if columns[place] is None:
                given = self.event.columns.get(name)
                raise BadRow(f"gives no {name}", None if given is None else given.field)
        self._check_outcome(columns)
        if self.kind is Kind.READ and columns[_MESSAGE] and not columns[_ORIGIN]:
            _check_original(columns[_TOPIC])
        return columns

    def _without_negatives(self, columns: list[Any], fields: Fields) -> None:
        """A client's word for "none" (-1, librdkafka's -1001) is no place in a queue, and no count."""
        for place, name in self._places:
            value = columns[place]
            if value is None or value >= 0:
                continue
            if name == "value" and self.kind in LOOK_UPS and columns[_OUTCOME] == Outcome.REFUSED:
                columns[place] = NOTHING_STORED
                continue
            if name in NEEDED.get(self.kind, ()):
                given = self.event.columns.get(name)
                field = None if given is None else given.field
                text = None if field is None else trimmed(fields, field)
                raise BadRow(f"is below 0, which tells of none ({name})", field, text)
            columns[place] = None

    def _check_outcome(self, columns: list[Any]) -> None:
        if self._ends_later:
            return
        outcome = columns[_OUTCOME]
        if outcome is None and self.role is not Role.ENDS:
            columns[_OUTCOME] = Outcome.OK.value  # of a kind that does not ask for it
        elif self.kind is Kind.DELIVER and outcome not in LISTENER_RESULTS:
            source = self.event.columns.get("outcome")
            known = ", ".join(sorted(LISTENER_RESULTS))
            raise BadRow(
                f"does not say how the call ended ({known}); where nobody can say, it has no end either",
                None if source is None else source.field,
            )

    def _moment(self, fields: Fields, name: str) -> int:
        text = trimmed(fields, name)
        if text is None or text in self._null:
            raise BadRow("is missing: every line needs a time", name)
        try:
            return self._reads_time(text)
        except BadValue as error:
            raise BadRow(str(error), name, text) from error

    def _span(self, fields: Fields, at_us: int) -> tuple[int, int]:
        event = self.event
        if event.end is not None:
            end_us = self._moment(fields, event.end)
            if end_us < at_us:
                raise BadRow("lies before the begin", event.end)
            return at_us, end_us
        took = event.took
        assert took is not None
        text = trimmed(fields, took.field)
        if text is None or text in self._null:
            raise BadRow("is missing: how long did it take?", took.field)
        try:
            us = length_us(text, took.unit)
        except BadValue as error:
            raise BadRow(str(error), took.field, text) from error
        step = step_us(text, took.unit)
        self.reckoned_us = min(self.reckoned_us or step, step)
        return (at_us, at_us + us) if event.at == BEGIN else (at_us - us, at_us)

    def _pair(self, columns: Sequence[Any], fields: Fields) -> tuple[Any, ...]:
        if not self.event.pair:
            return (self.kind.value, *(columns[place] for place in self._pair_places))
        found = [trimmed(fields, name) for name in self.event.pair]
        for name, text in zip(self.event.pair, found, strict=True):
            if text is None or text in self._null:
                raise BadRow("is missing: by it an end finds its begin", name)
        return (self.kind.value, *found)


def _check_original(topic: str) -> None:
    """A copy found in a retry or dead-letter topic is compared with what it was made from. Raises BadRow."""
    if topic.startswith((RETRY_PREFIX, DLQ_PREFIX)):
        raise BadRow("tells of a copy, and not of which message (origin_id)")


def _check_text(text: str, field: str) -> None:
    """JSON may hold half a character (a lone surrogate), which is no text. Raises BadRow."""
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise BadRow("holds half a character", field) from error


def _group_of(wanted: Pattern) -> Callable[[str], str | None]:
    """What the expression finds: its group `value`, or the first one, or all of it."""
    group: str | int = "value" if "value" in wanted.groupindex else min(1, wanted.groups)

    def take(text: str) -> str | None:
        try:
            found = wanted.search(text)
        except UnicodeEncodeError as error:
            raise BadValue("holds half a character") from error
        return None if found is None else found[group]

    return take


def _word_in(values: Mapping[str, Any]) -> Callable[[str], Any]:
    table = {name: str(value) for name, value in values.items()}
    other = table.get(ANY_OTHER)

    def take(text: str) -> str:
        word = table.get(text, other)
        if word is None:
            raise BadValue("is not among the values that the map lists")
        return word

    return take


def _whole(text: Any) -> int:
    return text if isinstance(text, int) else whole(text)


def _one_of(words: frozenset[str]) -> Callable[[str], str]:
    def take(text: str) -> str:
        if text not in words:
            raise BadValue(f"is none of {', '.join(sorted(words))}: the map may give `values`")
        return text

    return take


def compiled(mapping: Map, hasher: Hasher | None) -> list[Compiled]:
    """The events of a map. Raises MapError where an end could not find its begin."""
    found = [Compiled(event, mapping, hasher) for event in mapping.event]
    for kind in {each.kind for each in found}:
        halves = [
            each
            for each in found
            if each.kind is kind and not each.event.spans and each.role in (Role.BEGINS, Role.ENDS)
        ]
        if not halves:
            continue
        if len({each.event.pair for each in halves}) > 1:
            raise MapError(f"the events of {kind} name different fields in `pair`")
        if halves[0].event.pair:
            continue
        both = [all_given(halves, names) for names in (_PAIR_BY, _NAMES)]
        if "queue_offset" not in both[0]:
            both = [
                [*both[0], *both[1]],
                [],
            ]  # without an offset a name is all that tells two apart
        if not both[0]:
            raise MapError(
                f"the events of {kind} share no column by which an end could find its begin: name the fields that are "
                "the same in both (pair = [FIELD, ...])"
            )
        for each in halves:
            each.pair_with(*both)
    return found


def all_given(events: Sequence[Compiled], names: Sequence[str]) -> list[str]:
    """The columns among these of which every one of the events says something."""
    return [name for name in names if all(name in each.event.given for each in events)]
