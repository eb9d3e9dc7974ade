"""A history of what a program's own producers and consumers did, for `inorder check`.

with recorded("runs/mine") as journal:
    async with Producer("127.0.0.1:9876", recorder=journal) as producer:
        ...
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from reference_impl.records import OF_CLIENTS
from specs.errors import UsageError
from specs.history.journal import Journal
from specs.history.runinfo import RunInfo, declared, write_runinfo
from specs.plan.config import Config
from specs.vocabulary import Kind

OURS = "inorder reference"


@contextmanager
def recorded(
    folder: str | Path,
    *,
    process: str = "app",
    broker: str = "unknown",
    closed_world: bool = False,
    also: Iterable[Kind] = (),
    config: Config | None = None,
) -> Iterator[Journal]:
    """A journal in `folder`, to be handed to clients as their recorder; a history when it is left.

    process: how this one is called among those that write into the folder. broker: what the verdict calls the other
    side. closed_world: no other producer and no other consumer touches these topics, so that a message that comes from
    nowhere is one that nobody sent. also: kinds of rows besides the clients' own that are in the history whenever they
    happen, or can't happen meanwhile, as `crash` or `reset`: what is neither may explain what looks like a violation,
    which then is possible at most. config: the times that the clients and the broker work with, where they are not
    RocketMQ's own. Raises UsageError for a folder that holds a history already.
    """
    path = Path(folder)
    if (path / "run.json").exists():
        raise UsageError(f"{path} holds a history already; choose another folder.")
    path.mkdir(parents=True, exist_ok=True)
    parties = {"client": OURS, "producer": OURS, "broker": broker}
    info = RunInfo(
        path.name,
        target="recorded",
        parties=parties,
        closed_world=closed_world,
        records=declared(client={*OF_CLIENTS, *map(Kind, also)}),
        config=config or Config(),
    )
    write_runinfo(path, info)
    with Journal(path, process) as journal:
        yield journal
