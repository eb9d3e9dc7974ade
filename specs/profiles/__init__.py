"""Profiles: which clauses a product promises in which mode and version, and where that is said.

A profile is a TOML file; those of this folder are known by name, others by path. It starts with the lines of the
profile that it `extends`; a line of `[families]` speaks for all clauses of a family, and a line of `[clauses]` for
one, whatever its family's line says (docs/profiles.md); one of `[rules]` excuses a wire rule. The word "claimed" in
place of a line takes the source from the clause, so a new clause of a family that is claimed needs no line at all.
Detection is apart from policy: clauses find every anomaly, profiles say what counts.
"""

from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any, Literal

from specs.clauses.catalogue import all_ids, catalogue
from specs.clauses.clause import Clause, Promise
from specs.documents import from_toml_of, text_in
from specs.errors import SpecError
from specs.model.rules import RULES
from specs.plan.config import CHOICES
from specs.vocabulary import Party

Status = Literal["claimed", "allowed", "not_applicable"]
_STATUSES: tuple[Status, ...] = ("claimed", "allowed", "not_applicable")

WIRE_ANSWERS: Mapping[str, tuple[object, ...]] = {
    "queue_out_of_range_code": (29, 1),
    "commit_unknown_group_code": (26, 0),
    "commit_unknown_topic_code": (17, 0),
    "empty_queue_offset_query": ("not_found", "zero"),
    "retry_send_diverts_under_live_lock": (True, False),
    "dead_letter_waits_for_delay_level": (True, False),
}
"""What a profile's [wire] table may say: the answers that differ between versions (docs/sources.md#versions)."""
ANY = "any"
"""In place of a [wire] answer: the profile does not say; what the profile it extends says is taken back."""
KNOWN = ("extends", "title", "mode", "message_model", "families", "clauses", "rules", "wire")
"""The entries of a profile."""
AS_THE_CLAUSE_SAYS = "claimed"
"""In place of a line: promised, and the source is the first one that the clause itself names."""
BESIDE = " + "
BY_BROKER = ("DLQ-1", "DLQ-4")
"""Promises of client and broker together whose deviations in our profiles are the broker's: how it stores what it is
sent as given up (docs/sources.md#dead-letters)."""
OF_THE_CLIENT: Mapping[str, frozenset[str]] = {"DLQ-1": frozenset({"passed-by"})}
"""Findings of such a promise that are the client's own doing whatever the broker does: it never sent the message."""
AT_ODDS: tuple[tuple[str, str, object], ...] = (
    ("DLQ-7", "dead_letter_waits_for_delay_level", True),
)
"""Which clause can't be claimed beside which [wire] answer."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One line of a profile. reason: why a deviation is allowed, or why the clause does not apply.

    findings: of an allowance, the public names of the findings that it is about; every other one of the clause stays
    refuted. None named: all of them, which hides news (a user's own profile may; those of the project may not).
    """

    status: Status
    source: str
    reason: str = ""
    findings: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Profile:
    """A profile. wire: the answers that differ between versions, by the name of the wire rule.

    mode, message_model: how the groups consume that it speaks about; a target that we build ourselves works so.
    rules: the wire rules of which it says anything; every other is claimed, as far as [wire] names its answer.
    """

    name: str
    title: str
    claims: Mapping[str, Claim]
    wire: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "orderly"
    message_model: str = "clustering"
    rules: Mapping[str, Claim] = field(default_factory=dict)

    @property
    def config(self) -> Mapping[str, str]:
        """What it says of a plan's configuration."""
        return {"mode": self.mode, "message_model": self.message_model}

    @property
    def spoken_of(self) -> tuple[str, ...]:
        """The clauses that it claims or allows to be broken."""
        return tuple(
            name for name, claim in self.claims.items() if claim.status != "not_applicable"
        )

    @property
    def bare(self) -> tuple[str, ...]:
        """The clauses that it allows without naming the finding: whatever else breaks them is hidden too.

        Not those that no history decides: there is no finding that could be named.
        """
        bare = {
            name
            for name, claim in self.claims.items()
            if claim.status == "allowed" and not claim.findings
        }
        return tuple(
            promise.id
            for promise in catalogue()
            if promise.id in bare and isinstance(promise, Clause)
        )

    def claim(self, clause_id: str) -> Claim:
        """A clause that the profile does not name is not applicable."""
        return self.claims.get(
            clause_id, Claim("not_applicable", "", "the profile does not name it")
        )


def names() -> tuple[str, ...]:
    """The profiles that come with the project."""
    folder = resources.files(__name__)
    return tuple(
        sorted(
            entry.name[: -len(".toml")]
            for entry in folder.iterdir()
            if entry.name.endswith(".toml")
        )
    )


def load(name: str) -> Profile:
    """A profile by name or by path; `A + B`: brokers as in A with clients as in B (see `beside`).

    `A + B + C`: with clients as in B and clients as in C in one group (see `mixed`). Raises SpecError (exit 64) for an
    unknown one or one that is wrong.
    """
    broker, *clients = (_load(each, ()) for each in name.split(BESIDE))
    return beside(broker, functools.reduce(mixed, clients)) if clients else broker


def bare_of_its_own(profile: Profile) -> tuple[str, ...]:
    """The clauses that its file allows without naming the finding: not those of which the project says the same."""
    if not profile.bare:
        return ()
    ours = [load(name) for name in names()]
    return tuple(
        clause
        for clause in profile.bare
        if all(profile.claim(clause) != own.claim(clause) for own in ours)
    )


def beside(broker: Profile, client: Profile) -> Profile:
    """What is promised where a broker of one product serves clients of another.

    A promise of brokers is the broker's profile's, one of clients and producers the clients' own. One that both keep
    together is promised as far as the weaker of the two does, save those in BY_BROKER, of which the clients' profile
    may allow what is in OF_THE_CLIENT. Answers on the wire are the broker's; the mode is the clients'.
    """
    claims: dict[str, Claim] = {}
    for promise in catalogue():
        theirs, own = broker.claim(promise.id), client.claim(promise.id)
        if promise.party is Party.BROKER or promise.id in BY_BROKER:
            claims[promise.id] = _with_the_clients(promise.id, theirs, own)
        elif promise.party is Party.PAIR:
            claims[promise.id] = _weaker(theirs, own)
        else:
            claims[promise.id] = own
    name = f"{broker.name}{BESIDE}{client.name}"
    title = f"{client.title}, on brokers as in: {broker.title}"
    return Profile(
        name, title, claims, broker.wire, client.mode, client.message_model, broker.rules
    )


def mixed(one: Profile, other: Profile) -> Profile:
    """What is promised where clients as in one profile and clients as in another are members of one group.

    Each promise as far as the weaker of the two does.
    """
    claims = {
        promise.id: _weaker(one.claim(promise.id), other.claim(promise.id))
        for promise in catalogue()
    }
    title = f"{one.title}, in one group with: {other.title}"
    return replace(one, name=f"{one.name}{BESIDE}{other.name}", title=title, claims=claims)


def _weaker(one: Claim, other: Claim) -> Claim:
    """The line that promises less; of two that allow findings by name, all of these."""
    weaker = max(one, other, key=lambda claim: _STATUSES.index(claim.status))
    if one.status == other.status == "allowed" and one.findings and other.findings:
        return replace(weaker, findings=tuple(sorted({*one.findings, *other.findings})))
    return weaker


def _with_the_clients(clause_id: str, broker: Claim, client: Claim) -> Claim:
    """A broker's line, with what the client's allows, where that names its own doing and nothing else."""
    own = set(client.findings)
    hides = broker.status == "allowed" and not broker.findings
    if (
        not own
        or not own <= OF_THE_CLIENT.get(clause_id, frozenset())
        or broker.status == "not_applicable"
        or hides
    ):
        return broker
    return replace(client, findings=tuple(sorted(own.union(broker.findings))))


def _load(name: str, children: tuple[str, ...]) -> Profile:
    if name in children:
        raise SpecError(f"profile {children[0]} extends itself: {' → '.join((*children, name))}")
    if name in names():
        text = (resources.files(__name__) / f"{name}.toml").read_text(encoding="utf-8")
    else:
        path = Path(name)
        if not path.is_file():
            known = f"known are {', '.join(names())}, or give a file"
            raise SpecError(f"there is no profile {name}; {known}")
        text = text_in(path, error=SpecError, name=f"profile {name}")
    data = from_toml_of(text, f"profile {name}", SpecError)
    return _profile(name, data, (*children, name))


def _table(name: str, data: Mapping[str, Any], table: str) -> Mapping[str, Any]:
    found = data.get(table, {})
    if not isinstance(found, dict):
        raise SpecError(f"profile {name}: [{table}] must be a table")
    return found


def _profile(name: str, data: Mapping[str, Any], family: tuple[str, ...]) -> Profile:
    unknown = sorted(data.keys() - set(KNOWN))
    if unknown:
        raise SpecError(
            f"profile {name} has the unknown entry {unknown[0]}; known are {', '.join(KNOWN)}"
        )
    parent: Profile | None = None
    if "extends" in data:
        if not isinstance(data["extends"], str):
            raise SpecError(f"profile {name}: extends must be the name of a profile, or a path")
        parent = _load(data["extends"], family)
    claims: dict[str, Claim] = dict(parent.claims) if parent else {}
    for prefix, line in _table(name, data, "families").items():
        claims.update(_family(name, prefix, line))
    for clause_id, line in _table(name, data, "clauses").items():
        claims[clause_id] = _claim(name, clause_id, line)
    rules = dict(parent.rules) if parent else {}
    for rule, line in _table(name, data, "rules").items():
        rules[rule] = _rule(name, rule, line)
    wire = dict(parent.wire) if parent else {}
    for answer, value in _table(name, data, "wire").items():
        if answer not in WIRE_ANSWERS:
            raise SpecError(
                f"profile {name}: [wire] names the unknown answer {answer}; known: {', '.join(WIRE_ANSWERS)}"
            )
        if value == ANY:
            wire.pop(answer, None)
            continue
        if not _is_one_of(value, WIRE_ANSWERS[answer]):
            allowed = " or ".join(str(each) for each in WIRE_ANSWERS[answer])
            raise SpecError(f"profile {name}: [wire] {answer} must be {allowed}, not {value!r}")
        wire[answer] = value
    for clause_id, answer, value in AT_ODDS:
        if (
            clause_id in claims
            and claims[clause_id].status == "claimed"
            and wire.get(answer) == value
        ):
            raise SpecError(
                f"profile {name} contradicts itself: it claims {clause_id}, and [wire] says {answer}"
            )
    ways = dict(parent.config) if parent else {}
    for entry in ("mode", "message_model"):
        if entry in data and data[entry] not in CHOICES[entry]:
            raise SpecError(
                f"profile {name}: {entry} must be one of {', '.join(CHOICES[entry])}, not {data[entry]!r}"
            )
        if entry in data:
            ways[entry] = data[entry]
    return Profile(name, str(data.get("title", name)), claims, wire, **ways, rules=rules)


def _is_one_of(value: object, allowed: tuple[object, ...]) -> bool:
    return any(type(value) is type(each) and value == each for each in allowed)  # 1 is not true


def _family(name: str, prefix: str, line: Any) -> dict[str, Claim]:
    """The line of a family, for each of its clauses."""
    if prefix not in Promise.FAMILIES:
        known = ", ".join(Promise.FAMILIES)
        raise SpecError(f"profile {name} names the unknown family {prefix}; known are {known}")
    members = [promise for promise in catalogue() if promise.family == prefix]
    if line == AS_THE_CLAUSE_SAYS:
        return {promise.id: as_the_clause_says(promise) for promise in members}
    claim = _line(f"profile {name}, {prefix}", line)
    if claim.findings:
        raise SpecError(
            f"profile {name}, {prefix}: findings are those of one clause, so its own line names them"
        )
    return {promise.id: claim for promise in members}


def as_the_clause_says(promise: Promise) -> Claim:
    """The clause is promised, and its own first source says where."""
    return Claim("claimed", promise.sources[0])


def _named(where: str, clause_id: str, claim: Claim) -> Claim:
    """The line, if it names only what the clause finds."""
    promise = _promise(clause_id)
    known = promise.findings if isinstance(promise, Clause) else ()
    for finding in claim.findings:
        if finding not in known:
            raise SpecError(
                f"{where}: {clause_id} has no finding {finding}; it has {', '.join(known) or 'none'}"
            )
    return claim


def _claim(name: str, clause_id: str, line: Any) -> Claim:
    if clause_id not in all_ids():
        close = difflib.get_close_matches(clause_id, sorted(all_ids()), n=1)
        hint = f"; did you mean {close[0]}?" if close else "; `inorder list clauses` shows all"
        raise SpecError(f"profile {name} names the unknown clause {clause_id}{hint}")
    if line == AS_THE_CLAUSE_SAYS:
        return as_the_clause_says(_promise(clause_id))
    return _named(f"profile {name}", clause_id, _line(f"profile {name}, {clause_id}", line))


def _promise(clause_id: str) -> Promise:
    return next(promise for promise in catalogue() if promise.id == clause_id)


def _rule(name: str, rule: str, line: Any) -> Claim:
    if rule not in RULES:
        raise SpecError(
            f"profile {name} names the unknown wire rule {rule}; known are {', '.join(RULES)}"
        )
    claim = _line(f"profile {name}, {rule}", line)
    if claim.status == "not_applicable":
        raise SpecError(f"profile {name}, {rule}: a wire rule is claimed or allowed")
    return claim


def _line(where: str, line: Any) -> Claim:
    if not isinstance(line, dict) or line.get("status") not in _STATUSES:
        raise SpecError(
            f"{where}: status must be one of {', '.join(_STATUSES)}; the line is a table, or the word "
            f'"{AS_THE_CLAUSE_SAYS}" of a clause or a family'
        )
    unknown = sorted(line.keys() - {"status", "source", "reason", "findings"})
    if unknown:
        raise SpecError(
            f"{where} has the unknown entry {unknown[0]}; known are status, source, reason, findings"
        )
    findings = line.get("findings", [])
    if not isinstance(findings, list) or not all(isinstance(each, str) for each in findings):
        raise SpecError(f"{where}: findings must be a list of names")
    if findings and line["status"] != "allowed":
        raise SpecError(f"{where}: findings are named by an allowance only")
    if not line.get("source"):
        raise SpecError(f"{where}: a line needs its source")
    if line["status"] != "claimed" and not line.get("reason"):
        raise SpecError(f"{where}: {line['status']} needs a reason")
    if line["status"] == "claimed" and line.get("reason"):
        raise SpecError(f"{where}: claimed and excused at once (a reason is for deviations)")
    return Claim(line["status"], str(line["source"]), str(line.get("reason", "")), tuple(findings))
