"""A whole run as a picture: rates, clients and what befell them over time, in SVG.

Drawn from an overview, so its size is bounded. As in the swim lanes of a violation nothing is told by colour alone:
a fault is dotted and numbered, a violation a dashed line with its clause's id, each line has its name and its peak.
"""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from conformance.reports import svg
from conformance.reports.incident import Step, seconds
from conformance.reports.overview import Overview
from specs.history.row import Row
from specs.vocabulary import Kind

_LEFT, _PLOT, _RIGHT = 210.0, 960.0, 130.0
_RATE, _CLIENT = 40.0, 20.0
_TOP = 58.0
_TICKS = (1, 2, 5)
_NUMBER_ROOM = 48.0
_FEW = 40


def chart(run: Overview) -> ElementTree.Element:
    """The picture of a run."""
    return _Chart(run).draw()


def befell(row: Row) -> str:
    """What befell somebody, in words: `c1: paused`, `pause c1`."""
    step = Step((row,), False, [0])
    label = step.whole_label if row.kind is not Kind.LEAVE else "leaves"
    return label if row.kind is Kind.FAULT else f"{step.party}: {label}"


class _Chart:
    def __init__(self, run: Overview) -> None:
        self.run = run
        self.step = _PLOT / run.bins
        rates = [name for name, line in run.rates.items() if any(line)]
        self.bottom = _TOP + _RATE * len(rates) + _CLIENT * len(run.clients) + 14
        self.rates = rates
        self.root = svg.root()

    def draw(self) -> ElementTree.Element:
        width, height = _LEFT + _PLOT + _RIGHT, self.bottom + 12
        run = self.run
        title = f"The run {run.run} over time"
        told = [
            f"{run.events:,} events in {seconds(run.end_us - run.start_us)}.",
            *(f"{name}: {sum(run.rates[name]):,}." for name in self.rates),
            *(f"{befell(row)}: {self._since(row.started_us)}." for row in run.befell),
            *(f"{clause} broken at {self._since(at)}." for clause, at in run.at_us.items()),
        ]
        svg.begin(self.root, "run", title, "\n".join(told), width, height)
        for number, row in enumerate(run.befell, start=1):
            self._befell(row, number)
        self._numbers()
        self._axis()
        y = _TOP
        for name in self.rates:
            self._line(name, run.rates[name], y, _RATE)
            y += _RATE
        for name, line in run.clients:
            self._line(name, line, y, _CLIENT)
            y += _CLIENT
        for place, (clause, at_us) in enumerate(run.at_us.items()):
            self._broken(clause, at_us, place)
        return self.root

    def _since(self, at_us: int) -> str:
        return seconds(at_us - self.run.start_us)

    def _x(self, at_us: int) -> float:
        since = min(max(at_us - self.run.start_us, 0), self.run.end_us - self.run.start_us)
        return _LEFT + self.step * since / self.run.bin_us

    def _axis(self) -> None:
        for at, label in ticks(self.run):
            x = self._x(self.run.start_us + at)
            svg.write(
                self.root, x + 3, _TOP - 6, label, "io-quiet", svg.QUIET, **{"font-size": "11"}
            )
            svg.line(self.root, x, _TOP - 16, x, self.bottom, "io-line", svg.LINE)

    def _line(self, name: str, counts: Sequence[int], y: float, height: float) -> None:
        peak = max(counts, default=0)
        group = svg.titled(self.root, f"{name}: {sum(counts):,} in all, at most {peak:,} in a bin")
        base = y + height - 4
        small = {"font-size": "11"}
        svg.write(group, 12, base - 2, svg.short(name, 27), "io-ink", svg.INK, **small)
        tall = height - 9
        bars = "".join(
            f"M{svg.number(_LEFT + self.step * (place + 0.5))} {svg.number(base)}"
            f"v-{svg.number(max(1.5, tall * count / peak))}"
            for place, count in enumerate(counts)
            if count
        )
        wide = svg.number(max(1.0, self.step * 0.8))
        if bars:
            svg.add(group, "path", "io-bar", d=bars, stroke=svg.CALL_EDGE, **{"stroke-width": wide})
        svg.line(group, _LEFT, base, _LEFT + _PLOT, base, "io-line", svg.LINE)
        per = f"max {peak:,} in {_span(self.run.bin_us)}"
        style = {"font-size": "10"}
        svg.write(group, _LEFT + _PLOT + 6, base - 1, per, "io-quiet", svg.QUIET, **style)

    def _befell(self, row: Row, number: int) -> None:
        left = self._x(row.started_us)
        lasts = row.kind in (Kind.FAULT, Kind.PAUSE)
        until = self.run.end_us if row.ended_us is None and lasts else row.ended_us
        right = max(left + 2, self._x(until) if until is not None and lasts else left)
        words = f"{number}. {befell(row)}, from {self._since(row.started_us)}"
        group = svg.titled(self.root, words)
        if lasts and len(self.run.befell) <= _FEW:
            area = {"x": left, "y": _TOP, "width": right - left, "height": self.bottom - _TOP}
            svg.add(group, "rect", fill=svg.paint("run", "dots"), **area)
        # Of many the lines would hide what they are about; the counts and the strip above still tell them.
        down = self.bottom if len(self.run.befell) <= _FEW else 38
        svg.line(group, left, 34, left, down, "io-beside", svg.BESIDE, width=1)
        svg.line(group, left, 34, right, 34, "io-beside", svg.BESIDE, width=3)

    def _numbers(self) -> None:
        """By what number each is in the table; those that begin at about the same time share a label."""
        labels: list[tuple[float, int, int]] = []
        for number, row in enumerate(self.run.befell, start=1):
            x = self._x(row.started_us)
            if labels and x - labels[-1][0] < _NUMBER_ROOM:
                labels[-1] = (labels[-1][0], labels[-1][1], number)
            else:
                labels.append((x, number, number))
        for x, first, last in labels:
            told = str(first) if first == last else f"{first}–{last}"
            style = {"font-size": "10"}
            svg.write(self.root, x + 2, 31, told, "io-beside-text", svg.BESIDE, **style)

    def _broken(self, clause: str, at_us: int, place: int) -> None:
        x = self._x(at_us)
        group = svg.titled(self.root, f"✗ {clause} broken at {self._since(at_us)}")
        dashed = {"stroke-dasharray": "7 4"}
        svg.line(group, x, 4, x, self.bottom, "io-broken", svg.BROKEN, width=2, **dashed)
        bold = {"font-weight": "bold", "font-size": "11"}
        y = 12.0 + 11.0 * (place % 2)
        svg.write(group, x + 4, y, f"✗ {clause}", "io-broken-text", svg.BROKEN, **bold)


def ticks(run: Overview) -> list[tuple[int, str]]:
    """Round times since the run's begin, in µs, and how they are written."""
    whole = max(run.end_us - run.start_us, 1)
    return [(at, f"{at / 1_000_000:g} s") for at in range(0, whole + 1, _tick(whole))]


def _tick(whole_us: int) -> int:
    """A round time that makes at most ten ticks of the whole."""
    power = 1
    while True:
        for factor in _TICKS:
            if whole_us <= 10 * factor * power:
                return factor * power
        power *= 10


def _span(value_us: int) -> str:
    for unit, name in ((1_000_000, "s"), (1_000, "ms")):
        if value_us >= unit:
            return f"{value_us / unit:.3g} {name}"
    return f"{value_us} µs"
