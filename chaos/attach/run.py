"""One run on her containers: the tap goes up, copies stand in, each fault waits for its moment, all is healed and comes
to rest, and whatever happens hers are back at the end.

The history is what the tap saw. A client that went around it is told of, and the run is inconclusive: a lease or a
commit that nobody saw could be the cause of anything. What was recorded is judged, also where a container or the
engine went away in the midst, and whatever can't be put back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

from docker import DockerClient

from chaos.attach.breaking import BREAKINGS, Breaking, Fault
from chaos.attach.compose import PROJECT
from chaos.attach.hers import Look, Role
from chaos.attach.sight import Sight
from chaos.attach.standing import Broken, InPlace, StandIn
from chaos.rounds import Bounds
from chaos.runner import fault_told
from conformance import again
from conformance.parts import docker_engine
from conformance.parts.docker_engine import LABEL_OF_PROJECT, Container, EngineFailed, asking
from conformance.run import SHORT
from conformance.tap.alone import READY
from conformance.tap.rows import RECORDS
from conformance.waiting import now_s, wait_until
from conformance.wire.session import forgotten_ms, patience_ms
from specs.errors import PartFailed, UsageError
from specs.facts.columns import MS
from specs.faults import cut
from specs.history.clock import host_clock
from specs.history.journal import Journal
from specs.history.row import Row
from specs.history.runinfo import RunInfo, write_runinfo
from specs.history.store import History, open_history, write_history
from specs.plan.config import Config
from specs.profiles import Profile
from specs.verdicts.engine import of_one_run
from specs.verdicts.examine import examine
from specs.verdicts.tally import Check
from specs.verdicts.verdict import LIVED, ClauseVerdict, Verdict, by_python
from specs.vocabulary import Kind, Level, Outcome

INSIDE = "/run/inorder"
HARNESS = "harness"
READY_S = 60.0
AT_WORK_S = 90.0
LOOK_S = 0.05
CHECK_S = 1.0
"""So often the engine is asked whether all that is ours is there."""
LASTS_S = 5.0
"""How long a fault lasts where nobody is there to take over."""
BEFORE = 2
"""How often a consumer has told how far it is, and a broker's clients together, before it is broken."""
LATE_MS = 15_000
"""A broker that is busy forgets a silent member later than it would."""
DRAINS = 4
"""At the end it is waited for so many times as long as any single thing may take."""
Say = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """What a user wants. verbs: the faults. config: the times that her system was told, where not the defaults."""

    look: Look
    verbs: Sequence[str]
    config: Config
    profile: Profile
    seed: int
    bounds: Bounds
    words: Sequence[object] = ()
    """That ask for the same again."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Of the environment, that go with them."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One fault that is to come: whom it befalls."""

    breaking: Breaking
    name: str

    def __str__(self) -> str:
        return f"{self.name} {self.breaking.says} ({self.breaking.verb})"


def turns(look: Look, verbs: Sequence[str], seed: int) -> Iterator[Sequence[Turn]]:
    """A round after the other: each fault once, on a container that the seed draws."""
    draw = Random(seed)
    while True:
        found = []
        for breaking in BREAKINGS:
            whom = look.brokers if breaking.role is Role.BROKER else look.consumers
            if breaking.verb in verbs and whom:
                found.append(Turn(breaking, draw.choice([each.name for each in whom])))
        yield found


def lines(asked: Asked) -> Iterator[str]:
    """What a run would do, a line each."""
    look = asked.look
    yield f"project {look.project.name} at {look.engine}, network {look.network}"
    yield f"a tap is started there, before the name server {look.namesrv}"
    for each in look.clients:
        yield (
            f"{each.name} ({each.role}) is stopped; a copy that finds the tap as {look.host} stands in for it"
        )
    for number, turn in enumerate(next(turns(look, asked.verbs, asked.seed)), start=1):
        yield f"fault {number}: {turn}"
    yield "everything is healed and comes to rest; then copies and tap are removed, and each container runs as before"
    if look.idle:
        yield f"does not run: {', '.join(look.idle)}"
    if look.others:
        yield f"never touched: {', '.join(look.others)}"


def attach(
    asked: Asked, client: DockerClient, image: str, out: Path, say: Say, *, warn: Say
) -> tuple[Verdict, History]:
    """Make the run in `out`, which is empty, and judge it.

    Raises UsageError where her clients don't pass the tap, PartFailed where nothing was recorded that could be judged.
    """
    look = asked.look
    info = RunInfo(
        run=f"{look.project.name}-{asked.seed}",
        seed=asked.seed,
        target=f"compose:{look.project.name}",
        parties={
            "broker": f"brokers of {look.namesrv}",
            "client": ", ".join(each.name for each in look.consumers),
            "producer": ", ".join(each.name for each in look.clients if each.role is Role.PRODUCER)
            or "producers that nobody watched",
        },
        profile=asked.profile.name,
        levels=(Level.TAP,),
        clock_bounds_us={"host": 0},
        closed_world=False,
        records=RECORDS,
        config=asked.config,
        replay=again.command(*asked.words, variables=asked.variables),
    )
    write_runinfo(out, info)
    with Journal(out, HARNESS, common={"level": Level.TAP}) as harness:
        this = _Run(asked, client, image, out, harness, say=say, warn=warn)
        this.make()
    if this.short:
        info = replace(info, environment={SHORT: "; ".join(this.short)})
    recorded = open_history(out)
    rows = list(_attested(list(recorded.rows()), this.faults))
    history = write_history(out, info, rows, why_cut=recorded.why_cut)
    return _judged(this, rows, history, asked.profile), history


def _attested(rows: Sequence[Row], faults: Sequence[Fault]) -> Iterator[Row]:
    """The history with what came of each fault."""
    mine = iter(faults)
    for row in rows:
        if row.kind is Kind.FAULT and row.process == HARNESS:
            fault = next(mine, None)
            shown = None if fault is None else fault.shown(rows)
            yield row._replace(outcome=Outcome.OK if shown else Outcome.REFUSED, view=shown)
        else:
            yield row


def _judged(this: _Run, rows: Sequence[Row], history: History, profile: Profile) -> Verdict:
    info = history.info
    found = examine(rows, info, why_cut=history.why_cut)
    told = tuple(fault_told(rows, row) for row in rows if row.kind is Kind.FAULT)
    checks = [
        Check("MET-7", "the run reached what it must", not this.short, "; ".join(this.short)),
        Check("MET-7", "every member passed the tap", not this.around, "; ".join(this.around)),
    ]
    if this.ended:
        checks.append(Check(LIVED, "every part lived to the end of the run", False, this.ended))
    tool = by_python(evidence="; ".join(fault.evidence for fault in told if fault.evidence))
    verdict = of_one_run(found, info, profile, more=checks, ours_too=True, tool=tool)
    if not verdict.of(ClauseVerdict.UPHELD) and not verdict.of(ClauseVerdict.REFUTED):
        checks.append(Check("MET-8", "a clause was exercised", False, "the tap saw too little"))
        verdict = of_one_run(found, info, profile, more=checks, ours_too=True, tool=tool)
    return replace(verdict, told=told)


class _Run:
    """A run while it is made. short: what was waited for in vain. around: who did not pass the tap. ended: why it came
    to its end before it was through."""

    def __init__(
        self,
        asked: Asked,
        client: DockerClient,
        image: str,
        out: Path,
        harness: Journal,
        *,
        say: Say,
        warn: Say,
    ) -> None:
        self._warn = warn
        self._asked = asked
        self._client = client
        self._image = image
        self._out = out
        self._harness = harness
        self._say = say
        self._clock = host_clock()
        self._sight = Sight(out, (forgotten_ms(asked.config) + LATE_MS) * MS)
        self._patience_s = patience_ms(asked.config) / 1000
        self._stand_ins: dict[str, StandIn] = {}
        self._parties: dict[str, Broken] = {}
        self._whole_us = 0
        self.faults: list[Fault] = []
        self.short: list[str] = []
        self.around: list[str] = []
        self.ended = ""
        self._checked_s = 0.0

    def make(self) -> None:
        docker_engine.owed_in(self._out)
        try:
            with self._tapped() as self._tap:
                self._go()
        finally:
            self._put_back()

    def _go(self) -> None:
        """From here on there is a history, and what fails is told in its verdict."""
        try:
            self._begin()
            self._break()
            self._rest()
            self._tap.terminate()
            if self._tap.wait(READY_S) is None:
                raise EngineFailed(f"the tap did not end within {READY_S:g} s")
        except PartFailed as error:
            self.ended = str(error)
            self._say(f"{self.ended}; what was recorded until then is judged")

    def _put_back(self) -> None:
        self._say("putting everything back")
        left = docker_engine.put_back()
        for debt, why in left.items():
            self._warn(f"{debt[1]} could not be put back: {why}")
        look = self._asked.look
        # Also one whose turn had not come when the engine was restarted.
        hers = {*look.others, *(each.name for each in (*look.clients, *look.brokers))}
        try:
            ended = self._ended(hers.difference(name for _, name in left))
        except EngineFailed as error:
            self._warn(str(error))
            return
        if ended:
            self._warn(f"{ended} ran before, and does not now: {look.project.up}")

    def _ended(self, before: set[str]) -> str:
        """Which of the user's containers that ran before do not now. Raises EngineFailed."""
        project = self._asked.look.project.name
        with asking("list the containers"):
            found = self._client.api.containers(filters={"label": f"{PROJECT}={project}"})
        running = {str(each["Names"][0]).removeprefix("/") for each in found}
        return ", ".join(sorted(before - running))

    # ------------------------------------------------------------ the begin

    @contextmanager
    def _tapped(self) -> Iterator[Container]:
        look = self._asked.look
        self._say(f"starting the tap before {look.namesrv}")
        command = ["python3", "-m", "conformance.tap.alone", "--upstream", look.namesrv]
        command += ["--port", str(look.port), "--out", INSIDE]
        tap = Container(
            self._client,
            self._image,
            command,
            volumes={self._out: INSIDE},
            network=look.network,
            labels={LABEL_OF_PROJECT: look.project.name},
        )
        try:
            ready = self._out / READY
            wait_until(lambda: ready.exists() or tap.status != "running", READY_S, LOOK_S)
            told = json.loads(ready.read_text(encoding="utf-8")) if ready.exists() else {}
            if "error" in told:
                raise UsageError(told["error"])
            if "namesrv" not in told:
                why = (
                    f"what it writes into {self._out} does not come here: the engine has another machine's folders"
                    if tap.status == "running"
                    else f"it {tap.why_ended()}"
                )
                raise EngineFailed(f"the tap did not start: {why}")
            self._address = str(told["namesrv"]).rpartition(":")[0]
            yield tap
        finally:
            tap.close()

    def _begin(self) -> None:
        """The copies are up, and have been heard of."""
        look = self._asked.look
        for broker in look.brokers:
            self._parties[broker.name] = InPlace(broker, self._client, look.network)
        for hers in look.clients:
            self._say(f"a copy stands in for {hers.name}")
            stand_in = StandIn(hers, self._client, look.network, look.project.name)
            began_us = self._clock.monotonic_us()
            stand_in.begin(look.host, self._tap.name, self._address)
            stand_in.locate(began_us)
            self._stand_ins[hers.name] = self._parties[hers.name] = stand_in
        for name in self._stand_ins:
            if not self._until(partial(self._is_heard_of, name), AT_WORK_S):
                if ended := self._ended({*look.others, *(each.name for each in look.brokers)}):
                    raise PartFailed(f"{ended} ran before, and does not now")
                why = self._parties[name].check() or (
                    f"it does not ask for the name server by the name {look.host}; --namesrv HOST:PORT says another"
                )
                raise UsageError(f"{name} was not heard of at the tap: {why}")
        self._until(lambda: self._sight.is_whole, self._patience_s / 4)
        self._whole_us = self._clock.monotonic_us()
        self._say("all copies are at work behind the tap")

    # ------------------------------------------------------------ the faults

    def _break(self) -> None:
        bounds, began_s = self._asked.bounds, now_s()
        rounds = turns(self._asked.look, self._asked.verbs, self._asked.seed)
        for number, these in zip(count(1), rounds, strict=False):
            for turn in these:
                if self._over(began_s) or self.short:
                    return
                self._one(turn)
            if bounds.rounds is not None and number >= bounds.rounds:
                return

    def _over(self, began_s: float) -> bool:
        budget_s = self._asked.bounds.budget_s
        return budget_s is not None and now_s() - began_s >= budget_s

    def _one(self, turn: Turn) -> None:
        name, breaking = turn.name, turn.breaking
        consumer = breaking.role is Role.CONSUMER
        who = {name} if consumer else {each.name for each in self._asked.look.consumers}
        before = {each: self._sight.done_by(self._clients(each)) for each in who}

        def at_work() -> bool:
            done = {each: self._sight.done_by(self._clients(each)) for each in who}
            has_lanes = not consumer or bool(self._sight.lanes_of(self._clients(name)))
            return has_lanes and all(done[each] - before[each] >= BEFORE for each in who)

        # Whoever began while another's lease still lived has no lane until that has run out.
        if not self._until(at_work, max(AT_WORK_S, self._patience_s)):
            self.short.append(
                f"{' and '.join(sorted(who))} had no lane, or did not tell how far it is"
            )
            return
        self._say(f"{breaking.verb} {name}")
        party = self._parties[name]
        clients = self._clients(name) if consumer else frozenset()
        number = len(self.faults)
        # A fault of a link goes by whoever sends over it (`specs.clauses.links`), any other by its container.
        meant = (
            name if breaking.verb != cut.VERB else " ".join(clients) if len(clients) == 1 else ""
        )
        self._harness.begin(number, Kind.FAULT, {"detail": f"{breaking.verb} {meant}".strip()})
        lanes = self._sight.lanes_of(clients)
        breaking.do(party)
        done_us = self._clock.monotonic_us()
        self._wait_for_others(name, lanes, clients, done_us)
        healed_us = self._clock.monotonic_us()
        party.heal()
        self._harness.end(number, Outcome.OK)
        party.locate(healed_us)
        self.faults.append(Fault(breaking, name, clients, lanes, done_us, healed_us))
        self._come_back(turn, who, healed_us)

    def _wait_for_others(
        self, name: str, lanes: Any, clients: frozenset[str], done_us: int
    ) -> None:
        """Until others work on its lanes; where there are no lanes, or no others, for a time."""
        groups = {lane[0] for lane in lanes}
        others = {
            who
            for group, (_, named) in self._sight.members.items()
            if group in groups
            for who in named - clients
        }
        ends_s = now_s() + LASTS_S
        if not others:
            self._until(lambda: now_s() >= ends_s, LASTS_S * 2)
        elif not self._until(
            lambda: self._sight.others_have(lanes, clients, done_us), self._patience_s
        ):
            self.short.append(f"nobody took over from {name} within {self._patience_s:g} s")

    def _come_back(self, turn: Turn, who: set[str], healed_us: int) -> None:
        """Each of them works on a lane again: one that never does is told of."""

        def back() -> bool:
            return all(
                any(
                    at_us >= healed_us and client in self._clients(each)
                    for at_us, client, _ in self._sight.pulls.values()
                )
                for each in who
            )

        if not self._until(back, self._patience_s):
            why = self._parties[turn.name].check()
            self.short.append(
                why or f"{' and '.join(sorted(who))} did not come back to work after {turn}"
            )

    # ------------------------------------------------------------ the end

    def _rest(self) -> None:
        """Producers are stopped, and everything that was sent is finished."""
        producers = [each for each in self._stand_ins.values() if each.hers.role is Role.PRODUCER]
        for each in producers:
            self._say(f"stopping the copy of {each.name}")
            each.end()
        if producers:
            self._say("waiting until everything is consumed")
            self._drain()
        for each in self._stand_ins.values():
            if each.hers.role is Role.CONSUMER:
                each.end()
        self._sight.look()
        self.around = self._sight.around(self._whole_us)

    def _drain(self) -> None:
        """It is waited as long as somebody gets on, but not for ever: producers may go on past the tap."""
        began_s = now_s()
        ends_s = began_s + DRAINS * self._patience_s
        while not self._sight.is_drained:
            before = self._sight.progress

            def got_on(before: int = before) -> bool:
                return self._sight.is_drained or self._sight.progress > before

            if now_s() >= ends_s or not self._until(got_on, self._patience_s):
                self.short.append(f"not everything was consumed within {now_s() - began_s:.0f} s")
                return

    def _is_heard_of(self, name: str) -> bool:
        return bool(self._clients(name))

    def _clients(self, name: str) -> frozenset[str]:
        return self._sight.clients_at(self._parties[name].addresses)

    def _until(self, condition: Callable[[], bool], deadline_s: float) -> bool:
        def looked() -> bool:
            if now_s() - self._checked_s >= CHECK_S:
                self._check_ours()
            self._sight.look()
            return condition()

        return wait_until(looked, deadline_s, LOOK_S)

    def _check_ours(self) -> None:
        """The tap runs, and nobody has removed a copy."""
        with asking("list the containers"):
            found = self._client.api.containers(
                all=True,
                filters={"label": f"{LABEL_OF_PROJECT}={self._asked.look.project.name}"},
            )
        states = {str(each["Names"][0]).removeprefix("/"): each["State"] for each in found}
        if states.get(self._tap.name) != "running":
            raise EngineFailed(f"the tap ({self._tap.name}) {self._tap.why_ended()}")
        for name, stand_in in self._stand_ins.items():
            if stand_in.copy not in states:
                raise EngineFailed(
                    f"{stand_in.copy}, which stood in for {name}, was removed by somebody"
                )
        self._checked_s = now_s()
