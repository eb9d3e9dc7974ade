"""What an installation of the core alone lacks, which extra brings it, and how.

The extras are those of pyproject.toml, as the installed distribution tells them; no list of them is kept here.
"""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires

from conformance.parts.places import checkout

DISTRIBUTION = "inorder"
EVERYTHING = "all"
"""The extra that holds the others."""

_NEEDED_BY_AN_EXTRA = re.compile(r"(?P<package>[\w.-]+).*;.*\bextra == ['\"](?P<extra>\w+)['\"]")


def extra_of(error: ImportError) -> str | None:
    """The extra that brings the module whose import failed, if one does."""
    module = (error.name or "").partition(".")[0]
    try:
        needs = requires(DISTRIBUTION) or ()
    except PackageNotFoundError:
        return None  # a source tree on PYTHONPATH
    found = (_NEEDED_BY_AN_EXTRA.match(need) for need in needs)
    # `ruamel.yaml`, which metadata may call `ruamel-yaml`, brings a part of the module `ruamel`.
    extras = {
        each["extra"] for each in found if each and re.split(r"[.-]", each["package"])[0] == module
    }
    return min(extras - {EVERYTHING}, default=None)


def install(extra: str) -> str:
    """The command that brings it: a wheel by its file, for by our name an index may have somebody else's package."""
    return "make setup" if checkout() else f'pip install "$(echo ./{DISTRIBUTION}-*.whl)[{extra}]"'


def why(error: ImportError) -> str:
    """The reason in words, with the command that mends it where we know one."""
    extra = extra_of(error)
    if extra is None:
        return str(error)
    package = (error.name or "").partition(".")[0]
    return f"{package} is not installed; the extra `{extra}` brings it: `{install(extra)}`"
