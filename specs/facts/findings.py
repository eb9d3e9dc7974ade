"""What is found: how often a clause was at stake, and the evidence of each violation."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from specs.clauses.catalogue import get
from specs.clauses.certainty import THAT_MUST_END, Mark, is_one_life, is_quiet, moved_meanwhile
from specs.clauses.judging import Finding, name_of
from specs.clauses.premises import NOT_MOVED
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.rows import KINDS, Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import Timeline, ints
from specs.history.row import Row
from specs.history.runinfo import RunInfo
from specs.vocabulary import Key, Kind

Shown = tuple[
    type[Finding],
    Mapping[str, int | Sequence[int]],
    Mapping[str, int | Sequence[int]],
    Mapping[str, Any],
]
"""What a finding is, by their roles the positions of its rows and the seqs of those of the context, and what it says
besides."""
_PLAIN = RunContext(RunInfo(""))
_MUST_END = frozenset(map(KINDS.index, THAT_MUST_END))


def _each(roles: Mapping[str, int | Sequence[int]]) -> list[int]:
    """The numbers of all roles, without those of rows that there are not."""
    return [
        at
        for part in roles.values()
        for at in ((part,) if isinstance(part, int) else part)
        if at != NOWHERE
    ]


class Findings:
    """What one clause found in some rows: how often it was at stake, and each violation's evidence.

    The rules for all clauses (`specs.clauses.certainty`) are applied here: rows of a group of which the history lacks
    what the clause needs count for nothing, and a violation is certain only where nothing unrecorded, nobody unseen
    and no clock may explain it.
    """

    def __init__(self, rows: Rows, clause: str) -> None:
        self.rows = rows
        self.clause = clause
        self._clause = get(clause)
        self._at_stake = np.zeros(len(rows.words("run")) if rows.size else 0, np.int64)
        self._found: list[tuple[int, tuple[int, ...], tuple[int, ...], bool, str]] = []
        self._shown: list[Shown] = []
        self._judged: Mask | None = None
        self._unended: Ints | None = None
        self._certain: dict[tuple[int, bool, bool, bool], bool] = {}
        self._kin: tuple[Timeline, Ints] | None = None
        self._marks_by_key: dict[int, list[Mark]] = {}
        if any(
            rows.runs.get(run, _PLAIN).seen is not None
            for run in (rows.words("run") if rows.size else ())
        ):
            by_group = self._clause.key in (Key.LANE, Key.GROUP, Key.GROUP_KEY)
            of_group, firsts = rows.parties("group")
            groups = (rows.name_of("group", place) if by_group else "" for place in firsts)
            has = np.asarray(list(map(self._has_needs, firsts, groups)), np.bool_)
            self._judged = has[of_group]

    def _has_needs(self, place: int, group: str) -> bool:
        seen = self.rows.context_of(place).seen
        if seen is None:
            return True
        everything: frozenset[Kind] = frozenset().union(*seen.values())
        if self._clause.missing(everything):
            return False
        mine = seen.get(group, frozenset())
        return not group or not self._clause.missing(mine | seen.get(None, frozenset()))

    def at_stake(self, where: Ints, times: Ints | None = None) -> None:
        """The clause was at stake at each of these positions (times: how often at each)."""
        if len(where) and self._judged is not None:
            times = None if times is None else times[self._judged[where]]
            where = where[self._judged[where]]
        if len(where) and len(self._at_stake) == 1:
            self._at_stake += len(where) if times is None else times.sum()
        elif len(where):
            counts = np.bincount(self.rows.run[where], weights=times, minlength=len(self._at_stake))
            self._at_stake += counts.astype(np.int64)

    def at_stake_times(self, place: int, times: int) -> None:
        """The clause was at stake that often in the run of the row at this position."""
        if times:
            self.at_stake(np.asarray([place]), np.asarray([times]))

    def broken(
        self,
        kind: type[Finding],
        also: Mapping[str, Any] | None = None,
        *,
        certain: Mask | None = None,
        **roles: Ints,
    ) -> None:
        """One finding of this kind per index of these equally long arrays: its rows' positions, by their roles.

        NOWHERE: there is no such row. also: what it says besides, of all or (an array) of each. certain: as far as the
        clause can tell.
        """
        for index in range(len(next(iter(roles.values())))):
            self.shown(
                kind,
                {name: int(column[index]) for name, column in roles.items()},
                {
                    name: int(each[index]) if isinstance(each, np.ndarray) else each
                    for name, each in (also or {}).items()
                },
                certain=certain is None or bool(certain[index]),
            )

    def told_apart(
        self,
        roles: Mapping[str, Ints],
        *kinds: tuple[type[Finding], Mask, Mapping[str, Ints]],
        certain: Mask | None = None,
    ) -> None:
        """Findings of these kinds, each where its mask is true. roles: of all; each kind has its own besides."""
        for kind, some, more in kinds:
            both: dict[str, Any] = {**roles, **more}
            sure = None if certain is None else certain[some]
            self.broken(kind, certain=sure, **{role: where[some] for role, where in both.items()})

    def shown(
        self,
        kind: type[Finding],
        roles: Mapping[str, int | Sequence[int]],
        also: Mapping[str, Any] | None = None,
        *,
        of_context: Mapping[str, int | Sequence[int]] | None = None,
        group: str | None = None,
        certain: bool = True,
    ) -> None:
        """One finding of this kind: the positions of its rows, by their roles; of a role that is many rows, a list.

        of_context: likewise the seq_begin of rows of the context. group: which one it is about, where only such a row
        says so.
        """
        context = of_context or {}
        before = len(self._found)
        self.violation(
            _each(roles), certain=certain, also=_each(context), group=group, name=name_of(kind)
        )
        if len(self._found) > before:
            self._shown.append((kind, roles, context, also or {}))

    def of_rows(
        self, rows: Sequence[Row], by_seq: Callable[[tuple[str, int]], Row]
    ) -> Iterator[Finding]:
        """Each finding with its rows. rows: those at these positions; by_seq: by run and seq_begin, all there are."""

        def named(
            part: int | Sequence[int], row_at: Callable[[int], Row]
        ) -> Row | tuple[Row, ...] | None:
            if isinstance(part, int):
                return None if part == NOWHERE else row_at(part)
            return tuple(row_at(at) for at in part)

        for (kind, roles, context, also), (run, _seqs, certain, _name) in zip(
            self._shown, self.violations, strict=True
        ):
            fields: dict[str, Any] = {
                name: named(part, rows.__getitem__) for name, part in roles.items()
            }
            for name, part in context.items():
                fields[name] = named(part, lambda seq, run=run: by_seq((run, seq)))  # type: ignore[misc]
            yield kind(**fields, **also, certain=certain)

    def violation(
        self,
        where: Iterable[int],
        *,
        certain: bool = True,
        also: Iterable[int] = (),
        group: str | None = None,
        name: str | None = None,
    ) -> None:
        """One violation, shown by the rows at these positions. also: seq_begin of rows of the context.

        group: which one it is about, where only a row of the context says so. name: the finding's public name; the
        clause's only one by default.
        """
        places = sorted(set(where))
        seqs = tuple(sorted({*(int(self.rows.begin[place]) for place in places), *also}))
        if self._judged is not None and not self._stands_on_needs(places, group):
            return
        if NOT_MOVED in self._clause.premise and self._was_moved(places):
            return
        certain = certain and self._stands(places) and not self._may_be_moved(places, seqs)
        self._found.append(
            (
                int(self.rows.run[places[0]]),
                seqs,
                tuple(places),
                certain,
                name or self._clause.findings[0],
            )
        )

    def _stands_on_needs(self, places: Sequence[int], group: str | None) -> bool:
        """Does the history hold what the clause needs of the group that the evidence is about?"""
        by_seq = sorted(places, key=lambda place: -int(self.rows.begin[place]))
        named = (self.rows.name_of("group", place) for place in by_seq)
        return self._has_needs(by_seq[0], group or next(filter(None, named), ""))

    def _was_moved(self, places: Sequence[int]) -> bool:
        """Did an operator move the offset of its lane before, of whom the clause then says nothing?"""
        rows = self.rows
        resets = rows.context_of(places[0]).resets
        if not resets:
            return False
        now = max(
            int(rows.begin[place] if rows.end[place] == NEVER else rows.end[place])
            for place in places
        )
        return any(
            resets.get(rows.lane_of(at), now) < now for at in places if rows.group[at] != NO_TEXT
        )

    def _stands(self, places: Sequence[int]) -> bool:
        """Is the violation certain, but for the clocks?"""
        rows = self.rows
        broker, epoch, kind = rows.text("broker"), rows.number("broker_epoch"), rows.kind
        named = [epoch[place] for place in places if broker[place] != NO_TEXT]
        epochs = bool(named) and NONE not in named
        ended = all(rows.end[place] != NEVER for place in places if kind[place] in _MUST_END)
        ended = ended and self._knows_all(places)
        one_life = bool(self._clause.of_lives) and self._is_one_life(places)
        asked = int(rows.run[places[0]]), epochs, ended, one_life
        if asked not in self._certain:  # there may be as many violations as rows
            info = rows.context_of(places[0]).info
            self._certain[asked] = self._clause.stands_in(
                info, epochs=epochs, ended=ended, one_life=one_life
            )
        return self._certain[asked]

    def _is_one_life(self, places: Sequence[int]) -> bool:
        rows = self.rows
        client, incarnation = rows.text("client_id"), rows.text("incarnation")
        accused = client[max(places, key=lambda place: int(rows.begin[place]))]
        mine = [incarnation[place] for place in places if client[place] == accused]
        return is_one_life([each for each in mine if each != NO_TEXT])

    def _may_be_moved(self, places: Sequence[int], seqs: Sequence[int]) -> bool:
        """Could a reset excuse the violation that was under way meanwhile? seqs: of all its rows."""
        rows = self.rows
        resets = rows.context_of(places[0]).slow_resets
        if not resets or Kind.RESET not in self._clause.excuses:
            return False
        queue = rows.number("queue_id")
        lanes = {rows.lane_of(at) for at in places if queue[at] != NONE}
        return moved_meanwhile(seqs, lanes, resets)

    def _knows_all(self, places: Sequence[int]) -> bool:
        """Had nobody in the evidence begun anything before, in its lane or queue, of which the end is missing?"""
        rows, clause = self.rows, self._clause
        if not clause.asks_what_a_client_knew or rows.context_of(places[0]).info.closed_world:
            return True
        if self._unended is None:
            self._unended = np.flatnonzero((rows.end == NEVER) & rows.are(*clause.kinds))
        if not len(self._unended):
            return True
        key = rows.lane if clause.key is Key.LANE else rows.queue
        last = max(int(rows.begin[place]) for place in places)
        before = self._unended[rows.begin[self._unended] < last]
        mine = {(int(key[place]), int(rows.client[place])) for place in places}
        return not any(
            (int(key[place]), int(rows.client[place])) in mine for place in before.tolist()
        )

    def _is_quiet(self, places: Sequence[int], seqs: Sequence[int]) -> bool:
        """Do no clocks other than their own lie too close to the evidence? seqs: its rows of the context as well."""
        rows, context = self.rows, self.rows.context_of(places[0])
        bound_us = context.info.clock_bound_us
        if not bound_us:
            return True
        evidence = self._marks(places)
        evidence += [mark for seq in seqs for mark in context.marks_at.get(seq, ())]
        near = [context.marks]
        if self._clause.key in (Key.LANE, Key.QUEUE):
            key = rows.lane if self._clause.key is Key.LANE else rows.queue
            near += [self._marks_of(each) for each in {int(key[place]) for place in places}]
        return all(is_quiet(evidence, others, bound_us) for others in near)

    def _marks_of(self, key: int) -> list[Mark]:
        """When the rows of a lane or a queue that the clause looks at began and ended, ascending."""
        if key not in self._marks_by_key:
            rows = self.rows
            if self._kin is None:
                keys = rows.lane if self._clause.key is Key.LANE else rows.queue
                where = rows.of(*self._clause.kinds)
                self._kin = Timeline(keys[where], rows.begin[where]), where
            line, where = self._kin
            start, stop = line.between(ints([key]), ints([-NEVER]), ints([NEVER]))
            mine = where[line.order[int(start[0]) : int(stop[0])]].tolist()
            self._marks_by_key[key] = sorted(self._marks(mine), key=lambda mark: mark[0])
        return self._marks_by_key[key]

    def _marks(self, places: Sequence[int]) -> list[Mark]:
        rows = self.rows
        clocks, words = rows.text("clock"), [*rows.words("clock"), None]
        began = [(int(rows.started[place]), words[clocks[place]]) for place in places]
        return began + [
            (int(rows.ended[place]), words[clocks[place]])
            for place in places
            if rows.ended[place] != NEVER
        ]

    @property
    def opportunities(self) -> dict[str, int]:
        return {
            run: int(n)
            for run, n in zip(
                self.rows.words("run") if self.rows.size else [], self._at_stake, strict=True
            )
        }

    @property
    def violations(self) -> list[tuple[str, tuple[int, ...], bool, str]]:
        """(run, seq_begin of the evidence, certain, the finding's name)."""
        words = self.rows.words("run") if self.rows.size else []
        return [
            (words[run], seqs, certain and self._is_quiet(places, seqs), name)
            for run, seqs, places, certain, name in self._found
        ]

    @property
    def places(self) -> list[tuple[str | None, str | None, str | None, int | None, int]]:
        """Of each violation the group, topic, broker and queue of its last row that has them, and when it began."""
        return [self._place(places) for _run, _seqs, places, _certain, _name in self._found]

    def _place(
        self, places: Sequence[int]
    ) -> tuple[str | None, str | None, str | None, int | None, int]:
        rows = self.rows
        latest = sorted(places, key=lambda place: -int(rows.begin[place]))
        queue_id = rows.number("queue_id")
        texts = [
            next((rows.name_of(name, at) for at in latest if rows.text(name)[at] != NO_TEXT), None)
            for name in ("group", "topic", "broker")
        ]
        queue = next((int(queue_id[at]) for at in latest if queue_id[at] != NONE), None)
        return texts[0], texts[1], texts[2], queue, int(rows.started[latest[0]])
