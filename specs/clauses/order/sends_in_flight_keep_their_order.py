"""What one producer sends to a queue while earlier sends are not answered yet lies there in the order of sending.

A producer is one process of a client, where that is recorded: two under one client id have no order between them.
Judged of acknowledged sends of one producer that were under way together, by the places that the answers tell, and by
those at which readers find the messages: a copy of the earlier one behind the later one breaks it, whichever copy was
acknowledged. So a producer that sends again what had no answer breaks it by the second copy, and one that numbers its
sends, so that the log takes each once and none before its turn, keeps it. A copy is another one's where somebody else
(another client, another process or life of it) sent the message to the queue too, answered or not; or the application's
where the producer itself sent it once more when it had no send of it under way. In an open world a copy may be somebody
else's whom nobody recorded, and is at most possible. That a message is stored twice is another clause's to say, and of
sends that followed an answer ORD-9 says the same for all producers.

Which send was first is when it was begun: whoever records asks for the next one when the producer has taken the last.
Says nothing once a send of the producer's ended without anybody knowing how, in whatever queue: the producer may then
begin anew with all that is under way. Nor of delayed messages, half messages, and batches. A reader's rows count as far
as they ascend.
Memory: the sends that were under way together, until the end: a reader comes last.
"""

from collections import deque

import numpy as np

from specs.clauses.premises import ANSWERED, BROKER_LIVES, IN_FLIGHT, NO_FRAME_TWICE
from specs.clauses.terms import Finding, Findings, Row, Rows, at, who
from specs.facts.columns import NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.segments import Segments, dense, positions
from specs.facts.stored import STORED_COLUMNS, copies, halves, refused
from specs.vocabulary import Key, Kind, Outcome, Party

ID = "ORD-15"
TITLE = "sends in flight keep their order"
STATEMENT = (
    "Messages that one producer began to send to one queue one after the other, without waiting for the answers, lie "
    "there in that order."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (IN_FLIGHT, ANSWERED, NO_FRAME_TWICE, BROKER_LIVES)
SOURCES = ("docs/sources.md#sends-in-flight",)
KINDS = frozenset({Kind.SEND, Kind.READ})
NEEDS = frozenset({Kind.SEND})
COLUMNS = ("process", *STORED_COLUMNS, "attempt")


class LiesBehind(Finding):
    """reads: that show where the two lie, where the answers do not. offsets: of the earlier and of the later one."""

    earlier: Row
    later: Row
    reads: tuple[Row, ...]
    offsets: tuple[int, int]


WATCHED = 64
"""So many answers of a producer are compared with its next one."""


def judge(rows: Rows, findings: Findings) -> None:
    placed = rows.ended_as(Outcome.OK) & (rows.offset != NONE) & (rows.end < NEVER)
    placed &= rows.text("message_id") != NO_TEXT
    reads = np.flatnonzero(rows.are(Kind.READ) & placed)
    sends = np.flatnonzero(_alone(rows) & placed)
    if not len(sends):
        return
    sends = sends[np.argsort(rows.begin[sends], kind="stable")]
    producer, _ = dense(rows.queue[sends], rows.doer[sends])
    together, sure = _together(rows, sends, producer), _are_sure(rows, sends)
    sends, together = sends[sure], together[sure]
    findings.at_stake(sends[together])
    for queue in np.unique(rows.queue[sends[together]]).tolist():
        mine, its = sends[rows.queue[sends] == queue], reads[rows.queue[reads] == queue]
        if _is_out_of_turn(rows, mine, its):
            flags = together[rows.queue[sends] == queue]
            _Queue(rows, findings, mine, flags).go_through(its)


def _alone(rows: Rows) -> Mask:
    """Sends of one message, at the first try, that lie where they were sent to."""
    delay, attempt = rows.number("delay_level"), rows.number("attempt")
    usual = ((delay == 0) | (delay == NONE)) & ((attempt == NONE) | (attempt == 0) | (attempt == 1))
    alone: Mask = (
        rows.are(Kind.SEND)
        & usual
        & ~copies(rows)
        & ~halves(rows)
        & (rows.value == NONE)
        & (rows.client != NO_TEXT)
    )
    return alone


def _are_sure(rows: Rows, sends: Ints) -> Mask:
    """Which ended before any send of their producer did of which nobody knows how."""
    sure = [
        rows.end[place] < rows.context_of(place).unsure.get(rows.client_of(place), NEVER)
        for place in sends.tolist()
    ]
    return np.asarray(sure, np.bool_)


def _together(rows: Rows, sends: Ints, producer: Ints) -> Mask:
    """Which began before another of the producer's, that began earlier, had ended; or lasted beyond a later begin."""
    begin, end = rows.begin[sends], rows.end[sends]
    in_turn = Segments(producer)
    last = in_turn.highest_before(end)
    found = (last != NOWHERE) & (end[last] > begin)
    following = np.full(len(sends), NEVER, np.int64)
    before = in_turn.previous()
    known = before != NOWHERE
    following[before[known]] = begin[known]
    together: Mask = found | (following < end)
    return together


def _is_out_of_turn(rows: Rows, sends: Ints, reads: Ints) -> bool:
    """Does any message of the queue lie behind one that was begun later, whoever sent them?"""
    by_place = np.argsort(rows.offset[sends], kind="stable")
    if (np.diff(rows.begin[sends][by_place]) < 0).any():
        return True
    message = rows.text("message_id")
    begun = dict(zip(message[sends].tolist(), rows.begin[sends].tolist(), strict=True))
    read = reads[np.argsort(rows.offset[reads], kind="stable")]
    turns = np.asarray([begun.get(each, NONE) for each in message[read].tolist()], np.int64)
    turns = turns[turns != NONE]
    return bool((np.diff(turns) < 0).any())


class _Queue:
    """One queue's sends by their begin, and which of them were under way together.

    copied: by message the begin of the first other send that may have made a copy of it, which nobody answers for here.
    """

    def __init__(self, rows: Rows, findings: Findings, sends: Ints, together: Mask) -> None:
        self.rows, self.findings, self.sends = rows, findings, sends.tolist()
        self.context = rows.context_of(self.sends[0])
        self.broker = rows.name_of("broker", self.sends[0])
        self.message, self.producer = rows.text("message_id"), rows.doer
        self.together: dict[int, int] = {}
        self.twice: set[int] = set()
        for place, is_together in zip(self.sends, together.tolist(), strict=True):
            if is_together and self.together.setdefault(int(self.message[place]), place) != place:
                self.twice.add(int(self.message[place]))
        mine = positions(
            rows.are(Kind.SEND) & ~refused(rows) & (rows.queue == rows.queue[sends[0]])
        )
        self.copied: dict[int, int] = {}
        for each in mine[np.isin(self.message[mine], list(self.together))].tolist():
            sent = self.together[int(self.message[each])]
            met = rows.begin[each] < rows.end[sent] and rows.begin[sent] < rows.end[each]
            if self.producer[each] != self.producer[sent] or not (met or each == sent):
                self.copied.setdefault(int(self.message[each]), int(rows.begin[each]))

    def go_through(self, reads: Ints) -> None:
        rows = self.rows
        answered: dict[int, deque[int]] = {}
        for place in sorted(self.sends, key=lambda each: int(rows.end[each])):
            others = answered.setdefault(int(self.producer[place]), deque(maxlen=WATCHED))
            for other in others:
                first, second = sorted((other, place), key=lambda each: int(rows.begin[each]))
                met = rows.begin[second] < rows.end[first]
                if met and rows.offset[first] > rows.offset[second]:
                    self._found(first, second, int(rows.end[place]))
            others.append(place)
        self._read(reads[np.argsort(rows.end[reads], kind="stable")].tolist())

    def _read(self, reads: list[int]) -> None:
        rows, read_to = self.rows, -1
        latest: dict[int, tuple[int, int]] = {}
        for read in reads:
            offset, message = int(rows.offset[read]), int(self.message[read])
            if offset <= read_to:
                continue
            read_to = offset
            sent = self.together.get(message)
            if sent is None or message in self.twice or rows.begin[sent] > rows.end[read]:
                continue
            if offset != rows.offset[sent] and self.copied.get(message, NEVER) < rows.end[read]:
                continue
            later = latest.get(int(self.producer[sent]))
            if later is None or rows.begin[sent] > rows.begin[later[0]]:
                latest[int(self.producer[sent])] = (sent, read)
                continue
            told = offset == rows.offset[sent] and rows.offset[later[1]] == rows.offset[later[0]]
            if rows.begin[sent] < rows.begin[later[0]] and not told:
                self._found(sent, later[0], int(rows.end[read]), later[1], read)

    def _found(self, first: int, second: int, now: int, *reads: int) -> None:
        rows, context = self.rows, self.context
        epoch = int(rows.number("broker_epoch")[first])
        died = context.broker_died_since(self.broker, int(rows.begin[first]), epoch, now)
        if not died and context.frames_twice > now:
            one, two = reads[::-1] or (first, second)  # that tell the places
            self.findings.shown(
                LiesBehind,
                {"earlier": first, "later": second, "reads": reads},
                {"offsets": (int(rows.offset[one]), int(rows.offset[two]))},
                certain=not reads or context.info.closed_world,
            )


def explain(found: LiesBehind) -> str:
    earlier, later = found.earlier, found.later
    first, second = found.offsets
    return (
        f"{who(earlier)} began to send message {earlier.message_id} at {at(earlier)}, before {later.message_id} at "
        f"{at(later)}, and it lies at offset {first} of {later.queue}, behind that one at {second}"
    )
