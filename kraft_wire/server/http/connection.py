"""Speak HTTP/1.1 on one stream, within limits: what a client does costs its own connection only."""

from __future__ import annotations

from http import HTTPStatus
from traceback import format_exception
from typing import Final

import h11
import msgspec
import trio

from kraft_wire.server.http.pages import Answer, Pages
from kraft_wire.server.logging import get_logger

MAX_HEADER_BYTES: Final = 8192
MAX_BODY_BYTES: Final = 8192
"""No request needs a body; a small one is read and ignored."""
RECEIVE_BYTES: Final = 8192
REQUEST_SECONDS: Final = 10.0
"""From the first byte of a request to the last one of its response."""
IDLE_SECONDS: Final = 75.0
"""Between requests: more than the usual minute between scrapes."""

log = get_logger(__name__)


class HttpConnection:
    """One connection. ``run`` ends with it."""

    def __init__(self, stream: trio.abc.Stream, pages: Pages) -> None:
        self._stream = stream
        self._pages = pages
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEADER_BYTES)

    async def run(self) -> None:
        """Answer requests until either side has had enough."""
        async with self._stream:
            try:
                while await self._request_begins() and await self._serve_in_time():
                    self._http.start_next_cycle()
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                return  # the client is gone
            except h11.LocalProtocolError as error:  # an error of ours must not end the controller
                log.error("http response failed", error=str(error))

    async def _request_begins(self) -> bool:
        """Wait for the first bytes of a request. Returns False if none come."""
        if self._http.trailing_data[0]:
            return True
        with trio.move_on_after(IDLE_SECONDS):
            return await self._receive()
        return False

    async def _serve_in_time(self) -> bool:
        """Serve one request. Returns whether the connection can serve another one."""
        with trio.move_on_after(REQUEST_SECONDS):
            try:
                await self._serve()
            except h11.RemoteProtocolError as error:
                await self._refuse(error)
                return False
            return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE
        return False

    async def _serve(self) -> None:
        request: h11.Request | None = None
        body_bytes = 0
        while True:
            event = self._http.next_event()
            match event:
                case h11.NEED_DATA:
                    if self._http.they_are_waiting_for_100_continue:
                        raise h11.RemoteProtocolError("no request has a body here", error_status_hint=417)
                    await self._receive()
                case h11.Request():
                    request = event
                case h11.Data():
                    body_bytes += len(event.data)
                    if body_bytes > MAX_BODY_BYTES:
                        raise h11.RemoteProtocolError("the body is too large", error_status_hint=413)
                case h11.EndOfMessage() if request is not None:
                    await self._send(await self._answer(request), has_body=request.method != b"HEAD")
                    return
                case _:
                    return  # the client has closed its side

    async def _answer(self, request: h11.Request) -> Answer:
        """Return the answer of a page, whole. An error of ours in it must not end the controller."""
        try:
            return await _whole(self._page(request))
        except Exception as error:  # noqa: BLE001 - a page only reads: its failure is that of one request
            log.error(
                "page failed",
                target=request.target.decode("ascii"),
                error=repr(error),
                traceback="".join(format_exception(error)),
            )
            return Answer(500, [b"internal error: see the log of this controller\n"])

    def _page(self, request: h11.Request) -> Answer:
        accept = ",".join(value.decode("latin-1") for name, value in request.headers if name == b"accept")
        return self._pages.answer(request.method.decode("ascii"), request.target.decode("ascii"), accept)

    async def _refuse(self, error: h11.RemoteProtocolError) -> None:
        """Tell the client why, if no response has begun, and read no further."""
        if self._http.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = Answer(error.error_status_hint, [f"{error}\n".encode()])
            await self._send(answer, is_last=True)

    async def _send(self, answer: Answer, *, is_last: bool = False, has_body: bool = True) -> None:
        body = b"".join(answer.body)
        headers = [("Content-Type", answer.content_type), ("Content-Length", str(len(body)))]
        if answer.allow is not None:
            headers.append(("Allow", answer.allow))
        if is_last:
            headers.append(("Connection", "close"))
        status = HTTPStatus(answer.status)
        response = h11.Response(status_code=status, headers=headers, reason=status.phrase.encode())
        pieces = [response, h11.Data(data=body if has_body else b""), h11.EndOfMessage()]
        await self._stream.send_all(b"".join(self._http.send(piece) or b"" for piece in pieces))

    async def _receive(self) -> bool:
        """Read more bytes. Returns False at the end of the stream."""
        data = await self._stream.receive_some(RECEIVE_BYTES)
        self._http.receive_data(bytes(data))
        return bool(data)


async def _whole(answer: Answer) -> Answer:
    """Return an answer whose body is made: others get their turn between its pieces."""
    pieces = []
    for piece in answer.body:
        pieces.append(piece)
        await trio.lowlevel.checkpoint()
    return msgspec.structs.replace(answer, body=pieces)
