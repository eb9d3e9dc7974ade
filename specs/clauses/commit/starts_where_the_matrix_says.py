"""Where a new incarnation starts: the stored offset, else what the group's rule says; and never after an error.

| the look-up before the ADD | the incarnation's start |
|---|---|
| an offset | it |
| nothing stored, from the first | 0, or the minimum that the broker had announced |
| nothing stored, from the last | the queue's end; of a retry topic 0 |
| nothing stored, from a time | the first message since then; of a retry topic the end |
| an error, or no answer | none: the lane is not added |

Besides: the start is fixed once. The first pull of an incarnation that has looked the offset up again asks for what
it was told, or, where it was told that nothing is stored, for what the ADD said; after an error it does not pull. And
a young topic starts at 0: while its first message is young, a look-up is answered with an offset and not with
"nothing stored". (While the queue is empty "nothing stored" is right, and its end is 0. Who starts from the last
has no claim to what is stored between this answer and the question for the end.) Of look-ups that overlap, any answer
may have been taken. A look-up of another process of the client's name says nothing of this one, where both are told.

RocketMQ's client asks for the end a second time where both look-ups found nothing stored: `start-moved` is that, and
nothing else, a start from the end whose first pull asks for what lies beyond the ADD's value; profiles allow it. A
pull from anywhere else is `pulled-elsewhere`, and one after an error `pulled-after-error`.

What the end is nobody can say exactly: a start is below it where a send was acknowledged at or beyond the start,
longer than the bound for delays before the look-up. From a time: the client's default, half an hour before the
question; the last message that was acknowledged so long before the look-up, and sent since that time, is not skipped.
*Young*: sent less than a minute before the answer, so that the broker still holds it in memory. Messages that were sent
before a crash of the broker are left out, and a reset clears what is remembered. Nor does a message show anything that
the broker had removed on purpose by then: nobody can start there, and "nothing stored" is right once the first is gone.
"""

import numpy as np

from specs.clauses.premises import CLUSTERING, NO_RESET, NO_WALL_CLOCK_STEP, NOT_REMOVED, Premise
from specs.clauses.rows import answered_offset
from specs.clauses.terms import Finding, Findings, Line, Row, Rows, at, who
from specs.facts.columns import MS, NO_TEXT, NONE, NOWHERE, Ints
from specs.facts.lookups import answers
from specs.facts.segments import chosen, ints, positions
from specs.facts.sends import Sends
from specs.facts.stored import broker_died
from specs.facts.tenures import TENURE_COLUMNS, Tenures
from specs.vocabulary import RETRY_PREFIX, Key, Kind, Outcome, Party

ID = "CMT-8"
TITLE = "the start matrix"
STATEMENT = (
    "A new incarnation starts at the stored offset, where nothing is stored at what the group's rule says, and never "
    "after an error; a young topic starts at 0."
)
PARTY = Party.PAIR
KEY = Key.QUEUE
PREMISE = (
    CLUSTERING,
    NO_RESET,
    NO_WALL_CLOCK_STEP,
    NOT_REMOVED,
    Premise(
        "default time", "a group that starts from a time takes the default, half an hour before"
    ),
)
SOURCES = ("docs/sources.md#start-matrix",)
RULES = ("WIR-14", "WIR-15")
KINDS = frozenset({Kind.SEND, Kind.FETCH_OFFSET, Kind.ADD, Kind.PULL, Kind.RESET})
SETTINGS = ("consume_from",)
NEEDS = frozenset({Kind.ADD})
LOOKS_BACK = True
EXCUSED_BY = frozenset({Kind.CRASH})
COLUMNS = (*TENURE_COLUMNS, "delay_level")

FROM_ZERO, FROM_END, FROM_TIME = "0", "the queue's end", "the first message since then"
START = {
    # consume from: (of a topic, of a retry topic)
    "first": (FROM_ZERO, FROM_ZERO),
    "last": (FROM_END, FROM_ZERO),
    "timestamp": (FROM_TIME, FROM_END),
}


class WrongStart(Finding):
    """send: a message that shows it, where one does. wanted: the right start, for people."""

    send: Row | None
    lookup: Row
    add: Row
    wanted: str


class PulledAfterError(Finding):
    """The last look-up failed, and it pulls all the same."""

    add: Row
    lookup: Row
    pull: Row


class PulledElsewhere(PulledAfterError):
    """add: what had fixed the start, where the look-up found nothing stored."""

    wanted: int


class StartMoved(PulledElsewhere):
    """Nothing was stored, neither at the first nor at the second look-up, and the pull asks for a later end."""

    first: Row


class NotYoung(Finding):
    send: Row
    lookup: Row


YOUNG_US = 60_000 * MS
HALF_AN_HOUR_US = 30 * 60_000 * MS


def judge(rows: Rows, findings: Findings) -> None:
    """Each ADD beside the look-up before it, each first pull beside the look-up since the ADD, and each look-up beside
    the queue's first message."""
    tenures, begin, told = rows.shared(Tenures), rows.begin, rows.shared(answers)
    named, tenure, until = tenures.named, tenures.number, rows.clock_stepped(np.arange(rows.size))
    judged = (begin < until) & (rows.group != NO_TEXT)
    looks, added = rows.are(Kind.FETCH_OFFSET) & judged, rows.are(Kind.ADD) & judged & named
    adds, client = positions(added), rows.lane_client
    before = Line(client, begin, positions((looks & ~named) | added))
    first = before.last_before_with(
        client[adds], begin[adds], lambda index, row: ~rows.of_two_processes(adds[index], row)
    )
    reset = chosen(begin, tenures.reset, NONE)
    known = looks[first] & (begin[first] > reset[adds]) & (rows.end[first] < begin[adds])
    first = np.where(known, first, NOWHERE)
    over = Line(client, rows.end, positions(looks & ~named))
    for lookup, add in zip(first.tolist(), adds.tolist(), strict=True):
        if lookup != NOWHERE and rows.value[add] != NONE:
            beside = over.within(int(client[add]), int(begin[lookup]), int(begin[add]))
            beside = beside[~rows.of_two_processes(beside, ints([add]))]
            _started(rows, findings, [*beside.tolist(), lookup], add)
    pulls = Line(tenure, begin, positions(rows.are(Kind.PULL) & judged & named))
    pull = pulls.first_after(tenure[adds], begin[adds])
    again = Line(tenure, begin, positions(looks & named))
    second = again.last_before(tenure[adds], chosen(begin, pull, NONE))
    known = (second != NOWHERE) & (rows.end[second] < begin[pull]) & (reset[pull] < begin[adds])
    over = Line(tenure, rows.end, positions(looks & named))
    for each in np.stack([first, adds, second, pull], axis=1)[known].tolist():
        heard = told[over.within(int(tenure[each[1]]), int(begin[each[2]]), int(begin[each[3]]))]
        _pulled(rows, findings, heard, *each)
    answered = looks & (rows.end < until) & ((told == 0) | (told == -1))
    for lookup in positions(answered).tolist():
        _is_young(rows, findings, lookup)


def _start(rows: Rows, place: int) -> str:
    """Where whoever finds nothing stored for the row's lane begins."""
    is_retry = rows.name_of("topic", place).startswith(RETRY_PREFIX)
    return START[rows.config_of(place).consume_from][is_retry]


def _seen(rows: Rows, lookup: int, until: int) -> Ints:
    """The sends to the queue that had been acknowledged by then, and longer than the bound before the look-up."""
    sent, info = rows.shared(Sends).of_queue(int(rows.queue[lookup])), rows.context_of(lookup).info
    bound_us = info.config.delay_bound_ms * MS + info.clock_bound_us
    early = rows.ended[sent] + bound_us <= rows.started[lookup]
    found: Ints = sent[early & (rows.end[sent] < until)]
    return found


def _started(rows: Rows, findings: Findings, lookups: list[int], add: int) -> None:
    """An ADD beside the look-ups of which it may have taken any, the last one last."""
    findings.at_stake_times(add, 1)
    value, trims = int(rows.value[add]), rows.context_of(add).trims.get(rows.queue_of(add), ())
    for lookup in lookups:
        told, wanted, send = int(rows.shared(answers)[lookup]), _start(rows, add), NOWHERE
        if told == NONE:
            wanted, is_right = "nothing before the look-up has an answer", False
        elif told >= 0:
            wanted, is_right = f"the stored offset {told}", value == told
        elif wanted == FROM_ZERO:
            is_right = value in (0, *(kept for seq, kept in trims if seq <= rows.begin[add]))
        else:
            send = _shows(rows, lookup, add)
            is_right = send == NOWHERE
        if is_right:
            return
    findings.shown(WrongStart, {"send": send, "lookup": lookup, "add": add}, {"wanted": wanted})


def _shows(rows: Rows, lookup: int, add: int) -> int:
    """The message that shows that a start after nothing stored is wrong, or NOWHERE."""
    sent = _seen(rows, lookup, int(rows.begin[lookup]))
    if not len(sent):
        return NOWHERE
    last = int(sent[np.lexsort((rows.end[sent], -rows.offset[sent]))[0]])
    now, context = int(rows.begin[add]), rows.context_of(add)
    offset, value = int(rows.offset[last]), int(rows.value[add])
    since_us = int(rows.started[add]) + context.info.clock_bound_us - HALF_AN_HOUR_US
    if _start(rows, add) == FROM_END:
        shows = value <= offset
    else:
        kept = context.kept_from(rows.queue_of(add), now)
        shows = rows.started[last] >= since_us and kept <= offset < value
    return last if shows and not broker_died(rows, last, now) else NOWHERE


def _pulled(
    rows: Rows, findings: Findings, heard: Ints, first: int, add: int, lookup: int, pull: int
) -> None:
    """The first pull of an incarnation that has looked the offset up since its ADD. first: the look-up before that."""
    told, value, asked = (
        int(each) for each in (rows.shared(answers)[lookup], rows.value[add], rows.offset[pull])
    )
    if asked != NONE and asked in np.where(heard == -1, value, heard):
        told = asked
    wanted, roles = value if told == -1 else told, {"add": add, "lookup": lookup, "pull": pull}
    if told == NONE:
        findings.shown(PulledAfterError, roles)
    elif NONE in (wanted, asked):
        return
    elif asked != wanted:
        empty = told == -1 and first != NOWHERE and rows.shared(answers)[first] == -1
        if empty and asked > value and _start(rows, add) == FROM_END:
            findings.shown(StartMoved, roles | {"first": first}, {"wanted": wanted})
        else:
            findings.shown(PulledElsewhere, roles, {"wanted": wanted})
    findings.at_stake_times(pull, 1)


def _is_young(rows: Rows, findings: Findings, lookup: int) -> None:
    """A look-up that was told 0, or that nothing is stored."""
    now, context = int(rows.end[lookup]), rows.context_of(lookup)
    sent = _seen(rows, lookup, now)
    sent = sent[rows.offset[sent] == 0]
    if not len(sent) or context.kept_from(rows.queue_of(lookup), now):
        return
    first = int(sent[np.argmin(rows.end[sent])])
    since_us = int(rows.ended[lookup]) - YOUNG_US + context.info.clock_bound_us
    if rows.started[first] > since_us and not broker_died(rows, first, now):
        findings.at_stake_times(lookup, 1)
        if rows.ended_as(Outcome.REFUSED)[lookup]:
            findings.shown(NotYoung, {"send": first, "lookup": lookup})


def explain(found: WrongStart | PulledAfterError | NotYoung) -> str:
    lookup = found.lookup
    code = lookup.code if lookup.outcome is Outcome.REFUSED else None
    failed = f"the error {code}" if code else "no answer"
    answer = answered_offset(lookup)
    told = {None: failed, -1: "that nothing is stored"}.get(answer, f"{answer}")
    heard = f"{who(lookup)} asked at {at(lookup)} for the offset stored for {lookup.lane} and heard {told}"
    if isinstance(found, NotYoung):
        return f"{heard}, although the queue's first message {found.send.message_id} was sent at {at(found.send)}"
    if isinstance(found, PulledAfterError):
        instead = (
            f"instead of {found.wanted}" if isinstance(found, PulledElsewhere) else "all the same"
        )
        return f"{heard}; its first pull, at {at(found.pull)}, asked for {found.pull.queue_offset} {instead}"
    send = found.send
    shown = "" if send is None else f" (offset {send.queue_offset} was sent at {at(send)})"
    return f"{heard}; it started at {found.add.value} at {at(found.add)} instead of {found.wanted}{shown}"
