"""Read lines from the pipes between a controller and the process of its exporters."""

from __future__ import annotations

from collections.abc import AsyncGenerator

import trio


async def lines_of(stream: trio.abc.ReceiveStream) -> AsyncGenerator[bytes, None]:
    """Yield the whole lines that arrive, without their ends. What follows the last one is dropped."""
    buffer = b""
    async for data in stream:
        *lines, buffer = (buffer + data).split(b"\n")
        for line in lines:
            yield line
