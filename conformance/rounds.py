"""`conform` in real time: rounds of drawn plans on a target, each run and judged; one verdict over all of them.

The first round has one message per call and no manual commits, the others what is drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import version
from pathlib import Path
from random import Random
from typing import Any

from conformance import again
from conformance.drivers.plans import CHANGES, ENDS, drawn_plan
from conformance.run import fresh_names, run
from conformance.targets.base import Target
from conformance.wire.runner import replace_run_folder
from specs.history.store import History, write_history
from specs.plan.ability import Ability
from specs.plan.plan import Plan
from specs.profiles import Profile
from specs.verdicts.examine import examine
from specs.verdicts.reach import out_of_reach
from specs.verdicts.tally import Examination
from specs.verdicts.verdict import Verdict, conclude

ROUNDS = 2
FLOOR = 5
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
    rounds: int,
    out: Path,
    floor: int,
    changes: int = CHANGES,
    ours_too: bool = False,
    say: SAY = lambda _: None,
) -> tuple[Verdict, list[Round]]:
    """Judge a target by `rounds` drawn plans. The run's folder is `out`, replaced when it is there.

    In `out` lies the history of the first round that refutes a claimed clause, else of the last; every round's own is
    in `rounds/`. changes: how many times a consumer comes or goes in a round. ours_too: judge our own client on
    a foreign broker as well. Raises as `run` does.
    """
    replace_run_folder(out)
    draw = Random(seed)
    total = Examination()
    done: list[Round] = []
    try:
        for number in range(1, rounds + 1):
            folder = out / "rounds" / f"{number}"
            folder.mkdir(parents=True)
            say(f"round {number} of {rounds} on {target.name}")
            names = fresh_names(seed, number)
            plan = drawn_plan(
                target.config,
                names,
                seed,
                draw,
                plain=number == 1,
                changes=changes,
                ends=ENDS if Ability.CRASH_CLIENT in target.abilities else ("stop",),
                poison=Ability.GIVE_UP in target.abilities,
            )
            info = {"profile": profile.name, "run": f"{_word(target.name)}-{seed}-{number}"}
            history = run(plan, target, folder, info=info, prefix=names, say=say)
            judged = examine(history.rows(), history.info, why_cut=history.why_cut)
            total.merge(judged)
            done.append(Round(plan, history, judged))
    finally:
        target.release()
    shown = next((one for one in done if refutes(one.examination, profile)), done[-1])
    told = replace(shown.history.info, replay=again.command("replay", out))
    write_history(out, told, list(shown.history.rows()), why_cut=shown.history.why_cut)
    verdict = conclude(
        total,
        told,
        profile,
        floor=floor,
        require_exercised=False,
        out_of_reach=out_of_reach([one.plan for one in done], floor=floor),
        ours_too=ours_too,
        tool={"engine": "python", "inorder": version("inorder")},
    )
    return verdict, done


def _word(name: str) -> str:
    """A target's name as a word of a file's name."""
    return "".join(letter if letter.isalnum() or letter in "+.-" else "-" for letter in name)
