"""Where what was asked for can't be written: a disk that is full, a standard output that nobody reads any more.

The verdict is told all the same, on stderr. A refutation stays one (exit 1); nothing else may pass for done (exit 64).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from conformance.reports.text import closing
from conformance.reports.view import VerdictView
from specs.errors import EXIT_REFUTED, UsageError
from specs.verdicts.verdict import RunVerdict

STDOUT = "standard output"


class OutputLost(UsageError):
    """Something that was to be written could not be. place: its name; verdict: what was found, if anything was."""

    def __init__(self, error: OSError, place: str, verdict: VerdictView | None = None) -> None:
        self.error, self.place, self.verdict = error, place, verdict
        found = "" if verdict is None else f"; the verdict is {closing(verdict)}"
        super().__init__(f"{place} can't be written: {error.strerror or error}{found}")
        if verdict is not None and verdict.verdict is RunVerdict.REFUTED:
            self.exit_code = EXIT_REFUTED

    def with_verdict(self, verdict: VerdictView) -> OutputLost:
        """The same, where more was found than whoever wrote knew of."""
        return OutputLost(self.error, self.place, verdict)


@contextmanager
def told_anyway(place: object, verdict: VerdictView | None = None) -> Iterator[None]:
    """Raises OutputLost for whatever can't be written in the block."""
    try:
        yield
    except OSError as error:
        raise OutputLost(error, str(place), verdict) from error
