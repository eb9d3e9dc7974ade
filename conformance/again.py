"""How a run is done again: the command that its verdict ends with, as a shell takes it."""

from __future__ import annotations

import shlex
from collections.abc import Mapping


def command(*words: object, variables: Mapping[str, str] | None = None) -> str:
    """`inorder WORD...`: a path with a blank in it, or a profile of two, stays one word.

    variables: of the environment, where the words alone are not enough.
    """
    told = [f"{name}={shlex.quote(value)}" for name, value in (variables or {}).items()]
    return " ".join([*told, shlex.join(["inorder", *(str(word) for word in words)])])
