"""How a machine's choices are drawn: each run for itself, and from the seed alone.

Hypothesis' own way does two things that serve a short test and hurt a long search. It draws one value in twenty
from the constants of all local modules that happen to be imported, so that the same seed means another run after
an unrelated edit, or where the project is installed rather than checked out. And it varies each run several times
before it makes a new one: of 150 runs hardly 20 are independent, and a rare bug is missed by all of them at once.
`settings(backend=INDEPENDENT)` draws every run anew, and no constants.
"""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, settings
from hypothesis import seed as hypothesis_seed
from hypothesis.configuration import set_hypothesis_home_dir
from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider
from hypothesis.stateful import RuleBasedStateMachine, run_state_machine_as_test

from conformance.parts.processes import ctrl_c_is_heard
from specs.scratch import Scratch

INDEPENDENT = "inorder-independent"
"""The name of the backend (https://hypothesis.readthedocs.io/en/latest/extensions.html#alternative-backends)."""


class IndependentProvider(HypothesisProvider):
    """Draws like Hypothesis, but never one of the constants that it has found in our modules."""

    def _maybe_draw_constant(self, *args: Any, **kwargs: Any) -> None:
        return None


AVAILABLE_PROVIDERS[INDEPENDENT] = IndependentProvider


def drive(machine: type[RuleBasedStateMachine], seed: int, examples: int, steps: int) -> None:
    """Up to `examples` runs of the machine, of up to `steps` rules each, all from the seed.

    Whatever a run raises ends the search and comes out of here. Nothing is left in the user's folder.
    """
    how = settings(
        backend=INDEPENDENT,
        max_examples=examples,
        stateful_step_count=steps,
        database=None,
        deadline=None,
        phases=(Phase.generate,),
        report_multiple_bugs=False,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        print_blob=False,
    )
    with Scratch("hypothesis") as home:
        set_hypothesis_home_dir(home)
        try:
            with (
                ctrl_c_is_heard()
            ):  # Hypothesis has a callback of `gc`, in which an interrupt would be ignored
                run_state_machine_as_test(hypothesis_seed(seed)(machine), settings=how)
        finally:
            set_hypothesis_home_dir(None)
