"""Serve one client's connection: sockets and time-outs around the server's side of the wire.

A client that only sends, or never reads, costs a bounded amount of memory: while the server's side has no
room for another request, the socket isn't read. A client that doesn't take the next piece of its responses
within the maximum idle time is disconnected. A client that exceeds a quota gets its response at once; its
next request is not begun for the time that the response says (KIP-219).
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Callable, Collection

import trio

from kraft_wire.controller.decision.api_table import Api
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.reading.consumer_fetch import is_of_replica
from kraft_wire.protocol.errors import ErrorCode, ProtocolError
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.fetch_request import FetchRequest
from kraft_wire.protocol.registry import api_name
from kraft_wire.server.logging import get_logger
from kraft_wire.server.network.places import SMALL_BYTES, Place
from kraft_wire.server.network.receiver import receive
from kraft_wire.server.network.sender import Sender
from kraft_wire.server.network.shared import API_KEY_BYTES, Shared
from kraft_wire.wire.address import format_address
from kraft_wire.wire.entry_count import TooManyEntries
from kraft_wire.wire.server_side import DecodedFrame, Request, ServerSide, Slot
from kraft_wire.wire.shared_bytes import SharedBytes

TURN_S = 0.002
"""A connection that has sent many requests is served for so long, then all others have their turn."""
DECODED_HERE_BYTES = 128 * 1024
"""A larger request is decoded in a thread: 20,000 small entries take 40 ms, and a broker may send 100,000."""
REPLICAS_FETCH_BYTES = 4096
"""No Fetch of a replica is larger: it asks for one partition."""
WAITING_CLIENT_S = 0.1
"""The shortest time until a client that waits for its answer is looked at again."""
MUTED_CLIENT_S = 1.0
"""The time after which it is looked whether a client that exceeded a quota is still there."""

log = get_logger(__name__)


class Connection:
    """A connection, served until the client closes it, breaks the protocol or is idle for too long, or until
    the server stops."""

    def __init__(
        self,
        stream: trio.SocketStream,
        listener: str,
        shared: Shared,
        submit: Callable[[ApiRequest], None],
        abandon: Callable[[Slot], None],
    ) -> None:
        self._stream = stream
        self._listener = listener
        self._shared = shared
        self._limits = shared.limits
        self._apis = shared.apis
        self._turns = shared.turns
        self._places = shared.places
        self._held = shared.held
        self._submit = submit
        self._abandon = abandon
        self._mistakes = shared.mistakes
        self._wire = ServerSide(shared.find_api, self._limits.max_frame_bytes, self._answered, self._give_up)
        self._in_work: Slot | None = None
        self._place: Place | None = None
        self._placed: Slot | None = None
        self._fetches_as_consumer = False
        self._waiting_bytes = 0
        self._scope = trio.CancelScope()
        self._must_end = trio.Event()
        self._sender = Sender(stream, self._wire, self._turns, self._moved)
        self._room = trio.Event()
        self._closed = False
        self._received_at_s = trio.current_time()
        self._muted_until_s = -math.inf
        self._address = _peer_address(stream)
        self._caller = Caller(listener, self._address)

    async def run(self) -> None:
        """Serve the client. An error of its own costs this connection only."""
        log.debug("connection opened", peer=self._address, listener=self._listener)
        try:
            with self._scope:
                async with self._stream, trio.open_nursery() as nursery:
                    nursery.start_soon(self._sender.run)
                    nursery.start_soon(self._end_in_time)
                    await self._read()
                    nursery.cancel_scope.cancel()
        except* ProtocolError as errors:
            for error in errors.exceptions:
                self._mistakes.add(self._address, str(error))
        except* (trio.BrokenResourceError, trio.ClosedResourceError) as errors:
            log.debug("connection lost", peer=self._address, error=repr(errors.exceptions[0]))
        finally:
            self._free()
        log.debug("connection closed", peer=self._address)

    @property
    def held_bytes(self) -> int:
        """The bytes that only this connection holds: those that arrived, those of requests that aren't
        answered, and those of responses that aren't sent."""
        return self._wire.held_bytes + self._waiting_bytes

    @property
    def in_work_bytes(self) -> int:
        """The part of ``held_bytes`` that is of requests that aren't answered."""
        return self._wire.in_work_bytes

    @property
    def shared(self) -> Collection[SharedBytes]:
        """The parts of responses that other connections may hold, too."""
        return self._wire.shared

    def drop(self, reason: str) -> None:
        """Close the connection, and say why. What it held is free at once: others get it in this step."""
        if not self._closed:
            self._mistakes.held(self._address, self._caller.client_id, reason, self.held_bytes)
            self._end()
            self._free()

    def _note_held(self) -> None:
        if not self._closed:
            self._held.note(self)

    def _free(self) -> None:
        """Hold nothing any more. Connection, slots and wire refer to each other, and a garbage collection
        that would notice may be far away."""
        if self._closed:
            return
        self._closed = True
        unanswered = self._wire.unanswered()
        self._sender.close()
        self._wire.close()
        self._waiting_bytes = 0
        self._held.forget(self)
        if self._place is not None:
            self._place.leave()
        self._room.set()
        for slot in unanswered:
            self._abandon(slot)

    # Requests.

    async def _read(self) -> None:
        while data := await receive(self._stream):
            self._received_at_s = trio.current_time()
            self._wire.receive(data)
            turn_ends_s = self._received_at_s + TURN_S
            while not self._closed and (whole := self._wire.next_frame()) is not None:
                self._waiting_bytes = len(whole)
                if trio.current_time() > turn_ends_s:
                    self._note_held()
                    await trio.lowlevel.checkpoint()
                    turn_ends_s = trio.current_time() + TURN_S
                is_large = len(whole) >= SMALL_BYTES
                while not self._wire.has_room or self._is_busy or (is_large and self._place is not None):
                    self._note_held()
                    await self._room_made()
                if self._muted_until_s > trio.current_time():
                    await self._unmuted()
                if is_large:
                    await self._take_place(whole)
                if not self._turns.is_over:
                    await self._begin(whole)
                else:
                    turn_ends_s = -math.inf  # the pass is long: the next request is for the next pass
                    await self._serve_in_long_pass(whole)
                self._waiting_bytes = 0
            if self._closed:
                return
            self._note_held()

    async def _unmuted(self) -> None:
        """Wait until the client may go on, or has gone."""
        self._note_held()
        while not self._closed and (left_s := self._muted_until_s - trio.current_time()) > 0:
            await trio.sleep(min(left_s, MUTED_CLIENT_S))
            self._close_if_gone()

    async def _take_place(self, whole: bytes) -> None:
        """Wait until a client's large request may be begun."""
        api = self._shared.api_of(whole)
        if self._closed or (api is not None and api.is_from_cluster):
            return
        self._place = self._places.ask(len(whole))
        if not self._place.is_granted:
            self._note_held()
            await self._place.wait()
            self._close_if_gone()

    async def _serve_in_long_pass(self, whole: bytes) -> None:
        """Serve a request, after those that have their turn before it."""
        if not self._has_to_wait(whole):
            await self._begin(whole)
            return
        self._note_held()
        await self._turns.wait()
        self._close_if_gone()
        began_s = time.perf_counter()
        await self._begin(whole)
        if len(whole) <= DECODED_HERE_BYTES:  # others had their turns while a thread decoded it
            self._turns.note(time.perf_counter() - began_s)

    def _has_to_wait(self, whole: bytes) -> bool:
        """Whether others have their turn before this request. Those of brokers and controllers don't wait.

        Replicas and consumers send Fetches. Which of them sends it stands at the end of a request, so the
        one before it tells: the first Fetch of a consumer doesn't wait, either.
        """
        api = self._shared.api_of(whole)
        if api is None or not api.is_from_cluster:
            return True
        if api.key != FetchRequest.API_KEY:
            return False
        return self._fetches_as_consumer or len(whole) > REPLICAS_FETCH_BYTES

    @property
    def _is_busy(self) -> bool:
        """Whether a request of this client is in work that must be answered before the next one is begun."""
        return self._in_work is not None and not self._in_work.is_answered

    def _close_if_gone(self) -> None:
        """Do nothing for a client that has closed the connection, even if there are still bytes to read."""
        if self._closed:
            return
        poll = select.poll()
        poll.register(self._stream.socket.fileno(), select.POLLRDHUP)
        if poll.poll(0):
            self._end()
            self._free()

    async def _begin(self, whole: bytes) -> None:
        """Decode a request and begin it, unless the connection is closed: then nobody would abandon it."""
        if self._closed:
            return
        if len(whole) <= DECODED_HERE_BYTES:
            self._serve(self._wire.decode(whole))
            return
        frame = await trio.to_thread.run_sync(self._wire.decode, whole, limiter=self._shared.decoding)
        if not self._closed:
            self._serve(frame)

    def _serve(self, frame: DecodedFrame) -> None:
        request = self._wire.take_decoded(frame)
        if self._place is not None and self._placed is None:
            self._placed = request.slot
        if request.refused is not None:
            self._refuse(request, request.refused)
            return
        if isinstance(request.message, FetchRequest):
            self._fetches_as_consumer = not is_of_replica(request.message)
        self._submit(self._api_request(request))
        if self._must_be_answered_first(request):
            self._in_work = request.slot

    def _must_be_answered_first(self, request: Request) -> bool:
        api: Api | None = self._apis[request.api_key]
        if isinstance(request.message, EnvelopeRequest):
            api = self._apis.find(int.from_bytes(request.message.request_data[:API_KEY_BYTES]))
        return api is not None and api.must_be_answered_first

    def _refuse(self, request: Request, error: TooManyEntries) -> None:
        """Answer with an error, of the whole request or of its first items."""
        api = self._apis[request.api_key]
        reason = api.refusal(error)
        if not api.can_refuse(request.message, request.version):
            raise error  # the response has errors of items only, and their names couldn't be read
        self._mistakes.refused(self._address, request.client_id, reason)
        code = ErrorCode.POLICY_VIOLATION
        request.slot.answer(api.error_response(request.message, request.version, code, reason))

    def _api_request(self, request: Request) -> ApiRequest:
        if request.client_id != self._caller.client_id:  # most clients have one id
            self._caller = Caller(self._listener, self._address, request.client_id)
        return ApiRequest(request.slot, request.api_key, request.version, request.message, self._caller)

    # Responses.

    def _leave_place(self) -> None:
        """Give the place of a large request back when it is answered."""
        if self._placed is not None and self._placed.is_answered:
            assert self._place is not None
            self._place.leave()
            self._place = self._placed = None

    def _answered(self) -> None:
        """Send the next response, if it is ready."""
        if not self._closed:
            if throttle_time_ms := self._wire.take_throttle_time_ms():
                until_s = trio.current_time() + throttle_time_ms / 1000
                self._muted_until_s = max(self._muted_until_s, until_s)
            self._leave_place()
            self._sender.send_ready()
            if self._wire.has_slots or self._sender.is_sending:
                self._note_held()

    def _moved(self) -> None:
        """Take note that bytes were encoded or have left: there may be room for another request."""
        self._note_held()
        self._room.set()

    def _give_up(self, slot: Slot, error: ProtocolError) -> None:
        """Close the connection: this request can't be answered, and so none of those after it."""
        log.error(
            "connection dropped",
            peer=self._address,
            reason="response can't be encoded",
            api=api_name(slot.api_key),
            version=slot.version,
            error=str(error),
        )
        self._end()

    def _end(self) -> None:
        """Let ``_end_in_time`` cancel all tasks: trio would keep the frames of this step in memory, with all
        that they hold, until the last task has noticed."""
        self._must_end.set()

    async def drained(self) -> None:
        """Wait until every response that may leave has been passed to the socket."""
        while not self._closed and (self._sender.is_sending or self._wire.has_ready):
            await self._room_made()

    async def _room_made(self) -> None:
        if self._room.is_set():
            self._room = trio.Event()
        await self._room.wait()

    def _idle_at_s(self) -> float:
        """Return the time at which the connection is idle, or the client takes too long to read."""
        sent_at_s = self._sender.sent_at_s
        since_s = sent_at_s if self._sender.is_sending else max(self._received_at_s, sent_at_s)
        return since_s + self._limits.max_idle_seconds

    async def _end_in_time(self) -> None:
        """Cancel all tasks when the connection must end: at once if that is known, otherwise when it is idle,
        or the client doesn't read, for the maximum idle time.

        One task sleeps through it: a time-out around every receive and send would cost more than the request.
        """
        while not await self._must_end_by(self._idle_at_s()):
            # If the process was suspended, what has arrived is read first. The pass in which it wakes may see
            # the time, but not the sockets: epoll was interrupted. The reader runs in the next pass.
            await trio.lowlevel.checkpoint()
            await trio.lowlevel.checkpoint()
            if trio.current_time() < self._idle_at_s():
                continue
            if self._sender.is_sending or not (self._wire.has_slots or self._waiting_bytes):
                self._report_silence()
                break
            again_s = trio.current_time() + max(self._limits.max_idle_seconds, WAITING_CLIENT_S)
            if await self._must_end_by(again_s):
                break
        self._scope.cancel()

    async def _must_end_by(self, time_s: float) -> bool:
        """Wait until this time. Return True, and earlier, if the connection must end."""
        with trio.move_on_at(time_s):
            await self._must_end.wait()
        return self._must_end.is_set()

    def _report_silence(self) -> None:
        reason = "response not read" if self._sender.is_sending else "idle"
        log.info(
            "connection dropped", peer=self._address, reason=reason, max_idle_ms=self._limits.max_idle_ms
        )


def _peer_address(stream: trio.SocketStream) -> str:
    try:
        host, port, *_ = stream.socket.getpeername()
    except OSError as error:
        return f"unknown ({error.strerror})"
    return format_address(host, port)
