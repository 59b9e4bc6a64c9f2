"""Serve DescribeUserScramCredentials (50), version 0: say which users have SCRAM credentials. KIP-554.

Nothing secret is in the answer. Kafka requires DESCRIBE on the cluster. Java's controllers advertise the API
and fail: brokers answer it there. Rules: ScramImage.describe.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from kraft_wire.controller.clients.scram import DIGESTS
from kraft_wire.controller.decision.context import Context, ControllerState, Result
from kraft_wire.controller.decision.work import Piece, WorkKey, WorkKind
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
)
from kraft_wire.protocol.messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)

USERS_PER_PIECE: Final = 2_000
"""The names of users that are looked at in one step. One with two credentials is there twice."""


def handle(
    state: ControllerState, request: DescribeUserScramCredentialsRequest, version: int, context: Context
) -> Result:
    """Describe the users that are asked for; all of them if none is."""
    if request.users:
        mentions = Counter(user.name for user in request.users)
        return Result.of_work(_Description(iter(mentions), mentions), state, context)
    keys = list(state.metadata.scram.by_user)
    return Result.of_work(_Description((name for name, _ in keys), {}), state, context)


class _Description:
    """The description of some users. Each is described as it is found in its step.

    ``mentions`` says how often the request names each user; it is empty if the request names none.
    """

    def __init__(self, names: Iterator[str], mentions: Mapping[str, int]) -> None:
        self.key = WorkKey(WorkKind.DESCRIBE_CREDENTIALS)
        self._names = names
        self._mentions = mentions
        self._results: dict[str, DescribeUserScramCredentialsResult] = {}

    def decide(self, state: ControllerState, context: Context) -> Piece:
        """Describe the next users."""
        names = list(islice(self._names, USERS_PER_PIECE))
        for name in names:
            if name not in self._results:
                self._results[name] = _described(state, name, self._mentions.get(name, 1))
        if len(names) == USERS_PER_PIECE:
            return Piece((), is_last=False)
        results = list(self._results.values())
        response = DescribeUserScramCredentialsResponse(error_message=None, results=results)
        return Piece((), is_last=True, response=response)


def _described(state: ControllerState, user: str, mentions: int) -> DescribeUserScramCredentialsResult:
    if mentions > 1:
        return _failure(user, ErrorCode.DUPLICATE_RESOURCE, "the request names this user more than once")
    credentials = state.metadata.scram.by_user
    infos = [
        CredentialInfo(mechanism.value, credentials[user, mechanism.value].iterations)
        for mechanism in DIGESTS
        if (user, mechanism.value) in credentials
    ]
    if not infos:
        return _failure(user, ErrorCode.RESOURCE_NOT_FOUND, "the user has no SCRAM credential")
    return DescribeUserScramCredentialsResult(user=user, error_message=None, credential_infos=infos)


def _failure(user: str, code: ErrorCode, message: str) -> DescribeUserScramCredentialsResult:
    return DescribeUserScramCredentialsResult(user=user, error_code=int(code), error_message=message)
