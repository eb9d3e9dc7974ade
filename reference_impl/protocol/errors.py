"""The one error of this package: bytes or fields that are not what the protocol allows."""

from __future__ import annotations

from specs.errors import InorderError


class ProtocolError(InorderError):
    """A frame, header, body or stored message that can't be read, or a value that can't be written.

    Never raised for an answer that is merely unwelcome. A server closes the connection when a *frame* is
    broken, and answers with a code (SYSTEM_ERROR or INVALID_PARAMETER) when a frame is whole but a header
    field or a body in it is not.
    """
