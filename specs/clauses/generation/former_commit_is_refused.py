"""A member that was not heard while its lane was given to another can't commit on it any more: it is refused.

Each time at which a coordinator hands lanes out it begins a new generation (classic groups: of the group; KIP-848: an
epoch of each member), and a commit under a former one is refused. Which generation a commit was made under is known
without its number: as long as an incarnation was not told that its lane is gone (its DROP), its client is in that one
in which it was given the lane, or in one that left it the lane. A commit of another client, accepted after that
incarnation had begun, shows that the lane was given away since; so whatever the incarnation commits after that answer
has to be refused. Where both commits name their generation, the numbers say it instead, in both directions: a commit
under a lower one than another client's, which was accepted before, has to be refused, whatever its client was told; one
under the same, or a higher one, is none of a former generation.

That the other one was given the lane (its ADD) shows nothing: whoever stood still meanwhile may tell it late, when the
lane is the first one's again. Says nothing of requests that nobody answers, nor of commits that were under way when the
other's was answered. It is the broker's side of CMT-5, which asks the same of a client that gave the lane back itself;
here the client does not know. With the leases of RocketMQ no broker refuses a commit.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, GENERATIONS
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.presence import brokers_died
from specs.facts.segments import chosen, positions
from specs.facts.tenures import Tenures
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "GEN-1"
TITLE = "a former generation's commit is refused"
STATEMENT = (
    "Once a lane was given to another member, who has committed on it, the broker refuses the commits of the one that "
    "had it before and was not told, and those that name a former generation."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (GENERATIONS, BROKER_LIVES)
SOURCES = ("docs/sources.md#kafka-generations",)
STAKES = (Stake(Trait.SLEEPER, brings=1),)
KINDS = frozenset({Kind.ADD, Kind.DROP, Kind.COMMIT})
NEEDS = frozenset({Kind.ADD, Kind.DROP, Kind.COMMIT})
TOLD_OF_REFUSED_COMMITS = True
COLUMNS = ("client_id", "generation", "incarnation")


class FormerOneTaken(Finding):
    """others: the commit that shows that the lane is another's. add: None where the generations show it."""

    add: Row | None
    others: Row
    commit: Row


def judge(rows: Rows, findings: Findings) -> None:
    """The commits of former members: at stake where the broker answered one, broken where it accepted one."""
    add, others = _former(rows)
    commit = positions(others != NOWHERE)
    since = np.where(add == NOWHERE, others, add)[commit]
    answered = rows.ended_as(Outcome.OK, Outcome.REFUSED) & (rows.end < NEVER)
    commit = commit[answered[commit] & ~brokers_died(rows, since, rows.end[commit])]
    findings.at_stake(commit)
    commit = commit[rows.ended_as(Outcome.OK)[commit]]
    findings.broken(FormerOneTaken, add=add[commit], others=others[commit], commit=commit)


def _former(rows: Rows) -> tuple[Ints, Ints]:
    """Of each row that is a former member's commit: its ADD, where the generations do not show it, and the other
    member's commit that does; NOWHERE of every other row."""
    begin, end, generation = rows.begin, rows.end, rows.number("generation")
    named = rows.shared(Tenures).named & (rows.client != NO_TEXT)
    commits = positions(named & rows.are(Kind.COMMIT))
    accepted = commits[(rows.ended_as(Outcome.OK) & (end < NEVER))[commits]]
    clients = rows.lane_client
    of_lane, of_client = Line(rows.lane, end, accepted), Line(clients, end, accepted)
    lane, client, mine = rows.lane[commits], clients[commits], generation[commits]
    given, now = _given(rows, clients, named, commits), begin[commits]
    since = chosen(end, given, NEVER)
    # Few can be a former member's: those below a generation that came before, or after whose ADD another one's came.
    highest = of_lane.highest_before(lane, now, generation)
    lower = (mine != NONE) & (mine < chosen(generation, highest, NONE))
    of_others = [
        of_lane.count_before(lane, until) - of_client.count_before(client, until)
        for until in (since, now)
    ]
    add, others = np.full((2, rows.size), NOWHERE, np.int64)
    for index in positions(lower | (of_others[0] < of_others[1])).tolist():
        commit, before = commits[index], of_lane.within(lane[index], NONE, now[index])
        # What a former member was allowed to commit wrongly does not make the lane its own.
        before = before[(clients[before] != client[index]) & (others[before] == NOWHERE)]
        first, theirs = before[begin[before] > since[index]][:1], generation[before]
        if mine[index] != NONE and (theirs > mine[index]).any():
            others[commit] = before[np.argmax(theirs)]
        elif len(first) and NONE in (mine[index], generation[first[0]]):
            add[commit], others[commit] = given[index], first[0]
    return add, others


def _given(rows: Rows, clients: Ints, named: Mask, commits: Ints) -> Ints:
    """The ADD by which the client of each of these commits has the lane, as far as the commit's incarnation was told.

    clients: of each row the number of its lane and client. NOWHERE: it never had it, or was told that it is gone.
    """
    begin, work = rows.begin, rows.incarnation
    adds = Line(clients, begin, positions(named & rows.are(Kind.ADD)))
    told = Line(work, begin, positions(named & rows.are(Kind.ADD, Kind.DROP)))
    given = adds.last_before(clients[commits], begin[commits])
    last = told.last_before(work[commits], begin[commits])
    return np.where(given == last, given, NOWHERE)


def explain(found: FormerOneTaken) -> str:
    add, others, commit = found.add, found.others, found.commit
    said = (
        f"{who(commit)} committed {commit.value} for {commit.lane} at {at(commit)}, and it was accepted, "
        f"{ms(commit.started_us - others.started_us)} after {who(others)} had committed {others.value}"
    )
    if add is None:
        return f"{said}, under generation {commit.generation} after {others.generation}"
    given = f"{commit.client_id} had been given the lane at {at(add)}"
    return f"{said}; {given}, and not been told since that it is another's"
