"""From a plan that breaks a clause to a short one that still breaks it.

Parts are left out, largest first, for as long as the run of what remains still breaks the clause: stretches of steps,
all that a client does, all actions of a kind, stretches of actions, listener rules, messages of a burst, clients,
queues and brokers, the waiting between two actions. A run is repeated with
another plan each time, so what is left out for good was not needed. The number of runs is limited, not the time:
the same plan shrinks to the same plan everywhere.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from specs.plan.plan import VERBS, Action, ClientPlan, ListenerRule, Plan

T = TypeVar("T")
StillBroken = Callable[[Plan], bool]

BUDGET = 250
"""How many runs a search for a shorter plan may take."""


@dataclass(slots=True)
class _Search:
    best: Plan
    still_broken: StillBroken
    left: int
    tried: set[str] = field(default_factory=set)

    def accept(self, plan: Plan) -> bool:
        """Try the plan, unless it was tried before; keep it when it still breaks the clause."""
        if plan == self.best or self.left <= 0:
            return False
        mark = json.dumps(plan.to_json(), sort_keys=True)
        if mark in self.tried:
            return False
        self.tried.add(mark)
        self.left -= 1
        if self.still_broken(plan):
            self.best = plan
            return True
        return False

    def without(self, length: Callable[[Plan], int], cut: Callable[[Plan, int, int], Plan]) -> bool:
        """Leave out ever smaller stretches of a list, from its end; whether any went."""
        size = length(self.best)
        any_went = False
        while size:
            start = length(self.best)
            while start > 0 and self.left > 0:
                stop, start = start, max(0, start - size)
                any_went = self.accept(cut(self.best, start, stop)) or any_went
            size //= 2
        return any_went


def shrink(plan: Plan, still_broken: StillBroken, budget: int = BUDGET) -> Plan:
    """The shortest plan found within `budget` runs. `still_broken` must hold for the plan itself."""
    search = _Search(plan, still_broken, budget)
    search.without(lambda p: len(p.steps), _without_steps)
    search.accept(_short_end(search.best))
    _whole_clients_and_verbs(search)
    again = True
    while again and search.left > 0:
        again = search.without(lambda p: len(p.actions), without_actions)
        again = search.without(lambda p: len(p.listener), _without_rules) or again
        again = _smaller_bursts(search) or again
        again = _shorter_waits(search) or again
    search.accept(_only_used_clients(search.best))
    _smaller_topology(search)
    return search.best


def without_actions(plan: Plan, start: int, stop: int) -> Plan:
    """The plan without the actions start..stop-1; what later messages' rules name is renumbered."""
    return _without_places(plan, range(start, stop))


def _without_places(plan: Plan, gone: Container[int]) -> Plan:
    kept = [action for place, action in enumerate(plan.actions) if place not in gone]
    sizes = [
        (_size(action), 0 if place in gone else _size(action))
        for place, action in enumerate(plan.actions)
    ]
    return _short_end(
        replace(plan, actions=tuple(kept), listener=_renumbered(plan.listener, sizes))
    )


def _whole_clients_and_verbs(search: _Search) -> None:
    """Leave out all that one client does or suffers, then all actions of one kind."""
    for client in search.best.clients:
        places = {
            place
            for place, action in enumerate(search.best.actions)
            if client.id in _nodes_of(action)
        }
        if places:
            steps = tuple(step for step in search.best.steps if client.id not in step.nodes())
            search.accept(replace(_without_places(search.best, places), steps=steps))
    for verb in sorted({action.do for action in search.best.actions}):
        places = {place for place, action in enumerate(search.best.actions) if action.do == verb}
        search.accept(_without_places(search.best, places))


def _nodes_of(action: Action) -> set[str]:
    return {
        action.args[name]
        for name, (kind, _) in VERBS[action.do].items()
        if kind == "node" and name in action.args
    }


def _size(action: Action) -> int:
    return int(action.args["count"]) if action.do == "send" else 0


def _renumbered(
    rules: Iterable[ListenerRule], sizes: Sequence[tuple[int, int]]
) -> tuple[ListenerRule, ...]:
    """Rules for what messages are called afterwards. sizes: of each action, messages before and after."""
    names: dict[int, int] = {}
    old = new = 0
    for before, after in sizes:
        names.update({old + n: new + n for n in range(1, after + 1)})
        old, new = old + before, new + after
    kept: list[ListenerRule] = []
    for rule in rules:
        if rule.number is None:
            kept.append(rule)
        elif rule.number in names:
            kept.append(replace(rule, number=names[rule.number]))
    return tuple(kept)


def _without_rules(plan: Plan, start: int, stop: int) -> Plan:
    return replace(plan, listener=plan.listener[:start] + plan.listener[stop:])


def _without_steps(plan: Plan, start: int, stop: int) -> Plan:
    return replace(plan, steps=plan.steps[:start] + plan.steps[stop:])


def _short_end(plan: Plan) -> Plan:
    last_ms = plan.actions[-1].at_ms if plan.actions else 0
    return replace(plan, until_ms=last_ms + 1) if plan.until_ms > last_ms + 1 else plan


def _smaller_bursts(search: _Search) -> bool:
    any_went = False
    for place in reversed(range(len(search.best.actions))):
        if place < len(search.best.actions) and _size(search.best.actions[place]) > 1:
            for count in (1, _size(search.best.actions[place]) - 1):
                if search.accept(_with_count(search.best, place, count)):
                    any_went = True
                    break
    return any_went


def _with_count(plan: Plan, place: int, count: int) -> Plan:
    action = plan.actions[place]
    actions = _replaced(plan.actions, place, replace(action, args={**action.args, "count": count}))
    sizes = [(_size(old), _size(new)) for old, new in zip(plan.actions, actions, strict=True)]
    return replace(plan, actions=actions, listener=_renumbered(plan.listener, sizes))


def _replaced(items: tuple[T, ...], place: int, item: T) -> tuple[T, ...]:
    return (*items[:place], item, *items[place + 1 :])


def _shorter_waits(search: _Search) -> bool:
    """Bring an action and all that follow closer to the one before, or to the begin of the run."""
    any_went = False
    for place in range(len(search.best.actions)):
        actions = search.best.actions
        gap_ms = actions[place].at_ms - (actions[place - 1].at_ms if place else -1)
        if gap_ms > 1:
            moved = gap_ms - 1
            later = [replace(action, at_ms=action.at_ms - moved) for action in actions[place:]]
            shorter = replace(
                search.best,
                actions=(*actions[:place], *later),
                until_ms=search.best.until_ms - moved,
            )
            any_went = search.accept(shorter) or any_went
    return any_went


def _only_used_clients(plan: Plan) -> Plan:
    used = {name for action in plan.actions for name in _nodes_of(action)}
    used |= {name for step in plan.steps for name in step.nodes()}
    kept: tuple[ClientPlan, ...] = tuple(client for client in plan.clients if client.id in used)
    return replace(plan, clients=kept)


def _smaller_topology(search: _Search) -> None:
    topology = search.best.topology
    used = {
        value
        for action in search.best.actions
        for value in action.args.values()
        if isinstance(value, str)
    }
    used |= {value for step in search.best.steps for value in step.nodes()}
    brokers = tuple(name for name in topology.brokers if name in used) or topology.brokers[:1]
    search.accept(replace(search.best, topology=replace(topology, brokers=brokers)))
    for queues in (1, 2):
        fewer = tuple(replace(topic, queues=min(topic.queues, queues)) for topic in topology.topics)
        if search.accept(
            replace(search.best, topology=replace(search.best.topology, topics=fewer))
        ):
            return
