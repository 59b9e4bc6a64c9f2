"""Read a captured connection: the bytes of one direction, or tshark's text with both.

``tshark -q -z follow,tcp,raw,N`` prints hexadecimal lines. The lines of the second node start with a tab. The
first node is the one that sent first: the client, if the capture has the beginning of the connection.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Final, NamedTuple

_TITLE: Final = b"Follow: "
_WANTED: Final = b"Follow: tcp,raw"
_HEAD: Final = (b"Filter: ", b"Node 0: ", b"Node 1: ", _TITLE, b"=")
_LINE_ENDS: Final = b"\r\n"


class NotRaw(Exception):
    """A text of tshark doesn't hold the bytes of one connection. The error's text says what to do."""


class Capture(NamedTuple):
    """A connection's streams, in pieces. Unless ``is_both``, both are the same stream, the only one."""

    client: Iterator[bytes]
    server: Iterator[bytes]
    is_both: bool


def read_capture(chunks: Iterator[bytes]) -> Capture:
    """Recognise the form of a capture by its first bytes, without reading further. Raises NotRaw."""
    start = b""
    while not start.strip(_LINE_ENDS) and (chunk := next(chunks, b"")):
        start += chunk
    chunks = chain((start,), chunks)
    # As the length of a frame, "====" would be a thousand million bytes.
    if not start.lstrip(_LINE_ENDS).startswith(b"="):
        return Capture(chunks, chunks, False)
    client, server = _sides(b"".join(chunks))
    return Capture(iter((client,)), iter((server,)), True)


def _sides(text: bytes) -> tuple[bytes, bytes]:
    lines = text.splitlines()
    titles = [line.rstrip() for line in lines if line.startswith(_TITLE)]
    if titles != [_WANTED]:
        found = ", ".join(title.decode("ascii", "replace") for title in titles) or "no connection"
        raise NotRaw(f"{found}: give one connection, as tshark -q -z follow,tcp,raw,0 prints it")
    client: list[bytes] = []
    server: list[bytes] = []
    for number, line in enumerate(lines, 1):
        if not line.startswith(_HEAD):
            (server if line.startswith(b"\t") else client).append(_bytes(line, number))
    return b"".join(client), b"".join(server)


def _bytes(line: bytes, number: int) -> bytes:
    try:
        return bytes.fromhex(line.decode("ascii", "replace"))
    except ValueError:
        raise NotRaw(f"line {number} of tshark's text isn't hexadecimal digits, two per byte") from None
