"""An incident as swim lanes in SVG: a row per party, bars, bands and marks from left to right.

Rules:
- nothing is told by colour alone: a call is a bar, a lease a striped band, a pause hatched, a fault dotted, the
  violation a dashed line with words, every mark has a form of its own and its label;
- order is true, distance is not to scale: a long time between two moments makes a little more room, its times tell it;
- whoever can't see it has the title and the description, which tells every moment in order;
- the same input gives the same bytes; colours stand as attributes, and only a dark scheme needs a style sheet;
- what a system named (clients, topics, keys) is text for the XML writer, and control characters are spelt out.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree

from conformance.reports import svg
from conformance.reports.incident import (
    Incident,
    Lease,
    Role,
    Shape,
    Step,
    Track,
    incident_of,
    seconds,
)
from conformance.reports.view import ClauseView
from specs.history.row import Row
from specs.verdicts.verdict import ClauseVerdict

_LETTER = 7.3
"""How wide a letter of the 12 px fixed-width face is, at most."""
_SMALL = 6.1
_MARGIN = 12.0
_TRACK = 40.0
_LEASE = 22.0
_AXIS = 22.0
_FAULT = 18.0
_GAP = 22.0
_WIDEST_NAME = 24
_LONGEST_LABEL = 60
_LABEL_AT = 13.0
_SHAPE_AT = 28.0
_BAR = 13.0
_ROLES = (Role.CLIENT, Role.BROKER, Role.HARNESS)


def picture(clause: ClauseView, context: Sequence[Row] = ()) -> ElementTree.Element:
    """The swim lanes of a clause's witness, as an element; `svg.render` writes it."""
    word = {ClauseVerdict.REFUTED: "broken here", ClauseVerdict.POSSIBLE: "perhaps broken here"}
    return lanes(
        incident_of(clause.witness, context),
        key=clause.id,
        title=f"{clause.id} {clause.title}",
        told=clause.happened,
        flag=word.get(clause.verdict, "found here"),
    )


def lanes(
    what: Incident, *, key: str, title: str, told: str = "", flag: str = "broken here"
) -> ElementTree.Element:
    """The picture of an incident. key: makes the ids in it its own, where several are in one document."""
    return _Drawing(what, "".join(c if c.isalnum() else "-" for c in key), flag).draw(title, told)


@dataclass(frozen=True, slots=True)
class _Row:
    """Where a party's tracks and leases lie."""

    party: str
    role: Role
    top: float
    leases: tuple[tuple[Lease, float], ...]
    tracks: tuple[tuple[Track, float], ...]
    bottom: float


class _Drawing:
    """One picture while it is drawn."""

    def __init__(self, what: Incident, key: str, flag: str) -> None:
        self.what = what
        self.key = key
        self.flag = f"✗ {flag}"
        self.faults = [step for step in what.steps if step.shape is Shape.FAULT]
        self.labels = {
            (index, moment): _labels(step)[0 if place == 0 else 1]
            if len(step.moments) > 1
            else _whole(step)
            for index, step in enumerate(what.steps)
            for place, moment in enumerate(step.moments)
        }
        names = [track.party for track in what.tracks] or [""]
        self.left = _MARGIN + min(_WIDEST_NAME, max(map(len, names))) * _LETTER + 3 * _LETTER
        self.xs, self.right = self._columns()
        self.rows, self.bottom = self._layout()
        self.root = svg.root()

    # ------------------------------------------------------------------------------------------ places

    def _columns(self) -> tuple[list[float], float]:
        """Where each moment lies, and the right edge: room for what is written there, and a little for long times."""
        room = [len(moment.time) * _LETTER for moment in self.what.moments]
        for (_index, moment), label in self.labels.items():
            where = self.what.moments[moment].where
            room[moment] = max(room[moment], len(f"{label} {where}".rstrip()) * _LETTER)
        if self.what.broken is not None:
            room[self.what.broken] = max(room[self.what.broken], len(self.flag) * _LETTER)
        xs: list[float] = []
        x = self.left + _GAP
        moments = self.what.moments
        for index, wide in enumerate(room):
            xs.append(x)
            later = moments[index + 1].at_us if index + 1 < len(moments) else moments[index].at_us
            gap_ms = max(0.0, (later - moments[index].at_us) / 1000)
            x += wide + _GAP + 12.0 * math.log10(1.0 + gap_ms)
        return xs, x + _GAP

    def _layout(self) -> tuple[list[_Row], float]:
        y = self._head
        rows: list[_Row] = []
        order = dict.fromkeys(track.party for track in self.what.tracks)
        by_role = sorted(order, key=lambda name: _ROLES.index(self._role(name)))
        for name in by_role:
            tracks = [track for track in self.what.tracks if track.party == name]
            drawn = [t for t in tracks if any(s.shape is not Shape.FAULT for s in t.steps)]
            if not drawn:
                continue
            top = y
            y += 4.0
            leases: list[tuple[Lease, float]] = []
            for lease in (each for each in self.what.leases if each.party == name):
                leases.append((lease, y))
                y += _LEASE
            placed: list[tuple[Track, float]] = []
            for track in drawn:
                placed.append((track, y))
                y += _TRACK
            rows.append(_Row(name, self._role(name), top, tuple(leases), tuple(placed), y))
        return rows, y

    def _role(self, name: str) -> Role:
        return next(track.role for track in self.what.tracks if track.party == name)

    @property
    def _head(self) -> float:
        """Where the rows begin: below title, flag, faults and times."""
        return _MARGIN + 26.0 + 20.0 + _FAULT * len(self.faults) + _AXIS

    # ------------------------------------------------------------------------------------------ drawing

    def draw(self, title: str, told: str) -> ElementTree.Element:
        legend = self._legend()
        needed = self.left + max(
            len(title) * 8.8, max((len(line) for line in legend), default=0) * _SMALL
        )
        self.right = max(self.right, needed)
        height = self.bottom + 18.0 + 15.0 * len(legend) + _MARGIN
        width = self.right + _MARGIN
        root = self.root
        svg.begin(root, self.key, title, self._description(told), width, height)
        svg.write(
            root,
            _MARGIN,
            _MARGIN + 14,
            title,
            "io-ink",
            svg.INK,
            **{"font-size": "14", "font-weight": "bold"},
        )
        for place, fault in enumerate(self.faults):
            self._fault(fault, _MARGIN + 46.0 + _FAULT * place)
        self._axis()
        for number, row in enumerate(self.rows):
            self._row(row, first=number == 0)
        self._broken()
        for place, line in enumerate(legend):
            svg.write(
                root,
                _MARGIN,
                self.bottom + 24.0 + 15.0 * place,
                line,
                "io-quiet",
                svg.QUIET,
                **{"font-size": "10"},
            )
        return root

    def _axis(self) -> None:
        """Times, where they differ, and a fine line down from each moment."""
        y = self._head - 8.0
        before = ""
        for x, moment in zip(self.xs, self.what.moments, strict=True):
            if moment.time != before:
                svg.write(
                    self.root, x + 4, y, moment.time, "io-quiet", svg.QUIET, **{"font-size": "12"}
                )
            before = moment.time
            svg.line(self.root, x, y + 5, x, self.bottom, "io-line", svg.LINE)

    def _row(self, row: _Row, *, first: bool) -> None:
        if not first:
            svg.line(self.root, _MARGIN, row.top, self.right, row.top, "io-line", svg.LINE)
        middle = (row.tracks[0][1] if row.tracks else row.top) + _SHAPE_AT
        svg.write(
            self.root,
            _MARGIN,
            middle,
            svg.short(row.party, _WIDEST_NAME),
            "io-ink",
            svg.INK,
            **{"font-weight": "bold"},
        )
        if row.role is not Role.CLIENT:
            svg.write(
                self.root,
                _MARGIN,
                middle - 14,
                row.role.value,
                "io-quiet",
                svg.QUIET,
                **{"font-size": "10"},
            )
        for lease, y in row.leases:
            self._lease(lease, y)
        for track, y in row.tracks:
            for step in track.steps:
                if step.shape is not Shape.FAULT:
                    self._step(step, y)

    def _lease(self, lease: Lease, y: float) -> None:
        left = self.xs[lease.first]
        told = True
        if lease.last is not None:
            right, ends = self.xs[lease.last], "given back"
        elif lease.until_us is not None:
            right, ends = self._at(lease.until_us), f"until {seconds(lease.until_us)}"
        else:
            right, ends, told = self.right, "no end in the evidence", False
        right = max(right, left + _LETTER)
        group = svg.titled(self.root, f"{lease.party} holds the lease of {lease.lane}, {ends}")
        svg.write(
            group,
            left + 4,
            y + 9,
            f"lease of {lease.lane}",
            "io-held-text",
            svg.HELD,
            **{"font-size": "10"},
        )
        band = {"x": left, "y": y + 12, "width": right - left, "height": 8}
        svg.add(group, "rect", fill=svg.paint(self.key, "held"), **band)
        svg.line(group, left, y + 10, left, y + 22, "io-held", svg.HELD, width=2.5)
        if told:
            svg.line(group, right, y + 10, right, y + 22, "io-held", svg.HELD, width=2.5)

    def _at(self, at_us: int) -> float:
        """Where a time lies that no moment has: half-way between its neighbours."""
        place = bisect_right([moment.at_us for moment in self.what.moments], at_us)
        if place == 0:
            return self.xs[0]
        if place == len(self.xs):
            return self.right
        return (self.xs[place - 1] + self.xs[place]) / 2

    def _fault(self, step: Step, y: float) -> None:
        left = self.xs[step.first]
        right = self.right if step.last is None else max(self.xs[step.last], left + _LETTER)
        label = svg.plain(step.row.detail or "fault")
        group = svg.titled(self.root, f"fault: {label}, from {_span(step)}")
        top = y + _FAULT  # below its own label
        area = {"x": left, "y": top, "width": right - left, "height": self.bottom - top}
        svg.add(group, "rect", fill=svg.paint(self.key, "dots"), **area)
        svg.line(group, left, y, right, y, "io-beside", svg.BESIDE, width=2)
        svg.write(
            group,
            left + 4,
            y + 12,
            svg.short(f"fault: {label}", _LONGEST_LABEL),
            "io-beside-text",
            svg.BESIDE,
            **{"font-size": "11"},
        )

    def _step(self, step: Step, y: float) -> None:
        group = svg.titled(self.root, _told(step))
        if not step.evidence:
            group.set("opacity", "0.85")
        index = self.what.steps.index(step)
        for moment in step.moments:
            label = self.labels[index, moment]
            where = self.what.moments[moment].where if moment == step.first else ""
            style = {} if step.evidence else {"font-style": "italic"}
            told = f"{label} {where}".rstrip()
            svg.write(group, self.xs[moment] + 4, y + _LABEL_AT, told, "io-ink", svg.INK, **style)
        middle = y + _SHAPE_AT
        left = self.xs[step.first]
        ends = step.last is not None
        right = self.xs[step.last] if step.last is not None else self.right
        if step.shape is Shape.CALL:
            self._call(group, step, left, max(right, left + 3 * _LETTER), middle, ends)
        elif step.shape is Shape.PAUSE:
            box = {"x": left, "y": middle - _BAR / 2, "height": _BAR}
            wide = max(right, left + 2 * _LETTER) - left
            svg.add(group, "rect", fill=svg.paint(self.key, "hatch"), width=wide, **box)
            svg.add(group, "rect", "io-beside", fill="none", stroke=svg.BESIDE, width=wide, **box)
        else:
            if right > left:  # a request under way
                dashed = {"stroke-dasharray": "2 3"}
                svg.line(
                    group, left, middle, right, middle, "io-edge", svg.INK, width=1.2, **dashed
                )
            place = left if step.last is None or step.shape is not Shape.LOCK else right
            _MARKS[step.shape](group, place + 5.0, middle, _filled(step))

    def _call(
        self,
        group: ElementTree.Element,
        step: Step,
        left: float,
        right: float,
        middle: float,
        ends: bool,
    ) -> None:
        box = {"x": left, "y": middle - _BAR / 2, "width": right - left, "height": _BAR}
        open_end = {} if ends else {"stroke-dasharray": "6 3"}
        edge = {"fill": svg.CALL, "stroke": svg.CALL_EDGE, "stroke-width": "1.5", **open_end}
        svg.add(group, "rect", "io-call", **box, **edge)
        if step.suspends:
            svg.add(group, "rect", fill=svg.paint(self.key, "again"), opacity="0.55", **box)
            due = (step.row.ended_us or step.row.started_us) + 1000 * (step.row.suspend_ms or 0)
            until = max(self._at(due), right + 12)
            dotted = {"stroke-dasharray": "1 5", "stroke-linecap": "round"}
            svg.line(
                group, right + 4, middle, until, middle, "io-edge", svg.INK, width=2.2, **dotted
            )

    def _broken(self) -> None:
        if self.what.broken is None:
            return
        x = self.xs[self.what.broken]
        top = _MARGIN + 40.0
        group = svg.titled(self.root, f"{self.flag}, at {self.what.moments[self.what.broken].time}")
        dashed = {"stroke-dasharray": "7 4"}
        svg.line(group, x, top - 2, x, self.bottom, "io-broken", svg.BROKEN, width=2, **dashed)
        bold = {"font-weight": "bold"}
        svg.write(group, x + 5, top, self.flag, "io-broken-text", svg.BROKEN, **bold)

    # ------------------------------------------------------------------------------------------ words

    def _description(self, told: str) -> str:
        lines = [told.rstrip(".") + "."] if told else []
        lines += [
            f"{moment.time}: {owner} {moment.told}"
            for moment, owner in zip(self.what.moments, self._owners(), strict=True)
        ]
        if self.what.left_out:
            lines.append(self._left_out)
        return "\n".join(lines)

    def _owners(self) -> Iterator[str]:
        owner = {at: step.party for step in self.what.steps for at in step.moments}
        return (owner[at] for at in range(len(self.what.moments)))

    @property
    def _left_out(self) -> str:
        return f"and {self.what.left_out} more faults, pauses and crashes in that time"

    def _legend(self) -> list[str]:
        """What the forms mean, of those that are there."""
        shapes = {step.shape for step in self.what.steps}
        words = [sign for shape, sign in _SIGNS.items() if shape in shapes]
        if any(step.suspends for step in self.what.steps):
            words.append("barred: call that asks again, and dots until then")
        if self.what.leases:
            words.append("striped: lease held")
        if any(not _filled(step) for step in self.what.steps):
            words.append("hollow: refused, or unanswered")
        lines = [" · ".join(words)] if words else []
        lines.append("Order is true; distances are not to scale, the times above tell them.")
        return [*lines, self._left_out] if self.what.left_out else lines


# ---------------------------------------------------------------------------------------------- labels


def _labels(step: Step) -> tuple[str, str]:
    """What is written at a step's begin and at its end."""
    if step.shape is not Shape.CALL:
        return _cut(step.begin_label), _cut(step.end_label)
    return _cut(_subject(step)), _cut(f"{step.row.outcome.value}{_waits(step)}")


def _whole(step: Step) -> str:
    if step.shape is Shape.CALL and step.last is not None:
        return _cut(f"{_subject(step)}: {step.row.outcome.value}{_waits(step)}")
    if step.shape is Shape.CALL:
        return _cut(f"{_subject(step)}, no end")
    return _cut(step.whole_label if step.last is not None else step.begin_label)


def _subject(step: Step) -> str:
    """`offset 17`, `offset 17–18, retry 1`."""
    span, _, again = step.subject.partition(" r")
    known = any(row.queue_offset is not None for row in step.rows)
    return f"{'offset ' if known else ''}{span}{f', retry {again}' if again else ''}"


def _waits(step: Step) -> str:
    return f" for {step.row.suspend_ms} ms" if step.suspends and step.row.suspend_ms else ""


def _cut(label: str) -> str:
    return svg.short(svg.plain(label), _LONGEST_LABEL)


def _span(step: Step) -> str:
    begun = seconds(step.row.started_us)
    if step.last is None or step.row.ended_us is None:
        return f"{begun}, without an end"
    return f"{begun} to {seconds(step.row.ended_us)}"


def _told(step: Step) -> str:
    """The words of a mark's title: who, what, when, where."""
    where = f", {step.row.lane if step.row.group else step.row.queue}" if step.row.topic else ""
    beside = "" if step.evidence else " (beside the evidence)"
    return f"{step.party}: {step.whole_label}, {_span(step)}{where}{beside}"


def _filled(step: Step) -> bool:
    """A mark is filled where it happened for certain, and hollow where it was refused, or nobody knows."""
    return step.row.outcome.value not in ("refused", "unknown")


# ---------------------------------------------------------------------------------------------- marks

_SIGNS = {
    Shape.CALL: "▭ listener call",
    Shape.COMMIT: "◆ commit",
    Shape.DEAD_LETTER: "⊠ dead letter",
    Shape.LOCK: "▲ lease asked for",
    Shape.UNLOCK: "▼ lease given back",
    Shape.SEND: "▶ send or store",
    Shape.READ: "○ read",
    Shape.CRASH: "✕ crash",
    Shape.REQUEST: "• request",
    Shape.OTHER: "• other event",
    Shape.PAUSE: "hatched: pause",
    Shape.FAULT: "dotted: fault",
}


def _polygon(points: str) -> Callable[[ElementTree.Element, float, float, bool], None]:
    def mark(group: ElementTree.Element, x: float, y: float, filled: bool) -> None:
        placed = " ".join(
            f"{svg.number(x + float(dx))},{svg.number(y + float(dy))}"
            for dx, dy in (pair.split(",") for pair in points.split())
        )
        _outline(svg.add(group, "polygon", points=placed), filled)

    return mark


def _outline(element: ElementTree.Element, filled: bool) -> None:
    element.set("fill", svg.INK if filled else svg.PAPER)
    element.set("stroke", svg.INK)
    element.set("stroke-width", "1.5")
    element.set("class", "io-ink io-edge" if filled else "io-hollow io-edge")


def _circle(
    radius: float, *, hollow: bool = False
) -> Callable[[ElementTree.Element, float, float, bool], None]:
    def mark(group: ElementTree.Element, x: float, y: float, filled: bool) -> None:
        _outline(svg.add(group, "circle", cx=x, cy=y, r=radius), filled and not hollow)

    return mark


def _cross(group: ElementTree.Element, x: float, y: float, _filled: bool) -> None:
    path = f"M{svg.number(x - 6)} {svg.number(y - 6)}l12 12m0 -12l-12 12"
    svg.add(group, "path", "io-edge", d=path, stroke=svg.INK, fill="none", **{"stroke-width": "3"})


def _boxed_cross(group: ElementTree.Element, x: float, y: float, filled: bool) -> None:
    left, top = svg.number(x - 6), svg.number(y - 6)
    _outline(svg.add(group, "rect", x=x - 6, y=y - 6, width=12, height=12), False)
    if filled:
        path = f"M{left} {top}l12 12m0 -12l-12 12"
        svg.add(
            group, "path", "io-edge", d=path, stroke=svg.INK, fill="none", **{"stroke-width": "1.5"}
        )


_MARKS: dict[Shape, Callable[[ElementTree.Element, float, float, bool], None]] = {
    Shape.COMMIT: _polygon("0,-7 7,0 0,7 -7,0"),
    Shape.DEAD_LETTER: _boxed_cross,
    Shape.LOCK: _polygon("-6,6 6,6 0,-6"),
    Shape.UNLOCK: _polygon("-6,-6 6,-6 0,6"),
    Shape.SEND: _polygon("-5,-6 6,0 -5,6"),
    Shape.READ: _circle(5.0, hollow=True),
    Shape.CRASH: _cross,
    Shape.REQUEST: _circle(3.5),
    Shape.OTHER: _circle(3.5),
}
