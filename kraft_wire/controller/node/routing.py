"""Route each request to the part of the node that answers it."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from kraft_wire.controller.decision.api_table import AnsweredBy, ApiTable
from kraft_wire.controller.decision.context import Context, refused
from kraft_wire.controller.forwarding import envelope
from kraft_wire.controller.node.consumer_reads import ConsumerReads, is_consumer_fetch
from kraft_wire.controller.node.decisions import Decisions
from kraft_wire.controller.node.digests import Digests
from kraft_wire.controller.node.events import ApiRequest, Caller
from kraft_wire.controller.node.outbox import Outbox
from kraft_wire.controller.node.raft_driver import RaftDriver
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.envelope_request import EnvelopeRequest
from kraft_wire.protocol.messages.list_offsets_request import ListOffsetsRequest
from kraft_wire.protocol.own_messages.state_digest_request import StateDigestRequest
from kraft_wire.raft.core import RaftCore
from kraft_wire.raft.errors import InvariantViolated
from kraft_wire.raft.events import RpcRequest


class RequestRouter:
    """The way of a request: version, permission, then handler, raft core or consumers."""

    def __init__(
        self,
        core: RaftCore,
        apis: ApiTable,
        outbox: Outbox,
        decisions: Decisions,
        consumers: ConsumerReads,
        digests: Digests,
        raft: RaftDriver,
        make_context: Callable[[Caller], Context],
        copy_raft_state: Callable[[], None],
        max_request_entries: int,
    ) -> None:
        self._core = core
        self._apis = apis
        self._outbox = outbox
        self._decisions = decisions
        self._consumers = consumers
        self._digests = digests
        self._raft = raft
        self._make_context = make_context
        self._copy_raft_state = copy_raft_state
        self._max_request_entries = max_request_entries

    def serve(self, request: ApiRequest) -> None:
        """Serve a request: of a connection, or from an envelope."""
        api = self._apis[request.api_key]
        self._outbox.serve(request)
        if not api.supports(request.version):
            self._outbox.refuse(
                request, ErrorCode.UNSUPPORTED_VERSION, f"version {request.version} is not supported"
            )
            return
        context = self._make_context(request.caller)
        if is_consumer_fetch(request):
            self._consumers.serve_fetch(request, context)
            return
        if api.requires is not None and not context.may(*api.requires):
            self._outbox.report_refusal(request, refused(*api.requires))
            return
        match api.answered_by:
            case AnsweredBy.ACTIVE_CONTROLLER if not api.is_about_this_node(request.request):
                self._serve_write(request, context)
            case AnsweredBy.ACTIVE_CONTROLLER | AnsweredBy.ANY_CONTROLLER:
                self._copy_raft_state()
                self._decisions.decide(request, context)
            case AnsweredBy.RAFT:
                caller = request.caller
                self._raft.drive(RpcRequest(request.token, request.request, request.version, caller.listener))
            case AnsweredBy.NODE if request.api_key == EnvelopeRequest.API_KEY:
                self._serve_envelope(request)
            case AnsweredBy.NODE if request.api_key == ListOffsetsRequest.API_KEY:
                self._consumers.serve_list_offsets(request, context)
            case AnsweredBy.NODE if request.api_key == StateDigestRequest.API_KEY:
                self._digests.serve(request)
            case AnsweredBy.NODE:
                raise InvariantViolated(f"{api.name} has no answer in the node")

    def _serve_write(self, request: ApiRequest, context: Context) -> None:
        api = self._apis[request.api_key]
        if api.must_begin_in_time and api.has_items(request.request):
            now_ms = self._outbox.now.monotonic_ms
            request = request.with_deadline(now_ms)
            if request.is_overdue(now_ms):
                self._outbox.refuse(request, ErrorCode.REQUEST_TIMED_OUT, request.overdue_text)
                return
        self._raft.run_overdue_timers()
        if self._decisions.is_active and self._core.accepts_proposals:
            self._copy_raft_state()
            self._decisions.decide(request, context)
        else:
            self._outbox.refuse(request, ErrorCode.NOT_CONTROLLER, "this node is not the active controller")

    def _serve_envelope(self, request: ApiRequest) -> None:
        try:
            inner = envelope.unwrap(
                cast(EnvelopeRequest, request.request), self._apis, self._max_request_entries
            )
        except ApiError as error:
            self._outbox.refuse(request, error.code, error.message)
            return
        forwarded = ApiRequest(
            token=envelope.Forwarded(request.token, inner),
            api_key=inner.api_key,
            version=inner.version,
            request=inner.request,
            caller=Caller(
                listener=request.caller.listener,
                address=inner.client_address,
                client_id=inner.client_id,
                principal=inner.principal,
                is_forwarded=True,
            ),
        )
        if inner.refused is None:
            self.serve(forwarded)
            return
        can_refuse = self._apis[inner.api_key].can_refuse(inner.request, inner.version)
        self._outbox.report_refusal(forwarded if can_refuse else request, inner.refused)
