"""One protocol command, as the cores see it: a code, string headers and a body.

A request and its answer are both commands; an answer echoes the request's `opaque` and has flag bit 0 set.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

FLAG_RESPONSE = 1
FLAG_ONEWAY = 2
NO_EXT: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class Command:
    """A remoting command.

    code: request code or response code (see `codes`). opaque: correlation id, chosen by the asking side.
    ext: header fields, strings on the wire. body: raw bytes. remark: the broker's words on an error.
    """

    code: int
    ext: Mapping[str, str] = field(default_factory=lambda: NO_EXT)
    body: bytes = b""
    opaque: int = 0
    flag: int = 0
    remark: str | None = None
    language: str = "PYTHON"
    version: int = 399
    binary: bool = False  # header serialisation: False JSON (type 0), True ROCKETMQ (type 1)

    @property
    def is_response(self) -> bool:
        return bool(self.flag & FLAG_RESPONSE)

    @property
    def is_oneway(self) -> bool:
        return bool(self.flag & FLAG_ONEWAY)

    def reply(
        self,
        code: int,
        ext: Mapping[str, str] = NO_EXT,
        body: bytes = b"",
        remark: str | None = None,
    ) -> Command:
        """The answer to this request: same opaque, same serialisation, response bit set."""
        return Command(
            code=code,
            ext=ext,
            body=body,
            opaque=self.opaque,
            flag=FLAG_RESPONSE,
            remark=remark,
            binary=self.binary,
        )
