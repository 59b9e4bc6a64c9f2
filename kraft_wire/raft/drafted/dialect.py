"""The APIs of a listener that speaks KIP-853 as it was drafted."""

from __future__ import annotations

from typing import Final

from kraft_wire.protocol.messages.api_versions_request import ApiVersionsRequest
from kraft_wire.protocol.messages.api_versions_response import ApiVersion, ApiVersionsResponse
from kraft_wire.raft.drafted.alike import alike
from kraft_wire.raft.drafted.fetches import FETCH
from kraft_wire.raft.drafted.snapshots import FETCH_SNAPSHOT
from kraft_wire.raft.drafted.update_voter import UPDATE_VOTER
from kraft_wire.raft.drafted.votes import VOTE
from kraft_wire.wire.dialect import Dialect, Form

_FORMS: Final = (FETCH, VOTE, FETCH_SNAPSHOT, UPDATE_VOTER)


def _advertise(own: ApiVersionsResponse) -> ApiVersionsResponse:
    """Return the answer to ApiVersions with the keys and versions of this listener."""
    forms = {form.own_key: form for form in _FORMS}
    served = [api if (form := forms.get(api.api_key)) is None else _range(form) for api in own.api_keys]
    return alike(ApiVersionsResponse, own, api_keys=sorted(served, key=lambda api: api.api_key))


def _range(form: Form) -> ApiVersion:
    return ApiVersion(api_key=form.key, min_version=form.min_version, max_version=form.max_version)


_API_VERSIONS: Final = Form(
    key=ApiVersionsRequest.API_KEY,
    own_key=ApiVersionsRequest.API_KEY,
    own_versions={
        version: version
        for version in range(ApiVersionsRequest.MIN_VERSION, ApiVersionsRequest.MAX_VERSION + 1)
    },
    request_class=ApiVersionsRequest,
    response_class=ApiVersionsResponse,
    read_request=lambda request, version: request,
    write_request=lambda request: request,
    read_response=lambda response: response,
    write_response=_advertise,
)

DRAFTED: Final = Dialect((*_FORMS, _API_VERSIONS), signs=(UPDATE_VOTER.key, VOTE.key))
"""KIP-853's draft. In released Kafka brokers serve key 77, controllers serve Vote, and nobody both."""
