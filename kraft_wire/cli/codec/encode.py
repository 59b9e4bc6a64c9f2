"""``kraft-wire codec encode``: encode messages in Kafka's JSON form, a line each."""

from __future__ import annotations

from kraft_wire.cli.codec.input import STDIN, InputFile
from kraft_wire.cli.codec.lines import encode_line
from kraft_wire.cli.codec.output import answer_lines
from kraft_wire.cli.errors import EXIT_OK


def codec_encode(file: InputFile = STDIN, /) -> int:
    """Encode messages: a line of JSON in, a line of JSON out.

    Reads `{"message": "NoOpRecord", "version": 0, "data": {}}`, or the output of `codec decode`, and prints
    `{"message", "version", "hex"}`. Other fields of a line are copied to its answer. Every line that isn't
    blank is answered at once, in order. A line that can't be encoded is answered with
    `{"message", "version", "error"}`, or with its number as `"line"` if it doesn't name its message; the exit
    status is 1 then.

    For example:

        echo '{"message":"NoOpRecord","version":0,"data":{}}' | kraft-wire codec encode

    Parameters
    ----------
    file
        The lines; `-` for standard input.
    """
    answer_lines(file, encode_line, "lines could not be encoded")
    return EXIT_OK
