"""``kraft-wire codec encode``: messages in Kafka's JSON form, a line each, to their bytes."""

from __future__ import annotations

from kraft_wire.cli.codec_input import STDIN, InputFile
from kraft_wire.cli.codec_lines import encode_line
from kraft_wire.cli.codec_output import answer_lines
from kraft_wire.cli.errors import EXIT_OK


def codec_encode(file: InputFile = STDIN, /) -> int:
    """Encode messages: a line of JSON in, a line of JSON out.

    Reads `{"message": "NoOpRecord", "version": 0, "data": {}}` and prints `{"message", "version", "hex"}`;
    what `codec decode` prints may be its input. Every line that isn't blank has its answer at once, in order;
    one that can't be encoded has `{"message", "version", "error"}`, or its number as `"line"` where it
    doesn't say what it is, and the exit code at the end is 1.

    Parameters
    ----------
    file
        The lines; `-`, or nothing, for standard input.
    """
    answer_lines(file, encode_line, "lines could not be encoded")
    return EXIT_OK
