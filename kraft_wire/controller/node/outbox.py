"""Collect the effects of one step."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from kraft_wire.controller.decision.api_table import ApiTable
from kraft_wire.controller.forwarding.envelope import Forwarded, ForwardedRequest, wrap
from kraft_wire.controller.node.effects import HandlerFailed, NodeEffect, RequestRefused
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.protocol.errors import ApiError, ErrorCode, ProtocolError
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.envelope_response import EnvelopeResponse
from kraft_wire.raft.effects import Reply
from kraft_wire.raft.events import Now


class Outbox:
    """The effects of the present step in their order, the time of the step, and the client that it is for.

    ``throttle_time_ms`` says how long a client has to wait before its next request.
    """

    def __init__(self, apis: ApiTable, throttle_time_ms: Callable[[Caller], int]) -> None:
        self.now = Now(0, 0)
        self.effects: list[NodeEffect] = []
        self.client: Caller | None = None
        self._apis = apis
        self._throttle_time_ms = throttle_time_ms

    def begin_step(self, now: Now) -> None:
        """Start with no effects at time ``now``."""
        self.now = now
        self.effects = []
        self.client = None

    def emit(self, effect: NodeEffect) -> None:
        """Add an effect."""
        self.effects.append(effect)

    def serve(self, request: ApiRequest) -> None:
        """Take note that this step is for a client, unless the cluster itself asks."""
        if self._apis[request.api_key].has_quota:
            self.client = request.caller

    def answer(self, request: ApiRequest, response: Message) -> None:
        """Answer a request. A client that has used too much time is told to wait (KIP-219)."""
        if self._apis[request.api_key].has_quota and hasattr(response, "throttle_time_ms"):
            throttle_time_ms = self._throttle_time_ms(request.caller)
            if throttle_time_ms > response.throttle_time_ms:
                response.throttle_time_ms = throttle_time_ms
        self.reply(request.token, response)

    def reply(self, token: Hashable, response: Message) -> None:
        """Answer a request. A token of None is a request of this node itself, which gets no answer."""
        match token:
            case None:
                return
            case Forwarded(envelope, request):
                self.emit(Reply(envelope, self._wrapped(request, response)))
            case _:
                self.emit(Reply(token, response))

    def refuse(
        self, request: ApiRequest, code: ErrorCode, text: str, *, most_items: int | None = None
    ) -> None:
        """Answer that all of a request failed, and name so many of its items at most; None is all."""
        api = self._apis[request.api_key]
        response = api.error_response(request.request, request.version, code, text, most_items=most_items)
        self.answer(request, response)

    def report_refusal(self, request: ApiRequest, error: ApiError) -> None:
        """Answer that all of a request failed, and report it to the operator."""
        self.emit(RequestRefused(request.api_key, request.caller, error.code, error.message))
        self.refuse(request, error.code, error.message)

    def _wrapped(self, request: ForwardedRequest, response: Message) -> EnvelopeResponse:
        try:
            return wrap(request, response)
        except ProtocolError as error:
            # An internal error, which fails this request only.
            self.emit(HandlerFailed(request.api_key, request.version, error))
            return EnvelopeResponse(response_data=None, error_code=int(ErrorCode.UNKNOWN_SERVER_ERROR))
