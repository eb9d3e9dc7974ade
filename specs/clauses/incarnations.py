"""What several clauses remember of each incarnation of a lane that was watched from its add."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

from specs.clauses.certainty import recorded
from specs.clauses.context import Context
from specs.clauses.judging import NOTHING, Finding, Judge
from specs.clauses.rows import is_manual, may_be_given_up
from specs.history.row import Row
from specs.vocabulary import LISTENER_SUSPENDS, Kind

CORRECTED = "corrected"
"""The detail of a commit whose value a broker's correction or a filter made."""
OFFSET_MOVED = 21
"""The answer to a pull that has to go on elsewhere."""
NOTHING_HERE = frozenset({19, 20})
"""The answers to a pull that found nothing: at once, or nothing of what it wants."""


def goes_ahead(pull: Row) -> bool:
    """Was the pull told to go on further ahead than it asked, past what the broker does not give?"""
    if pull.value is None or pull.queue_offset is None or pull.value <= pull.queue_offset:
        return False
    return pull.code == OFFSET_MOVED or pull.code in NOTHING_HERE


def may_go_back(pull: Row) -> bool:
    """Was the pull told to go on further back than it asked, as far as anybody says? Its code may not be told."""
    if pull.value is None or pull.queue_offset is None or pull.value >= pull.queue_offset:
        return False
    return pull.code in (OFFSET_MOVED, None)


class Corrections:
    """Which commits report a broker's correction, whether or not who recorded them says so (`detail=corrected`).

    A pull that was told to go on elsewhere (its code is 21, or not told and it names a lower offset than was asked for,
    or it found nothing and goes on further ahead) names the value. A commit of it, by the incarnation that pulled, is
    the broker's correction: the first one, and those that repeat it, until the incarnation has reported something else
    after it. A pull that names no incarnation speaks for its client.
    """

    __slots__ = ("_named",)

    def __init__(self) -> None:
        self._named: dict[
            tuple[str | None, ...], tuple[int, bool]
        ] = {}  # the value, and whether it was reported

    def begins(self, row: Row) -> None:
        """An operation of any kind begins: an ADD forgets what an incarnation of that name was told."""
        if row.kind is Kind.ADD and row.incarnation is not None:
            self._named.pop((row.group, row.incarnation), None)

    def ends(self, row: Row) -> None:
        """An operation of any kind ends: a pull may be told to go on elsewhere."""
        value = row.value
        if row.kind is not Kind.PULL or value is None:
            return
        if row.code == OFFSET_MOVED or may_go_back(row) or goes_ahead(row):
            by = (
                (row.group, row.client_id, "")
                if row.incarnation is None
                else (row.group, row.incarnation)
            )
            self._named[by] = (value, False)

    def has(self, commit: Row) -> bool:
        """Does the commit, which begins, report a correction? To be asked once for each."""
        if commit.detail == CORRECTED:
            return True
        for by in ((commit.group, commit.incarnation), (commit.group, commit.client_id, "")):
            value, reported = self._named.get(by, (None, False))
            if value is None or commit.value is None:
                continue
            if value == commit.value:
                self._named[by] = (value, True)
                return True
            if reported:
                del self._named[by]
        return False


class UntoldLetters:
    """Whether the messages of a lane may have been given up without a word.

    A client that is watched from outside does not tell what it gives up. Where no recorder declares that it writes
    dead letters down, and the lane shows none, and none that was sent back either, a message that was suspended with
    its counter at the limit may have been given up: nobody knows whether it is finished. In a history that begins late
    that may have been before its first row: with its batch it comes again all the same.
    """

    __slots__ = ("begins_late", "config", "told")

    def __init__(self, context: Context) -> None:
        self.config = context.info.config
        known = recorded(context.info)
        self.begins_late = context.info.begins_late
        declared = (
            context.info.records is not None and known is not None and Kind.DEAD_LETTER in known
        )
        self.told = declared and not self.begins_late

    def begins(self, row: Row) -> None:
        """An operation of the lane begins."""
        if row.kind in (Kind.DEAD_LETTER, Kind.SEND_BACK):
            self.told = not self.begins_late

    def may_give_up(self, row: Row) -> bool:
        """May the message of this call, which is over, have been given up unseen, as far as the call goes?"""
        return row.outcome in LISTENER_SUSPENDS and may_be_given_up(row, self.config)

    def may_take(self, row: Row) -> bool:
        """May it have been finished by that? In manual mode it is only taken."""
        return not is_manual(row) and self.may_give_up(row)


def may_be_leaving(context: Context, client_id: str | None, group: str | None) -> bool:
    """Is the client shutting down its work in the group, or does nobody record who does?"""
    known = recorded(context.info)
    return (known is not None and Kind.LEAVE not in known) or context.is_leaving(
        client_id, group
    ) is not None


Known = TypeVar("Known")


class IncarnationsJudge(Judge, Generic[Known]):
    """Remembers something of each incarnation, from its add until a reset of the offset.

    added: makes of an add what is known when an incarnation begins. A subclass says what it makes of the begins of
    other rows (`begun`).
    """

    __slots__ = ("added", "incarnations")

    def __init__(self, context: Context, added: Callable[[Row], Known]) -> None:
        super().__init__(context)
        self.added = added
        self.incarnations: dict[str, Known] = {}

    def begun(self, known: Known, row: Row) -> Iterable[Finding]:
        """An operation of a known incarnation begins."""
        return NOTHING

    def known(self, row: Row) -> Known | None:
        """What is known of the row's incarnation, if that was watched from its add."""
        return self.incarnations.get(row.incarnation or "")

    def begins(self, row: Row) -> Iterable[Finding]:
        name = row.incarnation
        if row.kind is Kind.RESET:
            self.incarnations.clear()
        elif name is None:
            return NOTHING
        elif row.kind is Kind.ADD:
            self.incarnations[name] = self.added(row)
        elif (known := self.incarnations.get(name)) is not None:
            return self.begun(known, row)
        return NOTHING
