"""The toxiproxy server: where its binary lies, and how it is built (`conformance.parts.golang`).

`@latest` is years old (newer releases are not in the module's version list), so the version is named.

    python -m conformance.parts.toxiproxy_binary
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from conformance.parts import golang
from conformance.parts.places import tools_dir
from specs.errors import InorderError

VERSION = "2.12.0"
MODULE = "github.com/Shopify/toxiproxy/v2"
PROGRAM = golang.Program(
    product=f"toxiproxy {VERSION}",
    package=f"{MODULE}/cmd/server@v{VERSION}",
    made="server",
    flags=f"-X {MODULE}.Version={VERSION}",
)


def path() -> Path:
    """Where the binary lies, whether it is there or not. `INORDER_TOXIPROXY` names another one."""
    named = os.environ.get("INORDER_TOXIPROXY")
    return Path(named) if named else tools_dir() / "bin" / f"toxiproxy-server-{VERSION}"


def present() -> bool:
    """Whether the binary is there."""
    return os.access(path(), os.X_OK)


def ensure() -> Path:
    """The binary, built now if it is not there. Raises Unavailable if it can't be built."""
    if not present():
        golang.build(PROGRAM, path())
    return path()


def main() -> int:
    """Builds the server if it is not there; an exit code."""
    try:
        binary = ensure()
    except InorderError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    sys.stdout.write(f"toxiproxy server {VERSION}: {binary}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
