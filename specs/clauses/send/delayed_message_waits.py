"""A delayed message is neither delivered nor read before the time of its level has passed.

A level's time begins when the broker stores the message, and that is not before its send begins: a delivery that
begins, or a read that ends, earlier than the send's begin plus the level's time came too soon. Of several sends of one
message the one that could be seen first counts, whatever their outcomes; a send without a level can be seen at once,
and a half message as soon as its transaction ends. Where their numbers (`attempt`) tell of a try that is not in the
history, that may have been seen, and what is found is at most possible. A level beyond the table is the last one.
Brokers count in whole milliseconds, so one millisecond is allowed. Where two clocks time the two ends, it is certain
only beyond the bound between them. A broker measures the wait by its wall clock, across its own death too: after a
recorded step nothing is claimed. The topics of retries and dead letters are left out: there the level belongs to the
copy. How late a message may come is the business of SND-11.
"""

import numpy as np

from specs.clauses.premises import NO_WALL_CLOCK_STEP
from specs.clauses.terms import Finding, Findings, Row, Rows, at, ms, saw, who
from specs.facts.columns import MS, NEVER
from specs.facts.segments import dense
from specs.facts.stored import copies as copies_of
from specs.facts.stored import levels, sightings, tried_unseen
from specs.plan.traits import Stake, Trait
from specs.vocabulary import Key, Kind, Party

ID = "SND-7"
TITLE = "a delayed message waits"
STATEMENT = (
    "A message that was sent with a delay level is not seen before the level's time has passed."
)
PARTY = Party.BROKER
KEY = Key.MESSAGE
PREMISE = (NO_WALL_CLOCK_STEP,)
SOURCES = ("docs/sources.md#delay",)
STAKES = (Stake(Trait.DELAYED),)
KINDS = frozenset({Kind.SEND, Kind.DELIVER, Kind.READ})
SETTINGS = ("delay_levels",)
NEEDS = frozenset({Kind.SEND})
LOOKS_BACK = True
COLUMNS = ("message_id", "origin_id", "outcome", "delay_level", "detail", "attempt")


class SeenTooSoon(Finding):
    """sent: of the sends before, the one whose message could be seen first."""

    sent: Row
    seen: Row
    wait_us: int


def judge(rows: Rows, findings: Findings) -> None:
    """Only the messages that were ever delayed are looked at one by one."""
    copies = copies_of(rows)
    sends = np.flatnonzero(rows.are(Kind.SEND) & ~copies)
    waits = levels(rows, sends)[1]
    if not (waits > 0).any():
        return
    message, count = dense(rows.run, rows.source, rows.text("topic"))
    delayed = np.zeros(count, np.bool_)
    delayed[message[sends[waits > 0]]] = True
    of_delayed = delayed[message] & ~copies
    shows, when = sightings(rows)
    seen = np.flatnonzero(shows & of_delayed)
    steps = rows.clock_stepped(seen)
    is_call, when = rows.are(Kind.DELIVER)[seen], when[seen]
    when_us = np.where(is_call | (rows.ended[seen] >= NEVER), rows.started[seen], rows.ended[seen])
    mine = of_delayed[sends]
    by_message: dict[int, list[tuple[int, int]]] = {}
    for send_at, wait in zip(sends[mine].tolist(), waits[mine].tolist(), strict=True):
        by_message.setdefault(int(message[send_at]), []).append((send_at, wait))
    at_stake, found, certain = [], [], []
    clock = rows.text("clock")
    for row, seq, time, step in zip(
        seen.tolist(), when.tolist(), when_us.tolist(), steps.tolist(), strict=True
    ):
        known = [
            (send_at, wait)
            for send_at, wait in by_message[int(message[row])]
            if rows.begin[send_at] < seq
        ]
        if not known or step < seq:
            continue
        send_at, wait = min(
            known, key=lambda send: (int(rows.started[send[0]]) + send[1], int(rows.begin[send[0]]))
        )
        if wait:
            at_stake.append(row)
            missing = int(rows.started[send_at]) + wait - MS - time
            if missing >= 0:
                unsure = (
                    rows.context_of(row).info.clock_bound_us if clock[send_at] != clock[row] else 0
                )
                found.append((send_at, row, wait))
                certain.append(missing >= unsure)
    findings.at_stake(np.asarray(at_stake, np.int64))
    sent, shown, waited = np.asarray(found, np.int64).reshape(-1, 3).T
    sure = np.asarray(certain, np.bool_) & ~tried_unseen(rows, message)[shown]
    findings.broken(SeenTooSoon, {"wait_us": waited}, sent=sent, seen=shown, certain=sure)


def explain(found: SeenTooSoon) -> str:
    sent, seen = found.sent, found.seen
    return (
        f"{saw(seen)} message {sent.message_id} at {at(seen)}, though {who(sent)} had sent it at {at(sent)} "
        f"with delay level {sent.delay_level}, which is {ms(found.wait_us)}"
    )
