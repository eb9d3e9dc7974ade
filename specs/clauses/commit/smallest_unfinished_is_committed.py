"""Where calls of a lane run side by side, no commit passes the smallest offset that is unfinished.

The same rule as in the orderly mode, for the modes in which messages end in any order: what is stored is not the
end of what has just succeeded, but the smallest offset, at or after the incarnation's start, that nobody of the
group has finished. A message is finished when its call ended well while the lane was not dropped, and when an
acknowledged send-back (concurrent) or dead letter (key-ordered) took its place. A commit of a broker's correction, or
after a reset, says nothing, nor does one past a message that may have been given up where nobody told. Below
a correction only what the incarnation had delivered before is its to finish. A commit that was refused is none. That a
commit may lie lower is no violation: it is sent now and then.
"""

from specs.clauses.commit import commit_never_passes_unfinished as general
from specs.clauses.premises import NO_FILTER, NO_RESET, OUT_OF_ORDER
from specs.clauses.terms import Findings, Rows
from specs.vocabulary import Key, Kind, Party

ID = "CMT-10"
TITLE = "no commit passes the smallest unfinished offset"
STATEMENT = (
    "In the concurrent and the key-ordered mode no commit passes the smallest unfinished offset."
)
PARTY = Party.CLIENT
KEY = Key.QUEUE
PREMISE = (OUT_OF_ORDER, NO_RESET, NO_FILTER)
SOURCES = ("docs/sources.md#concurrent-loop", "docs/sources.md#key-order")
KINDS = general.KINDS | {Kind.SEND_BACK}
SETTINGS = ("max_reconsume_times",)
NEEDS = frozenset({Kind.COMMIT, Kind.DELIVER})
REFINES = ("CMT-1",)
explain = general.explain
Passed = general.Passed
COLUMNS = general.COLUMNS


def judge(rows: Rows, findings: Findings) -> None:
    """As in the orderly mode; an acknowledged send-back finishes its message just as a dead letter does."""
    general.judge_by(rows, findings, Kind.DEAD_LETTER, Kind.SEND_BACK)
