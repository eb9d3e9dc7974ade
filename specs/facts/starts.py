"""Where an incarnation begins: at the value of its ADD, or where a look-up of the stored offset sets it afterwards.

If nothing is stored a look-up sets it to 0 where the group consumes from the first, and to nobody knows what else.
Nobody knows it either as long as a look-up has no answer that anybody saw. What was said before a reset of the lane
counts for nothing any more.
"""

import numpy as np

from specs.facts.columns import NEVER, NONE, NOWHERE, Ints, Mask
from specs.facts.lookups import answers
from specs.facts.moments import Line
from specs.facts.rows import Rows
from specs.facts.run_context import RunContext
from specs.facts.segments import chosen, positions
from specs.facts.tenures import Tenures
from specs.vocabulary import Kind, Outcome


def _begins_with_the_first(context: RunContext) -> bool:
    return context.info.config.consume_from == "first"


class Starts:
    """Of tenures, each named by any of its rows, as of moments."""

    def __init__(self, rows: Rows) -> None:
        self.rows, self._tenure = rows, rows.shared(Tenures).number
        named, value = rows.shared(Tenures).named, rows.value
        adds, looks = rows.are(Kind.ADD) & named, rows.are(Kind.FETCH_OFFSET) & named
        told = rows.shared(answers)
        nothing = looks & (told == -1)
        sets = (adds & (value != NONE)) | (looks & (told >= -1))
        self.value = value.copy()
        if nothing.any():  # else nobody asks for the setting
            first = rows.of_runs(_begins_with_the_first, positions(nothing))
            self.value[nothing] = np.where(first, 0, NONE)
        self._said = np.where(adds, rows.begin, rows.end)
        self._sets = Line(self._tenure, self._said, positions(sets))
        self._resets = Line(rows.lane, rows.begin, rows.of(Kind.RESET))
        heard = looks & (rows.ended_as(Outcome.REFUSED) | (told != NONE)) & (rows.end < NEVER)
        self._asked = Line(self._tenure, rows.begin, positions(looks))
        self._heard = Line(self._tenure, rows.end, positions(heard))

    def row(self, where: Ints, moment: Ints) -> Ints:
        """The ADD or look-up that says where the tenure of each row begins, as of a moment; NOWHERE without one.

        `value` has what each of them says.
        """
        found = self._sets.last_before(self._tenure[where], moment)
        reset = self._resets.last_before(self.rows.lane[where], moment)
        said = chosen(self._said, found, NONE) > chosen(self.rows.begin, reset, NONE)
        return np.where(said & (chosen(self.value, found, NONE) != NONE), found, NOWHERE)

    def asks(self, where: Ints, moment: Ints) -> Mask:
        """Has any look-up of the tenure of each row no answer, as of a moment, that anybody saw?"""
        tenure = self._tenure[where]
        found: Mask = self._asked.count_before(tenure, moment) > self._heard.count_before(
            tenure, moment
        )
        return found
