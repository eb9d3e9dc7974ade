"""What happened around a violation, as a picture needs it: one model for the text timeline, the SVG and the trace.

Rules:
- moments follow the total order of begins and ends; their distance says nothing, their times do;
- messages of one listener call are one step; a step whose begin and end are neighbours is one moment;
- what a party does at the same time lies on further tracks of its own;
- evidence is told from what only befell the parties meanwhile (pauses, crashes, departures, faults);
- the violation is where the last evidence begins: a witness is minimal, so that completes it;
- a lease is a band from its grant until its holder's unlock or the end that the grant names; else its end is not told.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Kind, Lane, Level, Outcome

CONTEXT_KINDS = frozenset({Kind.PAUSE, Kind.CRASH, Kind.CLOCK_STEP, Kind.FAULT, Kind.LEAVE})
"""What happened around a violation and is worth drawing beside its evidence."""
MOST_AROUND = 24
"""So much of it is drawn with one violation, what is nearest to it first: a picture is for eyes."""


class Shape(StrEnum):
    """What a step looks like."""

    CALL = "listener call"
    REQUEST = "request"
    COMMIT = "commit"
    DEAD_LETTER = "dead letter"
    LOCK = "lease asked for"
    UNLOCK = "lease given back"
    SEND = "send"
    READ = "read"
    CRASH = "crash"
    PAUSE = "pause"
    FAULT = "fault"
    OTHER = "other event"


class Role(StrEnum):
    """Who a party is; pictures have their rows in this order."""

    CLIENT = "client"
    BROKER = "broker"
    HARNESS = "harness"


@dataclass(slots=True)
class Step:
    """One operation: its rows, and at which moments it begins and ends.

    last: None while it is open. evidence: of the witness, and not only what happened beside it.
    """

    rows: tuple[Row, ...]
    evidence: bool
    moments: list[int] = field(default_factory=list)

    @property
    def row(self) -> Row:
        """Its first row: what is said of all of them."""
        return self.rows[0]

    @property
    def begin(self) -> int:
        """Its place in the total order."""
        return self.row.seq_begin

    @property
    def end(self) -> int | None:
        """The place of its end; None while it is open."""
        ends = [row.seq_end for row in self.rows]
        return None if any(end is None for end in ends) else max(end for end in ends if end)

    @property
    def instant(self) -> bool:
        return self.end == self.begin

    @property
    def first(self) -> int:
        """The moment of its begin."""
        return self.moments[0]

    @property
    def last(self) -> int | None:
        """The moment of its end; None while it is open."""
        return None if self.end is None else self.moments[-1]

    @property
    def party(self) -> str:
        return party(self.row)

    @property
    def shape(self) -> Shape:
        return _SHAPES.get(self.row.kind, Shape.OTHER)

    @property
    def suspends(self) -> bool:
        """A listener call that asks for its batch again."""
        return self.shape is Shape.CALL and self.row.outcome in LISTENER_SUSPENDS

    @property
    def subject(self) -> str:
        """Which messages it is about: `17`, `17–18 r1`; empty of what is about none."""
        return _offsets(self) if self.row.kind is Kind.DELIVER else ""

    @property
    def whole_label(self) -> str:
        """In words, where its begin and its end are one moment."""
        if self.row.kind is Kind.DELIVER:
            return f"{_offsets(self)} ▶◀ {self.row.outcome.value}"
        return _label(self)

    @property
    def begin_label(self) -> str:
        return _begins(self)

    @property
    def end_label(self) -> str:
        return _ends(self)


@dataclass(frozen=True, slots=True)
class Moment:
    """One begin or end, or both. label: what is written there. where: the queue, where several are in the picture."""

    at_us: int
    label: str
    where: str = ""

    @property
    def told(self) -> str:
        return f"{self.label} {self.where}".rstrip()

    @property
    def time(self) -> str:
        return seconds(self.at_us)


@dataclass(frozen=True, slots=True)
class Track:
    """Steps of one party that never overlap. number: 0 for the first track of the party."""

    party: str
    role: Role
    number: int
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class Lease:
    """What a client held of a lane. first and last: moments; last is None where the evidence tells no end.

    since_us: when the grant was answered. until_us: the end that the grant itself named.
    """

    party: str
    lane: Lane
    first: int
    last: int | None
    since_us: int
    until_us: int | None = None


@dataclass(frozen=True, slots=True)
class Incident:
    """The model. tracks: in the order in which their parties appear. broken: the moment of the violation; None where
    nothing is evidence. left_out: how much of what happened beside it is not in the picture."""

    moments: tuple[Moment, ...]
    tracks: tuple[Track, ...]
    leases: tuple[Lease, ...]
    broken: int | None
    left_out: int = 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """All steps by their begins."""
        found = (step for track in self.tracks for step in track.steps)
        return tuple(sorted(found, key=lambda step: step.begin))


def incident(evidence: Sequence[Row], context: Sequence[Row] = ()) -> Incident:
    """The model of the evidence, and of the context around it."""
    proof = {row.seq_begin: row for row in evidence}
    beside = {row.seq_begin: row for row in context if row.seq_begin not in proof}
    near = _nearest(beside, max(proof, default=0))
    shown = [row for _seq, row in sorted({**proof, **near}.items())]
    several = len({row.queue for row in evidence if row.queue_id is not None}) > 1
    steps = _steps(shown, proof)
    moments = _moments(steps, several=several)
    broken = max(
        (step for step in steps if step.evidence), key=lambda step: step.begin, default=None
    )
    return Incident(
        moments,
        _tracks(steps),
        _leases(steps),
        None if broken is None else broken.first,
        len(beside) - len(near),
    )


def incident_of(witness: Sequence[Row], context: Sequence[Row] = ()) -> Incident:
    """The model of a witness, with what befell its parties: `context` may hold that of other violations too."""
    return incident(witness, around(witness, context) if witness else ())


def around(witness: Sequence[Row], context: Sequence[Row]) -> list[Row]:
    """What befell the parties of a witness in its time: their pauses, crashes and departures, and every fault."""
    start = min(row.started_us for row in witness)
    stop = max(row.ended_us if row.ended_us is not None else row.started_us for row in witness)
    names = {name for row in witness for name in (row.client_id, row.process, row.broker) if name}
    near = [
        row
        for row in context
        if row.run == witness[0].run
        and row.started_us <= stop
        and (row.ended_us is None or row.ended_us >= start)
        and (row.kind is Kind.FAULT or names & {row.client_id, row.process, row.broker})
    ]
    # A fault that crashes or pauses a party is there twice: as the fault, and as what befell the party.
    told = {row.started_us for row in near if row.kind is not Kind.FAULT}
    return [row for row in near if row.kind is not Kind.FAULT or row.started_us not in told]


def party(row: Row) -> str:
    """Whose line a row is on."""
    return row.party or row.broker or "somebody"


def seconds(value_us: int) -> str:
    return f"{value_us / 1_000_000:.3f} s"


def _nearest(beside: dict[int, Row], place: int) -> dict[int, Row]:
    """At most MOST_AROUND of them, those that began nearest to a place."""
    chosen = sorted(beside, key=lambda seq: (abs(seq - place), seq))[:MOST_AROUND]
    return {seq: beside[seq] for seq in chosen}


def _steps(shown: Sequence[Row], proof: dict[int, Row]) -> list[Step]:
    """Rows grouped by operation, in the order of their begins."""
    found: dict[tuple[str, int, Kind, str], list[Row]] = {}
    for row in shown:
        found.setdefault((row.run, row.op_id, row.kind, party(row)), []).append(row)
    return [Step(tuple(rows), rows[0].seq_begin in proof) for rows in found.values()]


def _moments(steps: Sequence[Step], *, several: bool) -> tuple[Moment, ...]:
    """One moment per mark, in the total order; each step is told which are its own."""
    marks = sorted(
        [(step.begin, 0, index) for index, step in enumerate(steps)]
        + [
            (step.end, 1, index)
            for index, step in enumerate(steps)
            if step.end is not None and not step.instant
        ]
    )
    moments: list[Moment] = []
    merged: set[int] = set()
    for place, (_seq, phase, index) in enumerate(marks):
        step = steps[index]
        if phase and index in merged:
            continue
        next_mark = marks[place + 1] if place + 1 < len(marks) else None
        whole = not phase and (
            step.instant or (next_mark is not None and next_mark[1:] == (1, index))
        )
        if whole:
            merged.add(index)
            label = step.whole_label
        else:
            label = step.end_label if phase else step.begin_label
        at_us = step.row.ended_us if phase else step.row.started_us
        step.moments.append(len(moments))
        where = _where(step.row) if several and not phase else ""
        moments.append(Moment(step.row.started_us if at_us is None else at_us, label, where))
    return tuple(moments)


def _tracks(steps: Sequence[Step]) -> tuple[Track, ...]:
    parties: dict[str, list[list[Step]]] = {}
    for step in steps:
        lines = parties.setdefault(step.party, [])
        for line in lines:
            last = line[-1]
            if (
                last.end is not None
                and last.end < step.begin
                and last.moments[-1] < step.moments[0]
            ):
                line.append(step)
                break
        else:
            lines.append([step])
    return tuple(
        Track(name, _role([step.row for line in lines for step in line]), number, tuple(line))
        for name, lines in parties.items()
        for number, line in enumerate(lines)
    )


def _role(rows: Sequence[Row]) -> Role:
    """Who a party is, by what it did; who only broke things, or had things done to it, is told by who it is."""
    if any(row.client_id for row in rows):
        return Role.CLIENT
    if any(row.level is Level.STORE or party(row) == row.broker for row in rows):
        return Role.BROKER
    return Role.HARNESS


def _leases(steps: Sequence[Step]) -> tuple[Lease, ...]:
    """Grants, each until its holder gave the lane back; a grant to the holder makes its band longer."""
    held: dict[tuple[str, Lane], Lease] = {}
    done: list[Lease] = []
    for step in steps:
        row, key = step.row, (step.party, step.row.lane)
        if row.queue_id is None:
            continue
        if row.kind is Kind.LOCK and row.outcome is Outcome.OK:
            answered = row.started_us if row.ended_us is None else row.ended_us
            new = Lease(*key, step.moments[-1], None, answered, row.lease_until_us)
            before = held.get(key, new)
            held[key] = replace(new, first=before.first, since_us=before.since_us)
        elif row.kind is Kind.UNLOCK and row.outcome is not Outcome.REFUSED and key in held:
            done.append(replace(held.pop(key), last=step.first))
    return tuple(sorted((*done, *held.values()), key=lambda lease: (lease.first, lease.party)))


# -------------------------------------------------------------------------------------------- labels

_SHAPES = {
    Kind.DELIVER: Shape.CALL,
    Kind.COMMIT: Shape.COMMIT,
    Kind.DEAD_LETTER: Shape.DEAD_LETTER,
    Kind.LOCK: Shape.LOCK,
    Kind.RENEW: Shape.LOCK,
    Kind.UNLOCK: Shape.UNLOCK,
    Kind.RECEIVE: Shape.LOCK,
    Kind.ACK: Shape.COMMIT,
    Kind.RELEASE: Shape.UNLOCK,
    Kind.SEND: Shape.SEND,
    Kind.APPEND: Shape.SEND,
    Kind.SEND_BACK: Shape.SEND,
    Kind.READ: Shape.READ,
    Kind.PULL: Shape.REQUEST,
    Kind.FETCH_OFFSET: Shape.REQUEST,
    Kind.CRASH: Shape.CRASH,
    Kind.PAUSE: Shape.PAUSE,
    Kind.FAULT: Shape.FAULT,
}
_ANSWERS = {Outcome.OK: " ✓", Outcome.REFUSED: " ✗", Outcome.UNKNOWN: " ?"}


def _where(row: Row) -> str:
    return "" if row.queue_id is None else f"{row.topic}/{row.queue_id}"


def _offsets(step: Step) -> str:
    offsets = [row.queue_offset for row in step.rows if row.queue_offset is not None]
    if not offsets:
        return step.row.message_id or "?"
    span = str(offsets[0]) if len(offsets) == 1 else f"{offsets[0]}–{offsets[-1]}"
    times = step.row.reconsume_times
    return f"{span} r{times}" if times else span


def _answer(row: Row) -> str:
    return _ANSWERS.get(row.outcome, "")


def _numbered(row: Row) -> str:
    return "?" if row.queue_offset is None else f"{row.queue_offset}"


def _fetched(row: Row) -> str:
    return f"stored: {row.value}" if row.outcome is Outcome.OK else f"stored: none{_answer(row)}"


def _read(row: Row) -> str:
    return f"read to {row.value}" if row.queue_offset is None else f"read {row.queue_offset}"


def _sent(row: Row) -> str:
    key = f" {row.sharding_key}" if row.sharding_key else ""
    return (
        f"send{key} → {row.queue_offset}"
        if row.queue_offset is not None
        else f"send{key}{_answer(row)}"
    )


_LABELS: dict[Kind, Callable[[Row], str]] = {
    Kind.LOCK: lambda row: f"lock{_answer(row)}",
    Kind.UNLOCK: lambda row: f"unlock{_answer(row)}",
    Kind.RENEW: lambda row: f"renew{_answer(row)}",
    Kind.RECEIVE: lambda row: f"receive {_numbered(row)}{_answer(row)}",
    Kind.ACK: lambda row: f"ack {_numbered(row)}{_answer(row)}",
    Kind.RELEASE: lambda row: f"release {_numbered(row)}{_answer(row)}",
    Kind.PROGRESS: lambda row: f"the store has {row.value}",
    Kind.COMMIT: lambda row: (
        f"commit {row.value}" + ("" if row.outcome is Outcome.OK else _answer(row))
    ),
    Kind.FETCH_OFFSET: _fetched,
    Kind.ADD: lambda row: "add" if row.value is None else f"add, start {row.value}",
    Kind.DROP: lambda _row: "drop",
    Kind.SEND: _sent,
    Kind.DEAD_LETTER: lambda row: f"dead letter {row.queue_offset}{_answer(row)}",
    Kind.READ: _read,
    Kind.PULL: lambda row: f"pull {row.queue_offset}{_answer(row)}",
    Kind.CRASH: lambda _row: "crash",
    Kind.PAUSE: lambda _row: "paused",
    Kind.FAULT: lambda row: row.detail or "fault",
    Kind.CLOCK_STEP: lambda row: f"clock steps {row.value} ms",
}


def _label(step: Step) -> str:
    make = _LABELS.get(step.row.kind)
    return make(step.row) if make else step.row.kind.value.replace("_", " ")


def _begins(step: Step) -> str:
    match step.row.kind:
        case Kind.DELIVER:
            return f"{_offsets(step)} ▶"
        case Kind.PAUSE | Kind.FAULT:
            return _label(step)
        case Kind.COMMIT:
            return f"commit {step.row.value}"
        case Kind.READ:
            return "read" if step.row.queue_offset is None else f"read {step.row.queue_offset}"
        case kind:
            return kind.value.replace("_", " ")


def _ends(step: Step) -> str:
    match step.row.kind:
        case Kind.DELIVER:
            return f"◀ {_offsets(step)} {step.row.outcome.value}"
        case Kind.PAUSE:
            return "goes on"
        case Kind.FAULT:
            return "healed"
        case Kind.COMMIT:
            return _answer(step.row).strip() or step.row.outcome.value
        case _:
            return _label(step)
