"""What a client's ASSIGN row says, for the clauses about assignment."""

from __future__ import annotations

from typing import NamedTuple

from specs.history.row import Row

BETWEEN = " | "
"""Stands between the members and the queues of a view."""


class Share(NamedTuple):
    """One client's share of a topic: what it saw, in the order in which it used it, and what it took."""

    row: Row
    members: tuple[str, ...]
    queues: tuple[str, ...]
    taken: tuple[str, ...]


def share_of(row: Row) -> Share | None:
    """None when the row does not tell what the client saw and what it took."""
    if row.view is None or row.detail is None or row.client_id is None or BETWEEN not in row.view:
        return None
    members, _, queues = row.view.partition(BETWEEN)
    return Share(row, tuple(members.split()), tuple(queues.split()), tuple(row.detail.split()))


Latest = dict[str | None, dict[str | None, Share]]
"""By topic and client: the share that a client computed last."""


def put(latest: Latest, share: Share) -> None:
    latest.setdefault(share.row.topic, {})[share.row.client_id] = share


def others(latest: Latest, share: Share) -> list[Share]:
    """What the other clients computed last for the topic, by the order of their first rows."""
    known = latest.get(share.row.topic, {})
    return [other for client, other in known.items() if client != share.row.client_id]
