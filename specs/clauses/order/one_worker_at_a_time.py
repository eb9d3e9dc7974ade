"""No worker begins to work on a lane while a call of another worker of its group still runs there.

A worker is one life of one process of one client (`specs.facts.handovers`). It begins to work on a lane where the call
before its own, on that lane, is another worker's. Told by deliveries alone, with ADD and DROP where they are recorded:
LSE-2 says it of leases, where a client asks for them, and this clause of any group, however its lanes are handed out.

No system hands a lane on within a moment of its owner's last word, and every system does so some time later, whether or
not a call still runs. So what counts is how old the first call is when the second one begins:

- Where the system told for how long its leases last, it is certain up to the age that they certainly do: the broker's
  time less the client's own (counted from when it asked), what passes from look to call, what clocks may be apart, and
  of RocketMQ, whose client counts from the answer, so long as it waits for that. Of an older call nothing is claimed,
  nor where the client's own time is not told.
- Where it did not, it is certain up to one second, what clocks may be apart included, if the lane was handed on after
  the first worker had dropped it: the last that was told of that worker there, by ADD or DROP, is a DROP, and the
  second worker's ADD comes after it. The first one then knew that the lane was to be another's, and a call that runs
  at the drop is to be waited for. Otherwise it is possible at most. A group that takes lanes sooner from a member that
  lives has to tell `broker_lease_ms`.

Not judged where, since either worker was given the lane (its last ADD, or the granted LOCK of its client before that;
or ever, where nobody saw an ADD), its client was paused, any fault was injected, or any broker died (a crash, or a new
epoch) or stood still: then a lane may be taken from whoever lives on without knowing. Nor where the first worker's
client was leaving, at its call's begin or meanwhile, which may end its wait for a call; or died, or started anew
(JOIN, of whichever group) meanwhile. Nor where its client sent an UNLOCK before that ADD (before the call, where nobody
saw one) that may have reached the broker since the lane was asked for: until its answer, or within `delay_bound_ms`,
counted from the end of what held it up. Says nothing about a first call of which nobody saw how it ended, or that was
cut, nor about calls of one worker beside each other (ORD-3).
"""

import numpy as np

from specs.clauses.premises import NO_WALL_CLOCK_STEP, ORDERLY, Premise
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.handovers import HANDOVER_COLUMNS, Handovers, workers
from specs.facts.requests import applied_until
from specs.facts.segments import chosen, is_first, positions
from specs.facts.trouble import since_given, undisturbed
from specs.plan.config import LOCK_WAIT_MS, ROCKETMQ, Config
from specs.vocabulary import Key, Kind, Party

ID = "ORD-16"
TITLE = "one worker at a time"
STATEMENT = "No worker begins to work on a lane while a call of another worker of its group still runs there."
PARTY = Party.PAIR
KEY = Key.LANE
PREMISE = (
    ORDERLY,
    NO_WALL_CLOCK_STEP,
    Premise(
        "undisturbed",
        "neither worker was paused, no fault was injected, and no broker died or stood still, since the lane was added",
        told_by=frozenset({Kind.PAUSE, Kind.FAULT, Kind.CRASH}),
    ),
    Premise(
        "no cut call",
        "the client of the running call neither leaves nor started anew, nor did it crash",
        told_by=frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE}),
    ),
)
SOURCES = ("docs/sources.md#client-leases", "docs/sources.md#kafka-groups")
KINDS = frozenset({Kind.DELIVER, Kind.ADD, Kind.DROP, Kind.LOCK, Kind.UNLOCK})
NEEDS = frozenset({Kind.DELIVER})
NAMED_BY = frozenset({Kind.ADD, Kind.DROP})
COLUMNS = HANDOVER_COLUMNS
AT_LEAST_MS = 1_000
"""Groups that tell nothing take no lane sooner from a member that works: Kafka's shortest session is 6 s by default."""


def has_leases(config: Config) -> bool:
    """Did the system tell for how long its leases last?"""
    return "broker_lease_ms" not in config.untold


EXCUSED_IF = {Kind.LOCK: has_leases, Kind.UNLOCK: has_leases}


class TwoWorkers(Finding):
    running: Row
    second: Row


class WentOnAfterTheDrop(TwoWorkers):
    """drop: of the lane, by the worker of the running call, before the second call began."""

    drop: Row


def judge(rows: Rows, findings: Findings) -> None:
    """Each call that follows another worker's, beside what still runs of others."""
    pairs = rows.shared(Handovers)
    judged = undisturbed(rows, pairs.first, pairs.second) & ~_gave_back(rows, pairs.first)
    first, second = pairs.first[judged], pairs.second[judged]
    lasts_ms = rows.of_runs(lambda context: _lasts_ms(context.info.config), first)
    clocks_us = rows.clocks_us(first)
    told = lasts_ms != NEVER
    drop = pairs.dropped(first, second)
    age_us = rows.started[second] - rows.started[first] + clocks_us
    young = age_us <= np.where(told, lasts_ms, AT_LEAST_MS) * MS
    handed_on = chosen(rows.begin, pairs.added(second), NONE) > chosen(rows.begin, drop, NEVER)
    certain = young & (told | handed_on)
    runs = rows.end[first] > rows.begin[second]
    counts = ~runs | certain | ~told
    findings.at_stake(np.unique(second[counts]))
    # Of what one worker runs, what began last: the youngest, and of a batch one row.
    which = positions(runs & counts)
    worker = rows.shared(workers)
    which = which[np.lexsort((-rows.begin[first[which]], ~certain[which]))]
    which = np.sort(which[is_first(worker[first[which]], second[which])])
    first, second, drop, certain = first[which], second[which], drop[which], certain[which]
    for kind, some in ((TwoWorkers, drop == NOWHERE), (WentOnAfterTheDrop, drop != NOWHERE)):
        roles = {"running": first[some], "second": second[some]}
        if kind is WentOnAfterTheDrop:
            roles["drop"] = drop[some]
        findings.broken(kind, certain=certain[some], **roles)


def _gave_back(rows: Rows, calls: Ints) -> Mask:
    """Of each of these calls: may an UNLOCK from before its ADD have arrived since the lane was asked for?"""
    client = rows.lane_client
    given, add = since_given(rows, calls), rows.shared(Handovers).added(calls)
    before = np.where(add == NOWHERE, rows.begin[calls], chosen(rows.begin, add, NEVER))
    unlock = Line(client, rows.begin, rows.of(Kind.UNLOCK)).last_before(client[calls], before)
    until_us = chosen(rows.shared(applied_until), unlock, NONE)
    found: Mask = (unlock != NOWHERE) & (until_us >= chosen(rows.started, given, NONE))
    return found


def _lasts_ms(config: Config) -> int:
    """So old may a call be while its worker's lease certainly lives; below 0: nobody can say; NEVER: none is told."""
    if "broker_lease_ms" in config.untold:
        return NEVER
    if "client_lease_ms" in config.untold:
        return NONE
    answered_ms = LOCK_WAIT_MS if config.system == ROCKETMQ else 0
    return config.broker_lease_ms - config.client_lease_ms - config.guard_slack_ms - answered_ms


def explain(found: TwoWorkers) -> str:
    running, second = found.running, found.second
    dropped = (
        f" and had dropped the lane at {at(found.drop)}"
        if isinstance(found, WentOnAfterTheDrop)
        else ""
    )
    return (
        f"{who(second)} began offset {second.queue_offset} of {second.lane} at {at(second)} while {who(running)}, who "
        f"began offset {running.queue_offset} at {at(running)}{dropped}, was still running it"
    )
