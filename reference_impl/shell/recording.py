"""What a body hands its core's Begin, End and Note to."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Protocol

from specs.vocabulary import Kind, Outcome


class Recorder(Protocol):
    """Writes operations down. An error it raises is kept as a fault of the body (`Body.check`)."""

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> object: ...

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> object: ...

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> object: ...


class NoRecorder:
    """Forgets everything."""

    def begin(
        self, op: Hashable, kind: Kind, fields: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]
    ) -> None:
        pass

    def end(
        self,
        op: Hashable,
        outcome: Outcome,
        fields: Mapping[str, Any],
        rows: Sequence[Mapping[str, Any]],
    ) -> None:
        pass

    def note(self, kind: Kind, outcome: Outcome, fields: Mapping[str, Any]) -> None:
        pass
