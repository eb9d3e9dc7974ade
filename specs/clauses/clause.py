"""What a clause is: its id and statement, where it was read, what it needs, and what judges it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from specs.clauses.certainty import THAT_LAST, gaps, recorded
from specs.clauses.premises import Premise
from specs.clauses.transcript import Example, Expected
from specs.history.runinfo import RunInfo
from specs.plan.config import Config
from specs.plan.traits import Stake
from specs.vocabulary import Key, Kind, Level, Party

if TYPE_CHECKING:
    from specs.facts.columns import Ints
    from specs.facts.findings import Findings
    from specs.facts.rows import Rows

Relation = Callable[["Rows", "Findings"], None]
"""Writes down what it finds in the rows of whole keys."""
Pick = Callable[["Rows"], "Ints"]
"""The positions of the rows of whole queues that a judge needs."""
ORDER = "ORD"
"""The family of the promises of order."""


@dataclass(frozen=True, slots=True)
class Apart:
    """What else a clause finds when its rows are brought together by its own key, though most of it goes by clients.

    kinds: the rows that this needs. only: of these kinds only rows of which the text of a column begins so.
    """

    kinds: frozenset[Kind]
    judge: Relation
    only: Mapping[Kind, tuple[str, str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """What every clause has, whatever judges it.

    rules: the wire rules that decide it. vectors: the file of the table that does, in `specs/vectors/`. A clause
    with a judge may name both: what a history can't show, an exchange or a table does. stakes: what a run needs so
    that a clause is at stake, as far as a plan may lack it; the run has to have each of them.
    """

    id: str
    name: str
    title: str
    statement: str
    party: Party
    premise: tuple[Premise, ...]
    sources: tuple[str, ...]
    refines: tuple[str, ...]
    doc: str
    rules: tuple[str, ...] = ()
    vectors: str | None = None
    stakes: tuple[Stake, ...] = ()

    BY_HISTORY: ClassVar[bool] = False

    @property
    def family(self) -> str:
        return self.id.split("-")[0]

    @property
    def judged_by(self) -> tuple[str, ...]:
        """What decides it: a `history`, a table of `vectors`, an exchange on the `wire`; more than one may."""
        ways = (
            ("history", self.BY_HISTORY),
            ("vectors", bool(self.vectors)),
            ("wire", bool(self.rules)),
        )
        return tuple(way for way, does in ways if does)

    def unmet(self, info: RunInfo) -> Premise | None:
        """The first premise that the run does not meet from its begin to its end; None when the clause applies."""
        for premise in self.premise:
            if premise.holds is not None and not premise.holds(info):
                return premise
        return None

    FAMILIES: ClassVar[Mapping[str, str]] = {
        ORDER: "order",
        "LSE": "lease",
        "RTY": "suspend and retry",
        "DLQ": "dead letters",
        "CMT": "commit",
        "SND": "send and store",
        "ASG": "assignment",
        "LIV": "progress",
        "PML": "leases of messages",
        "FLR": "acknowledgement floor",
        "KEY": "holders of a key",
        "GEN": "generations of a group",
        "MET": "the run itself",
    }


_ABOUT = frozenset({Kind.RECEIVE, Kind.PROGRESS})
"""Without a row of these a clause that needs them is about nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clause(Promise):
    """A clause that a history decides, read from its module.

    judge: writes down what it finds in the rows of whole keys. columns: those that it uses besides those that all do.
    module: where it stands. kinds: the rows that it looks at. levels: at which they were seen. needs: the kinds without
    which nothing about it can be seen. settings: what of the configuration it rests on, besides its premises. absence:
    it concludes from what nobody else did. excused_by: kinds of rows that excuse and that only the context knows;
    excused_if: likewise, where the configuration is such; of_lives: likewise, where they tell that another life of the
    client did a part of it. named_by: kinds that only say which of its findings it is, or that there is one more.
    heeded: kinds that excuse where they are told; a history without them is judged as if nothing of the kind had
    happened. looks_back: it concludes from what did not happen before. findings: the public names of what it finds.
    told_of_refused_commits: it is shown commits that were refused.

    What grows with the number of messages is never brought together by group or by run, so a clause says what it can do
    without. by_clients: its rows are brought together by client. only: of these kinds it needs rows alone of which the
    text of a column begins so. pick: which rows of whole queues it needs, where a queue can tell. apart: what else it
    finds, by its own key.
    """

    key: Key
    kinds: frozenset[Kind]
    levels: frozenset[Level]
    judge: Relation = field(repr=False)
    columns: tuple[str, ...]
    module: str
    explain: Callable[[Any], str] = field(repr=False)
    examples: tuple[Example, ...] = field(repr=False)
    needs: frozenset[Kind]
    settings: frozenset[str]
    excused_by: frozenset[Kind]
    excused_if: Mapping[Kind, Callable[[Config], bool]] = field(repr=False)
    of_lives: frozenset[Kind]
    named_by: frozenset[Kind]
    heeded: frozenset[Kind]
    absence: bool
    looks_back: bool
    findings: tuple[str, ...]
    told_of_refused_commits: bool = False
    by_clients: bool = False
    only: Mapping[Kind, tuple[str, str]] = field(default_factory=dict)
    pick: Pick | None = field(default=None, repr=False)
    apart: Apart | None = field(default=None, repr=False)

    BY_HISTORY: ClassVar[bool] = True

    @property
    def excuses(self) -> frozenset[Kind]:
        """The kinds of rows that could excuse what looks like a violation, in whatever configuration."""
        told = (premise.told_by for premise in self.premise)
        known_to_context = self.excused_by.union(self.excused_if, self.of_lives, *told)
        return self.kinds.difference(self.needs, self.named_by, self.heeded) | known_to_context

    def excuses_in(self, info: RunInfo) -> frozenset[Kind]:
        """Those of them that could do so in this run."""
        if not self.excused_if:
            return self.excuses
        return self.excuses - {
            kind for kind, may in self.excused_if.items() if not may(info.config)
        }

    def untold(self, info: RunInfo) -> tuple[str, ...]:
        """What it rests on of the system's settings, and that nobody has told."""
        asked = self.settings.union(*(premise.settings for premise in self.premise))
        return tuple(sorted(asked & info.config.untold))

    def unmet(self, info: RunInfo) -> Premise | None:
        """As any promise's; and nothing of what it rests on is guessed that another system was not seen to be told."""
        untold = self.untold(info)
        if untold:
            known = f"{info.config.system}'s {', '.join(untold)} told"
            return Premise(known, "what the system was told is known (run.json, config)")
        return Promise.unmet(self, info)

    def gaps(self, info: RunInfo) -> frozenset[Kind]:
        """The kinds that it goes by and of which rows are known to be missing."""
        if not info.gaps:
            return frozenset()
        return gaps(info) & (self.needs | self.excuses_in(info) | self.heeded)

    def may_matter(self, present: frozenset[Kind]) -> bool:
        """May it be at stake where there are rows of these kinds alone?"""
        return bool(self.kinds & present) and self.needs & _ABOUT <= present

    def missing(self, known: frozenset[Kind]) -> frozenset[Kind]:
        """What it needs and does not have, of the kinds that are recorded."""
        return self.needs - known

    @property
    def asks_what_a_client_knew(self) -> bool:
        """Is it about what a client does, of a lane or queue: on the answers that it had?"""
        return self.party in (Party.CLIENT, Party.PAIR) and self.key in (Key.LANE, Key.QUEUE)

    def stands_in(self, info: RunInfo, *, epochs: bool, ended: bool, one_life: bool) -> bool:
        """Is a finding certain, by the rules for all clauses but that of the clocks (`specs.clauses.certainty`)?

        epochs: every row of the evidence that names a broker names its epoch. ended: its calls ended, and (where the
        clause asks what a client knew) so did whatever else its clients had begun there before. one_life: rows of the
        evidence tell that one life of the client did it.
        """
        if not info.closed_world and (self.absence or not ended):
            return False
        if info.begins_late and (self.looks_back or self.excuses_in(info) & THAT_LAST):
            return False
        if self.gaps(info):
            return False
        known = recorded(info)
        if known is None:
            return True
        unseen = self.excuses_in(info) - known
        if one_life:
            unseen -= self.of_lives
        return unseen <= {Kind.CRASH} if epochs else not unseen

    @property
    def shortest_violation(self) -> str:
        """The first broken example of its transcript."""
        return next(
            example.text for example in self.examples if example.expected is Expected.BROKEN
        )

    @property
    def lookalike(self) -> str:
        """The first kept example of its transcript: allowed, though it looks wrong."""
        return next(example.text for example in self.examples if example.expected is Expected.KEPT)
