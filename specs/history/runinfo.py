"""`run.json`: what a judge must know about a run besides its rows.

Version 2 says in `config` which system the numbers are of; version 1 knew RocketMQ's alone and is read as that.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specs.documents import json_in
from specs.errors import HistoryError
from specs.plan.config import Config, config_of, config_schema
from specs.reading import an_object, document_schema, read, told, version_of
from specs.vocabulary import Kind, Level

RUN_SCHEMA = "inorder/run/v2"
_LEVELS = tuple(level.value for level in Level)
_KINDS = tuple(kind.value for kind in Kind)


def _config(data: Any, where: str) -> Config:
    return config_of(an_object(data, where), where)


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run. clock_bounds_us: per clock domain, how far it may be from the others (0: virtual, or one host).

    closed_world: the history holds every producer and every consumer of its topics, from their first row to their
    last; a `run.json` that does not say so is of an open world. begins_late: rows of what went on before its first one
    are missing, as in a log that was rotated. records: by level, the kinds of rows that the recorder writes down
    whenever they happen, or that can't have happened (nobody could make them but the harness, which writes them); None
    where it does not say (see `specs.clauses.certainty`). gaps: kinds of which rows are known to be missing, whatever
    `records` says: of a log, a line that nobody could read. parties: who
    implements broker, client and producer. levels: at which levels it was recorded. settles: before it drains, the
    harness heals every fault, starts again what died, and waits until nothing happens any more. untold: what was asked
    at the end of the run, and by whom it was not answered; what rests on it is unknown.
    plan: what was to be done; queues and brokers that came later need not stand in its topology.
    """

    run: str = field(metadata=told("The run's name, as in the column `run`."))
    seed: int = 0
    target: str = field(default="offline", metadata=told("What was tested."))
    parties: Mapping[str, str] = field(
        default_factory=dict, metadata=told("Who implements broker, client and producer.")
    )
    profile: str | None = None
    levels: tuple[str, ...] = field(
        default=("client",), metadata=told("At which levels it was recorded.", choices=_LEVELS)
    )
    clock_bounds_us: Mapping[str, int] = field(
        default_factory=dict,
        metadata=told("For each clock domain, how far it may be from the others.", least=0),
    )
    closed_world: bool = field(
        default=True,
        metadata=told(
            "Does the history hold every producer and consumer, from first to last?", absent=False
        ),
    )
    begins_late: bool = field(
        default=False, metadata=told("Are rows before the first one missing: a rotated log?")
    )
    records: Mapping[str, tuple[str, ...]] | None = field(
        default=None,
        metadata=told(
            "By level, the kinds of rows that the recorder writes whenever they happen.",
            keys=_LEVELS,
            choices=_KINDS,
        ),
    )
    gaps: tuple[str, ...] = field(
        default=(),
        metadata=told("Kinds of rows of which some are known to be missing.", choices=_KINDS),
    )
    config: Config = field(
        default_factory=Config,
        metadata=told(
            "What the system was told, under its own names, and what a judge has to know of it.",
            reads=_config,
            schema=config_schema,
        ),
    )
    plan: Mapping[str, Any] | None = None
    replay: str | None = field(default=None, metadata=told("The command that repeats the run."))
    workload_floor: int = field(default=0, metadata=told(least=0))
    settles: bool = field(default=False, metadata=told("Is all healed and quiet before the drain?"))
    untold: tuple[str, ...] = field(
        default=(), metadata=told("What was asked at the end and not answered, a sentence each.")
    )
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def clock_bound_us(self) -> int:
        """The largest error between two clock domains of the run, in µs."""
        return max(self.clock_bounds_us.values(), default=0)

    def to_json(self) -> dict[str, Any]:
        return {
            "schema": RUN_SCHEMA,
            "run": self.run,
            "seed": self.seed,
            "target": self.target,
            "parties": dict(self.parties),
            "profile": self.profile,
            "levels": list(self.levels),
            "clock_bounds_us": dict(self.clock_bounds_us),
            "closed_world": self.closed_world,
            "begins_late": self.begins_late,
            "records": None
            if self.records is None
            else {k: sorted(v) for k, v in sorted(self.records.items())},
            **({"gaps": sorted(self.gaps)} if self.gaps else {}),
            **({"untold": list(self.untold)} if self.untold else {}),
            "config": {"system": self.config.system, **self.config.to_json()},
            "plan": None if self.plan is None else dict(self.plan),
            "replay": self.replay,
            "workload_floor": self.workload_floor,
            "settles": self.settles,
            "environment": dict(self.environment),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str = "run.json") -> RunInfo:
        """Raises HistoryError for a newer version, an unknown field, or one of the wrong shape."""
        version_of(data, RUN_SCHEMA, where, HistoryError)  # version 1 lacked the system: RocketMQ's
        return read(cls, data, where, error=HistoryError, besides=["schema"])


def run_schema() -> dict[str, Any]:
    """The JSON schema of `run.json`."""
    title = "What a judge must know about a run besides its rows"
    return document_schema(RunInfo, RUN_SCHEMA, title)


def declared(**levels: Iterable[Kind]) -> dict[str, tuple[str, ...]]:
    """A declaration for `records`, from the kinds by level: `declared(client=..., wire=...)`."""
    return {
        Level(level).value: tuple(sorted(kind.value for kind in kinds))
        for level, kinds in levels.items()
    }


def all_untold(infos: Iterable[RunInfo]) -> tuple[str, ...]:
    """What nobody said in several runs, each once."""
    return tuple(dict.fromkeys(why for info in infos for why in info.untold))


def write_runinfo(folder: Path, info: RunInfo) -> None:
    """Write `run.json`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "run.json.part"
    temporary.write_text(
        json.dumps(info.to_json(), indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
    temporary.replace(folder / "run.json")


def is_described(folder: Path) -> bool:
    """Has the folder a `run.json`?"""
    return _description(folder).is_file()


def _description(folder: Path) -> Path:
    """The file that describes the run: Spark writes a text as a folder of its own, with one part."""
    path = folder / "run.json"
    return next(iter(sorted(path.glob("part-*"))), path) if path.is_dir() else path


def read_runinfo(folder: Path) -> RunInfo:
    """Read `run.json`. Raises HistoryError where there is none or it can't be read."""
    path = _description(folder)
    if not path.is_file():
        raise HistoryError(f"{folder} is no history: it has no run.json")
    data = json_in(path, error=HistoryError)
    if not isinstance(data, dict):
        raise HistoryError(f"{path} is not a JSON object")
    return RunInfo.from_json(data, str(path))
