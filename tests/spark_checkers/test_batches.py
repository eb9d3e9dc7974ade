"""What comes again with others of its call, where what a call goes by comes again too."""

from __future__ import annotations

from specs.facts.batches import Work
from specs.facts.lanes import Op
from specs.facts.segments import NO_TEXT, NONE
from specs.vocabulary import Kind, Outcome


def suspended(call: int, offset: int) -> Op:
    return Op(
        place=0,
        begin=0,
        end=0,
        op=call,
        kind=Kind.DELIVER,
        client=NO_TEXT,
        incarnation=NO_TEXT,
        offset=offset,
        reconsume=0,
        outcome=Outcome.SUSPEND,
        code=NONE,
        manual=False,
        has_mode=True,
        suspend=NONE,
        started=0,
        ended=0,
        value=NONE,
        corrected=False,
        epoch=NONE,
        correction=False,
    )


def test_a_call_that_goes_by_an_earlier_ones_number_is_another_call() -> None:
    work = Work(size=2, born=0, whole=True)
    for call, offset in ((1, 17), (1, 18), (2, 17), (1, 17)):
        work.deliver(suspended(call, offset))
    assert work.rightly(18, 1) is True  # 17, of its last call, comes in this one
    assert work.rightly(18, 3) is False  # 17 came since, and alone
