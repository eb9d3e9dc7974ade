"""What is played with Java clients behind a tap: ordinary situations, in which nothing is said about any bug."""

from __future__ import annotations

from conformance.drivers.stage import Actor, Stage
from specs.plan.plan import ListenerRule
from specs.vocabulary import Outcome

SLOW_CALL_MS = 8_000
SEND_EVERY_S = 0.01


def a_member_joins_during_a_call(stage: Stage) -> None:
    """A consumer's call of its second message takes long. Another consumer joins, and the lane falls to it."""
    shop = stage.producer()
    stage.send(shop, 5)
    first = stage.consumer(
        "z", ListenerRule(Outcome.SUCCESS, number=2, delivery_max=1, duration_ms=SLOW_CALL_MS)
    )
    stage.wait(first, "begin the slow call", lambda: first.begun(2))
    second = stage.consumer("b")  # sorts before z, and so is given the only queue
    stage.wait(second, "get to the last message", lambda: second.begun(5))
    stage.wait(first, "end the slow call", lambda: first.ended(2))
    stage.stop(second)
    stage.stop(first)
    stage.stop(shop)


def a_member_starts_where_another_stopped(stage: Stage) -> None:
    """Half of the messages were consumed before. A consumer starts and gets to the last one."""
    shop = stage.producer()
    stage.send(shop, 20)
    stage.stop(shop)
    stage.commit(10)
    worker = stage.consumer("c1")
    stage.wait(worker, "get to the last message", lambda: worker.begun(20))
    stage.stop(worker)


def a_new_group_starts_while_messages_come(stage: Stage) -> None:
    """The first messages of an older queue are gone, and new ones come one after the other. A new group starts."""
    stage.lose_the_first()
    shop = stage.producer()
    with stage.sending(shop, SEND_EVERY_S):
        worker = stage.consumer("c1")
        stage.wait(worker, "deliver anything", lambda: worker.ended(10))
    stage.stop(worker)
    stage.stop(shop)


def a_member_stops_after_its_work(stage: Stage) -> None:
    """A consumer is shut down in good order as soon as it has finished everything, and taken it up."""
    _stops(stage, reported=False)


def a_member_stops_after_its_report(stage: Stage) -> None:
    """A consumer has finished everything, and has reported it as it does at intervals; then it is shut down."""
    _stops(stage, reported=True)


def a_batch_fails_of_which_one_was_tried_before(stage: Stage) -> None:
    """A message fails twice by itself. Two more come: the first two fail until they are given up, the third is well."""
    shop = stage.producer()
    stage.send(shop, 1)
    worker = _refuses_the_first_two(stage)
    stage.wait(worker, "fail twice", lambda: worker.ended(2))
    stage.send(shop, 2)
    _gets_to_the_third(stage, worker)
    stage.stop(shop)


def a_batch_fails_as_one(stage: Stage) -> None:
    """Three messages are there from the begin: the first two fail together until they are given up."""
    shop = stage.producer()
    stage.send(shop, 3)
    stage.stop(shop)
    _gets_to_the_third(stage, _refuses_the_first_two(stage))


def _refuses_the_first_two(stage: Stage) -> Actor:
    return stage.consumer(
        "c1", *(ListenerRule(Outcome.SUSPEND, number=number) for number in (1, 2))
    )


def _gets_to_the_third(stage: Stage, worker: Actor) -> None:
    stage.wait(worker, "get to the last message", lambda: worker.begun(3))
    stage.stop(worker)


def a_member_leaves_and_another_stays(stage: Stage) -> None:
    """Of two consumers one has the only queue, does its work and is shut down in good order. There is more to do."""
    shop = stage.producer()
    first = stage.consumer("a")  # sorts first, and so keeps the queue
    second = stage.consumer("b")
    stage.send(shop, 5)
    stage.wait(first, "finish the last message", lambda: first.ended(5))
    stage.stop(first)
    stage.send(shop, 1)
    stage.stop(shop)
    stage.wait(second, "get to the new message", lambda: second.ended(1))
    stage.stop(second)


def _stops(stage: Stage, *, reported: bool) -> None:
    shop = stage.producer()
    stage.send(shop, 20)
    stage.stop(shop)
    worker = stage.consumer("c1")
    stage.wait(worker, "finish the last message", lambda: worker.ended(20))
    if reported:
        stage.wait_until_stored(20)
    else:
        stage.let_take_up()
    stage.stop(worker)
