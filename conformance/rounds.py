"""`conform` in real time: rounds of drawn plans on a target, each run and judged; one verdict over all of them.

The first round has one message per call and no manual commits, the others what is drawn.

The loop of a simulated target is another one (`conformance.runner`): there Hypothesis makes the runs and calls us after
each, while a round is made when we ask for it. When they end, and what their verdicts say of it, both ask of
`conformance.stopping`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from conformance import again
from conformance.drivers.plans import CHANGES, ENDS, MESSAGES, drawn_plan
from conformance.keeping import keep_first
from conformance.reports.visible import visible
from conformance.run import EndedEarly, Interrupted, fresh_names, run
from conformance.stopping import Stop
from conformance.targets.base import Target
from conformance.wire.runner import replace_run_folder
from specs.clauses.catalogue import all_clauses
from specs.clauses.premises import SETTLED
from specs.history.runinfo import RunInfo, all_untold
from specs.history.store import History, write_history
from specs.plan.ability import Ability
from specs.plan.config import Config
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.engine import examined, of_a_search
from specs.verdicts.tally import Check, Examination, merged
from specs.verdicts.verdict import ClauseVerdict, Verdict

ROUNDS = 2
FLOOR = 5
LOG_TAIL_BYTES = 16 * 1024
WORDS_MAX = 300
"""So much of a client's last line is quoted."""
SAY = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class Round:
    """A plan that was done: its history and what the judge found in it."""

    plan: Plan
    history: History
    examination: Examination


def refutes(examination: Examination, profile: Profile) -> bool:
    """Is a clause refuted that the profile claims?"""
    return any(profile.claim(name).status == "claimed" for name in examination.refuted())


def conform_rounds(
    target: Target,
    profile: Profile,
    *,
    seed: int,
    rounds: int | None,
    out: Path,
    floor: int,
    changes: int = CHANGES,
    ours_too: bool = False,
    say: SAY = lambda _: None,
    stop: Stop | None = None,
) -> tuple[Verdict, list[Round]]:
    """Judge a target by `rounds` drawn plans, None: as many as the budget allows. The run's folder is `out`, replaced.

    In `out` lies the history of the first round that refutes a claimed clause, else of the last; every round's own is
    in `rounds/`. A refutation ends it; where it is to go on all the same, `refuted/CLAUSE` has a judged run for each
    clause. changes: how many times a consumer comes or goes in a round. ours_too: judge our own client on a foreign
    broker as well. stop: when it ends. Raises as `run` does, and KeyboardInterrupt where a Ctrl-C came before anybody
    worked in the first round; a later one ends the rounds, as does a driver that fails, and what was done until then
    is judged.
    """
    stop = Stop() if stop is None else stop
    config = target.config_for(profile)
    replace_run_folder(out)
    draw = Random(seed)
    done: list[Round] = []
    ended: EndedEarly | None = None
    stop.breaks_in = True
    try:
        while _goes_on(done, rounds, profile, stop):
            number = len(done) + 1
            say(f"round {number}{'' if rounds is None else f' of {rounds}'} on {target.name}")
            names = fresh_names(seed, number)
            plain = number == 1
            plan = plan_for(target, names, seed, draw, plain=plain, changes=changes, config=config)
            info = {"profile": profile.name, "run": f"{_word(target.name)}-{seed}-{number}"}
            folder = out / "rounds" / f"{number}"
            folder.mkdir(parents=True)
            try:
                history = run(plan, target, folder, info=info, prefix=names, say=say)
            except EndedEarly as error:
                ended, history = error, error.history
            except Interrupted as cut:
                if not stop.interrupted or stop.again:
                    raise
                history = cut.history
            done.append(Round(plan, history, examined(history)))
            if ended is not None:
                say(f"{ended}; what was recorded until then is judged")
                break
    except KeyboardInterrupt:  # between two rounds, or before anything was recorded
        if not stop.interrupted or stop.again or not done:
            raise
    finally:
        stop.breaks_in = False
        target.release()
    more = () if stop.interrupted else worked(done, profile)
    more = more if ended is None else (ended.check,)
    return _concluded(done, profile, rounds, out, floor, stop, more=more, ours_too=ours_too), done


def _goes_on(done: Sequence[Round], rounds: int | None, profile: Profile, stop: Stop) -> bool:
    """Is there another round? There is one at least."""
    if not done:
        return True
    if stop.why is not None or (rounds is not None and len(done) >= rounds):
        return False
    return stop.bounds.keep_going or not refutes(done[-1].examination, profile)


def plan_for(
    target: Target,
    names: str,
    seed: int,
    draw: Random,
    *,
    plain: bool,
    changes: int = CHANGES,
    messages: int = MESSAGES,
    config: Config | None = None,
) -> Plan:
    """A drawn plan of what the target can do (`conformance.drivers.plans`).

    names: what everything in it begins with. config: what it is drawn from, if not the target's own.
    """
    own = target.own_plan(names, seed, draw)
    if own is not None:
        return own
    return drawn_plan(
        target.config if config is None else config,
        names,
        seed,
        draw,
        plain=plain,
        changes=changes,
        messages=messages,
        ends=ENDS if Ability.CRASH_CLIENT in target.abilities else ("stop",),
        poison=Ability.GIVE_UP in target.abilities,
        sleeps=target.sleeps and not plain,
    )


def _concluded(
    done: Sequence[Round],
    profile: Profile,
    rounds: int | None,
    out: Path,
    floor: int,
    stop: Stop,
    *,
    more: Sequence[Check],
    ours_too: bool,
) -> Verdict:
    """Keep what is shown in `out`, and judge all rounds together. more: the checks of the rounds."""
    shown = next((one for one in done if refutes(one.examination, profile)), done[-1])
    told = replace(shown.history.info, replay=again.command("replay", out))
    write_history(out, told, list(shown.history.rows()), why_cut=shown.history.why_cut)
    told = replace(told, untold=all_untold(one.history.info for one in done))
    verdict = of_a_search(
        merged(one.examination for one in done),
        told,
        profile,
        floor=floor,
        plans=[one.plan for one in done],
        more=(*stop.checks(len(done)), *more),
        ours_too=ours_too,
        require_exercised=False,
    )
    kept: dict[str, str] = {}
    if stop.bounds.keep_going and stop.bounds.keeps:
        runs = [(one.history, one.examination) for one in done]
        kept = keep_first(out, profile, runs, ours_too=ours_too)
    is_over = bool(verdict.of(ClauseVerdict.REFUTED)) and not stop.bounds.keep_going
    search = stop.record(len(done), rounds, refuted=is_over, kept=kept)
    return replace(verdict, search=search)


def worked(done: Sequence[Round], profile: Profile) -> tuple[Check, ...]:
    """For the verdict: a round in which nobody worked, or that did not come to rest, tells nothing of what is promised.

    Silent where all is well.
    """
    told = []
    for number, one in enumerate(done, start=1):
        facts = one.examination.facts
        consumes = any(client.kind == "consumer" for client in one.plan.clients)
        if consumes and facts.sends and not facts.deliveries:
            said = last_error(one.plan, one.history.folder)
            told.append(
                f"in round {number} nothing was delivered of {facts.sends} sends"
                + (f" ({said})" if said else "")
            )
        elif lost := _for_want_of_rest(one.history.info, profile):
            told.append(f"round {number} did not come to rest, so {', '.join(lost)} was not judged")
    why = "; ".join(told)
    return (
        (Check("MET-10", "each round was worked on and came to rest", False, why),) if told else ()
    )


def last_error(plan: Plan, folder: Path) -> str:
    """What a client of a run that failed said last, in its log: of consumers first. Empty where nobody said a word.

    A line that is indented belongs to one before it, as those of a stack do.
    """
    for client in sorted(plan.clients, key=lambda client: client.kind != "consumer"):
        log = folder / f"{client.id}.log"
        if not log.is_file():
            continue
        with log.open("rb") as lines:
            lines.seek(max(0, log.stat().st_size - LOG_TAIL_BYTES))
            text = lines.read().decode(errors="replace")
        whole = [line for line in text.splitlines() if line.strip() and not line[0].isspace()]
        if whole:
            name = client.id.rpartition("-")[2]
            return f"{name}'s last word: {visible(whole[-1].strip())[:WORDS_MAX]}"
    return ""


def _for_want_of_rest(info: RunInfo, profile: Profile) -> list[str]:
    """The claimed clauses of which every premise is met but that the run came to rest."""
    return [
        clause.id
        for clause in all_clauses()
        if profile.claim(clause.id).status == "claimed"
        and [each for each in clause.premise if each.holds and not each.holds(info)] == [SETTLED]
    ]


def _word(name: str) -> str:
    """A target's name as a word of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "+.-" else "-" for letter in name)
