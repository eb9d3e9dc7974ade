"""Once a lane is dropped, its incarnation reports no more than it had finished by then.

*Finished by then*: the incarnation's start, and what its calls and acknowledged dead letters had finished, and what it
had committed, before the DROP. A call that still runs at the drop ends for nothing: the lane belongs to somebody else,
who begins before that message. To report the old offset once more is allowed here (CMT-5 and CMT-13 say when it comes
too late).

Judged where the ADD says where the incarnation started, or a look-up of its own since that was answered with a stored
offset; one that found nothing stored, in a group that does not begin with the first message, leaves it unknown, and so
does one that began before the drop and was not answered by then. One that names no incarnation may be of each that its
client has not dropped: it tells no start, and is excused likewise. A broker's correction (the value that a pull was
told to go on at) and a reset are excused, a commit that was refused is none, and excused is also a message that may
have been given up before the drop where nobody told: in a lane that has shown no dead letter when the commit begins,
unless a recorder declares them, in one that has shown a dead letter which names no incarnation, and in every lane of a
history that begins late, whatever is told there. A dead letter that was acknowledged after the drop, or never, finished
nothing. Nothing is said of a group of which a member filters, as its start tells: what it passed by it reports.
"""

import numpy as np

from specs.clauses.premises import NO_FILTER, NO_RESET, ORDERLY
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.calls import CALL_COLUMNS, CALL_KINDS, acknowledged, may_be_given_up
from specs.facts.columns import NEVER, NONE, NOWHERE
from specs.facts.dead_letters import may_be_untold
from specs.facts.lookups import answers
from specs.facts.segments import positions
from specs.facts.tenures import OfTenures, Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Key, Kind, Outcome, Party

ID = "CMT-6"
TITLE = "no new progress after the drop"
STATEMENT = "After a drop no commit of that incarnation exceeds what was finished before it."
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (ORDERLY, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#orderly-loop", "docs/sources.md#offsets")
STAKES = (Stake(Trait.LONG_CALL),)
KINDS = CALL_KINDS | {Kind.COMMIT, Kind.DROP, Kind.FETCH_OFFSET}
SETTINGS = ("consume_from", "max_reconsume_times")
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER, Kind.DROP})
EXCUSED_BY = frozenset({Kind.JOIN})
LOOKS_BACK = True
REFINES = ("CMT-1", "CMT-2")
COLUMNS = (*CALL_COLUMNS, "detail")


class ProgressAfterDrop(Finding):
    """start: the look-up that says where it started, where the ADD does not."""

    add: Row
    start: Row
    drop: Row
    commit: Row
    finished: int


class _Work:
    """What tenures did, and what their clients did that names none, by when it began or ended."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self.tenures = rows, rows.shared(Tenures)
        by_hand = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
        calls, letters = rows.are(Kind.DELIVER), rows.are(Kind.DEAD_LETTER)
        looks, refused = rows.are(Kind.FETCH_OFFSET), rows.ended_as(Outcome.REFUSED)
        self.told = rows.shared(answers)
        self.answered_at = np.where(refused | (self.told != NONE), rows.end, NEVER)
        done = (calls & acknowledged(rows)) | (letters & rows.ended_as(Outcome.OK))
        vain = calls & may_be_given_up(rows) & rows.ended_as(*LISTENER_SUSPENDS) & ~by_hand
        self.drops = OfTenures(rows, rows.are(Kind.DROP), rows.begin)
        self.commits = OfTenures(rows, rows.are(Kind.COMMIT) & (rows.value != NONE), rows.begin)
        self.began = OfTenures(rows, calls, rows.begin)
        self.finished = OfTenures(rows, done & (rows.offset != NONE), rows.end)
        self.in_vain = OfTenures(rows, vain, rows.end)
        self.asked = OfTenures(rows, looks, rows.begin)
        self.heard = OfTenures(rows, looks & (refused | (self.told != NONE)), rows.end)


def judge(rows: Rows, findings: Findings) -> None:
    """The commits after each tenure's first DROP, beside what it had finished by then."""
    work, begin, value = _Work(rows), rows.begin, rows.value
    for add in positions(rows.are(Kind.ADD) & work.tenures.named).tolist():
        drop = next(iter(work.drops.own(add, NONE, NEVER).tolist()), NOWHERE)
        if drop == NOWHERE or work.tenures.reset[drop] != work.tenures.reset[add]:
            continue
        since, now, context = int(begin[add]), int(begin[drop]), rows.context_of(add)
        own, nobodys = work.heard.own(add, since, now), work.heard.nobodys(add, since, now)
        start = [add] if value[add] != NONE else own[work.told[own] >= 0][:1].tolist()
        heard = np.append(own, nobodys)
        nothing = rows.ended_as(Outcome.REFUSED)[heard] & (work.told[heard] == -1)
        if not start or (context.info.config.consume_from != "first" and nothing.any()):
            continue
        asked = np.append(work.asked.own(add, since, now), work.asked.nobodys(add, since, now))
        if (work.answered_at[asked] > now).any():
            continue
        told = (value[[add]], value[work.commits.own(add, since, now)], work.told[heard])
        ends = rows.offset[work.finished.own(add, since, now)] + 1
        finished = max(each.max(initial=-1) for each in (*told, ends))
        until = context.filtered_from(rows.name_of("group", add))
        started = rows.offset[work.began.own(add, since, now)]
        if now < until and started.max(initial=-1) >= finished:
            findings.at_stake_times(drop, 1)
        later = work.commits.own(add, now, until)
        later = later[~rows.correction[later]]
        later = later[work.tenures.reset[later] == work.tenures.reset[add]]
        given_up = rows.offset[work.in_vain.own(add, since, now)].max(initial=-1) + 1
        beyond = value[later] > finished
        excused = beyond & (value[later] <= given_up) & may_be_untold(rows, later)
        findings.at_stake(later[~excused])
        for commit in later[beyond & ~excused].tolist():
            roles = {"add": add, "start": start[0], "drop": drop, "commit": commit}
            findings.shown(ProgressAfterDrop, roles, {"finished": int(finished)})


def explain(found: ProgressAfterDrop) -> str:
    drop, commit = found.drop, found.commit
    return (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, after it had dropped the lane at "
        f"{at(drop)}; by then it had come to {found.finished}"
    )
