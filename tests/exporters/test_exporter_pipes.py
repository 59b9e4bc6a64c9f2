"""Lines from a pipe, however its bytes are cut."""

from __future__ import annotations

import pytest
import trio
from trio.testing import memory_stream_one_way_pair

from kraft_wire.exporters.pipes import lines_of


@pytest.mark.parametrize("piece_bytes", [1, 2, 5, 100])
def test_whole_lines_are_read_and_a_torn_last_one_is_dropped(piece_bytes: int) -> None:
    text = b"one\n\ntwo\nthree\ntorn"

    async def read() -> list[bytes]:
        sending, receiving = memory_stream_one_way_pair()
        for begin in range(0, len(text), piece_bytes):
            await sending.send_all(text[begin : begin + piece_bytes])
        await sending.aclose()
        return [line async for line in lines_of(receiving)]

    assert trio.run(read) == [b"one", b"", b"two", b"three"]
