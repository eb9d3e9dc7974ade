"""Within an incarnation, a commit that begins after another has ended does not carry a smaller value.

Commits that overlap in time may arrive in any order and are not compared. Nor is a commit that travels with a pull
compared with one-way commits that were sent less than the slack of a timer before: the pull took its value from the
client's memory before the timer reported a newer one, and is sent after it. A broker's correction (of the value that a
pull was told to go on at) and a new look-up of the stored offset (which the client adopts even when it is lower) clear
what is remembered, and what is under way then; a look-up that failed clears nothing, and one that names no incarnation
is one of each incarnation of its client. After a reset an incarnation is judged once it was added since: before, a
client that was told of it may report the old offset once more, and then the new one. A commit that was refused is none.
Says nothing about another incarnation: it may well start lower. Nor about what the next process of a client's name
commits, where it left or died and no ADD tells that the incarnation is a new one.
"""

import numpy as np

from specs.clauses.premises import NO_RESET
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.corrections import set_anew
from specs.facts.segments import chosen, dense, positions
from specs.facts.tenures import TENURE_COLUMNS, Tenures
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
COLUMNS = (*TENURE_COLUMNS, "detail", "view")


class CommitWentBack(Finding):
    first: Row
    second: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each commit beside the highest that had ended before it since nothing cleared what is remembered."""
    tenures, begin, value = rows.shared(Tenures), rows.begin, rows.value
    told = rows.are(Kind.COMMIT) & tenures.named & (value != NONE) & ~rows.correction
    period = dense(tenures.period, rows.shared(set_anew))[0]
    since = chosen(begin, tenures.add, NONE)
    ended = told & (rows.end < NEVER)
    ended &= (tenures.reset == NOWHERE) | (since > chosen(begin, tenures.reset, NONE))
    sent, slack_us = (
        rows.ended_as(Outcome.SENT),
        rows.config("schedule_slack_ms", np.arange(rows.size)) * MS,
    )
    with_pull = rows.text("view") == rows.code("view", "pull")

    def highest(events: Mask, time: Ints, commits: Ints, until: Ints) -> None:
        before = Line(period, time, positions(ended & events))
        best = before.highest_before(period[commits], until[commits], value)
        better = (first[commits] == NOWHERE) | (value[best] > value[first[commits]])
        better |= (value[best] == value[first[commits]]) & (begin[best] < begin[first[commits]])
        first[commits] = np.where(better & (best != NOWHERE), best, first[commits])

    first = np.full(rows.size, NOWHERE, np.int64)
    commits, pulled = positions(told), positions(told & with_pull)
    highest(~sent, rows.end, commits, begin)
    highest(sent, rows.started + slack_us, pulled, rows.started + 1)
    highest(sent, rows.end, positions(told & ~with_pull), begin)
    commits = commits[first[commits] != NOWHERE]
    findings.at_stake(commits)
    second = commits[value[commits] < value[first[commits]]]
    lives = [_lives(rows, int(first[each]), int(begin[each])) for each in second.tolist()]
    second = second[np.asarray(lives, np.bool_)]
    findings.broken(CommitWentBack, first=first[second], second=second)


def _lives(rows: Rows, commit: int, now: int) -> bool:
    """Is whoever committed this the one that commits under its name now? A shutdown may last beyond the next start."""
    client, group = rows.member_of(commit)
    began = int(rows.begin[commit])
    return not rows.context_of(commit).is_of_an_old_life(client, group, began, now)


def explain(found: CommitWentBack) -> str:
    first, second = found.first, found.second
    return (
        f"{who(second)} committed {second.value} for {second.lane} at {at(second)}, after it had committed "
        f"{first.value} at {at(first)} in the same incarnation"
    )
