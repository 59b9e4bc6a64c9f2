"""Serve AlterUserScramCredentials (51), version 0: set and remove the SCRAM credentials of users. KIP-554.

Each user succeeds or fails by itself. Kafka requires ALTER on the cluster. Rules: ScramControlManager.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kraft_wire.controller.clients.scram import DIGESTS, scram_keys
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.item_work import CHARS_PER_PIECE, LimitedWork, pieces_of
from kraft_wire.controller.decision.records import VersionedRecord
from kraft_wire.controller.decision.work import WorkKind
from kraft_wire.metadata.features.metadata_version import scram_supported
from kraft_wire.metadata.scram import ScramMechanism
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from kraft_wire.protocol.messages.remove_user_scram_credential_record import RemoveUserScramCredentialRecord
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16384
MOST_SECRET_BYTES: Final = 1024
"""The most bytes of a salt and of a salted password. Java has no limit; clients send 64 at most."""
USERS_PER_PIECE: Final = 500
"""The users whose credentials are changed in one step."""

Change = ScramCredentialDeletion | ScramCredentialUpsertion


def handle(
    state: ControllerState, request: AlterUserScramCredentialsRequest, version: int, context: Context
) -> Result:
    """Change the credentials that can be changed. The response has the errors of the other users."""
    changes: dict[str, list[Change]] = {}
    asked: list[Change] = [*request.deletions, *request.upsertions]
    for change in asked:
        changes.setdefault(change.name, []).append(change)

    def alter(
        state: ControllerState, users: Sequence[str]
    ) -> tuple[list[AlterUserScramCredentialsResult], list[VersionedRecord]]:
        results: list[AlterUserScramCredentialsResult] = []
        records: list[VersionedRecord] = []
        for user in users:
            try:
                records.append((_alter(state, changes[user]), 0))
                results.append(AlterUserScramCredentialsResult(user=user, error_message=None))
            except ApiError as error:
                results.append(AlterUserScramCredentialsResult(user, int(error.code), error.message))
        return results, records

    def respond(results: list[AlterUserScramCredentialsResult]) -> AlterUserScramCredentialsResponse:
        return AlterUserScramCredentialsResponse(results=results)

    pieces = pieces_of(changes, USERS_PER_PIECE, len, CHARS_PER_PIECE)
    return LimitedWork(WorkKind.ALTER_CREDENTIALS, pieces, alter, respond).begin(state, context)


def _alter(
    state: ControllerState, changes: Sequence[Change]
) -> UserScramCredentialRecord | RemoveUserScramCredentialRecord:
    """Return the record for one user. A fault of the first change counts before there being several."""
    first = changes[0]
    if not scram_supported(state.metadata.features.metadata_version):
        raise ApiError(
            ErrorCode.UNSUPPORTED_VERSION, "the finalized metadata.version is too low for SCRAM: raise it"
        )
    mechanism = _mechanism(first)
    if isinstance(first, ScramCredentialDeletion):
        if (first.name, mechanism) not in state.metadata.scram.by_user:
            raise ApiError(
                ErrorCode.RESOURCE_NOT_FOUND, f"the user has no credential of {mechanism.kafka_name}"
            )
        _check_alone(changes)
        return RemoveUserScramCredentialRecord(name=first.name, mechanism=mechanism)
    _check_upsertion(first)
    _check_alone(changes)
    keys = scram_keys(mechanism, first.salted_password)
    return UserScramCredentialRecord(
        name=first.name,
        mechanism=mechanism,
        salt=first.salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=first.iterations,
    )


def _mechanism(change: Change) -> ScramMechanism:
    if not change.name:
        raise ApiError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "the name of the user is empty")
    known = {mechanism.value: mechanism for mechanism in DIGESTS}
    mechanism = known.get(change.mechanism)
    if mechanism is None:
        raise ApiError(
            ErrorCode.UNSUPPORTED_SASL_MECHANISM, f"there is no SCRAM mechanism {change.mechanism}"
        )
    return mechanism


def _check_upsertion(change: ScramCredentialUpsertion) -> None:
    if not LEAST_ITERATIONS <= change.iterations <= MOST_ITERATIONS:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"{change.iterations} iterations: they must be from {LEAST_ITERATIONS} to {MOST_ITERATIONS}",
        )
    if not 0 < len(change.salted_password) <= MOST_SECRET_BYTES:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"the salted password has {len(change.salted_password)} bytes, not 1 to {MOST_SECRET_BYTES}",
        )
    if len(change.salt) > MOST_SECRET_BYTES:
        raise ApiError(
            ErrorCode.UNACCEPTABLE_CREDENTIAL,
            f"the salt has {len(change.salt)} bytes, more than {MOST_SECRET_BYTES}",
        )


def _check_alone(changes: Sequence[Change]) -> None:
    if len(changes) > 1:
        raise ApiError(
            ErrorCode.DUPLICATE_RESOURCE, "the request changes credentials of this user more than once"
        )
