"""The page of the faults, made from their files."""

from __future__ import annotations

from collections.abc import Iterator

from specs.faults import FAULTS
from specs.plan.fault import Fault

_HEAD = """\
# Faults

Made from `specs/faults`, one file each; `python -m specs.docs` writes it.
A fault is a verb of a plan with its arguments, and the same verb in a scenario, in a case and in a machine's run.
A target can have it if it has the ability; `inorder list faults --target T` tells which of them it can.
How a fault ends, what it means for requests on their way and what shows its effect stands in its file too.
[CONTRIBUTING](../CONTRIBUTING.md) says how to add one.

| verb | befalls | needs a target that can | ended by |
|---|---|---|---|
"""


def faults_page() -> str:
    """Markdown: a table of all, then each with its story."""
    rows = "".join(
        f"| [`{fault.verb}`](#{fault.verb}) | {fault.subject} | {'; '.join(fault.abilities)} | {_end(fault)} |\n"
        for fault in FAULTS.values()
    )
    return _HEAD + rows + "".join(f"\n{section}" for section in map(_section, FAULTS.values()))


def _section(fault: Fault) -> str:
    facts = "".join(f"- {fact}\n" for fact in _facts(fault))
    return f"## {fault.verb}\n\n{fault.why}\n\n{facts}"


def _facts(fault: Fault) -> Iterator[str]:
    arguments = (
        f"`{name}` ({kind}{'' if required else ', if need be'})"
        for name, (kind, required) in fault.arguments.items()
    )
    yield f"Arguments: {', '.join(arguments)}."
    yield f"Requests on their way: {fault.requests}."
    yield f"Shown by: {' '.join((fault.attest.__doc__ or '').split())}"
    if fault.twin:
        twin = ", ".join(f"`{name}` {value}" for name, value in fault.twin.items())
        yield f"Without effect with {twin}."
    if fault.says:
        yield f"In a case: {', '.join(f'`{saying.form}`' for saying in fault.says)}."
    if fault.also:
        yield f"Also known as {', '.join(f'`{name}`' for name in fault.also)}."


def _end(fault: Fault) -> str:
    return "itself" if fault.healed_by is None else f"`{fault.healed_by}`"
