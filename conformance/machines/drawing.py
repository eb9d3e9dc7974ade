"""How a machine's choices are drawn: each run for itself, and from the seed alone.

Hypothesis' own way does two things that serve a short test and hurt a long search. It draws one value in twenty
from the constants of all local modules that happen to be imported, so that the same seed means another run after
an unrelated edit, or where the project is installed rather than checked out. And it varies each run several times
before it makes a new one: of 150 runs hardly 20 are independent, and a rare bug is missed by all of them at once.
`settings(backend=INDEPENDENT)` draws every run anew, and no constants.
"""

from __future__ import annotations

from typing import Any

from hypothesis.internal.conjecture.providers import AVAILABLE_PROVIDERS, HypothesisProvider

INDEPENDENT = "inorder-independent"
"""The name of the backend (https://hypothesis.readthedocs.io/en/latest/extensions.html#alternative-backends)."""


class IndependentProvider(HypothesisProvider):
    """Draws like Hypothesis, but never one of the constants that it has found in our modules."""

    def _maybe_draw_constant(self, *args: Any, **kwargs: Any) -> None:
        return None


AVAILABLE_PROVIDERS[INDEPENDENT] = IndependentProvider
