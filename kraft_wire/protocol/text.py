"""Read and write UTF-8 as Java does: malformed input becomes U+FFFD, a lone surrogate becomes "?".

Also format values for error texts.
"""

from __future__ import annotations

import re
from reprlib import Repr
from typing import Final

_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


def decode_utf8(raw: bytes) -> str:
    """Decode UTF-8 and never fail. An encoded surrogate becomes one replacement character; Python would make
    three."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, raw).decode(errors="replace")


def encode_utf8(text: str) -> bytes:
    """Encode UTF-8 and never fail. The two halves of a surrogate pair become one character, as in Java."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE_PAIR.sub(_join_pair, text).encode(errors="replace")


def _join_pair(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")


class _Short(Repr):
    """Python's own short forms, except for long integers, whose text is slow to make or refused."""

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= 256 else f"an integer of {x.bit_length()} bits"

    def repr_bytes(self, x: bytes, level: int) -> str:
        return repr(x) if len(x) <= self.maxother else f"{x[: self.maxother]!r}..."


_SHORT: Final = _Short()
_SHORT.maxstring = _SHORT.maxother = 80


def shown(value: object) -> str:
    """Return a value for an error's text, like ``repr``, but always short."""
    return _SHORT.repr(value)
