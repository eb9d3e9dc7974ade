"""No commit passes a message, at or after the incarnation's start, that nobody of the group has finished.

What *finished* means in each mode, where an incarnation starts, and when an offset is known to hold a message, is said
in `specs.facts.finished`, `starts` and `backlog`. Of a batch the answer names the place of the first message only: the
others are known here when they are delivered, and a commit that passes one that nobody was ever given is not found. A
message below the start is somebody else's. Where the start was not seen (no ADD and no look-up in the history) only
messages that this incarnation itself delivered count, and nothing is said while a look-up has no answer that anybody
saw. A commit of a broker's correction (of the value that a pull was told to go on at, whether or not who recorded it
says `detail=corrected`), or after a reset, says nothing; after one any commit of an incarnation that nobody saw begin.
Below a correction the broker has passed over what the incarnation had not delivered before, which is not its to finish
any more, also where it delivers that afterwards. Nor does a commit say anything that passes a message which may have
been given up where nobody told. Nobody owes what the broker has removed on purpose: below the minimum that it announced
before the commit nothing is unfinished. A commit that was refused is none. In an open world somebody who is not seen
may have finished what the incarnation was not given.
"""

from collections.abc import Sequence

import numpy as np

from specs.clauses.premises import NO_FILTER, NO_RESET, NOT_REMOVED, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, start_of, who
from specs.facts.backlog import Backlog
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS
from specs.facts.columns import NONE, NOWHERE, Ints, Mask
from specs.facts.corrections import Corrections
from specs.facts.dead_letters import may_be_untold
from specs.facts.finished import Finished
from specs.facts.gone import kept_from
from specs.facts.segments import by_time, chosen, positions
from specs.facts.starts import Starts
from specs.facts.tenures import Tenures
from specs.vocabulary import Key, Kind, Party

ID = "CMT-1"
TITLE = "no commit passes an unfinished message"
STATEMENT = "No commit passes an unfinished message at or after the incarnation's start."
PARTY = Party.CLIENT
KEY = Key.QUEUE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER, NOT_REMOVED)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#offsets")
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP, Kind.FETCH_OFFSET, Kind.SEND}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER})
COLUMNS = (*CALL_COLUMNS, "delay_level", "detail")


class Passed(Finding):
    """start: why the message is the incarnation's to finish, where it did not deliver it; drop: why it is not
    finished, where its call ended well."""

    start: Row | None
    message: Row
    drop: Row | None
    commit: Row
    offset: int


class _Commits:
    """The commits that say how far a tenure is, by lane and begin; asked (by index) beside places of the backlog.

    start: the row that says where the tenure begins; NOWHERE where nobody saw that.
    """

    def __init__(self, rows: Rows, letters: Sequence[Kind]) -> None:
        self.rows, self.tenures, starts = rows, rows.shared(Tenures), rows.shared(Starts)
        self.finished = rows.shared(Finished, *letters)
        tenure = self.tenures.number
        at = rows.of(Kind.COMMIT)
        at = at[self.tenures.named[at] & ~rows.correction[at] & (rows.value[at] != NONE)]
        at = at[~self.tenures.may_be_reset(at) & ~starts.asks(at, rows.begin[at])]
        at = at[by_time(rows.lane[at], rows.begin[at])]
        calls = Line(tenure, rows.begin, positions(self.finished.calls))
        lowest = calls.highest_before(tenure[at], rows.begin[at], -rows.offset)
        start = starts.row(at, rows.begin[at])
        low = np.where(start == NOWHERE, chosen(rows.offset, lowest, NONE), starts.value[start])
        self.at, self.start = at[low != NONE], start[low != NONE]
        self.now, self.lane = rows.begin[self.at], rows.lane[self.at]
        self.low = np.maximum(low[low != NONE], kept_from(rows, self.at))
        self.corrections = Corrections(rows, self.at)
        value = rows.value[self.at]
        self.backlog = Backlog(self.finished, self.lane, self.low, value, Kind.COMMIT)
        self.untold = may_be_untold(rows, self.at, *letters)

    def own(self, index: Ints, place: Ints) -> Ints:
        """The last call of the message by the commit's tenure, if it is its own to finish; else NOWHERE."""
        mine, begun = self.tenures.number[self.at[index]], self.finished.begun

        def is_own(question: Ints, call: Ints) -> Mask:
            found: Mask = self.tenures.number[call] == mine[question]
            return found

        message, now = self.backlog.message[place], self.now[index]
        last = begun.last_before_with(message, now, is_own)
        first = begun.first_after_with(message, np.full(len(message), NONE), is_own)
        has = positions(last != NOWHERE)
        had = self.corrections.had_before(index[has], first[has])
        last[has[~had]] = NOWHERE
        return last

    def passed(self, index: Ints, place: Ints) -> tuple[Ints, Ints]:
        """What shows that a message is the commit's to finish, and unfinished; NOWHERE without it.

        That is the row that says where its tenure starts, unless that took the message itself; and the message.
        """
        own, start, now = self.own(index, place), self.start[index], self.now[index]
        its = self.backlog.offset[place] >= self.corrections.highest[index]
        its &= (own == NOWHERE) & (start != NOWHERE)
        message = own.copy()
        message[its] = self.backlog.shown(place[its], now[its])
        doubt = self.untold[index]
        doubt[doubt] = self.finished.in_doubt(self.backlog.message[place[doubt]], now[doubt])
        return np.where(its, start, NOWHERE), np.where(doubt, NOWHERE, message)


def judge(rows: Rows, findings: Findings) -> None:
    """Each commit beside the first message below it that is unfinished."""
    judge_by(rows, findings, Kind.DEAD_LETTER)


def judge_by(rows: Rows, findings: Findings, *letters: Kind) -> None:
    """letters: the kinds of rows that give a message up."""
    commits = _Commits(rows, letters)
    at, now, backlog = commits.at, commits.now, commits.backlog
    moved = backlog.place_of(commits.lane, np.maximum(commits.low, commits.corrections.highest))
    own = backlog.first(now, lambda index, place: commits.own(index, place) != NOWHERE, moved)
    judged = backlog.holds(moved, now) | (own != NOWHERE)
    findings.at_stake(at[judged])
    place = backlog.first(now, lambda index, place: commits.passed(index, place)[1] != NOWHERE)
    index = positions(judged & (place != NOWHERE))
    start, message = commits.passed(index, place[index])
    findings.broken(
        Passed,
        {"offset": backlog.offset[place[index]]},
        certain=~commits.tenures.may_be_older(at[index])
        & ((start == NOWHERE) | rows.closed_world(at[index])),
        start=start,
        message=message,
        drop=commits.finished.drop_of(message, now[index]),
        commit=at[index],
    )


def explain(found: Passed) -> str:
    message, commit = found.message, found.commit
    said = f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, past offset {found.offset}"
    if message.kind is Kind.SEND:
        started = (
            ""
            if found.start is None
            else f" and {who(commit)} had started at {start_of(found.start)}"
        )
        return f"{said}, which was sent at {at(message)} and which nobody of the group had finished{started}"
    return f"{said}, which {who(message)} began at {at(message)} and nobody of the group had finished by then"
