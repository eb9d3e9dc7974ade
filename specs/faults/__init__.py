"""The faults: one file each, and whoever speaks of faults reads this registry.

A new fault is a new file here; `specs.plan.fault` says what stands in it. From it come the plan's verb and its schema,
the sentences of cases, what the machine draws, what the shrinker counts, what judges excuse, what a scenario can say,
`inorder list faults` and docs/faults.md.

    perform(rig, "cut", {"a": "alice", "b": "b0"})
    perform(rig, "heal", {"a": "alice", "b": "b0"})
"""

from __future__ import annotations

import pkgutil
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import MappingProxyType, ModuleType
from typing import Any

from specs.errors import InorderError, UsageError
from specs.history.row import Row
from specs.plan.arguments import Arguments
from specs.plan.fault import Fault, Subject
from specs.plan.rig import Rig
from specs.vocabulary import Kind


class FaultFileWrong(InorderError):
    """A file of this folder is no fault: exit 70."""


def _read(module: ModuleType) -> Fault:
    said = vars(module)
    try:
        fault = Fault(
            verb=said["VERB"],
            rank=said["RANK"],
            why=(module.__doc__ or "").strip(),
            subject=said["SUBJECT"],
            arguments=MappingProxyType(said["ARGS"]),
            needs=said["NEEDS"],
            needs_of_broker=said.get("NEEDS_OF_BROKER", said["NEEDS"]),
            healed_by=said["HEALED_BY"],
            requests=said["REQUESTS"],
            twin=said.get("TWIN", {}),
            says=said["SAYS"],
            healing_says=said.get("HEALING_SAYS", ()),
            also=said.get("ALSO", ()),
            lingers_ms=said.get("LINGERS_MS", 0),
            drawn=said.get("DRAWN"),
            inject=said["inject"],
            heal=said["heal"] if said["HEALED_BY"] is not None else None,
            attest=said["attest"],
        )
    except KeyError as error:
        raise FaultFileWrong(
            f"{module.__name__} has no {error.args[0]}, which a fault needs; see specs/plan/fault.py"
        ) from None
    if not fault.why:
        raise FaultFileWrong(f"{module.__name__} does not say what it is: it has no docstring")
    return fault


def _all() -> Mapping[str, Fault]:
    modules = (
        import_module(f"{__name__}.{found.name}") for found in pkgutil.iter_modules(__path__)
    )
    ranked = sorted((_read(module) for module in modules), key=lambda fault: fault.rank)
    found: dict[str, Fault] = {}
    for fault in ranked:
        if fault.verb in found:
            raise FaultFileWrong(f"two files of specs/faults have the verb {fault.verb!r}")
        found[fault.verb] = fault
    return MappingProxyType(found)


FAULTS: Mapping[str, Fault] = _all()
"""By verb, by rank."""


def healed_by(verb: str) -> Sequence[Fault]:
    """The faults that the verb ends, by rank."""
    return tuple(fault for fault in FAULTS.values() if fault.healed_by == verb)


HEALINGS: Mapping[str, Fault] = MappingProxyType(
    {fault.healed_by: fault for fault in FAULTS.values() if fault.healed_by is not None}
)
"""The verbs that end faults, each with the last fault that it ends: all of these are ended in one way."""


def verbs(*subjects: Subject) -> Mapping[str, Arguments]:
    """The verbs of the faults that befall one of these, each healing verb behind the last fault that it ends."""
    found: dict[str, Arguments] = {}
    for fault in FAULTS.values():
        if fault.subject in subjects:
            found[fault.verb] = fault.arguments
            if fault.healed_by is not None and HEALINGS[fault.healed_by] is fault:
                found[fault.healed_by] = fault.healing_arguments
    return found


def named(name: str) -> Fault | None:
    """The fault of that verb, or of another name that it is known by."""
    return next((fault for fault in FAULTS.values() if name in fault.names), None)


def lingers_us(row: Row) -> int:
    """How long after its end the fault of such a row may be felt, in µs: 0 for most, and for what is no fault."""
    words = (row.detail or "").split(maxsplit=1) if row.kind is Kind.FAULT else []
    fault = named(words[0]) if words else None
    return 0 if fault is None else fault.lingers_ms * 1000


def perform(rig: Rig, verb: str, args: Mapping[str, Any]) -> bool:
    """Do a fault, or what ends it; False for a verb that is neither. Raises UsageError where the rig can't.

    A fault of a client does nothing to a broker, nor the other way round.
    """
    fault = FAULTS.get(verb) or HEALINGS.get(verb)
    if fault is None:
        return False
    of_broker = any(args[name] in rig.brokers for name in fault.nodes)
    if fault.subject is not Subject.LINK and not fault.fits(is_broker=of_broker):
        return True
    alike = (fault,) if verb in FAULTS else healed_by(verb)
    needs = {each.ability(of_broker=of_broker): None for each in alike}
    if not any(need in rig.abilities for need in needs):
        raise UsageError(
            f"the action {verb!r} needs a target that can {' or '.join(needs)}; this one can't"
        )
    rig.verb = verb
    if verb in FAULTS:
        fault.inject(rig, **args)
    elif fault.heal is not None:
        fault.heal(rig, **args)
    return True
