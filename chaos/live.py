"""What has happened so far in a run that goes on: its journals, read while they are written.

Faults wait for conditions ("c1 runs its listener"), never for a time that should be long enough.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.waiting import now_s, pass_time
from specs.errors import TargetMisbehaved
from specs.history.journal import assemble, read_journal
from specs.history.row import Row
from specs.vocabulary import Kind, Outcome

POLL_S = 0.05
FINISHED = frozenset({Outcome.SUCCESS, Outcome.COMMIT})


class Live:
    """A running history. Reading is a whole pass over the journals: runs of seconds are small."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def rows(self) -> list[Row]:
        """All rows so far, by seq_begin; an operation under way is open."""
        return assemble(
            "live",
            (read_journal(path) for path in sorted((self._folder / "journal").glob("*.jsonl"))),
        )

    def wait_for(
        self, what: str, condition: Callable[[list[Row]], bool], deadline_s: float
    ) -> list[Row]:
        """Wait until the condition holds and return the rows it held for. TargetMisbehaved at the deadline."""
        until = now_s() + deadline_s
        while True:
            rows = self.rows()
            if condition(rows):
                return rows
            if now_s() >= until:
                raise TargetMisbehaved(
                    f"{what} was waited for and did not come within {deadline_s:g} s"
                )
            pass_time(POLL_S)


def running_call(client: str) -> Callable[[list[Row]], bool]:
    """The client's listener is at work this moment."""
    return lambda rows: any(
        row.kind is Kind.DELIVER and row.client_id == client and row.seq_end is None for row in rows
    )


def worked(client: str, calls: int) -> Callable[[list[Row]], bool]:
    """The client has finished that many messages."""
    return lambda rows: (
        sum(
            row.kind is Kind.DELIVER and row.client_id == client and row.outcome in FINISHED
            for row in rows
        )
        >= calls
    )


def taken_over(client: str, since_us: int) -> Callable[[list[Row]], bool]:
    """Every lane on which the client worked before has since been delivered by another."""

    def holds(rows: list[Row]) -> bool:
        deliveries = [row for row in rows if row.kind is Kind.DELIVER]
        lanes = {
            row.lane for row in deliveries if row.client_id == client and row.started_us < since_us
        }
        taken = {
            row.lane for row in deliveries if row.client_id != client and row.started_us >= since_us
        }
        return bool(lanes) and lanes <= taken

    return holds


def all_finished(rows: list[Row]) -> bool:
    """Every acknowledged message was consumed or given up, and no send is open."""
    sent = {row.message_id for row in rows if row.kind is Kind.SEND and row.outcome is Outcome.OK}
    open_sends = any(row.kind is Kind.SEND and row.seq_end is None for row in rows)
    done = {row.message_id for row in rows if row.kind is Kind.DELIVER and row.outcome in FINISHED}
    done |= {
        row.message_id for row in rows if row.kind is Kind.DEAD_LETTER and row.outcome is Outcome.OK
    }
    return not open_sends and bool(sent) and sent <= done
