"""One proxied address, and what is wrong with its network just now.

Every change is read back from the server, and TargetMisbehaved is raised if it did not take effect: the
client package reports some failures as success (enabling a proxy whose port is busy, for one).

What toxiproxy does that may surprise:
- `disable` ends living connections with FIN, not RST, and new ones are refused;
- if the upstream refuses, a client connects and gets EOF at once;
- there is no half-close: after a client's shutdown(SHUT_WR) the answer is lost.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from chaos.toxiproxy.api import Api
from chaos.toxiproxy.toxics import Toxic, described, from_server
from specs.errors import TargetMisbehaved, UsageError


class Proxy:
    """A proxy on a server; made by `ToxiproxyServer.create`. listen, upstream: "HOST:PORT"."""

    def __init__(self, api: Api, name: str, listen: str, upstream: str) -> None:
        self._api = api
        self.name = name
        self.listen = listen
        self.upstream = upstream

    def __repr__(self) -> str:
        return f"Proxy({self.name!r}, {self.listen} → {self.upstream})"

    @property
    def enabled(self) -> bool:
        """Whether it listens, as the server says now."""
        return bool(self._state()["enabled"])

    def toxics(self) -> dict[str, Toxic]:
        """The toxics at work, by name, as the server says now."""
        return {
            str(toxic["name"]): from_server(
                toxic["type"], toxic["stream"], toxic["toxicity"], toxic["attributes"]
            )
            for toxic in self._state()["toxics"]
        }

    def add(self, toxic: Toxic, name: str | None = None) -> str:
        """Puts a toxic to work; its name (default: KIND_STREAM). Raises UsageError if the name is taken."""
        called = name or f"{toxic.KIND}_{toxic.stream}"
        with self._api.package(f"Adding toxic {called!r} to proxy {self.name!r}") as client:
            client.get_proxy(self.name).add_toxic(
                type=toxic.KIND,
                stream=str(toxic.stream),
                name=called,
                toxicity=toxic.toxicity,
                attributes=toxic.attributes(),
            )
        self._expect_toxic(called, toxic)
        return called

    def update(self, name: str, toxic: Toxic) -> None:
        """Changes the values of a toxic that is at work, for new data on living connections too.

        Raises UsageError if there is none of that name, or it is of another kind or direction.
        """
        present = self.toxics().get(name)
        if present is None:
            raise UsageError(f"Proxy {self.name!r} has no toxic {name!r} to update.")
        if (present.KIND, present.stream) != (toxic.KIND, toxic.stream):
            raise UsageError(
                f"Toxic {name!r} is {described(present)}; it can't become {described(toxic)}."
            )
        body = {"attributes": toxic.attributes(), "toxicity": toxic.toxicity}
        self._api.request("POST", f"/proxies/{self.name}/toxics/{name}", body)
        self._expect_toxic(name, toxic)

    def remove(self, name: str) -> None:
        """Takes a toxic away. Raises UsageError if there is none of that name."""
        with self._api.package(f"Removing toxic {name!r} from proxy {self.name!r}") as client:
            client.get_proxy(self.name).destroy_toxic(name)
        self._expect_toxic(name, None)

    @contextmanager
    def having(self, toxic: Toxic) -> Iterator[str]:
        """Puts a toxic to work inside the `with`; gives its name."""
        name = self.add(toxic)
        try:
            yield name
        finally:
            self.remove(name)

    def disable(self) -> None:
        """Ends all connections and stops listening."""
        with self._api.package(f"Disabling proxy {self.name!r}") as client:
            client.get_proxy(self.name).disable()
        self._expect_enabled(False)

    def enable(self) -> None:
        """Listens again, on the same port. Raises TargetMisbehaved if somebody took the port meanwhile."""
        with self._api.package(f"Enabling proxy {self.name!r}") as client:
            client.get_proxy(self.name).enable()
        self._expect_enabled(True)

    @contextmanager
    def down(self) -> Iterator[None]:
        """Disabled inside the `with`."""
        self.disable()
        try:
            yield
        finally:
            self.enable()

    def redirect(self, upstream: str) -> None:
        """New connections go to another "HOST:PORT"; living ones end."""
        self._api.request(
            "POST", f"/proxies/{self.name}", {"upstream": upstream, "listen": self.listen}
        )
        state = self._state()
        if state["upstream"] != upstream or not state["enabled"]:
            raise TargetMisbehaved(
                f"Proxy {self.name!r} was redirected to {upstream} but is now {state}."
            )
        self.upstream = upstream

    def destroy(self) -> None:
        """Ends the proxy and its connections."""
        with self._api.package(f"Destroying proxy {self.name!r}") as client:
            client.get_proxy(self.name).destroy()
        if self.name in self._api.request("GET", "/proxies"):
            raise TargetMisbehaved(f"Proxy {self.name!r} was destroyed and is still there.")

    def _state(self) -> dict[str, Any]:
        state: dict[str, Any] = self._api.request("GET", f"/proxies/{self.name}")
        return state

    def _expect_toxic(self, name: str, expected: Toxic | None) -> None:
        found = self.toxics().get(name)
        if found != expected:
            wanted = "gone" if expected is None else described(expected)
            have = "there is none" if found is None else f"it is {described(found)}"
            raise TargetMisbehaved(
                f"Toxic {name!r} of proxy {self.name!r} should be {wanted}, but {have}."
            )

    def _expect_enabled(self, expected: bool) -> None:
        if self.enabled is not expected:
            wanted = "listen again" if expected else "stop listening"
            raise TargetMisbehaved(
                f"Proxy {self.name!r} ({self.listen}) did not {wanted}; is its port busy?"
            )
