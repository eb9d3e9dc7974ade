"""The laws that hold for every clause: what may be done to a history without a verdict turning against somebody.

A law changes a history so that what is true of it is known. Of a *valid* history (the correct reference's, of plans
that the machine draws) something is taken away, made unknown, or timed by clocks that differ: nothing may be refuted
for certain. To a *broken* one (a planted defect, or a transcript's) rows are added that have nothing to do with it, or
everything is renamed and shifted: it stays broken, by the same clause. And where what a clause needs is removed, it is
never at stake.

`python -m inorder.evidence.laws --plans 300` prints the table, clause × law: in how many histories the clause was
at stake, and how often the law was broken. With `--least 50` a clause has its turn until it was at stake in so many
histories of a law, and no longer; the runs are then of all modes and are steered towards what still lacks some.
"""

from __future__ import annotations

import hashlib
import heapq
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from random import Random
from typing import Any

import click
from rich import box
from rich.table import Table

from conformance.cases.folder import all_cases
from conformance.cases.play import play
from conformance.cli.people import console
from conformance.further import seed_of
from conformance.machines.cluster import Collector, Run
from conformance.machines.steering import ingredients_for
from conformance.runner import run_machine
from reference_impl.sim.leased import leased_info, simulate_leased
from reference_impl.sim.leased_plans import drawn_plan
from specs import profiles
from specs.clauses.catalogue import all_clauses, get
from specs.clauses.certainty import EVERYTHING
from specs.clauses.clause import Clause
from specs.clauses.transcript import Expected
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.history.text import parse_history
from specs.plan.config import Config
from specs.verdicts.examine import examine, find_in_each
from specs.vocabulary import (
    DLQ_PREFIX,
    OF_A_CLIENT,
    RETRY_PREFIX,
    SERVER_CONSUMER,
    Kind,
    Level,
    Outcome,
)

History = tuple[RunInfo, list[Row]]

HOUR_US = 3_600_000_000
OF_THE_RUN = frozenset(
    {Kind.JOIN, Kind.LEAVE, Kind.CRASH, Kind.PAUSE, Kind.FAULT, Kind.CLOCK_STEP, Kind.RESET}
)
"""What disturbs a run: a premise of clauses that the rest of it is about."""
BY_THE_HARNESS = (Kind.CLOCK_STEP, Kind.FAULT)
BOUND_US = 5_000
"""How far the clocks of the law about clocks may be apart."""
ANSWERED = frozenset(
    {
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.SEND,
        Kind.DEAD_LETTER,
        Kind.SEND_BACK,
        Kind.DELIVER,
        Kind.RESET,
        Kind.READ,
    }
)
_BUSY = OF_A_CLIENT | {Kind.SEND, Kind.ADD}
"""What clients do."""
_TOLD_BY_THE_ANSWER = {
    Kind.SEND: ("queue_offset", "value"),
    Kind.FETCH_OFFSET: ("value",),
    Kind.PULL: ("value",),
    Kind.READ: ("value",),
}


# ---------------------------------------------------------------- what is taken from a valid history


def opened(info: RunInfo, kinds: Iterable[Kind] = EVERYTHING) -> RunInfo:
    """The run as a recorder tells it who does not see everybody, and who records these kinds."""
    return replace(
        info,
        closed_world=False,
        records={Level.CLIENT.value: tuple(sorted(kind.value for kind in kinds))},
    )


def without_a_party(history: History) -> Iterator[History]:
    """Without all rows of one client, each in turn: not of who tells of the run, whom no recorder misses."""
    info, rows = history
    for client in sorted({row.client_id for row in rows if row.client_id and row.kind in _BUSY}):
        yield (
            opened(info),
            [
                row
                for row in rows
                if client not in (row.client_id, row.process) or row.kind in BY_THE_HARNESS
            ],
        )


def without_a_kind(history: History) -> Iterator[History]:
    """Without all rows of one kind, each in turn."""
    info, rows = history
    for kind in sorted({row.kind for row in rows}):
        yield opened(info, EVERYTHING - {kind}), [row for row in rows if row.kind is not kind]


def without_some_rows(history: History) -> Iterator[History]:
    """Without every third row of one kind, each in turn: as a log of which some lines could not be read."""
    info, rows = history
    for kind in sorted({row.kind for row in rows}):
        of_it = (place for place, row in enumerate(rows) if row.kind is kind)
        lost = {place for number, place in enumerate(of_it) if number % 3 == 0}
        left = [row for place, row in enumerate(rows) if place not in lost]
        yield replace(opened(info), gaps=(kind.value,)), left


def without_the_begin(history: History) -> Iterator[History]:
    """What began after some moment."""
    info, rows = history
    for part in (8, 3, 2):
        yield replace(opened(info), begins_late=True), rows[len(rows) // part :]


def without_the_end(history: History) -> Iterator[History]:
    """What had begun by some moment, one of them while queues were read back; what had not ended by then is open."""
    info, rows = history
    reads = [index for index, row in enumerate(rows) if row.kind is Kind.READ]
    for cut in [len(rows) - len(rows) // part for part in (2, 3, 8)] + reads[len(reads) // 2 :][:1]:
        left = rows[:cut]
        last = left[-1].seq_begin if left else 0
        lasting = [row for row in left if (row.seq_end or 0) > last]
        unseen = [row for row in lasting if row.kind is Kind.READ and row.queue_offset is not None]
        yield (
            opened(info),
            [cut_open(row) if row in lasting else row for row in left if row not in unseen],
        )


def unanswered(history: History) -> Iterator[History]:
    """Some answers, and some ends of calls, that nobody has seen."""
    info, rows = history
    for number in range(2):
        yield (
            opened(info),
            [
                cut_open(row) if row.kind in ANSWERED and _drawn(row, number) < 16 else row
                for row in rows
            ],
        )


def _drawn(row: Row, number: int) -> int:
    """A number below 256 that the row and this number decide alone."""
    return hashlib.blake2b(f"{row.run} {row.op_id} {number}".encode(), digest_size=1).digest()[0]


def cut_open(row: Row) -> Row:
    """The row as if its end had not been seen: without what only the answer tells."""
    if row.seq_end is None:
        return row
    told: dict[str, Any] = dict.fromkeys(_TOLD_BY_THE_ANSWER.get(row.kind, ()))
    if row.kind is Kind.READ and row.queue_offset is not None:
        return row  # a message that was read: there is nothing without its answer
    return row._replace(
        seq_end=None, ended_us=None, outcome=Outcome.UNKNOWN, code=None, lease_until_us=None, **told
    )


def other_clocks(history: History) -> Iterator[History]:
    """Everybody has a clock of their own, and no two are further apart than the bound."""
    info, rows = history
    names = sorted({row.process or "" for row in rows})
    for number in range(2):
        off = {
            name: hashlib.blake2b(f"{info.run} {name} {number}".encode(), digest_size=2).digest()
            for name in names
        }
        moved = {name: int.from_bytes(drawn, "big") % (BOUND_US + 1) for name, drawn in off.items()}
        timed = [
            row._replace(
                started_us=row.started_us + moved[row.process or ""],
                ended_us=None if row.ended_us is None else row.ended_us + moved[row.process or ""],
                clock=row.process or "",
            )
            for row in rows
        ]
        yield replace(info, clock_bounds_us=dict.fromkeys(names, BOUND_US)), put_in_order(timed)


def put_in_order(rows: Sequence[Row]) -> list[Row]:
    """Rows with new places: by their times, and where these are equal in the order that they had."""
    marks: list[tuple[int, int, int, int]] = []
    for index, row in enumerate(rows):
        marks.append((row.started_us, row.seq_begin, 0, index))
        if row.seq_end is not None and row.seq_end != row.seq_begin:
            marks.append((row.ended_us or row.started_us, row.seq_end, 1, index))
    begins: dict[int, int] = {}
    ends: dict[int, int] = {}
    for seq, (_us, _seq, phase, index) in enumerate(sorted(marks), start=1):
        (ends if phase else begins)[index] = seq
    placed = [
        row._replace(
            seq_begin=begins[index],
            seq_end=ends.get(index, None if row.seq_end is None else begins[index]),
        )
        for index, row in enumerate(rows)
    ]
    return sorted(placed, key=lambda row: row.seq_begin)


# ---------------------------------------------------------------- what is done to a broken one


def with_others(history: History) -> Iterator[History]:
    """Beside the same again, of other clients, groups, topics and brokers."""
    yield beside(history, history)


def beside(history: History, other: History) -> History:
    """The history with the rows of another one, of other clients, groups, topics and brokers, at the same time."""
    info, rows = history
    others = renamed((info, other[1]), "x")[1]
    last = max((row.seq_end or row.seq_begin for row in rows), default=0)
    ops = max((row.op_id for row in rows), default=0)
    moved = [
        row._replace(
            seq_begin=row.seq_begin + last,
            seq_end=None if row.seq_end is None else row.seq_end + last,
            op_id=row.op_id + ops,
        )
        for row in others
    ]
    moved.sort(key=lambda row: (row.started_us, row.seq_begin))
    merged = heapq.merge(rows, moved, key=lambda row: (row.started_us, row.seq_begin))
    return info, put_in_order([row._replace(run=info.run) for row in merged])


def renamed_and_shifted(history: History) -> Iterator[History]:
    """With other names everywhere, in the same order, and an hour later by every clock."""
    yield renamed(history, "n", HOUR_US)


_NAMED = (
    "process",
    "client_id",
    "incarnation",
    "group",
    "topic",
    "broker",
    "message_id",
    "origin_id",
    "sharding_key",
)


def renamed(history: History, prefix: str, later_us: int = 0) -> History:
    """Every name with a prefix, wherever it stands, so that their order stays; every clock that much later."""
    info, rows = history
    names = {
        str(value) for row in rows for value in (getattr(row, column) for column in _NAMED) if value
    }
    names |= {name.removeprefix(mark) for name in names for mark in (RETRY_PREFIX, DLQ_PREFIX)}

    def named(text: str | None) -> str | None:
        if not text or text == SERVER_CONSUMER:  # no name of anybody's
            return text
        for mark in (RETRY_PREFIX, DLQ_PREFIX):
            if text.startswith(mark):
                return mark + prefix + text.removeprefix(mark)
        return prefix + text

    def words(text: str | None) -> str | None:
        """Text in which names stand between blanks, and queues as broker/number."""
        if not text:
            return text
        return " ".join(
            prefix + word if word in names or word.partition("/")[0] in names else word
            for word in text.split(" ")
        )

    def row_of(row: Row) -> Row:
        values: dict[str, Any] = {column: named(getattr(row, column)) for column in _NAMED}
        return row._replace(
            **values,
            view=words(row.view),
            detail=words(row.detail),
            started_us=row.started_us + later_us,
            ended_us=None if row.ended_us is None else row.ended_us + later_us,
            wall_us=None if row.wall_us is None else row.wall_us + later_us,
            lease_until_us=None if row.lease_until_us is None else row.lease_until_us + later_us,
        )

    return info, [row_of(row) for row in rows]


def without_what_it_needs(history: History, clause: Clause) -> Iterator[History]:
    """Without each kind of row that the clause needs, in an open world whose recorder says nothing, or says so."""
    info, rows = history
    for kind in sorted(clause.needs):
        left = [row for row in rows if row.kind is not kind]
        yield replace(info, closed_world=False, records=None), left
        yield opened(info, EVERYTHING - {kind}), left


TAKEN_AWAY: Mapping[str, Callable[[History], Iterator[History]]] = {
    "a party missing": without_a_party,
    "a kind missing": without_a_kind,
    "some rows missing": without_some_rows,
    "the begin missing": without_the_begin,
    "the end missing": without_the_end,
    "answers unknown": unanswered,
    "other clocks": other_clocks,
}
"""Laws about valid histories: nothing is refuted for certain."""
LEFT_BROKEN: Mapping[str, Callable[[History], Iterator[History]]] = {
    "others added": with_others,
    "renamed and shifted": renamed_and_shifted,
}
"""Laws about broken histories: they stay broken, by the same clause."""
NEEDS = "needs removed"
MODES = ("reference", "reference-concurrent", "reference-key-ordered", "reference-broadcast")
"""The profiles of the reference: each consumes in a way of its own."""
LEASED_SEEDS = range(1, 7)
TURN = 6
"""Runs for one clause, before another one has its turn."""
LAWS = (*TAKEN_AWAY, *LEFT_BROKEN, NEEDS)


# ---------------------------------------------------------------- counting


@dataclass(slots=True)
class Count:
    """Of one clause and one law. histories: in which the clause was at stake; broken: the law was, in so many."""

    histories: int = 0
    broken: int = 0


@dataclass(slots=True)
class Hearing:
    """What came of the laws: clause × law, and the first reasons why one was broken.

    least: so many histories are enough for a clause and a law; None: there are never enough.
    """

    counts: dict[tuple[str, str], Count] = field(default_factory=dict)
    reasons: list[str] = field(default_factory=list)
    least: int | None = None

    def add(self, clause: str, law: str, broken: str | None, *, at_stake: bool = True) -> None:
        count = self.counts.setdefault((clause, law), Count())
        count.histories += at_stake
        if broken is not None:
            count.broken += 1
            self.reasons.append(f"{law}: {clause}: {broken}")

    def wants(self, clause: str, law: str) -> bool:
        """Are there too few histories of this clause and this law?"""
        return self.least is None or self.counts.get((clause, law), Count()).histories < self.least

    def lacking(self, laws: Iterable[str]) -> list[str]:
        """The clauses that some of these laws want more histories of, in the catalogue's order."""
        laws = tuple(laws)
        return [
            clause.id for clause in all_clauses() if any(self.wants(clause.id, law) for law in laws)
        ]


def hear_valid(history: History, hearing: Hearing, laws: Iterable[str] = TAKEN_AWAY) -> None:
    """Hold the laws about valid histories, and that about needs, to one."""
    info, rows = history
    before = examine(rows, info, all_clauses())
    against = {clause for clause, tally in before.tallies.items() if tally.violations}
    at_stake = [clause for clause in all_clauses() if before.tallies[clause.id].opportunities]
    for law in laws:
        asked: Sequence[Clause] = [clause for clause in at_stake if hearing.wants(clause.id, law)]
        if hearing.least is None:
            asked = all_clauses()
        elif not asked:
            continue
        said: dict[str, str] = {}
        for changed in TAKEN_AWAY[law](history):
            for clause, tally in examine(changed[1], changed[0], asked).tallies.items():
                if tally.violations and clause not in against:
                    said.setdefault(clause, f"{info.run}: {tally.explanation}")
        for each in asked:
            hearing.add(each.id, law, said.get(each.id), at_stake=each in at_stake)
    for each in (clause for clause in at_stake if hearing.wants(clause.id, NEEDS)):
        left = [
            times
            for changed in without_what_it_needs(history, each)
            if (times := examine(changed[1], changed[0], (each,)).tallies[each.id].opportunities)
        ]
        hearing.add(each.id, NEEDS, f"{info.run}: still at stake {left[0]} times" if left else None)


def hear_kept(clause: Clause, histories: Iterable[History], hearing: Hearing) -> None:
    """Hold the laws about valid histories to those of which the clause finds nothing, nor would if all were declared.

    What else is kept is so because nobody says that more would have been told.
    """
    histories = list(histories)
    declared = are_refuted(clause, [(opened(info), rows) for info, rows in histories])
    kept = [each for each, refuted in zip(histories, declared, strict=True) if not refuted]
    for law, change in TAKEN_AWAY.items():
        changed = [(number, each) for number, was in enumerate(kept) for each in change(was)]
        refuted = are_refuted(clause, [each for _, each in changed])
        said: dict[int, str] = {}
        for (number, (info, rows)), against in zip(changed, refuted, strict=True):
            if against and number not in said:
                tally = examine(rows, info, (clause,)).tallies[clause.id]
                said[number] = f"{info.run}: {tally.explanation}"
        for number in range(len(kept)):
            hearing.add(clause.id, law, said.get(number))


def hear_broken(clause: Clause, histories: Sequence[History], hearing: Hearing) -> None:
    """Hold the laws about broken histories to those that the clause refutes."""
    for law, change in LEFT_BROKEN.items():
        changed = [each for was in histories for each in change(was)]
        for (info, _), against in zip(changed, are_refuted(clause, changed), strict=True):
            hearing.add(clause.id, law, None if against else f"{info.run}: no longer refuted")


def are_refuted(clause: Clause, histories: Sequence[History]) -> list[bool]:
    """Does the clause refute each of these for certain? Those that are described alike are judged in one pass."""
    alike: dict[str, list[int]] = {}
    for number, (info, _) in enumerate(histories):
        alike.setdefault(repr(replace(info, run="")), []).append(number)
    found = [False] * len(histories)
    for numbers in alike.values():
        info = histories[numbers[0]][0]
        told = find_in_each(clause, info, [histories[number][1] for number in numbers])
        for number, (_, findings) in zip(numbers, told, strict=True):
            found[number] = any(finding.certain for finding in findings)
    return found


def hear_beside(
    clause: Clause, history: History, others: Iterable[History], hearing: Hearing
) -> None:
    """Hold them to one that the clause refutes beside other histories, until there are enough."""
    for info, rows in others:
        if not any(hearing.wants(clause.id, law) for law in LEFT_BROKEN):
            return
        merged = beside(history, (info, [row for row in rows if row.kind not in OF_THE_RUN]))
        for law, (told, both) in (
            ("others added", merged),
            ("renamed and shifted", renamed(merged, "n", HOUR_US)),
        ):
            is_broken = examine(both, told, (clause,)).tallies[clause.id].violations
            hearing.add(
                clause.id,
                law,
                None if is_broken else f"{told.run} beside {info.run}: no longer refuted",
            )


def hear_drawn(hearing: Hearing, plans: int, seed: int, laws: Iterable[str] = TAKEN_AWAY) -> None:
    """Hold the laws to runs of all modes of the reference, steered towards the clauses that lack some; at most so many.

    Seeds follow from the seed; the written cases come first, as they are cheap and each is about something, and what
    leases messages one by one.
    """
    laws = tuple(laws)
    for history in (*played(), *leased()):
        hear_valid(history, hearing, laws=laws)
    turns: Counter[str] = Counter()
    made = 0

    def take(run: Run) -> None:
        nonlocal made
        made += 1
        hear_valid((run.info, run.rows), hearing, laws=laws)

    def heard_enough(clause: Clause) -> bool:
        return made >= plans or clause.id not in hearing.lacking((*laws, NEEDS))

    while (lacking := hearing.lacking((*laws, NEEDS))) and max(made, turns.total()) < plans:
        clause = get(min(lacking, key=lambda name: turns[name]))
        turns[clause.id] += 1
        for profile in (each for each in map(profiles.load, MODES) if is_of(clause, each)):
            collector = Collector(
                lambda refuted: (),
                on_run=take,
                config=profile.config,
                enough=partial(heard_enough, clause),
            )
            run_machine(collector, seed_of(seed, turns.total()), TURN, ingredients_for(clause.id))


def is_of(clause: Clause, profile: profiles.Profile) -> bool:
    """Is the clause about what groups do that consume as the profile says?"""
    asked: Mapping[str, Any] = profile.config
    return clause.unmet(RunInfo("any", config=replace(Config(), **asked))) is None


@cache
def played() -> tuple[History, ...]:
    """Every written case on the reference."""
    return tuple((done.info, done.rows) for done in map(play, all_cases()))


@cache
def leased() -> tuple[History, ...]:
    """Correct runs of a system that leases messages one by one: of what it promises no case and no plan speaks."""
    plans = [drawn_plan(Random(seed), seed) for seed in LEASED_SEEDS]
    return tuple((leased_info(plan), list(simulate_leased(plan))) for plan in plans)


def broken_transcripts() -> Iterator[tuple[Clause, list[History]]]:
    """Of each clause the examples that it refutes for certain."""
    for clause in all_clauses():
        yield (
            clause,
            [
                parse_history(example.text)
                for example in clause.examples
                if example.expected is Expected.BROKEN
            ],
        )


def kept_transcripts() -> Iterator[tuple[Clause, list[History]]]:
    """Of each clause the examples that it does not refute, and in which everything is told."""
    for clause in all_clauses():
        kept: list[History] = []
        for example in clause.examples:
            info, rows = parse_history(example.text)
            by_epochs = len({row.broker_epoch for row in rows if row.broker_epoch}) > 1
            told = info.closed_world and info.records is None and not (info.gaps or by_epochs)
            if example.expected is not Expected.BROKEN and told and not info.clock_bound_us:
                kept.append((replace(info, run=f"{clause.id}: {example.why}"), rows))
        yield clause, kept


def table(hearing: Hearing) -> Table:
    """Clause × law: histories, and in how many of them the law was broken."""
    drawn = Table(box=box.SIMPLE_HEAD, show_edge=False)
    drawn.add_column("clause")
    for law in LAWS:
        drawn.add_column(law, justify="right")
    for clause in all_clauses():
        cells = [hearing.counts.get((clause.id, law), Count()) for law in LAWS]
        drawn.add_row(
            clause.id,
            *(
                f"{cell.histories}" + (f" ({cell.broken} broken)" if cell.broken else "")
                for cell in cells
            ),
        )
    return drawn


@click.command()
@click.option("--plans", type=click.IntRange(1), default=200, show_default=True)
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option(
    "--profile", default="reference", show_default=True, help="Of the plans, without --least."
)
@click.option("--least", type=click.IntRange(1), help="Enough histories of a clause and a law.")
@click.option(
    "--law",
    "laws",
    multiple=True,
    type=click.Choice(list(TAKEN_AWAY)),
    help="Only these; repeatable.",
)
def main(plans: int, seed: int, profile: str, least: int | None, laws: tuple[str, ...]) -> None:
    """Hold the laws to drawn plans on the correct reference and to all transcripts; exit 1 when one is broken."""
    hearing = Hearing(least=least)
    asked = profiles.load(profile)

    def take(run: Run) -> None:
        hear_valid((run.info, run.rows), hearing, laws=laws or TAKEN_AWAY)

    if least is not None:
        hear_drawn(hearing, plans, seed, laws or TAKEN_AWAY)
    else:
        run_machine(Collector(lambda refuted: (), on_run=take, config=asked.config), seed, plans)
    if not laws:
        for clause, histories in broken_transcripts():
            hear_broken(clause, histories, hearing)
            for history in histories if least is not None else ():
                hear_beside(clause, history, played(), hearing)
    people = console()
    people.print(table(hearing))
    for reason in hearing.reasons[:40]:
        people.print(reason)
    raise SystemExit(1 if hearing.reasons else 0)


if __name__ == "__main__":
    main()
