"""What breaks SND-8, planted in a history."""

from collections import Counter

from spark_checkers.changes import alter, drop
from spark_checkers.planting import Changes, Trace, defect, lookalike, triples
from specs.vocabulary import Kind


@defect(tagged=True)
def unwanted_tag(trace: Trace) -> Changes:
    """A message is delivered whose tag nobody asked for."""
    for work in trace.works:
        for row in work.calls:
            if row.body_hash is not None and row.tags is not None:
                yield alter(row, tags=f"not-{row.tags}")


@defect(tagged=True)
def wanted_passed_over(trace: Trace) -> Changes:
    """A message with a wanted tag is left out."""
    for work in trace.works:
        times = Counter(row.queue_offset for row in work.calls)
        for before, row, after in triples(work.calls):
            ascending = before.queue_offset < row.queue_offset < after.queue_offset
            sent = trace.send_of(row)
            there = sent is not None and sent.seq_begin < before.seq_begin
            if ascending and there and times[row.queue_offset] == 1:
                yield drop(row).about(before, sent, after)


@lookalike(tagged=True)
def another_wanted_tag(trace: Trace) -> Changes:
    """A message has another wanted tag."""
    # A message had another of the wanted tags from the beginning.
    wanted = {tag.strip() for tag in trace.config.subscription.split("||")}
    for send in trace.of(Kind.SEND):
        for tag in sorted(wanted - {send.tags}) if send.tags in wanted else ():
            same = [row for row in trace.rows if row.message_id == send.message_id and row.tags]
            yield alter(*same, tags=tag)
