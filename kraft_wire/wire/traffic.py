"""Count the bytes of connections."""

from __future__ import annotations

import msgspec


class Traffic(msgspec.Struct, gc=False):
    """The bytes that came in and went out, of all connections together."""

    incoming_bytes: int = 0
    outgoing_bytes: int = 0
