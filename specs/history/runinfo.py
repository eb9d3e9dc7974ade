"""`run.json`: what a judge must know about a run besides its rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specs.errors import HistoryError
from specs.plan.config import Config
from specs.vocabulary import Kind, Level

RUN_SCHEMA = "inorder/run/v1"


@dataclass(frozen=True, slots=True)
class RunInfo:
    """A run. clock_bounds_us: per clock domain, how far it may be from the others (0: virtual, or one host).

    closed_world: the history holds every producer and every consumer of its topics, from their first row to their
    last; a `run.json` that does not say so is of an open world. begins_late: rows of what went on before its first one
    are missing, as in a log that was rotated. records: by level, the kinds of rows that the recorder writes down
    whenever they happen, or that can't have happened (nobody could make them but the harness, which writes them); None
    where it does not say (see `specs.clauses.certainty`). parties: who
    implements broker, client and producer. levels: at which levels it was recorded. settles: before it drains, the
    harness heals every fault, starts again what died, and waits until nothing happens any more.
    """

    run: str
    seed: int = 0
    target: str = "offline"
    parties: Mapping[str, str] = field(default_factory=dict)
    profile: str | None = None
    levels: tuple[str, ...] = ("client",)
    clock_bounds_us: Mapping[str, int] = field(default_factory=dict)
    closed_world: bool = True
    begins_late: bool = False
    records: Mapping[str, tuple[str, ...]] | None = None
    config: Config = field(default_factory=Config)
    plan: Mapping[str, Any] | None = None
    replay: str | None = None
    workload_floor: int = 0
    settles: bool = False
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
            "config": self.config.to_json(),
            "plan": None if self.plan is None else dict(self.plan),
            "replay": self.replay,
            "workload_floor": self.workload_floor,
            "settles": self.settles,
            "environment": dict(self.environment),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any], where: str = "run.json") -> RunInfo:
        """Raises HistoryError for an unknown version or a field of the wrong shape."""
        schema = data.get("schema")
        if schema != RUN_SCHEMA:
            raise HistoryError(f"{where} has schema {schema!r}; this version reads {RUN_SCHEMA}")
        try:
            return cls(
                run=str(data["run"]),
                seed=int(data.get("seed", 0)),
                target=str(data.get("target", "offline")),
                parties=dict(data.get("parties", {})),
                profile=data.get("profile"),
                levels=tuple(data.get("levels", ("client",))),
                clock_bounds_us={
                    str(k): int(v) for k, v in data.get("clock_bounds_us", {}).items()
                },
                closed_world=bool(data.get("closed_world", False)),
                begins_late=bool(data.get("begins_late", False)),
                records=_records(data.get("records"), where),
                config=Config.from_json(data.get("config", {})),
                plan=data.get("plan"),
                replay=data.get("replay"),
                workload_floor=int(data.get("workload_floor", 0)),
                settles=bool(data.get("settles", False)),
                environment=dict(data.get("environment", {})),
            )
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise HistoryError(f"{where} can't be read: {error}") from error


def _records(data: Any, where: str) -> Mapping[str, tuple[str, ...]] | None:
    if data is None:
        return None
    records = {str(level): tuple(str(kind) for kind in kinds) for level, kinds in data.items()}
    for level, kinds in records.items():
        unknown = [
            word
            for word in (level, *kinds)
            if word not in (set(Level) if word == level else set(Kind))
        ]
        if unknown:
            raise HistoryError(f"{where}: records names the unknown word {unknown[0]!r}")
    return records


def declared(**levels: Iterable[Kind]) -> dict[str, tuple[str, ...]]:
    """A declaration for `records`, from the kinds by level: `declared(client=..., wire=...)`."""
    return {
        Level(level).value: tuple(sorted(kind.value for kind in kinds))
        for level, kinds in levels.items()
    }


def write_runinfo(folder: Path, info: RunInfo) -> None:
    """Write `run.json`, whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    temporary = folder / "run.json.part"
    temporary.write_text(
        json.dumps(info.to_json(), indent=2, sort_keys=True) + "\n", encoding="utf-8"
    )
    temporary.replace(folder / "run.json")


def read_runinfo(folder: Path) -> RunInfo:
    """Read `run.json`. Raises HistoryError where there is none or it can't be read."""
    path = folder / "run.json"
    if not path.is_file():
        raise HistoryError(f"{folder} is no history: it has no run.json")
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, UnicodeDecodeError) as error:
        raise HistoryError(f"{path} is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise HistoryError(f"{path} is not a JSON object")
    return RunInfo.from_json(data, str(path))
