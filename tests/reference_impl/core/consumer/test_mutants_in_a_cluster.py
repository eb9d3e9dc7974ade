"""Each consumer mutant in a simulated cluster: the clause that it names is refuted, and for the correct one none.

Most mutants show in one busy run without any fault; the others need an occasion of their own.
The correct consumer's run of a scene is judged once for all mutants of the scene, so they lie on one worker.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from reference_impl.mutants import Mutant, all_mutants, load
from reference_impl.protocol.codes import RequestCode
from reference_impl.sim.network import LATENCY_MS
from reference_impl.sim.simulate import simulate, with_config
from specs.clauses.catalogue import get
from specs.history.row import Row
from specs.plan.config import Config
from specs.plan.plan import Action, ClientPlan, ListenerRule, Plan, TopicPlan, Topology
from specs.verdicts.examine import examine, find_violations
from specs.vocabulary import Kind, Outcome

SHORT = Config(
    broker_lease_ms=6_000,
    client_lease_ms=3_000,
    lock_interval_ms=2_000,
    rebalance_ms=2_000,
    persist_ms=500,
    persist_first_ms=1_000,
    heartbeat_ms=3_000,
    channel_expiry_ms=12_000,
    suspend_ms=100,
    max_reconsume_times=2,
    long_poll_ms=1_500,
    threads=4,
)


def consumer(name: str) -> ClientPlan:
    return ClientPlan(name, "consumer", "billing", ("orders",))


def send(at_ms: int, count: int, key: str) -> Action:
    return Action(at_ms, "send", {"client": "p1", "topic": "orders", "count": count, "key": key})


def busy() -> Plan:
    """Messages of five keys all the time; every ninth fails once or twice, some always; clients come and go."""
    sends = [send(200 + 150 * n, 3, f"k{n % 5}") for n in range(100)]
    comings = [
        Action(0, "start", {"client": "p1"}),
        Action(0, "start", {"client": "c1"}),
        Action(0, "start", {"client": "c2"}),
        Action(3_000, "start", {"client": "c3"}),
        Action(6_000, "stop", {"client": "c1"}),
        Action(9_000, "restart", {"client": "c1"}),
        Action(12_000, "stop", {"client": "c2"}),
    ]
    rules = [
        ListenerRule(duration_ms=20),
        *(
            ListenerRule(Outcome.SUSPEND, number=number, delivery_max=1 + number % 2)
            for number in range(9, 300, 9)
        ),
        *(
            ListenerRule(Outcome.THREW, number=number, delivery_max=9)
            for number in range(20, 300, 40)
        ),
        *(ListenerRule(duration_ms=1_500, number=number) for number in range(15, 300, 25)),
    ]
    return Plan(
        seed=7,
        topology=Topology(("b0", "b1"), (TopicPlan("orders", 2),), ("billing",)),
        config=SHORT,
        clients=(ClientPlan("p1", "producer"), consumer("c1"), consumer("c2"), consumer("c3")),
        actions=tuple(sorted([*comings, *sends], key=lambda action: action.at_ms)),
        listener=tuple(rules),
        until_ms=16_000,
    )


def alone(*actions: Action, duration_ms: int) -> Plan:
    """One slow consumer of one queue with thirty messages, and a stranger with a raw connection."""
    return Plan(
        seed=4,
        topology=Topology(("b0",), (TopicPlan("orders", 1),), ("billing",)),
        config=SHORT,
        clients=(
            ClientPlan("p1", "producer"),
            consumer("c1"),
            consumer("c2"),
            ClientPlan("e1", "prober"),
        ),
        actions=(
            Action(0, "start", {"client": "p1"}),
            Action(0, "start", {"client": "c1"}),
            send(100, 30, "k"),
            *actions,
            send(15_000, 3, "k"),
        ),
        listener=(ListenerRule(duration_ms=duration_ms),),
        until_ms=20_000,
    )


def cut_off() -> Plan:
    """The link stands still for longer than the client's lease, with messages cached."""
    link = {"a": "c1", "b": "b0"}
    return alone(Action(3_000, "hold", link), Action(8_000, "heal", link), duration_ms=500)


def taken_over() -> Plan:
    """The same, and a stranger takes the lane when the broker's lease has ended."""
    link = {"a": "c1", "b": "b0"}
    lane = {"client": "e1", "group": "billing", "topic": "orders", "broker": "b0", "queues": (0,)}
    return alone(
        Action(3_000, "hold", link),
        Action(9_500, "probe_lock", lane),
        Action(10_000, "heal", link),
        duration_ms=500,
    )


def refused(client: str, at_ms: int, code: RequestCode, times: int) -> list[Action]:
    """The broker answers the next requests of that code with an error."""
    said = {"a": client, "b": "b0", "code": int(code)}
    return [Action(at_ms, "request_error", said) for _ in range(times)]


def renewals_refused() -> Plan:
    """The broker answers renewals with errors for longer than the client's lease, with messages cached."""
    return alone(*refused("c1", 3_000, RequestCode.LOCK_BATCH_MQ, 12), duration_ms=500)


def queries_refused() -> Plan:
    """The first consumer dies with messages waiting, and its successor's queries are answered with errors."""
    errors = refused("c2", 1_400, RequestCode.QUERY_CONSUMER_OFFSET, 6)
    handover = (Action(1_500, "start", {"client": "c2"}), Action(3_000, "crash", {"client": "c1"}))
    return with_config(alone(*errors, *handover, duration_ms=300), {"consume_from": "last"})


def second_query_lost(consume_from: str = "last") -> Plan:
    """The first consumer dies with messages waiting, and the answer to its successor's second query is lost."""
    handover = (Action(1_500, "start", {"client": "c2"}), Action(3_000, "crash", {"client": "c1"}))
    start = {"consume_from": consume_from}
    for seed in range(1, 20):
        found = queries(with_config(replace(alone(*handover, duration_ms=300), seed=seed), start))
        asked = [row for row in found if row.topic == "orders"][1]
        if (
            asked.ended_us or 0
        ) - asked.started_us >= LATENCY_MS * 1_000:  # else it may be on its way at once
            break
    # The lane's answer, and that of the retry topic's if it is still to come.
    coming = [row for row in found if row.started_us <= asked.started_us < (row.ended_us or 0)]
    lost = {"a": "c2", "b": "b0", "code": int(RequestCode.QUERY_CONSUMER_OFFSET), "answer": True}
    losses = [Action(asked.started_us // 1_000, "drop_next", lost) for _ in coming]
    return with_config(replace(alone(*handover, *losses, duration_ms=300), seed=seed), start)


def queries(plan: Plan) -> list[Row]:
    """Those of the second consumer for stored offsets."""
    return [
        row for row in simulate(plan)[1] if row.kind is Kind.FETCH_OFFSET and row.client_id == "c2"
    ]


def second_query_of_a_member_lost() -> Plan:
    """The same, of consumers that start with the first message."""
    return second_query_lost("first")


def forgotten() -> Plan:
    """The broker restarts, and a stranger is faster than the owner."""
    lane = {"client": "e1", "group": "billing", "topic": "orders", "broker": "b0", "queues": (0,)}
    return alone(
        Action(3_500, "broker_crash", {"broker": "b0"}),
        Action(3_510, "broker_restart", {"broker": "b0"}),
        Action(3_530, "probe_lock", lane),
        duration_ms=200,
    )


def answering(rule: ListenerRule, *actions: Action) -> Plan:
    """The lone consumer, whose listener says something else than success for some messages."""
    plan = alone(*actions, duration_ms=5)
    return replace(plan, listener=(*plan.listener, rule))


def joined_by_another() -> Action:
    return Action(1_500, "start", {"client": "b1"})


def committing() -> Plan:
    return answering(ListenerRule(Outcome.COMMIT))


def succeeding_in_manual_mode() -> Plan:
    return answering(ListenerRule(manual=True))


def rolling_back() -> Plan:
    return answering(ListenerRule(Outcome.ROLLBACK, manual=True, number=3, delivery_max=1))


def suspending_for_no_time() -> Plan:
    return answering(ListenerRule(Outcome.SUSPEND, 0, number=3, delivery_max=1))


def taken_away_while_suspended() -> Plan:
    return sorting_first(
        answering(ListenerRule(Outcome.SUSPEND, 3_000, number=3), joined_by_another())
    )


def taken_away_and_given_back() -> Plan:
    plan = answering(
        ListenerRule(Outcome.SUSPEND, 3_000, number=3), joined_by_another(), another_leaves()
    )
    return sorting_first(plan)


def giving_one_up() -> Plan:
    return answering(ListenerRule(Outcome.SUSPEND, 10, number=3))


def suspending_twenty_times() -> Plan:
    return answering(ListenerRule(Outcome.SUSPEND, 10, number=3, delivery_max=20))


def another_leaves() -> Action:
    return Action(5_000, "stop", {"client": "b1"})


def taken_away_during_a_long_call() -> Plan:
    return sorting_first(answering(ListenerRule(duration_ms=5_000, number=3), joined_by_another()))


def sorting_first(plan: Plan) -> Plan:
    """With a consumer whose name comes first, so that it gets the only queue."""
    return replace(plan, clients=(*plan.clients, consumer("b1")))


def buried() -> Plan:
    """One of two members dies, and nothing happens for a while."""
    plan = alone(
        Action(1_500, "start", {"client": "c2"}),
        Action(5_000, "crash", {"client": "c1"}),
        duration_ms=5,
    )
    topology = replace(plan.topology, topics=(TopicPlan("orders", 4),))
    return replace(plan, topology=topology, until_ms=25_000)


def left_to_one_who_was_cut_off() -> Plan:
    """The second consumer can't ask who is in the group for a while; later the first one leaves."""
    link = {"a": "c2", "b": "b0"}
    return alone(
        Action(1_000, "start", {"client": "c2"}),
        Action(3_000, "cut", link),
        Action(8_000, "heal", link),
        Action(12_000, "stop", {"client": "c1"}),
        duration_ms=5,
    )


def left_to_another_and_started_by_time() -> Plan:
    """The first consumer leaves when it has committed, and the second one takes the lane over."""
    return with_config(left_to_one_who_was_cut_off(), {"consume_from": "timestamp"})


def started_by_time_where_the_first_is_gone() -> Plan:
    """The broker has removed the oldest messages when the first consumer comes, so that it says of none where it is."""
    plan = alone(*(send(300 * n, 1, "k1") for n in range(1, 40)), duration_ms=5)
    late = [
        replace(each, at_ms=12_000) if each.args == {"client": "c1"} else each
        for each in plan.actions
    ]
    actions = tuple(sorted(late, key=lambda action: action.at_ms))
    return with_config(
        replace(plan, actions=actions), {"consume_from": "timestamp", "keep_ms": 5_000}
    )


def two_lanes_and_one_thread() -> Plan:
    """Both lanes have messages for longer than the cap, and one of them has the thread."""
    sends = [
        Action(10, "send", {"client": "p1", "topic": "orders", "count": 20, "key": f"k{n}"})
        for n in range(6)
    ]
    plan = alone(*sends, duration_ms=100)
    plan = replace(plan, topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)))
    return with_config(plan, {"threads": 1, "continuous_ms": 500})


def one_lane_that_rests() -> Plan:
    """Of two lanes one is suspended for longer than the bound, while messages of the other one come."""
    sends = [send(1_000 + 100 * n, 1, f"k{n % 6}") for n in range(60)]
    plan = alone(*sends, duration_ms=2)
    resting = ListenerRule(Outcome.SUSPEND, 5_000, number=1, delivery_max=1)
    plan = replace(plan, topology=Topology(("b0",), (TopicPlan("orders", 2),), ("billing",)))
    return with_config(replace(plan, listener=(*plan.listener, resting)), {"threads": 20})


def one_lane_that_rests_and_one_thread() -> Plan:
    return with_config(one_lane_that_rests(), {"threads": 1})


def three_lanes_and_one_thread() -> Plan:
    """All lanes have messages for longer than several caps, and one of them has the thread."""
    sends = [
        Action(10, "send", {"client": "p1", "topic": "orders", "count": 20, "key": f"k{n}"})
        for n in range(12)
    ]
    plan = alone(*sends, duration_ms=100)
    plan = replace(plan, topology=Topology(("b0",), (TopicPlan("orders", 3),), ("billing",)))
    return with_config(plan, {"threads": 1, "continuous_ms": 500})


def one_by_one() -> Plan:
    """Messages come to lanes that have nothing to do."""
    sends = [send(1_000 + 1_300 * n, 1, f"k{n % 3}") for n in range(9)]
    return with_config(alone(*sends, duration_ms=2), {"threads": 20})


def now_and_then() -> Plan:
    """Between two messages more than one pull waits in vain."""
    sends = [send(1_000 + 5_000 * n, 1, "k0") for n in range(3)]
    return with_config(alone(*sends, duration_ms=2), {"threads": 20})


def on_two_brokers(plan: Plan, *more: Action) -> Plan:
    actions = tuple(sorted([*plan.actions, *more], key=lambda action: action.at_ms))
    return replace(
        plan,
        topology=Topology(("b0", "b1"), (TopicPlan("orders", 1),), ("billing",)),
        actions=actions,
    )


def a_broker_comes_later() -> Plan:
    """One of two brokers is down when the first consumer asks which queues there are."""
    plan = alone(duration_ms=2)
    late = [
        replace(each, at_ms=200) if each.args == {"client": "c1"} else each for each in plan.actions
    ]
    down = (
        Action(5, "broker_crash", {"broker": "b1"}),
        Action(4_000, "broker_restart", {"broker": "b1"}),
    )
    more = [send(9_000 + 100 * n, 1, f"k{n}") for n in range(6)]
    return on_two_brokers(replace(plan, actions=tuple(late)), *down, *more)


def a_broker_comes_back() -> Plan:
    """One of two brokers is down for so long that its consumer hears of it."""
    down = (
        Action(5_000, "broker_crash", {"broker": "b1"}),
        Action(40_000, "broker_restart", {"broker": "b1"}),
    )
    more = [send(60_000 + 100 * n, 1, f"k{n}") for n in range(6)]
    return on_two_brokers(alone(duration_ms=2), *down, *more)


def one_of_two_lanes_is_taken() -> Plan:
    """A stranger has one of the lanes when the first consumer takes its share."""
    plan = alone(duration_ms=2)
    lane = {"client": "e1", "group": "billing", "topic": "orders", "broker": "b0", "queues": (1,)}
    late = [
        replace(each, at_ms=50) if each.args == {"client": "c1"} else each for each in plan.actions
    ]
    actions = sorted([*late, Action(10, "probe_lock", lane)], key=lambda action: action.at_ms)
    topology = Topology(("b0",), (TopicPlan("orders", 2),), ("billing",))
    return replace(plan, topology=topology, actions=tuple(actions))


def dead_letter_unanswered() -> Plan:
    lost = {"a": "c1", "b": "b0", "code": int(RequestCode.SEND_MESSAGE_V2), "answer": True}
    return answering(ListenerRule(Outcome.SUSPEND, 10, number=3), Action(100, "drop_next", lost))


def send_back_unanswered() -> Plan:
    """The first send-back is lost on its way."""
    lost = {"a": "c1", "b": "b0", "code": int(RequestCode.CONSUMER_SEND_MSG_BACK)}
    return answering(
        ListenerRule(Outcome.SUSPEND, number=3, delivery_max=1), Action(100, "drop_next", lost)
    )


def three_keys() -> Plan:
    """The first message of one key fails for three seconds; those of two others are there behind it."""
    plan = answering(ListenerRule(Outcome.SUSPEND, 3_000, number=1, delivery_max=1))
    first = [send(200, 1, "k1"), send(300, 1, "k2"), send(400, 1, "k4")]
    others = [action for action in plan.actions if action.do != "send"]
    return replace(plan, actions=tuple(sorted([*others, *first], key=lambda action: action.at_ms)))


def an_uneven_number_of_queues() -> Plan:
    """Three queues and two members, one of whom comes later."""
    plan = alone(Action(1_500, "start", {"client": "c2"}), duration_ms=5)
    return replace(plan, topology=Topology(("b0",), (TopicPlan("orders", 3),), ("billing",)))


def tags_of_one_hash() -> Plan:
    """Messages with two tags that have the same hash code, one after the other."""
    sends = [
        Action(
            2_000 + n,
            "send",
            {"client": "p1", "topic": "orders", "count": 1, "tags": ("Aa", "BB")[n % 2]},
        )
        for n in range(10)
    ]
    return alone(*sends, duration_ms=5)


def reset_by_an_operator() -> Plan:
    """The offset of a lane at work is moved back."""
    moved = {
        "client": "e1",
        "group": "billing",
        "topic": "orders",
        "broker": "b0",
        "queue": 0,
        "offset": 2,
    }
    return alone(Action(3_000, "reset", moved), duration_ms=50)


OCCASIONS: dict[str, Callable[[], Plan]] = {
    "key-held-back-by-another": three_keys,
    "send-back-failure-ignored": send_back_unanswered,
    "corrected-offset-reported-over": reset_by_an_operator,
    "guard-ignores-expiry": cut_off,
    "refused-lease-still-consumes": taken_over,
    "error-taken-for-not-found": second_query_lost,
    "error-taken-for-zero": second_query_of_a_member_lost,
    "lock-error-is-a-grant": renewals_refused,
    "offset-error-is-nothing-stored": queries_refused,
    "guard-inverted": cut_off,
    "guard-locked-or-fresh": cut_off,
    "loop-without-guard": cut_off,
    "refusal-ignored": forgotten,
    "turn-never-ends": two_lanes_and_one_thread,
    "suspension-stops-all-lanes": one_lane_that_rests,
    "suspended-lane-keeps-its-thread": one_lane_that_rests_and_one_thread,
    "last-in-line-is-first": three_lanes_and_one_thread,
    "time-wins-over-what-is-stored": left_to_another_and_started_by_time,
    "time-asked-in-another-unit": started_by_time_where_the_first_is_gone,
    "later-queues-never-seen": a_broker_comes_later,
    "queue-gone-once-is-gone": a_broker_comes_back,
    "idle-lane-looked-at-later": one_by_one,
    "pulled-later-when-nothing-came": now_and_then,
    "granted-but-left-with-the-refused": one_of_two_lanes_is_taken,
    "rebalance-dies-of-an-error": left_to_one_who_was_cut_off,
    "commit-result-ignored": committing,
    "manual-success-committed": succeeding_in_manual_mode,
    "failed-query-taken-for-missing": second_query_lost,
    "rollback-forgotten": rolling_back,
    "suspend-not-clamped": suspending_for_no_time,
    "dropped-lane-retried": taken_away_while_suspended,
    "forced-unlock": taken_away_during_a_long_call,
    "refused-lane-given-up": buried,
    "unlock-while-listener-runs": taken_away_during_a_long_call,
    "tags-not-compared": tags_of_one_hash,
    "shares-overlap": an_uneven_number_of_queues,
    "remainder-left-out": an_uneven_number_of_queues,
    "queues-sorted-downwards": an_uneven_number_of_queues,
    "dead-letter-failure-ignored": dead_letter_unanswered,
    "committed-before-the-dead-letter": dead_letter_unanswered,
    "given-up-lane-stands-still": giving_one_up,
    "no-limit-means-sixteen": suspending_twenty_times,
    "no-limit-compared-as-number": suspending_twenty_times,
    "counter-survives-the-lane": taken_away_and_given_back,
}

OTHER_SEEDS = (2, 3, 4, 5, 6, 7)
"""A scene that rests on chance (which frame is faster) is played with these as well, until it shows the bug."""

MUTANTS = [mutant.name for mutant in all_mutants() if mutant.consumer]
EACH = 5
"""Every fifth in every run of the tests, where each is also met by the search for one of its kind."""


JUDGED: dict[str, set[str]] = {}
"""What is refuted of the correct consumer, by the plan as text."""


def refuted_of_the_correct(plan: Plan) -> set[str]:
    told = json.dumps(plan.to_json())
    if told not in JUDGED:
        info, rows = simulate(plan)
        tallies = examine(rows, info).tallies
        JUDGED[told] = {clause for clause, tally in tallies.items() if tally.violations}
    return JUDGED[told]


def is_refuted(plan: Plan, mutant: Mutant) -> bool:
    """Judged by the clause that the mutant names, which is several times as fast as by all."""
    info, rows = simulate(plan, mutant)
    return any(
        tally.violations for tally in examine(rows, info, (get(mutant.killed_by),)).tallies.values()
    )


@pytest.mark.xdist_group("mutants in a cluster")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[] if number % EACH == 0 else pytest.mark.long)
        for number, name in enumerate(MUTANTS)
    ],
)
def test_the_mutant_is_refuted_in_its_clause_and_the_correct_consumer_in_none(name: str) -> None:
    mutant = load(name)
    scene = with_config(OCCASIONS.get(name, busy)(), mutant.config)
    for seed in (scene.seed, *OTHER_SEEDS):
        plan = replace(scene, seed=seed)
        assert refuted_of_the_correct(plan) == set()
        if is_refuted(plan, mutant):
            return
    raise AssertionError(f"{mutant.killed_by} is refuted with none of the seeds")


def test_a_queue_that_nobody_ever_had_is_told_by_its_name() -> None:
    """Where the broker came later than everybody who consumes, no incarnation is left to speak of."""
    info, rows = simulate(a_broker_comes_later(), load("later-queues-never-seen"))
    assert {found.name for found in find_violations(get("LIV-2"), rows, info)} == {"never-had"}
