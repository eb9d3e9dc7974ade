"""What a trouble of a link does to frames, as on a simulated one, and that the seed decides it."""

from __future__ import annotations

from random import Random

import pytest

from chaos.frames.link import LOST, OF_FRAMES, Begun, Fate, FrameLink, Line
from reference_impl.protocol.command import FLAG_ONEWAY, FLAG_RESPONSE, Command
from specs.plan.rig import Trouble

LOCK, PULL, BUSY = 41, 11, 2
PASSED = Fate((0,))


class World:
    """A link and its first connection; what has met a trouble so far."""

    def __init__(self, *troubles: Begun, seed: str = "1") -> None:
        self.met: list[Begun] = []
        self.link = FrameLink(self.met.append)
        self.line = self.connection(seed)
        for trouble in troubles:
            self.link.begin(trouble)

    def connection(self, seed: str = "2") -> Line:
        return Line(self.link, Random(f"{seed} up"), Random(f"{seed} down"))

    def asks(self, code: int, opaque: int = 1) -> Fate:
        return self.line.to_broker(Command(code, opaque=opaque))

    def tells(self, code: int) -> Fate:
        return self.line.to_broker(Command(code, flag=FLAG_ONEWAY))

    def is_answered(self, opaque: int = 1, code: int = 0) -> Fate:
        return self.line.to_client(Command(code, opaque=opaque, flag=FLAG_RESPONSE))

    def is_asked(self, code: int, opaque: int = 1) -> Fate:
        return self.line.to_client(Command(code, opaque=opaque))


def test_a_link_that_is_well_hands_everything_on() -> None:
    world = World()
    fates = [world.asks(LOCK), world.is_answered(), world.tells(LOCK), world.is_asked(40)]
    assert (fates, world.met) == ([PASSED] * 4, [])


def test_the_next_request_of_a_code_is_lost_and_the_one_behind_it_is_not() -> None:
    world = World(Begun("drop_next", Trouble.DROP_NEXT, LOCK))
    fates = [world.asks(PULL, 1), world.asks(LOCK, 2), world.asks(LOCK, 3), world.is_answered(3)]
    assert fates == [PASSED, LOST, PASSED, PASSED]
    assert [trouble.number for trouble in world.met] == [LOCK]
    assert world.link.troubles == []


def test_the_answer_is_lost_of_the_request_that_has_the_code() -> None:
    """Its own code is that of a success, which says nothing."""
    world = World(Begun("drop_next", Trouble.DROP_NEXT, LOCK, answer=True))
    assert [world.asks(LOCK, 7), world.asks(PULL, 8)] == [PASSED, PASSED]
    assert [world.is_answered(8, LOCK), world.is_answered(7), world.link.troubles] == [
        PASSED,
        LOST,
        [],
    ]


def test_an_answer_is_known_by_the_request_of_its_own_connection() -> None:
    """Each connection counts its requests anew."""
    world = World(Begun("drop_next", Trouble.DROP_NEXT, LOCK, answer=True))
    other = world.connection()
    world.asks(LOCK, 1)
    other.to_broker(Command(PULL, opaque=1))
    assert other.to_client(Command(0, opaque=1, flag=FLAG_RESPONSE)) == PASSED
    assert world.is_answered(1) == LOST


def test_what_the_broker_asks_and_what_the_client_answers_to_it_is_no_answer_of_the_brokers() -> (
    None
):
    """Both count their requests: the broker's first has the number of the client's first."""
    world = World(Begun("drop_next", Trouble.DROP_NEXT, LOCK, answer=True))
    world.asks(LOCK, 1)
    assert world.is_asked(40, 1) == PASSED
    assert world.line.to_broker(Command(0, opaque=1, flag=FLAG_RESPONSE)) == PASSED
    assert world.is_answered(1) == LOST


def test_a_request_of_the_brokers_is_lost_by_its_code() -> None:
    world = World(Begun("drop_next", Trouble.DROP_NEXT, 40))
    assert [world.is_asked(40), world.is_asked(40)] == [LOST, PASSED]


def test_a_request_that_was_lost_is_not_waited_for() -> None:
    """Its number comes again, as of a client that counts so far and begins anew."""
    world = World(Begun("drop_next", Trouble.DROP_NEXT, LOCK))
    world.asks(LOCK, 5)
    world.link.begin(Begun("drop_next", Trouble.DROP_NEXT, LOCK, answer=True))
    assert world.is_answered(5) == PASSED


def test_the_next_request_of_a_code_is_answered_with_an_error_and_never_arrives() -> None:
    world = World(Begun("request_error", Trouble.REFUSE_NEXT, LOCK, error=BUSY))
    assert world.asks(PULL, 1) == PASSED
    refused = world.asks(LOCK, 2)
    assert refused.after_ms == ()
    assert refused.answer is not None
    told = refused.answer
    assert (told.code, told.opaque, told.is_response) == (BUSY, 2, True)
    assert world.asks(LOCK, 3) == PASSED


def test_who_waits_for_no_answer_gets_none() -> None:
    world = World(Begun("request_error", Trouble.REFUSE_NEXT, LOCK, error=BUSY))
    assert [world.tells(LOCK), world.tells(LOCK)] == [LOST, PASSED]


def test_what_a_broker_asks_is_not_refused_in_its_own_place() -> None:
    world = World(Begun("request_error", Trouble.REFUSE_NEXT, 40, error=BUSY))
    assert [world.is_asked(40), len(world.link.troubles)] == [PASSED, 1]


def test_two_that_wait_for_a_request_take_one_each() -> None:
    twice = [Begun("request_error", Trouble.REFUSE_NEXT, LOCK, error=error) for error in (2, 1)]
    world = World(*twice)
    errors = [fate.answer.code for fate in (world.asks(LOCK), world.asks(LOCK)) if fate.answer]
    assert (errors, world.asks(LOCK), world.met) == ([2, 1], PASSED, twice)


def test_so_many_frames_of_a_hundred_are_lost_in_both_directions() -> None:
    world = World(Begun("lose", Trouble.LOSE, 30))
    up = [world.asks(LOCK, number) for number in range(1_000)]
    down = [world.is_answered(number) for number in range(1_000)]
    assert 250 < up.count(LOST) < 350
    assert 250 < down.count(LOST) < 350
    assert len(world.met) == up.count(LOST) + down.count(LOST)


@pytest.mark.parametrize(("percent", "fate"), [(100, LOST), (0, PASSED)])
def test_all_frames_are_lost_or_none(percent: int, fate: Fate) -> None:
    world = World(Begun("lose", Trouble.LOSE, percent))
    assert {world.tells(LOCK) for _ in range(200)} == {fate}


def test_a_frame_comes_twice() -> None:
    world = World(Begun("duplicate", Trouble.DUPLICATE, 100))
    assert [world.asks(LOCK), world.is_answered()] == [Fate((0, 0))] * 2


def test_frames_are_late_by_different_times_and_no_more_than_the_number() -> None:
    world = World(Begun("reorder", Trouble.REORDER, 100))
    late = [world.tells(LOCK).after_ms[0] for _ in range(1_000)]
    assert (min(late), max(late)) == (0, 100)
    assert len(world.met) == sum(ms > 0 for ms in late)


def test_a_new_number_takes_the_place_of_the_old_one() -> None:
    world = World(Begun("lose", Trouble.LOSE, 100), Begun("lose", Trouble.LOSE, 0))
    assert world.asks(LOCK) == PASSED


def test_a_link_that_is_mended_is_well() -> None:
    world = World(*(Begun(kind, kind, 100) for kind in sorted(OF_FRAMES)))
    world.link.mend()
    assert [world.asks(100), world.is_answered()] == [PASSED, PASSED]


def test_the_same_seed_loses_the_same_frames_whatever_comes_the_other_way() -> None:
    def lost(seed: str, *, with_answers: bool) -> list[int]:
        world = World(Begun("lose", Trouble.LOSE, 50), seed=seed)
        found = []
        for number in range(100):
            if world.asks(LOCK, number) == LOST:
                found.append(number)
            if with_answers:
                world.is_answered(number)
        return found

    assert lost("1", with_answers=True) == lost("1", with_answers=False)
    assert lost("1", with_answers=True) != lost("3", with_answers=True)
