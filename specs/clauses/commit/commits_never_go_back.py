"""Within an incarnation, a commit that begins after another has ended does not carry a smaller value.

Commits that overlap in time may arrive in any order and are not compared. Nor is a commit that travels with a pull
compared with one-way commits that were sent less than the slack of a timer before: the pull took its value from the
client's memory before the timer reported a newer one, and is sent after it. A broker's correction (of the value that a
pull was told to go on at) and a new look-up of the stored offset (which the client adopts even when it is lower) clear
what is remembered, and what is under way then; a look-up that names no incarnation is one of each incarnation of its
client. After a reset an incarnation is judged once it was added since: before, a client that was told of it may report
the old offset once more, and then the new one. A commit that was refused is none. Says nothing about another
incarnation: it may well start lower. Nor about what the next process of a client's name commits, where it left or died
and no ADD tells that the incarnation is a new one.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from specs.clauses.context import Context
from specs.clauses.incarnations import Corrections
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.premises import NO_RESET
from specs.clauses.words import MS, at, who
from specs.history.row import Row
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "CMT-4"
TITLE = "commits never go back"
STATEMENT = (
    "Within an incarnation, commits that do not overlap in time never go back, without a reset."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (NO_RESET,)
SOURCES = ("docs/sources.md#offsets",)
KINDS = frozenset({Kind.COMMIT, Kind.ADD, Kind.RESET, Kind.FETCH_OFFSET, Kind.PULL})
NEEDS = frozenset({Kind.COMMIT})

WITH_A_PULL = "pull"
"""The view of a commit that a pull carries along."""


@dataclass(frozen=True, slots=True)
class CommitWentBack(Finding):
    first: Row
    second: Row


class _Ended:
    """The commits of an incarnation that have ended: the highest, and one-way ones that a pull may be late for."""

    __slots__ = ("client", "context", "highest", "recent")

    def __init__(self, context: Context, client: str | None) -> None:
        self.context = context
        self.client = client
        self.highest: Row | None = None
        self.recent: deque[Row] = deque()

    def take(self, row: Row) -> None:
        highest = self.highest
        if (
            highest is None
            or (row.value or 0) > (highest.value or 0)
            or not self.is_current(highest)
        ):
            self.highest = row if self.is_current(row) else highest

    def is_current(self, row: Row) -> bool:
        """Does the process still live that committed this, as far as anybody knows?"""
        return not self.context.is_of_an_old_life(row.client_id, row.group, row)

    def before(self, row: Row) -> Row | None:
        """The highest of what the commit, which begins, may not go back behind."""
        ended = [] if self.highest is None else [self.highest]
        if row.view != WITH_A_PULL:
            ended.extend(self.recent)
        current = filter(self.is_current, ended)
        return max(current, key=lambda each: each.value or 0, default=None)

    def age(self, until_us: int) -> None:
        """Nobody is late any more for what was sent up to then."""
        while self.recent and self.recent[0].started_us <= until_us:
            self.take(self.recent.popleft())


class LaneJudge(Judge):
    """Remembers, for each incarnation, the highest commit that has ended, and the one-way ones of the last moments."""

    __slots__ = ("added", "corrections", "ended", "slack_us", "under_way")

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self.corrections = Corrections()
        self.under_way: dict[
            int, Row
        ] = {}  # since nothing cleared its incarnation, by their begins
        self.ended: dict[str, _Ended] = {}
        self.added: set[str] | None = None  # since the last reset, where there was one
        self.slack_us = self.config.schedule_slack_ms * MS

    def begins(self, row: Row) -> Iterable[Finding]:
        self.corrections.begins(row)
        if row.kind is Kind.RESET:
            self.ended.clear()
            self.under_way.clear()
            self.added = set()
            return NOTHING
        if row.incarnation is None:
            return NOTHING
        if row.kind is Kind.ADD:
            self._clear(lambda name, _client: name == row.incarnation)
            if self.added is not None:
                self.added.add(row.incarnation)
        return self._committed(row, row.incarnation) if row.kind is Kind.COMMIT else NOTHING

    def _committed(self, row: Row, incarnation: str) -> Iterable[Finding]:
        if self.corrections.has(row):
            self._clear(lambda name, _client: name == incarnation)
            return NOTHING
        if row.seq_end is not None:
            self.under_way[row.seq_begin] = row
        ended = self.ended.get(incarnation)
        if ended is None or row.value is None:
            return NOTHING
        ended.age(row.started_us - self.slack_us)
        highest = ended.before(row)
        if highest is None:
            return NOTHING
        self.opportunities += 1
        return (CommitWentBack(highest, row),) if row.value < (highest.value or 0) else NOTHING

    def ends(self, row: Row) -> Iterable[Finding]:
        self.corrections.ends(row)
        if row.kind is Kind.FETCH_OFFSET:
            self._looked_up(row)
        elif row.incarnation is not None and self.under_way.pop(row.seq_begin, None) is not None:
            self._committed_to_end(row, row.incarnation)
        return NOTHING

    def _committed_to_end(self, row: Row, incarnation: str) -> None:
        if row.value is None or (self.added is not None and incarnation not in self.added):
            return
        ended = self.ended.setdefault(incarnation, _Ended(self.context, row.client_id))
        if row.outcome is Outcome.SENT:
            ended.recent.append(row)
        else:
            ended.take(row)

    def _looked_up(self, row: Row) -> None:
        if row.incarnation is not None:
            self._clear(lambda name, _client: name == row.incarnation)
        else:
            self._clear(lambda _name, client: client == row.client_id)

    def _clear(self, is_meant: Callable[[str, str | None], bool]) -> None:
        """Nothing is compared any more with what these incarnations have committed so far."""
        for name in [name for name, each in self.ended.items() if is_meant(name, each.client)]:
            del self.ended[name]
        for row in list(self.under_way.values()):
            if is_meant(row.incarnation or "", row.client_id):
                del self.under_way[row.seq_begin]


judge = LaneJudge


def explain(found: CommitWentBack) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} committed {second.value} for {second.lane} at {at(second)}, after it had committed "
        f"{first.value} at {at(first)} in the same incarnation"
    )
