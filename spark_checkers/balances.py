"""What was found in a key that is judged in pieces: what each piece adds, less what was found before."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from specs.errors import SpecError
from specs.facts.findings import Findings

Place = tuple[str | None, str | None, str | None, int | None, int]
Violation = tuple[str, tuple[int, ...], bool, str]


@dataclass
class Balance:
    """What one clause found in a key, summed up over its pieces; in the end it reads like `Findings`."""

    clause: str
    _opportunities: Counter[str] = field(default_factory=Counter)
    _found: Counter[Violation] = field(default_factory=Counter)
    _places: dict[Violation, Place] = field(default_factory=dict)

    def add(self, findings: Findings, sign: int) -> None:
        """Add what was found, or take it away (sign -1)."""
        for run, times in findings.opportunities.items():
            self._opportunities[run] += sign * times
        for each, place in zip(findings.violations, findings.places, strict=True):
            self._found[each] += sign
            if self._found[each]:
                self._places[each] = place
            else:
                del self._found[each]
                self._places.pop(each, None)

    @property
    def opportunities(self) -> Mapping[str, int]:
        if min([0, *self._opportunities.values(), *self._found.values()]) < 0:
            raise SpecError(
                f"{self.clause} took more away than it had found in a long key: please tell us"
            )
        return self._opportunities

    @property
    def violations(self) -> list[Violation]:
        return sorted(self._found.elements(), key=lambda each: (each[1], each[3], each[2]))

    @property
    def places(self) -> list[Place]:
        return [self._places[each] for each in self.violations]


class Balances:
    """Those of all clauses."""

    def __init__(self) -> None:
        self._by_clause: dict[str, Balance] = {}

    def add(self, some: Iterable[Findings], sign: int) -> None:
        for each in some:
            self._by_clause.setdefault(each.clause, Balance(each.clause)).add(each, sign)

    def __iter__(self) -> Iterator[Balance]:
        return iter(self._by_clause.values())
