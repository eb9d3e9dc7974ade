"""Runs one command that dies with whoever started it: `python leash.py PARENT_PID COMMAND...`.

A fresh, single-threaded interpreter asks the kernel for SIGKILL at its parent's death (PR_SET_PDEATHSIG, kept
across exec; prctl(2)) and then becomes the command. A `preexec_fn` would do the same between fork and exec of
a threaded program, where Python code may deadlock; so this is a program of its own. It imports nothing of
ours.

The parent may have died before the kernel was asked, so the parent's pid is compared afterwards.
The signal follows the parent *thread* that forked: `processes.py` forks from one thread that never ends.
Only Linux has this; elsewhere the command simply runs.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

PR_SET_PDEATHSIG = 1


def die_with(parent: int) -> None:
    """From now on this process dies with the one that started it; at once, if that is gone already."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)


def main(argv: list[str]) -> None:
    """Never returns: becomes the command, or exits with 127 if it can't be run, 1 if the parent is gone."""
    parent, command = int(argv[1]), argv[2:]
    die_with(parent)
    # The interpreter ignores these two; a command that was not written in Python does not expect that.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)
    except OSError as error:
        sys.stderr.write(f"{command[0]}: {error.strerror}\n")
        sys.stderr.flush()
        os._exit(127)


if __name__ == "__main__":
    main(sys.argv)
