"""Verdicts to report on: small, made from histories written by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from conformance.reports.view import VerdictView, view
from specs.clauses.catalogue import select
from specs.history.text import parse_history
from specs.profiles import Claim, Profile
from specs.verdicts.examine import examine
from specs.verdicts.verdict import Verdict, conclude

TWO_OWNERS = """
    0ms      alice  locks  billing/orders/b0/3   ok
    59999ms  bob    locks  billing/orders/b0/3   ok
"""
ONE_OWNER = """
    0ms   alice  locks    billing/orders/b0/3   ok
    10ms  bob    locks    billing/orders/b0/3   refused
"""
Make = Callable[..., Verdict]
LEASE = "LSE-1 LSE-2 LSE-3 LSE-4 LSE-8"
CLAUSES = select(
    f"ORD-2 ORD-3 ORD-4 ORD-12 {LEASE} RTY-1 RTY-3 RTY-5 DLQ-1 DLQ-2 DLQ-7 CMT-1 CMT-2 CMT-4 CMT-5 SND-1 SND-2".split()
)
"""Some clauses of several families, so that a report's numbers stay as they are when a clause is added."""


@pytest.fixture(scope="session")
def make_verdict() -> Make:
    """A verdict of a history in the text notation; every clause is claimed unless `claims` says otherwise."""

    def make(
        text: str, claims: dict[str, Claim] | None = None, *, exercised: bool = False
    ) -> Verdict:
        info, rows = parse_history(text)
        info = replace(
            info,
            run="run-7319",
            seed=7319,
            target="mutant:two-owners",
            parties={
                "broker": "inorder mutant two-owners",
                "client": "inorder reference",
                "producer": "inorder x",
            },
            replay="inorder replay runs/7319",
        )
        every = {clause.id: Claim("claimed", "documented") for clause in CLAUSES}
        profile = Profile("as-documented", "As documented", {**every, **(claims or {})})
        return conclude(
            examine(rows, info, CLAUSES),
            info,
            profile,
            require_exercised=exercised,
            clauses=CLAUSES,
        )

    return make


@pytest.fixture(scope="session")
def refuted(make_verdict: Make) -> VerdictView:
    """LSE-1 refuted, everything else not exercised."""
    return view(make_verdict(TWO_OWNERS), events=1_204_331)


@pytest.fixture(scope="session")
def upheld(make_verdict: Make) -> VerdictView:
    """LSE-1 upheld."""
    return view(make_verdict(ONE_OWNER))


@pytest.fixture(scope="session")
def assuming(make_verdict: Make) -> VerdictView:
    """LSE-1 refuted in a history that says nothing of what it records; most clauses are not recorded."""
    return view(make_verdict(f"config closed_world=no\n{TWO_OWNERS}"))


@pytest.fixture(scope="session")
def allowed(make_verdict: Make) -> VerdictView:
    """LSE-1 refuted, but allowed by the profile; ORD-2 not claimed."""
    return view(
        make_verdict(
            TWO_OWNERS,
            {
                "LSE-1": Claim("allowed", "measured", "this version is known for it"),
                "ORD-2": Claim("not_applicable", "documented", "the mode has no order"),
            },
        )
    )
