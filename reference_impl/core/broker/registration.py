"""How the broker makes itself known to its name servers.

It registers with all its topics at its start, every interval, and at once when a topic changes; a registration
that fails is tried again after a second. In good order it takes its leave.
"""

from __future__ import annotations

from collections.abc import Hashable

from reference_impl.core.broker.parts import Parts
from reference_impl.core.io import Answered, Effect, Failed, Oneway, Request, SetTimer
from reference_impl.protocol.bodies import BrokerRegistration
from reference_impl.protocol.codes import RequestCode, ResponseCode
from reference_impl.protocol.command import FLAG_ONEWAY, Command
from reference_impl.protocol.headers import RegisterBrokerHeader, UnregisterBrokerHeader

REGISTER_TIMER = "register"
RETRY_MS = 1_000


class Registration:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._sent = 0
        self._told_version = -1

    def in_turn(self, now_ms: int, out: list[Effect]) -> None:
        """At the start, and when the interval is over."""
        self.register(now_ms, out)
        if self._parts.config.name_servers:
            out.append(SetTimer(REGISTER_TIMER, self._parts.config.register_ms))

    def if_changed(self, now_ms: int, out: list[Effect]) -> None:
        if self._told_version != self._parts.topics.version:
            self.register(now_ms, out)

    def register(self, now_ms: int, out: list[Effect]) -> None:
        config, topics = self._parts.config, self._parts.topics
        self._told_version = topics.version
        if not config.name_servers:
            return
        header = RegisterBrokerHeader(config.name, config.address, config.cluster, config.broker_id)
        body = BrokerRegistration(topics.all(), now_ms, topics.version)
        command = Command(RequestCode.REGISTER_BROKER, header.to_ext(), body.encode())
        self._sent += 1
        for name_server in config.name_servers:
            token: Hashable = (REGISTER_TIMER, name_server, self._sent)
            out.append(Request(token, name_server, command, config.register_timeout_ms))

    def ended(self, result: Answered | Failed, out: list[Effect]) -> None:
        """An answer, or none, to a registration."""
        if isinstance(result, Failed) or result.command.code != ResponseCode.SUCCESS:
            out.append(SetTimer(REGISTER_TIMER, min(RETRY_MS, self._parts.config.register_ms)))

    def leave(self, out: list[Effect]) -> None:
        config = self._parts.config
        header = UnregisterBrokerHeader(
            config.name, config.address, config.cluster, config.broker_id
        )
        command = Command(RequestCode.UNREGISTER_BROKER, header.to_ext(), flag=FLAG_ONEWAY)
        out.extend(Oneway(name_server, command) for name_server in config.name_servers)
