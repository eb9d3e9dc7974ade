"""A page for each clause, that a report can link to, and their index by family.

A page fits a screen: the promise, what is checked, the shortest violation and a lookalike, who promises it. The other
examples are in the transcript beside the clause's file, which the page names.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache

from specs.clauses.catalogue import FAMILIES, catalogue, everything
from specs.clauses.clause import Clause, Promise
from specs.clauses.transcript import Expected
from specs.docs.tables import GENERATED, table
from specs.history.text import parse_history
from specs.links import clause_page
from specs.model.rules import RULES, WireRule
from specs.profiles import Profile, load, names
from specs.verdicts.examine import examine
from specs.vocabulary import Kind

_FOLDERS = dict(zip(Promise.FAMILIES, FAMILIES, strict=False))
_ANSWERS = "answers of a broker"
_CLAIMED = "claimed"
_STATUS = {"allowed": "allowed", "not_applicable": "not claimed"}


def clause_pages() -> Mapping[str, Callable[[], str]]:
    """Path → what makes the page, of every clause and of every wire rule that is no clause's facet."""
    return {_path(each.id): _maker(each) for each in everything()}


def _maker(each: Promise | WireRule) -> Callable[[], str]:
    return lambda: _rule_page(each) if isinstance(each, WireRule) else _page(each)


def _path(clause_id: str) -> str:
    path = clause_page(clause_id)
    assert path is not None, clause_id
    return path


def index_page() -> str:
    """`docs/clauses.md`: a line for each clause, by family."""
    parts = [
        GENERATED,
        "# The clauses",
        "",
        "Each clause is one file in `specs/clauses/`, and has a page: the promise, who keeps it, under which premises "
        "it is claimed, what is checked, the shortest history that breaks it, one that only looks so, and which "
        "profiles claim it.",
        "What counts as *finished* and what the other words mean is said in the [glossary](glossary.md) and in "
        "[history](history.md).",
        "Their table for programs is `inorder list clauses --format json`.",
        "",
    ]
    for prefix, family in Promise.FAMILIES.items():
        of_it = [each for each in catalogue() if each.family == prefix]
        if of_it:
            parts += [f"## {prefix}: {family}", "", _index(of_it)]
    rules = [each for each in everything() if isinstance(each, WireRule)]
    told = "A raw client holds these against each answer while a run goes on; no row of a history shows them."
    parts += [f"## WIR: {_ANSWERS}", "", told, "", _index(rules)]
    parts += [
        "## Who promises what",
        "",
        "A [profile](profiles.md) says of each clause whether a product promises it; what it *allows* is found and "
        "reported, and does not fail a run.",
        "",
        table(("profile", "of", "claimed", "allowed", "not claimed"), map(_counted, names())),
    ]
    return "\n".join(parts)


def _index(promises: Iterable[Promise | WireRule]) -> str:
    return table(
        ("clause", "in short", "promise", "kept by"),
        (
            (
                f"[{each.id}]({_path(each.id).removeprefix('docs/')})",
                each.title,
                each.statement,
                "broker" if isinstance(each, WireRule) else each.party.value,
            )
            for each in promises
        ),
    )


def _counted(name: str) -> tuple[str, ...]:
    profile = load(name)
    of_all: list[str] = [profile.claim(clause.id).status for clause in catalogue()]
    counts = (str(of_all.count(status)) for status in (_CLAIMED, *_STATUS))
    return f"[`{name}`](../specs/profiles/{name}.toml)", profile.title, *counts


# ------------------------------------------------------------------------------------------- one page


def _page(clause: Promise) -> str:
    return "\n".join(
        [
            *_head(clause.id, clause.title, clause.statement),
            *(f"- {fact}" for fact in _facts(clause)),
            "",
            "## What is checked",
            "",
            clause.doc,
            "",
            *(_examples(clause) if isinstance(clause, Clause) else ()),
            *_who_promises(clause),
        ]
    )


def _rule_page(rule: WireRule) -> str:
    """A wire rule that stands for itself."""
    return "\n".join(
        [
            *_head(rule.id, rule.title, rule.statement),
            "- Kept by: broker.",
            f"- Source: {_source(rule.source)}.",
            *(
                (f"- Which answer is right is the profile's to say: `{rule.dialect}`.",)
                if rule.dialect
                else ()
            ),
            "",
            "A wire rule: a raw client asks, and holds each answer against an abstract broker "
            "([machines](../machines.md)) in the moment in which it comes.",
            "",
        ]
    )


def _head(clause_id: str, title: str, statement: str) -> list[str]:
    above = "[All clauses](../clauses.md), [the words](../glossary.md)."
    return [GENERATED, f"# {clause_id} {title}", "", f"**{statement}**", "", above, ""]


def _facts(clause: Promise) -> Iterator[str]:
    judged_for = ""
    if isinstance(clause, Clause):
        judged_for = f" Judged for each: {clause.key.value.replace('_', ' ')}."
    yield f"Kept by: {clause.party.value}.{judged_for}"
    yield from (f"Premise, {premise.name}: {premise.text}." for premise in clause.premise)
    yield f"Sources: {', '.join(_source(source) for source in clause.sources)}."
    if clause.rules:
        also = ", ".join(f"{rule} ({RULES[rule].title})" for rule in clause.rules)
        yield f"Also called, where it is asked on the wire: {also}."
    if isinstance(clause, Clause):
        yield from _rests_on(clause)
    if clause.stakes:
        yield f"At stake only with {', and '.join(stake.trait for stake in clause.stakes)}."
    if clause.refines:
        yield f"A special case of {', '.join(f'[{each}]({each}.md)' for each in clause.refines)}."
    if clause.vectors:
        yield f"Held against a table: [{clause.vectors}](../../specs/vectors/{clause.vectors})."
    yield f"Its file: {_file(clause, '.py')}."


def _file(clause: Promise, ending: str) -> str:
    path = f"specs/clauses/{_FOLDERS[clause.family]}/{clause.name}{ending}"
    return f"[{path}](../../{path})"


def _rests_on(clause: Clause) -> Iterator[str]:
    """What a history must hold for it, and what leaves a finding open ([soundness](soundness.md))."""
    yield f"Needs rows of: {_kinds(clause.needs)}."
    if clause.excuses:
        yield f"Could be excused by rows of: {_kinds(clause.excuses)}."
    if clause.absence:
        yield "Concludes from what nobody else did: at most possible in an open world."
    yield f"Finds: {', '.join(f'`{name}`' for name in clause.findings)}."


def _kinds(kinds: Iterable[Kind]) -> str:
    return ", ".join(f"`{kind}`" for kind in sorted(kinds))


_HEADS = {
    Expected.BROKEN: "The shortest violation",
    Expected.KEPT: "A lookalike, and no violation",
}


def _examples(clause: Clause) -> Iterator[str]:
    for expected, head in _HEADS.items():
        found = next((each for each in clause.examples if each.expected is expected), None)
        if found is None:
            continue
        why = found.why[:1].upper() + found.why[1:]
        yield from (f"## {head}", "", f"{why}.", "", "```", found.text.strip("\n"), "```", "")
        if expected is Expected.BROKEN:
            info, rows = parse_history(found.text)
            yield from (f"> {examine(rows, info, (clause,)).tallies[clause.id].explanation}.", "")
    whole = f"All {len(clause.examples)} examples: {_file(clause, '.txt')}"
    yield f"{whole}, in the [notation](../history.md#text-notation)."
    yield ""


def _who_promises(clause: Promise) -> Iterator[str]:
    """Which profiles claim it; the others with their reason, those of one reason in one line."""
    claimed = [each for each in _profiles() if each.claim(clause.id).status == _CLAIMED]
    yield "## Who promises it"
    yield ""
    yield f"Claimed by {_named(claimed)}." if claimed else "No profile claims it."
    alike: dict[tuple[str, str], list[Profile]] = {}
    for profile in _profiles():
        claim = profile.claim(clause.id)
        if claim.status != _CLAIMED:
            alike.setdefault((_STATUS[claim.status], claim.reason), []).append(profile)
    if alike:
        yield ""
    for (status, reason), profiles in sorted(alike.items(), key=lambda each: each[0][0]):
        yield f"- {status[:1].upper()}{status[1:]} by {_named(profiles)}: {reason}."
    yield ""


@cache
def _profiles() -> tuple[Profile, ...]:
    return tuple(load(name) for name in names())


def _named(profiles: Iterable[Profile]) -> str:
    return ", ".join(f"`{each.name}`" for each in profiles)


def _source(source: str) -> str:
    page, _, anchor = source.removeprefix("docs/").partition("#")
    return f"[{anchor.replace('-', ' ')}](../{page}#{anchor})"
