"""Words that several definitions use, each of them one line of logic over the rows of a small history.

Everything is looked up anew in all rows whenever somebody asks: slow, and with no state that could be wrong.
"""

from __future__ import annotations

from collections.abc import Sequence

from specs.history.row import Row
from specs.plan.config import Config
from specs.vocabulary import (
    DLQ_PREFIX,
    LISTENER_SUSPENDS,
    RETRY_PREFIX,
    CommitMode,
    Kind,
    Outcome,
)

Rows = Sequence[Row]

AUTO, MANUAL = CommitMode.AUTO.value, CommitMode.MANUAL.value
OFFSET_MOVED = 21
"""The code of a pull's answer that tells it to go on elsewhere."""
NOTHING_HERE = (19, 20)
"""Those that say that nothing was found; further ahead there may be something."""
_NEVER_US = 10**15
_NEVER = 10**9
WEAK = (10, 11, 12)
"""Codes of an answer that says stored, but not flushed or replicated in time."""
INTERNAL_ERROR = 1
"""The code of an answer that says nothing for certain."""
NO_KEY = ("random", "round-robin")
"""Selectors that look at no key."""


def of(rows: Rows, *kinds: Kind) -> list[Row]:
    """The rows of these kinds."""
    return [row for row in rows if row.kind in kinds]


def took_effect(rows: Rows, *kinds: Kind) -> list[Row]:
    """The rows of these kinds that were not refused: what was refused changed nothing."""
    return [row for row in of(rows, *kinds) if row.outcome is not Outcome.REFUSED]


def calls(rows: Rows) -> list[Row]:
    """The listener calls, a row for each message."""
    return of(rows, Kind.DELIVER)


def before(first: Row, second: Row) -> bool:
    """Had the first certainly ended when the second began?"""
    return first.seq_end is not None and first.seq_end < second.seq_begin


def began_before(first: Row, second: Row) -> bool:
    return first.seq_begin < second.seq_begin


def ended_by(row: Row, moment: int) -> bool:
    """Had it ended at that place of the order?"""
    return row.seq_end is not None and row.seq_end <= moment


def between(first: Row, middle: Row, second: Row) -> bool:
    """Did the middle one begin after the first one began, and before the second one did?"""
    return first.seq_begin < middle.seq_begin < second.seq_begin


def offset(row: Row) -> int:
    """The message's place, of a row that has one."""
    assert row.queue_offset is not None, "a row about a message names its place"
    return row.queue_offset


def same_lane(first: Row, second: Row) -> bool:
    return first.lane == second.lane


def same_queue(first: Row, second: Row) -> bool:
    return first.queue == second.queue


def same_client(first: Row, second: Row) -> bool:
    """One client id and one process."""
    return (first.client_id, first.process) == (second.client_id, second.process)


def same_call(first: Row, second: Row) -> bool:
    return first.op_id == second.op_id


def life(rows: Rows, row: Row) -> int:
    """Counts the lives of the row's client before it: deaths, and returns to a group that it had left."""
    deaths = [
        other
        for other in of(rows, Kind.CRASH)
        if other.client_id == row.client_id and began_before(other, row)
    ]
    departures = [
        leave
        for leave in took_effect(rows, Kind.LEAVE)
        if (leave.client_id, leave.group) == (row.client_id, row.group)
        and any(
            (back.client_id, back.group) == (row.client_id, row.group)
            and leave.seq_begin < back.seq_begin <= row.seq_begin
            for back in took_effect(rows, Kind.JOIN, Kind.ADD)
        )
    ]
    return len(deaths) + len(departures)


def adds(rows: Rows, row: Row) -> list[Row]:
    """The beginnings of incarnations of that name, in that life of that client on that lane, up to the row."""
    return [
        add
        for add in took_effect(rows, Kind.ADD)
        if same_client(add, row)
        and same_lane(add, row)
        and add.incarnation == row.incarnation
        and add.seq_begin <= row.seq_begin
        and life(rows, add) == life(rows, row)
    ]


def same_incarnation(rows: Rows, first: Row, second: Row) -> bool:
    """One client's work on one lane from add until drop, in one life; a row that names none belongs to none."""
    return (
        first.incarnation is not None
        and first.incarnation == second.incarnation
        and same_client(first, second)
        and same_lane(first, second)
        and len(adds(rows, first)) == len(adds(rows, second))
        and life(rows, first) == life(rows, second)
    )


def was_reset(rows: Rows, since: Row, until: Row) -> bool:
    """May an operator have moved the lane's offset after `since` began and before `until` did?

    At any moment until the answer; without an answer at any later one.
    """
    return any(
        same_lane(reset, until) and began_before(reset, until) and not before(reset, since)
        for reset in took_effect(rows, Kind.RESET)
    )


def corrections(rows: Rows, row: Row) -> list[Row]:
    """The client's pulls of the lane that were told to go on elsewhere before that row; named ones since the ADD."""
    return [
        pull
        for pull in of(rows, Kind.PULL)
        if is_told_to_go_on(pull)
        and pull.client_id == row.client_id
        and same_lane(pull, row)
        and before(pull, row)
        and not (
            pull.incarnation is not None and any(before(pull, add) for add in adds(rows, row)[-1:])
        )
    ]


def is_told_to_go_on(pull: Row) -> bool:
    """Elsewhere, by a code; further ahead, where nothing was found; or, where no code is told, further back."""
    if pull.value is None or pull.queue_offset is None or pull.code == OFFSET_MOVED:
        return pull.code == OFFSET_MOVED
    ahead = pull.code in NOTHING_HERE and pull.value > pull.queue_offset
    return ahead or (pull.code is None and pull.value < pull.queue_offset)


def is_correction(rows: Rows, commit: Row) -> bool:
    """Does the commit tell an offset that the broker gave its client, and not one that was reached?"""
    return commit.detail == "corrected" or any(
        pull.value == commit.value for pull in corrections(rows, commit)
    )


def of_its_client(rows: Rows, row: Row, other: Row) -> bool:
    """Is it of the other one's incarnation; or, where it names none, of its client on that lane?"""
    if row.incarnation is None:
        return same_client(row, other) and same_lane(row, other)
    return same_incarnation(rows, row, other)


def was_moved_before(rows: Rows, until: Row) -> bool:
    """Had an operator begun to move the lane's offset before this one was over?"""
    end = until.seq_begin if until.seq_end is None else until.seq_end
    return any(
        same_lane(reset, until) and reset.seq_begin < end for reset in took_effect(rows, Kind.RESET)
    )


def moved_in_its_life(rows: Rows, call: Row) -> bool:
    """May an operator have moved the lane's offset since the incarnation was added (or ever, if nobody saw that)?"""
    begins = adds(rows, call)
    return any(
        same_lane(reset, call)
        and began_before(reset, call)
        and not (begins and before(reset, begins[-1]))
        for reset in took_effect(rows, Kind.RESET)
    )


def asks_again(call: Row) -> bool:
    """Did the call end with a result that asks for its batch again: SUSPEND, null, a throw, a manual ROLLBACK?"""
    return call.outcome in LISTENER_SUSPENDS or rolled_back(call)


def rolled_back(call: Row) -> bool:
    """Did it end in a ROLLBACK of manual mode, which puts back all that was taken?"""
    return call.outcome is Outcome.ROLLBACK and call.commit_mode == MANUAL


def may_have_rolled_back(call: Row) -> bool:
    """Was it a manual ROLLBACK, or does nobody say that it was none: how it ended, or in which mode?"""
    return call.commit_mode != AUTO and call.outcome in (
        Outcome.ROLLBACK,
        Outcome.UNKNOWN,
        Outcome.CUT,
    )


def acknowledges(call: Row) -> bool:
    """Did a call of auto mode end with a result that is done with its batch?"""
    return call.commit_mode == AUTO and call.outcome in (
        Outcome.SUCCESS,
        Outcome.COMMIT,
        Outcome.ROLLBACK,
    )


def died_between(rows: Rows, first: Row, second: Row) -> bool:
    """Did the first one's client die between both begins?"""
    return any(
        crash.client_id == first.client_id and between(first, crash, second)
        for crash in of(rows, Kind.CRASH)
    )


def is_of_link(fault: Row, client: str | None, broker: str | None) -> bool:
    """Does the fault concern the link of these two: it names both, one of them, or nobody?"""
    names = {word for word in (fault.detail or "").split()[1:] if not word.isdigit()}
    return names <= {client, broker}


def filled_a_disk(fault: Row, broker: str | None) -> bool:
    """Is it a fault that filled this broker's disk?"""
    words = (fault.detail or "").split()
    return fault.kind is Kind.FAULT and words[:1] == ["disk_full"] and broker in words[1:]


def broker_died(rows: Rows, broker: str | None, begin: int, end: int) -> bool:
    """Did the broker die between these two places of the order?"""
    return any(
        crash.broker == broker and begin < crash.seq_begin < end for crash in of(rows, Kind.CRASH)
    )


def end_of(row: Row) -> int:
    """The place of its end; of one that never ended, beyond all others."""
    return _NEVER if row.seq_end is None else row.seq_end


def is_leaving(rows: Rows, call: Row, moment: Row) -> bool:
    """Had the call's client begun to leave the group at that moment, and not come again before the call?"""
    return any(
        leave.client_id == call.client_id
        and leave.group == call.group
        and began_before(leave, moment)
        and not any(
            back.client_id == call.client_id
            and back.group == call.group
            and leave.seq_begin < back.seq_begin <= call.seq_begin
            for back in took_effect(rows, Kind.JOIN, Kind.ADD)
        )
        for leave in took_effect(rows, Kind.LEAVE)
    )


def left_with(rows: Rows, row: Row, moment: Row) -> bool:
    """Had a departure of the row's client from the group begun by that moment that was not over before the row?

    A lane that is added, and whatever is asked for, in the midst of one goes with it.
    """
    return any(
        (leave.client_id, leave.group) == (row.client_id, row.group)
        and began_before(leave, moment)
        and row.seq_begin <= (leave.seq_end or leave.seq_begin)
        for leave in took_effect(rows, Kind.LEAVE)
    )


def replayed_before(rows: Rows, moment: Row) -> bool:
    """May the incarnation have put back all that was taken, by a manual ROLLBACK, before that row?

    A call without a result that anybody saw was none if the next one lies beyond it.
    """
    return any(
        may_have_rolled_back(call)
        and same_incarnation(rows, call, moment)
        and began_before(call, moment)
        and not was_reset(rows, call, moment)
        and (
            before(call, moment)
            if call.outcome is Outcome.ROLLBACK
            else not goes_on_beyond(rows, call, moment)
        )
        for call in calls(rows)
    )


def goes_on_beyond(rows: Rows, call: Row, until: Row) -> bool:
    """Does its incarnation's next call, up to that row, lie beyond it?"""
    later = [
        other
        for other in calls(rows)
        if began_before(call, other)
        and other.seq_begin <= until.seq_begin
        and same_incarnation(rows, other, call)
        and not same_call(other, call)
    ]
    return bool(later) and offset(later[0]) > offset(call)


def letter_failed_between(rows: Rows, message: Row, call: Row) -> bool:
    """Was a dead letter of the message begun between these two rows, and never acknowledged?"""
    return any(
        letter.outcome is not Outcome.OK
        and is_about(rows, letter, message)
        and between(message, letter, call)
        for letter in of(rows, Kind.DEAD_LETTER)
    )


def is_about(rows: Rows, letter: Row, message: Row) -> bool:
    """Is it a dead letter of that message, by its incarnation or, where it names none, by its client?"""
    return (
        letter.queue_offset == message.queue_offset
        and letter.client_id == message.client_id
        and same_lane(letter, message)
        and (letter.incarnation is None or same_incarnation(rows, letter, message))
    )


def is_plain(send: Row) -> bool:
    """Is it a message as any other: no copy of one, none that waits for its time or for its transaction?"""
    return (
        not send.delay_level
        and not (send.detail or "").startswith("half")
        and not is_copy_topic(send)
    )


def is_copy_topic(row: Row) -> bool:
    """Is it about a topic of retries or of dead letters?"""
    return (row.topic or "").startswith((RETRY_PREFIX, DLQ_PREFIX))


def may_be_adopted(look: Row) -> bool:
    """Did a look-up find an offset, or that there is none; or did nobody see what it found?"""
    return look.outcome is not Outcome.REFUSED or look.value == -1


def was_seen(row: Row) -> bool:
    """Does a delivery or a reading show its message? A reading that failed found nothing."""
    return row.kind is Kind.DELIVER or row.outcome is Outcome.OK


def was_refused_for_certain(send: Row) -> bool:
    """Does the answer's code say that nothing was stored?"""
    return send.outcome is Outcome.REFUSED and send.code not in (None, INTERNAL_ERROR, *WEAK)


def chose_by_key(send: Row) -> bool:
    """Does it say by which selector and from which queues its queue was chosen, and does that one look at a key?"""
    words = (send.view or "").split()
    return send.sharding_key is not None and len(words) > 1 and words[0] not in NO_KEY


def is_marker(read: Row) -> bool:
    """Does it stand for the reading of a queue, and not for one message of it?"""
    return read.kind is Kind.READ and read.queue_offset is None and read.message_id is None


def stood_still(rows: Rows, read: Row) -> bool:
    """Did the broker of the queue stand still while it was read?"""
    return any(
        pause.broker == read.broker and not before(pause, read) and not before(read, pause)
        for pause in of(rows, Kind.PAUSE)
    )


def awake_us(rows: Rows, read: Row, since_us: int) -> int:
    """How long, up to the begin of the reading, the broker of its queue has not stood still."""
    stood = sum(
        max(0, min(read.started_us, _end_us(pause)) - max(since_us, pause.started_us))
        for pause in of(rows, Kind.PAUSE)
        if pause.broker == read.broker
    )
    return read.started_us - since_us - stood


def _end_us(row: Row) -> int:
    return _NEVER_US if row.ended_us is None else row.ended_us


def finished(rows: Rows, moment: Row, place: int) -> bool:
    """Has somebody of the group finished the message of the lane at that offset, or may have, before the moment?"""
    return any(
        offset(row) == place
        and (row.kind is Kind.DELIVER or _is_acknowledged(row))
        and (row.kind is Kind.DEAD_LETTER or not was_dropped(rows, row))
        and (_finishes(rows, row) or _is_covered(rows, row, moment))
        for row in of(rows, Kind.DELIVER, Kind.DEAD_LETTER)
        if same_lane(row, moment) and before(row, moment)
    )


def had_by_others(rows: Rows, send: Row, moment: Row) -> bool:
    """Had another group finished the message before the moment's one was first at work there?"""
    mine = [row for row in rows if same_lane(row, moment) and row.kind is not Kind.COMMIT]
    first = min([*mine, moment], key=lambda row: row.seq_begin)
    return any(
        call.group != moment.group
        and same_queue(call, send)
        and call.queue_offset == send.queue_offset
        and ended_well(call)
        and before(call, first)
        and before(send, first)
        for call in calls(rows)
    )


def was_dropped(rows: Rows, row: Row) -> bool:
    """Had its client dropped the lane before it ended? Then nobody takes the result up."""
    return any(
        drop.seq_begin < (row.seq_end or row.seq_begin)
        and (
            same_incarnation(rows, drop, row) or (began_before(row, drop) and same_name(drop, row))
        )
        for drop in took_effect(rows, Kind.DROP)
    )


def same_name(first: Row, second: Row) -> bool:
    """One client's work on one lane under one name, in whatever life."""
    return (
        first.incarnation is not None
        and first.incarnation == second.incarnation
        and same_client(first, second)
        and same_lane(first, second)
    )


def _is_acknowledged(letter: Row) -> bool:
    return letter.kind is Kind.DEAD_LETTER and letter.outcome is Outcome.OK


def _finishes(rows: Rows, row: Row) -> bool:
    """Is the call, or the acknowledged dead letter, by itself done with what it is about?"""
    if row.kind is Kind.DEAD_LETTER:
        by_hand = row.incarnation is not None and _mode_of_letter(rows, row) == MANUAL
        return _is_acknowledged(row) and not by_hand
    return ended_well(row)


def ended_well(call: Row) -> bool:
    """Did it end with what finishes its batch in its mode, or may it have where nobody says the mode?"""
    if call.commit_mode == MANUAL:
        return call.outcome is Outcome.COMMIT
    return call.outcome in (Outcome.SUCCESS, Outcome.COMMIT, Outcome.ROLLBACK)


def _mode_of_letter(rows: Rows, letter: Row) -> str | None:
    """The mode that it says, or that of its client's last call of the message, or of its incarnation's last one."""
    earlier = [
        call
        for call in calls(rows)
        if letter.client_id == call.client_id
        and same_lane(letter, call)
        and began_before(call, letter)
    ]
    its_own = [call for call in earlier if offset(call) == offset(letter)]
    others = [call for call in earlier if same_incarnation(rows, letter, call)]
    modes = [call.commit_mode for call in its_own or others]
    return letter.commit_mode or (modes[-1] if modes else None)


def _is_covered(rows: Rows, taken: Row, moment: Row) -> bool:
    """Was it taken, or given up, in manual mode, and finished with a later one before a ROLLBACK put it back?"""
    return (taken.kind is Kind.DEAD_LETTER or taken.outcome is Outcome.SUCCESS) and any(
        _finishes(rows, later)
        and (later.kind is Kind.DEAD_LETTER or not was_dropped(rows, later))
        and same_incarnation(rows, later, taken)
        and end_of(taken) < end_of(later)
        and before(later, moment)
        and not any(
            same_incarnation(rows, other, taken)
            and between(taken, other, later)
            and rolled_back(other)
            for other in calls(rows)
        )
        for later in of(rows, Kind.DELIVER, Kind.DEAD_LETTER)
    )


def may_be_untold(rows: Rows, moment: Row, *more: Kind) -> bool:
    """Had the lane shown no dead letter before the moment, or one of which nobody says whose it is?"""
    letters = [
        letter
        for letter in of(rows, Kind.DEAD_LETTER, *more)
        if same_lane(letter, moment) and began_before(letter, moment)
    ]
    nameless = [each for each in letters if each.incarnation is None]
    return not letters or any(each.kind is Kind.DEAD_LETTER for each in nameless)


def may_be_given_up_unseen(rows: Rows, config: Config, moment: Row, place: int) -> bool:
    """Was the message put back with its retries used up, or taken with one that was, and did not come again?"""
    about = [
        row
        for row in calls(rows)
        if same_lane(row, moment) and offset(row) == place and began_before(row, moment)
    ]
    return may_be_untold(rows, moment, Kind.SEND_BACK) and any(
        (_is_taken(row) or (row.outcome in LISTENER_SUSPENDS and is_used_up(config, row)))
        and before(row, moment)
        and (row.commit_mode != MANUAL or _is_committed_later(rows, config, row, moment))
        and not any(before(row, other) and same_name(row, other) for other in about)
        for row in about
    )


def _is_taken(call: Row) -> bool:
    return call.commit_mode == MANUAL and call.outcome is Outcome.SUCCESS


def _is_committed_later(rows: Rows, config: Config, call: Row, moment: Row) -> bool:
    """Did a later call of the lane end with what finishes, before the moment, or may it have given its own message up,
    in auto mode? That finishes what was taken, or given up, in manual mode."""
    return any(
        same_lane(other, call)
        and began_before(call, other)
        and before(other, moment)
        and (
            (ended_well(other) and not _is_taken(call))
            or (
                other.commit_mode != MANUAL
                and other.outcome in LISTENER_SUSPENDS
                and is_used_up(config, other)
            )
        )
        for other in calls(rows)
    )


def is_used_up(config: Config, call: Row) -> bool:
    """Were its retries used up, or does nobody say how many it had?"""
    limit, retries = config.max_reconsume_times, call.reconsume_times
    return limit >= 0 and (retries is None or retries >= limit)


def was_removed(rows: Rows, moment: Row, place: int) -> bool:
    """Had the broker announced, before the moment, a minimum above that offset of the queue?"""
    return any(
        trim.value is not None and place < trim.value
        for trim in took_effect(rows, Kind.TRIM)
        if same_queue(trim, moment) and began_before(trim, moment)
    )


def may_be_applied_between(config: Config, request: Row, first: Row, second: Row) -> bool:
    """May the broker have applied the request after the first one was, and before the second one?"""
    return may_be_applied_after(config, request, first) and request.seq_begin < (
        second.seq_end or _NEVER_US
    )


def may_be_applied_after(config: Config, request: Row, first: Row) -> bool:
    """May it have been applied after the first one was? Until its answer, or within the bound for delays."""
    if request.outcome is Outcome.OK:
        return not before(request, first)
    return latest_us(config, request) >= first.started_us


def latest_us(config: Config, request: Row) -> int:
    """When it may have been applied at the latest: by its answer or, where it has none, within the bound for delays."""
    if request.outcome is Outcome.OK:
        return _end_us(request)
    return max(request.started_us + config.delay_bound_ms * 1_000, request.ended_us or 0)
