"""A disk of one process alone, which can lose its power: what was written and not synced is gone then.

    disk = OwnDisk(folder, store)             # `store` is where the process finds it
    process = Process("broker", disk.command(["java", ...]), log=log)
    disk.keep(process)                        # all that is there now survives
    lost = disk.cut(process)                  # the process is dead; the next one finds what the disk was told to keep

An ext4 file system lies in an image file behind a loop device. Whatever a program has written and not synced is in the
machine's memory and not in the image. At the cut the process is stopped, the image copied, the process killed; the next
one mounts the copy and goes through the journal, as after any power cut.

Rules:
- each process mounts the disk in a mount namespace of its own: when it ends, however it ends, the kernel unmounts it,
  and the loop device lets the image go by itself. Nobody has to clean up after a SIGKILL;
- the folder of the images is deleted when we end, by a shell that waits for the end of a pipe from us;
- the proof: after the stop a file is written and not synced. A disk on which it is found after all was not cut.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import psutil

from conformance.parts.processes import Process, wait_until
from specs.errors import TargetMisbehaved, Unavailable
from specs.scratch import Scratch

MEGABYTES = 512
"""Of a sparse file: an Apache broker of our configuration needs a fifth of it."""
WITNESS_BYTES = 4096
_WITNESS = ".not-synced"
_COMMANDS = ("unshare", "mount", "losetup", "mkfs.ext4", "cp", "sync")
_STOPPED_S = 10.0
_MOUNT = 'mount -t ext4 -o loop,noatime -- "$1" "$2"'
_RUN = f'{_MOUNT} && shift 2 && exec "$@"'
_LOOK = f'{_MOUNT} && {{ wc -c < "$2/{_WITNESS}" || echo 0; }} 2>/dev/null; rm -f -- "$2/{_WITNESS}"; sync -f -- "$2"'
_SWEEP = 'cat > /dev/null; rm -rf -- "$1"'


class OwnDisk:
    """at: where the process finds it; an empty folder for everybody else."""

    def __init__(self, folder: Path, at: Path) -> None:
        if (why := why_not()) is not None:
            raise Unavailable(f"a broker's power can't be cut here: {why}")
        self._folder, self.at = folder.resolve(), at.resolve()
        self._cuts = 0
        for path in (self._folder, self.at, self._folder / "look"):
            path.mkdir(parents=True, exist_ok=True)
        self._sweeper = subprocess.Popen(
            ["sh", "-c", _SWEEP, "sh", str(self._folder)],
            stdin=subprocess.PIPE,
            start_new_session=True,
        )
        with self._image.open("wb") as image:
            image.truncate(MEGABYTES * 1024 * 1024)
        _run("mkfs.ext4", "-q", "-F", self._image)

    @property
    def _image(self) -> Path:
        return self._folder / f"after-{self._cuts}-cuts.img"

    def command(self, argv: Sequence[str | Path]) -> list[str | Path]:
        """The same command on this disk."""
        return [*_ALONE, _RUN, "sh", self._image, self.at, *argv]

    def keep(self, process: Process) -> None:
        """What the process has written up to now is on the disk."""
        _run("sync", "-f", self._seen_by(process))

    def cut(self, process: Process, *, synced: bool = False) -> int:
        """The power is gone, and the process with it: how many bytes of the unsynced witness are gone.

        synced: everything is on the disk first, the witness too, so that nothing is lost.
        """
        process.pause()
        stopped = psutil.Process(process.pid)
        if not wait_until(
            lambda: stopped.status() == psutil.STATUS_STOPPED, deadline_s=_STOPPED_S, every_s=0.005
        ):
            raise TargetMisbehaved(f"{process.name} did not stop within {_STOPPED_S:g} s")
        (self._seen_by(process) / _WITNESS).write_bytes(b"\xff" * WITNESS_BYTES)
        if synced:
            self.keep(process)
        before = self._image
        self._cuts += 1
        _run("cp", "--sparse=always", before, self._image)
        process.kill()
        before.unlink()
        found = _run(*_ALONE, _LOOK, "sh", self._image, self._folder / "look")
        return WITNESS_BYTES - int(found.split()[0])

    def _seen_by(self, process: Process) -> Path:
        return Path(f"/proc/{process.pid}/root{self.at}")

    def close(self) -> None:
        """The images are deleted. To be called when the processes are dead; a second call does nothing."""
        with contextlib.suppress(BrokenPipeError):
            assert self._sweeper.stdin is not None
            self._sweeper.stdin.close()
        self._sweeper.wait()


_ALONE: tuple[str, ...] = ("unshare", "--mount", "--propagation", "private", "sh", "-c")


@cache
def why_not() -> str | None:
    """Why no disk of this kind can be had on this machine; None where it can. Tried once, with a small one."""
    if sys.platform != "linux":
        return "it takes Linux, with its loop devices"
    if os.geteuid() != 0:
        return "only root may mount a disk image"
    if missing := [name for name in _COMMANDS if shutil.which(name) is None]:
        return f"there is no command {missing[0]}"
    if not Path("/dev/loop-control").exists():
        return "there is no /dev/loop-control, so no loop devices"
    with Scratch("disk") as folder:
        image, at = Path(folder) / "image", Path(folder) / "at"
        at.mkdir()
        with image.open("wb") as empty:
            empty.truncate(1024 * 1024)
        try:
            _run("mkfs.ext4", "-q", "-F", image)
            _run(*_ALONE, _RUN, "sh", image, at, "true")
        except TargetMisbehaved as error:
            return str(error)
    return None


def _run(*argv: str | Path) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise TargetMisbehaved(
            f"{argv[0]} failed: {' '.join(done.stderr.split()) or done.returncode}"
        )
    return done.stdout
