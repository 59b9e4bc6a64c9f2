"""``storage format --add-scram``: the options of Kafka's ScramParser."""

from __future__ import annotations

import hashlib
from base64 import b64encode

import pytest

from kraft_wire.cli.errors import UsageError
from kraft_wire.cli.storage.scram_users import scram_records
from kraft_wire.controller.clients.scram import scram_keys
from kraft_wire.metadata.features.metadata_version import LATEST_PRODUCTION
from kraft_wire.metadata.scram import ScramMechanism
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

SHA_256, SHA_512 = ScramMechanism.SCRAM_SHA_256, ScramMechanism.SCRAM_SHA_512
SALT = b"some salt"
SALT_TEXT = b64encode(SALT).decode()
BEFORE_SCRAM = 10


def only(text: str) -> UserScramCredentialRecord:
    (record,) = scram_records([text], LATEST_PRODUCTION)
    return record


def test_a_password_is_salted() -> None:
    record = only(f'SCRAM-SHA-512=[name="alice",password=a=secret,salt={SALT_TEXT},iterations=8192]')
    salted = hashlib.pbkdf2_hmac("sha512", b"a=secret", SALT, 8192)
    keys = scram_keys(SHA_512, salted)
    assert record == UserScramCredentialRecord("alice", SHA_512, SALT, keys.stored_key, keys.server_key, 8192)


def test_a_password_that_is_salted_is_taken_as_it_is() -> None:
    salted = hashlib.pbkdf2_hmac("sha256", b"secret", SALT, 4096)
    given = b64encode(salted).decode()
    record = only(f"SCRAM-SHA-256=[name=bob,saltedpassword={given},salt={SALT_TEXT}]")
    assert record == only(f"SCRAM-SHA-256=[name=bob,password=secret,salt={SALT_TEXT}]")


def test_what_java_takes_is_taken() -> None:
    record = only("SCRAM-SHA-256=[name=a,password=secret,salt=QUJDRA,iterations=+5000,]")
    assert (record.salt, record.iterations) == (b"ABCD", 5000)


def test_each_user_has_a_salt_of_its_own() -> None:
    text = "SCRAM-SHA-256=[name=alice,password=secret]"
    one, other = scram_records([text, text.replace("alice", "bob")], LATEST_PRODUCTION)
    assert (one.name, other.name, one.iterations) == ("alice", "bob", 4096)
    assert one.salt != other.salt and one.stored_key != other.stored_key


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("PLAIN=[name=a,password=secret]", "begins with a mechanism"),
        ("SCRAM-SHA-256", "needs brackets"),
        ("SCRAM-SHA-256=name=a,password=secret", "needs brackets"),
        ("SCRAM-SHA-256=[password=secret]", "needs a name"),
        ("SCRAM-SHA-256=[name=a]", "needs a password"),
        ("SCRAM-SHA-256=[name=a,secret]", "takes NAME=VALUE"),
        ("SCRAM-SHA-256=[name=a,password=secret,colour=red]", "takes NAME=VALUE"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=4095]", "from 4096 to 16384, not 4095"),
        ("SCRAM-SHA-256=[name=a,password=secret,iterations=many]", "from 4096 to 16384, not many"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=c2VjcmV0]", "needs its salt"),
        ("SCRAM-SHA-256=[name=a,password=secret,salt=%%%]", "salt is not Base64"),
        ("SCRAM-SHA-256=[name=a,saltedpassword=\u00e9,salt=AAAA]", "saltedpassword is not Base64"),
        (f"SCRAM-SHA-256=[name=a,password=secret,iterations={'9' * 5000}]", "from 4096 to 16384, not 999"),
        ("SCRAM-SHA-256=[name=a,password=\udcff]", "password is not UTF-8"),
        ("SCRAM-SHA-256=[name=\udcff,password=secret]", "name is not UTF-8"),
    ],
)
def test_what_is_wrong_is_said_without_the_secret(text: str, complaint: str) -> None:
    with pytest.raises(UsageError, match="--add-scram") as raised:
        only(text)
    assert complaint in str(raised.value)
    assert "=secret" not in str(raised.value).replace("password=a-secret", "")


def test_an_old_metadata_version_has_no_users() -> None:
    with pytest.raises(UsageError, match=r"needs metadata\.version 3\.5-IV2"):
        scram_records(["SCRAM-SHA-256=[name=a,password=secret]"], BEFORE_SCRAM)
    assert scram_records([], BEFORE_SCRAM) == []
