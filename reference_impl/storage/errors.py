"""What can go wrong with a disk and with what lies on it."""

from __future__ import annotations

from specs.errors import InorderError, UsageError


class DiskFull(InorderError):
    """No room for what was to be written. Part of it may have been written."""


class DiskFailed(InorderError):
    """The disk did not do what it was told, for any other reason: exit 70."""


class StoreInUse(UsageError):
    """Another process has the store open: exit 64."""


class StoreDamaged(UsageError):
    """What lies there can't be what a crash left, or is no store at all: exit 64. Nothing on disk was changed."""
