"""Drains: where all dead-letter queues of a group that a history shows were read to their ends, and how late.

A queue is shown by a READ, by whoever adds it as a lane, and by a TRIM. Where calls take dead letters and nobody has
added a lane of them, nobody knows of which queue. Of each queue its latest reading counts, the one that ended last.
"""

import numpy as np

from specs.facts.columns import MS, NEVER, NO_TEXT, NONE, NOWHERE, Ints, Mask
from specs.facts.dead_letters import dead_reads
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.segments import chosen, dense, is_first, positions
from specs.vocabulary import Outcome, dead_letter_topic


class Drains:
    """reads: the reads of dead letters that ended, of groups that are named. group: of each row its group's number.

    first, last: of each group those of the latest readings that began first and last; NOWHERE where one of them is
    missing, or failed, or more queues may hold dead letters of the group.
    """

    def __init__(self, rows: Rows) -> None:
        self.rows, self.group = rows, dense(rows.run, rows.group)[0]
        self.reads = positions(dead_reads(rows) & (rows.group != NO_TEXT) & (rows.end < NEVER))
        is_marker = (rows.source == NO_TEXT) & (rows.offset == NONE)
        self._readings = Line(rows.lane, rows.end, self.reads[is_marker[self.reads]])
        self._queues: dict[int, list[int]] = {}
        self.first, self.last = np.full((2, int(self.group.max()) + 1), NOWHERE, np.int64)
        queue = self.reads[is_first(rows.lane[self.reads])]
        reading = self._latest(queue)
        group, good = self.group[queue], rows.ended_as(Outcome.OK)[reading] & (reading != NOWHERE)
        for each in np.setdiff1d(group, group[~good]).tolist():
            found = reading[group == each]
            found = found[np.argsort(rows.begin[found])].tolist()
            if not _may_lie_elsewhere(rows, found):
                self._queues[each], self.first[each], self.last[each] = found, found[0], found[-1]

    def _latest(self, where: Ints) -> Ints:
        """The latest reading of the queue of each of these rows."""
        return self._readings.last_before(self.rows.lane[where], np.full(len(where), NEVER))

    def still_lies(self, copy: Ints) -> Mask:
        """Does the latest reading of its queue not tell that what was read before is gone?"""
        rows, reading = self.rows, self._latest(copy)
        end = chosen(rows.value, reading, NONE)
        found: Mask = (end == NONE) | (rows.begin[copy] >= rows.begin[reading])
        return found | (rows.offset[copy] < end)

    def waited_for(self, row: Ints, seq: Ints, since_us: Ints) -> Mask:
        """Did the readings of each row's group begin after a moment, and had each of their brokers then run for as long
        as a dead letter may take?"""
        rows, group = self.rows, self.group[row]
        found: Mask = seq < chosen(rows.begin, self.first[group], NONE)
        for each, readings in self._queues.items():
            context, until_us = rows.context_of(readings[0]), int(rows.started[readings[0]])
            bound_us = context.info.config.dead_letter_bound_ms * MS + context.info.clock_bound_us
            mine = positions(group == each)
            for broker in {rows.name_of("broker", reading) for reading in readings}:
                ran_us = context.ran_us(broker, since_us[mine], until_us, NEVER - 1)
                found[mine] &= ran_us >= bound_us
        return found


def _may_lie_elsewhere(rows: Rows, readings: list[int]) -> bool:
    """Is there more of a group's dead letters than these queues, as far as the context tells?"""
    context = rows.context_of(readings[0])
    topic = dead_letter_topic(rows.name_of("group", readings[0]))
    added = any(lane.topic == topic for lanes in context.lanes.values() for lane in lanes)
    if (topic,) in context.looks and not added:
        return True
    read = {rows.queue_of(reading)[1:] for reading in readings}
    return any(queue[1:] not in read for queue in context.shows(topic))
