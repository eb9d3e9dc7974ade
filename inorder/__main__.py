"""`inorder` and `python -m inorder`: look for shadows, then hand over to the command line."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from inorder.shadows import EXIT_SHADOWED, find_shadows, sentence

EXIT_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line. Returns the exit code: 0 upheld, 1 refuted, 2 inconclusive, 64 usage, 70 suite.

    The command line answers a Ctrl-C itself; one that comes while it is being imported is answered here.
    """
    try:
        return _run(arguments)
    except KeyboardInterrupt:
        print("inorder: stopped by Ctrl-C", file=sys.stderr)  # noqa: T201 - the import was stopped
        return EXIT_INTERRUPTED


def _run(arguments: Sequence[str] | None) -> int:
    shadows = find_shadows()
    if shadows:
        print(sentence(shadows), file=sys.stderr)  # noqa: T201 - nothing of ours can be imported yet
        return EXIT_SHADOWED
    try:
        cli = importlib.import_module("conformance.cli.main")
    except ImportError as error:
        print(f"inorder can't start: {error}; install the distribution again", file=sys.stderr)  # noqa: T201
        return EXIT_SHADOWED
    code: int = cli.main(list(sys.argv[1:] if arguments is None else arguments))
    return code


if __name__ == "__main__":
    sys.exit(main())
