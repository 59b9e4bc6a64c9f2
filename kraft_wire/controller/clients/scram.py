"""What the SCRAM APIs share: mechanisms, and the keys that are kept of passwords. KIP-554, RFC 5802."""

from __future__ import annotations

import hashlib
import hmac
from typing import Final, NamedTuple

from kraft_wire.metadata.scram import ScramMechanism

DIGESTS: Final = {ScramMechanism.SCRAM_SHA_256: "sha256", ScramMechanism.SCRAM_SHA_512: "sha512"}
"""The hash function of each mechanism."""


class ScramKeys(NamedTuple):
    """The keys by which a broker checks a client's proof, and proves itself. They don't reveal the
    password."""

    stored_key: bytes
    server_key: bytes

    def __repr__(self) -> str:
        return "ScramKeys(hidden)"


def scram_keys(mechanism: ScramMechanism, salted_password: bytes) -> ScramKeys:
    """Return the keys for a salted password (RFC 5802, section 3)."""
    digest = DIGESTS[mechanism]
    client_key = hmac.digest(salted_password, b"Client Key", digest)
    return ScramKeys(
        hashlib.new(digest, client_key).digest(), hmac.digest(salted_password, b"Server Key", digest)
    )
