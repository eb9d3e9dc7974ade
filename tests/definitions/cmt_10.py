"""CMT-10: where calls of a lane run side by side, no commit passes the smallest unfinished offset.

As CMT-1, whose decisions are this one's too; here an acknowledged send-back finishes a message as well.
"""

from __future__ import annotations

from specs.plan.config import Config
from specs.vocabulary import Kind, Outcome
from tests.definitions.cmt_1 import passed
from tests.definitions.words import Rows, before, of, same_lane


def broken(rows: Rows, config: Config) -> bool:
    return config.mode != "orderly" and any(
        not any(
            back.queue_offset == place
            and back.outcome is Outcome.OK
            and same_lane(back, commit)
            and before(back, commit)
            for back in of(rows, Kind.SEND_BACK)
        )
        for commit, place in passed(rows, config)
    )
