"""Plots of grids, searches, recoveries and measurements, as SVG in the style of every other picture.

Rules:
- nothing is told by colour alone: a cell of a heat map has a sign or a number, a broken one is hatched, each line has
  its name at its end, each bar its figure;
- no script; the words for whoever can't see a plot (`desc`) hold its numbers, and a pointer shows those of each part;
- the same input gives the same bytes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from xml.etree import ElementTree

from conformance.reports import svg

_AIR = 12.0
_LETTER = 7.3
"""The width of a letter of our font at 12 px, and a little more."""
_SMALL = {"font-size": "11"}
_TOP = 34.0
_ROOMY = 30.0
"""A cell so wide can be hatched, and its text still be read."""
_DARK = "@media (prefers-color-scheme:dark){.io-good{fill:#1d3f5e}}"


class Kind(StrEnum):
    """What a cell of a heat map says. SHARE: by how much of its cell is filled."""

    GOOD = "good"
    BAD = "bad"
    OPEN = "open"
    ALLOWED = "allowed"
    SILENT = "silent"
    SHARE = "share"


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell. text: a sign or a number, in it; told: the whole of it, for a pointer. share: 0 to 1, of SHARE."""

    kind: Kind
    text: str
    told: str = ""
    share: float = 0.0


@dataclass(frozen=True, slots=True)
class Axis:
    """What a plot's numbers are: a name with its unit, and whether it is drawn by powers of ten."""

    name: str
    log: bool = False


_UPRIGHT = 54  # letters of a name that stands upright


def _start(key: str, title: str, told: str, width: float, height: float) -> ElementTree.Element:
    root = svg.root()
    svg.begin(root, key, title, told, width, height)
    svg.text_of(root, "style", _DARK)
    svg.write(
        root, _AIR, 20, title, "io-ink", svg.INK, **{"font-weight": "bold", "font-size": "13"}
    )
    return root


def _wide(texts: Sequence[str], most: int = 60) -> float:
    return max((min(len(text), most) for text in texts), default=0) * _LETTER


# ------------------------------------------------------------------------------------------ heat map


def heat_map(
    key: str,
    title: str,
    rows: Sequence[str],
    columns: Sequence[str],
    cells: Mapping[tuple[str, str], Cell],
    *,
    groups: Sequence[tuple[str, int]] = (),
    legend: Sequence[tuple[Cell, str]] = (),
    narrow: bool = False,
) -> ElementTree.Element:
    """A grid: what is there of each row and column; what is not there stays empty.

    groups: names over so many columns each. narrow: columns as wide as a sign, their names upright. key: unique in a
    page.
    """
    left = _AIR + _wide(rows) + 10
    step = 15.0 if narrow else max(64.0, _wide([*columns, *(c.text for c in cells.values())]) + 14)
    high = 18.0 if narrow else 22.0
    upright = _wide(columns, _UPRIGHT) if narrow else 0.0
    names_y = _TOP + (16.0 if groups else 0.0)
    top = names_y + (upright + 8 if narrow else 20)
    legend_y = top + high * len(rows) + 22
    width = max(
        left + step * len(columns) + _AIR,
        _AIR + sum(34 + len(words) * _LETTER for _, words in legend),
        len(title) * 8.0 + 2 * _AIR,
    )
    height = legend_y + (8 if legend else -14)
    root = _start(key, title, _told_of(rows, columns, cells), width, height)
    x = left
    for name, count in groups:
        svg.line(root, x, names_y - 8, x, top + high * len(rows), "io-line", svg.LINE)
        svg.write(root, x + 3, names_y - 8, name, "io-quiet", svg.QUIET, **_SMALL)
        x += step * count
    for place, name in enumerate(columns):
        x = left + step * (place + 0.5)
        if narrow:
            turned = f"rotate(-90 {svg.number(x + 4)} {svg.number(top - 5)})"
            svg.write(
                root,
                x + 4,
                top - 5,
                svg.short(name, _UPRIGHT),
                "io-quiet",
                svg.QUIET,
                transform=turned,
                **_SMALL,
            )
        else:
            middle = {"text-anchor": "middle", **_SMALL}
            svg.write(root, x, top - 6, name, "io-quiet", svg.QUIET, **middle)
    for number, row in enumerate(rows):
        y = top + high * number
        svg.write(root, _AIR, y + high * 0.7, svg.short(row, 60), "io-ink", svg.INK)
        for place, column in enumerate(columns):
            cell = cells.get((row, column))
            if cell is not None:
                _cell(root, key, left + step * place, y, step, high, cell, f"{row}, {column}: ")
    x = _AIR
    for cell, words in legend:
        _cell(root, key, x, legend_y - 14, 20, 18, cell, "")
        svg.write(root, x + 26, legend_y, words, "io-quiet", svg.QUIET, **_SMALL)
        x += 34 + len(words) * _LETTER
    return root


def _told_of(
    rows: Sequence[str], columns: Sequence[str], cells: Mapping[tuple[str, str], Cell]
) -> str:
    """A line for each row: columns of the same word together, so that a wide grid can still be read out."""
    lines = []
    for row in rows:
        alike: dict[str, list[str]] = {}
        for column in columns:
            cell = cells.get((row, column))
            if cell is not None:
                alike.setdefault(cell.told or cell.text, []).append(column)
        lines.append(f"{row}: " + "; ".join(f"{word}: {', '.join(c)}" for word, c in alike.items()))
    return "\n".join(lines)


def _cell(
    root: ElementTree.Element,
    key: str,
    x: float,
    y: float,
    width: float,
    height: float,
    cell: Cell,
    where: str,
) -> None:
    group = svg.titled(root, f"{where}{cell.told or cell.text}")
    area = {"x": x + 1, "y": y + 1, "width": width - 2, "height": height - 2}
    css, ink = "io-ink", svg.INK
    match cell.kind:
        case Kind.GOOD:
            svg.add(group, "rect", "io-good", fill=svg.CALL, **area)
        case Kind.BAD:
            svg.add(group, "rect", "io-paper", fill=svg.PAPER, **area)
            if width >= _ROOMY:
                svg.add(group, "rect", fill=svg.paint(key, "hatch"), **area)
            box = {"stroke": svg.BROKEN, "stroke-width": "2", "fill": "none"}
            svg.add(group, "rect", "io-broken", **area, **box)
            css, ink = "io-broken-text", svg.BROKEN
        case Kind.OPEN:
            svg.add(group, "rect", fill=svg.paint(key, "dots"), **area)
            box = {"stroke": svg.BESIDE, "fill": "none"}
            svg.add(group, "rect", "io-beside", **area, **box)
            css, ink = "io-beside-text", svg.BESIDE
        case Kind.ALLOWED:
            box = {"stroke": svg.CALL_EDGE, "stroke-dasharray": "3 2", "fill": "none"}
            svg.add(group, "rect", "io-bar", **area, **box)
        case Kind.SILENT:
            css, ink = "io-quiet", svg.QUIET
        case Kind.SHARE:
            svg.add(group, "rect", "io-line", fill="none", stroke=svg.LINE, **area)
            filled = {**area, "width": max(0.0, (width - 2) * min(1.0, cell.share))}
            svg.add(group, "rect", "io-good", fill=svg.CALL, **filled)
    middle = {"text-anchor": "middle", "font-size": "11"}
    bold = {"font-weight": "bold"} if cell.kind is Kind.BAD else {}
    if cell.kind is Kind.BAD and width >= _ROOMY:
        words = len(cell.text) * 6.8 + 6
        ground = {"x": x + (width - words) / 2, "y": y + 3, "width": words, "height": height - 6}
        svg.add(group, "rect", "io-paper", fill=svg.PAPER, **ground)
    svg.write(group, x + width / 2, y + height / 2 + 4, cell.text, css, ink, **middle, **bold)


# ------------------------------------------------------------------------------------------ lines


def lines(
    key: str,
    title: str,
    curves: Mapping[str, Sequence[tuple[float, float]]],
    x_axis: Axis,
    y_axis: Axis,
    *,
    most: float | None = None,
) -> ElementTree.Element:
    """Steps that rise: what a search has reached after so much of it. most: where there is an end, a line for it."""
    width, height, left, bottom = 760.0, 300.0, 70.0, 252.0
    right = width - 170.0
    points = [point for curve in curves.values() for point in curve]
    x_most = max((x for x, _ in points), default=1.0)
    y_most = max([*(y for _, y in points), most or 0.0, 1.0])
    told = [f"{y_axis.name} by {x_axis.name}."]
    for name, curve in curves.items():
        some = [*curve[:: max(1, len(curve) // 8)], *curve[-1:]]
        told.append(f"{name}: " + ", ".join(f"{y:g} after {x:g}" for x, y in dict.fromkeys(some)))
    root = _start(key, title, "\n".join(told), width, height)

    def across(x: float) -> float:
        share = math.log10(max(x, 1)) / math.log10(max(x_most, 10)) if x_axis.log else x / x_most
        return left + (right - left) * share

    def up(y: float) -> float:
        return bottom - (bottom - _TOP - 14) * y / y_most

    _axes(root, (left, right, bottom), x_axis, x_most, across, y_axis, y_most, up)
    if most is not None:
        dashed = {"stroke-dasharray": "6 4"}
        svg.line(root, left, up(most), right, up(most), "io-held", svg.HELD, 1.0, **dashed)
        style = {"text-anchor": "end", **_SMALL}
        words = f"all {most:g}"
        svg.write(root, right, up(most) - 5, words, "io-held-text", svg.HELD, **style)
    taken: list[float] = []
    for number, (name, curve) in enumerate(curves.items()):
        group = svg.titled(
            root, f"{name}: {curve[-1][1]:g} after {curve[-1][0]:g}" if curve else name
        )
        if not curve:
            continue
        path = f"M{svg.number(across(curve[0][0]))} {svg.number(up(curve[0][1]))}"
        for x, y in curve[1:]:
            path += f"H{svg.number(across(x))}V{svg.number(up(y))}"
        path += f"H{svg.number(right)}"
        style = {"fill": "none", "stroke": svg.CALL_EDGE, "stroke-width": "1.8"}
        dash = ("", "6 3", "2 3", "9 3 2 3", "1 4")[number % 5]
        svg.add(
            group, "path", "io-bar", d=path, **style, **({"stroke-dasharray": dash} if dash else {})
        )
        y = up(curve[-1][1]) + 4
        while any(abs(y - other) < 13 for other in taken):
            y += 13
        taken.append(y)
        # By its dashes a line is known where several end at one place.
        svg.add(
            group,
            "path",
            "io-bar",
            d=f"M{svg.number(right + 8)} {svg.number(y - 4)}h26",
            **style,
            **({"stroke-dasharray": dash} if dash else {}),
        )
        svg.write(group, right + 40, y, svg.short(name, 18), "io-ink", svg.INK, **_SMALL)
    return root


def _axes(
    root: ElementTree.Element,
    area: tuple[float, float, float],
    x_axis: Axis,
    x_most: float,
    across: object,
    y_axis: Axis,
    y_most: float,
    up: object,
) -> None:
    left, right, bottom = area
    assert callable(across)
    assert callable(up)
    svg.line(root, left, bottom, right, bottom, "io-edge", svg.INK)
    for x in _ticks(x_most, log=x_axis.log):
        svg.line(root, across(x), bottom, across(x), bottom + 4, "io-edge", svg.INK)
        middle = {"text-anchor": "middle", **_SMALL}
        svg.write(root, across(x), bottom + 17, f"{x:,g}", "io-quiet", svg.QUIET, **middle)
    for y in _ticks(y_most, log=False):
        svg.line(root, left, up(y), right, up(y), "io-line", svg.LINE)
        svg.write(
            root,
            left - 8,
            up(y) + 4,
            f"{y:,g}",
            "io-quiet",
            svg.QUIET,
            **{"text-anchor": "end", **_SMALL},
        )
    svg.write(root, left, bottom + 36, x_axis.name, "io-quiet", svg.QUIET, **_SMALL)
    svg.write(root, _AIR, _TOP + 6, y_axis.name, "io-quiet", svg.QUIET, **_SMALL)


def _ticks(most: float, *, log: bool) -> list[float]:
    """Round numbers from 0, or from 1 by powers of ten, up to the most."""
    if log:
        powers = [10.0**n for n in range(int(math.log10(max(most, 1))) + 1)]
        between = [f * p for p in powers for f in (1, 2, 5)] if most < 2_000 else powers
        return [each for each in between if each <= most]
    step = 10 ** math.floor(math.log10(max(most, 1e-9)))
    for factor in (0.1, 0.2, 0.25, 0.5, 1.0):
        if most / (step * factor) <= 6:
            return [step * factor * n for n in range(int(most / (step * factor)) + 1)]
    return [0.0, step]


# --------------------------------------------------------------------------------------------- strips


def strips(
    key: str,
    title: str,
    groups: Mapping[str, Sequence[float | None]],
    axis: Axis,
) -> ElementTree.Element:
    """Times, a dot each, by group, with their median; None is one that never came, and stands at the right."""
    high, right_room = 26.0, 210.0
    left = _AIR + _wide([*groups]) + 12
    width = left + 520 + right_room
    right = width - right_room
    bottom = _TOP + 6 + high * len(groups)
    known = [each for values in groups.values() for each in values if each is not None]
    most = max(known, default=1.0) or 1.0
    told = [f"{name}: {_spread(values)}" for name, values in groups.items()]
    root = _start(key, title, "\n".join([axis.name, *told]), width, bottom + 44)

    def across(value: float) -> float:
        share = math.log10(max(value, 1)) / math.log10(max(most, 10)) if axis.log else value / most
        return left + (right - left - 16) * share

    for value in _ticks(most, log=axis.log):
        svg.line(root, across(value), _TOP + 2, across(value), bottom, "io-line", svg.LINE)
        middle = {"text-anchor": "middle", **_SMALL}
        svg.write(root, across(value), bottom + 15, f"{value:,g}", "io-quiet", svg.QUIET, **middle)
    svg.write(root, left, bottom + 34, axis.name, "io-quiet", svg.QUIET, **_SMALL)
    for number, (name, values) in enumerate(groups.items()):
        y = _TOP + 6 + high * (number + 0.5)
        group = svg.titled(root, f"{name}: {_spread(values)}")
        svg.write(group, _AIR, y + 4, svg.short(name, 60), "io-ink", svg.INK)
        came = sorted(each for each in values if each is not None)
        for value in came:
            dot = {"stroke": svg.CALL_EDGE, "fill": svg.CALL, "fill-opacity": "0.7"}
            svg.add(group, "circle", "io-call", cx=across(value), cy=y, r=4.0, **dot)
        if came:
            x = across(median(came))
            svg.line(group, x, y - 10, x, y + 10, "io-edge", svg.INK, width=2)
        never = len(values) - len(came)
        told_of = f"{median(came):,.0f} median of {len(came)}" if came else ""
        if never:
            told_of = ", ".join(filter(None, (told_of, f"✗ {never} never")))
        css, ink = ("io-broken-text", svg.BROKEN) if never else ("io-quiet", svg.QUIET)
        svg.write(group, right, y + 4, told_of, css, ink, **_SMALL)
    return root


def _spread(values: Sequence[float | None]) -> str:
    came = sorted(each for each in values if each is not None)
    never = len(values) - len(came)
    words = (
        [f"{came[0]:,.0f} to {came[-1]:,.0f}, median {median(came):,.0f}, of {len(came)}"]
        if came
        else []
    )
    return "; ".join([*words, *([f"{never} never"] if never else [])]) or "nothing"


# ----------------------------------------------------------------------------------------------- bars


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar. text: its figure, as people read it. mark: where its aim lies, on the same scale; None for none.

    second: what it is compared with, and not the thing itself.
    """

    label: str
    value: float
    text: str
    mark: float | None = None
    second: bool = False


def bars(key: str, title: str, rows: Sequence[Bar], *, unit: str = "") -> ElementTree.Element:
    """Figures of one scale below each other; an aim is a line across its bar."""
    high = 22.0
    left = _AIR + _wide([bar.label for bar in rows]) + 12
    texts = _wide([bar.text for bar in rows])
    plot = 380.0
    width = max(left + plot + texts + 24, len(title) * 8.0 + 2 * _AIR)
    bottom = _TOP + 4 + high * len(rows)
    most = max([*(bar.value for bar in rows), *(bar.mark or 0.0 for bar in rows), 1e-9])
    told = [
        f"{bar.label}: {bar.text}"
        + (", short of its aim" if bar.mark and bar.value < bar.mark else "")
        for bar in rows
    ]
    root = _start(key, title, "\n".join(told), width, bottom + (24 if unit else 12))
    for number, bar in enumerate(rows):
        y = _TOP + 4 + high * number
        group = svg.titled(root, told[number])
        svg.write(group, _AIR, y + 15, svg.short(bar.label, 60), "io-ink", svg.INK)
        long = max(1.0, plot * bar.value / most)
        area = {"x": left, "y": y + 4, "width": long, "height": high - 8}
        if bar.second:
            svg.add(group, "rect", fill=svg.paint(key, "held"), **area)
            svg.add(group, "rect", "io-held", fill="none", stroke=svg.HELD, **area)
        else:
            svg.add(group, "rect", "io-call", fill=svg.CALL, stroke=svg.CALL_EDGE, **area)
        if bar.mark is not None:
            x = left + plot * bar.mark / most
            svg.line(group, x, y + 1, x, y + high - 1, "io-edge", svg.INK, width=2)
        after = max(long, plot * (bar.mark or 0) / most)
        svg.write(group, left + after + 8, y + 15, bar.text, "io-quiet", svg.QUIET, **_SMALL)
    if unit:
        svg.write(root, left, bottom + 12, unit, "io-quiet", svg.QUIET, **_SMALL)
    return root
