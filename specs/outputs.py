"""What somebody wants to have written is looked at before the work: a folder that can't be made, or written to.

And errors of a file system in the midst of it (a disk that is full) are told from those of the suite itself.
"""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from pathlib import Path

from specs.errors import UsageError

SURROUNDINGS = frozenset(
    {
        errno.EACCES,
        errno.EDQUOT,
        errno.EFBIG,
        errno.EIO,
        errno.EISDIR,
        errno.ELOOP,
        errno.EMFILE,
        errno.ENAMETOOLONG,
        errno.ENFILE,
        errno.ENODEV,
        errno.ENOSPC,
        errno.ENOTDIR,
        errno.ENXIO,
        errno.EPERM,
        errno.EROFS,
        errno.ESTALE,
        errno.ETXTBSY,
    }
)
"""What a file system says of itself, of a place or of a right: nothing that a mistake of ours brings about."""


def is_surroundings(error: BaseException) -> bool:
    """Is it an error of the file system, for whoever runs the suite to mend?"""
    return isinstance(error, OSError) and error.errno in SURROUNDINGS


def told(error: OSError) -> str:
    """One sentence about an error of a file system, with the place where it names one."""
    why = error.strerror or str(error)
    place = error.filename if error.filename2 is None else error.filename2
    if isinstance(place, bytes):
        place = os.fsdecode(place)
    return (
        f"{place} can't be read or written: {why}"
        if isinstance(place, str)
        else f"a file can't be written: {why}"
    )


def writable_folder(path: Path) -> None:
    """Can files be written to this folder, which may have to be made? Raises UsageError. Leaves nothing behind."""
    missing = []
    try:
        here = path
        while not os.path.lexists(here):
            missing.append(here)
            here = here.parent
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"\n")
    except FileExistsError as error:
        raise UsageError(f"{path} is no folder; give one that can be written to") from error
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} can't be written to: {why}; give another folder") from error
    finally:
        for folder in missing:
            try:
                folder.rmdir()
            except OSError:
                break


def writable_file(path: Path) -> None:
    """Can this file be written, its folder made before? Raises UsageError. Leaves nothing behind."""
    try:
        kind = path.stat().st_mode
    except FileNotFoundError:
        writable_folder(path.parent)
        return
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"{path} can't be written: {why}") from error
    if stat.S_ISDIR(kind):
        raise UsageError(f"{path} is a folder; give a file")
    if not os.access(path, os.W_OK):
        raise UsageError(f"{path} can't be written: {os.strerror(errno.EACCES)}")
    if stat.S_ISREG(kind):
        writable_folder(path.parent)
