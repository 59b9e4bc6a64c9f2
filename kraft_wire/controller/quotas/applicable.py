"""Find the quota that applies to a client: the most specific one (Kafka's ClientQuotaManager)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from kraft_wire.metadata.quotas import CLIENT_ID, USER, QuotaEntity, quota_entity

Quotas = Mapping[QuotaEntity, Mapping[str, float]]


class Sharers(NamedTuple):
    """The clients that share what a quota allows: those of a user, those with a client id, or both. An empty
    text is any."""

    user: str
    client_id: str


class Quota(NamedTuple):
    """A quota of a client, and the clients that share it."""

    limit: float
    sharers: Sharers


def applicable_quota(quotas: Quotas, key: str, user: str, client_id: str) -> Quota | None:
    """Return the quota ``key`` that applies to a client of this user; None if there is none.

    One for the user and the client id comes before one for the user, and that before one for the client id.
    A default for users comes after quotas of the user. No quota of client ids applies to an empty one.
    """
    if not quotas:
        return None
    for entity, sharers in _entities(user, client_id):
        limit = quotas.get(entity, {}).get(key)
        if limit is not None:
            return Quota(limit, sharers)
    return None


def _entities(user: str, client_id: str) -> Iterator[tuple[QuotaEntity, Sharers]]:
    for name in (user, None):
        if client_id:
            yield quota_entity({USER: name, CLIENT_ID: client_id}), Sharers(user, client_id)
            yield quota_entity({USER: name, CLIENT_ID: None}), Sharers(user, client_id)
        yield quota_entity({USER: name}), Sharers(user, "")
    if client_id:
        yield quota_entity({CLIENT_ID: client_id}), Sharers("", client_id)
        yield quota_entity({CLIENT_ID: None}), Sharers("", client_id)
