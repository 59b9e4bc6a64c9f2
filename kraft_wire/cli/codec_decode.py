"""``kraft-wire codec decode``: messages' bytes, or a captured connection's, to Kafka's JSON form."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from kraft_wire.cli.codec_capture import Capture, NotRaw, read_capture
from kraft_wire.cli.codec_frames import (
    ClientLines,
    Frame,
    ServerLines,
    StreamBroken,
    broken_line,
    frames_of,
)
from kraft_wire.cli.codec_input import STDIN, InputFile, chunks_of
from kraft_wire.cli.codec_lines import Answer, decode_line
from kraft_wire.cli.codec_output import Printer, answer_lines
from kraft_wire.cli.codec_requests import SentRequests
from kraft_wire.cli.errors import EXIT_OK, CommandError

MAX_FRAME_BYTES = 100 * 1024 * 1024
"""Kafka's own default of socket.request.max.bytes."""


def codec_decode(
    file: InputFile = STDIN,
    /,
    *,
    frames: bool = False,
    client: bool = False,
    server: bool = False,
    requests: InputFile | None = None,
    max_frame_bytes: int | None = None,
) -> int:
    """Decode messages: a line of JSON in, a line of JSON out; or a captured connection.

    Reads `{"message": "NoOpRecord", "version": 0, "hex": "00"}` and prints `{"message", "version", "data"}`:
    the schema's name, and Kafka's JSON form, with the bytes of records in base64. Every line that isn't blank
    has its answer at once, in order; one that can't be decoded has `{"message", "version", "error"}`, or its
    number as `"line"` where it doesn't say what it is, and the exit code at the end is 1.

    With --frames it reads one direction of a TCP stream, from the connection's beginning, as tcpflow writes
    it, and prints `{"offset", "header", "message", "version", "data"}` for every frame. The text of
    `tshark -q -z follow,tcp,raw,0`, which holds both directions, will do, too.

    Parameters
    ----------
    file
        The lines or the stream; `-`, or nothing, for standard input.
    frames
        Read a stream of frames instead of lines.
    client
        The stream is what the client sent: requests.
    server
        The stream is what the server sent: responses. They don't say what they answer; see --requests.
    requests
        With --server: the client's stream of the same connection, in a file or `-`.
    max_frame_bytes
        With --frames: a longer frame is taken for a sign that the stream is none. 104857600 by default.
    """
    if frames:
        _decode_frames(file, client, server, requests, _limit(max_frame_bytes))
    elif client or server or requests is not None or max_frame_bytes is not None:
        raise CommandError("--client, --server, --requests and --max-frame-bytes go with --frames")
    else:
        answer_lines(file, decode_line, "lines could not be decoded")
    return EXIT_OK


def _limit(max_frame_bytes: int | None) -> int:
    if max_frame_bytes is None:
        return MAX_FRAME_BYTES
    if max_frame_bytes < 1:
        raise CommandError(f"--max-frame-bytes {max_frame_bytes}: a frame has at least one byte")
    return max_frame_bytes


def _decode_frames(file: str, client: bool, server: bool, requests: str | None, max_frame_bytes: int) -> None:
    if client == server:
        raise CommandError("--frames needs to know who sent the stream: say --client or --server")
    if client and requests is not None:
        raise CommandError("--requests goes with --server: what a client sends is requests itself")
    if requests == STDIN == file:
        raise CommandError("standard input can't be both the stream and its requests")
    with _capture(file) as capture:
        if client:
            hint = "; is the stream what the server sent? Then say --server"
            _print_frames(capture.client, max_frame_bytes, ClientLines().answer, hint)
            return
        lines = ServerLines(_sent_requests(capture, requests, max_frame_bytes))
        hint = "; is the stream what the server sent, and are the requests those of the same connection?"
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
        raise CommandError(
            "--server needs to know what was asked, as responses don't say it: give the client's stream of"
            " the same connection with --requests FILE"
        )
    return sent


def _take_requests(sent: SentRequests, stream: Iterator[bytes], name: str, max_frame_bytes: int) -> None:
    """Read a client's stream; one that breaks off has been read as far as it goes."""
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
