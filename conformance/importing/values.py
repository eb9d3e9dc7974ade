"""Times and numbers as logs write them, as whole µs and whole numbers; nothing about them is guessed.

A time says when it was: a number counts from 1970 in UTC, a text has a zone of its own or is of the one that the map
names. A local time that a clock shows twice (when it goes back in autumn), or never, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from decimal import Decimal
from typing import TypeVar
from zoneinfo import ZoneInfo

from specs.history.columns import LARGEST, SMALLEST

UNITS_US = {"s": 1_000_000, "ms": 1_000, "us": 1}
ZONE_EXAMPLES = '"UTC", "Europe/Berlin" or "+02:00"'
_EPOCHS = {
    "epoch_s": Decimal(1_000_000),
    "epoch_ms": Decimal(1_000),
    "epoch_us": Decimal(1),
    "epoch_ns": Decimal("0.001"),
}
_ISO = "iso"
NO_TIMES = "none"
"""Of a log that does not tell when anything happened: the order of its lines is all."""
_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_NAIVE_EPOCH = _EPOCH.replace(tzinfo=None)
_MICROSECOND = timedelta(microseconds=1)
_SECOND_US, _DAY_S = 1_000_000, 86_400
_EARLIEST_US, _LATEST_US = 0, 32_503_680_000_000_000
"""From 1970 to the year 3000: beyond them a number has another unit than the map says."""
_DIGITS = len(str(SMALLEST))


Number = TypeVar("Number", int, Decimal)


class BadValue(ValueError):
    """A value that is none; its message is the end of a sentence, without the value itself."""


def is_time_format(text: str) -> bool:
    return text in (_ISO, NO_TIMES) or text in _EPOCHS or "%" in text


def tells_zone(text: str) -> bool:
    """Does a pattern hold the zone, or count from an epoch?"""
    return text in _EPOCHS or "%z" in text or "%s" in text


def zone_of(name: str) -> tzinfo | None:
    """A zone by its name, or as an offset; None where there is none."""
    if offset := _OFFSET.fullmatch(name):
        sign = -1 if offset[1] == "-" else 1
        minutes = int(offset[2]) * 60 + int(offset[3])
        return timezone(sign * timedelta(minutes=minutes)) if minutes < 24 * 60 else None
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return None


def reads_times(form: str, zone_name: str | None) -> Callable[[str], int]:
    """The function from a time, as the log has it, to µs since 1970. It raises BadValue."""
    zone = None if zone_name is None else zone_of(zone_name)
    if form == NO_TIMES:
        return _no_time
    if form in _EPOCHS:
        factor = _EPOCHS[form]
        return lambda text: _from_epoch(text, factor, form)

    def parse(text: str) -> datetime:
        try:
            return datetime.fromisoformat(text) if form == _ISO else datetime.strptime(text, form)  # noqa: DTZ007
        except ValueError as error:
            raise BadValue(f"is no time as {form} has it") from error

    local = _Local(zone)
    return lambda text: _within(local.us(parse(text)))


def _from_epoch(text: str, factor: Decimal, form: str) -> int:
    try:
        return int(_within(Decimal(text) * factor))
    except ArithmeticError as error:
        raise BadValue(f"is no number, and the map says {form}") from error


def _no_time(text: str) -> int:
    raise BadValue("is a time, and the map says that the log has none")


def _within(us: Number) -> Number:
    # Before it is made whole: 1e999999 as an integer would fill the memory.
    if not _EARLIEST_US <= us < _LATEST_US:
        raise BadValue("lies before 1970 or after 2999: is the unit that of time_format?")
    return us


class _Local:
    """Times of one zone as µs since 1970. A zone's offset is looked up once for each minute of the log."""

    def __init__(self, zone: tzinfo | None) -> None:
        self._zone = zone
        self._minute: tuple[int, int, int] | None = None
        self._offset_us = 0

    def us(self, found: datetime) -> int:
        """Raises BadValue for a time of no zone, and for one that the zone's clocks show twice or never."""
        if found.tzinfo is not None:
            return (found - _EPOCH) // _MICROSECOND
        minute = (found.toordinal(), found.hour, found.minute)
        if minute != self._minute:
            self._offset_us = self._offset_of(found)
            self._minute = minute
        since = found - _NAIVE_EPOCH
        whole_us = (since.days * _DAY_S + since.seconds) * _SECOND_US + since.microseconds
        return whole_us - self._offset_us

    def _offset_of(self, found: datetime) -> int:
        if self._zone is None:
            raise BadValue(
                f"does not say in which time zone it is, and the map doesn't either: time_zone = {ZONE_EXAMPLES}"
            )
        found = found.replace(tzinfo=self._zone)
        before, after = found.utcoffset(), found.replace(fold=1).utcoffset()
        if before is None or after is None:
            raise BadValue(f"has no place in {self._zone}")
        if before != after:
            often = "twice" if before > after else "never"
            raise BadValue(
                f"is a time that clocks in {self._zone} show {often}, as they are changed"
            )
        return before // _MICROSECOND


def whole(text: str) -> int:
    """A whole number, as 17 or 17.0. Raises BadValue."""
    if text.isdecimal() and text.isascii() and len(text) < _DIGITS - 1:
        return int(text)  # nearly always
    digits = text.strip()
    if digits.endswith(".0"):
        digits = digits[:-2]
    if not (digits.isascii() and digits.removeprefix("-").isdigit()):
        raise BadValue("is no whole number")
    if len(digits) > _DIGITS:
        raise BadValue("is too large")
    return fitting(int(digits))


def fitting(number: int) -> int:
    """The number, if a history can hold it. Raises BadValue."""
    if not SMALLEST <= number <= LARGEST:
        raise BadValue("is too large")
    return number


def step_us(text: str, unit: str) -> int:
    """How finely a length is told: 5 ms to the ms, 0.005 s too."""
    decimals = len(text.strip().partition(".")[2])
    finer: int = 10 ** min(decimals, 6)
    return max(1, UNITS_US[unit] // finer)


def length_us(text: str, unit: str) -> int:
    """A length of time in µs; it may have a fraction. Raises BadValue."""
    try:
        us = Decimal(text) * UNITS_US[unit]
        if us < 0:
            raise BadValue("is a length of time below 0")
        return int(_within(us))
    except ArithmeticError as error:
        raise BadValue("is no length of time") from error
