"""UTF-8 as Java reads and writes it: malformed input becomes U+FFFD, a lone surrogate becomes "?"."""

from __future__ import annotations

import re
from typing import Final

_ENCODED_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
_SURROGATE_PAIR: Final = re.compile("[\ud800-\udbff][\udc00-\udfff]")
_REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}".encode()


def decode_utf8(raw: bytes) -> str:
    """Never fails. An encoded surrogate is one replacement character, where Python alone would make three."""
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return _ENCODED_SURROGATE.sub(_REPLACEMENT, raw).decode(errors="replace")


def encode_utf8(text: str) -> bytes:
    """Never fails. Two halves of a surrogate pair count as the one character that they are in Java."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return _SURROGATE_PAIR.sub(_join_pair, text).encode(errors="replace")


def _join_pair(match: re.Match[str]) -> str:
    return match[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
