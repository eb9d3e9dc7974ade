"""Reading what users write: addresses, topics, bodies. UsageError, with the remedy, for what can't be meant."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from reference_impl.core.broker.topics import is_valid_name
from reference_impl.protocol import message as wire
from reference_impl.protocol.errors import ProtocolError
from reference_impl.shell.errors import split_address
from specs.errors import UsageError

USERS_OWN = frozenset({wire.PROPERTY_BUYER_ID, wire.PROPERTY_KEY_SEQ})
RESERVED = (
    frozenset(value for name, value in vars(wire).items() if name.startswith("PROPERTY_"))
    - USERS_OWN
)
"""Names of properties that mean something to the protocol."""
_ROOM_BYTES = 1_024
"""What the protocol may add to a message's properties on its way: ids, and where it came from."""


def name_server_list(name_servers: str | Sequence[str]) -> tuple[str, ...]:
    """`host:port`, several with `;` between them or in a sequence → each of them."""
    words = name_servers.split(";") if isinstance(name_servers, str) else name_servers
    addresses = tuple(dict.fromkeys(word.strip() for word in words if word.strip()))
    if not addresses:
        raise UsageError("Name at least one name server, as in 127.0.0.1:9876.")
    for address in addresses:
        split_address(address)
    return addresses


def topic_name(topic: str) -> str:
    if not is_valid_name(topic):
        raise UsageError(
            f"{topic!r} is no name of a topic: 1 to 127 letters, digits, or one of _ - % | are."
        )
    return topic


def group_name(group: str) -> str:
    if not is_valid_name(group):
        raise UsageError(
            f"{group!r} is no name of a group: 1 to 127 letters, digits, or one of _ - % | are."
        )
    return group


def subscription(topics: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    """A topic, several, or topics with the tags that are wanted (`red || blue`, `*` for all) → topic: tags."""
    if isinstance(topics, str):
        topics = [topics]
    wanted = dict(topics) if isinstance(topics, Mapping) else dict.fromkeys(topics, "*")
    if not wanted:
        raise UsageError("A consumer needs at least one topic.")
    return {topic_name(topic): tags for topic, tags in wanted.items()}


def as_bytes(body: bytes | str) -> bytes:
    if isinstance(body, str):
        try:
            return body.encode()
        except UnicodeEncodeError as error:
            raise UsageError("The body holds half a surrogate pair, which has no UTF-8.") from error
    if isinstance(body, bytes | bytearray | memoryview):
        return bytes(body)
    raise UsageError(f"A body is bytes or text, not {type(body).__name__}: encode it first.")


def check_properties(given: Mapping[str, str], own: Mapping[str, str]) -> None:
    """given: what becomes a property of the protocol's. own: the caller's properties."""
    for name in own:
        if name in RESERVED or not name:
            raise UsageError(
                f"A property can't be named {name!r}: that name has a meaning of its own; choose another."
            )
    try:
        size = len(wire.text_bytes(wire.pack_properties({**given, **own})))
    except ProtocolError as error:
        raise UsageError(str(error)) from error
    if size + _ROOM_BYTES > wire.MAX_PROPERTIES_BYTES:
        allowed = wire.MAX_PROPERTIES_BYTES - _ROOM_BYTES
        raise UsageError(
            f"Key, tags, keys and properties take {size} bytes; {allowed} are allowed."
        )
