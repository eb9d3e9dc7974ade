"""Every recorder of the project says in run.json what it records: no less than it writes, and no more than it sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from random import Random

import pytest

from chaos.hosted import processes
from conformance.drivers.plans import drawn_plan
from conformance.drivers.protocol import OPTIONAL_EVENTS, REQUIRED_EVENTS
from conformance.drivers.recording import told_by
from conformance.drivers.watching import WATCHED
from conformance.records import BEHIND_A_TAP, OF_OUR_CLIENTS
from conformance.run import records_of
from conformance.targets.driven import JavaTarget, pair
from conformance.targets.executed import ExecutedTarget
from conformance.wire.runner import SHORT_LEASES
from inorder.evidence.track_record.entries import ENTRIES
from inorder.evidence.track_record.tapped import Played
from reference_impl.client.history import recorded
from reference_impl.sim.simulate import RECORDED as OF_THE_SIMULATION
from reference_impl.sim.simulate import simulate
from specs.clauses.catalogue import all_clauses
from specs.history.row import Row
from specs.history.runinfo import read_runinfo
from specs.vocabulary import Kind, Level

Records = Mapping[str, Sequence[str]]
OF_CHAOS = records_of(processes("reference+tcp"))
OF_LEASED_MESSAGES = {Kind.RECEIVE, Kind.ACK, Kind.RELEASE, Kind.RENEW, Kind.PROGRESS}
"""No client of ours is lent a message by itself."""
ASKED_FOR = {
    kind for clause in all_clauses() for kind in clause.needs | clause.excuses
} - OF_LEASED_MESSAGES
"""What the clauses listen to."""


def kinds(records: Records) -> set[Kind]:
    return {Kind(kind) for each in records.values() for kind in each}


def undeclared(rows: Sequence[Row], records: Records) -> set[tuple[Level, Kind]]:
    """What was written though nothing says that it would be."""
    return {(row.level, row.kind) for row in rows if row.kind not in records.get(row.level, ())}


@pytest.mark.parametrize("seed", range(3))
def test_a_simulation_writes_what_it_declares(seed: int) -> None:
    info, rows = simulate(drawn_plan(SHORT_LEASES, "r", seed, Random(seed), plain=False))
    assert info.records == OF_THE_SIMULATION
    assert undeclared(rows, OF_THE_SIMULATION) == set()


@pytest.mark.parametrize("records", [OF_THE_SIMULATION, OF_OUR_CLIENTS, OF_CHAOS])
def test_where_our_own_clients_work_every_clause_can_be_judged(records: Records) -> None:
    """Nothing that a clause listens to goes unseen: no finding of ours is only possible for want of a row."""
    assert kinds(records) >= ASKED_FOR
    assert Kind.ROUTE not in kinds(records)  # nobody writes one


def test_a_driver_is_taken_at_its_word() -> None:
    """What an event tells is recorded."""
    assert told_by(REQUIRED_EVENTS) == {Kind.DELIVER, Kind.SEND}
    assert told_by((*REQUIRED_EVENTS, *OPTIONAL_EVENTS)) == {
        Kind.DELIVER,
        Kind.SEND,
        Kind.ASSIGN,
        Kind.ADD,
        Kind.DROP,
        Kind.COMMIT,
        Kind.FETCH_OFFSET,
        Kind.DEAD_LETTER,
        Kind.LOCK,
        Kind.UNLOCK,
        Kind.PULL,
        *OF_LEASED_MESSAGES - {Kind.PROGRESS},
    }


@pytest.mark.parametrize("told", [(), ("gave_up",)])
def test_that_nothing_was_given_up_is_known_of_drivers_that_tell_it(told: Sequence[str]) -> None:
    """Otherwise what looks overtaken may have been put away: that is possible, and not refuted."""
    target = ExecutedTarget("driver", ["driver"], {})
    target.announced((*REQUIRED_EVENTS, *told))
    assert (Kind.DEAD_LETTER in kinds(records_of(target))) == bool(told)
    assert kinds(records_of(target)) >= {Kind.DELIVER, Kind.SEND, Kind.CHECK, Kind.SEND_BACK}


def test_of_a_driven_client_nobody_sees_the_requests_but_our_own_broker() -> None:
    # The Java client tells none of these.
    untold = {"committed", "looked_up", "locked", "unlocked", "moved", "gave_up"}
    optional = set(OPTIONAL_EVENTS) - untold
    every = (*REQUIRED_EVENTS, *optional)
    watched, unwatched = (kinds(records_of(_with(broker, every))) for broker in (None, "5.4.0"))
    assert watched - unwatched == WATCHED
    assert not unwatched & {Kind.LOCK, Kind.COMMIT, Kind.PULL, Kind.DEAD_LETTER, Kind.SEND_BACK}
    assert unwatched >= {Kind.ADD, Kind.DROP, Kind.CRASH, Kind.READ, Kind.RESET}
    assert Kind.ADD not in kinds(records_of(_with("5.4.0", REQUIRED_EVENTS)))
    assert records_of(pair("5.4.0", None)) == {**OF_OUR_CLIENTS, "store": (Kind.PROGRESS.value,)}


def _with(broker: str | None, events: Iterable[str]) -> JavaTarget:
    """A Java client whose drivers tell these events."""
    target = pair(broker, "5.4.0")
    assert isinstance(target, JavaTarget)
    target.announced(events)
    return target


def test_the_trials_of_the_track_record_declare_enough_for_their_clauses() -> None:
    """What a trial does not see would leave what it is about open."""
    clauses = {clause.id: clause for clause in all_clauses()}
    for entry in ENTRIES:
        clause = clauses.get(entry.judged_by)
        if clause is None:  # a rule of the wire, judged as the answers come
            continue
        for trial in (entry.trial, entry.green_trial):
            if isinstance(trial, Played):
                known = kinds(trial.records)
                assert trial.others is False or not clause.absence, entry.id
            elif entry.id in ("B-29", "B-28"):
                known = kinds(OF_OUR_CLIENTS if entry.id == "B-29" else BEHIND_A_TAP)
            else:
                continue
            assert clause.needs | clause.excuses <= known, entry.id


def test_a_program_records_what_its_clients_do(tmp_path: Path) -> None:
    """Not who dies, is paused or reset: unless the program says that it is in the history, or can't be."""
    with recorded(tmp_path / "plain"):
        pass
    info = read_runinfo(tmp_path / "plain")
    assert info.closed_world is False
    assert kinds(info.records or {}) >= {
        Kind.SEND,
        Kind.DELIVER,
        Kind.LOCK,
        Kind.COMMIT,
        Kind.ADD,
        Kind.SEND_BACK,
    }
    assert not kinds(info.records or {}) & {
        Kind.CRASH,
        Kind.PAUSE,
        Kind.RESET,
        Kind.READ,
        Kind.TRIM,
        Kind.CLOCK_STEP,
    }
    with recorded(tmp_path / "more", closed_world=True, also=[Kind.CRASH, Kind.RESET]):
        pass
    more = read_runinfo(tmp_path / "more")
    assert more.closed_world is True
    assert kinds(more.records or {}) - kinds(info.records or {}) == {Kind.CRASH, Kind.RESET}
