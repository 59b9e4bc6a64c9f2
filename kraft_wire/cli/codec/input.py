"""Read the input of the codec's commands, a file or standard input, as it comes."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO

from cyclopts import Parameter

from kraft_wire.cli.errors import CommandError

STDIN = "-"
CHUNK_BYTES = 64 * 1024


def _is_no_option(_: object, file: str | None) -> None:
    if file is not None and file.startswith("-") and file != STDIN:
        raise ValueError(f"Unknown option: {file}")


InputFile = Annotated[str, Parameter(allow_leading_hyphen=True, validator=_is_no_option)]
"""A parameter that names a file, or standard input by "-"."""


@contextmanager
def chunks_of(file: str) -> Iterator[Iterator[bytes]]:
    """Open a file, or standard input for "-"; yields its bytes in pieces, each as soon as it is there.

    Raises OSError, and CommandError if standard input is closed.
    """
    if file == STDIN:
        if sys.stdin is None:
            raise CommandError("standard input is closed; name a file")
        yield _chunks(sys.stdin.buffer)
        return
    with Path(file).open("rb") as opened:
        yield _chunks(opened)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    # The type of standard input doesn't declare read1, which every buffered file has.
    read1 = source.read1  # type: ignore[attr-defined]
    while chunk := read1(CHUNK_BYTES):
        yield chunk


def lines_of(chunks: Iterator[bytes]) -> Iterator[list[bytes]]:
    """Yield the lines that each piece completes; the last line may lack its newline."""
    begun: list[bytes] = []
    for chunk in chunks:
        *ended, rest = chunk.split(b"\n")
        if ended:
            ended[0] = b"".join((*begun, ended[0]))
            begun.clear()
            yield ended
        begun.append(rest)
    last = b"".join(begun)
    if last:
        yield [last]
