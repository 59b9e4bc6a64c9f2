"""Delegation tokens: the rules of DelegationTokenControlManager and of ControllerApis."""

from __future__ import annotations

import hashlib
import hmac
from types import ModuleType

import msgspec
import pytest

from kraft_wire.controller.decision.context import Context, Round
from kraft_wire.controller.tokens import (
    create_delegation_token,
    describe_delegation_token,
    expire_delegation_token,
    expired_tokens,
    renew_delegation_token,
    token_rules,
)
from kraft_wire.controller.tokens.expired_tokens import TOKENS_PER_PIECE, remove_expired_tokens
from kraft_wire.metadata.tokens import DelegationToken
from kraft_wire.protocol.errors import ApiError, ErrorCode
from kraft_wire.protocol.message import Message
from kraft_wire.protocol.messages.create_delegation_token_request import (
    CreatableRenewers,
    CreateDelegationTokenRequest,
)
from kraft_wire.protocol.messages.create_delegation_token_response import CreateDelegationTokenResponse
from kraft_wire.protocol.messages.delegation_token_record import DelegationTokenRecord
from kraft_wire.protocol.messages.describe_delegation_token_request import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from kraft_wire.protocol.messages.describe_delegation_token_response import (
    DescribedDelegationToken,
    DescribeDelegationTokenResponse,
)
from kraft_wire.protocol.messages.expire_delegation_token_request import ExpireDelegationTokenRequest
from kraft_wire.protocol.messages.expire_delegation_token_response import ExpireDelegationTokenResponse
from kraft_wire.protocol.messages.remove_delegation_token_record import RemoveDelegationTokenRecord
from kraft_wire.protocol.messages.renew_delegation_token_request import RenewDelegationTokenRequest
from kraft_wire.protocol.messages.renew_delegation_token_response import RenewDelegationTokenResponse
from kraft_wire.security.authorization import AclOperation, Resource, ResourceType
from kraft_wire.security.principal import Principal
from kraft_wire.security.secret import Secret
from tests.controller.controller_harness import Harness
from tests.controller.grants import Grants

SECRET = "a secret"
DAY_MS = 24 * 3_600_000
ALICE, BOB, EVE = (Principal("User", name) for name in ("alice", "bob", "eve"))
BEFORE_TOKENS = 13


class Cluster(Harness):
    """A controller to which a broker forwards the requests of clients."""

    def __init__(self, secret: str | None = SECRET, level: int = 33) -> None:
        super().__init__(level, features={})
        self.is_forwarded = True
        self.client = ALICE
        key = None if secret is None else Secret(secret)
        self.state.settings = msgspec.structs.replace(self.state.settings, delegation_token_secret_key=key)

    def context(self, listener: str = "CONTROLLER") -> Context:
        return msgspec.structs.replace(super().context(listener), principal=self.client)

    @property
    def wall_ms(self) -> int:
        return self.context().wall_ms

    def create(
        self, owner: str = "", renewers: tuple[str, ...] = (), max_lifetime_ms: int = -1, version: int = 3
    ) -> CreateDelegationTokenResponse:
        request = CreateDelegationTokenRequest(
            owner_principal_type="User" if owner else None,
            owner_principal_name=owner or None,
            renewers=[CreatableRenewers("User", name) for name in renewers],
            max_lifetime_ms=max_lifetime_ms,
        )
        return self.run(create_delegation_token, request, version, CreateDelegationTokenResponse)

    def token(self, token_id: str) -> DelegationToken:
        return self.metadata.tokens.by_id[token_id]

    def renew(self, token_hmac: bytes, period_ms: int = -1) -> RenewDelegationTokenResponse:
        request = RenewDelegationTokenRequest(token_hmac, period_ms)
        return self.run(renew_delegation_token, request, 2, RenewDelegationTokenResponse)

    def expire(self, token_hmac: bytes, period_ms: int) -> ExpireDelegationTokenResponse:
        request = ExpireDelegationTokenRequest(token_hmac, period_ms)
        return self.run(expire_delegation_token, request, 2, ExpireDelegationTokenResponse)

    def described(self, *owners: str, all_owners: bool = False) -> list[str]:
        asked = None if all_owners else [DescribeDelegationTokenOwner("User", owner) for owner in owners]
        request = DescribeDelegationTokenRequest(asked)
        response = self.run(describe_delegation_token, request, 3, DescribeDelegationTokenResponse)
        return [token.token_id for token in response.tokens]

    def refusal(self, module: ModuleType, request: Message, version: int = 2) -> ErrorCode:
        with pytest.raises(ApiError) as raised:
            self.decide(module, request, version)
        return raised.value.code


@pytest.fixture
def cluster() -> Cluster:
    return Cluster()


def test_a_token_is_made_for_the_client(cluster: Cluster) -> None:
    answer = cluster.create(renewers=("bob",))
    now_ms = cluster.wall_ms
    assert answer.error_code == 0
    assert (answer.principal_type, answer.principal_name) == ("User", "alice")
    assert (answer.token_requester_principal_type, answer.token_requester_principal_name) == ("User", "alice")
    times = answer.issue_timestamp_ms, answer.expiry_timestamp_ms, answer.max_timestamp_ms
    assert times == (now_ms, now_ms + DAY_MS, now_ms + 7 * DAY_MS)
    assert answer.hmac == hmac.digest(SECRET.encode(), answer.token_id.encode(), hashlib.sha512)
    assert cluster.token(answer.token_id) == DelegationToken(
        answer.token_id, "User:alice", "User:alice", ("User:bob",), *(times[0], times[2], times[1])
    )


@pytest.mark.parametrize("version", [1, 2, 3])
def test_older_versions_dont_name_the_requester(cluster: Cluster, version: int) -> None:
    answer = cluster.run(
        create_delegation_token, CreateDelegationTokenRequest(), version, CreateDelegationTokenResponse
    )
    assert answer.token_requester_principal_name == ("alice" if version >= 3 else "")
    request = DescribeDelegationTokenRequest(None)
    response = cluster.run(describe_delegation_token, request, version, DescribeDelegationTokenResponse)
    (described,) = response.tokens
    assert described.token_id == answer.token_id
    assert described.token_requester_principal_name == answer.token_requester_principal_name


def test_a_lifetime_can_only_be_shorter_than_the_clusters(cluster: Cluster) -> None:
    now_ms = cluster.wall_ms
    short, long = cluster.create(max_lifetime_ms=5_000), cluster.create(max_lifetime_ms=1 << 62)
    assert (short.max_timestamp_ms, short.expiry_timestamp_ms) == (now_ms + 5_000, now_ms + 5_000)
    assert long.max_timestamp_ms == now_ms + 7 * DAY_MS


@pytest.mark.parametrize("is_granted", [False, True])
def test_a_token_for_another_user_needs_a_permission(cluster: Cluster, is_granted: bool) -> None:
    user = Resource(ResourceType.USER, "User:bob")
    cluster.authorizer = Grants((AclOperation.CREATE_TOKENS, user)) if is_granted else Grants()
    answer = cluster.create(owner="bob")
    assert (answer.principal_name, answer.token_requester_principal_name) == ("bob", "alice")
    if is_granted:
        token = cluster.token(answer.token_id)
        assert (answer.error_code, token.owner, token.requester) == (0, "User:bob", "User:alice")
    else:
        assert answer.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (answer.issue_timestamp_ms, answer.token_id, answer.hmac) == (-1, "", b"")
        assert not cluster.metadata.tokens.by_id


def test_everybody_may_make_a_token_for_himself(cluster: Cluster) -> None:
    cluster.authorizer = Grants()
    assert cluster.create().error_code == 0
    assert cluster.create(owner="alice").error_code == 0


@pytest.mark.parametrize("client", [Principal("User", "alice", token_authenticated=True), None])
def test_clients_that_have_not_authenticated_or_with_a_token_are_not_allowed(
    cluster: Cluster, client: Principal | None
) -> None:
    made = cluster.create()
    cluster.is_forwarded = client is not None
    cluster.client = client or ALICE
    code = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
    created, renewed, expired = cluster.create(), cluster.renew(made.hmac), cluster.expire(made.hmac, -1)
    assert (created.error_code, created.max_timestamp_ms) == (code, -1)
    assert (renewed.error_code, renewed.expiry_timestamp_ms) == (code, -1)
    assert (expired.error_code, expired.expiry_timestamp_ms) == (code, -1)
    assert cluster.refusal(describe_delegation_token, DescribeDelegationTokenRequest(None)) == code
    assert list(cluster.metadata.tokens.by_id) == [made.token_id]


@pytest.mark.parametrize(
    ("cluster", "code"),
    [
        (Cluster(secret=None), ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED),
        (Cluster(level=BEFORE_TOKENS), ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_a_cluster_without_tokens_says_so(cluster: Cluster, code: ErrorCode) -> None:
    created = cluster.create()
    assert (created.error_code, created.max_timestamp_ms, created.principal_name) == (code, 0, "alice")
    assert cluster.refusal(renew_delegation_token, RenewDelegationTokenRequest(b"x")) == code
    assert cluster.refusal(expire_delegation_token, ExpireDelegationTokenRequest(b"x")) == code
    assert cluster.refusal(describe_delegation_token, DescribeDelegationTokenRequest(None)) == code


def test_a_renewer_must_be_a_user(cluster: Cluster) -> None:
    request = CreateDelegationTokenRequest(renewers=[CreatableRenewers("Group", "g")])
    answer = cluster.run(create_delegation_token, request, 3, CreateDelegationTokenResponse)
    assert answer.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
    assert not cluster.metadata.tokens.by_id


@pytest.mark.parametrize("client", [ALICE, BOB])
def test_owner_and_renewers_renew_a_token_until_its_last_time(cluster: Cluster, client: Principal) -> None:
    made = cluster.create(renewers=("bob",))
    cluster.client = client
    cluster.now_ms += DAY_MS // 2
    assert cluster.renew(made.hmac).expiry_timestamp_ms == cluster.wall_ms + DAY_MS
    assert cluster.renew(made.hmac, 5_000).expiry_timestamp_ms == cluster.wall_ms + 5_000
    assert cluster.renew(made.hmac, 9 * DAY_MS).expiry_timestamp_ms == cluster.wall_ms + DAY_MS
    for _ in range(6):
        cluster.now_ms += DAY_MS - 1
        cluster.renew(made.hmac)
    token = cluster.token(made.token_id)
    assert token.expiration_timestamp_ms == token.max_timestamp_ms == made.max_timestamp_ms
    assert (token.renewers, token.issue_timestamp_ms) == (("User:bob",), made.issue_timestamp_ms)


@pytest.mark.parametrize(
    ("module", "request_class"),
    [
        (renew_delegation_token, RenewDelegationTokenRequest),
        (expire_delegation_token, ExpireDelegationTokenRequest),
    ],
)
def test_what_is_wrong_with_a_token_is_said(
    cluster: Cluster,
    module: ModuleType,
    request_class: type[RenewDelegationTokenRequest] | type[ExpireDelegationTokenRequest],
) -> None:
    made = cluster.create()
    request = request_class(made.hmac)
    unknown = request_class(made.hmac[:-1])
    assert cluster.refusal(module, unknown) == ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    cluster.client = EVE
    assert cluster.refusal(module, request) == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    cluster.client = ALICE
    cluster.now_ms += DAY_MS + 1
    assert cluster.refusal(module, request) == ErrorCode.DELEGATION_TOKEN_EXPIRED


def test_a_token_expires_at_another_time_or_at_once(cluster: Cluster) -> None:
    made = cluster.create()
    assert cluster.expire(made.hmac, 5_000).expiry_timestamp_ms == cluster.wall_ms + 5_000
    assert cluster.expire(made.hmac, 1 << 62).expiry_timestamp_ms == made.max_timestamp_ms
    cluster.now_ms += 8 * DAY_MS
    answer = cluster.expire(made.hmac, -1)
    assert (answer.error_code, answer.expiry_timestamp_ms) == (0, cluster.wall_ms), "expired ones, too"
    assert not cluster.metadata.tokens.by_id


def test_a_token_is_searched_in_pieces(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(token_rules, "TOKENS_PER_PIECE", 2)
    made = [cluster.create() for _ in range(3)][-1]
    first = cluster.decide(renew_delegation_token, RenewDelegationTokenRequest(made.hmac), 2)
    assert first.response is None
    (work,) = first.works
    piece = work.decide(cluster.state, cluster.context())
    assert piece.is_last and isinstance(piece.response, RenewDelegationTokenResponse)


def test_tokens_are_shown_to_their_users(cluster: Cluster) -> None:
    cluster.authorizer = Grants()
    of_alice = cluster.create(renewers=("bob",)).token_id
    cluster.client = EVE
    of_eve = cluster.create().token_id
    assert cluster.described(all_owners=True) == [of_eve]
    cluster.client = BOB
    assert cluster.described(all_owners=True) == [of_alice]
    assert cluster.described("eve") == []
    assert cluster.described() == []
    cluster.authorizer = Grants((AclOperation.DESCRIBE_TOKENS, Resource(ResourceType.USER, "User:eve")))
    assert cluster.described(all_owners=True) == [of_alice, of_eve]
    assert cluster.described("eve") == [of_eve]
    cluster.authorizer = Grants((AclOperation.DESCRIBE, Resource(ResourceType.DELEGATION_TOKEN, of_eve)))
    assert cluster.described("eve") == [of_eve]


def test_a_token_is_shown_whole(cluster: Cluster) -> None:
    made = cluster.create(renewers=("bob",))
    request = DescribeDelegationTokenRequest(None)
    response = cluster.run(describe_delegation_token, request, 3, DescribeDelegationTokenResponse)
    (token,) = response.tokens
    assert (token.principal_type, token.principal_name, token.hmac) == ("User", "alice", made.hmac)
    assert [(each.principal_type, each.principal_name) for each in token.renewers] == [("User", "bob")]
    times = token.issue_timestamp, token.expiry_timestamp, token.max_timestamp
    assert times == (made.issue_timestamp_ms, made.expiry_timestamp_ms, made.max_timestamp_ms)


@pytest.mark.parametrize("owners", [None, "alice"])
def test_tokens_with_many_renewers_are_described_in_more_pieces(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, owners: str | None
) -> None:
    looked_at = count_renewers(monkeypatch)
    names = tuple(f"renewer-{number}" for number in range(1_000))
    made = [cluster.create(renewers=names).token_id for _ in range(25)]
    asked = None if owners is None else [DescribeDelegationTokenOwner("User", owners)]
    result = cluster.decide(describe_delegation_token, DescribeDelegationTokenRequest(asked), 3)
    assert result.response is None
    (work,) = result.works
    pieces = [looked_at.copy()]
    while True:
        looked_at.clear()
        piece = work.decide(cluster.state, cluster.context())
        pieces.append(looked_at.copy())
        if piece.is_last:
            break
    assert all(sum(each) <= 10_000 for each in pieces)
    assert sum(map(len, pieces)) == len(made)
    assert isinstance(piece.response, DescribeDelegationTokenResponse)
    assert [token.token_id for token in piece.response.tokens] == made


def count_renewers(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of how many renewers each token had that is described from now on."""
    looked_at: list[int] = []
    describe = describe_delegation_token._described

    def counting(token: DelegationToken, key: Secret) -> DescribedDelegationToken:
        looked_at.append(len(token.renewers))
        return describe(token, key)

    monkeypatch.setattr(describe_delegation_token, "_described", counting)
    return looked_at


def add_old_tokens(cluster: Cluster, count: int, name: str = "old") -> None:
    wall_ms = cluster.wall_ms
    for number in range(count):
        times = 0, wall_ms + DAY_MS, wall_ms - 1
        cluster.replay([(DelegationTokenRecord("User:a", "User:a", (), *times, f"{name}-{number}"), 0)])


def test_expired_tokens_are_removed_some_at_a_time(cluster: Cluster) -> None:
    add_old_tokens(cluster, TOKENS_PER_PIECE)
    living = cluster.create().token_id
    add_old_tokens(cluster, 1, "last")
    first = remove_expired_tokens(cluster.state, cluster.context())
    assert len(first.records) == TOKENS_PER_PIECE
    cluster.apply(first)
    (work,) = first.works
    cluster.state.in_work = {work.key}
    assert remove_expired_tokens(cluster.state, cluster.context()) == Round(), "it is going on"
    second = work.decide(cluster.state, cluster.context())
    assert second.is_last and len(second.records) == 1
    cluster.replay(second.records)
    assert list(cluster.metadata.tokens.by_id) == [living]


def test_no_token_is_looked_at_twice_in_a_search_for_expired_ones(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expired_tokens, "TOKENS_PER_PIECE", 2)
    looked_at: list[str] = []

    def counting(token: DelegationToken, now_ms: int) -> bool:
        looked_at.append(token.token_id)
        return token_rules.has_expired(token, now_ms)

    monkeypatch.setattr(expired_tokens, "has_expired", counting)
    living = [cluster.create().token_id for _ in range(5)]
    add_old_tokens(cluster, 4)
    tokens = list(cluster.metadata.tokens.by_id)
    round_ = remove_expired_tokens(cluster.state, cluster.context())
    assert looked_at == tokens[:2]
    (work,) = round_.works
    cluster.replay([(RemoveDelegationTokenRecord("old-3"), 0)])
    is_last = False
    while not is_last:
        piece = work.decide(cluster.state, cluster.context())
        cluster.replay(piece.records)
        is_last = piece.is_last
    assert looked_at == tokens[:-1]
    assert list(cluster.metadata.tokens.by_id) == living


def test_without_tokens_nothing_is_removed(cluster: Cluster) -> None:
    assert remove_expired_tokens(cluster.state, cluster.context()) == Round()


def test_the_secret_key_is_not_printed(cluster: Cluster) -> None:
    assert SECRET not in repr(cluster.state.settings)
