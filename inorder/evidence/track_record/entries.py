"""What an entry of the track record is, and the list of them.

An entry names a bug, the clause or wire rule that judges it, and two releases. Nothing in an entry knows the bug's
mechanism: a trial is an ordinary run (the wire machine, a client at work, a scene with several, or a drawn plan), and
the same clause judges both sides by the same profile, so that a difference is the release's. That profile is what the
red release's users were told (*as documented*); its profile *as built* excuses the bug, with the source. A system whose
profiles excuse no release has one profile for both.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from conformance.tap.faults import parse_rule
from conformance.targets.base import find
from conformance.targets.driven import profile_of
from inorder.evidence.track_record import scenes, with_go
from inorder.evidence.track_record.by_table import ALONE, choose_with_java
from inorder.evidence.track_record.handed_over import HandedOver
from inorder.evidence.track_record.on_the_wire import ask_over_the_wire
from inorder.evidence.track_record.planned import Planned
from inorder.evidence.track_record.tapped import SHORT, SMALL_FILES, Played
from inorder.evidence.track_record.with_go import SmallPlan
from inorder.evidence.track_record.with_java import consume_with_java
from inorder.evidence.track_record.with_kafka import ComesAndGoes, SendsInFlight
from specs import profiles
from specs.profiles import BESIDE
from specs.verdicts.verdict import Judged

Say = Callable[[str], Any]
Trial = Callable[[str, str, str, Sequence[int], Path, Say], list[Judged]]
"""(target, profile, id of the clause or rule, seeds, a folder for the runs, progress) → one result per seed."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One bug. judged_by: a clause's or wire rule's id. red, green: targets. command: how a user sees it.

    profile: that of the red release, as documented; where its release promises nothing of the kind, of the next.

    green_trial, green_setting: where no release is without the bug, another way to use the same one, and its words.
    """

    id: str
    bug: str
    judged_by: str
    red: str
    green: str
    profile: str
    trial: Trial
    command: str
    green_trial: Trial | None = None
    green_setting: str = ""


def _conform(target: str, profile: str) -> str:
    return f"inorder conform --target {target} --profile {profile} --seed 1"


def _conform_alone(target: str) -> str:
    return f"inorder conform --target {target} --seed 1"


def _reproduce(name: str) -> str:
    return f"python -m inorder.evidence.track_record {name}"


def _of_go(
    name: str,
    bug: str,
    judged_by: str,
    trial: SmallPlan,
    red: str = "go:2.1.2",
    green: str = "java:5.4.0",
) -> Entry:
    """A bug of the Go client, by the same plan on our broker, which sees what clients ask for.

    Of the newest one, and Java has it not.
    """
    return Entry(
        name,
        bug,
        judged_by,
        f"reference+{red}",
        f"reference+{green}",
        f"reference{BESIDE}rocketmq-go-orderly-documented",
        trial,
        _reproduce(name),
    )


SECOND_LOOK_UP_FAILS = parse_rule("QUERY_CONSUMER_OFFSET#2@c1=answer:1")
"""The second time that a consumer asks for its stored offset, which an orderly one does, it is told of an error."""

RELEASE_IS_ANSWERED_LATE = parse_rule("UNLOCK_BATCH_MQ#1@a=delay-answer:900")
"""The answer to a consumer that gives its lanes back takes nearly the second for which it waits."""

MORE_PER_CALL = replace(SHORT, batch=2, max_reconsume_times=3, suspend_ms=300)
SHORT_LEASES = replace(SHORT, lock_interval_ms=500, client_lease_ms=5_000, broker_lease_ms=10_000)

FEW_CHANGES = Planned(changes=2)
"""A round of `conform` with half of its changes: a second consumer comes, and one goes or a third comes."""
AUTOMATIC = "group.protocol=consumer,enable.auto.commit=true"
PIPELINED = "max.in.flight.requests.per.connection=5,app.in.flight=20"
PAUSES = "app.on.failure=pause"
STATES = "app.rollups=true,app.filters=state"
SHARED = "app.outstanding=4"
BELOW = "app.consumer=ordered,app.filters=below"
WILD = "app.consumer=ordered,app.filters=wild"

ENTRIES: tuple[Entry, ...] = (
    Entry(
        "B-17",
        "the selector by hash has no queue for keys of the smallest hash: the send fails",
        "ORD-6",
        "java:4.7.1",
        "java:4.8.0",
        "rocketmq-4.0-orderly-documented",
        choose_with_java,
        _reproduce("B-17"),
    ),
    Entry(
        "B-28",
        "an exhausted message circles through the retry topic and never reaches the dead letters",
        "DLQ-1",
        "rocketmq-local:5.1.0+java:5.1.0",
        "rocketmq-local:5.1.1+java:5.1.1",
        "rocketmq-5.0-orderly-documented",
        consume_with_java,
        _reproduce("B-28"),
    ),
    Entry(
        "B-29",
        "an exhausted message reaches the dead letters only after a delay level's time",
        "DLQ-7",
        "rocketmq-local:4.9.7",
        "rocketmq-local:5.4.0",
        "rocketmq-5-orderly-documented",
        ask_over_the_wire,
        _conform("rocketmq-local:4.9.7", "rocketmq-5-orderly-documented"),
    ),
    Entry(
        "B-54",
        "an error in the answer to a consumer's question for its stored offset is taken for 'nothing is stored': "
        "finished messages are replayed, or waiting ones lost",
        "CMT-8",
        "rocketmq-local:5.4.0+java:4.9.8",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-5.2-orderly-documented + rocketmq-4.9-orderly-documented",
        Played(scenes.a_member_starts_where_another_stopped, rules=(SECOND_LOOK_UP_FAILS,)),
        _reproduce("B-54"),
    ),
    Entry(
        "B-55",
        "a pull beyond the end is sent back to offset 0, so that the whole queue is replayed",
        "WIR-9",
        "rocketmq-local:4.9.3",
        "rocketmq-local:4.9.4",
        "rocketmq-4.0-orderly-documented",
        ask_over_the_wire,
        _conform("rocketmq-local:4.9.3", "rocketmq-4.0-orderly-documented"),
    ),
    Entry(
        "B-61",
        "what is sent between the answer 'nothing is stored' and the first pull is lost to a group that starts from "
        "the last message",
        "CMT-8",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-5.2-orderly-documented",
        Played(
            scenes.a_new_group_starts_while_messages_come,
            replace(SHORT, consume_from="last"),
            broker=SMALL_FILES,
            others=True,
        ),
        _reproduce("B-61"),
        Played(scenes.a_new_group_starts_while_messages_come, broker=SMALL_FILES, others=True),
        "starting from the first message; no release is without the bug",
    ),
    Entry(
        "B-77b",
        "a batch of which one message is exhausted comes again, and that message is sent to the dead letters each time",
        "DLQ-10",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-5.2-orderly-documented",
        Played(scenes.a_batch_fails_of_which_one_was_tried_before, MORE_PER_CALL),
        _reproduce("B-77b"),
        Played(scenes.a_batch_fails_as_one, MORE_PER_CALL),
        "with a batch that is exhausted as one; no release is without the bug",
    ),
    Entry(
        "B-77c",
        "a consumer gives a lane back while its listener still runs, and the next one runs beside it",
        "LSE-2",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-local:5.4.0+java:5.1.4",
        "rocketmq-5.2-orderly-documented",
        Played(scenes.a_member_joins_during_a_call, stay=False),
        _reproduce("B-77c"),
    ),
    Entry(
        "B-77e",
        "a consumer that is shut down gives its lanes back before it has stored how far it came: the next one starts "
        "from an old offset",
        "CMT-13",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-5.2-orderly-documented",
        Played(scenes.a_member_stops_after_its_work),
        _reproduce("B-77e"),
        Played(scenes.a_member_stops_after_its_report),
        "stopped after its offsets were stored; no release is without the bug",
    ),
    _of_go(
        "B-32",
        "with a limit of N retries a message is delivered N + 2 times",
        "RTY-5",
        SmallPlan(with_go.never_well),
    ),
    _of_go(
        "B-33",
        "a listener that commits by hand suspends a message: it is passed, and lost with the next commit",
        "ORD-3",
        SmallPlan(with_go.suspended_by_hand),
    ),
    _of_go(
        "B-34a",
        "with automatic commits the result Commit stores nothing: all comes again for the next owner",
        "CMT-2",
        SmallPlan(with_go.committed, one_more_ms=13_000),
    ),
    _of_go(
        "B-34b",
        "a listener asks for a retry later: the message is passed, and lost with the next commit",
        "RTY-7",
        SmallPlan(with_go.returned_nothing),
    ),
    _of_go(
        "B-35",
        "the suspend time that the consumer was told is not waited: the message comes again at once",
        "RTY-1",
        SmallPlan(with_go.suspended_once),
    ),
    _of_go(
        "B-37",
        "a listener returns an error: the message is committed, and lost",
        "RTY-7",
        SmallPlan(with_go.threw),
    ),
    _of_go(
        "go-650",
        "a suspended message does not come again: it is passed, and lost with the next commit",
        "ORD-3",
        SmallPlan(with_go.suspended_once),
        red="go:2.1.0",
        green="go:2.1.2",
    ),
    _of_go(
        "go-994",
        "a consumer that leaves does not give its lanes back: the next one waits until the lease has expired",
        "LSE-16",
        SmallPlan(with_go.all_well, leaves=True),
        red="go:2.1.1",
        green="go:2.1.2",
    ),
    Entry(
        "lock-after-release",
        "a second timer, which a shutdown does not stop, takes the lanes again after they were given back: the next "
        "consumer waits until the lease has expired",
        "LSE-16",
        "rocketmq-local:5.4.0+java:5.4.0",
        "rocketmq-local:5.4.0+java:4.9.8",
        "rocketmq-5.2-orderly-documented",
        Played(
            scenes.a_member_leaves_and_another_stays,
            SHORT_LEASES,
            rules=(RELEASE_IS_ANSWERED_LATE,),
        ),
        _reproduce("lock-after-release"),
    ),
    Entry(
        "K-1",
        "with the new protocol of groups an automatic commit passes the record in work: who takes over after a crash "
        "never sees it",
        "CMT-1",
        f"kafka-local:4.3.1+java:4.4.0,{AUTOMATIC}",
        f"kafka-local:4.3.1+java:4.1.0,{AUTOMATIC}",
        "kafka-java-auto",
        FEW_CHANGES,
        _conform_alone(f"kafka-local:4.3.1+java:4.4.0,{AUTOMATIC}"),
    ),
    Entry(
        "K-2",
        "resuming a partition that is not paused takes the consumer back to an older offset: finished records come "
        "again",
        "ORD-10",
        f"kafka-local:4.3.1+librdkafka:2.3.0,{PAUSES}",
        f"kafka-local:4.3.1+librdkafka:2.4.0,{PAUSES}",
        "kafka-librdkafka",
        FEW_CHANGES,
        _conform_alone(f"kafka-local:4.3.1+librdkafka:2.3.0,{PAUSES}"),
    ),
    Entry(
        "K-3",
        "an offset that is stored after its partition was taken is accepted, and committed when the partition comes "
        "back: the group is taken back behind its next owner's progress",
        "CMT-6",
        "kafka-local:4.3.1+go:1.8.2",
        "kafka-local:4.3.1+go:1.9.2",
        "kafka-go",
        ComesAndGoes(),
        _reproduce("K-3"),
    ),
    Entry(
        "K-4",
        "a producer that is not idempotent sends again what had no answer: the log holds it twice, behind what came "
        "after it",
        "ORD-15",
        f"kafka-local:4.3.1,enable.idempotence=false,{PIPELINED}",
        f"kafka-local:4.3.1,enable.idempotence=true,{PIPELINED}",
        "kafka-librdkafka",
        SendsInFlight(),
        _reproduce("K-4"),
    ),
    Entry(
        "N-1",
        "a rollup on a consumer's other subject, while a message is in work, skips the next message: it is never "
        "delivered",
        "LIV-1",
        f"nats-local:2.14.3,{STATES}",
        f"nats-local:2.15.2,{STATES}",
        "nats-queue",
        FEW_CHANGES,
        _conform_alone(f"nats-local:2.14.3,{STATES}"),
    ),
    Entry(
        "N-2",
        "a consumer with a second filter that nothing matches is not given what was there before it",
        "LIV-1",
        f"nats-local:2.11.1,{BELOW}",
        f"nats-local:2.12.1,{BELOW}",
        "nats-ordered",
        FEW_CHANGES,
        _conform_alone(f"nats-local:2.11.1,{BELOW}"),
    ),
    Entry(
        "N-3",
        "the same where the second filter has a wildcard in its midst",
        "LIV-1",
        f"nats-local:2.11.1,{WILD}",
        f"nats-local:2.12.1,{WILD}",
        "nats-ordered",
        FEW_CHANGES,
        _conform_alone(f"nats-local:2.11.1,{WILD}"),
    ),
    Entry(
        "N-4",
        "acknowledging a message that came again, which fills the gap, does not move the floor until nothing is "
        "outstanding",
        "FLR-2",
        f"nats-local:2.10.9,{SHARED}",
        f"nats-local:2.15.2,{SHARED}",
        "nats-shared",
        FEW_CHANGES,
        _conform_alone(f"nats-local:2.10.9,{SHARED}"),
    ),
    Entry(
        "R-1",
        "an entry that was deleted while it was pending stays in front of its group for ever: nothing behind it is "
        "delivered",
        "LIV-1",
        "redis-local:6.2.14,app.states=true",
        "redis-local:7.0.15,app.states=true",
        "redis-streams",
        Planned(changes=2, messages=240),
        _conform_alone("redis-local:6.2.14,app.states=true"),
    ),
    Entry(
        "Q-1",
        "a quorum queue's active consumer closes its channel with messages that it has not acknowledged: the next one "
        "is given the message behind them first",
        "ORD-4",
        "rabbitmq-local:3.10.8,app.queue=quorum,app.prefetch=5",
        "rabbitmq-local:3.10.8,app.queue=classic,app.prefetch=5",
        "rabbitmq-quorum-documented",
        HandedOver(),
        _reproduce("Q-1"),
    ),
)


def as_built(target: str) -> str:
    """The profile of a target's releases, as built: brokers as in the one, clients as in the other."""
    if target.startswith(ALONE):
        return profile_of(target.removeprefix(ALONE))
    return str(find(target).profile)


def as_documented(target: str) -> str:
    """The same as their users were told: a profile of its own where one excuses what the releases do."""
    known = profiles.names()
    built = as_built(target).split(BESIDE)
    documented = {name: f"{name}-documented" for name in built}
    return BESIDE.join(documented[name] if documented[name] in known else name for name in built)


def entry(name: str) -> Entry | None:
    """The entry of that id."""
    return next((each for each in ENTRIES if each.id == name), None)
