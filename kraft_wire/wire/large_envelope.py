"""Hold a large response in an envelope without encoding it yet (KIP-590)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.protocol.varint import uvarint
from kraft_wire.wire.headers import encode_response_header

_AFTER_DATA: Final = EnvelopeResponse(response_data=b"").encode(0)[1:]
"""The error code after the data: no error."""


class LargeEnvelope(EnvelopeResponse, kw_only=True):
    """The response of an envelope around a large response, which is encoded when this one is.

    ``inner`` is the response to a request of this API and version, with the client's correlation id.
    """

    api_key: int
    inner_version: int
    correlation_id: int
    inner: Message

    def encode(self, version: int) -> bytes:
        out: list[bytes] = []
        self.encode_into(out, version)
        return b"".join(out)

    def encode_into(self, out: list[bytes], version: int) -> None:
        pieces = [self.header(), self.inner.encode(self.inner_version)]
        out.extend(self.around(pieces))

    def header(self) -> bytes:
        """Return the header of the inner response."""
        return encode_response_header(self.api_key, self.inner_version, self.correlation_id)

    def around(self, pieces: list[bytes]) -> Iterator[bytes]:
        """Yield the envelope, given the pieces of the inner response and its header."""
        yield uvarint(sum(map(len, pieces)) + 1)
        yield from pieces
        yield _AFTER_DATA
