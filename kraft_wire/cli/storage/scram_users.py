"""Read the users that ``storage format --add-scram`` gives a new cluster, as Kafka's ScramParser does.

Error messages repeat no password, salt or other secret.
"""

from __future__ import annotations

import hashlib
import secrets
from base64 import b64decode
from collections.abc import Sequence
from typing import Final

from kraft_wire.cli.errors import UsageError
from kraft_wire.configs.java_text import parse_int32
from kraft_wire.controller.clients.alter_user_scram_credentials import LEAST_ITERATIONS, MOST_ITERATIONS
from kraft_wire.controller.clients.scram import DIGESTS, scram_keys
from kraft_wire.metadata.features.metadata_version import name_of, scram_supported
from kraft_wire.metadata.scram import ScramMechanism
from kraft_wire.protocol.messages.user_scram_credential_record import UserScramCredentialRecord

OPTION: Final = "--add-scram"
EXAMPLE: Final = "SCRAM-SHA-512=[name=alice,password=a-secret]"
SALT_BYTES: Final = 24
_PARTS: Final = ("name", "password", "saltedpassword", "salt", "iterations")


def scram_records(texts: Sequence[str], metadata_version: int) -> list[UserScramCredentialRecord]:
    """Return the records of the users that these options describe. Raises UsageError."""
    if texts and not scram_supported(metadata_version):
        raise UsageError(
            f"{OPTION} needs metadata.version 3.5-IV2 or higher, not {name_of(metadata_version)}"
        )
    return [_record(text) for text in texts]


def _record(text: str) -> UserScramCredentialRecord:
    named, _, configuration = text.strip().partition("=")
    mechanism = next((each for each in DIGESTS if each.kafka_name == named), None)
    if mechanism is None:
        known = " or ".join(each.kafka_name for each in DIGESTS)
        raise UsageError(f"{OPTION} begins with a mechanism, {known}: {EXAMPLE}")
    if not (configuration.startswith("[") and configuration.endswith("]")):
        raise UsageError(f"{OPTION} {named}= needs brackets: {EXAMPLE}")
    parts = _parts(configuration[1:-1])
    if not parts.get("name"):
        raise UsageError(f"{OPTION} needs a name: {EXAMPLE}")
    _utf8(parts["name"], "name")
    iterations = _iterations(parts)
    salt = _decoded(parts, "salt") if "salt" in parts else secrets.token_bytes(SALT_BYTES)
    keys = scram_keys(mechanism, _salted_password(mechanism, parts, salt, iterations))
    return UserScramCredentialRecord(
        name=parts["name"],
        mechanism=mechanism,
        salt=salt,
        stored_key=keys.stored_key,
        server_key=keys.server_key,
        iterations=iterations,
    )


def _parts(configuration: str) -> dict[str, str]:
    parts: dict[str, str] = {}
    for part in configuration.rstrip(",").split(","):
        name, equals, value = part.partition("=")
        if not equals or name not in _PARTS:
            raise UsageError(
                f"{OPTION} takes NAME=VALUE of {', '.join(_PARTS)}, separated by commas: {EXAMPLE}"
            )
        is_quoted = len(value) > 1 and value[0] == value[-1] == '"'
        parts[name] = value[1:-1] if is_quoted else value
    return parts


def _iterations(parts: dict[str, str]) -> int:
    text = parts.get("iterations", str(LEAST_ITERATIONS))
    number = parse_int32(text)
    if number is None or not LEAST_ITERATIONS <= number <= MOST_ITERATIONS:
        limits = f"from {LEAST_ITERATIONS} to {MOST_ITERATIONS}"
        raise UsageError(f"{OPTION}: iterations must be {limits}, not {text[:20]}")
    return number


def _salted_password(mechanism: ScramMechanism, parts: dict[str, str], salt: bytes, iterations: int) -> bytes:
    """Return the salted password; a password counts before one that is salted already."""
    if password := parts.get("password"):
        return hashlib.pbkdf2_hmac(DIGESTS[mechanism], _utf8(password, "password"), salt, iterations)
    if not parts.get("saltedpassword"):
        raise UsageError(f"{OPTION} needs a password, or a saltedpassword with its salt")
    if "salt" not in parts:
        raise UsageError(f"{OPTION}: saltedpassword needs its salt")
    return _decoded(parts, "saltedpassword")


def _decoded(parts: dict[str, str], name: str) -> bytes:
    """Return Base64 as bytes; as in Java, it may lack the padding."""
    text = parts[name]
    try:
        return b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        raise UsageError(f"{OPTION}: {name} is not Base64") from None


def _utf8(text: str, name: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise UsageError(f"{OPTION}: {name} is not UTF-8") from None
