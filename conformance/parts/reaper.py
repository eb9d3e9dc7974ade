"""Removes the containers of a program that died: `python -m conformance.parts.reaper`, started by `docker_engine`.

A container is the engine's child, not ours, so no kernel signal ends it with us. This process reads container
names from its standard input ("+NAME" for a new one, "-NAME" for one that was removed) and waits for the end
of that input, which comes when its parent ends, however it ends. Then it removes what is left, also what is
paused, and exits. It has a session of its own, so that a Ctrl-C at the terminal does not reach it.
"""

from __future__ import annotations

import contextlib
import sys

import docker
from docker.errors import DockerException, NotFound


def main() -> int:
    """Returns when the parent is gone and its containers with it."""
    client = docker.from_env(timeout=60)
    names: dict[str, None] = {}
    for line in sys.stdin:
        sign, name = line[0], line[1:].strip()
        if sign == "+":
            names[name] = None
        else:
            names.pop(name, None)
    for name in names:
        # The engine may be gone too, and the container with it.
        with contextlib.suppress(NotFound, DockerException):
            client.containers.get(name).remove(force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
