"""SASL conversations: PLAIN by RFC 4616, SCRAM by the example of RFC 7677."""

from __future__ import annotations

import pytest

from kraft_wire.security.errors import AuthenticationFailed
from kraft_wire.security.sasl import Conversation, Sasl, conversation
from kraft_wire.security.secret import Secret

NONCE = "rOprNGfwEbeRWgbNEkqO"
SERVER_FIRST = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
CLIENT_FINAL = (
    b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,"
    b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
)
SERVER_FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def _talk(mechanism: str = "SCRAM-SHA-256", username: str = "user") -> Conversation:
    return conversation(Sasl(mechanism, username, Secret("pencil")), NONCE)


def test_plain_says_everything_at_once() -> None:
    talk = _talk("PLAIN", "ålice")
    assert talk.first() == "\0ålice\0pencil".encode()
    assert talk.answer(b"") is None


def test_scram_is_the_rfcs_example() -> None:
    talk = _talk()
    assert talk.first() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    assert talk.answer(SERVER_FIRST) == CLIENT_FINAL
    assert talk.answer(SERVER_FINAL) is None


def test_the_other_digest_gives_another_proof() -> None:
    proof = _talk("SCRAM-SHA-512").answer(SERVER_FIRST)
    assert proof is not None
    assert len(proof.partition(b",p=")[2]) == 88  # 64 bytes in base64


def test_a_name_is_escaped() -> None:
    assert _talk(username="a=b,c").first() == b"n,,n=a=3Db=2Cc,r=rOprNGfwEbeRWgbNEkqO"


def test_a_server_that_does_not_know_the_password_is_noticed() -> None:
    talk = _talk()
    talk.answer(SERVER_FIRST)
    with pytest.raises(AuthenticationFailed, match="signature is wrong: it doesn't know the password"):
        talk.answer(SERVER_FINAL.replace(b"6rri", b"7rri"))


@pytest.mark.parametrize(
    ("challenge", "problem"),
    [
        (SERVER_FIRST.replace(b"rOpr", b"sOpr"), "nonce doesn't extend ours"),
        (b"r=rOprNGfwEbeRWgbNEkqO,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "nonce doesn't extend ours"),
        (SERVER_FIRST.replace(b"4096", b"4095"), "asks for 4095 SCRAM iterations; allowed are 4096 to 16384"),
        (SERVER_FIRST.replace(b"4096", b"4000000000"), "SCRAM iterations; allowed are 4096 to 16384"),
        (SERVER_FIRST.replace(b"4096", b"-1"), "asks for -1 SCRAM iterations"),
        (SERVER_FIRST.replace(b",i=4096", b""), "asks for no SCRAM iterations"),
        (SERVER_FIRST.replace(b"W22Z", b"W2!Z"), "has no valid s="),
        (b"e=unknown-user", "the server answered SCRAM with unknown-user"),
        (b"\xff", "isn't UTF-8"),
        (b"", "has no valid s="),
    ],
)
def test_a_challenge_that_is_none_ends_the_conversation(challenge: bytes, problem: str) -> None:
    with pytest.raises(AuthenticationFailed) as error:
        _talk().answer(challenge)
    assert problem in str(error.value)
    assert "pencil" not in str(error.value)
