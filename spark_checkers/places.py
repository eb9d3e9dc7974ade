"""Where changes of a valid history can be made: rows that fit together, as several clauses ask for them.

Each goes through a `Trace`, and finds one row, or some in a tuple. What is particular to one clause lies in its file.
"""

from collections import Counter
from collections.abc import Hashable, Iterator

from spark_checkers.changes import MS, Given
from spark_checkers.planting import Pairs, Selection, Trace, Work, grouped, pairs, place, triples
from specs.clauses.rows import ended_before, is_copy_topic, is_manual
from specs.vocabulary import DLQ_PREFIX, LISTENER_SUSPENDS, Kind, Outcome


def each(*kinds: Kind) -> Selection:
    return lambda trace: trace.of(*kinds)


def one_by_one(selection: Selection) -> Selection:
    """Where each call has one message."""
    return lambda trace: selection(trace) if trace.config.batch == 1 else ()


# ------------------------------------------------------------------------------------------ sends and reads


def reads(trace: Trace) -> Pairs:
    """(the acknowledged send, the read that found it), for messages that were read once and under a marker."""
    found = [row for row in trace.of(Kind.READ) if not is_copy_topic(row.topic)]
    marked = {row.queue for row in found if row.queue_offset is None}
    for rows in grouped((r for r in found if r.queue_offset is not None), place).values():
        send, read = trace.send_of(rows[0]), rows[0]
        usual = send is not None and send.code in (None, 0) and not send.delay_level
        alone = len(rows) == 1 and read.queue in marked
        if usual and alone and send.seq_end is not None and send.message_id == read.message_id:
            yield send, read


def missed(trace: Trace, wait_us: int = 0) -> Pairs:
    """Sends that nothing disturbed, with their reads, by a reading that began that long after, and the slack."""
    config = trace.config
    slack_us = (2 * config.delay_bound_ms + config.schedule_slack_ms) * MS
    nameless = (row for row in trace.of(Kind.READ) if row.message_id is None)
    markers = {row.queue: row for row in nameless if row.queue_offset is None}
    trouble = {Kind.FAULT, Kind.CRASH, Kind.LEAVE, Kind.PAUSE, Kind.CLOCK_STEP, Kind.TRIM}
    first = min((row.started_us for row in trace.rows if row.kind in trouble), default=None)
    for send, read in reads(trace):
        over_us, marker = send.ended_us + slack_us, markers.get(send.queue)
        calm = send.value is None and (first is None or first > over_us)
        if calm and marker is not None and over_us + wait_us <= marker.started_us:
            yield send, read


def of_one_key(trace: Trace) -> Pairs:
    """Two sends of one producer and key, chosen alike; the first was over before the second began."""
    chosen = (row for row in trace.sent.values() if row.view is not None and not row.delay_level)
    alike = pairs(chosen, lambda row: (row.client_id, row.topic, row.sharding_key, row.view))
    return ((before, row) for before, row in alike if ended_before(before, row))


# ------------------------------------------------------------------------------------------ locks


def held(trace: Trace) -> Iterator[Given]:
    """Granted locks after which the owner keeps the lane for a while."""
    for lane, rows in trace.lanes.items():
        for lock, after in pairs(trace.locks(lane)):
            mine = (row for row in rows if row.client_id == lock.client_id)
            unlocks = (row.seq_begin for row in mine if row.kind is Kind.UNLOCK)
            undone = any(lock.seq_begin <= seq < after.seq_begin for seq in unlocks)
            long = after.started_us > lock.ended_us + 10 * MS
            if after.client_id == lock.client_id and long and not undone:
                yield lock


def later(trace: Trace, row: Given, after_us: int) -> Given:
    """The first row that begins so long after the end of another, or None."""
    since = (row.ended_us or row.started_us) + after_us
    after = (each for each in trace.rows if each.seq_begin > row.seq_begin)
    return next((each for each in after if each.started_us > since), None)


def grant(trace: Trace, like: Given, answered_us: int, until_us: int) -> Given | None:
    """The last grant of a row's client that was answered by then, if it is fresh until then and nothing undid it."""
    found = [r for r in trace.locks(like.lane, like.client_id) if r.ended_us <= answered_us]
    if not found or found[-1].started_us + trace.config.client_lease_ms * MS < until_us:
        return None
    undone = any(
        (row.kind is Kind.UNLOCK or row.outcome is Outcome.REFUSED)
        and row.started_us <= until_us
        and row.seq_begin >= found[-1].seq_begin
        for row in trace.lanes[like.lane]
        if row.client_id == like.client_id
    )
    return None if undone else found[-1]


# ------------------------------------------------------------------------------------------ commits


def acknowledged(trace: Trace) -> Iterator[Given]:
    """Commits that were answered, of a lane where no offset was reset."""
    for rows in trace.lanes.values():
        if not any(row.kind is Kind.RESET for row in rows):
            commits = (row for row in rows if row.kind is Kind.COMMIT and row.value)
            yield from (row for row in commits if row.outcome is Outcome.OK)


# ------------------------------------------------------------------------------------------ calls


def neighbours(trace: Trace) -> Pairs:
    """First deliveries that follow each other in one incarnation, finished at once, no commit between."""
    for work in trace.works:
        highest, before = -1, None
        for row in work.of(Kind.COMMIT, Kind.DELIVER):
            if row.kind is Kind.COMMIT:
                before = None
                continue
            plain = row.outcome is Outcome.SUCCESS and not row.reconsume_times
            plain = plain and row.queue_offset > highest
            if plain and before is not None and before.op_id != row.op_id:
                sent = trace.send_of(row)
                if sent is None or sent.seq_begin < before.seq_begin:
                    yield before, row
            before = row if plain else None
            highest = max(highest, row.queue_offset)


def redelivered(trace: Trace) -> Pairs:
    """A suspended delivery and the next one of the same message."""
    for work in trace.works:
        if all(row.outcome is not Outcome.ROLLBACK for row in work.calls):
            for before, row in pairs(work.calls):
                same = before.queue_offset == row.queue_offset
                if same and before.outcome in LISTENER_SUSPENDS and before.seq_end:
                    yield before, row


def called_next(trace: Trace) -> Iterator[tuple[Work, Given, Given]]:
    """(an incarnation, a first call that went well, its next call): of the next message, which had been pulled."""
    for work in trace.works:
        pulls = [row for row in work.of(Kind.PULL) if row.outcome is Outcome.OK]
        for before, after in pairs(work.calls):
            offset = after.queue_offset
            went_well = before.outcome is Outcome.SUCCESS and not before.reconsume_times
            if went_well and before.seq_end is not None and offset == before.queue_offset + 1:
                there = (pull for pull in pulls if pull.queue_offset < offset < pull.value)
                if any(ended_before(pull, before) for pull in there):
                    yield work, before, after


def at_rest(trace: Trace, work: Work, last: Given, until_us: int) -> Given | None:
    """The first row after that moment, if the incarnation has its lane from the end of that call until then."""
    over = (row for row in trace.rows if row.ended_us is not None and row.started_us > until_us)
    late = next(over, None)
    has_lane = grant(trace, last, last.ended_us, until_us) is not None
    return late if has_lane and late is not None and late.seq_begin < work.until else None


def last_works(trace: Trace) -> Iterator[tuple[Work, list[Given]]]:
    """The incarnations that work to the end, each with the deliveries of the last message of its lane."""
    dead = {row.client_id for row in trace.rows if row.kind in (Kind.CRASH, Kind.LEAVE)}
    empty = (row for row in trace.of(Kind.READ) if row.queue_offset is None)
    settled = {row.queue for row in empty if row.detail == "settled"}
    for lane, rows in trace.lanes.items():
        adds = [row for row in rows if row.kind is Kind.ADD]
        calls = [row for row in rows if row.kind is Kind.DELIVER]
        if not adds or not calls or adds[-1].client_id in dead or lane.queue not in settled:
            continue
        mine = Work([row for row in rows if row.incarnation == adds[-1].incarnation])
        last = max(row.queue_offset for row in calls)
        moved = any(row.kind is Kind.RESET or is_manual(row) for row in rows)
        if mine.drop is None and not moved and last >= (adds[-1].value or 0):
            yield mine, [row for row in calls if row.queue_offset == last]


# ------------------------------------------------------------------------------------------ dead letters


def given_up(trace: Trace) -> Iterator[tuple[Given, Given, Given]]:
    """(the last delivery, its dead letter, the incarnation's next call): given up at the first try, in auto mode."""
    told = [Kind.DELIVER, Kind.DEAD_LETTER, Kind.DELIVER]
    for work in trace.works:
        rows = work.of(*told)
        for last, letter, after in () if any(map(is_manual, rows)) else triples(rows):
            at_once = letter.outcome is Outcome.OK and letter.attempt in (None, 1)
            on = last.queue_offset == letter.queue_offset < after.queue_offset
            if [last.kind, letter.kind, after.kind] == told and at_once and on:
                yield last, letter, after


def dead_reads(trace: Trace) -> Pairs:
    """(marker, row) for every dead letter that was read, once, under a marker of its queue."""
    rows = [row for row in trace.of(Kind.READ) if (row.topic or "").startswith(DLQ_PREFIX)]
    rows = [row for row in rows if row.outcome is Outcome.OK]
    markers = [row for row in rows if row.queue_offset is None and row.source_id is None]
    letters = grouped(trace.of(Kind.DEAD_LETTER), lambda row: row.source_id)
    found = grouped((row for row in rows if row.source_id is not None), lambda row: row.source_id)
    for source, (row, *more) in found.items():
        # With the dead letters in sight: given up once, at the first try, in auto mode, long enough before.
        sent = letters.get(source, [])
        fine = [each.outcome is Outcome.OK and each.attempt in (None, 1) for each in sent] == [True]
        over = [
            m for m in markers if m.queue == row.queue and m.seq_begin < row.seq_begin < m.seq_end
        ]
        if over and (fine or not letters) and not more:
            yield over[0], row


# ------------------------------------------------------------------------------------------ shares


def shared_alike(trace: Trace) -> Pairs:
    """(a member's share, another's) where all computed theirs last from the same view, the first one last."""
    latest: dict[Hashable, dict[str, Given]] = {}
    for row in trace.of(Kind.ASSIGN):
        if row.view is None or row.detail is None:
            continue
        known = latest.setdefault((row.group, row.topic), {})
        known[row.client_id] = row
        members = row.view.partition(" | ")[0].split()
        party = [known[member] for member in members if member in known]
        alike = len(party) == len(members) > 1 and {each.view for each in party} == {row.view}
        if alike and row.client_id in members:
            yield row, next(each for each in party if each is not row)


# ------------------------------------------------------------------------------------------ messages that are leased


def _hand_outs(trace: Trace) -> Iterator[Given]:
    """To members that neither stand still nor are about to leave."""
    troubled = list(trace.of(Kind.PAUSE, Kind.LEAVE, Kind.CRASH))
    for row in trace.of(Kind.RECEIVE):
        if row.outcome is not Outcome.OK or row.ended_us is None:
            continue
        beside = any(
            each.started_us <= row.ended_us and (each.ended_us or each.started_us) >= row.started_us
            for each in troubled
            if each.client_id == row.client_id
        )
        if (row.lease_until_us or 0) > row.ended_us + 10 * MS and not beside:
            yield row


def handed_out(trace: Trace) -> Iterator[Given]:
    """First hand-outs of messages."""
    return (row for row in _hand_outs(trace) if not row.reconsume_times)


def handed_out_once(trace: Trace) -> Iterator[Given]:
    """Those of them whose message is not handed out again: there is room for one hand-out more."""
    times = Counter((row.lane, row.queue_offset) for row in trace.of(Kind.RECEIVE))
    return (row for row in handed_out(trace) if times[row.lane, row.queue_offset] == 1)


def passed_on(trace: Trace) -> Pairs:
    """A hand-out of a message and the next one, to a member that neither stands still nor is about to leave.

    Not where some request about the message was under way when it was asked for: that may have come later.
    """
    asked = grouped(trace.of(Kind.ACK, Kind.RELEASE), lambda row: (row.lane, row.queue_offset))
    fine = {row.seq_begin for row in _hand_outs(trace)}
    received = (row for row in trace.of(Kind.RECEIVE) if row.outcome is Outcome.OK)
    for before, row in pairs(received, lambda row: (row.lane, row.queue_offset)):
        under_way = any(_is_under_way(a, row) for a in asked.get((row.lane, row.queue_offset), ()))
        if row.seq_begin in fine and ended_before(before, row) and not under_way:
            yield before, row


def _is_under_way(asked: Given, row: Given) -> bool:
    """May a request that was begun before still change something when another one is made?"""
    is_answered = asked.outcome in (Outcome.OK, Outcome.REFUSED) and asked.ended_us is not None
    over_us = asked.ended_us if is_answered else row.started_us
    return bool(asked.seq_begin < row.seq_begin and over_us >= row.started_us)
