"""What breaks SND-10, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers import planting
from spark_checkers.planting import Changes, Mutant, Trace

CLAUSE = "SND-10"


def changed_body(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and None not in (send.body_hash, read.body_hash):
            change = {read.seq_begin: {"body_hash": (read.body_hash or 0) ^ 1}}
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


def content_unknown(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.body_hash is not None:
            change = {read.seq_begin: {"body_hash": None, "tags": "other"}}
            yield partial(trace.changed, change)


def lost_property(trace: Trace) -> Changes:
    for send, read in planting.reads(trace):
        if send.message_id == read.message_id and None not in (send.body_hash, read.body_hash):
            change = {
                send.seq_begin: {"props_hash": 4711},
                read.seq_begin: {"props_hash": 0},
            }
            about = (send.seq_begin, read.seq_begin)
            yield partial(trace.changed, change, about)


DEFECTS = (
    Mutant("changed-body", "SND-10", "a message is read with another body", changed_body),
    Mutant("lost-property", "SND-10", "a message is read without a property", lost_property),
)

LOOKALIKES = (Mutant("content-unknown", None, "a reader does not know the body", content_unknown),)
