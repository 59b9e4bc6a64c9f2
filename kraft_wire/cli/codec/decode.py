"""``kraft-wire codec decode``: decode messages, or a captured connection, to Kafka's JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated

from cyclopts import Parameter

from kraft_wire.cli.codec.capture import Capture, NotRaw, read_capture
from kraft_wire.cli.codec.frames import (
    ClientLines,
    Frame,
    ServerLines,
    StreamBroken,
    broken_line,
    frames_of,
)
from kraft_wire.cli.codec.input import STDIN, InputFile, chunks_of
from kraft_wire.cli.codec.lines import Answer, decode_line
from kraft_wire.cli.codec.output import Printer, answer_lines
from kraft_wire.cli.codec.requests import SentRequests
from kraft_wire.cli.errors import EXIT_OK, CommandError, UsageError
from kraft_wire.wire.framing import MAX_FRAME_BYTES


def codec_decode(
    file: InputFile = STDIN,
    /,
    *,
    frames: bool = False,
    client: bool = False,
    server: bool = False,
    requests: InputFile | None = None,
    max_frame_bytes: Annotated[int | None, Parameter(show_default=str(MAX_FRAME_BYTES))] = None,
) -> int:
    """Decode messages, a line of JSON in, a line of JSON out; or decode a captured connection.

    Reads `{"message": "NoOpRecord", "version": 0, "hex": "00"}` and prints `{"message", "version", "data"}`:
    the schema's name, and Kafka's JSON form, with the bytes of records in base64. Other fields of a line are
    copied to its answer. Every line that isn't blank is answered at once, in order. A line that can't be
    decoded is answered with `{"message", "version", "error"}`, or with its number as `"line"` if it doesn't
    name its message; the exit status is 1 then.

    With --frames, reads one direction of a TCP stream from the start of the connection, as tcpflow writes it,
    and prints `{"offset", "header", "message", "version", "data"}` for every frame. The text of
    `tshark -q -z follow,tcp,raw,0`, which holds both directions, can be read as well.

    For example:

        echo '{"message":"NoOpRecord","version":0,"hex":"00"}' | kraft-wire codec decode
        kraft-wire codec decode --frames --client stream
        kraft-wire codec decode --frames --server --requests sent received

    Parameters
    ----------
    file
        The lines or the stream; `-` for standard input.
    frames
        Read a stream of frames instead of lines.
    client
        The client sent the stream: it holds requests.
    server
        The server sent the stream: it holds responses. They don't name their requests; see --requests.
    requests
        With --server: the client's stream of the same connection, in a file or `-`.
    max_frame_bytes
        With --frames: the longest frame. A longer one means that the file isn't such a stream.
    """
    if frames:
        _decode_frames(file, client, server, requests, _limit(max_frame_bytes))
    elif client or server or requests is not None or max_frame_bytes is not None:
        raise UsageError("--client, --server, --requests and --max-frame-bytes go with --frames")
    else:
        answer_lines(file, decode_line, "lines could not be decoded")
    return EXIT_OK


def _limit(max_frame_bytes: int | None) -> int:
    if max_frame_bytes is None:
        return MAX_FRAME_BYTES
    if max_frame_bytes < 1:
        raise UsageError(f"--max-frame-bytes {max_frame_bytes}: a frame has at least one byte")
    return max_frame_bytes


def _decode_frames(file: str, client: bool, server: bool, requests: str | None, max_frame_bytes: int) -> None:
    if client == server:
        raise UsageError("--frames needs to know which side sent the stream: give --client or --server")
    if client and requests is not None:
        raise UsageError("--requests goes with --server: a client's stream holds requests itself")
    if requests == STDIN == file:
        raise UsageError("standard input can't be both the stream and its requests")
    with _capture(file) as capture:
        if client:
            hint = "; did the server send the stream? Then give --server"
            _print_frames(capture.client, max_frame_bytes, ClientLines().answer, hint)
            return
        lines = ServerLines(_sent_requests(capture, requests, max_frame_bytes))
        hint = "; did the server send the stream, and are the requests those of the same connection?"
        _print_frames(capture.server, max_frame_bytes, lines.answer, hint)


@contextmanager
def _capture(file: str) -> Iterator[Capture]:
    with chunks_of(file) as chunks:
        try:
            capture = read_capture(chunks)
        except NotRaw as error:
            raise CommandError(f"{file}: {error}") from error
        yield capture


def _sent_requests(responses: Capture, file: str | None, max_frame_bytes: int) -> SentRequests:
    sent = SentRequests()
    if file is not None:
        with _capture(file) as capture:
            _take_requests(sent, capture.client, file, max_frame_bytes)
    elif responses.is_both:
        _take_requests(sent, responses.client, "the client's side", max_frame_bytes)
    else:
        raise UsageError(
            "--server needs the requests, because responses don't name them: give the client's stream of the"
            " same connection with --requests FILE"
        )
    return sent


def _take_requests(sent: SentRequests, stream: Iterator[bytes], name: str, max_frame_bytes: int) -> None:
    """Read a client's stream, up to its end or to the byte at which it breaks off."""
    try:
        for frames in frames_of(stream, max_frame_bytes):
            for frame in frames:
                sent.add(frame.payload)
    except StreamBroken as error:
        if not sent.count:
            raise CommandError(f"{name}: no request in it: {error}") from error


def _print_frames(
    stream: Iterator[bytes], max_frame_bytes: int, answer: Callable[[Frame], Answer], hint: str
) -> None:
    printer = Printer()
    try:
        for frames in frames_of(stream, max_frame_bytes):
            printer.print(map(answer, frames))
    except StreamBroken as error:
        printer.print((broken_line(error),))
        hint = ""
    printer.finish("frames could not be decoded", hint)
