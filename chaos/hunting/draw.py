"""Scenarios drawn from a seed, and variations of one: windows of quiet, trouble and quiet.

A window is a subset of the faults that the target can have, the empty one included, each with its own moment and its
own length; the next window begins when all of them are over. One of them may come several times in a row. Numbers are
drawn from those that matter: around the lengths of leases, of rebalances, of what makes a member forgotten. Consumers
join late, leave, and stay away. What is drawn is a scenario as any other, with numbers instead of ranges, so that a
file of it does the same again.

Whoever is waited for has something to do: an example in which somebody without a lane is to finish messages only waits.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from random import Random
from typing import Any

from chaos.scenario import Scenario, Workload
from chaos.step import StepTemplate
from reference_impl.protocol.codes import RequestCode, ResponseCode
from specs.errors import UsageError
from specs.faults import FAULTS, named
from specs.plan.ability import Ability
from specs.plan.config import OF_BROKERS
from specs.plan.fault import Fault, Subject

LEASTS_MS = (100, 300, 480, 520, 900, 1_100, 1_600, 2_500, 3_500)
"""How long a fault lasts: below and above the client's lease, the broker's, and both with a rebalance."""
LONG_MS = (5_000, 6_500)
"""Where time is virtual: until whatever follows from it has come about."""
AFTER = (1, 3, 8, 15)
"""How many messages somebody finishes first: before the first commit, or later."""
LATER = (40,)
"""Where time is virtual."""
WORKS_MS = (1, 15, 30, 60, 110, 300)
PACES_MS = (60, 120, 250)
LONGER_THAN_A_LEASE_MS, ITS_PACE_MS = 1_300, 1_500
POISONS = (3, 8, 40, 1_000)
MANY_LANES, THEIR_PACE_MS = 24, 360
"""A key for each lane, so that somebody is at work on several lanes at any time, and none has a backlog."""
KEYS = (4, 8)
REQUESTS = (
    RequestCode.LOCK_BATCH_MQ,
    RequestCode.UNLOCK_BATCH_MQ,
    RequestCode.UPDATE_CONSUMER_OFFSET,
    RequestCode.QUERY_CONSUMER_OFFSET,
    RequestCode.GET_MAX_OFFSET,
    RequestCode.PULL_MESSAGE,
    RequestCode.SEND_MESSAGE_V2,
    RequestCode.GET_CONSUMER_LIST_BY_GROUP,
    RequestCode.HEART_BEAT,
)
"""What clients at work ask; a dead letter is a SEND_MESSAGE_V2 too."""
ERRORS = (
    ResponseCode.SYSTEM_ERROR,
    ResponseCode.SYSTEM_BUSY,
    ResponseCode.SERVICE_NOT_AVAILABLE,
)
MOVED = 0.7
"""How often something makes clients ask after a trap was laid for a request."""
SIZES = {
    "kb_per_s": (1, 3, 10),
    "piece_bytes": (10, 30),
    "after_bytes": (150, 1_000, 4_000),
}
"""Around a frame, which has 100 to 1,000 bytes, and what a link carries in a lease."""
WINDOWS_MOST, WINDOWS_MOST_REAL = 3, 2
IN_A_ROW_MOST = 3
MESSAGES = 96
MESSAGES_REAL = 80
"""In real time: whatever a step waits for, they are sent again and again."""
BACKLOG = 2
"""In real time no more than so many times as much is sent as can be worked off: a run waits for all of it."""
LATEST_S = 10
"""A moment that does not come is waited for less long than in a scenario that somebody has thought out."""
SEEN_MS = 60
"""A listener that is done sooner is seldom met at work, by who looks every 50 ms."""
START, STOP = "start", "stop"
ON_BROKERS = 0.3
"""In real time: how many examples befall brokers."""
OF_PARTIES = (Subject.CLIENT, Subject.PROCESS)
CONFIGS: Sequence[Mapping[str, Any]] = (
    {"channel_expiry_ms": 2_000, "heartbeat_ms": 500},
    {"suspend_ms": 400},
    {"batch": 3},
    {"max_reconsume_times": 3},
    {"flush": "sync"},
    {"flush": "async", "flush_ms": 2_000},
)
"""What a configuration may say besides; of what contradicts itself the last one counts."""
SAID = 0.2


@dataclass(frozen=True, slots=True)
class Choice:
    """What may be drawn. verbs: of faults; `start` and `stop` are others. at_once: how many a window has at most.

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
    known = (*able, START, STOP)
    meant = [fault.verb if (fault := named(name)) else name for name in only]
    if strange := [name for name in meant if name not in known]:
        raise UsageError(f"the target can't have {strange[0]!r}; it can have {', '.join(known)}")
    verbs = tuple(verb for verb in known if not only or verb in meant)
    configs = CONFIGS if takes_config else ()
    if keeps_brokers:
        configs = [config for config in configs if not OF_BROKERS & set(config)]
    return Choice(verbs, abilities, at_once, configs, in_real_time)


def drawn(dice: Random, choice: Choice, name: str) -> Scenario:
    """A scenario drawn anew, of a part of what may be drawn."""
    choice = _part_of(dice, choice)
    workload = _workload(dice, choice)
    faults = tuple(_windows(dice, choice, workload))
    return Scenario(
        name, "Drawn by a search.", (), (), workload, faults, config=_config(dice, choice)
    )


def _part_of(dice: Random, choice: Choice) -> Choice:
    """Each verb by the toss of a coin: what is left meets itself, and the others, more often.

    Groce and others, Swarm Testing (2012, https://doi.org/10.1145/2338965.2336763). In real time an example that
    befalls a broker has it alone, and others wait for it: most of them spare brokers.
    """
    abilities, verbs = choice.abilities, choice.verbs
    if choice.in_real_time and dice.random() >= ON_BROKERS:
        of_brokers = {fault.verb for fault in FAULTS.values() if fault.subject is Subject.BROKER}
        verbs = tuple(verb for verb in verbs if verb not in of_brokers) or verbs
        abilities -= {
            fault.needs_of_broker for fault in FAULTS.values() if fault.subject is Subject.PROCESS
        } - {fault.needs for fault in FAULTS.values()}
    some = tuple(verb for verb in verbs if dice.random() < 0.5)
    return replace(choice, verbs=some or (dice.choice(verbs),), abilities=abilities)


def varied(dice: Random, choice: Choice, base: Scenario, other: Scenario, name: str) -> Scenario:
    """Another one near to `base`. other: whose windows it may get besides."""
    faults = list(base.faults)
    place = dice.randrange(len(faults)) if faults else 0
    match dice.randrange(7):
        case 0 if len(faults) > 1:
            del faults[place]
        case 1:
            faults.insert(dice.randint(0, len(faults)), _fault(dice, choice, base.workload))
        case 2 if faults:
            faults[place] = _fault(dice, choice, base.workload)
        case 3:
            known = set(base.workload.clients) | set(base.workload.broker_names)
            faults += [each for each in other.faults if _fits(each, known)][:2]
        case 4 if faults:
            faults[place] = _elsewhen(dice, choice, faults[place])
        case 5:
            return replace(base, name=name, config=_config(dice, choice))
        case _:
            work = {"work_ms": dice.choice(WORKS_MS), "pace_ms": dice.choice(PACES_MS)}
            workload = _bearable(choice, replace(base.workload, **work))
            return replace(base, name=name, workload=workload)
    return replace(base, name=name, faults=tuple(faults))


def _fits(fault: StepTemplate, known: Collection[str]) -> bool:
    """Who is there already does not join."""
    named = {str(fault.table[word]) for word in ("client", "broker") if word in fault.table}
    return fault.do != START and named <= set(known)


def _elsewhen(dice: Random, choice: Choice, fault: StepTemplate) -> StepTemplate:
    """The same at another moment, for another time."""
    table = {**fault.table, "after_messages": _after(dice, choice)}
    if "for_ms" in table:
        table["for_ms"] = _length(dice, choice, fault.fault)
    return replace(fault, table=table)


def _config(dice: Random, choice: Choice) -> dict[str, Any]:
    told: dict[str, Any] = {}
    for each in choice.configs:
        if dice.random() < SAID:
            told |= each
    return told


def _workload(dice: Random, choice: Choice) -> Workload:
    consumers = dice.choice((1, 2, 2, 3, 3, 4))
    queues = dice.choice((2, 4, 8))
    at_first = 0
    if START in choice.verbs and consumers > 1 and dice.random() < 0.25:
        at_first = dice.randint(1, consumers - 1)
    workload = Workload(
        consumers=consumers,
        at_first=at_first,
        brokers=2 if Ability.MORE_BROKERS in choice.abilities and dice.random() < 0.2 else 1,
        queues=queues,
        keys=max(queues, dice.choice(KEYS)),
        messages=MESSAGES_REAL if choice.in_real_time else MESSAGES,
        work_ms=dice.choice(WORKS_MS),
        pace_ms=dice.choice(PACES_MS),
        poison_every=dice.choice(POISONS),
    )
    if dice.random() < 0.2:
        workload = replace(workload, queues=MANY_LANES, keys=MANY_LANES, pace_ms=THEIR_PACE_MS)
    elif not choice.in_real_time and dice.random() < 0.1:
        workload = replace(workload, work_ms=LONGER_THAN_A_LEASE_MS, pace_ms=ITS_PACE_MS)
    return _bearable(choice, workload)


def _bearable(choice: Choice, workload: Workload) -> Workload:
    """With work that does not pile up for minutes, where somebody waits for it."""
    if not choice.in_real_time:
        return workload
    most_ms = BACKLOG * workload.pace_ms * workload.queues // workload.keys
    slowest_ms = max(work_ms for work_ms in WORKS_MS if work_ms <= most_ms)
    return replace(workload, work_ms=min(workload.work_ms, slowest_ms))


def _windows(dice: Random, choice: Choice, workload: Workload) -> Iterator[StepTemplate]:
    late = list(workload.clients[workload.at_first or workload.consumers :])
    most = WINDOWS_MOST_REAL if choice.in_real_time else WINDOWS_MOST
    for _ in range(max(dice.randint(1, most), len(late))):
        window = list(_window(dice, choice, workload))
        if late:
            joins = StepTemplate(START, _moment(dice, choice, late.pop(0)))
            window.insert(dice.randint(0, len(window)), joins)
        for number, fault in enumerate(window):
            yield fault if number == 0 else _beside(dice, fault)
        if dice.random() < 0.25:
            yield from _again_and_again(dice, choice, workload)


def _window(dice: Random, choice: Choice, workload: Workload) -> Iterator[StepTemplate]:
    """A subset of the faults. After a trap for a request something that makes clients ask."""
    for _ in range(dice.randint(0, choice.at_once)):
        fault = _fault(dice, choice, workload)
        yield fault
        if _is_trap(fault) and dice.random() < MOVED:
            yield _move(dice, choice, workload)


def _again_and_again(dice: Random, choice: Choice, workload: Workload) -> list[StepTemplate]:
    """A fault several times in a row, one after the other or at once."""
    fault = _fault(dice, choice, workload)
    at_once = _is_trap(fault) or dice.random() < 0.5
    more = [_elsewhen(dice, choice, fault) for _ in range(dice.randint(1, IN_A_ROW_MOST - 1))]
    row = [fault, *(_beside(dice, each) if at_once else each for each in more)]
    return [*row, _beside(dice, _move(dice, choice, workload))] if _is_trap(fault) else row


def _is_trap(fault: StepTemplate) -> bool:
    """Does it lie in wait for a request?"""
    return fault.fault is not None and "code" in fault.fault.arguments


def _move(dice: Random, choice: Choice, workload: Workload) -> StepTemplate:
    """What makes lanes change hands."""
    movers = tuple(
        verb
        for verb in choice.verbs
        if verb == STOP or (verb in FAULTS and FAULTS[verb].subject in OF_PARTIES)
    )
    return _fault(dice, replace(choice, verbs=movers or (STOP,)), workload)


def _beside(dice: Random, fault: StepTemplate) -> StepTemplate:
    return replace(
        fault, table={**fault.table, "after_messages": dice.choice((0, 0, 2, 5)), "beside": True}
    )


def _moment(dice: Random, choice: Choice, client: str) -> dict[str, Any]:
    return {"client": client, "after_messages": _after(dice, choice), "deadline_s": LATEST_S}


def _after(dice: Random, choice: Choice) -> int:
    return dice.choice(AFTER if choice.in_real_time else AFTER + LATER)


def _length(dice: Random, choice: Choice, fault: Fault | None) -> int:
    """A trap has to lie there until its request comes."""
    known = LEASTS_MS if choice.in_real_time else LEASTS_MS + LONG_MS
    is_trap = fault is not None and "code" in fault.arguments
    return dice.choice(known[len(LEASTS_MS) - 2 :] if is_trap else known)


def _fault(dice: Random, choice: Choice, workload: Workload) -> StepTemplate:
    verb = dice.choice([verb for verb in choice.verbs if verb != START] or [STOP])
    fault = FAULTS.get(verb)
    at_work = workload.clients[: workload.at_first or workload.consumers]
    has_lanes = at_work[: workload.queues * workload.brokers]
    table = _moment(dice, choice, dice.choice(has_lanes))
    if workload.work_ms < SEEN_MS:
        table["at_work"] = False
    if fault is None or fault.healed_by is not None:
        table["for_ms"] = _length(dice, choice, fault)
    if fault is not None:
        table |= _of(dice, choice, fault, workload)
    can_stay_away = fault is None or fault.subject in (Subject.CLIENT, Subject.BROKER)
    if can_stay_away and "for_ms" in table and dice.random() < 0.1:
        table["restart"] = False
    is_of_a_client = fault is None or (fault.subject in OF_PARTIES and "broker" not in table)
    if is_of_a_client and len(has_lanes) > 1 and not choice.in_real_time and dice.random() < 0.15:
        table.pop("for_ms", None)  # until others have worked on all its lanes
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
        found["request"] = dice.choice(REQUESTS).name
    if "error" in fault.arguments:
        found["error"] = dice.choice(ERRORS).name
    if "answer" in fault.arguments:
        found["answer"] = dice.random() < 0.7
    if "silent" in fault.arguments and not choice.in_real_time:
        found["silent"] = dice.random() < 0.2
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
