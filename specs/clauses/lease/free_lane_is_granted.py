"""A lane that is free, the asker's own, or held by an expired grant, is granted when asked for.

A refusal refutes where the lane's last certain grant shows that nobody could hold it against the asker: it was the
asker's own; or its owner gave it back, which certainly arrived (see LSE-6); or it is strictly older than the broker's
limit (in whole milliseconds of the broker's clock). Anybody else's request since then that was not refused, answered
or not, may hold the lane, and then nothing is claimed. A refusal with an error code says nothing about the lane.

A broker begins with an empty table. So where everybody is recorded the lane is free as well for who asks first after
a crash of the broker (or in an epoch later than that of the last grant). So it is at the begin of the run: for who was
seen to join the group, where nobody turns out to have been at work on the lane before; and for everybody once a
lease that was granted before the lane's first request would have run out.
"""

import numpy as np

from specs.clauses.premises import BROKER_LIVES, NO_FRAME_TWICE, NO_WALL_CLOCK_STEP, UNHINDERED
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, over_us
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.free_lanes import FreeLanes
from specs.facts.leases import LEASE_COLUMNS, refusals
from specs.facts.presence import last_deaths, members_since
from specs.facts.segments import chosen, is_first, positions
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LSE-4"
TITLE = "a free lane is granted"
STATEMENT = (
    "A lane that is free, the asker's own or expired is granted when asked for; a broker "
    "begins with all lanes free."
)
PARTY = Party.BROKER
KEY = Key.LANE
PREMISE = (NO_WALL_CLOCK_STEP, BROKER_LIVES, NO_FRAME_TWICE, UNHINDERED)
SOURCES = ("docs/sources.md#lock-table",)
RULES = ("WIR-2",)
KINDS = frozenset({Kind.LOCK, Kind.UNLOCK})
SETTINGS = ("broker_lease_ms",)
NEEDS = frozenset({Kind.LOCK})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = LEASE_COLUMNS


class Refused(Finding):
    """unlock: the owner's, where that freed the lane; else None."""

    grant: Row
    unlock: Row | None
    refused: Row


class NeverGranted(Finding):
    """since: the crash of the broker, the last grant before its new epoch, the asker's join, or the first request."""

    since: Row
    refused: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each answer for a lane that the last grant shows to be free, or an empty table."""
    lanes = rows.shared(FreeLanes)
    asked = lanes.asked
    free = lanes.own | lanes.released | lanes.expired
    findings.at_stake(asked[free])
    unlock = np.where(lanes.released, lanes.arrived, NOWHERE)
    wrong = free & ~lanes.granted
    findings.broken(Refused, grant=lanes.grant[wrong], unlock=unlock[wrong], refused=asked[wrong])
    crash, request, joined = _empty_since(rows, lanes)
    at_begin = _from_the_begin(rows, asked, joined)
    empty = (crash != NONE) | (request != NOWHERE)
    findings.at_stake(asked[empty | at_begin])
    refused = positions(at_begin & ~lanes.granted)
    refused = refused[np.argsort(lanes.now[refused])]
    refused = refused[is_first(rows.lane[asked[refused]])]
    for index in [*positions(empty & ~lanes.granted).tolist(), *refused.tolist()]:
        roles, seq = {"refused": int(asked[index])}, max(int(crash[index]), int(joined[index]))
        if request[index] == NOWHERE:
            findings.shown(NeverGranted, roles, of_context={"since": seq})
        else:
            findings.shown(NeverGranted, {**roles, "since": int(request[index])})


def _empty_since(rows: Rows, lanes: FreeLanes) -> tuple[Ints, Ints, Ints]:
    """What shows that nobody can hold the lane against who asks, though no grant of this epoch is known.

    Of each the broker's crash (seq), or a request, the last grant before this epoch or the lane's first one; or, sooner
    after that, the asker's join (seq).
    """
    asked, grant, lock = lanes.asked, lanes.grant, rows.are(Kind.LOCK)
    unknown = ~lanes.lives & ~lanes.frames_twice & rows.closed_world(asked)
    crash, crash_us = last_deaths(rows, asked, lanes.now)
    crashed = unknown & (crash > chosen(rows.begin, grant, NONE))
    restarted = unknown & ~crashed & (grant != NOWHERE)
    since = np.where(crashed, crash_us, chosen(rows.started, grant, NONE))
    empty = unknown & lanes.nobody_else(since, since, np.where(crashed, NOWHERE, grant))
    epoch = rows.number("broker_epoch")
    restarted &= empty & (epoch[grant] > NONE) & (epoch[grant] < epoch[asked])
    never = empty & ~crashed & (grant == NOWHERE)
    first = Line(rows.lane, rows.begin, positions(lock)).first_after(
        rows.lane[asked], np.full(len(asked), -1)
    )
    waited_us = rows.started[asked] - rows.started[first] - lanes.clocks_us
    late = waited_us >= lanes.limit_us + rows.config("delay_bound_ms", asked) * MS
    crash = np.where(crashed & empty & (crash < rows.begin[asked]), crash, NONE)
    request = np.where(restarted, grant, np.where(never & late, first, NOWHERE))
    joined = np.full(len(asked), NONE, np.int64)
    some = never & ~late
    joined[some] = members_since(rows, asked[some], lanes.now[some])
    return crash, request, joined


def _from_the_begin(rows: Rows, asked: Ints, joined: Ints) -> Mask:
    """Which of them were asked by members, for a lane on which nobody else turns out to have been at work before?

    Who was at work on it before the history begins shows that sooner or later, so the lane has to be judged to its end.
    """
    works = (rows.are(Kind.LOCK) & ~rows.shared(refusals)) | rows.are(Kind.UNLOCK)
    at_work = positions(works)
    strangers = at_work[members_since(rows, at_work, rows.begin[at_work]) == NONE]
    found: Mask = (joined != NONE) & (rows.clock_stepped(asked) == NEVER)
    found &= ~np.isin(rows.lane[asked], rows.lane[strangers])
    return found


def explain(found: Refused | NeverGranted) -> str:
    refused = found.refused
    asked = f"{refused.client_id} was refused {refused.lane} at {at(refused)}"
    if isinstance(found, NeverGranted):
        since = found.since
        begun = f"{since.client_id} joined the group"
        if since.kind is Kind.CRASH:
            begun = "the broker crashed"
        elif since.kind is Kind.LOCK:
            granted = since.outcome is Outcome.OK
            begun = f"{since.client_id} {'was granted it, before a restart,' if granted else 'asked for it, in vain,'}"
        return f"{asked}, although nobody else can hold a lease of it since {begun} at {at(since)}"
    grant, unlock = found.grant, found.unlock
    if grant.client_id == refused.client_id:
        return f"{asked}, although it had been granted it at {at(grant)} and nobody else since"
    if unlock is not None:
        return (
            f"{asked}, although {grant.client_id}, who was granted it at {at(grant)}, had given it back at "
            f"{at(unlock)} and nobody else had been granted it since"
        )
    age = ms(refused.started_us - over_us(grant))
    return f"{asked}, although the last grant ({grant.client_id}'s of {at(grant)}) was {age} old"
