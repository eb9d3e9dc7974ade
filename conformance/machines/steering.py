"""What puts a clause at stake: the ingredients of a run, and which of them each clause wants.

An ingredient says what the cluster machine draws from instead of all that it knows: which values of which arguments,
and which of its rules. The machine stays as it is, and its runs can still be anything that a user's cluster may meet;
but where a clause speaks of, say, a ROLLBACK in manual mode, hardly one ordinary run in twenty has one after a message
that was taken before, and of these runs most do.

It says nothing about what a judge looks at: a row of `WANTS` is only worth its place as long as its ingredients raise
how often the clause is at stake, and a test measures that. A clause without a row gets ordinary runs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from inspect import getmembers
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import INITIALIZE_RULE_MARKER, RULE_MARKER, initialize, precondition, rule

from conformance.machines.cluster import KEYS, PRODUCERS, ClusterMachine
from specs.faults import cut, hold

Draws = Mapping[str, Mapping[str, tuple[Any, ...]]]
"""By rule and argument: the values to draw from."""


@dataclass(frozen=True, slots=True)
class Ingredient:
    """draws: what some rules (`begin` is one) draw from instead. rules: those that are left; none: all of them."""

    draws: Draws = field(default_factory=dict)
    rules: tuple[str, ...] = ()


WORK = ("send_work", "pass_time")
"""Without messages and time next to nothing is at stake."""


def with_trouble(*troubles: str, **begin: tuple[Any, ...]) -> Draws:
    """Bursts whose second message meets one of these, from the beginning on."""
    return {
        "begin": {"trouble": troubles, "keys": (2, 3, 4), **begin},
        "send_work": {"trouble": troubles, "keys": (2, 3, 4)},
    }


INGREDIENTS: Mapping[str, Ingredient] = {
    "bursts": Ingredient(rules=WORK),
    "many lanes": Ingredient({"begin": {"brokers": (2,), "queues": (3, 4), "keys": (4,)}}),
    "one thread": Ingredient(
        {"begin": {"threads": (1,), "effort": ("heavy",)}, "send_work": {"effort": ("heavy",)}}
    ),
    "handovers": Ingredient({"begin": {"members": (2, 3)}}, (*WORK, "hand_over", "join_or_leave")),
    "clean leaves": Ingredient(
        {
            "begin": {"members": (2, 3), "effort": ("steady", "heavy")},
            "hand_over": {"how": ("stop",)},
            "join_or_leave": {"how": ("stop",)},
        },
        (*WORK, "hand_over", "join_or_leave"),
    ),
    "lost leases": Ingredient(
        {
            "begin": {
                "members": (2, 3),
                "queues": (3, 4),
                "keys": (3, 4),
                "effort": ("steady", "heavy"),
            },
            "cut_off_at_work": {
                "kind": (cut.VERB, hold.VERB),
                "limit": ("client", "broker"),
                "other": (True,),
            },
            "stand_still": {
                "who": ("c1", "c2", "c3"),
                "limit": ("client", "broker"),
                "beyond_ms": (1, 400),
            },
        },
        (*WORK, "cut_off_at_work", "errors_at_work", "stand_still", "hand_over"),
    ),
    "broker restarts": Ingredient(rules=(*WORK, "restart_broker")),
    "strangers": Ingredient({"contend": {"stranger": (True,)}}, (*WORK, "contend")),
    "ends of a lease": Ingredient(
        {"ask_at_the_limit": {"beyond_ms": ([0, 1, 2], [1, 1, 0])}},
        (*WORK, "ask_at_the_limit", "contend"),
    ),
    "resets": Ingredient(rules=(*WORK, "reset_in_flight")),
    "a lane at rest": Ingredient(
        {
            "begin": {"threads": (20,), "queues": (3, 4), "members": (1,), "limit": (1, 2, -1)},
            "let_one_rest": {"rounds": (2,)},
        },
        (*WORK, "let_one_rest"),
    ),
    "given up": Ingredient(
        with_trouble("poison", "poison by default", limit=(0, 1, 2), batch=(1,), manual=(False,)),
        WORK,
    ),
    "given up in vain": Ingredient(with_trouble("given up in vain", limit=(0, 1, 2)), WORK),
    "batches to a call": Ingredient(
        with_trouble("poison", "given up in vain", batch=(2,), limit=(0, 1)), WORK
    ),
    "failures": Ingredient(with_trouble("throw", "null"), WORK),
    "rollbacks in manual mode": Ingredient(
        with_trouble("rolled back", manual=(True,), limit=(1, 2, -1)), WORK
    ),
    "suspended for long": Ingredient(with_trouble("suspended for long", "default")),
    "refused in the middle of a key": Ingredient(
        {
            "begin": {"brokers": (1,)},
            "fill_disk": {
                "producer": PRODUCERS[:1],
                "key": KEYS[:2],
                "count": (2, 3, 4),
                "full_ms": (5, 100),
            },
            "send": {"producer": PRODUCERS[:1], "key": KEYS[:2]},
        },
        (*WORK, "fill_disk", "send"),
    ),
    "half messages": Ingredient(rules=(*WORK, "send_half")),
    "delayed messages": Ingredient(rules=(*WORK, "send_delayed")),
    "a filter by tags": Ingredient({"begin": {"subscription": ("Aa || red",), "keys": (3, 4)}}),
}

WANTS: Mapping[str, tuple[str, ...]] = {
    "ORD-4": ("many lanes", "clean leaves"),
    "ORD-6": ("a lane at rest",),
    "ORD-13": ("many lanes", "handovers"),
    "ORD-14": ("many lanes", "clean leaves"),
    "ORD-16": ("many lanes", "clean leaves"),
    "LSE-2": ("lost leases",),
    "LSE-5": ("many lanes", "handovers"),
    "LSE-6": ("ends of a lease",),
    "LSE-8": ("strangers",),
    "LSE-14": ("many lanes", "handovers"),
    "LSE-15": ("many lanes", "clean leaves"),
    "LSE-16": ("many lanes", "clean leaves"),
    "RTY-5": ("given up",),
    "RTY-6": ("a lane at rest",),
    "RTY-7": ("failures",),
    "RTY-9": ("rollbacks in manual mode",),
    "RTY-11": ("many lanes", "suspended for long", "handovers"),
    "DLQ-1": ("given up",),
    "DLQ-2": ("given up",),
    "DLQ-3": ("given up",),
    "DLQ-4": ("batches to a call",),
    "DLQ-5": ("batches to a call",),
    "DLQ-6": ("given up in vain",),
    "DLQ-7": ("batches to a call",),
    "DLQ-8": ("batches to a call",),
    "DLQ-9": ("given up",),
    "DLQ-10": ("batches to a call",),
    "CMT-5": ("many lanes", "clean leaves"),
    "CMT-6": ("many lanes", "clean leaves"),
    "CMT-7": ("many lanes", "handovers", "broker restarts"),
    "CMT-9": ("many lanes", "handovers"),
    "CMT-11": ("resets", "broker restarts"),
    "CMT-13": ("many lanes", "clean leaves"),
    "SND-3": ("refused in the middle of a key",),
    "SND-4": ("refused in the middle of a key",),
    "SND-5": ("bursts",),
    "SND-6": ("half messages",),
    "SND-7": ("delayed messages",),
    "SND-8": ("a filter by tags",),
    "SND-9": ("refused in the middle of a key",),
    "LIV-3": ("many lanes", "one thread", "handovers"),
}
"""By clause. Those without a row are at stake often enough in ordinary runs."""

MIXTURES = tuple(dict.fromkeys(WANTS.values()))
"""Each mixture of ingredients that some clause wants, once."""


def ingredients_for(clause: str) -> tuple[str, ...]:
    """What a run should have in which the clause is to be at stake; nothing where ordinary runs have to do."""
    return WANTS.get(clause, ())


def steered(machine: type[ClusterMachine], names: Iterable[str]) -> type[ClusterMachine]:
    """The machine that draws from these ingredients: their values, the later ones first, and the rules of all."""
    chosen = [INGREDIENTS[name] for name in names]
    if not chosen:
        return machine
    draws: dict[str, dict[str, st.SearchStrategy[Any]]] = {}
    for each in chosen:
        for name, arguments in each.draws.items():
            draws.setdefault(name, {}).update(
                {key: st.sampled_from(values) for key, values in arguments.items()}
            )
    left = {name for each in chosen for name in each.rules}
    members: dict[str, Any] = {}
    for name, member in getmembers(machine):
        begins, does = (
            getattr(member, INITIALIZE_RULE_MARKER, None),
            getattr(member, RULE_MARKER, None),
        )
        if does is not None and left and name not in left:
            members[name] = None
        elif name in draws:
            members[name] = _drawn_anew(
                initialize if does is None else rule, does or begins, draws[name]
            )
    return type(machine.__name__, (machine,), members)


def _drawn_anew(
    mark: Callable[..., Any], before: Any, draws: Mapping[str, st.SearchStrategy[Any]]
) -> Any:
    """The same rule under the same preconditions, with some of its arguments drawn from elsewhere."""
    again = mark(**{**before.arguments, **draws})(before.function)
    for condition in before.preconditions:
        again = precondition(condition)(again)
    return again
