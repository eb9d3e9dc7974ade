"""What breaks SND-8, planted in a history."""

from __future__ import annotations

from functools import partial

from spark_checkers.planting import Changes, Mutant, Trace
from specs.vocabulary import Kind

CLAUSE = "SND-8"


def unwanted_tag(trace: Trace) -> Changes:
    for calls in trace.calls:
        for row in calls:
            if row.body_hash is not None and row.tags is not None:
                change = {row.seq_begin: {"tags": f"not-{row.tags}"}}
                yield partial(trace.changed, change)


def wanted_passed_over(trace: Trace) -> Changes:
    for calls in trace.calls:
        for before, row, after in zip(calls, calls[1:], calls[2:], strict=False):
            ascending = (
                (before.queue_offset or 0) < (row.queue_offset or 0) < (after.queue_offset or 0)
            )
            sent = trace.sent.get((row.topic, row.broker, row.queue_id, row.queue_offset))
            once = sum(each.queue_offset == row.queue_offset for each in calls) == 1
            if ascending and once and sent is not None and sent.seq_begin < before.seq_begin:
                about = (before.seq_begin, sent.seq_begin, after.seq_begin)
                yield partial(lambda r, a: trace.without([r.seq_begin], a), row, about)


def another_wanted_tag(trace: Trace) -> Changes:
    """A message had another of the wanted tags from the beginning."""
    wanted = {tag.strip() for tag in trace.info.config.subscription.split("||")}
    for row in trace.of(Kind.SEND):
        for tag in sorted(wanted - {row.tags}):
            if row.tags in wanted:
                same = [
                    each.seq_begin
                    for each in trace.rows
                    if each.message_id == row.message_id and each.tags
                ]
                change = {seq: {"tags": tag} for seq in same}
                yield partial(trace.changed, change)


DEFECTS = (
    Mutant(
        "unwanted-tag",
        "SND-8",
        "a message is delivered whose tag nobody asked for",
        unwanted_tag,
        tagged=True,
    ),
    Mutant(
        "wanted-passed-over",
        "SND-8",
        "a message with a wanted tag is left out",
        wanted_passed_over,
        tagged=True,
    ),
)

LOOKALIKES = (
    Mutant(
        "another-wanted-tag",
        None,
        "a message has another wanted tag",
        another_wanted_tag,
        tagged=True,
    ),
)
