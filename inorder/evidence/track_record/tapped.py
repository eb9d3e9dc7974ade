"""Trials with Apache's Java clients behind a tap: what one clause says to the history that driver and tap leave."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance.drivers.stage import Stage
from conformance.drivers.targets import MARK
from conformance.records import BEHIND_A_TAP
from conformance.tap.faults import Rule
from conformance.targets.driven import JavaTarget, find_java
from conformance.targets.systems import ApacheOnThisMachine, System
from inorder.evidence.track_record.on_the_wire import judge_history
from specs import profiles
from specs.errors import UsageError
from specs.history.runinfo import RunInfo, write_runinfo
from specs.plan.config import Config
from specs.verdicts.verdict import Judged
from specs.vocabulary import Kind, Level

SHORT = Config(
    lock_interval_ms=1_000, rebalance_ms=1_000, heartbeat_ms=1_000, channel_expiry_ms=10_000
)
"""Leases as released; what the clients do at intervals comes sooner."""

QUICK_UNLOCK = {"rocketmq.client.unlockDelayTimeMills": 1_000}
"""Clients up to 5.1 give a dropped lane back after this time, 20 s as released."""

SMALL_FILES = {
    "mappedFileSizeCommitLog": "1048576",
    "fileReservedTime": "0",
    "cleanResourceInterval": "1000",
}
"""A broker that lets go of what is old as soon as a MiB has been written since."""


@dataclass(frozen=True, slots=True)
class Played:
    """A scene as a trial. rules: what the tap does to frames. properties: of every Java client. broker: keys of an
    Apache broker's configuration. stay: does everybody keep his lanes until he leaves? Then the tap tells every DROP.
    others: do messages lie there that are no part of the history?
    """

    scene: Callable[[Stage], None]
    config: Config = SHORT
    rules: tuple[Rule, ...] = ()
    properties: Mapping[str, str | int] = field(default_factory=lambda: QUICK_UNLOCK)
    broker: Mapping[str, str] = field(default_factory=dict)
    stay: bool = True
    others: bool = False

    def __call__(
        self,
        target: str,
        profile: str,
        judged_by: str,
        seeds: Sequence[int],
        folder: Path,
        say: Callable[[str], Any],
    ) -> list[Judged]:
        """One result per seed; the broker is started once, and must be a fresh one.

        Raises UsageError where a part is missing.
        """
        driven = find_java(target)
        config = replace(self.config, dialect=driven.config.dialect)
        found: list[Judged] = []
        with self._system(driven, config) as system:
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
                    closed_world=not self.others,
                    records=self.records,
                    config=config,
                )
                write_runinfo(inside, info)
                with Stage(
                    system,
                    driven.version,
                    config,
                    inside,
                    f"t{seed}-",
                    properties=self.properties,
                    rules=self.rules,
                ) as stage:
                    self.scene(stage)
                    stage.check_faults()
                found.append(judge_history(inside, profiles.load(profile), judged_by))
        return found

    @property
    def records(self) -> Mapping[str, tuple[str, ...]]:
        """What is written down of the scene whenever it happens."""
        return {
            **BEHIND_A_TAP,
            Level.TAP: (*BEHIND_A_TAP[Level.TAP], Kind.LEAVE, *((Kind.DROP,) if self.stay else ())),
        }

    def _system(self, driven: JavaTarget, config: Config) -> AbstractContextManager[System]:
        if not self.broker:
            return driven.pair.open_system(config, None)
        system, _, _ = driven.name.partition(MARK)
        kind, _, version = system.partition(":")
        if kind != "rocketmq-local":
            raise UsageError(
                f"{system} is no Apache broker that could be started with a configuration of its own"
            )
        return ApacheOnThisMachine(version, config, more=self.broker)
