"""Were clients there, and had they threads: of many rows at once, what `RunContext` says of one."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import NONE, Ints, Mask, chosen, ints
from specs.vocabulary import Kind


def by_client(client: Ints) -> Iterator[Ints]:
    """The indexes of these rows, client by client. client: the number of each one's."""
    order = np.argsort(client, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(client[order])) + 1):
        if len(part):
            yield part


def have_threads(rows: Rows, client: Ints, where: Ints) -> Mask:
    """Had the client, at each of these rows, twice as many threads as it had ever added lanes?"""
    found = np.zeros(len(where), np.bool_)
    for part, context, name, _group in _clients(rows, client, where):
        added = ints(list(context.lanes.get(name, {}).values()))
        count = np.searchsorted(added, rows.begin[where[part]], "right")
        found[part] = 2 * count <= context.info.config.threads
    return found


def last_crash(rows: Rows, client: Ints, where: Ints) -> Ints:
    """The seq of the client's last crash up to each of these rows; NONE where there is none."""
    found = np.full(len(where), NONE, np.int64)
    for part, context, name, _group in _clients(rows, client, where):
        crashes = _crashes(context, name)
        found[part] = chosen(crashes, _last_up_to(crashes, rows.begin[where[part]]), NONE)
    return found


def were_there(rows: Rows, client: Ints, where: Ints, since: Ints, since_us: Ints) -> Mask:
    """Was each row's client not leaving, not dead since that seq, and its latest pause over before that time?"""
    found = np.zeros(len(where), np.bool_)
    for part, context, name, group in _clients(rows, client, where):
        now = rows.begin[where[part]]
        crashes = _crashes(context, name)
        died = np.searchsorted(crashes, now, "right") > np.searchsorted(
            crashes, since[part], "right"
        )
        found[part] = ~died & ~_leaving(context, name, group, now)
        pauses = context.paused.get(name, ())
        pause = _last_up_to(ints([seq for seq, _ in pauses]), now)
        until = ints([until for _, until in pauses])
        found[part] &= chosen(until, pause, NONE) < since_us[part]
    return found


def _clients(rows: Rows, client: Ints, where: Ints) -> Iterator[tuple[Ints, RunContext, str, str]]:
    """Of each client the indexes of its rows, its run, its name and its group's."""
    for part in by_client(client[where]):
        first = int(where[part[0]])
        yield (
            part,
            rows.context_of(first),
            rows.name_of("client_id", first),
            rows.name_of("group", first),
        )


def _crashes(context: RunContext, client: str) -> Ints:
    states = context.client_state.get(client, ())
    return ints([seq for seq, kind in states if kind is Kind.CRASH])


def _leaving(context: RunContext, client: str, group: str, now: Ints) -> Any:
    """Has the client begun to shut down its work in the group, and not begun anew there?

    One that left as a whole is back as soon as it works anywhere.
    """
    told: list[tuple[int, bool]] = []
    here = whole = False
    for seq, where, row in context.work.get(client, ()):
        if row.kind is Kind.LEAVE:
            here, whole = here or where == group, whole or where is None
        else:
            is_anew = where == group or (where is None and row.kind is Kind.JOIN)
            here, whole = here and not is_anew, False
        told.append((seq, here or whole))
    last = _last_up_to(ints([seq for seq, _ in told]), now)
    return chosen(ints([leaves for _, leaves in told]), last, 0) == 1


def _last_up_to(seqs: Ints, now: Ints) -> Ints:
    """The index of the last of these ascending seqs up to each moment; NOWHERE if there is none."""
    return np.searchsorted(seqs, now, "right").astype(np.int64) - 1
