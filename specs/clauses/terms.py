"""What nearly every clause is written in: the rows that it is given, what it tells of them, and words for people."""

from specs.clauses.judging import Finding
from specs.clauses.rows import over_us
from specs.clauses.words import at, ms, saw, start_of, who
from specs.facts.findings import Findings
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.history.row import Row

__all__ = [
    "Finding",
    "Findings",
    "Line",
    "Row",
    "Rows",
    "at",
    "ms",
    "over_us",
    "saw",
    "start_of",
    "who",
]
