"""`inorder list WHAT`: clauses, profiles, targets, scenarios, faults, mutants, cases or recipes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.metadata import entry_points
from typing import Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from conformance.cli import completion
from conformance.cli.options import JSON, format_option, print_human, print_json
from conformance.cli.people import about, console, put
from conformance.importing import mapping
from conformance.reports.saving import check
from conformance.reports.schemas import LIST_SCHEMA
from conformance.targets.base import find
from specs import glossary, profiles
from specs.clauses.catalogue import everything
from specs.clauses.clause import Clause
from specs.errors import InorderError, UsageError
from specs.faults import FAULTS
from specs.model.rules import WireRule
from specs.plan.ability import Ability

LISTS_GROUP = "inorder.lists"
TARGETS_GROUP = "inorder.targets"
Item = Mapping[str, Any]


class ListUnavailable(InorderError):
    """The part that knows a list can't be imported."""


def clauses() -> Iterable[Item]:
    """Every clause, in catalogue order, with what judges it, its mutants and the cases that they fail.

    The mutants of a clause are those that name it, and those that name one of its facets, a wire rule. Behind the
    clauses stand the wire rules that are no clause's facet.
    """
    from reference_impl.mutants import every_mutant

    failing = _cases_by_mutant()
    mutants = sorted(every_mutant(), key=lambda mutant: mutant.name)
    for clause in everything():
        ids = (clause.id, *(() if isinstance(clause, WireRule) else clause.rules))
        killed = [mutant.name for mutant in mutants if mutant.killed_by in ids]
        its_cases = sorted({case for name in killed for case in failing.get(name, ())})
        if isinstance(clause, WireRule):
            yield {**_of_a_rule(clause), "mutants": killed, "cases": its_cases}
            continue
        yield {
            "id": clause.id,
            "name": clause.name,
            "title": clause.title,
            "family": clause.FAMILIES[clause.family],
            "party": clause.party.value,
            "statement": clause.statement,
            "judge": list(clause.judged_by),
            "key": clause.key.value if isinstance(clause, Clause) else None,
            "rules": list(clause.rules),
            "vectors": clause.vectors,
            "premises": [premise.name for premise in clause.premise],
            "findings": list(clause.findings) if isinstance(clause, Clause) else [],
            "needs": sorted(clause.needs) if isinstance(clause, Clause) else [],
            "concludes_from_absence": isinstance(clause, Clause) and clause.absence,
            "refines": list(clause.refines),
            "sources": list(clause.sources),
            "mutants": killed,
            "cases": its_cases,
        }


def _of_a_rule(rule: WireRule) -> Item:
    """A wire rule that stands for itself, as a clause is listed."""
    return {
        "id": rule.id,
        "name": rule.name,
        "title": rule.title,
        "family": "answers of a broker",
        "party": "broker",
        "statement": rule.statement,
        "judge": ["wire"],
        "key": None,
        "rules": [rule.id],
        "vectors": None,
        "premises": [],
        "findings": [],
        "needs": [],
        "concludes_from_absence": False,
        "refines": [],
        "sources": [rule.source],
    }


def known_profiles() -> Iterable[Item]:
    """The profiles that come with the project."""
    for name in profiles.names():
        profile = profiles.load(name)
        claims = profile.claims.values()
        yield {
            "name": name,
            "title": profile.title,
            "claimed": sum(claim.status == "claimed" for claim in claims),
            "allowed": sum(claim.status == "allowed" for claim in claims),
            "not_applicable": sum(claim.status == "not_applicable" for claim in claims),
        }


def targets() -> Iterable[Item]:
    """The registered targets, with what their factories say of themselves."""
    for entry in sorted(entry_points(group=TARGETS_GROUP), key=lambda entry: entry.name):
        try:
            doc = entry.load().__doc__ or ""
        except (ImportError, AttributeError) as error:
            yield {"name": entry.name, "why": "", "available": False, "reason": str(error)}
        else:
            yield {"name": entry.name, "why": about(doc), "available": True, "reason": ""}


def mutants() -> Iterable[Item]:
    """The mutants of the reference, each with the clause or wire rule that must catch it.

    oracle: `history` for those that a cluster's history shows (targets `mutant:NAME`), `model` for those that only
    the answers of a broker show, `vectors` for those that a table does.
    """
    from reference_impl.mutants import every_mutant

    failing = _cases_by_mutant()
    for mutant in sorted(every_mutant(), key=lambda mutant: mutant.name):
        yield {
            "name": mutant.name,
            "oracle": mutant.oracle,
            "killed_by": mutant.killed_by,
            "bug": mutant.bug,
            "source": mutant.source,
            "cases": failing.get(mutant.name, []),
        }


def _cases_by_mutant() -> Mapping[str, list[str]]:
    """The cases that say of a mutant that it fails them."""
    from conformance.cases.folder import all_cases

    found: dict[str, list[str]] = {}
    for case in all_cases():
        for name in case.mutants:
            found.setdefault(name, []).append(case.name)
    return found


def cases() -> Iterable[Item]:
    """The text cases, each with the sentence that says why it is there and the mutants that fail it."""
    from conformance.cases.folder import all_cases

    for case in all_cases():
        yield {
            "name": case.name,
            "topic": case.path.parent.name,
            "file": case.path.name,
            "why": case.why,
            "mutants": list(case.mutants),
        }


def known_faults(target: str | None = None) -> Iterable[Item]:
    """The faults. target: whether that one can have each done to it, and which abilities it lacks for it."""
    found = None if target is None else find(target)
    has = None if found is None else found.abilities
    hindered = {} if found is None else found.hindered
    for fault in FAULTS.values():
        needs = fault.abilities
        lacks = [need for need in needs if has is not None and need not in has]
        yield {
            "name": fault.verb,
            "why": _first_line(fault.why),
            "befalls": fault.subject.value,
            "arguments": {name: kind for name, (kind, _) in fault.arguments.items()},
            "needs": [need.value for need in needs],
            "healed_by": fault.healed_by,
            "also": list(fault.also),
            **(
                {}
                if has is None
                else {"available": len(lacks) < len(needs), "reason": _cant(lacks, hindered)}
            ),
        }


def _cant(lacks: Sequence[Ability], hindered: Mapping[Ability, str]) -> str:
    """hindered: what could be done elsewhere, with why not here."""
    return "; ".join(
        f"can't {lack}{f' here: {hindered[lack]}' if lack in hindered else ''}" for lack in lacks
    )


def _elsewhere(name: str) -> Callable[[], Iterable[Item]]:
    """A list that another part registers in `inorder.lists`."""

    def items() -> Iterable[Item]:
        for entry in entry_points(group=LISTS_GROUP, name=name):
            try:
                found: Iterable[Item] = entry.load()()
            except (ImportError, AttributeError) as error:
                raise ListUnavailable(
                    f"the list of {name} can't be loaded from {entry.value}: {error}"
                ) from error
            return found
        raise UsageError(f"no installed part knows {name}")

    return items


def known_recipes() -> Iterable[Item]:
    """The maps for `inorder import` that come with the project, each with what it is for."""
    return [{"name": name, "why": mapping.why(name)} for name in mapping.recipes()]


def words() -> Iterable[Item]:
    """The words of reports, histories and clauses."""
    return [{"name": word.name, "meaning": word.plain} for word in glossary.words()]


LISTS: dict[str, Callable[[], Iterable[Item]]] = {
    "clauses": clauses,
    "profiles": known_profiles,
    "targets": targets,
    "mutants": mutants,
    "cases": cases,
    "faults": known_faults,
    "recipes": known_recipes,
    "words": words,
}
LISTS |= {
    name: _elsewhere(name)
    for name in sorted(entry_points(group=LISTS_GROUP).names)
    if name not in LISTS
}
_SHOWN: dict[str, Sequence[str]] = {
    "clauses": ("id", "party", "statement", "findings"),
    "profiles": ("name", "claimed", "allowed", "title"),
    "targets": ("name", "why"),
    "mutants": ("name", "killed_by", "bug"),
    "faults": ("name", "befalls", "why"),
    "words": ("name", "meaning"),
}
_FAULTS_OF_A_TARGET = ("name", "possible", "why")
_SHOWN_ELSEWHERE = ("name", "why")


@click.command(name="list")
@click.argument("what", type=click.Choice(list(LISTS)))
@click.option(
    "--target",
    metavar="T",
    shell_complete=completion.target,
    help="Of faults: which of them this target can have, and what it lacks.",
)
@format_option()
def command(what: str, target: str | None, form: str) -> int:
    """List what there is: a table for people, in a pipe one item a line. JSON: inorder/list/v1."""
    if target is not None and what != "faults":
        raise UsageError(
            f"--target is for `inorder list faults`; the list of {what} is one for all"
        )
    items = [dict(item) for item in (LISTS[what]() if target is None else known_faults(target))]
    columns = _SHOWN.get(what, _SHOWN_ELSEWHERE)
    if target is not None:
        columns = _FAULTS_OF_A_TARGET
    if form == JSON:
        data = {"schema": LIST_SCHEMA, "items": items}
        check(data, LIST_SCHEMA)
        print_json(data)
    elif console().is_terminal:
        print_human(_table(items, columns))
    else:
        put("\n".join(_lines(items, columns)))
    return 0


def _lines(items: Sequence[Item], columns: Sequence[str]) -> list[str]:
    """A line for each item, however long: what reads it may look for words in it."""
    rows = [[" ".join(_cell(item, column).split()) for column in columns] for item in items]
    widths = [max((len(row[index]) for row in rows), default=0) for index in range(len(columns))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]


def _table(items: Sequence[Item], columns: Sequence[str]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column.replace("_", " "), no_wrap=index == 0)
    for item in items:
        table.add_row(*(Text(_cell(item, column)) for column in columns))
    return table


def _cell(item: Item, column: str) -> str:
    value = item.get(column, "")
    if column == "possible":
        reason = item["reason"] or "yes"
        return f"in part: {reason}" if item["available"] and item["reason"] else reason
    if column == "why" and item.get("available") is False and not item.get("why"):
        return f"not available: {item.get('reason')}"
    return ", ".join(value) if isinstance(value, list) else str(value)


def _first_line(doc: str) -> str:
    return doc.strip().splitlines()[0] if doc.strip() else ""
