"""By which offset a request speaks that names its message by id alone: of what was handed out with that id.

It is certain where, when the request begins, one offset and no other had been handed out in its lane with that id, and
each hand-out of the lane so far told both.
"""

from dataclasses import dataclass

import numpy as np

from specs.facts.columns import NEVER, NO_TEXT, NONE, Ints, Mask
from specs.facts.rows import Rows
from specs.facts.segments import dense
from specs.vocabulary import Kind, Outcome

ABOUT_A_MESSAGE = (Kind.ACK, Kind.RELEASE, Kind.RENEW, Kind.DEAD_LETTER)


@dataclass(frozen=True, slots=True)
class Messages:
    """Of rows: the lane, begin and end, and by what the message is named."""

    lane: Ints
    begin: Ints
    end: Ints
    offset: Ints
    message: Ints

    def offsets(self, silent: Mask, handed: Mask) -> Ints:
        """The offset of each row: of requests that name an id alone, where it is certain, that of the message.

        silent: such requests. handed: hand-outs, and nothing else, that were answered.
        """
        asks, shows = np.flatnonzero(silent), np.flatnonzero(handed)
        if not len(asks) or not len(shows):
            return self.offset
        shows = shows[np.argsort(self.end[shows], kind="stable")]
        both = np.concatenate([shows, asks])
        lane, lanes = dense(self.lane[both])
        name, names = dense(lane, self.message[both])
        end, told = self.end[shows], self.offset[shows]
        is_silent = (told == NONE) | (self.message[shows] == NO_TEXT)
        untold = np.full(lanes, NEVER, np.int64)
        np.minimum.at(untold, lane[: len(shows)][is_silent], end[is_silent])
        shown = name[: len(shows)]
        first = np.full(names, NEVER, np.int64)
        np.minimum.at(first, shown, end)
        place = np.full(names, NONE, np.int64)
        place[shown[::-1]] = told[::-1]  # the last one that is written stays, which is the first
        other = np.full(names, NEVER, np.int64)
        differs = told != place[shown]
        np.minimum.at(other, shown[differs], end[differs])
        asked, begin = name[len(shows) :], self.begin[asks]
        sure = (first[asked] < begin) & (begin < other[asked])
        sure &= begin < untold[lane[len(shows) :]]
        found = self.offset.copy()
        found[asks[sure]] = place[asked[sure]]
        return found


def offsets(rows: Rows) -> Ints:
    """The offset of the message that each row speaks of; NONE where that is not certain."""
    silent = rows.are(*ABOUT_A_MESSAGE) & (rows.offset == NONE)
    if not silent.any():
        return rows.offset
    message = rows.text("message_id")
    handed = rows.are(Kind.RECEIVE) & rows.ended_as(Outcome.OK) & (rows.end < NEVER)
    messages = Messages(rows.lane, rows.begin, rows.end, rows.offset, message)
    return messages.offsets(silent & (message != NO_TEXT), handed)


def may_be_any(rows: Rows) -> Mask:
    """Which requests may be about any message of their lane? A renewal that names nothing is of the lane."""
    found: Mask = rows.are(*ABOUT_A_MESSAGE) & (rows.shared(offsets) == NONE)
    if found.any():
        names = (rows.text("message_id") != NO_TEXT) | (rows.text("lease_id") != NO_TEXT)
        found &= ~rows.are(Kind.RENEW) | names
    return found
