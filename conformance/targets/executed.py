"""`exec:COMMAND`: anything that has a driver, started by its command line.

The driver speaks the protocol of `conformance.drivers.protocol`, in any language; docs/drivers.md is its author's
guide. The command is started once to ask what it can, before anything else; then once more for the run itself, which
prepares topics and reads queues, and once for each client, unless the driver hosts all of them in one process.
"""

from __future__ import annotations

import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from conformance.drivers.admin import AdminTarget, ignore
from conformance.drivers.plans import STEADY
from conformance.drivers.process import DriverProcess, Event
from conformance.targets.base import Run
from specs.errors import DriverBug, UsageError
from specs.faults import crash
from specs.plan.ability import Ability
from specs.plan.config import OF_BROKERS, Config, without_the_brokers
from specs.plan.plan import ListenerRule, Plan
from specs.scratch import Scratch

PROFILES = {"orderly": "ordered-queue", "key_ordered": "key-ordered-queue"}
"""What is promised, by how its groups consume, where nobody names another profile."""
FENCES = frozenset({"received", "acked"})
"""What a driver tells that can show whether a lease that has passed on is refused."""
SLOW = range(20, 220, 25)
"""Numbers of messages of which a call takes longer than the lease."""
NEEDED = ("prepare", "read")


class ExecutedTarget(AdminTarget):
    """argv: the driver's command. said: its answer to hello."""

    config = STEADY
    profile = PROFILES["orderly"]
    reads_at_work = True

    def __init__(self, command: str, argv: Sequence[str], said: Mapping[str, Any]) -> None:
        super().__init__()
        self.name = f"exec:{command}"
        self._argv = tuple(argv)
        client = f"{said.get('driver', argv[0])} {said.get('client', '')}".strip()
        broker = said.get("broker", client)
        self.parties = {"broker": broker, "client": client, "producer": client}
        self.hosts = bool(said.get("hosts"))
        if said.get("modes"):
            self.modes = tuple(said["modes"])
        self.profile = PROFILES.get(self.modes[0], self.profile)
        self.config = replace(self.config, mode=self.modes[0])
        self._lease_ms = int(said.get("lease_ms", 0))
        self._told = frozenset(said.get("events", ()))
        verbs = set(said.get("verbs", ()))
        self.abilities = frozenset({Ability.READ})
        if not self.hosts:
            self.abilities |= {Ability.CRASH_CLIENT, Ability.PAUSE_CLIENT}
        elif crash.VERB in verbs:
            self.abilities |= {Ability.CRASH_CLIENT}
        if "progress" in verbs:
            self.abilities |= {Ability.PROGRESS}

    def suited(self, plan: Plan) -> Plan:
        """Where messages are leased for a while that a plan has, some calls take longer, in which others are given the
        message: so the first member's acknowledgement comes under a lease that has passed on.
        """
        short = 0 < self._lease_ms <= plan.config.broker_lease_ms
        if not (short and self._told >= FENCES):
            return plan
        slow_ms = self._lease_ms * 13 // 10
        slow = [ListenerRule(duration_ms=slow_ms, number=each, delivery_max=1) for each in SLOW]
        more = tuple(rule for rule in slow if rule not in plan.listener)
        return replace(plan, listener=(*plan.listener, *more))

    def settings(self, plan: Plan) -> Config:
        """Its leases last as long as it says; where it says nothing nobody knows."""
        if self._lease_ms:
            return replace(plan.config, broker_lease_ms=self._lease_ms)
        known = OF_BROKERS - {"broker_lease_ms"}
        return without_the_brokers(plan.config, self.name, known=known)

    def written(self, run: Run) -> int:
        """Who waits for a lane asks for it for ever; nothing else happens then."""
        return sum(recorder.told for recorder in self.recorders)

    def spawn_driver(
        self, name: str, folder: Path, on_event: Callable[[Event], Any]
    ) -> DriverProcess:
        return _spawn(name, self._argv, folder, on_event)


def target(command: str | None) -> ExecutedTarget:
    """Any system that has a driver in any language, started by its command line: `exec:python3 driver.py`.

    Raises UsageError where there is no such command, or it is no driver, DriverFailed where it dies or is silent.
    """
    argv = shlex.split(command or "")
    if not command or not argv:
        raise UsageError("the target exec needs a command, as in exec:'python3 driver.py'")
    if shutil.which(argv[0]) is None:
        raise UsageError(f"the target exec can't start {argv[0]!r}: there is no such program")
    with Scratch("exec") as folder:
        try:
            with _spawn("hello", argv, Path(folder), ignore) as driver:
                said = driver.hello()
        except DriverBug as error:
            raise UsageError(f"{command!r} does not speak the driver protocol: {error}") from error
    missing = [verb for verb in NEEDED if verb not in said.get("verbs", ())]
    if missing:
        raise UsageError(
            f"the driver {command!r} does not know {' and '.join(missing)}, which exec needs; "
            "once it does, its hello names it in verbs"
        )
    return ExecutedTarget(command, argv, said)


def _spawn(
    name: str, argv: Sequence[str], folder: Path, on_event: Callable[[Event], Any]
) -> DriverProcess:
    return DriverProcess(f"driver {name}", argv, folder / f"{name}.log", on_event)
