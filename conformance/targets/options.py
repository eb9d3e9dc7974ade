"""What follows the colon of a target's name, and the file that holds what must not be written down.

    NAME:VERSION+CLIENT:VERSION,KEY=VALUE,KEY=VALUE
    kafka-local:4.3.1+java:4.4.0,group.protocol=consumer

The version of the system comes first (or an address, for one that runs already), then who is at work on it, then
the client's settings under their own names. Each part may be left out; what then counts is the target's affair.

`--target-config FILE` names a TOML file with two tables, of text, numbers and booleans:

    [options]                       # as on the command line, which wins where both name one
    "session.timeout.ms" = 3000
    [credentials]                   # whatever nobody is to read
    "sasl.password" = "..."

The file is named by its path in the target's text (`...,config=FILE`), and so in `run.json`, reports and replay
lines; what stands in it never is: neither its options nor its credentials are part of any name.
"""

from __future__ import annotations

import difflib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specs.documents import NotReadable, from_toml, text_in
from specs.errors import UsageError
from specs.secrets import holds_secret, remember

CONFIG = "config"
"""The option that names the file."""
TABLES = ("options", "credentials")
COMMANDS = "exec"
"""The target whose argument is a command line, and no argument of this grammar."""
NEAR = 3


@dataclass(frozen=True, slots=True)
class Argument:
    """What a target was asked for. Only `text` may be written down.

    head: the version or the address. client, client_version: as behind the `+`. options: of the command line and of
    the file, by key. credentials: of the file. text: what the user wrote.
    """

    text: str
    head: str | None = None
    client: str | None = None
    client_version: str | None = None
    options: Mapping[str, str] = field(default_factory=dict, repr=False)
    credentials: Mapping[str, str] = field(default_factory=dict, repr=False)

    def named(self, target: str) -> str:
        """The target's name, by which it is found again."""
        return f"{target}:{self.text}" if self.text else target


def parse(
    target: str,
    argument: str | None,
    *,
    clients: Sequence[str],
    options: Collection[str],
    listed: bool = False,
) -> Argument:
    """Read the argument of a target. clients, options: the names that it knows; credentials go by the same ones.

    listed: the head may be several with commas between them: what stands before the first KEY=VALUE.
    Raises UsageError, with the near matches, for any other name, and for a file that can't be read.
    """
    text = argument or ""
    first, *pairs = text.split(",") if text else [""]
    while listed and pairs and "=" not in pairs[0]:
        first += f",{pairs.pop(0)}"
    head, plus, client = first.partition("+")
    client, colon, version = client.partition(":")
    if plus and client not in clients:
        raise UsageError(f"the target {target} has no client {client!r}; {near(client, clients)}")
    if colon and not version:
        raise UsageError(
            f"the target {target} was given no version of its client: write +{client}:VERSION"
        )
    given = _pairs(target, pairs)
    path = given.pop(CONFIG, None)
    _check(target, given, options, "option")
    _refuse_secrets(given, f"on the command line of the target {target}")
    tables: Mapping[str, Mapping[str, str]] = {} if path is None else read_config(Path(path))
    for table in TABLES:
        _check(f"{target} (file {path})", tables.get(table, {}), options, table.removesuffix("s"))
    _refuse_secrets(tables.get("options", {}), f"under [options] of {path}")
    return Argument(
        text=text,
        head=head or None,
        client=client or None,
        client_version=version or None,
        options={**tables.get("options", {}), **given},
        credentials=tables.get("credentials", {}),
    )


def with_config(target: str, path: Path | None) -> str:
    """The text of a target whose `--target-config` is that file. Raises UsageError for a path that can't be named."""
    if path is None:
        return target
    if "," in str(path):
        raise UsageError(f"{path} can't be named in a target: a comma stands between options")
    name, colon, argument = target.partition(":")
    if name == COMMANDS:
        raise UsageError(
            f"the target {COMMANDS} takes no file: name it in the driver's own command"
        )
    return f"{name}{colon or ':'}{argument},{CONFIG}={path}"


def read_config(path: Path) -> dict[str, dict[str, str]]:
    """The file's tables. Raises UsageError, which never quotes a value: it may be a secret."""
    text = text_in(path, name=f"the target's file {path}")
    try:
        content = from_toml(text)
    except NotReadable:
        # What is said of it may quote the line, and a traceback shows what an error came from.
        raise UsageError(f"the target's file {path} is no TOML") from None
    for name, table in content.items():
        if name not in TABLES:
            raise UsageError(f"the target's file {path} has no {name!r}; {near(name, TABLES)}")
        if not isinstance(table, dict):
            raise UsageError(f"{name} in {path} is no table; write [{name}]")
    read = {
        name: {key: _word(path, name, key, value) for key, value in table.items()}
        for name, table in content.items()
    }
    for key, value in read.get("credentials", {}).items():
        if holds_secret(key):
            remember(value)
    return read


def near(asked: str, known: Collection[str]) -> str:
    """For an error: what was probably meant, and what there is."""
    close = difflib.get_close_matches(asked, list(known), n=NEAR)
    meant = f"did you mean {' or '.join(close)}? " if close else ""
    return f"{meant}known are {', '.join(sorted(known)) or 'none'}"


def _pairs(target: str, pairs: Sequence[str]) -> dict[str, str]:
    given: dict[str, str] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UsageError(f"{pair!r} is no option of the target {target}; write KEY=VALUE")
        if key in given:
            raise UsageError(f"the target {target} was given the option {key} twice")
        given[key] = value
    return given


def _check(target: str, given: Mapping[str, str], known: Collection[str], what: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"the target {target} knows no {what} {key!r}; {near(key, known)}")


def _refuse_secrets(given: Mapping[str, str], where: str) -> None:
    """Raises UsageError, which quotes no value."""
    for key in given:
        if holds_secret(key):
            raise UsageError(
                f"{key} stands {where}, where it may be written down: put it under [credentials] into the file of "
                "--target-config"
            )


def _word(path: Path, table: str, key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise UsageError(
            f"{key} in [{table}] of {path} is neither text nor a number nor true or false"
        )
    return str(value)
