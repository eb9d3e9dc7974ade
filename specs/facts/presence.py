"""Were clients and brokers there, and had they threads: of many rows at once, what `RunContext` says of one."""

from collections.abc import Callable, Iterable

import numpy as np

from specs.clauses.context import is_pause_of_another
from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints, Mask
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import Timeline, chosen, ints, positions
from specs.vocabulary import Kind

Events = Iterable[tuple[int, int]]
"""Moments (seq), each with a value."""


class Told:
    """What runs tell of whom rows are about. names: the texts that say who it is, as they are handed to `tell`."""

    def __init__(self, rows: Rows, tell: Callable[..., Events], *names: str) -> None:
        self._key, firsts = rows.parties(*names)
        told = [
            (number, *each)
            for number, at in enumerate(firsts)
            for each in tell(rows.context_of(at), *(rows.name_of(name, at) for name in names))
        ]
        events = ints(told).reshape(-1, 3)
        self._line, self._value = Timeline(events[:, 0], events[:, 1]), events[:, 2]

    def last(self, where: Ints, now: Ints) -> Ints:
        """The value that was told last by now of whom each of these rows is about; NONE where there is none."""
        return chosen(self._value, self._line.last_before(self._key[where], now + 1), NONE)

    def count(self, where: Ints, now: Ints) -> Ints:
        return self._line.count_before(self._key[where], now + 1)


def _of_clients(rows: Rows, tell: Callable[[RunContext, str, str], Events]) -> Told:
    return rows.shared(Told, tell, "client_id", "group")


def _of_brokers(rows: Rows, tell: Callable[[RunContext, str], Events]) -> Told:
    return rows.shared(Told, tell, "broker")


def may_be_leaving(rows: Rows, row: int) -> bool:
    """Is the row's client shutting down its work in the group as the row begins, or does nobody record who does?"""
    context = rows.context_of(row)
    client, group = rows.member_of(row)
    return not context.tells(Kind.LEAVE) or context.leaving_at(client, group, int(rows.begin[row]))


def have_threads(rows: Rows, where: Ints) -> Mask:
    """Had the client of each of these rows twice as many threads as it had ever added lanes?"""
    added = _of_clients(rows, _added).count(where, rows.begin[where])
    found: Mask = 2 * added <= rows.config("threads", where)
    return found


def count_brokers(rows: Rows, where: Ints) -> Ints:
    """Of how many brokers had the client of each of these rows added lanes?"""
    return _of_clients(rows, _brokers_added).count(where, rows.begin[where])


def last_crash(rows: Rows, where: Ints) -> Ints:
    """The seq of the last crash of each row's client so far; NONE where there is none."""
    return _of_clients(rows, _crashes).last(where, rows.begin[where])


def were_there(
    rows: Rows, where: Ints, since: Ints, since_us: Ints, until_us: Ints | int = NEVER
) -> Mask:
    """Did each row's client not die since that seq, was no pause after that time, and did it not leave by until_us?"""
    crash, leaving, pause = (
        _of_clients(rows, tell).last(where, rows.begin[where])
        for tell in (_crashes, _leaving, _pauses)
    )
    found: Mask = (crash <= since) & (pause < since_us)
    found &= (leaving == NONE) | (leaving > until_us)
    return found


def calm_since(rows: Rows, where: Ints, since_us: Ints) -> Mask:
    """Had nothing disturbed the group life from shortly before each time on, as of these rows?

    Shortly before: for as long as requests may take, the slack of a timer, and what clocks may differ by.
    """
    until_us = rows.shared(Told, _disturbed).last(where, rows.begin[where])
    in_time_us = rows.of_runs(lambda context: context.in_time_us, where)
    found: Mask = until_us <= np.maximum(-1, since_us - in_time_us)
    return found


def died_since(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Did the client of each of these rows crash after the row began, by now? A new start does not undo it."""
    found: Mask = _of_clients(rows, _crashes).last(where, now) > rows.begin[where]
    return found


def of_old_lives(rows: Rows, where: Ints, now: Ints, since: Ints | None = None) -> Mask:
    """Did the process of each of these rows die, or leave and begin anew in the row's group, after it began, by now?

    since: counted from this moment instead.
    """
    since = rows.begin[where] if since is None else since
    died, left = (
        _of_clients(rows, _crashes).last(where, now),
        _of_clients(rows, _lefts).last(where, now),
    )
    found: Mask = (died > since) | (left >= since)
    return found


def of_processes_before(rows: Rows, where: Ints, later: Ints) -> Mask:
    """Is the process of each of these rows certainly gone, and did the next one of its name do what came later?"""
    process = rows.text("process")
    found: Mask = process[where] == process[later]
    for index in positions(found).tolist():
        row, now = int(where[index]), int(rows.begin[later[index]])
        client, group = rows.member_of(row)
        named = rows.name_of("process", row) if process[row] != NO_TEXT else None
        found[index] = rows.context_of(row).is_of_the_process_before(
            client, group, int(rows.begin[row]), named, now
        )
    return found


def were_leaving(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Had the client of each of these rows begun to shut down its work in the row's group, and not begun anew there?"""
    found: Mask = _of_clients(rows, _leaving).last(where, now) != NONE
    return found


def are_filtered(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Had a member of each row's group told by now that it does not subscribe to every message?"""
    found: Mask = _of_clients(rows, _filters).last(where, now) != NONE
    return found


def paused_since(rows: Rows, where: Ints, since_us: Ints, now: Ints) -> Mask:
    """Was any pause of each row's client, begun up to now, not over before that time?"""
    until_us = _of_clients(rows, _pauses).last(where, now)
    found: Mask = (until_us != NONE) & (until_us >= since_us)
    return found


def left_since(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Had the client of each of these rows begun by now to leave any group, and was not done before the row began?"""
    found: Mask = _of_clients(rows, _departures).last(where, now) > rows.begin[where]
    return found


def faulty_since(rows: Rows, where: Ints, since_us: Ints, now: Ints) -> Mask:
    """Had anything that bears on the client and the broker of each row begun by now, and was not over by that time?"""
    until_us = rows.shared(Told, _faults, "client_id", "broker").last(where, now)
    found: Mask = (until_us != NONE) & (until_us >= since_us)
    return found


def members_since(rows: Rows, where: Ints, now: Ints) -> Ints:
    """The seq of the JOIN since which each row's client is a member of the row's group; NONE where it is none."""
    return _of_clients(rows, _joins).last(where, now)


def newest_members(rows: Rows, where: Ints, now: Ints) -> Ints:
    """The JOIN (seq) of the living member of each row's group that started last; NONE where nobody lives."""
    return rows.shared(Told, _newest, "group").last(where, now)


def brokers_died(rows: Rows, where: Ints, now: Ints) -> Mask:
    """Did the broker of each of these rows die after the row began, by now: by a crash, or by a later epoch?"""
    crash, death, latest = (
        _of_brokers(rows, tell).last(where, now)
        for tell in (_broker_crashes, _epoch_deaths, _epochs)
    )
    begin, epoch = rows.begin[where], rows.number("broker_epoch")[where]
    found: Mask = (crash > begin) | np.where(epoch == NONE, death > begin, latest > epoch)
    return found


def last_deaths(rows: Rows, where: Ints, now: Ints) -> tuple[Ints, Ints]:
    """The last crash of each row's broker by now: its seq, and when it was (µs); NONE where there is none."""
    seq, us = (
        _of_brokers(rows, tell).last(where, now) for tell in (_broker_crashes, _broker_deaths)
    )
    return seq, us


def _broker_crashes(context: RunContext, broker: str) -> Events:
    return ((seq, seq) for seq in context.broker_died.get(broker, ()))


def _broker_deaths(context: RunContext, broker: str) -> Events:
    """Its crashes, with when they were (µs)."""
    return context.broker_deaths.get(broker, ())


def _epoch_deaths(context: RunContext, broker: str) -> Events:
    return ((seq, seq) for seq in context.epoch_deaths(broker))


def _epochs(context: RunContext, broker: str) -> Events:
    return context.epochs.get(broker, ())


def _crashes(context: RunContext, client: str, _group: str) -> Events:
    states = context.client_state.get(client, ())
    return ((seq, seq) for seq, kind in states if kind is Kind.CRASH)


def _pauses(context: RunContext, client: str, _group: str) -> Events:
    """With until when (µs)."""
    return context.paused.get(client, ())


def _departures(context: RunContext, client: str, _group: str) -> Events:
    """Its LEAVEs, of whatever group, with up to when (seq) one lasted at the latest."""
    latest = NONE
    for seq, _, row in context.work.get(client, ()):
        if row.kind is Kind.LEAVE:
            latest = max(latest, NEVER if row.seq_end is None else row.seq_end)
            yield seq, latest


def _faults(context: RunContext, client: str, broker: str) -> Events:
    """What was injected, but pauses of others, with until when (µs) it lasted at the latest."""
    latest = NONE
    for fault in context.faults:
        if not is_pause_of_another(fault, client, broker):
            latest = max(latest, NEVER if fault.ended_us is None else fault.ended_us)
            yield fault.seq_begin, latest


def _disturbed(context: RunContext) -> Events:
    return context.disturbed


def _added(context: RunContext, client: str, _group: str) -> Events:
    return ((seq, 0) for seq in context.lanes.get(client, {}).values())


def _brokers_added(context: RunContext, client: str, _group: str) -> Events:
    first: dict[str, int] = {}
    for lane, seq in context.lanes.get(client, {}).items():
        first[lane.broker] = min(seq, first.get(lane.broker, seq))
    return ((seq, 0) for seq in first.values())


def _filters(context: RunContext, _client: str, group: str) -> Events:
    since = context.filtered_from(group)
    return [(since, 0)] if since < NEVER else []


def _lefts(context: RunContext, client: str, group: str) -> Events:
    """Where it began anew, with up to when (seq) it had left at the latest."""
    latest = NONE
    for anew, left in context.returns(client, group):
        latest = max(latest, left)
        yield anew, latest


def _joins(context: RunContext, client: str, group: str) -> Events:
    """Its JOINs, each with its seq; NONE where it was no member any more."""
    yield from ((seq, seq) for seq, who in context.joined.get(group, ()) if who == client)
    yield from ((seq, NONE) for seq, _ in _crashes(context, client, group))
    for seq, left, row in context.work.get(client, ()):
        if row.kind is Kind.LEAVE and left in (group, None):
            yield seq, NONE


def _newest(context: RunContext, group: str) -> Events:
    """As it is from each moment on at which a member of the group comes or goes."""
    clients = {client for _, client in context.joined.get(group, ())}
    for seq in sorted({seq for each in clients for seq, _ in context.client_state.get(each, ())}):
        newest = context.newest_member(group, seq)
        yield seq, NONE if newest is None else newest


def _leaving(context: RunContext, client: str, group: str) -> Events:
    """Since when (µs) it is shutting down its work in the group; NONE where it has begun anew there.

    One that left as a whole is back as soon as it works anywhere.
    """
    here, whole, since_us = False, False, NONE
    for seq, where, row in context.work.get(client, ()):
        if row.kind is Kind.LEAVE:
            here, whole = here or where == group, whole or where is None
        else:
            is_anew = where == group or (where is None and row.kind is Kind.JOIN)
            here, whole = here and not is_anew, False
        since_us = (row.started_us if since_us == NONE else since_us) if here or whole else NONE
        yield seq, since_us
