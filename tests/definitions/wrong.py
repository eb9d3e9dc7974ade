"""Wrong judges, made by rule: each is a definition that is shown another history, or another configuration.

An enumeration that doesn't notice one of them says nothing about what that one overlooks. Three rules are held for
each clause: the usual three, or those that `RULES_OF` names where one of the usual ones changes nothing that the
clause speaks of.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome

Shown = tuple[list[Row], Config]
Rule = Callable[[Sequence[Row], Config, Collection[Kind]], Shown]


def nothing_excuses(rows: Sequence[Row], config: Config, excuses: Collection[Kind]) -> Shown:
    """Overlooks every row of a kind that may only excuse."""
    return [row for row in rows if row.kind not in excuses], config


def one_worker(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes bob for alice."""
    return [_renamed(row) for row in rows], config


def _renamed(row: Row) -> Row:
    named = {
        column: value.replace("bob", "alice")
        for column in ("process", "client_id", "incarnation")
        if (value := getattr(row, column)) is not None
    }
    return row._replace(**named)


def all_went_well(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every result for a good one."""
    return [
        row._replace(outcome=Outcome.SUCCESS if row.kind is Kind.DELIVER else Outcome.OK)
        for row in rows
    ], config


def one_offset(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every message for the same."""
    return [
        row if row.queue_offset is None else row._replace(queue_offset=17, message_id="m17")
        for row in rows
    ], config


def one_key(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every key for the same."""
    return [row._replace(sharding_key="k1") for row in rows], config


def one_sender(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every producer for the same."""
    return [row._replace(process="shop", client_id="shop") for row in rows], config


def one_queue(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every queue of a topic for the same."""
    return [row._replace(broker="b0", queue_id=3) for row in rows], config


def one_body(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every body for the same."""
    return [row if row.body_hash is None else row._replace(body_hash=1) for row in rows], config


def next_number(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Reads the number of an operation as one more than it is."""
    return [row if row.value is None else row._replace(value=row.value + 1) for row in rows], config


def at_once(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Takes every operation that ended for an instant."""
    return [
        row if row.seq_end is None else row._replace(seq_end=row.seq_begin, ended_us=row.started_us)
        for row in rows
    ], config


def limits_doubled(rows: Sequence[Row], config: Config, _: Collection[Kind]) -> Shown:
    """Allows twice the time, and one retry more."""
    return list(rows), replace(
        config,
        broker_lease_ms=2 * config.broker_lease_ms,
        client_lease_ms=2 * config.client_lease_ms,
        dead_letter_bound_ms=2 * config.dead_letter_bound_ms,
        delay_bound_ms=2 * config.delay_bound_ms,
        suspend_ms=2 * config.suspend_ms,
        max_reconsume_times=config.max_reconsume_times + 1,
    )


USUAL: tuple[Rule, ...] = (nothing_excuses, one_worker, all_went_well)
RULES_OF: dict[str, tuple[Rule, ...]] = {
    "ORD-2": (nothing_excuses, one_worker, one_offset),
    "CMT-1": (nothing_excuses, all_went_well, next_number),
    "ORD-9": (nothing_excuses, all_went_well, at_once),
    "ORD-12": (nothing_excuses, one_worker, one_offset),
    "LSE-4": (nothing_excuses, one_worker, limits_doubled),
    "CMT-4": (nothing_excuses, one_worker, all_went_well),
    "FLR-1": (nothing_excuses, all_went_well, next_number),
    "PML-1": (nothing_excuses, one_worker, at_once),
    "PML-2": (nothing_excuses, one_offset, at_once),
    "SND-10": (nothing_excuses, one_body, at_once),
    "DLQ-3": (nothing_excuses, one_worker, one_offset),
    "SND-2": (nothing_excuses, one_offset, at_once),
    "LIV-1": (nothing_excuses, all_went_well, one_offset),
    "SND-1": (nothing_excuses, all_went_well, next_number),
    "DLQ-1": (nothing_excuses, all_went_well, limits_doubled),
    "ORD-1": (nothing_excuses, all_went_well, at_once),
    "ORD-6": (one_key, one_sender, one_queue),
    "ORD-7": (nothing_excuses, all_went_well, one_offset),
    "ORD-8": (nothing_excuses, all_went_well, at_once),
    "SND-3": (nothing_excuses, all_went_well, one_offset),
    "SND-4": (one_key, one_sender, one_offset),
    "CMT-12": (nothing_excuses, one_worker, all_went_well),
    "ORD-4": (nothing_excuses, all_went_well, one_offset),
    "ORD-11": (nothing_excuses, one_worker, one_key),
    "CMT-2": (nothing_excuses, all_went_well, next_number),
    "CMT-3": (nothing_excuses, all_went_well, one_offset),
    "CMT-7": (nothing_excuses, all_went_well, at_once),
    "CMT-10": (nothing_excuses, all_went_well, next_number),
    "KEY-1": (nothing_excuses, one_worker, one_key),
    "LSE-15": (nothing_excuses, one_worker, at_once),
    "LSE-6": (nothing_excuses, one_worker, at_once),
    "LSE-13": (nothing_excuses, one_worker, at_once),
    "LSE-16": (nothing_excuses, one_worker, limits_doubled),
    "ORD-5": (nothing_excuses, one_worker, at_once),
    "ORD-16": (nothing_excuses, one_worker, limits_doubled),
    "RTY-4": (nothing_excuses, all_went_well, one_offset),
    "DLQ-5": (nothing_excuses, all_went_well, one_body),
    "DLQ-4": (all_went_well, one_offset, at_once),
}


def rules_of(clause: str) -> tuple[Rule, ...]:
    return RULES_OF.get(clause, USUAL)
