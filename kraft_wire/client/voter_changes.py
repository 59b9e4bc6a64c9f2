"""Build the requests that change voters, registrations and kraft.version; read the responses to changes. No
I/O."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from kraft_wire.log.control import KRAFT_VERSION
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages import add_raft_voter_request, controller_registration_request
from kraft_wire.protocol.messages.add_raft_voter_request import AddRaftVoterRequest
from kraft_wire.protocol.messages.add_raft_voter_response import AddRaftVoterResponse
from kraft_wire.protocol.messages.controller_registration_request import ControllerRegistrationRequest
from kraft_wire.protocol.messages.controller_registration_response import ControllerRegistrationResponse
from kraft_wire.protocol.messages.incremental_alter_configs_response import IncrementalAlterConfigsResponse
from kraft_wire.protocol.messages.remove_raft_voter_request import RemoveRaftVoterRequest
from kraft_wire.protocol.messages.remove_raft_voter_response import RemoveRaftVoterResponse
from kraft_wire.protocol.messages.unregister_controller_response import UnregisterControllerResponse
from kraft_wire.protocol.messages.update_features_request import FeatureUpdateKey, UpdateFeaturesRequest
from kraft_wire.protocol.messages.update_features_response import UpdateFeaturesResponse
from kraft_wire.protocol.uuid import Uuid
from kraft_wire.raft.membership.voters import Endpoint, ReplicaKey

UPGRADE: Final = 1
"""The type of an update (FeatureUpdate.UpgradeType)."""

Response = (
    AddRaftVoterResponse
    | RemoveRaftVoterResponse
    | UnregisterControllerResponse
    | ControllerRegistrationResponse
    | IncrementalAlterConfigsResponse
)


class ChangeAnswer(msgspec.Struct, frozen=True):
    """What the leader says to a change. ``error`` is NONE if it is committed."""

    error: ErrorCode
    message: str


def add_voter(
    cluster_id: str, key: ReplicaKey, endpoints: Iterable[Endpoint], timeout_ms: int
) -> AddRaftVoterRequest:
    """Build an AddRaftVoter that is answered when the change is committed."""
    return AddRaftVoterRequest(
        cluster_id=cluster_id,
        timeout_ms=timeout_ms,
        voter_id=key.id,
        voter_directory_id=key.directory_id,
        listeners=[
            add_raft_voter_request.Listener(name=each.listener, host=each.host, port=each.port)
            for each in endpoints
        ],
        ack_when_committed=True,
    )


def remove_voter(cluster_id: str, key: ReplicaKey) -> RemoveRaftVoterRequest:
    """Build a RemoveRaftVoter."""
    return RemoveRaftVoterRequest(cluster_id=cluster_id, voter_id=key.id, voter_directory_id=key.directory_id)


def register_controller(
    controller_id: int,
    incarnation_id: Uuid,
    endpoint: Endpoint,
    ranges: Mapping[str, tuple[int, int]],
) -> ControllerRegistrationRequest:
    """Build a ControllerRegistration with a PLAINTEXT endpoint and these ranges of features."""
    return ControllerRegistrationRequest(
        controller_id=controller_id,
        incarnation_id=incarnation_id,
        listeners=[
            controller_registration_request.Listener(endpoint.listener, endpoint.host, endpoint.port, 0)
        ],
        features=[
            controller_registration_request.Feature(name, lowest, highest)
            for name, (lowest, highest) in sorted(ranges.items())
        ],
    )


def try_kraft_version(level: int, timeout_ms: int) -> UpdateFeaturesRequest:
    """Build an UpdateFeatures that asks whether kraft.version can be raised, and changes nothing."""
    update = FeatureUpdateKey(feature=KRAFT_VERSION, max_version_level=level, upgrade_type=UPGRADE)
    return UpdateFeaturesRequest(timeout_ms=timeout_ms, feature_updates=[update], validate_only=True)


def read_features(response: UpdateFeaturesResponse) -> ChangeAnswer:
    """Read the answer to an UpdateFeatures for one feature. Old releases put its error beside the feature."""
    if not response.error_code and response.results:
        result = response.results[0]
        return ChangeAnswer(ErrorCode.of(result.error_code), result.error_message or "")
    return ChangeAnswer(ErrorCode.of(response.error_code), response.error_message or "")


def read_change(response: Response) -> ChangeAnswer:
    """Read the answer to any of these requests, of which each makes one change."""
    if isinstance(response, IncrementalAlterConfigsResponse):
        (answer,) = response.responses
        return ChangeAnswer(ErrorCode.of(answer.error_code), answer.error_message or "")
    return ChangeAnswer(ErrorCode.of(response.error_code), response.error_message or "")
