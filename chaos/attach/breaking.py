"""The faults that a container can have, and what shows in the tap's rows that one had an effect."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from chaos.attach.hers import Role
from chaos.attach.sight import LaneOf
from chaos.attach.standing import Broken
from specs.faults import broker_crash, crash, cut, pause
from specs.history.evidence import ASKED, WORK
from specs.history.row import Row
from specs.vocabulary import Kind

LEAVES = "stop"
ON_ITS_WAY_US = 200_000
"""What was sent before a fault may be read so much later."""


@dataclass(frozen=True, slots=True)
class Breaking:
    """verb: the plan's word for it. says: what happens, for who is told before."""

    verb: str
    role: Role
    says: str
    do: Callable[[Broken], None]


BREAKINGS = (
    Breaking(crash.VERB, Role.CONSUMER, "is killed (SIGKILL), and started again", Broken.kill),
    Breaking(pause.VERB, Role.CONSUMER, "is frozen, and goes on", Broken.pause),
    Breaking(LEAVES, Role.CONSUMER, "is stopped (SIGTERM), and started again", Broken.stop),
    Breaking(cut.VERB, Role.CONSUMER, "is taken off the network, and put back", Broken.leave),
    Breaking(broker_crash.VERB, Role.BROKER, "is killed (SIGKILL), and started again", Broken.kill),
    Breaking(pause.VERB, Role.BROKER, "is frozen, and goes on", Broken.pause),
)
"""All of them, the plainer one first. Each is ended by `Broken.heal`."""

VERBS: Mapping[str, None] = dict.fromkeys(each.verb for each in BREAKINGS)


@dataclass(frozen=True, slots=True)
class Fault:
    """One that was made. clients: who was in the container then; lanes: what they worked on. Times in µs: `done` when
    the engine had done it, `healed` before it was told to heal it."""

    breaking: Breaking
    name: str
    clients: Collection[str]
    lanes: Collection[LaneOf]
    done_us: int
    healed_us: int

    def shown(self, rows: Sequence[Row]) -> str | None:
        """What shows that it had an effect; None where nothing does."""
        if self.breaking.role is Role.BROKER:
            return self._of_a_broker(rows)
        if not self.lanes:
            return None
        mine = [
            row
            for row in rows
            if row.kind in WORK
            and row.client_id in self.clients
            and self._quiet_us <= row.started_us < self.healed_us
        ]
        if mine:
            return None
        told = f"{self.name} was silent for {(self.healed_us - self.done_us) // 1000} ms"
        for row in rows:
            if (
                row.kind is Kind.PULL
                and row.started_us >= self.done_us
                and row.client_id not in self.clients
                and tuple(row.lane) in self.lanes
            ):
                after_ms = (row.started_us - self.done_us) // 1000
                return f"{told}; {row.client_id} went on with {row.lane} after {after_ms} ms"
        return f"{told}; nobody else worked on its {len(self.lanes)} lanes"

    def _of_a_broker(self, rows: Sequence[Row]) -> str | None:
        """A broker that answered nothing while it was away, and was asked."""
        asked = [row for row in rows if row.kind in ASKED and row.started_us < self.healed_us]
        for broker in sorted({row.broker for row in asked if row.broker is not None}):
            ends = [row.ended_us for row in asked if row.broker == broker]
            waited = [end for end in ends if end is None or end >= self.healed_us]
            answered = [
                end for end in ends if end is not None and self._quiet_us < end < self.healed_us
            ]
            if waited and not answered:
                return f"{len(waited)} requests were not answered while {self.name} was away"
        return None

    @property
    def _quiet_us(self) -> int:
        """From here on nothing comes any more that was on its way."""
        return self.done_us + ON_ITS_WAY_US
