"""The kinds of arguments that an action of a plan takes."""

from __future__ import annotations

from collections.abc import Mapping

STATE = "state"  # an argument that is one of `specs.plan.plan.STATES`
NODE = "node"  # an argument that names a client, a broker or the name server

Arguments = Mapping[str, tuple[str, bool]]
"""Of a verb: by the argument's name its kind, and is it required."""
