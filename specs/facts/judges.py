"""A clause's judges, each with the rows that it needs together.

Most clauses have one. What grows with the number of messages is never brought together by group or by run: a clause
that would need it goes by clients, and has a second judge for what it finds by its own key besides.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from specs.clauses.catalogue import get
from specs.clauses.clause import Clause, Pick, Relation
from specs.facts.groupings import CLIENTS, GROUPINGS, Grouping
from specs.vocabulary import Kind, Level


@dataclass(frozen=True, slots=True)
class Judge:
    """One of the judges of the clause `id`. find: writes down what it finds in the rows of whole keys.

    grouping: under which key it needs them whole. kinds: which rows it needs. only: of these kinds only rows of which
    the text of a column begins so: kind → (column, how it begins). pick: which rows of whole queues it needs, where a
    queue can tell.
    """

    id: str
    find: Relation
    grouping: Grouping
    kinds: frozenset[Kind]
    only: Mapping[Kind, tuple[str, str]] = field(default_factory=dict)
    pick: Pick | None = None

    @property
    def clause(self) -> Clause:
        return get(self.id)

    @property
    def columns(self) -> tuple[str, ...]:
        """Those that it uses besides `specs.facts.together.ALWAYS`."""
        return self.clause.columns


def judges_of(clauses: Iterable[Clause]) -> tuple[Judge, ...]:
    """In the order of the clauses."""
    return tuple(judge for clause in clauses for judge in _judges(clause))


def _judges(clause: Clause) -> Iterable[Judge]:
    own, apart = GROUPINGS[clause.key], clause.apart
    grouping = CLIENTS if clause.by_clients else own
    yield Judge(clause.id, clause.judge, grouping, clause.kinds, clause.only, clause.pick)
    if apart is not None:
        yield Judge(clause.id, apart.judge, own, apart.kinds, apart.only)


def grouped(judges: Iterable[Judge]) -> list[tuple[Grouping, tuple[Judge, ...]]]:
    """The judges that share one pass, by what they need together and the levels that they look at; one that picks its
    rows stands alone."""
    found: dict[tuple[Grouping, str, frozenset[Level]], list[Judge]] = {}
    for judge in judges:
        alone = judge.id if judge.pick is not None else ""
        found.setdefault((judge.grouping, alone, judge.clause.levels), []).append(judge)
    return [(grouping, tuple(some)) for (grouping, _, _), some in found.items()]
