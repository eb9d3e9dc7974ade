"""`reference+tcp`: our own cluster on sockets of 127.0.0.1, spoken to as if it were a stranger's.

`reference+tcp:sync` and `reference+tcp:async` serve it in a process of its own, with a store on disk and that way of
flushing; the process is killed while clients are at work, and started again. `=DIR` behind it says where the store is
to lie, otherwise it is deleted at the end.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from conformance.targets.systems import FIRST_PERSISTS, ReferenceOnSockets, ServedReference
from conformance.wire.runner import SHORT_LEASES, ours
from conformance.wire.target import WireTarget
from conformance.wire.work import ROUNDS
from specs.errors import UsageError
from specs.plan.ability import Ability

FLUSHES = ("sync", "async")
IN_THE_HARNESS = "its broker is a thread of the harness, which has no core of its own; reference+tcp:sync is a process"

IN_MEMORY = "its messages lie in memory; reference+tcp:sync keeps them on a disk"


def target(argument: str | None) -> WireTarget:
    """Our own cluster on sockets of 127.0.0.1, in memory; `reference+tcp:sync`, `:async`: killed at work, on a store.

    Raises UsageError for any other argument.
    """
    in_memory = WireTarget(
        name="reference+tcp",
        parties=dict.fromkeys(("broker", "client", "producer"), ours()),
        profile="reference",
        config=SHORT_LEASES,
        rounds=ROUNDS,
        opens=ReferenceOnSockets,
        of_system=ReferenceOnSockets.abilities,
        hindered={Ability.SLOW_DISK: IN_MEMORY, Ability.STARVE_BROKER: IN_THE_HARNESS},
    )
    if argument is None:
        return in_memory
    flush, found, folder = argument.partition("=")
    if flush not in FLUSHES or (found and not folder):
        raise UsageError(
            f"the target reference+tcp takes no argument {argument!r}; it can be reference+tcp:sync or"
            " reference+tcp:async, and =DIR may follow for its store"
        )
    first_ms = FIRST_PERSISTS * SHORT_LEASES.persist_ms
    return replace(
        in_memory,
        name=f"reference+tcp:{argument}",
        config=replace(SHORT_LEASES, persist_first_ms=first_ms),
        plan_config={"persist_first_ms": first_ms},
        opens=lambda config: ServedReference(config, flush, Path(folder) if folder else None),
        of_system=ServedReference.abilities,
        if_able=ServedReference.if_able,
        hindered={},
        kills_broker=True,
        syncs="" if folder else flush,
        remembers=bool(folder),
    )
