"""Make a run on real parts smaller: its plan with less in it, for as long as the same clause comes about as often.

The same search as in virtual time (`conformance.shrink`), but one run decides nothing: each candidate is tried until a
sequential test is sure enough (`conformance.sequential`). First the run itself is done again, which says how often it
comes; what never comes again can't be made smaller.

Whatever became smaller is kept at once, as a run of its own, and so is every try: ended at any moment, the smallest so
far is there, and the same again goes on.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from conformance import again
from conformance.confirm import Failure, failure_of
from conformance.reports import rate
from conformance.reports.saving import save
from conformance.run import judge, run_again
from conformance.sequential import SequentialTest, Tries
from conformance.shrink import shrink
from conformance.shrink_run import BUDGET, PlanSize, Shrunk
from conformance.stopping import Stop
from conformance.targets.base import Target
from conformance.wire.runner import replace_run_folder
from specs.clauses.catalogue import get
from specs.errors import EXIT_INCONCLUSIVE, InorderError, Unavailable, UsageError
from specs.fingerprint import code_digest
from specs.history.store import open_history
from specs.plan.plan import Plan
from specs.profiles import load as load_profile
from specs.verdicts.verdict import ClauseVerdict, Verdict

TIMES = 5
"""So often the run itself is done again, for its rate."""
MINUTES = 10.0
"""So long, if nobody says."""
MEMORY = ".tries.json"
CODE = ("specs", "reference_impl", "conformance", "chaos")
SAY = Callable[[str], Any]


class NeverAgain(InorderError):
    """The failure of a run did not come again: exit 2."""

    exit_code = EXIT_INCONCLUSIVE


@dataclass(slots=True)
class _Trying:
    """failure: what is made smaller. seen: what the last try that broke the clause came to."""

    failure: Failure
    clause: str
    target: Target
    out: Path
    say: SAY
    seen: Verdict = field(init=False)

    @property
    def scratch(self) -> Path:
        return self.out.with_name(f".{self.out.name}-try")

    def once(self, plan: Plan, number: int) -> bool:
        """Do the plan; what breaks the clause stays until the next try. A plan that can't be done breaks nothing."""
        self.say(f"try {number}: {len(plan.steps)} steps, {len(plan.actions)} actions")
        shutil.rmtree(self.scratch, ignore_errors=True)
        self.scratch.mkdir(parents=True)
        info = replace(self.failure.info, plan=plan.to_json())
        try:
            history = run_again(info, self.target, self.scratch, self.say)
        except Unavailable:
            raise
        except InorderError as error:
            self.say(f"try {number} failed: {error}")
            return False
        finally:
            self.target.release()
        verdict = judge(history, load_profile(info.profile or self.target.profile))
        broken = {each.id for each in verdict.of(ClauseVerdict.REFUTED)}
        if self.clause not in broken:
            return False
        told = replace(verdict.info, replay=again.command("replay", self.out))
        self.seen = replace(verdict, info=told)
        shutil.rmtree(self._red, ignore_errors=True)
        self.scratch.rename(self._red)
        return True

    @property
    def _red(self) -> Path:
        return self.out.with_name(f".{self.out.name}-red")

    def keep(self) -> None:
        """The last try that broke the clause is the smallest so far."""
        if self._red.is_dir():  # else it was kept before
            shutil.rmtree(self.out, ignore_errors=True)
            self._red.rename(self.out)
            save(self.seen, self.out)

    def tidy(self) -> None:
        """Only the smallest stays."""
        for folder in (self.scratch, self._red):
            shutil.rmtree(folder, ignore_errors=True)


def shrink_real(
    run: Path, out: Path, target: Target, stop: Stop, say: SAY, *, clause_id: str | None = None
) -> Shrunk | None:
    """Shrink the plan of a run on real parts until `stop` says that the time is over.

    out: gets the smallest run, and beside it stands a file of all tries. None where nothing smaller was found. Raises
    an error of exit code 2 where the run's failure does not come again, and UsageError for a run that refutes nothing.
    """
    failure = failure_of(run, clause_id)
    clause = failure.clauses[0]
    memory = out.with_name(out.name + MEMORY)
    trying = _Trying(failure, clause, target, out, say)
    tries = Tries(
        [trying.once],
        lambda plan: json.dumps(plan.to_json(), sort_keys=True),
        is_over=lambda: stop.why is not None,
        memory=memory,
        about=f"{run.resolve()}, {clause}, {code_digest(*CODE)}",
    )
    if not tries.number:
        replace_run_folder(out)
        out.rmdir()  # there is nothing smaller yet
    best = failure.plan

    def still_broken(plan: Plan) -> bool:
        nonlocal best
        if not tries.show(plan, test):
            return False
        best = plan
        trying.keep()
        if not (out / "run.json").is_file():
            raise UsageError(f"{out} is gone, but not the tries that led to it: delete {memory}")
        rate.write(out, tries.rate(plan, clause, 0))
        return True

    try:
        found = tries.rate(failure.plan, clause, TIMES)
        if not found.broken:
            raise NeverAgain(
                f"{clause} of {run} came again in {found}: nothing to make smaller by; `inorder confirm {run}` goes on"
            )
        test = SequentialTest.like(found)
        say(f"{clause} comes in {found}: a plan is kept that shows it about as often")
        shrink(failure.plan, still_broken, BUDGET)
    finally:
        trying.tidy()
    if best == failure.plan:
        return None
    return _told(run, out, failure, target, best, tries.number)


def _told(run: Path, out: Path, failure: Failure, target: Target, best: Plan, tried: int) -> Shrunk:
    before, after = open_history(run), open_history(out)
    rows = list(after.rows())
    found = judge(after, load_profile(failure.info.profile or target.profile))
    clause = get(failure.clauses[0])
    told = next(each.explanation for each in found.clauses if each.id == clause.id)
    return Shrunk(
        run,
        out,
        clause,
        PlanSize.of(failure.plan, sum(1 for _ in before.rows())),
        PlanSize.of(best, len(rows)),
        tried,
        told,
    )
