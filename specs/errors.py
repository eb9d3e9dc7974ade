"""Errors, each named for whose fault it is, each with the exit code that it means.

A broken promise is data (a verdict), never an exception. An exception means that the suite, its user or its
input is at fault, and its message is one sentence that says how to mend it.
"""

from __future__ import annotations

EXIT_UPHELD = 0
EXIT_REFUTED = 1
EXIT_INCONCLUSIVE = 2
EXIT_USAGE = 64
EXIT_UNAVAILABLE = 69
EXIT_SUITE = 70


class InorderError(Exception):
    """Base of all errors that the command line turns into one sentence and an exit code."""

    exit_code = EXIT_SUITE


class UsageError(InorderError):
    """The user asked for something that does not exist or can't be read: exit 64."""

    exit_code = EXIT_USAGE


class SpecError(InorderError):
    """The specification was used wrongly (an unknown clause, a contradictory profile): exit 64."""

    exit_code = EXIT_USAGE


class HistoryError(UsageError):
    """A folder that is no history, a torn file, an unknown version: exit 64."""


class Unavailable(UsageError):
    """A server that nobody runs, or a part that this machine or installation lacks: exit 69."""

    exit_code = EXIT_UNAVAILABLE


class TargetMisbehaved(InorderError):
    """A real part did what it must not, so nothing can be said: exit 70."""


class DriverBug(TargetMisbehaved):
    """A driver wrote what is no line of the driver protocol, or what can't have happened: exit 64."""

    exit_code = EXIT_USAGE


class PartFailed(TargetMisbehaved):
    """A part that a run needs did not become ready, died or went away; what was recorded until then is judged: 69."""

    exit_code = EXIT_UNAVAILABLE


class DriverFailed(PartFailed):
    """A driver died, was silent beyond a deadline, or refused what it was asked: exit 69."""
