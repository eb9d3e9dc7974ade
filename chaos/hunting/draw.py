"""Scenarios drawn from a seed, and variations of one: windows of quiet, trouble and quiet.

A window is a subset of the faults that the target can have, the empty one included, each with its own moment and its
own length; the next window begins when all of them are over. Numbers are drawn from those that matter: around the
lengths of leases, of rebalances, of what makes a member forgotten. What is drawn is a scenario as any other, with
numbers instead of ranges, so that a file of it does the same again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from chaos.scenario import Scenario, Workload
from chaos.step import StepTemplate
from specs.errors import UsageError
from specs.faults import FAULTS, named
from specs.plan.ability import Ability
from specs.plan.config import OF_BROKERS
from specs.plan.fault import Fault, Subject

LEASTS_MS = (100, 300, 480, 520, 900, 1_100, 1_600, 2_500, 3_500)
"""How long a fault lasts: below and above the client's lease, the broker's, and both with a rebalance."""
WORKS_MS = (1, 15, 30, 60, 110, 300)
PACES_MS = (60, 120, 250)
POISONS = (3, 8, 40, 1_000)
REQUESTS = (
    "LOCK_BATCH_MQ",
    "UNLOCK_BATCH_MQ",
    "UPDATE_CONSUMER_OFFSET",
    "QUERY_CONSUMER_OFFSET",
    "PULL_MESSAGE",
    "SEND_MESSAGE_V2",
    "GET_CONSUMER_LIST_BY_GROUP",
)
SIZES = {
    "kb_per_s": (1, 3, 10),
    "piece_bytes": (10, 30),
    "after_bytes": (150, 1_000, 4_000),
}
"""Around a frame, which has 100 to 1,000 bytes, and what a link carries in a lease."""
WINDOWS_MOST = 3
MESSAGES = 160
MESSAGES_REAL = 80
"""In real time: whatever a step waits for, they are sent again and again."""
BACKLOG = 2
"""In real time no more than so many times as much is sent as can be worked off: a run waits for all of it."""
LATEST_S = 20
"""A moment that does not come is waited for less long than in a scenario that somebody has thought out."""
STOP = "stop"
CONFIGS: Sequence[Mapping[str, Any]] = (
    {},
    {"channel_expiry_ms": 2_000, "heartbeat_ms": 500},
    {"suspend_ms": 400},
    {"batch": 3},
    {"max_reconsume_times": 3},
)


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be drawn. verbs: of faults; `stop` is another. at_once: how many faults a window has at most.

    configs: what the configuration may say besides. in_real_time: an example is to be over soon.
    """

    verbs: tuple[str, ...]
    abilities: frozenset[Ability]
    at_once: int = 3
    configs: Sequence[Mapping[str, Any]] = CONFIGS
    in_real_time: bool = False


def choice_of(
    abilities: frozenset[Ability],
    *,
    takes_config: bool,
    only: Sequence[str] = (),
    at_once: int = 3,
    keeps_brokers: bool = False,
    in_real_time: bool = False,
) -> Choice:
    """All that a target of these abilities can have. only: these verbs, if any are named. Raises UsageError.

    keeps_brokers: they are started once, so that a configuration may say nothing of them.
    """
    able = [fault.verb for fault in FAULTS.values() if fault.needs in abilities]
    known = (*able, STOP)
    meant = [fault.verb if (fault := named(name)) else name for name in only]
    if strange := [name for name in meant if name not in known]:
        raise UsageError(f"the target can't have {strange[0]!r}; it can have {', '.join(known)}")
    verbs = tuple(verb for verb in known if not only or verb in meant)
    configs = CONFIGS if takes_config else CONFIGS[:1]
    if keeps_brokers:
        configs = [config for config in configs if not OF_BROKERS & set(config)]
    return Choice(verbs, abilities, at_once, configs, in_real_time)


def drawn(dice: Random, choice: Choice, name: str) -> Scenario:
    """A scenario drawn anew."""
    workload = _workload(dice, choice)
    return Scenario(
        name,
        "Drawn by a search.",
        (),
        (),
        workload,
        tuple(_windows(dice, choice, workload)),
        config=dice.choice(choice.configs),
    )


def varied(dice: Random, choice: Choice, base: Scenario, other: Scenario, name: str) -> Scenario:
    """Another one near to `base`. other: whose windows it may get besides."""
    faults = list(base.faults)
    match dice.randrange(5):
        case 0 if len(faults) > 1:
            del faults[dice.randrange(len(faults))]
        case 1:
            faults.insert(dice.randint(0, len(faults)), _fault(dice, choice, base.workload))
        case 2 if faults:
            faults[dice.randrange(len(faults))] = _fault(dice, choice, base.workload)
        case 3:
            known = set(base.workload.clients) | set(base.workload.broker_names)
            faults += [fault for fault in other.faults if _names(fault) <= known][:2]
        case _:
            work = {"work_ms": dice.choice(WORKS_MS), "pace_ms": dice.choice(PACES_MS)}
            workload = _bearable(choice, replace(base.workload, **work))
            return replace(base, name=name, workload=workload)
    return replace(base, name=name, faults=tuple(faults))


def _names(fault: StepTemplate) -> set[str]:
    return {str(fault.table[word]) for word in ("client", "broker") if word in fault.table}


def _workload(dice: Random, choice: Choice) -> Workload:
    workload = Workload(
        consumers=dice.choice((1, 2, 2, 3, 3, 4)),
        brokers=2 if Ability.MORE_BROKERS in choice.abilities and dice.random() < 0.2 else 1,
        queues=dice.choice((2, 4, 8)),
        keys=dice.choice((4, 8)),
        messages=MESSAGES_REAL if choice.in_real_time else MESSAGES,
        work_ms=dice.choice(WORKS_MS),
        pace_ms=dice.choice(PACES_MS),
        poison_every=dice.choice(POISONS),
    )
    return _bearable(choice, workload)


def _bearable(choice: Choice, workload: Workload) -> Workload:
    """With work that does not pile up for minutes, where somebody waits for it."""
    if not choice.in_real_time:
        return workload
    most_ms = BACKLOG * workload.pace_ms * workload.queues // workload.keys
    slowest_ms = max(work_ms for work_ms in WORKS_MS if work_ms <= most_ms)
    return replace(workload, work_ms=min(workload.work_ms, slowest_ms))


def _windows(dice: Random, choice: Choice, workload: Workload) -> Iterator[StepTemplate]:
    for _ in range(dice.randint(1, WINDOWS_MOST)):
        for number in range(dice.randint(0, choice.at_once)):
            fault = _fault(dice, choice, workload)
            yield fault if number == 0 else _beside(dice, fault)


def _beside(dice: Random, fault: StepTemplate) -> StepTemplate:
    return replace(
        fault, table={**fault.table, "after_messages": dice.choice((0, 0, 2, 5)), "beside": True}
    )


def _fault(dice: Random, choice: Choice, workload: Workload) -> StepTemplate:
    verb = dice.choice(choice.verbs)
    fault = FAULTS.get(verb)
    table: dict[str, Any] = {
        "client": dice.choice(workload.clients),
        "after_messages": dice.choice((1, 3, 8, 15)),
        "deadline_s": LATEST_S,
    }
    if fault is None or fault.healed_by is not None:
        table["for_ms"] = dice.choice(LEASTS_MS)
    if fault is not None:
        table |= _of(dice, choice, fault, workload)
    return StepTemplate(verb, table)


def _of(dice: Random, choice: Choice, fault: Fault, workload: Workload) -> dict[str, Any]:
    """What the fault takes besides."""
    found: dict[str, Any] = {}
    if (
        fault.subject is Subject.LINK
        and Ability.BREAK_ONE_LINK in choice.abilities
        and dice.random() < 0.6
    ):
        found["alone"] = True
    if fault.subject is Subject.BROKER or _befalls_broker(dice, choice, fault):
        found["broker"] = dice.choice(workload.broker_names)
    if "ms" in fault.arguments:
        stepped = fault.healed_by is None
        found["ms"] = dice.choice((-1_500, 600, 1_200) if stepped else (30, 60, 150, 400))
    if "percent" in fault.arguments:
        found["percent"] = dice.choice((10, 30, 60))
    for name, numbers in SIZES.items():
        if name in fault.arguments:
            found[name] = dice.choice(numbers)
    if "code" in fault.arguments:
        found["request"] = dice.choice(REQUESTS)
    if "answer" in fault.arguments:
        found["answer"] = dice.random() < 0.7
    return found


def _befalls_broker(dice: Random, choice: Choice, fault: Fault) -> bool:
    both = fault.subject is Subject.PROCESS and fault.needs_of_broker in choice.abilities
    return both and dice.random() < 0.4


def as_toml(scenario: Scenario, why: str, clauses: Sequence[str] = ()) -> str:
    """The scenario as a file, for `inorder chaos FILE`."""
    usual = Workload()
    work = {
        word: value
        for word in Workload.__dataclass_fields__
        if (value := getattr(scenario.workload, word)) != getattr(usual, word)
    }
    lines = [f"why = {_value(why)}", f"clauses = {_value(list(clauses))}", "must_reach = []"]
    for name, table in (("workload", work), ("config", scenario.config)):
        lines += ["", f"[{name}]", *(f"{word} = {_value(value)}" for word, value in table.items())]
    for fault in scenario.faults:
        lines += ["", "[[fault]]", f"do = {_value(fault.do)}"]
        lines += [f"{word} = {_value(value)}" for word, value in fault.table.items()]
    return "\n".join(lines) + "\n"


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return f"[{', '.join(_value(each) for each in value)}]"
    return str(value) if isinstance(value, int) else '"' + str(value).replace('"', "'") + '"'
