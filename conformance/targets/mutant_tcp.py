"""`mutant+tcp:NAME`: our own cluster and clients on sockets, with one known bug; `NAME:sync`, `NAME:async`: on disk.

With a store, the broker is killed while clients are at work and starts again on it. Its brokers live in the process of
the run, since `inorder serve` knows no bugs: a kill forgets what was not written.
"""

from __future__ import annotations

from dataclasses import replace

from conformance.targets.base import known_names
from conformance.targets.reference_tcp import FLUSHES, target
from conformance.targets.systems import ReferenceOnSockets
from conformance.wire.target import WireTarget
from reference_impl.mutants import VECTORS, all_mutants, every_mutant, load
from reference_impl.sim.simulate import cores_of, parties_of
from specs.errors import UsageError
from specs.plan.ability import Ability


def names() -> tuple[str, ...]:
    """The mutants that a cluster on sockets can have: all but those that only a table of vectors shows."""
    return tuple(mutant.name for mutant in every_mutant() if mutant not in all_mutants(VECTORS))


def mutant(argument: str | None) -> WireTarget:
    """Our own cluster on sockets with the bug of that name; `NAME:sync`, `NAME:async`: killed at work, on a store.

    Raises UsageError with near matches for any other.
    """
    name, _, flush = (argument or "").partition(":")
    if name not in names():
        raise UsageError(
            f"mutant+tcp needs the name of a mutant that a cluster can have, not {name!r}; {known_names(name, names())}"
        )
    if flush not in ("", *FLUSHES) or (argument or "").endswith(":"):
        raise UsageError(
            f"mutant+tcp:{argument} is none; behind the name may follow {' or '.join(FLUSHES)}"
        )
    bug = load(name)
    abilities = ReferenceOnSockets.abilities
    return replace(
        target(None),
        name=f"mutant+tcp:{argument}",
        parties=parties_of(bug),
        plan_config=bug.config,
        opens=lambda config: ReferenceOnSockets(config, make_broker=bug.broker, flush=flush),
        of_system=abilities - {Ability.FILL_DISK} if flush else abilities,
        kills_broker=bool(flush),
        cores=cores_of(bug),
        sought=bug.killed_by,
    )
