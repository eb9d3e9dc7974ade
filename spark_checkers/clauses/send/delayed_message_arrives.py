"""What breaks SND-11, planted in a history."""

from functools import partial

from spark_checkers import places
from spark_checkers.changes import MS, Change, Given, alter, drop
from spark_checkers.planting import RECORDED, defect


@defect(partial(places.missed, wait_us=1_000 * MS), **RECORDED)
def delayed_message_missing(send: Given, read: Given) -> Change:
    """A delayed message does not come."""
    return alter(send, delay_level=1, key_seq=None) + drop(read)
