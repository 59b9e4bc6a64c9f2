"""AlterUserScramCredentials and DescribeUserScramCredentials: the rules of ScramControlManager and
ScramImage."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from kraft_wire.controller.clients import alter_user_scram_credentials, describe_user_scram_credentials
from kraft_wire.controller.clients.scram import scram_keys
from kraft_wire.metadata.scram import ScramCredential, ScramMechanism
from kraft_wire.protocol.errors import ErrorCode
from kraft_wire.protocol.messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from kraft_wire.protocol.messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
)
from kraft_wire.protocol.messages.describe_user_scram_credentials_request import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from kraft_wire.protocol.messages.describe_user_scram_credentials_response import (
    DescribeUserScramCredentialsResponse,
)
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord
from tests.controller.controller_harness import Harness

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
BEFORE_SCRAM = 10
SALTED = bytes.fromhex("1dfd3a09b3b7c5f3a8a1a6b06f2b4dd62d0d1e0f")

Change = ScramCredentialDeletion | ScramCredentialUpsertion


@pytest.fixture
def harness() -> Harness:
    return Harness()


def upsertion(
    name: str,
    mechanism: int = SHA_256,
    iterations: int = 4096,
    salted: bytes = SALTED,
    salt: bytes = b"salt",
) -> ScramCredentialUpsertion:
    return ScramCredentialUpsertion(name, mechanism, iterations, salt, salted)


def deletion(name: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(name, mechanism)


def alter(harness: Harness, *changes: Change) -> dict[str, int]:
    """Replay the records. Returns the code of each user's answer."""
    request = AlterUserScramCredentialsRequest(
        [each for each in changes if isinstance(each, ScramCredentialDeletion)],
        [each for each in changes if isinstance(each, ScramCredentialUpsertion)],
    )
    response = harness.run(alter_user_scram_credentials, request, 0, AlterUserScramCredentialsResponse)
    assert all((each.error_message is None) == (each.error_code == 0) for each in response.results)
    answers = {each.user: each.error_code for each in response.results}
    assert len(answers) == len(response.results), "each user is answered once"
    return answers


def describe(harness: Harness, *users: str) -> dict[str, tuple[int, list[tuple[int, int]]]]:
    """Return the code of each user's answer, and the mechanisms with their iterations."""
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in users] or None)
    response = harness.run(describe_user_scram_credentials, request, 0, DescribeUserScramCredentialsResponse)
    assert (response.error_code, response.error_message) == (0, None)
    return {
        each.user: (each.error_code, [(info.mechanism, info.iterations) for info in each.credential_infos])
        for each in response.results
    }


def test_credentials_are_set_replaced_and_removed(harness: Harness) -> None:
    assert alter(harness, upsertion("ann"), upsertion("bob", SHA_512, 8192)) == {"ann": 0, "bob": 0}
    keys = scram_keys(SHA_256, SALTED)
    credentials = harness.metadata.scram.by_user
    assert credentials["ann", SHA_256] == ScramCredential(b"salt", keys.stored_key, keys.server_key, 4096)
    assert alter(harness, upsertion("ann", iterations=16384), deletion("bob", SHA_512)) == {
        "bob": 0,
        "ann": 0,
    }
    assert {user: credential.iterations for user, credential in credentials.items()} == {
        ("ann", SHA_256): 16384
    }


def test_the_keys_are_those_of_the_rfc() -> None:
    """The example of RFC 7677, section 3: user "user", password "pencil"."""
    salt = base64.b64decode("W22ZaJ0SNY7soEsUEjb6gQ==")
    salted = hashlib.pbkdf2_hmac("sha256", b"pencil", salt, 4096)
    keys = scram_keys(SHA_256, salted)
    auth_message = (
        b"n=user,r=rOprNGfwEbeRWgbNEkqO,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
        b"s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096,c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0"
    )
    signature = hmac.digest(keys.server_key, auth_message, "sha256")
    assert base64.b64encode(signature) == b"6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
    proof = base64.b64decode("dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=")
    client_signature = hmac.digest(keys.stored_key, auth_message, "sha256")
    client_key = bytes(a ^ b for a, b in zip(proof, client_signature, strict=True))
    assert hashlib.sha256(client_key).digest() == keys.stored_key


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (deletion("ann"), ErrorCode.RESOURCE_NOT_FOUND),
        (deletion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (deletion("ann", 0), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion(""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", 3), ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        (upsertion("ann", iterations=4095), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", iterations=16385), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", salted=b""), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", salted=bytes(1025)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
        (upsertion("ann", salt=bytes(1025)), ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_a_wrong_change_is_refused_alone(harness: Harness, change: Change, code: ErrorCode) -> None:
    assert alter(harness, change, upsertion("bob")) == {change.name: code, "bob": 0}
    assert list(harness.metadata.scram.by_user) == [("bob", SHA_256)]


def test_a_user_can_be_changed_only_once(harness: Harness) -> None:
    assert alter(harness, upsertion("ann")) == {"ann": 0}
    answers = alter(harness, deletion("ann"), upsertion("ann", SHA_512), upsertion("bob"))
    assert answers == {"ann": ErrorCode.DUPLICATE_RESOURCE, "bob": 0}
    assert set(harness.metadata.scram.by_user) == {("ann", SHA_256), ("bob", SHA_256)}


def test_a_fault_of_the_first_change_counts_before_the_second(harness: Harness) -> None:
    answers = alter(harness, deletion("ann"), upsertion("ann"))
    assert answers == {"ann": ErrorCode.RESOURCE_NOT_FOUND}
    assert not harness.metadata.scram.by_user


def test_an_old_metadata_version_holds_no_credentials() -> None:
    harness = Harness(level=BEFORE_SCRAM, features={})
    assert alter(harness, upsertion("ann")) == {"ann": ErrorCode.UNSUPPORTED_VERSION}


def test_users_are_described(harness: Harness) -> None:
    alter(harness, upsertion("ann"), upsertion("bob", SHA_512, 8192))
    alter(harness, upsertion("ann", SHA_512, 5000))
    ann, bob = (0, [(SHA_256, 4096), (SHA_512, 5000)]), (0, [(SHA_512, 8192)])
    assert describe(harness) == {"ann": ann, "bob": bob}
    missing: tuple[int, list[tuple[int, int]]] = (ErrorCode.RESOURCE_NOT_FOUND, [])
    assert describe(harness, "bob", "eve") == {"bob": bob, "eve": missing}
    assert describe(harness, "bob", "ann", "bob") == {
        "bob": (ErrorCode.DUPLICATE_RESOURCE, []),
        "ann": ann,
    }


class Name(str):
    """A name that counts how often it is looked up."""

    looked_up = 0

    def __hash__(self) -> int:
        Name.looked_up += 1
        return super().__hash__()


def test_very_many_users_are_described_in_pieces_the_first_of_which_is_short(
    harness: Harness, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(describe_user_scram_credentials, "USERS_PER_PIECE", 10)
    users = [f"user-{number}" for number in range(1_000)]
    for user in users:
        for mechanism in (SHA_256, SHA_512):
            record = UserScramCredentialRecord(Name(user), mechanism, b"salt", b"key", b"key", 4096)
            harness.metadata.replay(record, harness.state.next_offset)
    Name.looked_up = 0
    result = harness.decide(describe_user_scram_credentials, DescribeUserScramCredentialsRequest(None), 0)
    assert Name.looked_up <= 10 * 10
    pieces, response = 1, result.response
    while response is None:
        piece = result.works[0].decide(harness.state, harness.context())
        pieces, response = pieces + 1, piece.response
    assert isinstance(response, DescribeUserScramCredentialsResponse)
    assert pieces >= 100
    assert [each.user for each in response.results] == users
    assert all(len(each.credential_infos) == 2 for each in response.results)


def test_secrets_are_not_printed() -> None:
    keys = scram_keys(SHA_256, SALTED)
    assert repr(keys) == "ScramKeys(hidden)" == str(keys)
