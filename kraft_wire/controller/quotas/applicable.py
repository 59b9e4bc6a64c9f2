"""Find the quota that applies to a client: the most specific one (Kafka's ClientQuotaManager)."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Final, NamedTuple

from kraft_wire.metadata.quotas import CLIENT_ID, USER, QuotaEntity

LONGEST_NAME: Final = 64
"""Longer names of users and client ids are known by a digest: clients choose them."""

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Sharers(NamedTuple):
    """The clients that share what a quota allows: those of a user, those with a client id, or both. An empty
    text is any."""

    user: str
    client_id: str


class Quota(NamedTuple):
    """A quota of a client, and the clients that share it. The limit is finite and not negative."""

    limit: float
    sharers: Sharers


def applicable_quota(quotas: Quotas, key: str, user: str, client_id: str) -> Quota | None:
    """Return the quota ``key`` that applies to a client of this user; None if there is none.

    One for the user and the client id comes before one for the user, and that before one for the client id.
    A default for users comes after quotas of the user. No quota of client ids applies to an empty one. A log
    may have quotas that nobody can set today: 0 allows nothing; a negative or infinite one limits nothing.
    """
    if not quotas:
        return None
    for entity, sharers in _entities(user, client_id):
        limit = quotas.get(entity, {}).get(key)
        if limit is not None:
            return Quota(limit, Sharers(*map(_short, sharers))) if 0 <= limit < math.inf else None
    return None


def _short(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    return blake2b(name.encode(errors="surrogatepass"), digest_size=LONGEST_NAME // 2).hexdigest()


def _entities(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Sharers]]:
    for name in (user, None):
        if client_id:
            yield ((CLIENT_ID, client_id), (USER, name)), Sharers(user, client_id)
            yield ((CLIENT_ID, None), (USER, name)), Sharers(user, client_id)
        yield ((USER, name),), Sharers(user, "")
    if client_id:
        yield ((CLIENT_ID, client_id),), Sharers("", client_id)
        yield ((CLIENT_ID, None),), Sharers("", client_id)
