"""When all is healed and quiet, no lane with messages left is without an owner while a member of its group lives.

*Orphaned*: judged at a settled drain, of lanes that somebody had and nobody has: each client's newest incarnation was
dropped, or the client left or died since, whether or not it came again. Who has never dropped a lane that others had
meanwhile (it stood still, and did not hear of it) has it still. If the drain finds a message at or after the start of
the lane's last incarnation that nobody of the group has finished, and a member of the group lives, then the lane should
have found its way to a member.

*Never had*: likewise of a queue that nobody of the group ever added, where a member of the group lives that adds other
queues of the topic: a queue that came later, or that every member takes for another one's. Judged where the group
consumes from the first message on: then it owes all of them. Not where the members' shares are those of machine rooms:
their list may leave a queue out.

*Too late*: a lane that is added anew was added within the handover bound after the last of those who had it let go of
it, with a member of the group living all the time. The bound is until a dead member is forgotten or a lease runs out,
whichever is longer, a rebalance, one more request for the lease, the delay of a request and the slack of a timer. It
runs from the last of: that end, the end of the lane's last call, the last time that somebody who is no member may have
been granted the lease, and the last disturbance of the run (a client that joins, leaves, dies or stands still, a fault,
a clock step; as long after it as all wall clocks together were set back, since who waits by one waits that much longer,
and after a name server's death until brokers and clients have told and asked it again). Nothing is said where the
lane's broker has died, since nobody tells when it is back, nor of a lane that somebody else has who never dropped it.
Nor of a lane that was dropped in calm: by a client that lived on, when nothing had disturbed the run for as long as
that bound. Its queue may have left the topic's route, which no row tells, and come back later.

Where the members' shares are fixed lists nothing is claimed: who has gone leaves a lane that is in nobody else's list.

What *settled* means, and what else is left out, is said in `specs.facts.settled`. Within what bound the survivor to
whom a dead owner's lane is assigned takes it is the affair of LSE-5.
"""

import numpy as np

from specs.clauses.premises import AUTO_MODE, DEALT, NO_FILTER, NO_RESET, ORDERLY, SETTLED, Premise
from specs.clauses.rows import is_copy_topic
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, ms, who
from specs.facts.columns import MS, NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.leases import over_us as when_over_us
from specs.facts.owners import Owners, SettledReads
from specs.facts.presence import died_since, members_since, newest_members, of_old_lives
from specs.facts.segments import chosen, ints, positions
from specs.facts.settled import SETTLED_COLUMNS, SETTLED_KINDS, readings
from specs.facts.tenures import Tenures
from specs.facts.vacancies import Vacancies, takings
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "LIV-2"
TITLE = "every lane finds an owner"
STATEMENT = (
    "When faults are healed, a lane finds its next owner within the handover bound, and none with messages left stays "
    "without one."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    ORDERLY,
    SETTLED,
    NO_RESET,
    NO_FILTER,
    AUTO_MODE,
    DEALT,
    Premise("one subscription", "every member of a group subscribes to the same topics (MET-5)"),
)
SOURCES = ("docs/sources.md#membership", "docs/sources.md#client-leases")
KINDS = SETTLED_KINDS | {Kind.LOCK}
SETTINGS = (
    "broker_lease_ms",
    "channel_expiry_ms",
    "consume_from",
    "lock_interval_ms",
    "max_reconsume_times",
    "rebalance_ms",
)
NEEDS = frozenset({Kind.ADD, Kind.DELIVER, Kind.READ})
EXCUSED_BY = frozenset({Kind.CRASH, Kind.JOIN, Kind.LEAVE})
CONCLUDES_FROM_ABSENCE = True
COLUMNS = SETTLED_COLUMNS
MAY_LEAVE_OUT = ("MACHINE_ROOM",)
"""Strategies that deal out, but may leave a queue to nobody."""


class Orphaned(Finding):
    """add: of who let the lane go last. end: how. join: the start of a member that lives."""

    add: Row
    start: Row
    end: Row
    join: Row
    read: Row
    marker: Row


class NeverHad(Finding):
    """add: of another queue of the topic. join: the start of a member that lives."""

    add: Row
    join: Row
    read: Row
    marker: Row


class TooLate(Finding):
    """add: of who let the lane go last. end: how. again: the next one."""

    add: Row
    end: Row
    join: Row
    again: Row
    bound_ms: int


def judge(rows: Rows, findings: Findings) -> None:
    """What settled readings find of lanes that nobody has, or never had; and the ADDs of lanes that nobody had."""
    _orphaned(rows, findings)
    _never_had(rows, findings)
    _too_late(rows, findings)


def _orphaned(rows: Rows, findings: Findings) -> None:
    """Each message that a settled reading finds, beside each lane of its queue that had to find another owner."""
    found = SettledReads(rows)
    if not len(found.read):
        return
    owners, vacancies = rows.shared(Owners), rows.shared(Vacancies)
    now, offset = rows.begin[found.read], rows.offset[found.read]
    last = owners.last(found.add, now)
    which = positions((last != NOWHERE) & (owners.starts.row(last, now) != NOWHERE))
    which = which[_had_to_move(rows, owners, last[which], now[which])]
    which = which[offset[which] >= owners.start(last[which], now[which])]
    finished, doubt, unclear = owners.done(last[which], offset[which], now[which])
    excused = doubt | (~finished & unclear)
    which, finished = which[~excused], finished[~excused]
    findings.at_stake(last[which])
    for owed in found.first(which[~finished]).tolist():
        marker, read = int(found.marker[owed]), int(found.read[owed])
        over = ints([rows.end[marker]])
        add = owners.last(found.add[[owed]], over)
        start = owners.starts.row(add, over)[0]
        vacancy = vacancies.of(int(add[0]), int(over[0]))
        if vacancy is not None and start != NOWHERE:
            roles = {**vacancy.roles, "start": int(start), "read": read, "marker": marker}
            findings.shown(Orphaned, roles, of_context=vacancy.of_context)


def _had_to_move(rows: Rows, owners: Owners, last: Ints, now: Ints) -> Mask:
    """Had each lane had to find another owner, by now or before, while its group lives and its last call is over?"""
    died = died_since(rows, last, now)
    found: Mask = owners.handed_over(last) | ~owners.live(last, now)
    found |= of_old_lives(rows, last, now)
    found &= owners.at_rest(last, now) & (owners.idle(last, now) | died)
    found &= newest_members(rows, last, now) != NONE
    return found


def _too_late(rows: Rows, findings: Findings) -> None:
    """ADDs of lanes that nobody has any more, and when they were to come at the latest."""
    vacancies, again = rows.shared(Vacancies), rows.of(Kind.ADD)
    lane, now = rows.lane[again], rows.begin[again]
    last, over_us = vacancies.adds.last_before(lane, now), when_over_us(rows, np.arange(rows.size))
    tenures, calls = rows.shared(Tenures), rows.are(Kind.DELIVER)
    begun = Line(tenures.number, rows.begin, positions(calls & tenures.named))
    running = begun.first_reaching(tenures.number[last], now, rows.end, now)
    over = Line(rows.lane, rows.end, positions(calls & (rows.end < NEVER)))
    worked = over.highest_before(lane, now, over_us)
    locks = positions(rows.are(Kind.LOCK) & ~rows.ended_as(Outcome.REFUSED))
    strangers = locks[members_since(rows, locks, rows.begin[locks]) == NONE]
    leased = Line(rows.lane, rows.begin, strangers).highest_before(lane, now, over_us)
    since_us = np.maximum(chosen(over_us, worked, NONE), chosen(over_us, leased, NONE))
    for index in positions((last != NOWHERE) & (running == NOWHERE)).tolist():
        place, seq = int(again[index]), int(now[index])
        context, broker = rows.context_of(place), rows.name_of("broker", place)
        vacancy = vacancies.of(int(last[index]), seq)
        died = any(death <= seq for death in context.deaths_of(broker))
        if vacancy is None or died or is_copy_topic(rows.name_of("topic", place)):
            continue
        config = context.info.config
        bound_ms = max(config.broker_lease_ms, config.forgotten_ms) + config.rebalance_ms
        bound_ms += config.lock_interval_ms + config.delay_bound_ms + config.schedule_slack_ms
        bound_us = bound_ms * MS + context.info.clock_bound_us
        drop = vacancy.roles.get("end", NOWHERE)
        calm_us = context.calm_since_us(int(rows.begin[drop]))
        if drop != NOWHERE and calm_us < rows.started[drop] - bound_us:
            continue
        findings.at_stake_times(place, 1)
        since = max(vacancy.over_us, int(since_us[index]), context.calm_since_us(seq))
        if rows.started[place] - since > bound_us:
            roles, also = {**vacancy.roles, "again": place}, {"bound_ms": bound_ms}
            findings.shown(TooLate, roles, also, of_context=vacancy.of_context)


def _never_had(rows: Rows, findings: Findings) -> None:
    """Queues that a settled reading finds, of which a group that works on their topic has never had the lane."""
    taken, words = takings(rows), rows.words("group")
    for begun in readings(rows):
        context, topic = rows.context_of(int(begun[0])), rows.name_of("topic", int(begun[0]))
        config = context.info.config
        may_leave_out = config.consume_from != "first" or config.strategy in MAY_LEAVE_OUT
        if may_leave_out or is_copy_topic(topic):
            continue
        here = np.flatnonzero(taken & (rows.queue == rows.queue[begun[0]]))
        group_of = rows.group[here]
        of_topic = [group for group, added in context.adds if added == topic and group is not None]
        for group in sorted(of_topic):
            mine = here[group_of == words.index(group)] if group in words else here[:0]
            had = int(rows.begin[mine].min(initial=NEVER))
            _nobodys(rows, findings, begun, group, (context.adds[group, topic][0], had))


def _nobodys(
    rows: Rows, findings: Findings, begun: Ints, group: str, between: tuple[int, int]
) -> None:
    """What settled readings of one queue find while the group has never had it. begun: these readings and what they
    find, by begin. between: since when it has had another queue of the topic, and until when not this one."""
    context, (since, until) = rows.context_of(int(begun[0])), between
    parts = np.split(begun, positions(rows.offset[begun] == NONE))[1:]
    nexts = [int(rows.begin[part[0]]) for part in parts[1:]]
    for part, then in zip(parts, [*nexts, NEVER], strict=False):
        marker, reads = int(part[0]), part[1:]
        begin, end = int(rows.begin[marker]), int(rows.end[marker])
        if not since < begin < until or context.newest_member(group, begin) is None:
            continue
        reads = reads[rows.begin[reads] < end]
        findings.at_stake(reads)
        join = context.newest_member(group, end)
        if len(reads) and join is not None and end < min(until, then):
            roles = {"read": int(reads[0]), "marker": marker}
            of_context = {"add": since, "join": join}
            findings.shown(NeverHad, roles, of_context=of_context, group=group)


def explain(found: Orphaned | NeverHad | TooLate) -> str:
    add, join = found.add, found.join
    if isinstance(found, NeverHad):
        read = found.read
        return (
            f"nobody of {add.group} ever had {read.queue}, where message {read.message_id} lies at offset "
            f"{read.queue_offset}, although {who(join)} lives, the group had {add.lane} from {at(add)} on, and all was "
            f"healed and quiet by {at(found.marker)}"
        )
    over = {Kind.DROP: "dropped it", Kind.CRASH: "died", Kind.LEAVE: "left"}[found.end.kind]
    if isinstance(found, TooLate):
        again = found.again
        return (
            f"{who(again)} took {add.lane} at {at(again)}, {ms(again.started_us - found.end.started_us)} after "
            f"{who(add)} {over} at {at(found.end)}, although {who(join)} lived; {found.bound_ms} ms are allowed"
        )
    read, marker = found.read, found.marker
    return (
        f"nobody of {add.group} has {add.lane} since {who(add)} {over} at {at(found.end)}, although {who(join)} lives, "
        f"message {read.message_id} at offset {read.queue_offset} is not finished, and all was healed and quiet by "
        f"{at(marker)}"
    )
