"""The command line as a user starts it, as the tests of `conformance.cli` have it."""

from tests.conformance.cli.conftest import profile, refuted_run, run, start

__all__ = ["profile", "refuted_run", "run", "start"]
