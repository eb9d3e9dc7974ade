"""In manual mode no commit passes a message whose call did not end in COMMIT, nor a later one.

What a call took in manual mode is finished when that call, or a later one of the incarnation, ends in COMMIT. So does a
call in auto mode that acknowledges, and an acknowledged dead letter in auto mode: the client then commits all that it
has taken. A ROLLBACK puts back all that was taken: it is in nobody's hands until it is delivered again, and no COMMIT
before that finishes it. A dead letter that does not say its mode is of the mode of the last call that suspended its
message. The client may have committed all where a call in auto mode suspended a message with its retries used up, and
nobody tells whether it was given up (as in a history that begins late, whatever is told there, and in a lane with a
dead letter that names no incarnation): then nothing is claimed of what was taken before. A dead letter tells that it
was not, where it is refused or never answered. Every other end (SUCCESS as well) leaves the offset where it was. The
lowest message that was so left is remembered, and a commit beyond it is a violation.

Judged where the ADD was seen, up to the DROP (after it see CMT-6); what a call took that began before the ADD is of an
earlier life. A broker's correction (the value that a pull was told to go on at) and a reset are excused, and a commit
that was refused is none. Says nothing about the incarnation's start (the value of its ADD), which may be reported at
any time.
"""

import numpy as np

from specs.clauses.premises import NO_FILTER, NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, acknowledged, may_be_given_up
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.dead_letters import may_be_untold
from specs.facts.segments import chosen, dense, pairs, positions
from specs.facts.tenures import Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Key, Kind, Outcome, Party

ID = "CMT-3"
TITLE = "manual mode moves only on COMMIT"
STATEMENT = "In manual mode the offset moves only when a call ends in COMMIT."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop",)
STAKES = (Stake(Trait.MANUAL),)
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.ADD, Kind.COMMIT, Kind.DELIVER})
REFINES = ("CMT-1", "CMT-2")
COLUMNS = (*CALL_COLUMNS, "detail")


class MovedWithoutCommit(Finding):
    """taken: a manual call's message that no COMMIT covered."""

    add: Row
    taken: Row
    commit: Row


class _Taken:
    """What manual calls took in tenures that were added: which rows, and when it was committed."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.tenures = rows, rows.shared(Tenures)
        self.tenure, end, mode = self.tenures.number, rows.end, rows.text("commit_mode")
        self.manual = mode == rows.code("commit_mode", CommitMode.MANUAL)
        self.message = self.tenures.message
        told = self.tenures.named & (self.tenures.add != NOWHERE) & (rows.offset != NONE)
        self.calls, self.ended = told & rows.are(Kind.DELIVER), end < NEVER
        self.letters = positions(told & rows.are(Kind.DEAD_LETTER) & rows.ended_as(Outcome.OK))
        over, suspends = self.calls & self.ended, rows.ended_as(*LISTENER_SUSPENDS)
        letters, ended = self.letters, end[self.letters]
        last = Line(self.message, end, positions(over)).last_before(self.message[letters], ended)
        calls = Line(self.tenure, rows.begin, positions(self.calls))
        newest = calls.last_before(self.tenure[letters], ended)
        last = np.where(suspends[last] & (last != NOWHERE), last, newest)
        untold = self.manual[last] & (last != NOWHERE)
        by_hand = np.where(mode[letters] == NO_TEXT, untold, self.manual[letters])
        covering = positions(over & acknowledged(rows))
        self.covering = np.append(covering, letters[~by_hand])
        self.unseen = positions(over & suspends & ~self.manual & may_be_given_up(rows))
        # Of one offset that was put back twice the last call is shown.
        self.taken = positions(over & self.manual & ~rows.ended_as(Outcome.COMMIT))[::-1]

    def lowest(self, covering: Ints, commits: Ints) -> Ints:
        """Of each commit the lowest that had been taken and that none of these rows' ends had covered; or NOWHERE.

        Time is counted in rows that cover. What was put back since the last one is covered by none until it is
        delivered again, or given up.
        """
        rows, tenure, end, taken = self.rows, self.tenure, self.rows.end, self.taken
        line = Line(tenure, end, covering)
        since = line.count_before(tenure[taken], end[taken])
        rolled = self.calls & self.ended & self.manual & rows.ended_as(Outcome.ROLLBACK)
        back = Line(tenure, end, positions(rolled)).first_after(tenure[taken], end[taken] - 1)
        back_at = chosen(end, back, NEVER)
        is_back = (back != NOWHERE) & (line.count_before(tenure[taken], back_at) == since)
        again = self._again(taken, back_at)
        until = np.where(is_back, line.count_before(tenure[taken], again), since)
        index, period = (
            np.concatenate(each) for each in zip(*pairs(since, until + 1), strict=True)
        )
        held, now = taken[index], line.count_before(tenure[commits], rows.begin[commits])
        moment = np.where(period == since[index], end[held], -1)
        key = dense(np.append(tenure[held], tenure[commits]), np.append(period, now))[0]
        found = Line(key, moment, np.arange(len(held))).highest_before(
            key[len(held) :], rows.begin[commits], -rows.offset[held]
        )
        return chosen(held, found, NOWHERE)

    def _again(self, taken: Ints, since: Ints) -> Ints:
        """When each of these messages was delivered again after the moment, or given up; NEVER without either."""
        rows, message = self.rows, self.message
        begun = Line(message, rows.begin, positions(self.calls)).first_after(message[taken], since)
        given_up = Line(message, rows.end, self.letters).first_after(message[taken], since)
        return np.minimum(chosen(rows.begin, begun, NEVER), chosen(rows.end, given_up, NEVER))


def judge(rows: Rows, findings: Findings) -> None:
    """Each commit of a tenure that was added and not dropped, beside the lowest that was left."""
    taken, begin, value = _Taken(rows), rows.begin, rows.value
    if not len(taken.taken):
        return
    tenures, tenure = taken.tenures, taken.tenure
    drops = Line(tenure, begin, positions(rows.are(Kind.DROP) & tenures.named))
    judged = rows.are(Kind.COMMIT) & tenures.named & (tenures.add != NOWHERE) & (value != NONE)
    judged &= ~rows.correction & (drops.last_before(tenure, begin) == NOWHERE)
    judged &= tenures.reset == tenures.reset[tenures.add]
    commits = positions(judged)
    lowest = taken.lowest(taken.covering, commits)
    unsure = taken.lowest(np.append(taken.covering, taken.unseen), commits)
    lowest = np.where(may_be_untold(rows, commits), unsure, lowest)
    commits, lowest = commits[lowest != NOWHERE], lowest[lowest != NOWHERE]
    add = tenures.add[commits]
    beyond = value[commits] > rows.offset[lowest]
    judged = ~(beyond & (value[commits] == value[add]))  # it may tell its start
    findings.at_stake(commits[judged])
    wrong = beyond & judged
    findings.broken(MovedWithoutCommit, add=add[wrong], taken=lowest[wrong], commit=commits[wrong])


def explain(found: MovedWithoutCommit) -> str:
    taken, commit = found.taken, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, although the call for offset "
        f"{taken.queue_offset}, begun at {at(taken)} in manual mode, ended in {taken.outcome.upper()} and no call "
        "of it since in COMMIT"
    )
