"""What there is in a plan that puts clauses at stake: a producer that shares a key, a consumer that dies, a reset.

A clause names the traits without which it is not at stake (`STAKES`), a plan is asked how often it has them, and
nobody keeps a list of clauses that some kind of run can't reach (`specs.verdicts.reach`). A trait is a fact about the
plan alone: whether what is planned has its effect is the run's affair, and the judges count what came of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from specs.faults import broker_crash, crash, disk_full, pause, power_cut, upgrade
from specs.plan.plan import Action, ListenerRule, Plan
from specs.vocabulary import Outcome

COMES = frozenset({"start", "restart"})
GOES = frozenset({"stop", crash.VERB})
KILLS_OF_BROKERS = frozenset({broker_crash.VERB, power_cut.VERB, upgrade.VERB, upgrade.HEALED_BY})
"""What ends a broker's life, however orderly: its leases are gone."""
UNSURE_OF_SENDS = KILLS_OF_BROKERS | {disk_full.VERB}


class Trait(StrEnum):
    """Its value is the trait in words: what a run lacks, or has too seldom."""

    SHARED_KEY = "a key that two producers send"
    MEMBER_CHANGE = "a consumer that comes or goes"
    CLEAN_CHANGE = (
        "a consumer that comes or leaves in good order beside another one, on a broker that lives"
    )
    DEATH = "a consumer that dies while another one works"
    SLEEPER = "a consumer that stands still while another one works"
    THROW = "a listener that throws or answers nothing"
    ROLLBACK = "a listener that rolls back by hand"
    MANUAL = "a listener that commits by hand"
    LONG_REST = "a message that is suspended for as long as a rebalance may take"
    LONG_CALL = "a call that lasts for half of a rebalance's interval"
    FRESH_LEASE = "leases that clients believe in for longer than a timer may be late"
    FEW_THREADS = "fewer threads than lanes"
    QUIET_QUEUE = "a message for a queue that was quiet for longer than a timer may be late"
    STRANGER = "a stranger that asks to free what is not its own"
    FAILED_SEND = "a send that may fail"
    FULL_DISK = "a broker without room for a message"
    BROKER_KILL = "a broker that is killed"
    LIVING_BROKER = "a broker that lives from the begin to the end"
    RESET = "an operator's reset of an offset"
    BATCH = "a batch of messages"
    HALF = "a half message"
    DELAYED = "a delayed message"


@dataclass(frozen=True, slots=True)
class Stake:
    """A clause is at stake only where a run has the trait.

    brings: how many opportunities one brings at least, as measured: a run that has the trait so seldom that the floor
    is not met hardly puts the clause at stake. None: one may bring enough.
    """

    trait: Trait
    brings: int | None = None


def count(trait: Trait, plan: Plan) -> int:
    """How often a plan has the trait; 1 or 0 for what the plan as a whole has or not."""
    return _COUNTS[trait](plan)


def _doing(*verbs: str) -> Callable[[Plan], int]:
    return lambda plan: sum(action.do in verbs for action in plan.actions)


def _sent(argument: str) -> Callable[[Plan], int]:
    return lambda plan: sum(
        action.do == "send" and bool(action.args.get(argument)) for action in plan.actions
    )


def _rules(fits: Callable[[ListenerRule, Plan], bool]) -> Callable[[Plan], int]:
    return lambda plan: sum(fits(rule, plan) for rule in plan.listener)


def _shared_keys(plan: Plan) -> int:
    senders: dict[tuple[str, str], set[str]] = {}
    for action in plan.actions:
        if action.do == "send" and action.args.get("key"):
            place = (action.args["topic"], action.args["key"])
            senders.setdefault(place, set()).add(action.args["client"])
    return sum(len(each) > 1 for each in senders.values())


def _changes(plan: Plan) -> Iterator[tuple[Action, bool]]:
    """Each action by which a consumer comes or goes, and whether another member of its group works then."""
    groups = {client.id: client.group for client in plan.clients if client.kind == "consumer"}
    at_work: set[str] = set()
    for action in plan.actions:
        client = action.args.get("client")
        if client not in groups or action.do not in COMES | GOES:
            continue
        if (client in at_work) == (action.do in COMES):
            continue  # such an action does nothing
        yield (
            action,
            any(groups[each] == groups[client] for each in at_work if each != client),
        )
        at_work ^= {client}


def _sleepers(plan: Plan) -> int:
    """Pauses of a consumer, in actions or steps, where its group has another one."""
    groups = [client.group for client in plan.clients if client.kind == "consumer"]
    shared = {
        client.id
        for client in plan.clients
        if client.kind == "consumer" and groups.count(client.group) > 1
    }
    told = [(action.do, action.args) for action in plan.actions]
    told += [(step.do, step.args) for step in plan.steps]
    return sum(do == pause.VERB and args.get("node") in shared for do, args in told)


def _clean_changes(plan: Plan) -> int:
    """Around the kill of a broker, for as long as a lease of its lives, nobody is promised a handover."""
    kills = [action.at_ms for action in plan.actions if action.do in KILLS_OF_BROKERS]
    near_ms = plan.config.broker_lease_ms
    return sum(
        beside_another
        and action.do != crash.VERB
        and all(abs(kill - action.at_ms) > near_ms for kill in kills)
        for action, beside_another in _changes(plan)
    )


def _quiet(plan: Plan) -> int:
    """A message without a key may come to any queue; with one only to that of all messages with its key."""
    found, last_ms = 0, 0
    for action in plan.actions:
        if action.do != "send":
            continue
        was_quiet = action.at_ms - last_ms > plan.config.schedule_slack_ms
        found += was_quiet or not action.args.get("key")
        last_ms = action.at_ms
    return found


def _lanes(plan: Plan) -> int:
    return len(plan.topology.brokers) * max((t.queues for t in plan.topology.topics), default=0)


_COUNTS: Mapping[Trait, Callable[[Plan], int]] = {
    Trait.SHARED_KEY: _shared_keys,
    Trait.MEMBER_CHANGE: lambda plan: sum(1 for _ in _changes(plan)),
    Trait.CLEAN_CHANGE: _clean_changes,
    Trait.DEATH: lambda plan: sum(
        action.do == crash.VERB and beside_another for action, beside_another in _changes(plan)
    ),
    Trait.SLEEPER: _sleepers,
    Trait.THROW: _rules(lambda rule, _: rule.outcome in (Outcome.THREW, Outcome.NULL)),
    Trait.ROLLBACK: _rules(lambda rule, _: rule.manual and rule.outcome is Outcome.ROLLBACK),
    Trait.MANUAL: _rules(lambda rule, _: rule.manual),
    Trait.LONG_REST: _rules(lambda rule, plan: rule.suspend_ms >= plan.config.rebalance_ms),
    Trait.LONG_CALL: _rules(lambda rule, plan: 2 * rule.duration_ms >= plan.config.rebalance_ms),
    Trait.FRESH_LEASE: lambda plan: int(
        plan.config.client_lease_ms > plan.config.schedule_slack_ms
    ),
    Trait.FEW_THREADS: lambda plan: int(plan.config.threads < _lanes(plan)),
    Trait.QUIET_QUEUE: _quiet,
    Trait.STRANGER: _doing("probe_unlock"),
    Trait.FAILED_SEND: _doing(*UNSURE_OF_SENDS),
    Trait.FULL_DISK: _doing(disk_full.VERB),
    Trait.BROKER_KILL: _doing(*KILLS_OF_BROKERS),
    Trait.LIVING_BROKER: lambda plan: int(not _doing(*KILLS_OF_BROKERS)(plan)),
    Trait.RESET: _doing("reset"),
    Trait.BATCH: _sent("batch"),
    Trait.HALF: _doing("send_half"),
    Trait.DELAYED: _sent("delay_level"),
}
