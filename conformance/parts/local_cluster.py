"""Several nodes of one released server on this machine, which replicate what they are told; one of them may be killed.

    with LocalCluster([KafkaServer("4.3.1", workdir=folder / f"{n}") for n in (1, 2, 3)]) as cluster:
        cluster.kill(2)
        cluster.start_again()

A node knows the others by `peers`, whose ports are reserved before any of them is set up. All are started before any
is waited for: none answers until most of them are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from conformance.parts.local_server import LocalServer


class LocalCluster:
    """A context manager. nodes: made and not yet started, by their numbers from 1."""

    def __init__(self, nodes: Sequence[LocalServer]) -> None:
        self.nodes = tuple(nodes)
        self._dead: set[int] = set()
        for node in self.nodes:
            node.peers = self.nodes

    @property
    def address(self) -> str:
        """Where clients begin: all nodes, with commas between."""
        return ",".join(node.address for node in self.nodes)

    def start(self) -> str:
        """Set all up, start them, and wait until they answer; their addresses. Raises as `LocalServer.start` does."""
        self.nodes[0].fetch()
        try:
            for node in self.nodes:
                node.reserve()
            self._each(lambda node: node.set_up())
            for node in self.nodes:
                node.launch()
            for node in self.nodes:
                node.wait_until_ready()
        except BaseException:
            self.close()
            raise
        return self.address

    def kill(self, number: int) -> int:
        """SIGKILL to one node; its data stay. How many live on."""
        self.nodes[number - 1].kill()
        self._dead.add(number)
        return len(self.nodes) - len(self._dead)

    def start_again(self) -> None:
        """Whoever was killed, on its data and ports."""
        dead, self._dead = sorted(self._dead), set()
        for number in dead:
            self.nodes[number - 1].launch()
        for number in dead:
            self.nodes[number - 1].wait_until_ready()

    def close(self) -> None:
        """Kill all, and delete their data. A second call does nothing."""
        for node in self.nodes:
            node.close()

    def _each(self, do: Callable[[LocalServer], object]) -> None:
        with ThreadPoolExecutor(len(self.nodes)) as pool:
            list(pool.map(do, self.nodes))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()
