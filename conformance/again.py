"""How a run is done again: the command that its verdict ends with, as a shell takes it."""

from __future__ import annotations

import shlex


def command(*words: object) -> str:
    """`inorder WORD...`: a path with a blank in it, or a profile of two, stays one word."""
    return shlex.join(["inorder", *(str(word) for word in words)])
