"""Where the command line meets the parts that do the work: one function per job, nothing of a terminal in them.

Every target says itself how it is searched (`conformance.targets.base.Target.search`).
"""

from __future__ import annotations

import difflib
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from conformance import again
from conformance import run as runs
from conformance.cli.people import tell
from conformance.reports import occasion as occasions
from conformance.reports.saving import save
from conformance.reports.view import VerdictView, rows_in, view
from conformance.stopping import UNBOUND, Bounds, Stop, listening
from conformance.targets.base import Asked, Searched, Target, find
from conformance.workers import search_by_workers
from specs import profiles
from specs.clauses.catalogue import (
    all_clauses,
    all_ids,
    by_id,
    catalogue,
    facets_of,
    meant_by,
)
from specs.errors import UsageError
from specs.history import elsewhere
from specs.history.files import STDIN, STDIN_NAME, open_any
from specs.history.runinfo import RunInfo, read_runinfo
from specs.history.store import History
from specs.model.rules import RULES
from specs.outputs import writable_folder
from specs.plan.ability import Ability
from specs.profiles import Claim, Profile
from specs.scratch import Scratch
from specs.verdicts.baseline import Baseline
from specs.verdicts.online import ONLINE_FILE, read_online
from specs.verdicts.verdict import Verdict, checked

ARROW_FROM_EVENTS = 5_000
"""So many events are quicker read by columns than row by row."""
SPARK_FROM_EVENTS = 20_000_000
"""So many are better shared out among more than one machine's cores, and memory."""
RUN_MARKS = ("run.json", "rounds/1/run.json")
"""What a folder of ours holds, a finished run's or one's that ended early."""

AUTO = "auto"
NO_PROFILE = "no profile"
"""What a verdict says instead of a profile's name where single clauses were asked for and nothing else."""


class Watch(Protocol):
    """Who is told how far the work is."""

    def say(self, line: str) -> None:
        """A step of the work, in words."""

    def progress(self, done: int, total: int, what: str) -> None:
        """done of total."""


@dataclass(frozen=True, slots=True)
class Conformance:
    """A run that is ready to begin: what the user can get wrong has been looked at."""

    target: str
    profile: Profile
    system: Any
    baseline: Baseline | None = None

    @property
    def on_the_wire(self) -> bool:
        """Is the target spoken to by our own raw client? Then the wire rules are judged as well."""
        return Ability.WIRE in self.system.abilities

    def run(
        self,
        *,
        seed: int,
        examples: int | None,
        floor: int | None,
        out: Path,
        watch: Watch,
        stop: Stop | None = None,
        name: str = "",
    ) -> VerdictView:
        """Judge the target, keep the run in `out`, and return its verdict.

        None stands for the target's own default. stop: when the search ends, and by how many workers it is done; where
        it is given a first Ctrl-C ends the search too. A run that is in `out` already is replaced; anything else there
        is a UsageError. name: of the series of runs that this one is of.
        """
        make_room(out)
        over = occasions.begin(name)
        hearing = nullcontext() if stop is None else listening(stop, watch.say)
        asked = Asked(seed, examples, floor, out, watch.say, watch.progress, stop or Stop())
        with hearing:
            searched = self._search(asked)
        if asked.stop.bounds != UNBOUND and searched.verdict.search is None:
            watch.say(f"the target {self.target} searches in its own way, and asks for no bounds")
        judged = told_by(self.baseline, searched.verdict)
        return save(judged, out, events=searched.events, occasion=over())

    def _search(self, asked: Asked) -> Searched:
        if asked.stop.bounds.workers > 1:
            return search_by_workers(self.target, self.profile, asked)
        searched: Searched = self.system.search(self.profile, asked)
        return searched


def told_by(baseline: Baseline | None, verdict: Verdict) -> Verdict:
    """The verdict, with what came of the entries of the baseline under which it was reached."""
    return verdict if baseline is None else replace(verdict, baseline=baseline.told(verdict))


def make_room(out: Path, *marks: str) -> None:
    """Take away an earlier run in `out`. Raises UsageError for a folder that holds anything else, or can't be written.

    marks: by what is known as ours (one of them is enough); a run's, whole or ended early, if none is named.
    """
    if out.exists() and not out.is_dir():
        raise UsageError(f"{out} is a file; give a folder with --out")
    writable_folder(out)
    if out.is_dir() and any(out.iterdir()):
        if not any((out / mark).exists() for mark in marks or RUN_MARKS):
            raise UsageError(f"{out} exists and is no run of ours; give another --out")
        shutil.rmtree(out)


def prepare(
    target: str,
    profile: str | None,
    bounds: Bounds = UNBOUND,
    baseline: Baseline | None = None,
) -> Conformance:
    """Find the target and its profile. Raises UsageError (exit 64) for what does not exist, or can't be done.

    baseline: what is known to be broken; it is allowed, as by the profile.
    """
    try:
        system: Any = find(target)
    except ImportError as error:
        raise runs.PartUnavailable(f"the target {target}", error) from error
    if bounds.workers > 1 and Ability.OWN_SYSTEM not in system.abilities:
        raise UsageError(
            f"the target {target} can't {Ability.OWN_SYSTEM}, and several on the same one would take each other's "
            "messages and leases: leave --workers out"
        )
    chosen = load_profile(profile or system.profile)
    if baseline is not None:
        chosen = baseline.under(chosen)
    if not system.any_way:
        system.config_for(chosen)
    return Conformance(target, chosen, system, baseline)


def load_profile(name: str) -> Profile:
    """A profile as the user named it; allowances of her own that hide more than they say are told on stderr.

    Raises SpecError (exit 64) for an unknown profile or one that is wrong.
    """
    found = profiles.load(name)
    if bare := profiles.bare_of_its_own(found):
        tell(
            f"profile {name} allows {', '.join(bare)} whatever is found, so news is hidden too: name in each line what "
            f'is known, as findings = ["NAME"] (`inorder list clauses` shows the names)'
        )
    return found


@dataclass(frozen=True, slots=True)
class Question:
    """What `inorder check` is asked about a history; what does not exist has been refused.

    engine: None for the one that suits the history's size. profile: as the user named it, None for the history's own.
    clauses: the only ones to judge, in catalogue order, and rules: with these wire rules, of those that were judged
    while the run went on; none of either stands for all that the profile claims. findings: a folder for all findings;
    None: each clause's first ones are enough. baseline: what is known to be broken.
    """

    engine: str | None
    profile: Profile | None
    clauses: tuple[str, ...]
    master: str | None
    floor: int
    findings: Path | None = None
    baseline: Baseline | None = None
    rules: tuple[str, ...] = ()

    @property
    def names_some(self) -> bool:
        """Were single clauses or rules asked for?"""
        return bool(self.clauses or self.rules)

    def engine_for(self, history: History) -> str:
        """Rows are read one by one where they are few, by columns (arrow) where they are many; Spark needs a Java."""
        if self.rules and not self.clauses:
            return "python"  # no row decides them
        if self.engine is not None:
            return self.engine
        rows, there = rows_in(history), runs.engine_names()
        if self.findings is not None and rows < SPARK_FROM_EVENTS and self.master is None:
            return "arrow"
        if self.master is not None or rows >= SPARK_FROM_EVENTS:
            return "spark"
        return "arrow" if rows >= ARROW_FROM_EVENTS and "arrow" in there else "python"

    def profile_for(self, history: History, name: str) -> Profile:
        """What is held against a history. Raises UsageError where nobody says what was promised."""
        chosen = self._promised(history, name)
        return chosen if self.baseline is None else self.baseline.under(chosen)

    def _promised(self, history: History, name: str) -> Profile:
        if self.names_some:
            return self._asked_for()
        if self.profile is not None:
            return self.profile
        if history.info.profile is None:
            raise UsageError(
                f"{name} names no profile, so nobody said what was promised: give --profile NAME (`inorder list "
                f"profiles` shows them), or --clause ID for single clauses"
            )
        return load_profile(history.info.profile)

    def _asked_for(self) -> Profile:
        """The clauses are claimed because somebody asks; a profile that she named as well may allow deviations."""
        claims = dict.fromkeys(self.clauses, Claim("claimed", "--clause"))
        if self.profile is None:
            return Profile(NO_PROFILE, "the clauses that were asked for", claims)
        own = {clause: self.profile.claim(clause) for clause in self.clauses}
        claims.update((clause, claim) for clause, claim in own.items() if claim.status == "allowed")
        return replace(self.profile, claims=claims)

    def again(self, source: Path | str, engine_name: str, profile: Profile) -> str:
        """The command that asks the same."""
        named = () if self.names_some and self.profile is None else ("--profile", profile.name)
        alone = (rule for rule in self.rules if meant_by(rule) not in self.clauses)
        asked = (*self.clauses, *alone)
        chosen = [word for name in asked for word in ("--clause", name)]
        return again.command("check", source, "--engine", engine_name, *named, *chosen)


def question(
    *,
    engine: str | None,
    profile: str | None,
    clauses: Sequence[str],
    master: str | None,
    floor: int,
    findings: Path | None = None,
    baseline: Baseline | None = None,
) -> Question:
    """Raises UsageError for an engine or a clause that does not exist, SpecError for such a profile."""
    if findings is not None and engine == "python":
        raise UsageError("--findings is written by the engines arrow and spark: name one, or none")
    engine = None if engine == AUTO else engine
    if engine is not None:
        runs.find_engine(engine)
    asked = {name for text in clauses for name in asked_by(text)}
    return Question(
        engine,
        None if profile is None else load_profile(profile),
        tuple(clause.id for clause in all_clauses() if clause.id in asked),
        master,
        floor,
        findings,
        baseline,
        tuple(rule for rule in RULES if rule in asked),
    )


def asked_by(text: str) -> tuple[str, ...]:
    """What the id of a clause, or of a wire rule, asks for: the clause, where histories decide it, and its wire rules.

    The id of a rule that is a facet of a clause is an alias: it asks for the clause with this facet. Raises UsageError,
    with a near match, for anything else, and for a clause that only a table decides.
    """
    wanted = text.strip().upper()
    rules = (wanted,) if wanted in RULES else facets_of(wanted)
    meant = meant_by(wanted)
    if meant in by_id():
        return (meant, *rules)
    if rules:
        return rules
    return (clause_of(text),)


def clause_of(text: str) -> str:
    """The id of a clause that histories decide. Raises UsageError, with a near match, for anything else."""
    wanted = text.strip().upper()
    if wanted in by_id():
        return wanted
    if wanted in all_ids():
        judged_by = " and ".join(
            next(clause for clause in catalogue() if clause.id == wanted).judged_by
        )
        raise UsageError(f"{wanted} is judged by {judged_by}: no history shows whether it was kept")
    close = difflib.get_close_matches(wanted, [clause.id for clause in all_clauses()], n=1)
    hint = f"did you mean {close[0]}?" if close else "`inorder list clauses` shows all"
    raise UsageError(f"there is no clause {text}; {hint}")


@contextmanager
def opened(source: Path | str, asked: Question) -> Iterator[History]:
    """The history that is asked about, while the block runs. Raises HistoryError (exit 64).

    Of a URI only the description is read here where Spark, by name or with a master, reads the rows.
    """
    if isinstance(source, Path):
        yield open_source(source)
        return
    by_spark = asked.engine == "spark" or (asked.engine is None and asked.master is not None)
    with elsewhere.opened(source, rows=not by_spark) as history:
        yield history


def open_source(source: Path) -> History:
    """A history's folder, a file, or `-`. Raises HistoryError (exit 64)."""
    return open_any(source, sys.stdin.buffer)


def judge(
    source: Path | str, history: History, asked: Question, *, out: Path | None, name: str = ""
) -> VerdictView:
    """Judge a history that was opened. out: where the verdict and its reports are kept; None: nowhere.

    name: of the series of verdicts that this one is of.
    """
    over = occasions.begin(name)
    engine_name = asked.engine_for(history)
    chosen = asked.profile_for(history, STDIN_NAME if str(source) == STDIN else str(source))
    options: dict[str, Any] = {"floor": asked.floor}
    if asked.master is not None:
        options["master"] = asked.master
    if asked.names_some:
        options |= {"clauses": asked.clauses, "rules": asked.rules}
        _refuse_rules_alone(history, asked)
    if asked.findings is not None:
        options["findings"] = asked.findings
    verdict = runs.judge(history, chosen, engine_name, options)
    info = verdict.info
    verdict = replace(
        verdict, info=replace(info, replay=info.replay or asked.again(source, engine_name, chosen))
    )
    verdict = told_by(asked.baseline, verdict)
    if out is None:
        folder = source if isinstance(source, Path) else None
        seen = view(verdict, folder=folder, events=rows_in(history))
        return replace(seen, occasion=over())
    return save(verdict, out, history=history, events=rows_in(history), occasion=over())


def _refuse_rules_alone(history: History, asked: Question) -> None:
    """Raises UsageError where nothing but wire rules is asked for, and nothing of them was kept."""
    if not asked.clauses and (history.is_a_file or read_online(history.folder) is None):
        raise UsageError(
            f"{', '.join(asked.rules)} is judged while a broker is asked over the wire, and no {ONLINE_FILE} in "
            f"{history.folder} says what was found: `inorder conform` on such a target keeps one"
        )


def replay(
    path: Path, *, profile: str | None, out: Path | None, watch: Watch, target: str | None
) -> VerdictView:
    """Do again what a run or a plan says, and judge it. Raises UsageError for a run on real sockets.

    target: the simulated one to do it on; None for the run's own.
    """
    from conformance.replay import replay as replay_run

    info = info_of(path)
    again_on = None if target is not None or info is None else real_target_of(info)
    if info is not None and again_on is not None:
        return _run_again(info, again_on, profile, out, watch)
    refuse_real_runs(path, info)
    if out is not None:
        make_room(out)
    verdict = replay_run(path, profile=profile, out=out, say=watch.say, target=target)
    return view(verdict) if out is None else save(verdict, out)


def real_target_of(info: RunInfo) -> Target | None:
    """The target of a run, where a whole run of it is a plan in real time, done again as such."""
    by_plan = (info.replay or "").startswith("inorder replay")
    if info.plan is None or not (by_plan or info.plan.get("steps")):
        return None
    found = find(info.target)
    if Ability.REPLAY not in found.abilities:
        return found
    return None


def _run_again(
    info: RunInfo, target: Target, profile: str | None, out: Path | None, watch: Watch
) -> VerdictView:
    """What it comes to this time: real time repeats nothing to the byte."""
    with Scratch("replay") as scratch:
        folder = out or Path(scratch) / "run"
        make_room(folder)
        watch.say(f"doing the run's plan again on {target.name}, in real time")
        ended: runs.EndedEarly | None = None
        try:
            history = runs.run_again(info, target, folder, watch.say)
        except runs.EndedEarly as error:
            ended, history = error, error.history
        finally:
            target.release()
        chosen = load_profile(profile or info.profile or target.profile)
        verdict = runs.judge(history, chosen, options={"floor": 1})
        if ended is not None:
            verdict = checked(verdict, ended.check)
        told = replace(verdict.info, replay=again.command("replay", folder))
        verdict = replace(verdict, info=told)
        return view(verdict) if out is None else save(verdict, folder)


def refuse_real_runs(path: Path, info: RunInfo | None) -> None:
    """A run on real sockets is done again by its own command: nothing repeats it to the byte."""
    if info is not None and info.replay and not info.replay.startswith("inorder replay"):
        raise UsageError(
            f"{path} is a run of {info.target}, which can't be repeated to the byte; try `{info.replay}`"
        )


def info_of(path: Path) -> RunInfo | None:
    """What a run's folder says of itself; None for a file. Raises HistoryError for a folder that is no run."""
    return read_runinfo(path) if path.is_dir() else None
