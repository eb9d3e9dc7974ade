"""One server's HTTP interface: the package's client with its traps removed, and what it lacks by `requests`.

The package (toxiproxy-python 0.1.1) keeps the server's address in a class attribute, shared by all; has no
timeouts; lets server errors through as odd `KeyError`s or not at all; and can neither update a toxic nor
change an upstream. So here: the address is set before each of its calls, under a lock; a server that does not
answer is noticed before by a request with a timeout; its errors become ours; and callers read back every
change.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import requests
from toxiproxy import Toxiproxy
from toxiproxy.exceptions import InvalidToxic, NotFound, ProxyExists

from specs.errors import TargetMisbehaved, UsageError

ANSWER_DEADLINE_S = 5.0

_one_at_a_time = threading.RLock()


def loopback_without_proxy() -> None:
    """Keeps requests to 127.0.0.1 away from a web proxy that the environment may name."""
    for name in ("NO_PROXY", "no_proxy"):
        hosts = [host for host in os.environ.get(name, "").split(",") if host]
        if "127.0.0.1" not in hosts:
            os.environ[name] = ",".join([*hosts, "127.0.0.1"])


class Api:
    """The server at 127.0.0.1:`port`."""

    def __init__(self, port: int) -> None:
        self.port = port
        self._base = f"http://127.0.0.1:{port}"

    def request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> Any:
        """One request with a deadline; the decoded answer, None if it has no content.

        Raises TargetMisbehaved if nothing answers in time or the answer is an error.
        """
        try:
            answer = requests.request(
                method, self._base + path, json=body, timeout=ANSWER_DEADLINE_S
            )
        except requests.RequestException as error:
            raise TargetMisbehaved(
                f"The toxiproxy server at {self._base} does not answer: {error}"
            ) from error
        if answer.status_code >= 400:
            raise TargetMisbehaved(
                f"toxiproxy refused {method} {path}: {answer.status_code} {answer.text.strip()}"
            )
        return answer.json() if answer.content else None

    def version(self) -> str:
        """The server's version, for example "2.12.0"."""
        return str(self.request("GET", "/version")["version"])

    @contextmanager
    def package(self, what: str) -> Iterator[Toxiproxy]:
        """The package's client, aimed at this server. what: what is being tried, for the error message."""
        with _one_at_a_time:
            self.version()
            client = Toxiproxy()
            client.update_api_consumer("127.0.0.1", self.port)
            try:
                yield client
            except ProxyExists as error:
                raise UsageError(f"{what}: there is one of that name already.") from error
            except NotFound as error:
                raise UsageError(f"{what}: there is none of that name.") from error
            except InvalidToxic as error:
                raise UsageError(
                    f"{what}: toxiproxy does not take these values ({error})."
                ) from error
            except KeyError as error:
                # The package looks for the proxy's description in an answer that is an error, such as a busy
                # port.
                raise TargetMisbehaved(
                    f"{what}: the server answered with an error; is the port busy?"
                ) from error
            except requests.RequestException as error:
                raise TargetMisbehaved(
                    f"{what}: the toxiproxy server does not answer: {error}"
                ) from error
