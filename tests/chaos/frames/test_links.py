"""Which proxies a plan needs, whose links they break, and what they saw of it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from chaos.cli import PROCESS, find_target
from chaos.frames.link import Begun
from chaos.frames.proxy import Laid, Story
from chaos.links import OF_READERS, Links, Proxies, Wanted, seen, wanted
from conformance.parts import toxiproxy_binary
from conformance.steps import FaultDone, attested
from reference_impl.protocol.command import Command
from reference_impl.shell.client import SyncClient
from reference_impl.shell.errors import RequestFailed
from specs.errors import UsageError
from specs.faults import drop_next, lose, perform, request_error
from specs.history.row import make_row
from specs.plan.plan import ClientPlan, Plan
from specs.plan.rig import Trouble
from specs.plan.step import EVERYBODY, Step
from specs.vocabulary import Kind, Outcome
from tests.chaos.frames.answering import Answering

LOCK = 41
SHORT_S, LONG_S = 0.2, 30.0
BROKER = "127.0.0.1:1"
CLIENTS = tuple(ClientPlan(name, "consumer", "g", ("t",)) for name in ("c1", "c2", "shop"))


def step(do: str, **args: Any) -> Step:
    return Step(do, {"a": "c1", "b": "b0", **args})


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        ((Step("crash", {"client": "c1"}),), Wanted(of_bytes=False)),
        ((step("cut"),), Wanted(frozenset({"c1"}))),
        ((step("delay", a=EVERYBODY, ms=30),), Wanted()),
        (
            (step("lose", percent=10),),
            Wanted(frozenset({"c1", "c2", "shop"}), of_bytes=False, of_frames=True),
        ),
        (
            (step("request_error", a=EVERYBODY, code=LOCK), step("one_way")),
            Wanted(frozenset({"c1", "c2", "shop"}), of_frames=True),
        ),
    ],
)
def test_a_plan_has_the_proxies_that_its_steps_need(
    steps: tuple[Step, ...], expected: Wanted
) -> None:
    assert wanted(Plan(clients=CLIENTS, steps=steps)) == expected
    assert bool(expected) is (steps[0].do != "crash")


@pytest.mark.parametrize(
    ("name", "can"),
    [("reference+tcp", True), ("rocketmq-local:5.4.0", True), ("reference+tcp:sync", False)],
)
def test_frames_are_read_where_links_can_be_broken(name: str, can: bool) -> None:
    assert (find_target(name, PROCESS).abilities >= OF_READERS) is can


@pytest.fixture(params=[False, True], ids=["frames", "both"])
def proxies(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Proxies]:
    """Before a broker that answers, alone or behind toxiproxy."""
    if request.param and not toxiproxy_binary.present():
        pytest.skip("the toxiproxy server is not built; run `make setup`")
    broker = Answering()
    system: Any = SimpleNamespace(upstreams={"b0": broker.address}, brokers={"b0": BROKER})
    which = Wanted(frozenset({"c1", "c2"}), of_bytes=request.param, of_frames=True)
    with closing(Proxies(system, tmp_path / "server.log", which, seed=1)) as made:
        yield made
        made.check()
    broker.close()


def answers(proxies: Proxies, client: str, patience_s: float) -> str:
    with SyncClient() as asking:
        try:
            return str(asking.call(proxies.via(client)[BROKER], Command(LOCK), patience_s).code)
        except RequestFailed as error:
            return error.reason


def told(proxies: Proxies, lost: Collection[str] = ()) -> dict[str, str]:
    """What each client hears. lost: those who are known to wait in vain."""
    return {
        client: answers(proxies, client, SHORT_S if client in lost else LONG_S)
        for client in ("c1", "c2", "p9")
    }


def do(proxies: Proxies, verb: str, **args: Any) -> None:
    assert perform(Links(proxies.by_link, proxies.frames), verb, {"b": "b0", **args})


def test_each_client_reaches_the_broker_by_its_own_and_past_it_by_nothing(
    proxies: Proxies,
) -> None:
    own, others = set(proxies.via("c1").values()), set(proxies.via("p9").values())
    assert own & others == set()
    assert own & set(proxies.barred("c1")) == set()
    assert {*proxies.via("c2").values(), *others} <= set(proxies.barred("c1"))
    assert proxies.frames is not None
    behind = set(proxies.frames.listens.values()) - own
    assert behind <= set(proxies.barred("c1"))


def test_the_frames_of_one_clients_link_are_lost_until_it_is_mended(proxies: Proxies) -> None:
    do(proxies, lose.VERB, a="c1", percent=100)
    assert told(proxies, {"c1"}) == {"c1": "timeout", "c2": "0", "p9": "0"}
    do(proxies, lose.HEALED_BY, a="c1")
    assert told(proxies) == {"c1": "0", "c2": "0", "p9": "0"}


def test_the_next_request_of_everybody_is_the_next_one_of_each(proxies: Proxies) -> None:
    assert proxies.frames is not None
    do(proxies, request_error.VERB, a=EVERYBODY, code=LOCK)
    assert [told(proxies), told(proxies)] == [
        dict.fromkeys(("c1", "c2", "p9"), "2"),
        dict.fromkeys(("c1", "c2", "p9"), "0"),
    ]
    assert [client for client, _ in proxies.frames.story.met] == ["c1", "c2", EVERYBODY]


@pytest.mark.parametrize("proxies", [True], indirect=True, ids=["both"])
def test_a_line_is_cut_and_anothers_frames_are_lost(proxies: Proxies) -> None:
    do(proxies, "cut", a="c1")
    do(proxies, lose.VERB, a="c2", percent=100)
    assert told(proxies, {"c2"}) == {"c1": "unreachable", "c2": "timeout", "p9": "0"}
    for client in ("c1", "c2"):
        do(proxies, "heal", a=client)
    assert told(proxies) == {"c1": "0", "c2": "0", "p9": "0"}


def test_the_link_of_who_has_no_proxy_is_not_spoiled_alone(proxies: Proxies) -> None:
    with pytest.raises(UsageError, match="c9 has no proxy of its own"):
        do(proxies, lose.VERB, a="c9", percent=100)


ANSWER_LOST = step(drop_next.VERB, code=LOCK, answer=True)


def laid(whose: str = "c1", broker: str = "b0", at_us: int = 15, code: int = LOCK) -> Laid:
    return Laid(Begun(drop_next.VERB, Trouble.DROP_NEXT, code, answer=True), whose, broker, at_us)


@pytest.mark.parametrize(
    ("asked", "known", "expected"),
    [
        (ANSWER_LOST, laid(), "1 frame of c1 met it"),
        (ANSWER_LOST, laid(whose="c2"), ""),
        (ANSWER_LOST, laid(broker="b1"), ""),
        (ANSWER_LOST, laid(at_us=9), ""),
        (ANSWER_LOST, laid(code=1), ""),
        (step(drop_next.VERB, code=LOCK), laid(), ""),
        (step(lose.VERB, percent=LOCK), laid(), ""),
        (step("cut"), laid(), None),
    ],
)
def test_a_fault_was_seen_by_the_frame_that_met_it(
    asked: Step, known: Laid, expected: str | None
) -> None:
    assert seen(Story([known], [("c1", known.trouble)]), asked, 10) == expected


def test_of_two_faults_alike_each_is_seen_by_its_own_frame() -> None:
    """The second one met nothing: nobody asked again while it waited."""
    first, second = laid(at_us=15), laid(at_us=25)
    story = Story([first, second], [("c1", first.trouble)])
    assert [seen(story, ANSWER_LOST, at_us) for at_us in (10, 20)] == ["1 frame of c1 met it", ""]


def test_everybodys_fault_was_seen_by_all_who_met_it() -> None:
    everybodys = step(drop_next.VERB, a=EVERYBODY, code=LOCK, answer=True)
    known = laid(whose=EVERYBODY)
    story = Story([known], [(client, known.trouble) for client in ("shop", "c1", "shop")])
    assert seen(story, everybodys, 10) == "3 frames of c1, shop met it"


@pytest.mark.parametrize(
    ("saw", "outcome", "view"),
    [
        (
            None,
            Outcome.OK,
            "1 of 1 requests begun while frames were lost were not answered with success",
        ),
        ("", Outcome.REFUSED, None),
        (
            "1 frame of c1 met it",
            Outcome.OK,
            "1 frame of c1 met it; "
            "1 of 1 requests begun while frames were lost were not answered with success",
        ),
    ],
)
def test_who_could_see_that_no_frame_met_a_fault_is_believed(
    saw: str | None, outcome: Outcome, view: str | None
) -> None:
    """The history looks as if one had: another client had the lane, and the lock was refused."""
    fault = make_row(
        kind=Kind.FAULT, process="harness", detail="lose c1 b0", started_us=10, ended_us=20
    )
    lock = make_row(
        kind=Kind.LOCK,
        client_id="c1",
        broker="b0",
        outcome=Outcome.REFUSED,
        started_us=15,
        ended_us=16,
    )
    done = [FaultDone(step(lose.VERB, percent=10))]
    row, _ = attested([fault, lock], "harness", done, lambda _step, _fault: saw)
    assert (row.outcome, row.view) == (outcome, view)
