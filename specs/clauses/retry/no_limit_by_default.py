"""An orderly consumer that nobody gave a limit of retries (-1, the default) never gives a message up.

Its lane waits for as long as the listener suspends. A dead letter of a message that it has delivered, in its last call
or in one that did not finish the message, is one too many then, answered or not. Not finished is what asked to come
again, and what ended in SUCCESS in manual mode (a ROLLBACK puts that back too), until a later call has covered it: one
that ended in COMMIT, or well in a mode that nobody says is manual. How often a message was delivered is not counted. Of
what an earlier call has finished nothing is said. The default of concurrent consumers, 16, is kept by the broker, which
counts for them: it is no matter of this clause.
"""

from specs.clauses.premises import ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import NOWHERE
from specs.facts.segments import dense, positions
from specs.facts.tenures import Tenures
from specs.history.runinfo import RunInfo
from specs.vocabulary import LISTENER_SUSPENDS, CommitMode, Key, Kind, Outcome, Party


def _has_no_limit(info: RunInfo) -> bool:
    return info.config.max_reconsume_times == -1


ID = "RTY-8"
TITLE = "without a limit nothing is given up"
STATEMENT = (
    "An orderly consumer without a limit of retries, as it is by default, never gives a message up."
)
PARTY = Party.CLIENT
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    Premise(
        "no limit",
        "the limit of retries is -1, the default (configuration)",
        _has_no_limit,
        settings=frozenset({"max_reconsume_times"}),
    ),
)
SOURCES = ("docs/sources.md#orderly-loop",)
KINDS = frozenset({Kind.DELIVER, Kind.DEAD_LETTER, Kind.ADD})
SETTINGS = ("batch",)
NEEDS = frozenset({Kind.DELIVER})
COLUMNS = ("commit_mode", "incarnation", "op_id", "queue_offset")


class GivenUp(Finding):
    """last: the incarnation's last delivery of the message."""

    last: Row
    dead_letter: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each dead letter, beside the last delivery of its message and the last call of its tenure."""
    begin, end, call = rows.begin, rows.end, rows.number("op_id")
    tenures = rows.shared(Tenures)
    tenure = tenures.number
    told = tenures.named & (rows.offset >= 0)
    calls = tenures.named & rows.are(Kind.DELIVER)
    suspended = rows.ended_as(*LISTENER_SUSPENDS)
    findings.at_stake(positions(calls & suspended))
    letters, calls = positions(told & rows.are(Kind.DEAD_LETTER)), calls & told
    message = dense(tenure, rows.offset)[0]
    last = Line(message, begin, positions(calls)).last_before(message[letters], begin[letters])
    letters, last = letters[last != NOWHERE], last[last != NOWHERE]
    newest = Line(tenure, begin, positions(calls)).last_before(tenure[letters], begin[letters])
    manual = rows.text("commit_mode") == rows.code("commit_mode", CommitMode.MANUAL)
    covers = rows.ended_as(Outcome.COMMIT)
    covers |= rows.ended_as(Outcome.SUCCESS, Outcome.ROLLBACK) & ~manual
    covering = Line(tenure, begin, positions(calls & covers)).first_after_with(
        tenure[last], begin[last], lambda index, at: end[at] < begin[letters[index]]
    )
    taken = manual & rows.ended_as(Outcome.SUCCESS)
    unfinished = suspended | (manual & rows.ended_as(Outcome.ROLLBACK))
    wrong = unfinished[last] | (taken[last] & (covering == NOWHERE)) | (call[last] == call[newest])
    letters, last = letters[wrong], last[wrong]
    findings.at_stake(letters[~suspended[last]])
    findings.broken(GivenUp, last=last, dead_letter=letters)


def explain(found: GivenUp) -> str:
    last, letter = found.last, found.dead_letter
    return (
        f"{who(letter)} gave up offset {letter.queue_offset} of {letter.lane} at {at(letter)}, after its delivery at "
        f"{at(last)}, although its retries have no limit (-1)"
    )
