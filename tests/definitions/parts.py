"""Histories of which a part is missing: whoever is certain there must be right about the whole.

Of a history something is taken, by one of the laws about valid histories (`inorder.evidence.laws`): a client, a kind of
rows, the begin, the end, answers. What is left says that it is not all. Where the whole keeps its definition nothing in
it may be refuted for certain; what becomes of broken ones is counted.

Left out is what cannot be, or what a page says is taken for granted:

- An incarnation is of one life of its client, and its calls are all in one mode; a broker that begins a new epoch has
  died; an id is of one producer.
- Nobody is about to learn of a reset, of an offset, or of where a pull was told to go on, when a history begins; who
  is not seen is configured like those that are.
- The whole breaks another clause: then somebody is accused rightly, if not of this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from inorder.evidence import laws
from specs.clauses.catalogue import all_clauses
from specs.clauses.certainty import EVERYTHING
from specs.history.row import Row
from specs.history.runinfo import RunInfo, declared
from specs.verdicts.examine import examine
from specs.vocabulary import Kind
from tests.definitions.words import end_of

Rows = Sequence[Row]
Part = tuple[str, RunInfo, list[tuple[int, list[Row]]]]

OF_THE_PARTY = "a party missing"
OF_THE_BEGIN = "the begin missing"
OF_THE_END = "the end missing"
GIVEN_TO_HER = "nobody commits past what they were given and did not finish, whoever else did"
NOT_ASKED = {
    "CMT-1": ((OF_THE_PARTY, OF_THE_BEGIN, "answers unknown"), GIVEN_TO_HER),
    "CMT-10": ((OF_THE_PARTY, OF_THE_BEGIN, "answers unknown"), GIVEN_TO_HER),
    "DLQ-5": ((OF_THE_PARTY,), "the missing delivery showed that the store had changed it before"),
    "ORD-6": (
        (OF_THE_BEGIN,),
        "two producers disagree, though each is compared with the first alone",
    ),
    "PML-2": ((OF_THE_PARTY,), "whose lease a name stands for is not said without its holder"),
    "SND-3": ((OF_THE_END,), "a try that began after the message was seen excuses all the same"),
}
"""Clauses and laws of which the whole tells more than the definition does, with the reason."""
UNSENT = "SND-2"
"""The alphabets hand out messages that nobody sent: they are about other things."""


def parts(clause: str, info: RunInfo, histories: Iterable[tuple[int, Rows]]) -> Iterator[Part]:
    """Of each history, by its number, one law's change, by turns: the law, the run and the numbered histories."""
    alike: dict[tuple[str, str], Part] = {}
    by_turns = sorted(laws.TAKEN_AWAY)
    not_asked, _ = NOT_ASKED.get(clause, ((), ""))
    for number, rows in histories:
        law = by_turns[number % len(by_turns)]
        if law in not_asked or not _can_be(rows):
            continue
        changed = [
            (told, left)
            for told, left in laws.TAKEN_AWAY[law]((info, list(rows)))
            if _may_lack(law, rows, left)
        ]
        if changed:
            told, left = changed[number // len(by_turns) % len(changed)]
            alike.setdefault((law, repr(told)), (law, told, []))[2].append((number, left))
    yield from alike.values()


def breaks_anything(info: RunInfo, rows: Rows) -> bool:
    """Does the whole break any clause, where all of it is declared to be recorded?"""
    tallies = examine(
        rows, replace(info, records=declared(client=EVERYTHING)), all_clauses()
    ).tallies
    return any(tally.violations for clause, tally in tallies.items() if clause != UNSENT)


def _can_be(rows: Rows) -> bool:
    epochs = {row.broker_epoch for row in rows} - {None}
    producers = {(row.message_id, row.client_id) for row in rows if row.kind is Kind.SEND}
    modes = defaultdict(set)
    for row in rows:
        if row.kind is Kind.DELIVER or (row.kind is Kind.DEAD_LETTER and row.commit_mode):
            modes[row.client_id, row.incarnation].add(row.commit_mode)
    died = any(row.kind is Kind.CRASH and row.broker is not None for row in rows)
    return (
        (len(epochs) < 2 or died)
        and len(producers) == len({message for message, _ in producers})
        and max(map(len, modes.values()), default=0) < 2
        and not any(_is_outlived(rows, row) for row in rows)
    )


def _is_outlived(rows: Rows, begun: Row) -> bool:
    """Does an incarnation go on beyond where its client begins a new life, or dies?"""
    mine = [row for row in rows if row.client_id == begun.client_id]
    left = any(row.kind is Kind.LEAVE and row.seq_begin < begun.seq_begin for row in mine)
    if begun.kind not in (Kind.CRASH, Kind.JOIN) and not (begun.kind is Kind.ADD and left):
        return False
    mine = [row for row in mine if row.incarnation and row is not begun]
    before = {row.incarnation for row in mine if row.seq_begin < begun.seq_begin}
    return bool(before & {row.incarnation for row in mine if row.seq_begin > begun.seq_begin})


def _may_lack(law: str, rows: Rows, left: Rows) -> bool:
    gone = [row for row in rows if row not in left]
    if law == OF_THE_BEGIN:
        first = min((row.seq_begin for row in left), default=0)
        asked = any(row.kind is Kind.FETCH_OFFSET and end_of(row) > first for row in gone)
        return not asked and not any(row.kind in (Kind.RESET, Kind.PULL) for row in gone)
    if law == OF_THE_PARTY:
        return not any(row.kind is Kind.JOIN and row.view for row in gone)
    return True
