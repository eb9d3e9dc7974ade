"""Which wire rules a mutant of the broker breaks: the wire machine on real sockets, until the named one is broken."""

from __future__ import annotations

import contextlib
from pathlib import Path

from conformance.wire.machine import run_machine
from conformance.wire.session import Session
from reference_impl.core.broker import BrokerConfig
from reference_impl.mutants import Mutant
from reference_impl.shell.cluster import ThreadedCluster
from specs import profiles
from specs.history.journal import Journal
from specs.plan.config import Config
from specs.scratch import Scratch
from specs.vocabulary import Level

LEASE_MS = 300
"""Short enough to be waited for."""
STEPS = 40
PROFILE = "rocketmq-5-orderly"
"""Whose [wire] table our broker answers by."""


class _Enough(BaseException):
    """The rule is broken: no further example is needed. No Exception, which Hypothesis would repeat."""


def break_rules(
    bug: Mutant | None, seed: int, examples: int, until: str = ""
) -> tuple[dict[str, str], int]:
    """The broken rules with what broke each first, in the order of the rules, and the number of examples made.

    bug: None for the correct broker. until: the rule whose first breach ends the search. Raises no matter what
    the broker answers only when it can't be spoken to (TargetMisbehaved).
    """
    config = Config(broker_lease_ms=LEASE_MS)
    options = {} if bug is None else {"make_broker": bug.broker}
    with (
        Scratch("wire") as folder,
        ThreadedCluster(BrokerConfig.from_plan(config), **options) as cluster,
        Journal(Path(folder), "wire", common={"level": Level.WIRE}) as journal,
    ):
        wire = profiles.load(PROFILE).wire
        session = Session(cluster.brokers["b0"], "b0", journal, config, wire, f"s{seed}")

        def enough(_: int) -> None:
            if until and session.tallies[until].violations:
                raise _Enough

        with contextlib.suppress(_Enough):
            run_machine(session, seed, examples, steps=STEPS, progress=enough)
        broken = {rule: tally.first for rule, tally in session.tallies.items() if tally.violations}
        return broken, session.worlds
