"""Trials with Apache's Java client at work: what one clause says to the history that driver, tap and drain leave."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from conformance.drivers.stage import HOST_MARK
from conformance.drivers.work import work
from conformance.records import BEHIND_A_TAP
from conformance.run import fresh_names
from conformance.tap.proxy import ThreadedTap
from conformance.tap.rows import TapRecorder
from conformance.targets.driven import find_java
from inorder.evidence.track_record.on_the_wire import judge_history
from specs import profiles
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, write_runinfo
from specs.plan.config import Config
from specs.verdicts.verdict import Judged
from specs.vocabulary import Kind, Level

WORKING = Config(
    max_reconsume_times=2,
    suspend_ms=200,
    rebalance_ms=1_000,
    persist_ms=500,
    heartbeat_ms=1_000,
    channel_expiry_ms=10_000,
    delay_levels=" ".join(["1s"] * 18),
    dead_letter_bound_ms=3_000,
)
"""Leases as released; the rest short. The bound holds three times a delay level."""


def consume_with_java(
    target: str,
    profile: str,
    judged_by: str,
    seeds: Sequence[int],
    folder: Path,
    say: Callable[[str], Any],
) -> list[Judged]:
    """One result per seed; the broker is started once. Raises UsageError where a part is missing."""
    driven = find_java(target)
    config = replace(WORKING, dialect=driven.config.dialect)
    found: list[Judged] = []
    with driven.pair.open_system(config, None) as system:
        for seed in seeds:
            say(f"{target}, seed {seed}")
            inside = folder / f"{seed}"
            inside.mkdir(parents=True)
            info = RunInfo(
                run=f"track-record-{seed}",
                seed=seed,
                target=target,
                parties=driven.parties,
                profile=profile,
                levels=(Level.CLIENT, Level.TAP, Level.WIRE),
                clock_bounds_us={"host": 0},
                records=BEHIND_A_TAP,
                config=config,
            )
            write_runinfo(inside, info)
            with Journal(inside, "tap", common={"level": Level.TAP}) as journal:
                watcher = TapRecorder(
                    journal,
                    name_of=lambda name: name.removeprefix(HOST_MARK),
                    skip=frozenset({Kind.SEND}),
                )
                with ThreadedTap(system.namesrv, watcher) as tap:
                    prefix = fresh_names(seed, 0)
                    through = partial(work, namesrv=tap.namesrv, incarnation_of=watcher.incarnation)
                    through(system, driven.version, config, inside, prefix, say)
            found.append(judge_history(inside, profiles.load(profile), judged_by))
    return found
